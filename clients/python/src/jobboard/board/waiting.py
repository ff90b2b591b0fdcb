"""Verbs that wait: for jobs to end, for a result, for work."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar

import redis

from .. import replies
from ..arguments import Name, counted
from ..errors import JobFailed
from ..jobs import ENDED, Job
from ..times import Duration, to_ms
from .family import Family, fields_words
from .operating import Operating
from .posting import Posting, PostOptions
from .reading import Reading
from .sending import Call, Request, Steps, steps
from .sharding import by_id, by_ids, composed, each, in_turns

if TYPE_CHECKING:
    from typing_extensions import Literal, Unpack

    from .sharded import ShardedVerbs

T = TypeVar("T")
RETAIN = "60s"
"""How long `call` lets the record stay for itself."""


def _until_all_or_any(board: ShardedVerbs, call: Call) -> Steps[Optional[list[Optional[Job]]]]:
    ids, parts = call["ids"], board.split(call["ids"])
    if call["until"] == "all" or len(parts) < 2:
        found: Optional[list[Optional[Job]]] = yield from by_ids()(board, call)
        return found

    def ask(shard: Any, numbers: list[int]) -> Callable[[timedelta], Steps[Any]]:
        return lambda turn: call.on(shard, ids=[ids[number] for number in numbers], within=turn)

    if (yield from in_turns([ask(*part) for part in parts], call.deadline)) is None:
        return None
    return (yield from Reading.get_many.of(board, ids, fields=call["fields"]))


def _what_is_waited_for(board: ShardedVerbs, call: Call) -> Steps[bool]:
    if call["what"] == "empty":
        return each(all)(board, call)
    asks = [lambda turn, shard=shard: call.on(shard, within=turn) for shard in board.requests()]
    return in_turns(asks, call.deadline)


class Waiting(Family):
    block: int
    """The longest wait of one command, ms: below the socket timeout. Longer ones are made of several."""

    @steps(_until_all_or_any)
    def wait(
        self,
        *ids: Name,
        within: Optional[Duration] = None,
        until: Literal["all", "any"] = "all",
        fields: Optional[Sequence[str]] = None,
    ) -> Steps[Optional[list[Optional[Job]]]]:
        """Waits until all of the jobs, or any, have ended; their records, None for one without.

        None when `within` has passed; without it, waits for ever. A record is there only when it is kept:
        post with `retain`, or let the handler give a result.
        """
        words = ["JOBS", len(ids), *ids, until.upper(), *fields_words(fields)]
        return (yield from self._wait(words, within, replies.list_of(replies.optional(self._job))))

    @steps(_what_is_waited_for)
    def wait_for(
        self,
        what: Literal["claimable", "present", "empty"],
        *,
        queues: Optional[Sequence[Name]] = None,
        within: Optional[Duration] = None,
    ) -> Steps[bool]:
        """Waits until something can be claimed, or the board has jobs that have not ended, or none.

        False when `within` has passed.
        """
        words = ["FOR", what, *([] if queues is None else counted("QUEUES", queues))]
        return bool((yield from self._wait(words, within, lambda reply: True)))

    @steps(by_id)
    def result(self, id: Name, *, within: Optional[Duration] = None) -> Steps[Any]:
        """Waits for a job and returns its result; None when it completed without one, or with one that is no
        longer kept (setting `retain-result`).

        Raises `JobFailed` when it did not complete, or when the board does not know it (state `unknown`);
        `TimeoutError` when `within` has passed.
        """
        fields = ["id", "state", "result", "kind", "message", "reason"]
        words = ["JOBS", 1, id, "ALL", *fields_words(fields)]
        found = yield from self._wait(words, within, replies.list_of(replies.optional(self._job)))
        if found is None:
            raise TimeoutError(f"{replies.text(id)} has not ended in time")
        [job] = found
        if job is None:
            return (yield from self._dropped(id))
        if job.state != "complete":
            raise JobFailed(job.id, job.state, job.message or job.reason or "", job)
        return job.result

    @steps(composed)
    def call(
        self,
        payload: Any = None,
        *,
        within: Optional[Duration] = None,
        together: Optional[str] = None,
        **options: Unpack[PostOptions],
    ) -> Steps[Any]:
        """Posts a job and waits for its result, as `result` does. A job that nobody did in time is
        cancelled.
        """
        if within is not None:
            to_ms(within, "within")  # raises before anything is posted
        if options.get("retain") is None:
            options["retain"] = RETAIN
        id: Any = yield from Posting.post.of(self, payload, together=together, **options)
        try:
            return (yield from Waiting.result.of(self, id, within=within))
        except TimeoutError as error:
            try:
                yield from Operating.cancel.of(self, id)
            except redis.RedisError as refusal:
                raise TimeoutError(f"{error}, and could not be cancelled: {refusal}") from refusal
            raise

    def _dropped(self, id: Name) -> Generator[Request[Any], Any, None]:
        """Returns when a job whose record was not kept is complete, else raises `JobFailed`."""
        try:
            found = yield from Reading.state.of(self, id)
        except redis.exceptions.NoPermissionError as error:
            text = "its record was not kept, and JOB.EXPLAIN, which knows how it ended, may not be asked"
            raise JobFailed(replies.text(id), "unknown", text) from error
        if found not in ENDED:
            raise JobFailed(replies.text(id), "unknown")
        if found != "complete":
            raise JobFailed(replies.text(id), found, "its record was not kept")

    def _wait(
        self, words: Sequence[Any], within: Optional[Duration], parse: Callable[[Any], T]
    ) -> Generator[Request[Any], Any, Optional[T]]:
        deadline = None if within is None else time.monotonic() + to_ms(within, "within") / 1000
        answer = replies.optional(parse)
        while True:
            left = self.block
            if deadline is not None:
                left = max(min(left, round((deadline - time.monotonic()) * 1000)), 0)
            # 0 would be for ever: the last look waits 1 ms
            found: Optional[T] = yield self._request("JOB.WAIT", [max(left, 1), *words], answer)
            if found is not None or (deadline is not None and time.monotonic() >= deadline):
                return found
