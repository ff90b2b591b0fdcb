"""What a verb does on a board of several shards. A family has its own for what one verb alone needs."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ..arguments import Name
from . import merging
from .family import Slice
from .sending import Call, Page, Pages, Spread, Steps, gathered

if TYPE_CHECKING:
    from .sharded import ShardedVerbs

INSTANT, TURN = 0.001, 0.1
"""How long one shard is waited for, s, when any of several will do: at first, and then."""


def tag_of(name: Name) -> bytes:
    """What of an id decides its shard. The jobs of a schedule, `@id@n`, live where the schedule does."""
    id = name if isinstance(name, bytes) else name.encode("utf-8", "surrogateescape")
    if id.startswith(b"@") and (end := id.rfind(b"@")) > 1:  # else it is a unique key or a user, such as @ann
        id = id[1:end]
    start = id.find(b"{")
    end = id.find(b"}", start + 2)
    return id[start + 1 : end] if 0 <= start < end else id


def composed(board: ShardedVerbs, call: Call) -> Steps[Any]:
    """Made of other verbs, each of which knows its shards."""
    return call.on(board)


def first(board: ShardedVerbs, call: Call) -> Steps[Any]:
    """By the first shard: all of them would answer the same."""
    return call.on(board.requests()[0])


def by_id(board: ShardedVerbs, call: Call) -> Generator[Any, Any, Any]:
    """In the shard of `id`."""
    return call.on(board.shard_of(call["id"]))


def by_id_near(*names: str) -> Spread:
    """In the shard of `id`, when those that the arguments of these names, or options, name live there too."""

    def spread(board: ShardedVerbs, call: Call) -> Generator[Any, Any, Any]:
        for name in names:
            others = call["options"].get(name) if name not in call.bound.arguments else call[name]
            if isinstance(others, Sequence) and not isinstance(others, (str, bytes)):
                board.check_near(call["id"], [one for one in others if isinstance(one, (str, bytes))])
        return call.on(board.shard_of(call["id"]))

    return spread


def by_ids(*along: str) -> Spread:
    """Each of `ids` in its shard, the answers in their order. `along` names lists with an item for each id.

    None as soon as a shard answers None: its timeout has passed.
    """

    def spread(board: ShardedVerbs, call: Call) -> Steps[list[Any] | None]:
        lists = {name: call[name] for name in ("ids", *along) if call[name] is not None}
        if len(set(map(len, lists.values()))) > 1:
            raise ValueError(f"{' and '.join(lists)} must be of one length")
        found: list[Any] = [None] * len(call["ids"])
        for shard, numbers in board.split(call["ids"]):
            own = {name: [values[number] for number in numbers] for name, values in lists.items()}
            answers = yield from call.on(shard, **own)
            if answers is None:
                return None
            for number, answer in zip(numbers, answers):
                found[number] = answer
        return found

    return spread


def by_ids_summed(board: ShardedVerbs, call: Call) -> Steps[Slice[Any]]:
    """Each of `ids` in its shard; what was done there, added up."""
    whole: Slice[Any] = Slice(0)
    for shard, numbers in board.split(call["ids"]):
        whole.add((yield from call.on(shard, ids=[call["ids"][number] for number in numbers])))
    return whole


def each(merge: Callable[[list[Any]], Any]) -> Spread:
    """In all shards, one after the other; `merge` makes their answers one."""

    def spread(board: ShardedVerbs, call: Call) -> Steps[Any]:
        found = []
        for shard in board.requests():
            found.append((yield from call.on(shard)))
        return merge(found)

    return spread


def each_slices(board: ShardedVerbs, call: Call) -> Steps[Slice[Any]]:
    """Adds up the slices of all shards, and calls `progress` with the sum so far."""
    whole: Slice[Any] = Slice(0)
    progress = call["progress"]
    for shard in board.requests():
        told = progress and (lambda count: progress(whole.count + count))
        whole.add((yield from call.on(shard, progress=told)))
    return whole


def each_page(board: ShardedVerbs, call: Call) -> Pages[Any]:
    """The pages of all shards, one shard after the other."""
    for shard in board.requests():
        yield from call.on(shard)


def each_page_merged(merge: Callable[[list[Any]], list[Any]]) -> Spread:
    """All that the pages of all shards have, as one page; `merge` makes one list of theirs."""

    def spread(board: ShardedVerbs, call: Call) -> Pages[Any]:
        found = []
        for shard in board.requests():
            found.append((yield from gathered(call.on(shard))))
        yield Page("0", merge(found))

    return spread


def each_queue(board: ShardedVerbs, call: Call) -> Steps[list[merging.Row]]:
    """The queues of all shards, in the order asked for: sorted and cut once they are added up, because the
    first of a shard need not be the first of all.
    """
    found = []
    for shard in board.requests():
        found.append((yield from call.on(shard, count=None)))
    rows = merging.rows("queue")(found)
    if (by := call["by"]) is not None:
        rows.sort(key=lambda row: -row[by.lower()])
    return rows[: call["count"]]


def by_cursor(board: ShardedVerbs, call: Call) -> Steps[Page[Any]]:
    """A page of the shard that the cursor names, `shard:cursor`; behind its last one comes the next shard."""
    number, _, cursor = str(call["cursor"]).rpartition(":")
    at = int(number or 0)
    page: Page[Any] = yield from call.on(board.requests()[at], cursor=cursor)
    if page.cursor != "0" or at + 1 < len(board.requests()):
        page.cursor = f"{at}:{page.cursor}" if page.cursor != "0" else f"{at + 1}:0"
    return page


def unshardable(why: str) -> Spread:
    """Not at all: it says why."""

    def spread(board: ShardedVerbs, call: Call) -> Steps[Any]:
        name = call.verb.build.__name__
        raise TypeError(f"{name} has no meaning over shards, {why}: call it on one of `boards`")

    return spread


def in_turns(asks: Sequence[Callable[[timedelta], Steps[Any]]], deadline: float | None) -> Steps[Any]:
    """Asks shard after shard until one has an answer: each for an INSTANT, then each for a TURN. At the
    deadline it returns what the last one said.
    """
    turn = INSTANT
    while True:
        for ask in asks:
            left = turn if deadline is None else min(max(deadline - time.monotonic(), INSTANT), turn)
            found = yield from ask(timedelta(seconds=left))
            if found:
                return found
        if deadline is not None and time.monotonic() >= deadline:
            return found
        turn = TURN
