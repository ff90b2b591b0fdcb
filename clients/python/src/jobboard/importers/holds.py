"""What keeps back the jobs of a queue of another library: a pause, a concurrency, a rate.

The board's queue gets all of it: a pause and a concurrency before the first job comes, so that no worker of
the board takes what somebody holds back. A rate is set when all jobs are moved, because the jobs that come
failed or complete are claimed for an instant, and would use it up. What the board's queue has already stays.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..board import Board

Command = list[Any]


@dataclass
class Hold:
    """Of a queue of the board; `pause` is None, or for how many ms, 0 for as long as nobody ends it."""

    queue: str
    pause: int | None = None
    concurrency: int | None = None
    rate: tuple[int, int] | None = None
    """Jobs, and in how many ms."""

    def about(self) -> list[str]:
        """In words."""
        found = []
        if self.pause is not None:
            found.append("paused" + (f" for {self.pause} ms" if self.pause else ""))
        if self.concurrency is not None:
            found.append(f"concurrency {self.concurrency}")
        if self.rate is not None:
            found.append("rate {} in {} ms".format(*self.rate))
        return found


class Holds:
    """Those of an import, on its board. `said` has what was set, and what was not."""

    def __init__(self, client: Any, board: str, found: Iterable[Hold]) -> None:
        self.board = board
        self.said: list[str] = []
        self._requests = Board(board, client)
        self._holds = self._merged(found)
        self._begun = time.monotonic()

    def tell(self) -> None:
        """For a dry run: says what would be set."""
        for hold in self._holds:
            self.said.append(f"queue {hold.queue}: {', '.join(hold.about())}")

    def begin(self) -> None:
        """Sets what has to be there before the first job."""
        self._begun = time.monotonic()
        for hold in self._holds:
            if hold.concurrency is not None and self._differs(hold.queue, "concurrency", hold.concurrency):
                hold.concurrency = None
            if hold.rate is not None and self._differs(hold.queue, "rate", hold.rate[0]):
                hold.rate = None
            if hold.pause is not None:
                self._requests.pause(queue=hold.queue, for_=f"{hold.pause}ms" if hold.pause else None)
            if hold.concurrency is not None:
                self._requests.settings_set({"concurrency": hold.concurrency}, queue=hold.queue)

    def end(self) -> None:
        """Sets the rates."""
        for hold in self._holds:
            if hold.rate is not None:
                most, period = hold.rate
                rate = {"rate": most, "rate-period": f"{period}ms", "burst": most}
                self._requests.settings_set(rate, queue=hold.queue)
            if hold.about():
                self.said.append(f"set: queue {hold.queue}: {', '.join(hold.about())}")

    def lifting(self) -> tuple[list[Command], list[Command]]:
        """The commands around a slice with jobs that are claimed for an instant: one script runs all of them,
        so that no worker claims between."""
        lift: list[Command] = []
        again: list[Command] = []
        gone = int((time.monotonic() - self._begun) * 1000)
        for hold in self._holds:
            where = [self.board, "QUEUE", hold.queue]
            left = (hold.pause or 0) - gone
            if hold.pause == 0 or hold.pause and left > 0:  # one that ends by itself ends when it would have
                lift.append(["JOB.RESUME", *where])
                again.append(["JOB.PAUSE", *where, *(["FOR", left] if hold.pause else [])])
            if hold.concurrency is not None:
                lift.append(["JOB.SETTINGS", "SET", *where, "concurrency", -1])
                again.append(["JOB.SETTINGS", "SET", *where, "concurrency", hold.concurrency])
        return lift, again

    def _differs(self, queue: str, name: str, wanted: int) -> bool:
        """Whether somebody has set something else: an import that was broken off has set the same."""
        found = self._requests.settings_get(name, queue=queue)[name]
        if found.source != "queue" or found.value == wanted:
            return False
        self.said.append(f"not set: {name} of queue {queue}, which has {found.value} on the board")
        return True

    def _merged(self, found: Iterable[Hold]) -> list[Hold]:
        """One for each queue of the board: several queues of the library may become one."""
        merged: dict[str, Hold] = {}
        for hold in found:
            if hold.queue not in merged:
                merged[hold.queue] = dataclasses.replace(hold)
                continue
            other = merged[hold.queue]
            pauses = [pause for pause in (hold.pause, other.pause) if pause is not None]
            other.pause = (0 if 0 in pauses else max(pauses)) if pauses else None
            for name in ("concurrency", "rate"):
                if getattr(hold, name) != getattr(other, name):
                    setattr(other, name, None)
                    self.said.append(f"not set: {name} of queue {hold.queue}: those of its queues differ")
        return [hold for hold in merged.values() if hold.about()]
