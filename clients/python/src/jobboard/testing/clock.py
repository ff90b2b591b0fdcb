"""Time travel."""

from __future__ import annotations

from datetime import datetime, timezone

import redis

from ..durations import Duration, of_ms, to_ms
from ..times import to_unix

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Clock:
    """The clock of a test server: its time moves only when the test moves it.

    Whatever comes due is done before `advance` and `set` return: leases end, delays and schedules too.
    """

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    @property
    def now(self) -> datetime:
        return EPOCH + of_ms(self._ask("GET"))

    def advance(self, duration: Duration) -> datetime:
        """Moves time on, `clock.advance("2h")`, and returns the new time."""
        ms = to_ms(duration, "the clock's advance")
        if ms < 0:
            raise ValueError(f"the clock only goes on: advance('2h'), not {duration!r}")
        return EPOCH + of_ms(self._ask("ADVANCE", ms))

    def set(self, time: datetime) -> None:
        """Moves time to a datetime with a zone."""
        self._ask("SET", to_unix(time, "the clock's time"))

    def _ask(self, *words: str | int) -> int:
        found = self._client.execute_command("JOB.CLOCK", *words)  # type: ignore[no-untyped-call]
        return found if isinstance(found, int) else 0
