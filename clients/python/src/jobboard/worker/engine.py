"""The middle of a worker: what it holds, and how claims, runs, reports and ends go through it.

Threads of a worker:

- the claimer (claimer.py) waits for jobs when there is room for them, on a connection of its own;
- the sender (sender.py) keeps all leases with one command for each board, and sends reports and ends; over
  a cluster each shard has its own, so that none waits for another's node;
- the listener (listener.py) hears of cancels and losses at once;
- the pool (threads.py, loop.py, children.py) runs the handlers.

One claim is under way at a time (`asked`), so `SEEN` is exact: all tokens up to it have arrived. An end that
is sent while nobody claims takes the next jobs along (`CONSUME … CLAIM`).

A claim asks for what it may have missed (`SEEN`) only after a command without an answer: then its reply may
be lost. It asks until one brings fewer jobs than it asked for. Such a claim gets what was missed before what
is new. Once one is answered, the server has read those before it: what comes is new when those that follow
have brought as many jobs as claims without an answer may have taken. The server may also still count claims
that we have ended: a failover can lose an end that the former primary had taken. A worker that holds nothing
therefore asks for all its claims, and does those jobs again. Without such trouble nothing comes that was
claimed before: of two workers with one name neither works on what the other has claimed.
"""

from __future__ import annotations

import logging
import math
import os
import socket
import threading
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ..board import Board, Requests
from ..board.context import Context
from ..board.sending import guard
from ..durations import of_ms
from ..jobs import Job
from ..outcomes import CancelRequested, GiveBack, GoHome, Lost, Outcome, Stopped, Unhandled
from . import journal
from .outage import shown
from .run import Run
from .unhandled import UnhandledJobs

if TYPE_CHECKING:
    from ..board import AsyncBoard, AsyncShardedBoard, ShardedBoard
    from .options import Options
    from .sender import Sender

    AnyBoard = Board | ShardedBoard | AsyncBoard | AsyncShardedBoard

log = logging.getLogger("jobboard.worker")

STUCK = 10.0
"""Seconds that a handler may take to stop before somebody is told."""

FIELDS = ("id", "token", "attempt", "name", "queue", "payload", "meta", "steps")
"""What is asked of each job that is claimed."""


LEASE_FIELDS = ("claimed", "deadline")
"""These as well where each job has a lease of its own: that is what lies between them."""

LEASE = 30_000
"""That of jobs when nobody names one, ms: the server's setting, too."""

UNCERTAIN = 1000
"""The longest lease that is relied on where a claim may have come back, ms: how much is left is not known."""


def fields_of(more: Sequence[str], lease: Any) -> list[str]:
    """The fields of claimed jobs: ours, and what a program wants beside them."""
    return list(dict.fromkeys([*FIELDS, *(LEASE_FIELDS if lease is None else ()), *more]))


class Pool(Protocol):
    """Runs handlers. It calls `engine.finished` once for each run that it was given."""

    def start(self, engine: Engine) -> None:
        """Ready to run when it returns."""

    def submit(self, runs: list[Run]) -> None: ...

    def waiting(self) -> int:
        """How many runs have not begun."""

    def drain(self) -> list[Run]:
        """Takes out the runs that have not begun."""

    def interrupt(self, run: Run) -> None:
        """Stops a handler that was told to stop, as far as this kind of pool can, and may."""

    def going_home(self, runs: list[Run]) -> None:
        """Tells these handlers that the end is near."""

    def close(self, kill: bool) -> None:
        """No more runs; `kill`: those that go on are ended, if that can be done."""


