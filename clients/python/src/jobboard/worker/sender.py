"""The thread that keeps the leases and sends what handlers say: reports, and how runs end."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import redis

from ..board import Requests
from ..connecting import TROUBLE, explained_of
from ..outcomes import GivenUp, Lost, Nothing, Outcome
from . import journal
from .backoff import Backoff
from .batch import Batch, probe
from .connection import connection_of
from .engine import Engine
from .outage import Outage
from .run import Run
from .storing import Awaiting, Storing, Writing
from .unsendable import Unsendable

log = logging.getLogger("jobboard.worker")

REPORT_EVERY = 0.1
"""Seconds between two sends of reports: what comes faster is put together."""
CONFIRM_WITHIN = 1.0
"""Seconds that a handler which only looks whether it has to stop waits for the answer."""
DEREGISTER_WITHIN = 3.0
"""Seconds to end the registration."""
GATHER = 0.01
"""Seconds that an end may wait for others, while prefetched jobs are at hand."""


class Sender(threading.Thread):
    """Everything that does not wait for jobs goes over its connection: that to the server of `shards`. Each
    shard of a cluster has its own, and so its own outage, backoff and batches.

    A thread that has ended a run sends the end itself when nobody else is sending: with one job after the
    other, no other thread has to wake up. What could not be sent stays, and is sent again with the same
    tokens.
    """

    def __init__(self, engine: Engine, shards: Sequence[Requests]) -> None:
        super().__init__(name="jobboard-sender", daemon=True)
        self.engine, self.shards = engine, shards
        self.alone = len(shards) == len(engine.shards)
        """There is no other sender."""
        self.connection = connection_of(engine.board.client, shards[0].key)
        self.outage = Outage(log, engine.name if self.alone else f"{engine.name}: {shards[0].key}")
        self.heard = 0.0
        """When it sent last what the server has answered, by the monotonic clock."""
        self.backoff = Backoff()
        self.sending = threading.Lock()
        self.lock = threading.Lock()
        self.wake = threading.Condition(self.lock)
        self.answered = threading.Condition(self.lock)
        self.ends: deque[tuple[Run, Outcome]] = deque()
        self.reports: deque[tuple[Run, Mapping[str, Any]]] = deque()
        self.steps: deque[Storing] = deque()
        self.ends_due = self.reports_due = self.steps_due = float("inf")
        self.beaten: float | None = None
        """When the leases were kept last."""
        self.beat_due = 0.0
        """When the leases are to be kept, and the registration; at once at the start."""
        self.quiet_until = 0.0
        """After trouble nothing is sent before this time."""
        self.closed = False
        self.may_register = engine.options.register

    # From the pools

    def end(self, run: Run, outcome: Outcome, here: bool) -> None:
        """Takes the outcome of a run."""
        if isinstance(outcome, Nothing):
            try:
                if isinstance(outcome, GivenUp):
                    journal.waits(run, outcome.why)
                else:
                    journal.lost(run, str(run.context._stop or "its handler has raised Lost"))
            finally:
                self.engine.let_go(run, unsent=True)
            return
        with self.lock:
            first = not self.ends
            self.ends.append((run, outcome))
            waiting = self.engine.pool.waiting()
            gather = waiting and len(self.ends) <= self.engine.options.prefetch // 2
            here = here and not self.failed
            due = time.monotonic() + (GATHER if gather else 0)
            self.ends_due = min(self.ends_due, due)
            if gather and first or not gather and not here:
                self.wake.notify()
        if self.failed and not self.alone:
            self.engine.look_for_room()  # others need not wait until it is sent
        if here and not gather:
            self.flush()

    def report(self, run: Run, fields: Mapping[str, Any]) -> None:
        """Takes a handler's report; it is sent soon. One that comes after the end is left out."""
        if run.ended:
            return
        with self.lock:
            if "output" in fields:
                if not run.writes or run.writing is not None and run.writing.takes(fields["output"]):
                    return
                run.writing = Writing(fields["output"])
                fields = {"output": run.writing}
            run.made += 1
            self.reports.append((run, fields))
            if self.reports_due == float("inf"):
                self.reports_due = max(time.monotonic(), self._last_reports + REPORT_EVERY)
                self.wake.notify()

    def store(self, run: Run, name: str, data: bytes, replace: bool) -> bytes | None:
        """Stores a step, and waits for the answer, however long the server is away: what has been done must
        not be done again. Returns the stored value when it is another one.
        """
        self._check(run)
        step = Storing(run, name, data, replace)
        self._ask(step)
        return step.value

    def wait(self, run: Run, words: list[Any]) -> dict[bytes, Any]:
        """Asks whether all that the run waits for is there, or gives the job up until it is."""
        self._check(run)
        asking = Awaiting(run, words)
        self._ask(asking)
        return asking.found

    def confirm(self, run: Run, patient: bool) -> None:
        """Asks the server whether a run is ours, of which it has said nothing for longer than the lease.
        `patient`: waits however long it is away, as what is done next must not be done twice.
        """
        context = run.context

        def known() -> bool:
            over = self.closed or run.key not in self.engine.held or (self.failed and not patient)
            return over or context._stop is not None or not context._is_late()

        with self.lock:
            while not known():
                self.beat_due = 0.0
                self.wake.notify()
                if not self.answered.wait(CONFIRM_WITHIN) and not patient:
                    return

    def _check(self, run: Run) -> None:
        """Refuses what a handler has left behind, a thread or a task: its end may not be sent yet."""
        if run.ended:
            raise Lost("the job is not ours any more: its run has ended")

    def _ask(self, step: Storing) -> None:
        with self.lock:
            self.steps.append(step)
            self.steps_due = time.monotonic()
        self.flush(wait=True)
        with self.lock:
            self.wake.notify()
            self.answered.wait_for(lambda: step.answered or self.closed)
        if not step.answered:
            raise ConnectionError(
                f"the worker stops, and the server cannot be reached: {step.name!r} is not stored"
            )
        if step.error is not None:
            raise step.error

    def flush_reports(self, run: Run, timeout: float | None) -> bool:
        """Waits until the server has answered all reports of a run, or the run has to stop."""
        with self.lock:
            made = run.made
            self.reports_due = min(self.reports_due, time.monotonic()) if self.reports else self.reports_due
            self.wake.notify()
            return self.answered.wait_for(
                lambda: run.answered >= made or run.context.must_stop or self.closed, timeout
            )

    def hurry(self) -> None:
        """Sends all that waits now."""
        with self.lock:
            self.quiet_until = 0.0
            if self.ends:
                self.ends_due = 0.0
            if self.reports:
                self.reports_due = 0.0
            self.wake.notify()

    def beat_soon(self) -> None:
        """Asks the server now whether what we hold is ours."""
        with self.lock:
            self.beat_due = 0.0
            self.wake.notify()

    def leave(self) -> threading.Thread:
        """Ends the thread, and the registration in another one: without a socket timeout a server that is
        silent would keep us for ever.
        """
        with self.lock:
            self.closed = True
            self.wake.notify()
            self.answered.notify_all()
        leaving = threading.Thread(target=self._deregister, name="jobboard-leaving", daemon=True)
        leaving.start()
        return leaving

    def _deregister(self) -> None:
        with self.sending:
            if self.may_register:
                name = self.engine.name
                words = [shard.worker_deregister(name).words for shard in self.shards]
                with contextlib.suppress(*TROUBLE):
                    self.connection.ask(words)
            self.connection.close()

    # Sending

    _last_reports = 0.0
    failed = False
    """The last command has got no answer."""
    saw_claims_end = False

    def run(self) -> None:
        try:
            while True:
                with self.lock:
                    while not self.closed and self._due() > time.monotonic():
                        self.wake.wait(self._due() - time.monotonic())
                    if self.closed:
                        return
                self.flush(wait=True)
        except BaseException as error:
            self.engine.fail(error)

    def _due(self) -> float:
        due = min(self.ends_due, self.reports_due, self.steps_due, self.beat_due)
        return max(due, self.quiet_until)

    def flush(self, wait: bool = False) -> None:
        """Sends what is due, unless another thread is sending: that one looks again when it has done so."""
        while self._due() <= time.monotonic() and self.sending.acquire(blocking=wait):
            try:
                self._send()
            finally:
                self.sending.release()
            wait = False

    def _send(self) -> None:
        while True:
            with self.lock:
                now = time.monotonic()
                if self.closed or self._due() > now:
                    return
                returned = [run for run, fields in self.reports if run.returned and "output" in fields]
                if not returned:
                    ends, reports, steps, beat = self._take(now)
                    break
            if not self._count(returned):
                return
        # With an end to a server that may be away, the right to claim at others would be away too.
        begun = time.monotonic()
        batch = Batch(self.engine, self.may_register and beat, may_claim=self.alone or not self.failed)
        try:
            batch.add_reports(reports)
            batch.add_steps(steps)
            if beat:
                batch.add_beats(self.shards, self._held())
            batch.add_ends(ends)
            if not batch.commands:
                if self.alone:
                    return
                batch.add_probe(self.shards[0])
            self._see_claims_end()
            batch.sent = time.monotonic()
            found = self.connection.ask([words for words, _ in batch.commands])
        except TROUBLE as error:
            batch.unsent(self.shards)
            self._again(ends, reports, steps, error, begun)
            return
        except Exception as error:  # words that redis-py cannot send
            batch.unsent(self.shards, may_have_claimed=False)
            self._without_unsendable(batch, ends, reports, steps, error)
            return
        self.backoff.reset()
        self.failed, self.heard = False, batch.sent
        self.outage.back(batch.sent)
        self.engine.heard = time.monotonic()
        for (_, take), reply in zip(batch.commands, found):
            try:
                take(reply)
            except Exception as error:  # of a program's log, say: the others are told all the same
                self.engine.fail(error)
        if batch.not_registered:
            self.may_register = False
        if not batch.may_claim:
            self.engine.look_for_room()
        for run, outcome in batch.instead:
            self.end(run, outcome, here=False)
        with self.lock:
            for run, _ in reports:
                run.answered += 1
            self.answered.notify_all()

    def _see_claims_end(self) -> None:
        """Once, before anything is given back: waits until the server knows that our claims have ended, or it
        might give them just that. It answers the first when it has read the claims, and the second when it
        has read the ends of their connections: it reads what has come from all before it answers any.
        """
        if self.engine.going_home and not self.saw_claims_end:
            for _ in range(2):
                self.connection.ask([probe(self.shards[0], self.engine.name)])
            self.saw_claims_end = True

    def _take(self, now: float) -> tuple[list[Any], list[Any], list[Storing], bool]:
        """All that waits: ends, reports and steps, and whether the leases are due."""
        ends, reports, steps = list(self.ends), list(self.reports), list(self.steps)
        for run, fields in reports:
            run.numbered(fields)
        self.ends.clear()
        self.reports.clear()
        self.steps.clear()
        self.ends_due = self.reports_due = self.steps_due = float("inf")
        beat, self.beat_due = self.beat_due <= now, max(self.beat_due, now)
        if beat:
            self._look_back(now)
            self.engine.look_for_stuck()
            self.engine.look_at_leases()
            self.beat_due = now + self.engine.shortest / 3000
        if reports:
            self._last_reports = now
        return ends, reports, steps, beat

    def _held(self) -> list[Run]:
        return [run for run in self.engine.all_held() if run.sender is self]

    def _count(self, returned: list[Run]) -> bool:
        """Asks where the output of these runs goes on. False when there is no answer."""
        batch = Batch(self.engine, may_register=False)
        batch.add_counts(dict.fromkeys(returned))
        sent = time.monotonic()
        try:
            found = self.connection.ask([words for words, _ in batch.commands])
        except TROUBLE as error:
            self._again([], [], [], error, sent)
            return False
        for (_, take), reply in zip(batch.commands, found):
            take(reply)
        return True

    def _without_unsendable(
        self, batch: Batch, ends: list[Any], reports: list[Any], steps: list[Storing], error: Exception
    ) -> None:
        """Puts back what can be sent. When all can be, nothing heals this."""
        unsendable = Unsendable(batch)
        ends, reports = unsendable.ends(ends), unsendable.reports(reports)
        waiting = unsendable.steps(steps)
        if not unsendable.found:
            self._again(ends, reports, steps, error, time.monotonic())
            self.engine.fail(error)
            return
        with self.lock:
            self._put_back(ends, reports, waiting)
            self.answered.notify_all()

    def _look_back(self, now: float) -> None:
        """Tells when a lease was kept too late, although the server could be reached. A claim counts from the
        moment it came.
        """
        before, self.beaten = self.beaten, now
        if before is None or self.quiet_until >= before:
            return
        known = (run for run in self._held() if run.is_known)
        late = [(now - max(before, run.since), run.lease / 1000) for run in known]
        silence, lease = max(late, key=lambda one: one[0] - one[1], default=(0.0, 0.0))
        if silence > lease:
            log.warning(
                "no heartbeat for %.1f s, longer than the lease of %g s, so jobs may have been lost: a "
                "handler kept the interpreter to itself (mode='processes' does not mind), or the machine "
                "slept; a longer lease (lease=…) bears more",
                *(silence, lease),
            )

    def _again(
        self, ends: list[Any], reports: list[Any], steps: list[Storing], error: Exception, sent: float
    ) -> None:
        """Puts back what could not be sent. Leases are kept at once when there is a connection again."""
        with self.lock:
            now = time.monotonic()
            self.quiet_until = now + self.backoff.take()
            self._put_back(ends, reports, steps)
            # The first failure may be that of a connection which broke long ago, unused.
            again, self.failed = self.failed, True
        if again:
            self.outage.gone(explained_of(error, self.engine.board.client), "ends and leases", sent)

    def _put_back(self, ends: list[Any], reports: list[Any], steps: list[Storing]) -> None:
        now = time.monotonic()
        self.ends.extendleft(reversed(ends))
        self.reports.extendleft(reversed(reports))
        self.steps.extendleft(reversed(steps))
        self.ends_due = now if self.ends else self.ends_due
        self.reports_due = now if self.reports else self.reports_due
        self.steps_due = now if self.steps else self.steps_due
        self.beat_due = now
        self.wake.notify()


def senders_of(engine: Engine) -> list[Sender]:
    """One for all shards of one server, and one for each shard of a cluster, which may be anywhere."""
    if isinstance(engine.board.client, redis.RedisCluster):
        return [Sender(engine, [shard]) for shard in engine.shards]
    return [Sender(engine, engine.shards)]


def leave(senders: Sequence[Sender]) -> None:
    """Ends all senders, with the registrations, and waits for none longer than for one."""
    deadline = time.monotonic() + DEREGISTER_WITHIN
    for sender, leaving in [(sender, sender.leave()) for sender in senders]:
        leaving.join(max(deadline - time.monotonic(), 0))
        if leaving.is_alive():
            sender.may_register = False
            sender.connection.interrupt()
