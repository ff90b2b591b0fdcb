"""Claims, also over shards."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypedDict

from .. import replies
from ..arguments import (
    Encoder,
    Name,
    check_whole,
    choice,
    duration,
    encode_options,
    flag,
    names,
    plain,
    whole,
)
from ..durations import Duration, to_ms
from ..jobs import Job
from .family import Family
from .sending import Call, Request, Steps, command
from .sharding import INSTANT, TURN, by_id, in_turns

if TYPE_CHECKING:
    from typing import Literal

    from typing_extensions import Unpack

    from .sharded import ShardedVerbs

    Order = Literal["best", "listed", "rotate"]


class ClaimOptions(TypedDict, total=False):
    """Options of a claim. `queues=[]` is every queue. With `block`, a claim waits for `min` jobs, but at most
    `linger` after the first.
    """

    queues: Sequence[Name] | None
    order: Order | None
    count: int | None
    min: int | None
    linger: Duration | None
    lease: Duration | None
    block: Duration | None
    seen: int | None
    session: bool | None
    fields: Sequence[str] | None


ORDERS = ("best", "listed", "rotate")
CLAIM: dict[str, tuple[str, Encoder]] = {
    "queues": ("QUEUES", names),
    "order": ("ORDER", choice(*ORDERS)),
    "count": ("COUNT", whole(1, 2**31 - 1)),
    "min": ("MIN", whole(1, 2**31 - 1)),
    "linger": ("LINGER", duration),
    "lease": ("LEASE", duration),
    "block": ("BLOCK", duration),
    "seen": ("SEEN", plain),
    "session": ("SESSION", flag),
    "fields": ("FIELDS", names),
}


def claim_words(options: Mapping[str, Any]) -> list[Any]:
    return [*encode_options(CLAIM, options), "PACKED"]


def _where_there_is_work(board: ShardedVerbs, call: Call) -> Steps[list[Job]]:
    """From one shard that has jobs, beginning anywhere. `block` is for all of them together."""
    options = call["options"]
    if options.get("seen") is not None:
        raise ValueError("seen has no meaning over shards: each gives tokens of its own")
    block = None if options.get("block") is None else to_ms(options["block"], "block") / 1000
    if (options.get("min") or 1) > 1:
        return _a_batch(board, call, block)

    def ask(shard: Any) -> Callable[[timedelta], Steps[Any]]:
        return lambda turn: call.on(shard, options={**options, "block": None if block is None else turn})

    shards = random.sample(board.requests(), len(board.requests()))
    return in_turns([*map(ask, shards)], None if block == 0 else time.monotonic() + (block or 0))


def _a_batch(board: ShardedVerbs, call: Call, block: float | None) -> Steps[list[Job]]:
    """From as many shards as it takes. What it has claimed stays with it while it waits for the rest."""
    options = dict(call["options"])
    least, linger = options.pop("min"), options.pop("linger", None)
    count = check_whole(options.get("count") or 1, "count", 1)
    if check_whole(least, "min", 1) > count:
        raise ValueError("min must not be above count")
    shards, turn = random.sample(board.requests(), len(board.requests())), INSTANT
    found: list[Job] = []
    deadline = math.inf if block == 0 else time.monotonic() + (block or 0)
    lingers = math.inf if linger is None else to_ms(linger, "linger") / 1000
    while True:
        for shard in shards:
            left = timedelta(seconds=min(max(deadline - time.monotonic(), INSTANT), turn))
            words = {**options, "count": count - len(found), "block": None if block is None else left}
            got = yield from call.on(shard, options=words)
            if got and not found:
                deadline = min(deadline, time.monotonic() + lingers)
            found += got
            if len(found) >= least:
                return found
        if time.monotonic() >= deadline:
            return found
        turn = TURN


class Claiming(Family):
    @command(_where_there_is_work)
    def claim(self, worker: Name, **options: Unpack[ClaimOptions]) -> Request[list[Job]]:
        """Claims ready jobs; an empty list when there are none. Keep `block` below the socket timeout.

        Over shards, a claim with `min` keeps what it has got from one shard while it waits for more from the
        others: keep `linger` below the lease.
        """
        return self._request("JOB.CLAIM", [worker, *claim_words(options)], self._jobs)

    @command(by_id)
    def claim_id(
        self,
        worker: Name,
        id: Name,
        *,
        lease: Duration | None = None,
        session: bool = False,
        fields: Sequence[str] | None = None,
    ) -> Request[Job]:
        """Claims this job; raises `NoJob`, `Claimed`, `NotReady`, `Limit` or `Ended`."""
        options = claim_words({"lease": lease, "session": session, "fields": fields})
        parse = replies.list_of(self._job)
        return self._request("JOB.CLAIM", [worker, "ID", id, *options], lambda reply: parse(reply)[0])

    def _jobs(self, reply: Any) -> list[Job]:
        return [self._job(one) for one in replies.unpacked(reply) or ()]