class Engine:
    def __init__(
        self, board: Board | ShardedBoard, options: Options, pool: Pool, given: AnyBoard | None = None
    ) -> None:
        guard(board)  # its connections are its own
        self.board, self.options, self.pool = board, options, pool
        self.given = board if given is None else given
        """What handlers get as `context.board`: of a sharded board the whole."""
        self.shards: list[Requests] = board.requests()
        self.name = options.name
        self.about = {"host": socket.gethostname(), "pid": os.getpid(), "mode": options.mode}
        """What the registration tells of this worker."""
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)
        """Told when there may be room, when a run has ended, and when the worker stops."""
        self.held: dict[tuple[str, int], Run] = {}
        """All claims in our hands, by board and token; also those whose end is not yet sent."""
        self.busy = 0
        """Claims whose outcome is not known."""
        self.asked = 0
        """How many jobs the claim under way may bring."""
        self.seen = {shard.key: 0 for shard in self.shards}
        """The highest token that has arrived from each board."""
        self.early = dict.fromkeys(self.seen, 0)
        """For each board, the highest token of a claim that has not arrived, and of which the server has, or
        may have, published something already; else 0.
        """
        self.left = {shard.key: 0 for shard in self.shards}
        """The highest token of the claims that we have left to their leases, as their ends were refused."""
        self.troubles = {shard.key: 0 for shard in self.shards}
        """How many commands to each board have got no answer."""
        self.told_at = 0
        """That of its board when the claim under way was sent."""
        self.asks_all = self.asks_missed = False
        """What the claim under way asks for: all claims of ours, or those above the last that has arrived."""
        self.missing: dict[str, float] = dict.fromkeys(self.left, math.inf if options.named else 0)
        """How many jobs of each board claims without an answer may have taken, that have not arrived. An
        earlier process of our name may have any number, unless it was ended.
        """
        self.looked = dict.fromkeys(self.left, False)
        """Whether a claim that was sent after them, and asked for them, was answered."""
        self.had_missed = dict.fromkeys(self.left, 0)
        """`troubles` at the last claim that has brought all that a board had above the last token."""
        self.had_all = dict.fromkeys(self.left, 0)
        """The same of all claims."""
        self.unhandled = UnhandledJobs()
        self.looking = threading.Lock()
        self.all_stuck = False
        """Nothing but jobs that do not stop is left: only another process can go on."""
        self.shared_name = False
        """The log has told of another worker of our name."""
        lease = LEASE if options.lease is None else options.lease
        self.shortest = self.longest = lease
        """The shortest lease of what we hold, and the longest, ms: at most, and at least, `lease`."""
        self.lease_words = [] if options.lease is None else ["LEASE", options.lease]
        self.stopping = False
        """It claims no more."""
        self.going_home = False
        """Nor does a claim wait any more: what it gives back goes to other workers."""
        self.cut: list[Run] = []
        """Runs whose event loop has ended, until `go_home` gives them back."""
        self.failure: BaseException | None = None
        self.ends = 0
        """Runs that we hold no more."""
        self.heard: float | None = None
        """When the server has answered last, by the monotonic clock."""
        self.done = 0
        """Ends that the server has taken."""
        self.senders: dict[str, Sender] = {}
        """That of each board."""
        self.wants_stop = threading.Event()

    # Room and claims

    @property
    def room(self) -> int:
        """How many more jobs we would take."""
        return self.options.concurrency + self.options.prefetch - self.busy

    def claim_words(self, shard: Requests, count: int) -> list[Any]:
        """The options of a claim, without `BLOCK`."""
        options = self.options
        key, self.told_at = shard.key, self.troubles[shard.key]
        self.asks_all = self.had_all[key] < self.told_at and not self._holds_of(key)
        self.asks_missed = self.asks_all or self.had_missed[key] < self.told_at
        seen = self.left[key] if self.asks_all else self.seen[key]
        return [
            *options.queue_words,
            *("COUNT", count, *self.lease_words),
            *(["SEEN", seen] if self.asks_missed else []),
            *("FIELDS", len(options.fields), *options.fields, "PACKED"),
        ]

    def troubled(self, shards: Iterable[Requests], claimed: Requests | None = None) -> None:
        """A command to these boards has got no answer; `claimed`: it claimed from this one."""
        with self.lock:
            for shard in shards:
                self.troubles[shard.key] += 1
            if claimed is not None:
                # All but the first ask for what was missed: they get what others have taken, or take as much.
                most = 2 * (self.options.concurrency + self.options.prefetch)
                missing = self.missing[claimed.key]
                self.missing[claimed.key] = max(missing, min(missing + self.asked, most))
                self.looked[claimed.key] = False

    def started_anew(self, shard: Requests) -> None:
        """The server has ended what an earlier process of our name held."""
        with self.lock:
            self.missing[shard.key] = 0

    def _holds_of(self, board: str) -> bool:
        with self.lock:
            return any(key == board for key, _ in self.held)

    def registration(self, shard: Requests) -> list[Any]:
        options = self.options
        life: list[Any] = ["SESSION"] if options.session else ["FOR", self.longest]
        return [*shard.worker_register(self.name, role=options.role, meta=self.about).words, *life]

    def may_chain(self) -> int:
        """Takes the right to claim along with an end: how many jobs, or 0."""
        with self.lock:
            if self.stopping or self.asked or self.room <= 0 or self.options.burst:
                return 0
            self.asked = self.room
            return self.asked

    def claimed(
        self, shard: Requests, found: Iterable[Any], full: bool = False, sent: float | None = None
    ) -> int:
        """Takes what a claim has brought, and gives up the right to claim; how many jobs it was. `sent`: when
        it was asked, by the monotonic clock.
        """
        runs: list[Run] = []
        jobs = [shard._job(raw) for raw in found]
        other_lease = False
        with self.lock:
            key, (asked, self.asked) = shard.key, (self.asked, 0)
            seen, missing, looked = self.seen[key], self.missing[key], self.looked[key]
            if jobs and not seen and not self.asks_missed:
                # What has lower tokens is not ours.
                self.left[key] = min(job.token for job in jobs) - 1
            for job in jobs:
                is_new = not self.asks_missed
                if job.token > seen:
                    is_new = is_new or not missing
                    # The server has read them all once a claim behind them was answered.
                    missing = max(missing - 1, 0) if looked else missing
                run = self._hold(shard, job, is_new)
                if run is not None:
                    runs.append(run)
                    self.keeps(run, sent)
                    other_lease |= self._note_lease(run.lease)
            is_early = 0 < self.early[key] <= self.seen[key]
            if is_early:
                self.early[key] = 0
            self.missing[key] = missing
            self._answered(key, len(jobs) < asked)
            self.busy += len(runs)
            stopping = self.stopping
            if not full or stopping:
                self.changed.notify_all()
        if is_early or (other_lease and sent is not None):
            self.senders[key].beat_soon()
        if stopping:
            for run in runs:
                self.finished(run, GiveBack("the worker stops"))
        elif runs:
            self.pool.submit(runs)
        return len(runs)

    def found_none(self, shard: Requests) -> None:
        """A claim that did not wait has brought nothing; others follow under the same right to claim."""
        with self.lock:
            self._answered(shard.key, True)

    def _answered(self, key: str, is_short: bool) -> None:
        """`is_short`: the claim has brought fewer jobs than it asked for."""
        self.looked[key] = self.asks_missed
        # A claim that does not ask for what was missed says nothing about it, until it brings a job: what an
        # earlier process of our name holds has lower tokens, and is not asked for any more.
        has_all = is_short if self.asks_missed else self.seen[key] > 0
        if has_all:
            self.missing[key] = 0
        if is_short and self.asks_missed:
            self.had_missed[key] = self.told_at
        if is_short and self.asks_all:
            self.had_all[key] = self.told_at

    def not_claimed(self) -> None:
        """The claim under way has come to nothing."""
        with self.lock:
            self.asked = 0
            self.changed.notify_all()

    def look_for_room(self) -> None:
        """Runs have ended, and nothing was claimed along with that."""
        with self.lock:
            self.changed.notify_all()

    def _hold(self, shard: Requests, job: Job, is_new: bool) -> Run | None:
        known, self.seen[shard.key] = self.seen[shard.key], max(self.seen[shard.key], job.token)
        run = Run(shard, job, self.senders[shard.key])
        if run.key in self.held:
            return None
        run.lease = self._lease_of(job, is_new)
        run.is_known = is_new or self.options.lease is not None
        run.context = Context(job, self.name, self.given, run, self.options.interrupt != "flag")
        run.returned = self.asks_missed or job.token <= known
        self.held[run.key] = run
        return run

    # Leases

    def _lease_of(self, job: Job, is_new: bool) -> int:
        if self.options.lease is not None:
            return self.options.lease
        lease = (job.deadline or 0) - (job.claimed or 0)
        return max(lease if is_new else min(lease, UNCERTAIN), 1)

    def _note_lease(self, lease: int) -> bool:
        """Whether the heartbeats and the registration have to follow another lease than before."""
        known = self.shortest <= lease <= self.longest
        self.shortest, self.longest = min(self.shortest, lease), max(self.longest, lease)
        return not known

    def look_at_leases(self) -> None:
        """Sees which leases we hold now."""
        if self.options.lease is None:
            leases = [run.lease for run in self.all_held()]
            self.shortest, self.longest = min([LEASE, *leases]), max([LEASE, *leases])

    # Runs

    def begun(self, run: Run) -> None:
        """Told by the pool: a handler is called."""
        run.began = time.monotonic()
        journal.began(run)

    def finished(self, run: Run, outcome: Outcome, here: bool = False) -> None:
        """Told by the pool. `here`: this thread may send the end itself."""
        with self.lock:
            if run.ended:
                return  # given back meanwhile, by a worker that had to go
            if isinstance(outcome, Unhandled):
                outcome.delay = of_ms(self.unhandled.wait(outcome.reason) * 1000)
            run.ended = True
            run.took = 0.0 if run.began is None else time.monotonic() - run.began
            run.interrupt = None
            self.busy -= 1
            if self.stopping:
                self.changed.notify_all()
        run.sender.end(run, outcome, here)

    def broken(self, run: Run, error: BaseException) -> None:
        """Told by the pool: it could not run this, or could not tell how it ended. The worker stops."""
        try:
            self.finished(run, GiveBack(f"the worker stops: {type(error).__name__}"))
        finally:
            self.fail(error)

    def stop_run(self, run: Run, reason: Stopped) -> None:
        """Tells a handler to stop."""
        context = run.context
        if context.lost or (context.must_stop and not isinstance(reason, Lost)):
            return
        log.info("%s: %s", journal.who(run), reason)
        run.told = run.told or time.monotonic()
        context._stopped_by(reason)
        self.pool.interrupt(run)

    def keeps(self, run: Run, sent: float | None) -> None:
        """The server has said that a run is ours, when it was asked at `sent`."""
        if sent is not None:
            run.context._ours_until = sent + run.lease / 1000

    def lapsed(self, run: Run) -> None:
        """The server has ended a lease. Warns once of the likely cause when it was not over."""
        if (
            self.options.named
            and not self.options.session
            and not self.shared_name
            and not run.context._is_late()
        ):
            self.shared_name = True
            log.warning(
                "%s: the lease of %s has ended before its time: has another worker of this name started? "
                "Each needs a name of its own; without one it makes one up",
                *(self.name, journal.who(run)),
            )

    def cancel(self, run: Run) -> None:
        self.stop_run(run, CancelRequested("a cancel was requested"))

    def lose(self, run: Run, why: str) -> None:
        self.stop_run(run, Lost(f"the job is not ours any more: {why}"))

    def let_go(self, run: Run, unsent: bool = False, done: bool = False) -> None:
        """The server has taken (`done`) or refused the end of a run, or none is sent. With an end that is
        sent the next job is claimed; after one that is not the claimer has to see that there is room.
        """
        with self.lock:
            self.done += done
            self.held.pop(run.key, None)
            self.ends += 1
            if unsent or self.stopping or self.options.burst:
                self.changed.notify_all()

    def leave_to_lease(self, run: Run) -> None:
        """The server refuses the end of a run, and may still count its claim: that ends with its lease."""
        with self.lock:
            self.left[run.requests.key] = max(self.left[run.requests.key], run.token)

    def stuck(self) -> list[Run]:
        """What still runs although it was told to stop some time ago."""
        late = time.monotonic() - STUCK
        return [run for run in self.all_held() if not run.ended and run.told is not None and run.told <= late]

    def look_for_stuck(self) -> None:
        """Warns of each once, and again when nothing but such runs is left."""
        with self.looking:
            self._look_for_stuck()

    def _look_for_stuck(self) -> None:
        found = self.stuck()
        if self.stopping:
            return
        places = self.options.concurrency
        for run in found:
            if not run.warned:
                run.warned = True
                log.warning(
                    "%s still runs, %s after it was told to stop (%s), and holds one of %d places: let its "
                    "handler call context.check(), or give what it waits for a timeout; where neither can "
                    "be, processes can be killed: mode='processes', interrupt='kill'",
                    *(journal.who(run), shown(time.monotonic() - (run.told or 0)), run.context._stop, places),
                    extra={"job_id": run.id, "job_name": run.job.name},
                )
        if len(found) >= places and not self.all_stuck:
            self.all_stuck = True
            log.error(
                "%s does nothing more: all %d places are held by jobs that do not stop: %s; start it again",
                *(self.name, places, journal.some(found)),
            )
        self.all_stuck = len(found) >= places

    def find(self, board: str, token: int) -> Run | None:
        """The run of a claim of which the server has published something. A claim may arrive after that: a
        heartbeat then asks what it was.
        """
        with self.lock:
            run = self.held.get((board, token))
            if run is None and token > self.seen[board]:
                self.early[board] = max(self.early[board], token)
            return run

    def listens(self) -> None:
        """Told by the listener: it is subscribed. Heartbeats ask for what the server published before that:
        one now, and one when the claim under way arrives, as its jobs may have been claimed before that, too.
        """
        with self.lock:
            if self.asked:
                for board, seen in self.seen.items():
                    self.early[board] = max(self.early[board], seen + 1)
        for sender in self.each_sender():
            sender.beat_soon()

    def each_sender(self) -> list[Sender]:
        return [*dict.fromkeys(self.senders.values())]

    def all_held(self) -> list[Run]:
        with self.lock:
            return list(self.held.values())

    # Stopping

    def fail(self, error: BaseException) -> None:
        """Something that no waiting heals: the worker stops, and `run` raises it."""
        if self.failure is None:
            self.failure = error
        self.ask_to_stop()

    def ask_to_stop(self) -> None:
        self.wants_stop.set()

    def claim_no_more(self) -> None:
        with self.lock:
            self.stopping = True
            self.changed.notify_all()

    def go_home(self) -> list[Run]:
        """Gives back what has not begun; tells the handlers that the end is near, and returns their runs. No
        claim may wait any more: it would get what is given back.
        """
        with self.lock:
            self.stopping = self.going_home = True
            runs = [run for run in self.held.values() if not run.ended]
        self.pool.going_home(runs)
        back = [*self.cut, *self.pool.drain()]
        for run in back:
            self.finished(run, GiveBack("the worker stops"))
        return [run for run in runs if run not in back]

    def cut_off(self, run: Run) -> None:
        """Told by the pool: the caller's event loop has ended a run. The worker stops, and then gives the job
        back.
        """
        with self.lock:
            if not self.going_home:
                self.cut.append(run)
                self.ask_to_stop()
                return
        self.finished(run, GiveBack("the worker stops"))

    def wait_idle(self, timeout: float) -> bool:
        """Whether all handlers have returned within so many seconds."""
        with self.lock:
            return self.changed.wait_for(lambda: not self.busy and not self.asked, timeout)

    def abandon_all(self) -> list[Run]:
        """Gives back all that still runs, and stops the handlers; which there were."""
        runs = [run for run in self.all_held() if not run.ended]
        for run in runs:
            run.context._stopped_by(GoHome("the worker stops"))
            self.pool.interrupt(run)
            self.finished(run, GiveBack("the worker stops"))
        return runs

    def wait_sent(self, timeout: float) -> bool:
        """Whether all ends were taken within so many seconds."""
        for sender in self.each_sender():
            sender.hurry()
        with self.lock:
            return self.changed.wait_for(lambda: not self.held, timeout)
