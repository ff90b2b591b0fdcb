"""The clock of a server that was started with `clock manual`."""

from __future__ import annotations

import redis

EPOCH = 1_700_000_000_000
"""The Unix millisecond at which every test with a manual clock begins."""


class Clock:
    """Moves the module's time. Everything due is done before `advance` and `set` return."""

    def __init__(self, client: redis.Redis) -> None:
        self.client = client

    def now(self) -> int:
        return int(self.client.execute_command("JOB.CLOCK", "GET"))

    def set(self, ms: int) -> None:
        self.client.execute_command("JOB.CLOCK", "SET", ms)

    def advance(self, ms: int) -> int:
        """Moves time on by `ms` (negative: back) and returns the new time."""
        return int(self.client.execute_command("JOB.CLOCK", "ADVANCE", ms))
