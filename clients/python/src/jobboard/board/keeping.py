"""Verbs of workers that keep a job: heartbeats, steps, waits for signals and children. `Worker` uses them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import replies
from ..arguments import MOST, Name, check_whole, counted, pairs
from ..arguments import costs as costs_words
from ..durations import Duration, to_ms
from ..errors import Refused
from .answers import Beat, HeldBeat, Stored, Waited, beat, held_beat, kept_beat, waited
from .claiming import Claiming
from .merging import joined
from .posting import Await, await_words, children_words
from .sending import Request, command
from .sharding import by_id, by_ids, each

if TYPE_CHECKING:
    from typing import Literal


Costs = Mapping[Name, int]
"""Limits and how many permits each costs."""
Pause = tuple[Name, Duration]
"""A shared limit of the job, and how long nothing is claimed that counts against it."""
Chunk = tuple[int, "str | bytes"]
"""A chunk of output: its number in this run, from 1, and what it says."""


def chunk_words(output: Chunk | None) -> list[Any]:
    return [] if output is None else ["OUTPUT", check_whole(output[0], "the number of output", 1), output[1]]


class Keeping(Claiming):
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
        words: list[Any] = [worker, id, *token_words(token)]
        words += [] if lease is None else ["LEASE", to_ms(lease, "lease")]
        words += [] if progress is None else ["PROGRESS", progress]
        words += [] if stage is None else ["STAGE", stage]
        words += [] if payload is None else ["PAYLOAD", self._payload(payload)]
        words += pairs("META", meta) if meta else []
        words += [] if log is None else ["LOG", log]
        words += chunk_words(output)
        words += spent_words(cost, costs, pause)
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
        words: list[Any] = [worker, id, name, self._payload(value), *token_words(token)]
        words += [] if lease is None else ["LEASE", to_ms(lease, "lease")]
        words += ["REPLACE"] if replace else []
        words += chunk_words(output)
        words += spent_words(cost, costs)

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
        return self._await(worker, id, waits, token, payload, spent_words(cost, costs))

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
        return self._await(worker, id, waits, token, payload, spent_words(cost, costs))

    def _await(
        self, worker: Name, id: Name, waits: list[Any], token: int | None, payload: Any, spent: list[Any]
    ) -> Request[Waited]:
        words = [worker, id, *waits, *token_words(token)]
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
        words = [worker, len(ids), *ids, *tokens_words(tokens)]
        words += [] if lease is None else ["LEASE", to_ms(lease, "lease")]
        return self._request("JOB.MHEARTBEAT", words, replies.list_of(beat))

    @command(each(joined))
    def mheartbeat_all(self, worker: Name, *, lease: Duration | None = None) -> Request[list[HeldBeat]]:
        """Heartbeats of all jobs that the worker holds."""
        words = [worker, "ALL", *([] if lease is None else ["LEASE", to_ms(lease, "lease")])]
        return self._request("JOB.MHEARTBEAT", words, replies.list_of(held_beat))


def spent_words(cost: int | None, costs: Costs | None, pause: Pause | None = None) -> list[Any]:
    """What the claim has cost so far, and a limit that needs a rest."""
    words: list[Any] = [] if cost is None else ["COST", check_whole(cost, "cost", 0, MOST)]
    words += [] if costs is None else costs_words("COSTS", costs)
    return words + ([] if pause is None else ["PAUSE", pause[0], to_ms(pause[1], "pause")])


def token_words(token: int | None) -> list[Any]:
    return [] if token is None else ["TOKEN", token]


def tokens_words(tokens: Sequence[int] | None) -> list[Any]:
    return [] if tokens is None else counted("TOKENS", tokens)
