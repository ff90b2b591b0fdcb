"""Names that may be written wrong: of boards and queues that are not there."""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import redis

from ..replies import text as text_of
from .common import AnyBoard, say

TYPE = "jobboard1"
"""What TYPE says of a board."""
LOOKS = 20
"""How many commands look for boards of a like name: a server may have millions of other keys."""


def say_if_missing(board: AnyBoard, queues: Collection[str] = ()) -> None:
    """A word on a board that has nothing to show or to change because it, or these queues, are not there."""
    if said := unknown(board, queues, has="has"):
        say(said)


@contextlib.contextmanager
def saying_if_unknown(
    board: AnyBoard, queue: str | None = None, *, makes: Collection[str] = ()
) -> Iterator[None]:
    """Around a change: a word when it was of a board that did not exist, or of a queue without jobs. `makes`:
    what the command rightly makes, a `board` or a `queue`: that is said only where a name is near."""
    said = unknown(board, () if queue is None else (queue,), has="had", makes=makes)
    yield
    if said:
        say(said)


def unknown(board: AnyBoard, queues: Collection[str], *, has: str, makes: Collection[str] = ()) -> str:
    """What is not there, as far as the user may ask; or nothing."""
    key = text_of(board.key)
    with contextlib.suppress(redis.ResponseError):
        if board.info() is None:
            near = nearest(key, boards_of(board.client), is_new="board" in makes)
            if near or "board" not in makes:
                end = near or ": `jobboard boards` lists those that it has"
                return f"this server {has} no board {key!r}{end}"
            return ""
        for queue in queues:
            if not board.count(queue=queue):
                is_new = "queue" in makes
                near = nearest(queue, [row["queue"] for row in board.queues()], is_new=is_new)
                return f"queue {queue!r} of {key} has no jobs{near}" if near or not is_new else ""
    return ""


def boards_of(client: Any) -> Iterator[str]:
    """Boards of the server, in no order; all where it has few keys."""
    if isinstance(client, redis.RedisCluster):
        return
    cursor = 0
    for _ in range(LOOKS):
        try:
            cursor, keys = client.scan(cursor, count=1000, _type=TYPE)
        except redis.exceptions.NoPermissionError:
            return
        yield from map(text_of, keys)
        if not cursor:
            return


def nearest(name: str, known: Iterable[str], *, is_new: bool = False) -> str:
    """The end of a sentence: the known name that may be meant. A new name that differs from a known one by a
    number alone is no mistake."""
    alike = [one for one in known if one != name]
    if is_new and any(without_numbers(one) == without_numbers(name) for one in alike):
        return ""
    found = difflib.get_close_matches(name, alike, 1)
    return f"; did you mean {found[0]!r}?" if found else ""


def without_numbers(name: str) -> str:
    return re.sub(r"[-_.:]?\d+", "", name)
