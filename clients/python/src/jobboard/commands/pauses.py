"""What of a board is paused: for who ends a pause, and may mean another one."""

from __future__ import annotations

import contextlib
import itertools
import shlex
from collections.abc import Iterable, Iterator
from typing import Any

import redis

from .common import AnyBoard, say

LOOKS = 1000
"""How many groups and limits are looked at."""
NAMED = 3

Pauses = dict[tuple[str, ...], int]
"""By the options that name what is paused, none for the board: until when."""


def pauses(board: AnyBoard) -> Pauses:
    """The pauses that the server tells of. While the board is paused, a queue has the later end of both."""
    info = board.info()
    if info is None:
        return {}
    of_board = info["paused"]
    found: Pauses = {(): of_board} if of_board else {}
    for row in queues_paused(info, board.queues()):
        found["--queue", row["queue"]] = row["paused"]
    for row in itertools.islice(board.groups(page=LOOKS), LOOKS):
        if row["paused"]:
            found["--queue", row["queue"], "--group", row["group"]] = row["paused"]
    for row in itertools.islice(board.limits(page=LOOKS), LOOKS):
        if row["paused"]:
            found["--limit", row["limit"]] = row["paused"]
    return found


def queues_paused(info: dict[str, Any], queues: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The queues with a pause that is not that of the board."""
    return [row for row in queues if row["paused"] and row["paused"] != info["paused"]]


def resume(name: str, scope: Iterable[str] = ()) -> str:
    """The command that ends a pause."""
    return shlex.join(["jobboard", "resume", name, *scope])


@contextlib.contextmanager
def saying_what_stays(board: AnyBoard, name: str, scope: tuple[str, ...]) -> Iterator[None]:
    """Around a resume: a word when there was no such pause, or another one goes on; as far as the user may
    ask.
    """
    before: Pauses | None = None
    with contextlib.suppress(redis.ResponseError):
        before = pauses(board) if board.info() is not None else None
    yield
    if before is None:
        return
    with contextlib.suppress(redis.ResponseError):
        left = pauses(board)
        is_told = scope in before or bool(scope) and () in before or scope[2:3] == ("--group",)
        if not is_told and (scope[:1] != ("--queue",) or board.count(queue=scope[1])):
            say(f"{of(scope)} was not paused")
        for what in [*left][:NAMED]:
            say(f"{of(what)} is paused: `{resume(name, what)}` ends that")
        if len(left) > NAMED:
            say(f"and {len(left) - NAMED} more: `{shlex.join(['jobboard', 'queues', name])}`")


def of(scope: tuple[str, ...]) -> str:
    """What these options name."""
    words: Any = zip(scope[::2], scope[1::2])
    return ", ".join(f"{option[2:]} {name!r}" for option, name in words) or "the board"
