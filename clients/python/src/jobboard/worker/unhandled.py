"""Jobs that a worker has no handler for: it gives them back, for those that have one."""

from __future__ import annotations

import logging
import random

log = logging.getLogger("jobboard.worker")

FIRST, MOST = 1.0, 30.0
NAMES = 10_000
"""Names and queues that are remembered: who may post makes up as many as they like."""


class UnhandledJobs:
    """How long such a job waits before it is ready again: from 1 s to 30 s, longer each time that its name
    and queue come, with half of it at random. So a worker that knows them has it soon during a deploy, and
    where none does nobody is kept busy. The log tells of each name and queue once.
    """

    def __init__(self) -> None:
        self._next: dict[str, float] = {}

    def wait(self, what: str) -> float:
        """Seconds."""
        if what not in self._next:
            log.warning(
                "%s: such jobs go back to their queue, at no cost, for a worker that has one; "
                "is its module imported here?",
                what,
            )
            if len(self._next) >= NAMES:
                del self._next[next(iter(self._next))]
        now = self._next.get(what, FIRST)
        self._next[what] = min(now * 2, MOST)
        return now * random.uniform(0.5, 1.0)
