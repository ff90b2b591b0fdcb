"""Follows a board and hands over each job that has ended, at least once.

It asks for what has changed since the revision that it has handed over (`JOB.LIST SINCE`), again and again,
and notes how far it is in the store itself, in the same step as the jobs. So it goes on where it was, also
after it was killed; what was handed over and not yet noted comes again, under the same id and version.

A record has to be kept until it was handed over: `retain-complete` of the board says how long complete ones
are.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ..board import Board
from ..jobs import ENDED, Job
from .stores import Store

SLICE = 500


class Archive:
    def __init__(self, board: Board, store: Store, told: Callable[[int], None] = lambda n: None) -> None:
        self.board, self.store, self.told = board, store, told
        self.done = 0
        self.missed = False
        """The board had forgotten what has gone since the last time: some ends may not have been seen."""

    def run(self, *, follow: bool, every: float = 1.0, stop: Callable[[], bool] = lambda: False) -> int:
        """Stores all jobs that have ended. With `follow` it keeps polling until `stop` returns true."""
        while True:
            self._pass()
            if not follow or stop():
                return self.done
            time.sleep(every)

    def _pass(self) -> None:
        since, cursor, revision = self.store.revision(), "0", None
        while True:
            page = self.board.list_changed(since, cursor=cursor, count=SLICE)
            if revision is None:
                revision = page.revision
                if revision < since:  # the board of this name was made anew
                    since, revision = 0, None
                    continue
                self.missed = self.missed or (since > 0 and page.gone is None)
            ended = [job for job in page.jobs if job.state in ENDED]
            last = page.cursor == "0"
            self.store.add(list(map(row, ended)), revision if last else None)
            self.done += len(ended)
            self.told(self.done)
            if last:
                return
            cursor = page.cursor


def row(job: Job) -> dict[str, Any]:
    """A job as it is kept: columns for what people look for, and the whole record."""
    record = job.as_dict()
    columns = "id version state name queue kind message posted claimed ended".split()
    return {**{name: record.get(name) for name in columns}, "record": record}
