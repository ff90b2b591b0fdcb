"""Follows a board and hands over each job that has ended, at least once.

It asks for what has changed since the revision that it has handed over (`JOB.LIST SINCE`), again and again,
and notes how far it is in the store itself, in the same step as the jobs. So it continues where it was, also
after it was killed. What it handed over and did not note yet, it hands over again, under the same id and
version.

Revisions are those of one board: the store notes with them when it was created, and another board of the name
is handed over from its beginning.

A record has to be kept until it was handed over: `retain-complete` of the board says how long complete ones
are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
        self.anew = False
        """It is another board than that of the last time."""

    def look(self) -> None:
        """Stores what has ended since the last look."""
        while (created := self._created()) is not None and not self._pass(created):
            continue

    def _created(self) -> int | None:
        """When the board was created that is there now."""
        found = self.board.info()
        return None if found is None else int(found["created"])

    def _pass(self, created: int) -> bool:
        """Whether all pages were of that board."""
        known = self.store.revisions()
        self.anew = self.anew or bool(known and created not in known)
        since, cursor, revision = known.get(created, 0), "0", None
        while True:
            page = self.board.list_changed(since, cursor=cursor, count=SLICE)
            if revision is None:
                revision = page.revision
                if revision < since:  # the board lost changes: a restart, or a restored copy
                    since, revision = 0, None
                    continue
                self.missed = self.missed or (since > 0 and page.gone is None)
            ended = [job for job in page.jobs if job.state in ENDED]
            whole = page.cursor == "0" and self._created() == created
            self.store.add(created, list(map(row, ended)), revision if whole else None)
            self.done += len(ended)
            self.told(self.done)
            if page.cursor == "0":
                return whole
            cursor = page.cursor


def follow(archives: Sequence[Archive], *, every: float | None, ended: Callable[[float], bool]) -> None:
    """Archives what has ended: once, or again every `every` seconds. `ended` waits for these seconds, or
    until a signal comes, and returns True when the program is to end.
    """
    while True:
        for one in archives:
            one.look()
        if every is None or ended(every):
            return


def row(job: Job) -> dict[str, Any]:
    """A job as it is kept: columns for what people look for, and the whole record."""
    record = job.as_dict()
    columns = "id version state name queue kind message posted claimed ended".split()
    return {**{name: record.get(name) for name in columns}, "record": record}
