"""Verbs that wait: for jobs to end, for a result, for work."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import redis

from .. import replies
from ..arguments import Name, counted
from ..durations import Duration, to_ms
from ..errors import JobFailed, JobUnknown, NoResult, ResultDropped
from ..jobs import ENDED, Job
from .family import Family, record_words
from .operating import Operating
from .posting import Posting, PostOptions
from .reading import Reading
from .sending import Call, Page, Pages, Request, Steps, pages, steps
from .sharding import by_id, by_ids, composed, each, in_turns

if TYPE_CHECKING:
    from typing import Literal

    from typing_extensions import Unpack

    from .sharded import ShardedVerbs

T = TypeVar("T")


def _why(job: Job) -> str:
    """Why a job did not complete: class and message of its failure, or the reason that was given."""
    failure = ": ".join(one for one in (job.kind, job.message) if one)
    found = failure or job.reason if job.state == "failed" else job.reason or failure
    return found if found and found != job.state else ""


class OutputChunk(NamedTuple):
    """What a worker wrote at once."""

    data: bytes
    attempt: int
    """The run that wrote it."""
    anew: bool
    """It is the first of its run: what was read before is over."""
    missed: int
    """How many chunks before it are no longer there."""
    next: int
    """The `since` of the call that reads what follows it."""

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


def _chunks(found: Mapping[str, Any]) -> list[OutputChunk]:
    chunks = [replies.data(chunk) for chunk in found["chunks"]]
    anew, missed, begin = bool(found["anew"]), found["missed"], found["next"] - len(chunks)
    return [
        OutputChunk(data, found["attempt"], anew and at == 0, missed if at == 0 else 0, begin + at + 1)
        for at, data in enumerate(chunks)
    ]


RENEWED = ("version", "modified", "deadline", "until")
"""What a heartbeat changes of a job that runs on as before."""
STANDS = {
    "ready": "it is ready, and no worker has claimed it",
    "claimed": "it is claimed: a worker is at it",
    "scheduled": "it is scheduled: its time has not come",
    "blocked": "it is blocked: it waits for other jobs or for signals",
}
"""What a job does that has not ended, by its state."""
RETAIN = "60s"
"""How long `call` lets the record stay for itself."""


def _until_all_or_any(board: ShardedVerbs, call: Call) -> Steps[list[Job | None] | None]:
    ids, parts = call["ids"], board.split(call["ids"])
    if call["until"] == "all" or len(parts) < 2:
        found: list[Job | None] | None = yield from by_ids()(board, call)
        return found

    def ask(shard: Any, numbers: list[int]) -> Callable[[timedelta], Steps[Any]]:
        return lambda turn: call.on(shard, ids=[ids[number] for number in numbers], timeout=turn)

    if (yield from in_turns([ask(*part) for part in parts], call.deadline)) is None:
        return None
    return (yield from Reading.get_many.of(board, ids, fields=call["fields"]))


def _what_is_waited_for(board: ShardedVerbs, call: Call) -> Steps[bool]:
    if call["what"] == "empty":
        return each(all)(board, call)
    asks = [lambda turn, shard=shard: call.on(shard, timeout=turn) for shard in board.requests()]
    return in_turns(asks, call.deadline)


class Waiting(Family):
    block: int
    """The longest wait of one command, ms: below the socket timeout. Longer ones are made of several."""

    @steps(_until_all_or_any)
    def wait(
        self,
        *ids: Name,
        timeout: Duration | None = None,
        until: Literal["all", "any"] = "all",
        fields: Sequence[str] | None = None,
    ) -> Steps[list[Job | None] | None]:
        """Waits until all of the jobs, or any, have ended; their records, None for one without.

        None when `timeout` has passed; without it, waits for ever. A record is there only when it is kept:
        post with `retain`, or let the handler give a result.
        """
        words = ["JOBS", len(ids), *ids, until.upper(), *record_words(fields)]
        return (yield from self._wait(words, timeout, replies.list_of(replies.optional(self._job))))

    @steps(_what_is_waited_for)
    def wait_for(
        self,
        what: Literal["claimable", "present", "empty"],
        *,
        queues: Sequence[Name] | None = None,
        timeout: Duration | None = None,
    ) -> Steps[bool]:
        """Waits until something can be claimed, or the board has jobs that have not ended, or none.

        False when `timeout` has passed.
        """
        words = ["FOR", what, *([] if queues is None else counted("QUEUES", queues))]
        return bool((yield from self._wait(words, timeout, lambda reply: True)))

    @steps(by_id)
    def result(self, id: Name, *, timeout: Duration | None = None) -> Steps[Any]:
        """Waits for a job and returns its result; None when it completed without one.

        Raises `JobFailed` when it did not complete, `ResultDropped` when it did and its record is not kept,
        `JobUnknown` when the board does not know it, and `TimeoutError` when `timeout` has passed. All but
        the last are `NoResult`.
        """
        fields = ["id", "state", "result", "kind", "message", "reason"]
        words = ["JOBS", 1, id, "ALL", *record_words(fields)]
        found = yield from self._wait(words, timeout, replies.list_of(replies.optional(self._job)))
        if found is None:
            raise (yield from self._not_ended(id))
        [job] = found
        if job is None:
            raise (yield from self._without_record(id))
        if job.state != "complete":
            raise JobFailed(job.id, job.state, _why(job), job)
        return job.result

    @pages(by_id)
    def watch(
        self, id: Name, *, timeout: Duration | None = None, fields: Sequence[str] | None = None
    ) -> Pages[Job]:
        """Walks over what becomes of a job: its record now, and each time that it has changed, until it has
        ended. With `fields`, as in `get`, each time that one of these or the state has changed; id, state and
        version are always there. What a heartbeat renews (`deadline`, `until`, `modified`, `version`) counts
        only where `fields` names it.

        Of changes that follow each other at once it may show the last alone. A record that is dropped with
        the job's end is shown with id and state. Raises `JobUnknown` when the board does not know the job,
        and `TimeoutError` when `timeout` has passed. It holds a connection while it waits.
        """
        renewed = {name.encode() for name in RENEWED if name not in (fields or ())}
        if fields is not None:
            fields = [*dict.fromkeys(["id", "state", "version", *fields])]
        before: Any = None
        version, answer = 0, replies.list_of(replies.optional(self._job))
        deadline = None if timeout is None else time.monotonic() + to_ms(timeout, "timeout") / 1000
        while True:
            words = ["JOBS", 1, id, "CHANGED", version, *record_words(fields)]
            left = None if deadline is None else timedelta(seconds=max(deadline - time.monotonic(), 0))
            found = yield from self._wait(words, left, answer)
            if found is None:
                raise TimeoutError(f"{replies.text(id)} has not ended in time")
            [job] = found
            if job is None:
                ended = yield from self._without_record(id)
                if isinstance(ended, JobUnknown):
                    raise ended
                job = Job({b"id": replies.data(ended.id), b"state": ended.state.encode()})
            now = {name: value for name, value in job._raw.items() if name not in renewed}
            if now != before or job.is_ended:
                yield Page("0", [job])
            before = now
            if job.is_ended:
                return
            version = job.version

    @pages(by_id)
    def output(
        self,
        id: Name,
        *,
        since: int = 0,
        follow: bool = True,
        timeout: Duration | None = None,
    ) -> Pages[OutputChunk]:
        """Walks over what the worker of a job writes with `context.output`, as it comes, until the job has
        ended; with `follow=False` over what is there. `since`: the `next` of the last chunk that was read.

        Raises `JobUnknown` when the board does not know the job, and `TimeoutError` when `timeout` has
        passed. It holds a connection while it waits.
        """
        deadline = None if timeout is None else time.monotonic() + to_ms(timeout, "timeout") / 1000
        while True:
            left = self.block
            if deadline is not None:
                left = max(min(left, round((deadline - time.monotonic()) * 1000)), 1)
            words = [id, "SINCE", since, *(["BLOCK", left] if follow else [])]
            found = yield from self._told(words)
            if found is None and follow:
                # A wait may end where a board was whose slot moves: who does not wait is sent after it.
                found = yield from self._told(words[:3])
            if found is None:
                raise JobUnknown(replies.text(id), "unknown")
            chunks = _chunks(found)
            since = found["next"]
            yield Page("0", chunks)
            if not chunks and (found["state"] in ENDED or not follow):
                return
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"{replies.text(id)} has not ended in time")

    @steps(composed)
    def call(
        self,
        payload: Any = None,
        *,
        within: Duration | None = None,
        together: str | None = None,
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
            return (yield from Waiting.result.of(self, id, timeout=within))
        except TimeoutError as error:
            try:
                yield from Operating.cancel.of(self, id)
            except redis.RedisError as refusal:
                raise TimeoutError(f"{error}, and could not be cancelled: {refusal}") from refusal
            raise

    def _told(self, words: Sequence[Any]) -> Steps[dict[str, Any] | None]:
        """One answer of JOB.OUTPUT."""
        found: dict[str, Any] | None
        found = yield self._request("JOB.OUTPUT", [*words], replies.optional(replies.mapping()))
        return found

    def _not_ended(self, id: Name) -> Steps[TimeoutError]:
        """Says where the job is instead: nobody may work there."""
        text = f"{replies.text(id)} has not ended in time"
        try:
            job = yield from Reading.get.of(self, id, fields=["state"])
        except redis.RedisError:
            return TimeoutError(text)
        return TimeoutError(text if job is None else f"{text}: {STANDS.get(job.state, f'it is {job.state}')}")

    def _without_record(self, id: Name) -> Steps[NoResult]:
        """What a job has come to whose record was not kept."""
        name, dropped = replies.text(id), "its record was not kept"
        try:
            found = yield from Reading.state.of(self, id)
        except redis.exceptions.NoPermissionError:
            text = f"{dropped}, and JOB.EXPLAIN, which knows how it ended, may not be asked"
            return JobUnknown(name, "unknown", text)
        if found not in ENDED:
            return JobUnknown(name, "unknown")
        return (ResultDropped if found == "complete" else JobFailed)(name, found, dropped)

    def _wait(
        self, words: Sequence[Any], timeout: Duration | None, parse: Callable[[Any], T]
    ) -> Generator[Request[Any], Any, T | None]:
        deadline = None if timeout is None else time.monotonic() + to_ms(timeout, "timeout") / 1000
        answer = replies.optional(parse)
        while True:
            left = self.block
            if deadline is not None:
                left = max(min(left, round((deadline - time.monotonic()) * 1000)), 0)
            # 0 would be for ever: the last look waits 1 ms
            found: T | None = yield self._request("JOB.WAIT", [max(left, 1), *words], answer)
            if found is not None or (deadline is not None and time.monotonic() >= deadline):
                return found
