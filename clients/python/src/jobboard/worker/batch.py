"""What the sender sends in one write, and what each reply means."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import redis

from .. import replies
from ..board import Requests
from ..board.answers import beat
from ..errors import LOST, BoardError, Gap, Limit, Refused, translated
from ..outcomes import CANCELLED, TEXT, Complete, Fail, GiveBack, Outcome, shortened
from . import journal
from .engine import Engine
from .run import Run
from .storing import Awaiting, Storing

log = logging.getLogger("jobboard.worker")

FAR_AHEAD = 1 << 52
"""The highest number of a chunk."""

BEATS = 1000
"""Leases kept by one command."""


def probe(shard: Requests, worker: str) -> list[Any]:
    """A heartbeat of no job: whoever may work may send it, and it changes nothing."""
    return ["JOB.MHEARTBEAT", shard.key, worker, 1, "-"]


class Batch:
    """Commands with what takes their replies. `instead`: ends to be tried in place of refused ones."""

    def __init__(self, engine: Engine, may_register: bool, may_claim: bool = True) -> None:
        self.engine, self.may_register, self.not_registered = engine, may_register, False
        self.may_claim = may_claim
        self.commands: list[tuple[list[Any], Callable[[Any], None]]] = []
        self.instead: list[tuple[Run, Outcome]] = []
        self.chained: Requests | None = None
        """The board from which the last command claims."""
        self.sent: float | None = None
        """When it was sent, by the monotonic clock."""

    def unsent(self, shards: Sequence[Requests], may_have_claimed: bool = True) -> None:
        """There was no answer from these boards."""
        self.engine.troubled(shards, self.chained if may_have_claimed else None)
        if self.chained:
            self.engine.not_claimed()
        else:
            self.engine.look_for_room()

    # Reports

    def add_reports(self, reports: Sequence[tuple[Run, Mapping[str, Any]]]) -> None:
        """Those of one run are put together, up to its next log line or chunk of output."""
        merged: dict[int, tuple[Run, dict[str, Any]]] = {}
        for run, fields in reports:
            _, found = merged.setdefault(id(run), (run, {}))
            if any(name in fields and name in found for name in ("log", "output")):
                self._add_report(run, found)
                found.clear()
            for name, value in fields.items():
                joins = name in ("meta", "costs")
                found[name] = {**found.get(name, {}), **value} if joins else value
        for run, found in merged.values():
            self._add_report(run, found)

    def report_words(self, run: Run, fields: Mapping[str, Any]) -> list[Any]:
        words: list[Any] = [*self.engine.lease_words]
        for name, value in fields.items():
            if name in ("meta", "costs"):
                words += [name.upper(), len(value), *(part for pair in value.items() for part in pair)]
            elif name == "output":
                words += ["OUTPUT", value.number, value.data]
            else:
                words += [name.upper(), shortened(value, TEXT) if isinstance(value, str) else value]
        return run.words("JOB.HEARTBEAT", [run.id], words)

    def _add_report(self, run: Run, fields: Mapping[str, Any]) -> None:
        def take(reply: Any) -> None:
            if isinstance(reply, redis.ResponseError):
                self._refused_report(run, translated(reply))
            else:
                self._heard(run, beat(reply))

        self.commands.append((self.report_words(run, fields), take))

    def _refused_report(self, run: Run, error: redis.ResponseError) -> None:
        if isinstance(error, BoardError) and error.code in LOST:
            self.engine.lose(run, str(error))
        elif isinstance(error, Gap) or isinstance(error, Limit) and error.detail == "output-bytes":
            if run.writes:
                log.warning("%s: its output is written no longer: %s", journal.who(run), error)
            run.writes = False
        else:
            log.warning("%s: a report was refused: %s", journal.who(run), error)

    def _heard(self, run: Run, answer: Any) -> None:
        if isinstance(answer, Refused):
            # One that waits for signals is given up, and its lease was sent along with that.
            if answer.code in LOST and run.key in self.engine.held:
                self.engine.lose(run, f"{answer.code} {answer.detail}")
            return
        self.engine.keeps(run, self.sent)
        if answer.cancel:
            self.engine.cancel(run)

    def add_counts(self, runs: Iterable[Run]) -> None:
        """Asks how many chunks we have written under this claim before: the refusal of one that lies far
        ahead says so. No other right is needed for that than to write.
        """
        for run in runs:
            words = run.words("JOB.HEARTBEAT", [run.id], ["OUTPUT", FAR_AHEAD, b"-"])
            self.commands.append((words, self._counted(run)))

    def _counted(self, run: Run) -> Callable[[Any], None]:
        def take(reply: Any) -> None:
            error = translated(reply) if isinstance(reply, redis.ResponseError) else None
            if isinstance(error, Gap):
                run.written = int(error.detail.rpartition(" ")[2]) - 1
            run.returned = False  # the next call meets any other refusal, with the chunk itself

        return take

    # Steps

    def add_steps(self, steps: Sequence[Storing]) -> None:
        for step in steps:
            self.commands.append((step.words(self.engine.lease_words), self._stored(step)))

    def _stored(self, step: Storing) -> Callable[[Any], None]:
        run = step.run

        def take(reply: Any) -> None:
            if isinstance(reply, redis.ResponseError):
                step.error = translated(reply)
                if isinstance(step.error, BoardError) and step.error.code in LOST:
                    self.engine.lose(run, str(step.error))
                    step.error = run.context._stop if run.context._raises else None
            else:
                found = dict(replies.pairs(reply))
                lost = step.take(found)
                if lost is not None:
                    self.engine.lose(run, lost)
                elif b"deadline" not in found:
                    self.engine.let_go(run)  # it waits for signals
                else:
                    if not isinstance(step, Awaiting):
                        self.engine.keeps(run, self.sent)
                    if found[b"cancel"]:
                        self.engine.cancel(run)
            step.answered = True

        return take

    # Leases

    def add_beats(self, shards: Sequence[Requests], held: Iterable[Run]) -> None:
        """Keeps the leases of what is held, and says on each board that the worker is there."""
        of_board: dict[str, list[Run]] = {}
        for run in held:
            if not run.context.lost:
                of_board.setdefault(run.requests.key, []).append(run)
        for shard in shards:
            if self.may_register:
                self.commands.append((self.engine.registration(shard), self._registered))
            runs = of_board.get(shard.key, [])
            for start in range(0, len(runs), BEATS):
                self._add_beat(shard, runs[start : start + BEATS])

    def add_probe(self, shard: Requests) -> None:
        """Asks for nothing but an answer."""
        self.commands.append((probe(shard, self.engine.name), lambda _: None))

    def _add_beat(self, shard: Requests, runs: list[Run]) -> None:
        ids, tokens = [run.id for run in runs], [run.token for run in runs]
        words = ["JOB.MHEARTBEAT", shard.key, self.engine.name, len(ids), *ids]
        words += ["TOKENS", len(tokens), *tokens, *self.engine.lease_words]

        def take(reply: Any) -> None:
            if isinstance(reply, redis.ResponseError):
                log.error("leases of %s not kept: %s", shard.key, reply)
                return
            for run, one in zip(runs, reply):
                self._heard(run, beat(one))

        self.commands.append((words, take))

    def _registered(self, reply: Any) -> None:
        if isinstance(reply, redis.ResponseError):
            log.warning("the worker works without being registered: %s", reply)
            # A full server may have room at the next beat.
            self.not_registered = not isinstance(reply, redis.OutOfMemoryError)

    # Ends

    def add_ends(self, ends: Sequence[tuple[Run, Outcome]]) -> None:
        """Plain completions of a board share a command; the last command may claim the next jobs."""
        plain: dict[tuple[str, bool], list[tuple[Run, Complete]]] = {}
        single: list[tuple[Run, Outcome]] = []
        for run, outcome in ends:
            if isinstance(outcome, Complete) and outcome.is_plain:
                kind = (run.requests.key, outcome.data is None)
                plain.setdefault(kind, []).append((run, outcome))
            else:
                single.append((run, outcome))
        groups: list[tuple[Requests, list[Any], Callable[[Any], None]]] = []
        for run, outcome in single:
            groups.append((run.requests, *self._end(run, outcome)))
        for alike in plain.values():
            requests = alike[0][0].requests
            groups.append((requests, *(self._end(*alike[0]) if len(alike) == 1 else self._ends(alike))))
        for number, (shard, words, take) in enumerate(groups, 1):
            count = self.engine.may_chain() if number == len(groups) and self.may_claim else 0
            if count:
                self.chained = shard
                words = [*words, "CLAIM", *self.engine.claim_words(shard, count)]
                take = self._with_claims(shard, count, take)
            self.commands.append((words, take))

    def end_words(self, run: Run, outcome: Outcome) -> list[Any]:
        return run.words(outcome.verb, outcome.words(run.id), outcome.options())

    def _end(self, run: Run, outcome: Outcome) -> tuple[list[Any], Callable[[Any], None]]:
        def take(reply: Any) -> None:
            if isinstance(reply, redis.ResponseError):
                self._refused(run, outcome, translated(reply))
            else:
                self._ended(run, outcome, reply)

        return self.end_words(run, outcome), take

    def _ends(self, ends: list[tuple[Run, Complete]]) -> tuple[list[Any], Callable[[Any], None]]:
        n, key = len(ends), ends[0][0].requests.key
        words = ["JOB.MCONSUME", key, self.engine.name, n, *(run.id for run, _ in ends)]
        words += ["TOKENS", n, *(run.token for run, _ in ends)]
        if ends[0][1].data is not None:
            words += ["RESULTS", n, *(outcome.data for _, outcome in ends)]
        parse = replies.or_refused(replies.text)

        def take(reply: Any) -> None:
            if isinstance(reply, redis.ResponseError):
                # Whose fault it was is told when each is sent on its own.
                for run, outcome in ends:
                    outcome.alone = True
                    self.instead.append((run, outcome))
                return
            for (run, outcome), one in zip(ends, map(parse, reply)):
                if isinstance(one, Refused):
                    self._refused(run, outcome, one.error())
                else:
                    self._ended(run, outcome, one)

        return words, take

    def _with_claims(self, shard: Requests, count: int, take: Callable[[Any], None]) -> Callable[[Any], None]:
        def take_both(reply: Any) -> None:
            if isinstance(reply, redis.ResponseError):
                self.engine.not_claimed()
                take(reply)
                return
            take(reply[0])
            found = replies.unpacked(reply[1]) or ()
            self.engine.claimed(shard, found, full=len(found) == count, sent=self.sent)

        return take_both

    def _ended(self, run: Run, outcome: Outcome, reply: Any) -> None:
        try:
            journal.ended(run, outcome, reply)
        finally:
            self.engine.let_go(run, done=True)

    def _refused(self, run: Run, outcome: Outcome, error: redis.ResponseError) -> None:
        code = error.code if isinstance(error, BoardError) else ""
        asked = code == "CANCELLED" and "requested" in str(error)
        if asked and not isinstance(outcome, GiveBack):
            run.context.cancelled = True
            self.instead.append((run, GiveBack(CANCELLED)))
            return
        if code == "ERR" and isinstance(outcome, GiveBack) and outcome.pause is not None:
            log.error("%s: the server refuses its pause: %s", journal.who(run), error)
            self.instead.append((run, outcome.without_pause()))
            return
        delay = outcome.retry if isinstance(outcome, Fail) else getattr(outcome, "delay", None)
        if code == "ERR" and isinstance(outcome, (Fail, GiveBack)) and delay is not None:
            log.error("%s: the server refuses its delay: %s", journal.who(run), error)
            self.instead.append((run, outcome.without_delay()))
            return
        if code == "ERR" and not isinstance(outcome, (Fail, GiveBack)):
            log.error("%s: the server refuses its end: %s", journal.who(run), error)
            self.instead.append((run, Fail("Refused", str(error)[:200])))
            return
        try:
            journal.lost(run, f"its end was refused: {error}")
            if code in LOST:
                self.engine.lose(run, str(error))
            else:
                self.engine.leave_to_lease(run)
        finally:
            self.engine.let_go(run)
