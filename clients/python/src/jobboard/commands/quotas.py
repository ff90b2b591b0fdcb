"""Where a board, a queue or a group is as full as its settings allow: posts above that are refused."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator
from typing import Any, NamedTuple

import redis

from ..board import Board
from .common import AnyBoard

LIVE = "scheduled blocked ready claimed".split()
NEARLY = 0.95
"""From this part of a limit of bytes on the next record may be too large."""
QUEUES = 100
"""How many queues are asked for their limits: those with most jobs that have not ended, and most bytes."""
GROUPS = 1000
"""How many groups are looked at."""


class Full(NamedTuple):
    """`setting` allows `most` where there are `have`: of the board, or of a queue or a group."""

    setting: str
    have: int
    most: int
    queue: str | None = None
    group: str | None = None

    @property
    def text(self) -> str:
        has = {"max-jobs": "jobs that have not ended", "max-bytes": "bytes of records"}
        return f"{self.have} {has.get(self.setting, self.setting[4:])}, {self.setting} is {self.most}"

    @property
    def where(self) -> str:
        """As findings and tables name it."""
        if self.queue is None:
            return "the board"
        return f"queue {self.queue}" + (f", group {self.group}" if self.group is not None else "")

    def command(self, board: str) -> str:
        """What raises it."""
        scope = [] if self.queue is None else ["--queue", self.queue]
        scope += [] if self.group is None else ["--group", self.group]
        return shlex.join(["jobboard", "settings", board, f"{self.setting}=N", *scope])


def full(board: AnyBoard, info: dict[str, Any], queues: list[dict[str, Any]]) -> list[Full]:
    """All that is full, as far as the user may ask. Of a sharded board each shard has its own limits."""
    if not isinstance(board, Board):
        found = [one for shard in board.boards for one in full(shard, shard.info() or {}, shard.queues())]
        return [*dict.fromkeys(found)]
    try:
        return [*of_board(board, info), *_of_queues(board, queues), *_of_groups(board)]
    except redis.exceptions.NoPermissionError:
        return []


def _live(row: dict[str, Any]) -> int:
    return sum(row[state] for state in LIVE)


def of_board(board: Board, info: dict[str, Any]) -> Iterator[Full]:
    """The limits of the whole board: one command."""
    if not info:
        return
    have = {
        "max-jobs": _live(info),
        "max-bytes": info["record-bytes"],
        "max-queues": info["queues"],
        "max-schedules": info["schedules"],
    }
    yield from _reached(board, have)


def _of_queues(board: Board, queues: list[dict[str, Any]]) -> Iterator[Full]:
    by_jobs = sorted(queues, key=_live, reverse=True)[:QUEUES]
    by_bytes = sorted(queues, key=lambda row: row["record-bytes"], reverse=True)[:QUEUES]
    for row in {row["queue"]: row for row in by_jobs + by_bytes}.values():
        have = {"max-jobs": _live(row), "max-bytes": row["record-bytes"]}
        yield from _reached(board, have, row["queue"])


def _of_groups(board: Board) -> Iterator[Full]:
    for row in itertools.islice(board.groups(page=GROUPS), GROUPS):
        if _is_reached("max-jobs", _live(row), row["max-jobs"]):
            yield Full("max-jobs", _live(row), row["max-jobs"], row["queue"], row["group"])


def _reached(board: Board, have: dict[str, int], queue: str | None = None) -> Iterator[Full]:
    for name, setting in board.settings_get(*have, queue=queue).items():
        if _is_reached(name, have[name], setting.value):
            yield Full(name, have[name], setting.value, queue)


def _is_reached(name: str, have: int, most: int) -> bool:
    return most >= 0 and have >= (most * NEARLY if name == "max-bytes" else most)
