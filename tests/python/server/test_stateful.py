"""A real server and a naive model of a board, driven together by random rules: restarts, kills and promotions
included. The clock is manual, every write is on disk before it is answered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from expect import error_text
from harness import Board, Server, wait_until
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

pytestmark = [pytest.mark.long, pytest.mark.one_server]

START = 3_000_000_000_000
"""Ahead of the wall clock, at which a manual clock begins after a restart: so nothing is due by then."""

BACKOFF = 100
RETRIES = 2
LIVE = {"ready", "scheduled", "claimed"}
WORKERS = st.sampled_from(["w1", "w2", "w3"])
ALWAYS = ["appendonly yes", "appendfsync always", "repl-diskless-sync yes"]


@dataclass
class Job:
    id: str
    priority: int
    order: int
    state: str
    since: int | None = None
    """When it could first run."""
    due: int = 0
    worker: str = ""
    token: int = 0
    lease_end: int = 0
    fails: int = 0
    lapsed: bool = False
    """It is ready because its lease has ended: its last worker may still come back for it."""

    def ready(self, now: int) -> None:
        self.state = "ready"
        if self.since is None:
            self.since = now


class Model:
    """A board, naively."""

    def __init__(self, now: int) -> None:
        self.now = now
        self.jobs: dict[str, Job] = {}
        self.posts = 0

    def in_states(self, *states: str) -> list[Job]:
        return [job for job in self.jobs.values() if job.state in states]

    def pass_time(self, ms: int) -> None:
        self.now += ms
        for job in self.jobs.values():
            if job.state == "claimed" and job.lease_end <= self.now:
                job.ready(job.lease_end)
                job.lapsed = True
            elif job.state == "scheduled" and job.due <= self.now:
                job.ready(job.due)

    def best(self) -> Job | None:
        ready = self.in_states("ready")
        return min(ready, key=lambda job: (-job.priority, job.since, job.order), default=None)


class Pair:
    """A primary and its replica, which change places."""

    def __init__(self, kind: str) -> None:
        module = "clock", "manual", "recovery-grace", "0"
        self.primary = Server(kind, *module, config=ALWAYS)
        self.replica = Server(kind, *module, config=ALWAYS, replicaof=self.primary)
        self.now = START

    @property
    def board(self) -> Board:
        return self.primary.board()

    def empty(self) -> None:
        self.primary.flush()
        # Never back: a promoted server holds claims that end before it was promoted.
        self.set_clock(self.now + 1)

    def set_clock(self, now: int) -> None:
        self.now = now
        # The replica too: when it is promoted it must not be ahead.
        self.replica.clock.set(now)
        self.primary.clock.set(now)

    def restart(self, kill: bool) -> None:
        """Once the log that a server begins anew after a full synchronization is whole."""

        def has_log() -> bool:
            info = self.primary.info("persistence")
            return not info["aof_rewrite_in_progress"] and not info["aof_rewrite_scheduled"]

        wait_until(has_log)
        self.primary.restart(kill=kill)
        self.primary.wait_ready()
        self.set_clock(self.now)

    def promote(self) -> None:
        self.check_same()
        self.replica.client().replicaof("NO", "ONE")
        self.primary.client().execute_command("REPLICAOF", "127.0.0.1", self.replica.port)
        self.primary, self.replica = self.replica, self.primary
        # So that each is what it is now when it starts again.
        self.primary.config = [line for line in self.primary.config if not line.startswith("replicaof")]
        self.replica.config.append(f"replicaof 127.0.0.1 {self.primary.port}")
        self.set_clock(self.now)

    def check_same(self) -> None:
        # A primary that has started again has no replica until that has noticed.
        wait_until(lambda: self.primary.info("replication")["connected_slaves"] == 1)
        self.replica.wait_synced(self.primary)
        assert self.replica.board().digest() == self.board.digest()

    def close(self) -> None:
        self.primary.check_health()
        self.replica.check_health()
        self.primary.close()
        self.replica.close()


@pytest.fixture
def pair(kind: str) -> Iterator[Pair]:
    pair = Pair(kind)
    yield pair
    pair.close()


class Machine(RuleBasedStateMachine):
    """Each rule does one thing on both, and compares what came of it."""

    pair: Pair

    def __init__(self) -> None:
        super().__init__()
        self.pair.empty()
        self.model = Model(self.pair.now)
        self.last_token = 0
        self.lost: list[tuple[str, str, int]] = []

    def one(self, draw: st.DataObject, *states: str) -> Job:
        return draw.draw(st.sampled_from(self.model.in_states(*states)))

    def has(self, *states: str) -> bool:
        return bool(self.model.in_states(*states))

    def loses(self, job: Job) -> None:
        self.lost.append((job.worker, job.id, job.token))

    @rule(priority=st.integers(-1, 2), delay=st.sampled_from([0, 0, 50, 300]))
    def post(self, priority: int, delay: int) -> None:
        model = self.model
        model.posts += 1
        job = Job(f"j{model.posts}", priority, model.posts, "scheduled", due=model.now + delay)
        if delay == 0:
            job.ready(model.now)
        model.jobs[job.id] = job
        words = ["ID", job.id, "PRIORITY", priority, "DELAY", delay, "RETRIES", RETRIES, "LAPSES", 1000]
        words += ["BACKOFF", "FIXED", BACKOFF, "JITTER", 0]
        assert self.pair.board.call("POST", job.id, *words) == job.id

    @rule(worker=WORKERS, lease=st.sampled_from([100, 400]))
    def claim(self, worker: str, lease: int) -> None:
        job, claimed = self.model.best(), self.pair.board.claim(worker, lease=lease)
        assert [c["id"] for c in claimed] == ([job.id] if job else [])
        if job:
            assert claimed[0]["token"] > self.last_token
            self.last_token = job.token = claimed[0]["token"]
            job.state, job.worker, job.lapsed = "claimed", worker, False
            job.lease_end = self.model.now + lease

    @precondition(lambda self: self.has("claimed"))
    @rule(draw=st.data(), lease=st.sampled_from([50, 500]))
    def heartbeat(self, draw: st.DataObject, lease: int) -> None:
        job = self.one(draw, "claimed")
        self.pair.board.heartbeat(job.worker, job.id, token=job.token, lease=lease)
        job.lease_end = self.model.now + lease

    @precondition(lambda self: self.has("claimed"))
    @rule(draw=st.data(), verb=st.sampled_from(["consume", "fail", "abandon"]))
    def end(self, draw: st.DataObject, verb: str) -> None:
        job, board = self.one(draw, "claimed"), self.pair.board
        self.loses(job)
        if verb == "consume":
            assert board.consume(job.worker, job.id, token=job.token) == "complete"
            # What a lost reply makes its worker ask again gets the same answer.
            assert board.consume(job.worker, job.id, token=job.token) == "complete"
            self.lost.pop()
            del self.model.jobs[job.id]
        elif verb == "fail":
            board.fail(job.worker, job.id, token=job.token)
            job.fails += 1
            job.state = "failed" if job.fails > RETRIES else "scheduled"
            job.due = self.model.now + BACKOFF
        else:
            board.abandon(job.worker, job.id, token=job.token)
            job.ready(self.model.now)

    @precondition(lambda self: self.lost)
    @rule(draw=st.data())
    def come_back_late(self, draw: st.DataObject) -> None:
        worker, id_, token = draw.draw(st.sampled_from(self.lost))
        job = self.model.jobs.get(id_)
        if job and job.token == token and job.state == "ready" and job.lapsed:
            self.pair.board.heartbeat(worker, id_, token=token, lease=100)
            job.state, job.lapsed, job.lease_end = "claimed", False, self.model.now + 100
        elif not (job and job.token == token and job.state == "claimed"):
            with pytest.raises(Exception) as refused:
                self.pair.board.heartbeat(worker, id_, token=token)
            code = error_text(refused.value).split()[0]
            assert code in {"STALE", "NOTOWNER", "NOTCLAIMED", "NOJOB", "ENDED", "CANCELLED"}

    @precondition(lambda self: self.has(*LIVE))
    @rule(draw=st.data())
    def cancel(self, draw: st.DataObject) -> None:
        job = self.one(draw, *LIVE)
        if job.state == "claimed":
            self.loses(job)
        assert self.pair.board.cancel(job.id, force=True) == ["cancelled"]
        job.state, job.lapsed = "cancelled", False

    @precondition(lambda self: self.has("failed", "cancelled"))
    @rule(draw=st.data())
    def requeue(self, draw: st.DataObject) -> None:
        job = self.one(draw, "failed", "cancelled")
        self.pair.board.requeue(job.id)
        job.since, job.fails = None, 0
        job.ready(self.model.now)

    @rule(ms=st.integers(1, 400))
    def pass_time(self, ms: int) -> None:
        ends = [job for job in self.model.in_states("claimed") if job.lease_end <= self.model.now + ms]
        [self.loses(job) for job in ends]
        self.model.pass_time(ms)
        self.pair.set_clock(self.model.now)

    @rule(what=st.sampled_from(["restart", "kill", "promote", "reload"]))
    def disturb(self, what: str) -> None:
        if what == "promote":
            self.pair.promote()
        elif what == "reload":
            self.pair.primary.client().execute_command("DEBUG", "RELOAD")
        else:
            self.pair.restart(kill=what == "kill")

    @invariant()
    def the_states_are_equal(self) -> None:
        states = {job["id"]: job["state"] for job in self.pair.board.list_all(fields=["id", "state"])}
        assert states == {job.id: job.state for job in self.model.jobs.values()}

    def teardown(self) -> None:
        self.pair.check_same()


@pytest.mark.timeout(600)
def test_a_server_does_what_the_model_does(pair) -> None:
    machine = type("Driven", (Machine,), {"pair": pair})
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    run_state_machine_as_test(
        machine,
        # A failure is told as it was found: to shrink it takes longer than to read it.
        settings=settings(
            max_examples=5,
            stateful_step_count=50,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=slow,
        ),
    )
