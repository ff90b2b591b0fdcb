"""Verbs of workers: heartbeats, and the ends of work. `Worker` uses them; most programs need not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from .. import replies
from ..arguments import (
    MOST,
    Encoder,
    Name,
    check_whole,
    choice,
    counted,
    duration,
    encode_options,
    flag,
    named,
    names,
    pairs,
    plain,
    whole,
)
from ..arguments import (
    costs as costs_words,
)
from ..durations import Duration, to_ms
from ..errors import Refused
from .answers import (
    Beat,
    Failure,
    HeldBeat,
    Stored,
    Waited,
    beat,
    failure,
    held_beat,
    ids_of,
    kept_beat,
    waited,
)
from .claiming import Claiming
from .merging import joined
from .posting import ON_FAILURE, OPTIONS, Await, await_words, children_words
from .sending import Request, command
from .sharding import by_id, by_ids, each

if TYPE_CHECKING:
    from typing import Literal

    from typing_extensions import Unpack

    Order = Literal["best", "listed", "rotate"]


Costs = Mapping[Name, int]
"""Limits and how many permits each costs."""
Pause = tuple[Name, Duration]
"""A shared limit of the job, and how long nothing is claimed that counts against it."""
Chunk = tuple[int, "str | bytes"]
"""A chunk of output: its number in this run, from 1, and what it says."""


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
    "output": ("OUTPUT", lambda word, value: _chunk(value)),
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


def _chunk(output: Chunk | None) -> list[Any]:
    return [] if output is None else ["OUTPUT", check_whole(output[0], "the number of output", 1), output[1]]


class Working(Claiming):
    @command(by_id)
    def heartbeat(
        self,
        worker: Name,
        id: Name,
        token: int | None = None,
        *,
        lease: Duration | None = None,
        progress: float | None = None,
        stage: str | None = None,
        payload: Any = None,
        meta: Mapping[str, Any] | None = None,
        log: str | None = None,
        output: Chunk | None = None,
        cost: int | None = None,
        costs: Costs | None = None,
        pause: Pause | None = None,
    ) -> Request[Beat]:
        """Keeps a claim alive, and says how far the work is. Raises `Stale`, `NotOwner` … when it is lost."""
        words: list[Any] = [worker, id, *_token(token)]
        words += [] if lease is None else ["LEASE", to_ms(lease, "lease")]
        words += [] if progress is None else ["PROGRESS", progress]
        words += [] if stage is None else ["STAGE", stage]
        words += [] if payload is None else ["PAYLOAD", self._payload(payload)]
        words += pairs("META", meta) if meta else []
        words += [] if log is None else ["LOG", log]
        words += _chunk(output)
        words += _spend(cost, costs, pause)
        return self._request("JOB.HEARTBEAT", words, kept_beat)

    @command(by_id)
    def step(
        self,
        worker: Name,
        id: Name,
        name: Name,
        value: Any,
        token: int | None = None,
        *,
        lease: Duration | None = None,
        replace: bool = False,
        output: Chunk | None = None,
        cost: int | None = None,
        costs: Costs | None = None,
    ) -> Request[Stored]:
        """Stores what a step of the work came to, and keeps the claim alive. The first value wins, unless
        `replace` is set: the answer has the one that counts.
        """
        words: list[Any] = [worker, id, name, self._payload(value), *_token(token)]
        words += [] if lease is None else ["LEASE", to_ms(lease, "lease")]
        words += ["REPLACE"] if replace else []
        words += _chunk(output)
        words += _spend(cost, costs)

        def parse(reply: Any) -> Stored:
            found = dict(replies.pairs(reply))
            other = found.get(b"value")
            counts = value if other is None else self.codec.decode(other)
            return Stored(found[b"deadline"], bool(found[b"cancel"]), counts)

        return self._request("JOB.STEP", words, parse)

    @command(by_id)
    def await_signals(
        self,
        worker: Name,
        id: Name,
        signals: Name | Sequence[Name],
        token: int | None = None,
        *,
        any: bool = False,
        within: Duration | None = None,
        ontimeout: Literal["run", "fail", "cancel"] | None = None,
        step: Name | None = None,
        children: Literal["hold", "cancel", "fail", "run"] | bool | None = None,
        payload: Any = None,
        cost: int | None = None,
        costs: Costs | None = None,
    ) -> Request[Waited]:
        """Waits for signals: keeps the job when they have arrived, else gives it up until they do. With
        `children` it waits for the job's children as well, and says what becomes of it when one fails.
        """
        waits = await_words("SIGNALS", Await(signals, any, within, ontimeout))
        waits += [] if children is None else children_words("AFTER", children)[1:]
        waits += [] if step is None else ["STEP", step]
        return self._await(worker, id, waits, token, payload, _spend(cost, costs))

    @command(by_id)
    def await_children(
        self,
        worker: Name,
        id: Name,
        token: int | None = None,
        *,
        onfailure: Literal["hold", "cancel", "fail", "run"] = "hold",
        payload: Any = None,
        cost: int | None = None,
        costs: Costs | None = None,
    ) -> Request[Waited]:
        """Waits for the job's children: keeps the job when all have ended, else gives it up until they have.
        `onfailure` says what becomes of it when one fails.
        """
        waits = children_words("AFTER", onfailure)[1:]
        return self._await(worker, id, waits, token, payload, _spend(cost, costs))

    def _await(
        self, worker: Name, id: Name, waits: list[Any], token: int | None, payload: Any, spent: list[Any]
    ) -> Request[Waited]:
        words = [worker, id, *waits, *_token(token)]
        words += [] if payload is None else ["PAYLOAD", self._payload(payload)]
        return self._request("JOB.AWAIT", words + spent, waited(self.codec))

    @command(by_ids("tokens"))
    def mheartbeat(
        self,
        worker: Name,
        ids: Sequence[Name],
        tokens: Sequence[int] | None = None,
        *,
        lease: Duration | None = None,
    ) -> Request[list[Beat | Refused]]:
        """Heartbeats of many jobs: for each a `Beat`, or what was `Refused`."""
        words = [worker, len(ids), *ids, *_tokens(tokens)]
        words += [] if lease is None else ["LEASE", to_ms(lease, "lease")]
        return self._request("JOB.MHEARTBEAT", words, replies.list_of(beat))

    @command(each(joined))
    def mheartbeat_all(self, worker: Name, *, lease: Duration | None = None) -> Request[list[HeldBeat]]:
        """Heartbeats of all jobs that the worker holds."""
        words = [worker, "ALL", *([] if lease is None else ["LEASE", to_ms(lease, "lease")])]
        return self._request("JOB.MHEARTBEAT", words, replies.list_of(held_beat))

    @command(by_id)
    def consume(
        self, worker: Name, id: Name, token: int | None = None, **options: Unpack[ConsumeOptions]
    ) -> Request[str]:
        """Ends a job as complete, or with `next` sends it on; returns its state."""
        words = [worker, id, *_token(token), *self._ending(options)]
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
        words: list[Any] = [worker, len(ids), *ids, *_tokens(tokens)]
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
        words: list[Any] = [worker, id, kind, message, *_token(token), *encode_options(FAIL, options)]
        words += [] if payload is None else ["PAYLOAD", self._payload(payload)]
        words += _spend(cost, costs, pause)
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
            *_tokens(tokens),
            *encode_options(FAIL, options),
        ]
        words += _spend(cost, costs, pause)
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
        words += _spend(cost, costs, pause)
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
        words: list[Any] = [worker, id, *_token(token), *_delay_reason(delay, reason, meta)]
        words += _spend(cost, costs, pause)
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
        words: list[Any] = [worker, len(ids), *ids, *_tokens(tokens), *_delay_reason(delay, reason, meta)]
        words += _spend(cost, costs, pause)
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
        words += _spend(cost, costs, pause)
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
        words: list[Any] = [worker, id, *_token(token), *_delay_reason(None, reason, meta)]
        words += _spend(cost, costs)
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
        words: list[Any] = [worker, len(ids), *ids, *_tokens(tokens), *_delay_reason(None, reason, meta)]
        words += _spend(cost, costs)
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
        words += _spend(cost, costs)
        return self._request("JOB.MTRASH", words, ids_of)


def _spend(cost: int | None, costs: Costs | None, pause: Pause | None = None) -> list[Any]:
    """What the claim has cost so far, and a limit that needs a rest."""
    words: list[Any] = [] if cost is None else ["COST", check_whole(cost, "cost", 0, MOST)]
    words += [] if costs is None else costs_words("COSTS", costs)
    return words + ([] if pause is None else ["PAUSE", pause[0], to_ms(pause[1], "pause")])


def _token(token: int | None) -> list[Any]:
    return [] if token is None else ["TOKEN", token]


def _tokens(tokens: Sequence[int] | None) -> list[Any]:
    return [] if tokens is None else counted("TOKENS", tokens)


def _delay_reason(delay: Duration | None, reason: str | None, meta: Mapping[str, Any] | None) -> list[Any]:
    words: list[Any] = [] if delay is None else ["DELAY", to_ms(delay, "delay")]
    words += [] if reason is None else ["REASON", reason]
    return words + (pairs("META", meta) if meta else [])
