"""Verbs of workers: the ends of work. `Worker` uses them; most programs need not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from .. import replies
from ..arguments import (
    MOST,
    Encoder,
    Name,
    choice,
    duration,
    encode_options,
    flag,
    named,
    names,
    pairs,
    plain,
    whole,
)
from ..arguments import costs as costs_words
from ..durations import Duration, to_ms
from ..errors import Refused
from .answers import Failure, failure, ids_of
from .keeping import Chunk, Costs, Keeping, Pause, chunk_words, spent_words, token_words, tokens_words
from .merging import joined
from .posting import ON_FAILURE, OPTIONS, Await, children_words
from .sending import Request, command
from .sharding import by_id, by_id_near, by_ids, each

if TYPE_CHECKING:
    from typing import Literal

    from typing_extensions import Unpack


class FailOptions(TypedDict, total=False):
    """Options of a failure. `retry` is the wait before the next try, `noretry`: there is none; then `retain`
    says how long the record is kept. `log` is a line for the history.
    """

    retry: Duration | None
    noretry: bool | None
    retain: Duration | None
    meta: Mapping[str, Any] | None
    log: str | None


class ConsumeManyOptions(TypedDict, total=False):
    """Options of a consume of many jobs. `result` is that of each, encoded."""

    result: Any
    retain: Duration | None
    force: bool | None
    next: Name | None
    name: Name | None
    delay: Duration | None
    priority: int | None
    after: Sequence[Name] | None
    onfailure: Literal["hold", "cancel", "fail", "run"] | None
    after_children: Literal["hold", "cancel", "fail", "run"] | bool | None
    strict: bool | None
    cost: int | None
    costs: Costs | None
    next_cost: int | None
    next_costs: Costs | None
    await_: Name | Sequence[Name] | Await | None
    meta: Mapping[str, Any] | None
    if_queue: Name | None


class ConsumeOptions(ConsumeManyOptions, total=False):
    """Options of a consume. `result` and `payload` are encoded."""

    payload: Any
    output: Chunk | None


CONSUME: dict[str, tuple[str, Encoder]] = {
    **{one: (one.upper(), plain) for one in "result payload".split()},
    **{one: (one.upper(), named) for one in "next name".split()},
    **{one: OPTIONS[one] for one in "priority retain delay strict await_".split()},
    "force": ("FORCE", flag),
    "onfailure": ("ONFAILURE", choice(*ON_FAILURE)),
    "after": ("AFTER", names),
    "output": ("OUTPUT", lambda word, value: chunk_words(value)),
    "meta": ("META", pairs),
    "if_queue": ("IF", lambda word, value: [word, *named("QUEUE", value)]),
    "cost": ("COST", whole(0, MOST)),
    "costs": ("COSTS", costs_words),
    "next_cost": ("NEXT-COST", whole(1, MOST, "next_cost")),
    "next_costs": ("NEXT-COSTS", costs_words),
}
FAIL: dict[str, tuple[str, Encoder]] = {
    "retry": ("RETRY", duration),
    "noretry": ("NORETRY", flag),
    "retain": OPTIONS["retain"],
    "meta": ("META", pairs),
    "log": ("LOG", plain),
}


class Working(Keeping):
    @command(by_id_near("after"))
    def consume(
        self, worker: Name, id: Name, token: int | None = None, **options: Unpack[ConsumeOptions]
    ) -> Request[str]:
        """Ends a job as complete, or with `next` sends it on; returns its state."""
        words = [worker, id, *token_words(token), *self._ending(options)]
        return self._request("JOB.CONSUME", words, replies.text)

    @command(by_ids("tokens", "results"))
    def mconsume(
        self,
        worker: Name,
        ids: Sequence[Name],
        tokens: Sequence[int] | None = None,
        results: Sequence[Any] | None = None,
        **options: Unpack[ConsumeManyOptions],
    ) -> Request[list[str | Refused]]:
        """Consumes many jobs, each with its result: for each its state, or what was `Refused`."""
        words: list[Any] = [worker, len(ids), *ids, *tokens_words(tokens)]
        if results is not None:
            words += ["RESULTS", len(results), *map(self._payload, results)]
        words += self._ending(options)
        return self._request("JOB.MCONSUME", words, replies.list_of(replies.or_refused(replies.text)))

    @command(each(joined))
    def mconsume_all(self, worker: Name, **options: Unpack[ConsumeManyOptions]) -> Request[list[str]]:
        """Consumes all that the worker holds; returns the ids."""
        return self._request("JOB.MCONSUME", [worker, "ALL", *self._ending(options)], ids_of)

    def _ending(self, options: ConsumeOptions | ConsumeManyOptions) -> list[Any]:
        """The words of a consume's options."""
        given: dict[str, Any] = {**options}
        for name in ("result", "payload"):
            if given.get(name) is not None:
                given[name] = self._payload(given[name])
        children = given.pop("after_children", None)
        words = encode_options(CONSUME, given)
        return words if children is None else [*words, *children_words("AFTER", children)]

    @command(by_id)
    def fail(
        self,
        worker: Name,
        id: Name,
        kind: str,
        message: str = "",
        token: int | None = None,
        *,
        payload: Any = None,
        cost: int | None = None,
        costs: Costs | None = None,
        pause: Pause | None = None,
        **options: Unpack[FailOptions],
    ) -> Request[Failure]:
        """Says that this try failed. The server cuts a message that is longer than `max-text`."""
        words: list[Any] = [worker, id, kind, message, *token_words(token), *encode_options(FAIL, options)]
        words += [] if payload is None else ["PAYLOAD", self._payload(payload)]
        words += spent_words(cost, costs, pause)
        return self._request("JOB.FAIL", words, failure)

    @command(by_ids("tokens"))
    def mfail(
        self,
        worker: Name,
        ids: Sequence[Name],
        kind: str,
        message: str = "",
        tokens: Sequence[int] | None = None,
        *,
        cost: int | None = None,
        costs: Costs | None = None,
        pause: Pause | None = None,
        **options: Unpack[FailOptions],
    ) -> Request[list[Failure | Refused]]:
        """Says that this try of many jobs failed: for each its `Failure`, or what was `Refused`."""
        words: list[Any] = [
            worker,
            kind,
            message,
            len(ids),
            *ids,
            *tokens_words(tokens),
            *encode_options(FAIL, options),
        ]
        words += spent_words(cost, costs, pause)
        return self._request("JOB.MFAIL", words, replies.list_of(replies.or_refused(failure)))

    @command(each(joined))
    def mfail_all(
        self,
        worker: Name,
        kind: str,
        message: str = "",
        *,
        cost: int | None = None,
        costs: Costs | None = None,
        pause: Pause | None = None,
        **options: Unpack[FailOptions],
    ) -> Request[list[str]]:
        """Says that the try of all that the worker holds failed; returns the ids."""
        words: list[Any] = [worker, kind, message, "ALL", *encode_options(FAIL, options)]
        words += spent_words(cost, costs, pause)
        return self._request("JOB.MFAIL", words, ids_of)

    @command(by_id)
    def abandon(
        self,
        worker: Name,
        id: Name,
        token: int | None = None,
        *,
        delay: Duration | None = None,
        reason: str | None = None,
        meta: Mapping[str, Any] | None = None,
        cost: int | None = None,
        costs: Costs | None = None,
        pause: Pause | None = None,
    ) -> Request[None]:
        """Gives a job back, at no cost."""
        words: list[Any] = [worker, id, *token_words(token), *_delay_reason(delay, reason, meta)]
        words += spent_words(cost, costs, pause)
        return self._request("JOB.ABANDON", words, replies.ok)

    @command(by_ids("tokens"))
    def mabandon(
        self,
        worker: Name,
        ids: Sequence[Name],
        tokens: Sequence[int] | None = None,
        *,
        delay: Duration | None = None,
        reason: str | None = None,
        meta: Mapping[str, Any] | None = None,
        cost: int | None = None,
        costs: Costs | None = None,
        pause: Pause | None = None,
    ) -> Request[list[str | Refused]]:
        """Gives many jobs back: for each `OK`, or what was `Refused`."""
        words: list[Any] = [
            worker,
            len(ids),
            *ids,
            *tokens_words(tokens),
            *_delay_reason(delay, reason, meta),
        ]
        words += spent_words(cost, costs, pause)
        return self._request("JOB.MABANDON", words, replies.list_of(replies.or_refused(replies.text)))

    @command(each(joined))
    def mabandon_all(
        self,
        worker: Name,
        *,
        delay: Duration | None = None,
        reason: str | None = None,
        meta: Mapping[str, Any] | None = None,
        cost: int | None = None,
        costs: Costs | None = None,
        pause: Pause | None = None,
    ) -> Request[list[str]]:
        """Gives back all that the worker holds; returns the ids."""
        words: list[Any] = [worker, "ALL", *_delay_reason(delay, reason, meta)]
        words += spent_words(cost, costs, pause)
        return self._request("JOB.MABANDON", words, ids_of)

    @command(by_id)
    def trash(
        self,
        worker: Name,
        id: Name,
        token: int | None = None,
        *,
        reason: str | None = None,
        meta: Mapping[str, Any] | None = None,
        cost: int | None = None,
        costs: Costs | None = None,
    ) -> Request[None]:
        """Puts a job aside for a person to look at."""
        words: list[Any] = [worker, id, *token_words(token), *_delay_reason(None, reason, meta)]
        words += spent_words(cost, costs)
        return self._request("JOB.TRASH", words, replies.ok)

    @command(by_ids("tokens"))
    def mtrash(
        self,
        worker: Name,
        ids: Sequence[Name],
        tokens: Sequence[int] | None = None,
        *,
        reason: str | None = None,
        meta: Mapping[str, Any] | None = None,
        cost: int | None = None,
        costs: Costs | None = None,
    ) -> Request[list[str | Refused]]:
        """Puts many jobs aside: for each `OK`, or what was `Refused`."""
        words: list[Any] = [worker, len(ids), *ids, *tokens_words(tokens), *_delay_reason(None, reason, meta)]
        words += spent_words(cost, costs)
        return self._request("JOB.MTRASH", words, replies.list_of(replies.or_refused(replies.text)))

    @command(each(joined))
    def mtrash_all(
        self,
        worker: Name,
        *,
        reason: str | None = None,
        meta: Mapping[str, Any] | None = None,
        cost: int | None = None,
        costs: Costs | None = None,
    ) -> Request[list[str]]:
        """Puts aside all that the worker holds; returns the ids."""
        words: list[Any] = [worker, "ALL", *_delay_reason(None, reason, meta)]
        words += spent_words(cost, costs)
        return self._request("JOB.MTRASH", words, ids_of)


def _delay_reason(delay: Duration | None, reason: str | None, meta: Mapping[str, Any] | None) -> list[Any]:
    words: list[Any] = [] if delay is None else ["DELAY", to_ms(delay, "delay")]
    words += [] if reason is None else ["REASON", reason]
    return words + (pairs("META", meta) if meta else [])
