"""What a worker does with jobs and handlers, in each mode."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from types import SimpleNamespace

import jobboard
import pytest
from harness import SOON
from jobboard import Board, Complete, Next, Worker
from jobboard.worker.children import ProcessPool
from jobboard.worker.engine import Engine
from jobboard.worker.listener import Listener
from jobboard.worker.threads import ThreadPool
from redis.backoff import NoBackoff
from redis.client import PubSub
from redis.retry import Retry


@pytest.fixture
def app(app):
    """With the queues that handlers name."""

    def make(**options):
        return app(**{"queues": None, **options})

    make.board, make.mode, make.told = app.board, app.mode, app.told
    return make


def test_results_and_reports(app) -> None:
    board = app.board
    ids = board.post_many(range(20), name="square", retain="1m")
    board.post(None, id="r", name="report", meta={"a": "b"})
    assert app(queues=[]).run(burst=True) is True
    assert [job.result for job in board.get_many(ids)] == [n * n for n in range(20)]
    job = board.get("r")
    assert (job.result, job.progress, job.stage) == ("True b", 100.0, "begun")
    assert (job.payload, job.meta) == ({"from": 25}, {"a": "b", "shard": "3"})
    logged = [entry["message"] for entry in board.history("r") if entry["event"] == "log"]
    assert logged == ["first line", "second line"]
    assert board.get("another").reason.startswith("no handler of jobs without a name")
    assert list(board.worker_list()) == []  # it has deregistered


def test_children_are_other_processes(app) -> None:
    board = app.board
    ids = board.post_many([0] * 4, name="pid", retain="1m")
    app().run(burst=True)
    pids = {job.result for job in board.get_many(ids)}
    assert (os.getpid() in pids) == (app.mode != "processes")


@pytest.mark.parametrize("how", ["cancel", "release", "delete"])
def test_a_handler_is_stopped_when_its_job_is_called_off(app, work, until, how) -> None:
    board = app.board
    name = "wait-async" if app.mode == "asyncio" else "wait"
    board.post(30_000, id="a", name=name)
    board.post(30_000, id="b", name="heedful")
    worker = app()
    thread = threading.Thread(target=worker.run)
    thread.start()
    until(lambda: set(app.told()) == {"a began", "b began"}, what="both run")
    if how == "release":
        board.pause()
    getattr(board, how)("a", "b")
    reason = "CancelRequested" if how == "cancel" else "Lost"
    until(lambda: f"a {reason}" in app.told(), what="a stopped")
    expected = {"cancel": "cancelled", "release": "ready", "delete": None}[how]
    until(lambda: (board.get("a") and board.get("a").state) == expected, what=expected)
    until(lambda: (board.get("b") and board.get("b").state) == expected, what=expected)
    worker.stop()
    thread.join(120)
    assert not thread.is_alive()


@pytest.mark.parametrize("how", ["await", "release", "delete", "force", "timeout"])
def test_the_place_of_a_run_that_sends_no_end_is_taken_again(app, until, how) -> None:
    """With one place, and no other end that could claim along."""
    board = app.board
    suffix = "-async" if app.mode == "asyncio" else ""
    if how == "await":
        board.post({"within": "1h"}, id="a", name=f"approval{suffix}")
    else:
        timeout = "100ms" if how == "timeout" else None
        board.post(30_000, id="a", name=f"wait{suffix}", timeout=timeout, retries=0)
    worker = app(concurrency=1)
    thread = threading.Thread(target=worker.run)
    thread.start()
    if how == "timeout":  # it may be over before the handler begins
        until(lambda: board.state("a") != "ready", what="it was claimed")
    else:
        until(lambda: app.told(), what="it runs")
    board.post(3, id="b", name="square", priority=1, retain="1m")
    if how in ("release", "delete"):
        getattr(board, how)("a")
    if how == "force":
        board.cancel("a", force=True)
    until(lambda: board.state("b") == "complete", what="the next job")
    worker.stop()
    worker.stop()  # one that was released runs again
    thread.join(120)
    assert not thread.is_alive()


def test_a_handler_that_looks_at_flags_is_not_interrupted(app, until) -> None:
    board = app.board
    board.post(None, id="a", name="heedful")
    worker = app(interrupt="flag")
    thread = threading.Thread(target=worker.run)
    thread.start()
    until(lambda: app.told() == ["a began"], what="it runs")
    board.cancel("a")
    until(lambda: app.told() == ["a began", "a saw it"], what="it saw the cancel")
    until(lambda: board.get("a").state == "cancelled", what="cancelled")
    worker.stop()
    thread.join(120)


def test_prefetched_jobs_travel_in_batches(app) -> None:
    board = app.board
    board.post_many(range(500), name="square")
    worker = app(prefetch=100)
    worker.run(burst=True)
    assert (worker.done, board.count()) == (500, 0)


@pytest.fixture
def run(jobs):
    """Runs one handler over the board until there is no job; the record of job `a` after that."""

    def run(handler, payload=1, mode="threads", **options):
        jobs.handlers = jobboard.Handlers()
        jobs.handlers.handler(noretry=options.pop("noretry", ()))(handler)
        post = {"retries": 3, "retain": "1m", **options.pop("post", {})}
        jobs.post(payload, id="a", **post)
        Worker(jobs, mode=mode, lease="30s", **options).run(burst=True)
        return jobs.get("a")

    return run


def raising(error):
    def handler(context, payload):
        raise error

    return handler


def test_a_failure_is_told_with_its_traceback(run, jobs) -> None:
    job = run(raising(ValueError("no ünits")), post={"backoff": "1h"})
    assert (job.state, job.kind, job.message, job.left) == ("scheduled", "ValueError", "no ünits", 2)
    [log] = [entry["message"] for entry in jobs.history("a") if entry["event"] == "log"]
    assert log.startswith("Traceback") and log.rstrip().endswith("ValueError: no ünits")


def test_long_messages_are_cut(run) -> None:
    job = run(raising(ValueError("ü" * 10_000)), tracebacks=False)
    assert len(job.message.encode()) <= 4096 and job.message.endswith("...")


def test_retry_with_a_delay(run, jobs) -> None:
    job = run(raising(jobboard.Retry("busy", delay="1m")))
    assert (job.state, job.kind, job.message) == ("scheduled", "Retry", "busy")
    assert 50_000 < job.due - job.modified <= 60_000


@pytest.mark.parametrize("error", [jobboard.NoRetry("never"), KeyError("never")], ids=["raised", "declared"])
def test_failures_that_are_not_tried_again(run, error) -> None:
    job = run(raising(error), noretry=(KeyError,))
    assert (job.state, job.kind) == ("failed", type(error).__name__)


def test_trash_and_abandon(run, jobs) -> None:
    assert run(raising(jobboard.Trash("no picture"))).reason == "no picture"
    jobs.delete("a")
    job = run(raising(jobboard.Abandon("not now", delay="1m")))
    assert (job.state, job.reason, job.left) == ("scheduled", "not now", 3)


def test_a_payload_that_cannot_be_read_fails_for_good(run, jobs) -> None:
    Board("board", jobs.client, codec="raw").post("{", id="b", retries=5)
    run(lambda context, payload: payload)
    assert (jobs.get("b").state, jobs.get("b").kind) == ("failed", "PayloadError")


def test_a_result_that_cannot_be_encoded_is_a_failure(run) -> None:
    job = run(lambda context, payload: object())
    assert (job.state, job.kind) == ("failed", "PayloadError")


def test_a_result_that_the_server_refuses_is_a_failure(server, run) -> None:
    with server.configured(jobboard__max_payload=100):
        job = run(lambda context, payload: "x" * 200, post={"backoff": "1h"})
    assert (job.state, job.kind) == ("scheduled", "Refused")


def test_results_share_a_command_and_one_that_is_refused_spoils_no_other(server, jobs, work, until) -> None:
    begun, done = threading.Barrier(5), threading.Event()

    @jobs.handler()
    def handler(context, payload):
        begun.wait(120)
        done.wait(120)
        return "x" * payload

    server.client().config_resetstat()
    ids = jobs.post_many([1, 2, 200, 0], retain="1m")
    with server.configured(jobboard__max_payload=100):
        worker = work(jobs, concurrency=4).worker
        begun.wait(120)
        [sender] = worker._engine.each_sender()
        with sender.sending:
            done.set()
            until(lambda: len(sender.ends) == 4, what="all have ended")
        sender.hurry()
        until(lambda: jobs.get(ids[2]).kind == "Refused", what="one is refused")
    assert [jobs.get(id).result for id in ids] == ["x", "xx", None, ""]
    assert server.client().info("commandstats")["cmdstat_job.mconsume"]["failed_calls"] == 1


def test_a_job_can_go_on_to_another_queue(run, jobs) -> None:
    def handler(context, payload):
        if context.job.queue == "default":
            return Next("second", payload + 1, name="second")
        return payload

    assert run(handler, queues=[]).result == 2


@pytest.mark.parametrize("name", [b"bytes", "\udcff"])
def test_a_cancel_is_heard_whatever_the_board_is_called(server, work, until, name) -> None:
    board = jobboard.Board(name, server.client(decode_responses=False))

    @board.handler("long")
    def long(context, payload):
        while True:
            context.check()
            time.sleep(0.01)

    channel = os.fsencode(f"job.worker:{os.fsdecode(name)}:w")
    work(board, lease="1h", name="w")
    board.post(1, id="a", name="long")
    until(lambda: board.client.pubsub_numsub(channel)[0][1] == 1, what="it listens")
    until(lambda: board.get("a").state == "claimed")
    board.cancel("a")
    until(lambda: board.get("a").state == "cancelled")


@pytest.mark.parametrize("arrives", ["before", "after"])
def test_a_cancel_while_redis_py_subscribes_anew_is_heard(server, work, until, monkeypatch, arrives) -> None:
    """It does so by itself, and raises nothing. The claim may arrive after that."""
    client = server.client(decode_responses=False, retry=Retry(NoBackoff(), 3))
    board, killed, began = jobboard.Board("jobs", client), threading.Event(), threading.Event()
    subscribe, claimed = PubSub.on_connect, Engine.claimed

    def late(self, connection):
        if killed.is_set():
            assert board.cancel("a")
        subscribe(self, connection)

    def kill() -> None:
        killed.set()
        assert server.client().execute_command("CLIENT", "KILL", "TYPE", "pubsub") == 1

    def takes(self, shard, found, *rest, **more):
        if found and arrives == "after":
            [sender] = self.each_sender()
            until(lambda: sender.beat_due > time.monotonic(), what="the first heartbeat is over")
            beaten = sender.beaten
            kill()
            until(lambda: sender.beaten != beaten, what="the heartbeat, which knows of no job")
            time.sleep(0.1)
        return claimed(self, shard, found, *rest, **more)

    @board.handler()
    def handler(context, payload):
        began.set()
        while True:
            context.check()
            time.sleep(0.01)

    monkeypatch.setattr(PubSub, "on_connect", late)
    monkeypatch.setattr(Engine, "claimed", takes)
    work(board, lease="1h", name="w")
    until(lambda: client.pubsub_numsub("job.worker:jobs:w")[0][1] == 1, what="it listens")
    board.post(1, id="a")
    if arrives == "before":
        assert began.wait(60)
        kill()
    until(lambda: board.state("a") == "cancelled", what="cancelled")


@pytest.mark.parametrize("how", ["cancel", "delete"])
def test_what_is_published_before_the_claim_arrives_is_heard(jobs, work, until, monkeypatch, how) -> None:
    heard = threading.Event()
    hear, claimed = Listener._hear, Engine.claimed

    def hears(self, message):
        hear(self, message)
        if message["type"] == "message":
            heard.set()

    def late(self, shard, found, *rest, **more):
        if found and not heard.is_set():
            getattr(jobs, how)("a")
            assert heard.wait(120)
        return claimed(self, shard, found, *rest, **more)

    @jobs.handler()
    def handler(context, payload):
        while context.id == "a":
            context.check()
            time.sleep(0.005)

    monkeypatch.setattr(Listener, "_hear", hears)
    monkeypatch.setattr(Engine, "claimed", late)
    work(jobs, lease="1h", concurrency=1, name="w")
    until(lambda: jobs.client.pubsub_numsub("job.worker:board:w")[0][1] == 1, what="it listens")
    jobs.post_many([1, 2], ids=["a", "b"], retain="1h")
    until(lambda: jobs.state("b") == "complete", what="it has left the first one")


def test_a_cancelled_job_can_be_completed_all_the_same(jobs, work, until) -> None:
    at = threading.Event()

    @jobs.handler()
    def handler(context, payload):
        at.set()
        while not context.cancelled:
            time.sleep(0.005)
        return Complete("done", force=True)

    jobs.post(1, id="a")
    work(jobs)
    assert at.wait(120)
    jobs.cancel("a")
    until(lambda: jobs.get("a").state == "complete", what="complete")
    assert jobs.get("a").result == "done"


def test_stopped_is_not_swallowed_by_except_exception(jobs, work, until) -> None:
    at = threading.Event()

    @jobs.handler()
    def handler(context, payload):
        at.set()
        while True:
            try:
                context.sleep("5ms")
            except Exception:
                pass

    jobs.post(1, id="a")
    work(jobs)
    assert at.wait(120)
    jobs.cancel("a")
    until(lambda: jobs.get("a").state == "cancelled", what="cancelled")


def test_async_handlers_share_the_callers_loop(jobs) -> None:
    async def main() -> None:
        here = asyncio.get_running_loop()
        at_once = most = 0
        full = asyncio.Event()

        @jobs.handler("a")
        async def handler(context, payload):
            nonlocal at_once, most
            assert asyncio.get_running_loop() is here
            at_once += 1
            most = max(most, at_once)
            if at_once == 10:
                full.set()
            await asyncio.wait_for(full.wait(), 30)
            at_once -= 1
            return payload

        ids = jobs.post_many(range(20), name="a", retain="1m")
        assert await Worker(jobs, mode="asyncio", concurrency=10).serve(burst=True)
        assert [job.result for job in jobs.get_many(ids)] == list(range(20))
        assert most == 10

        jobs.post(1, id="b", name="a", delay="50ms")
        task = asyncio.create_task(Worker(jobs, mode="asyncio", stop_within="5s").serve())
        for _ in range(3000):
            if jobs.get("b").state == "complete":
                break
            await asyncio.sleep(0.01)
        assert jobs.get("b").state == "complete"
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


@pytest.fixture
def clocked_jobs(clocked):
    """A board whose time stands still."""
    return Board("board", clocked.client(decode_responses=False))


def test_one_heartbeat_keeps_all_leases(clocked_jobs, clock, work, until) -> None:
    jobs, go_on = clocked_jobs, threading.Event()
    jobs.handlers.handler()(lambda context, payload: go_on.wait(60))
    jobs.post_many(range(12))
    running = work(jobs, concurrency=4, prefetch=8, lease=f"{SOON}ms")
    until(lambda: jobs.count(state="claimed") == 12, what="all are held")
    for _ in range(3):
        end = clock.advance(SOON * 2 // 3) + SOON
        until(lambda: {job.deadline for job in jobs.list(state="claimed")} == {end}, what="kept")  # noqa: B023
    go_on.set()
    until(lambda: jobs.count(state="complete") == 12, what="all done")
    assert running.stop() is True
    stats = jobs.stats()
    assert (stats["completed"], stats["lapsed"]) == (12, 0)


@pytest.mark.parametrize("where", ["task", "setting"])
def test_the_lease_of_a_job_holds_and_is_kept(clocked_jobs, clock, work, until, where) -> None:
    jobs, go_on = clocked_jobs, threading.Event()
    options = {"lease": f"{SOON}ms"} if where == "task" else {}
    if where == "setting":
        jobs.settings_set({"lease": f"{SOON}ms"})

    @jobs.task(**options)
    def short() -> None:
        go_on.wait(60)

    @jobs.task(lease="1h")
    def long() -> None:
        go_on.wait(60)

    [a, b] = [short.post(), long.post()]
    running = work(jobs, concurrency=4, lease=None)
    until(lambda: jobs.count(state="claimed") == 2, what="both are held")
    first = jobs.get(a)
    assert first.deadline - first.claimed == SOON
    held = jobs.get(b)
    assert held.deadline - held.claimed == 3_600_000
    # The registration, which would end all leases, lasts as long.
    until(
        lambda: [row for row in jobs.worker_list() if row["expires"] - row["registered"] >= 3_600_000],
        what="the registration follows",
    )
    for _ in range(3):
        end = clock.advance(SOON * 2 // 3) + SOON
        until(lambda: jobs.get(a).deadline == end, what="kept")  # noqa: B023
    go_on.set()
    until(lambda: jobs.count(state="claimed") == 0, what="both done")
    assert running.stop() is True
    assert jobs.stats()["lapsed"] == 0


@pytest.mark.parametrize("how", ["check", "step"])
@pytest.mark.parametrize("name", ["late", "late-async"])
def test_nothing_is_begun_after_a_pause_before_it_is_known_whose_the_job_is(app, until, name, how) -> None:
    board = app.board
    worker = app(concurrency=1, lease="1h", listen=False, queues=[])
    running = threading.Thread(target=worker.run, kwargs={"signals": False})
    running.start()
    try:
        # A heartbeat would say whose it is; the first comes at once.
        until(lambda: worker._engine and all(one.heard for one in worker._engine.each_sender()))
        board.post(how, name=name, id="a")
        for told in (["a began"], ["a began", "a Lost", "a began"]):
            until(lambda: app.told() == told, what="it runs")  # noqa: B023
            if len(told) == 1:
                board.release("a")
            for run in worker._engine.all_held():
                run.context._ours_until = 0.0
            board.client.rpush("go", 1)
        until(lambda: board.count(state="claimed") == 0 and board.count(state="ready") == 0, what="done")
    finally:
        worker.stop()
        running.join(120)
    assert app.told() == ["a began", "a Lost", "a began", "a charged"]


def test_a_worker_that_names_a_lease_has_that_for_all(jobs, work, until) -> None:
    go_on = threading.Event()

    @jobs.task(lease="1h")
    def long() -> None:
        go_on.wait(60)

    id = long.post()
    work(jobs, lease="2m")
    until(lambda: jobs.state(id) == "claimed", what="held")
    assert jobs.get(id, fields=["deadline", "claimed"]).deadline - jobs.get(id).claimed < 3_600_000
    go_on.set()
    until(lambda: jobs.count(state="claimed") == 0, what="done")


def test_a_quiet_worker_gets_nothing(jobs, work, until) -> None:
    jobs.handlers.handler()(lambda context, payload: None)
    running = work(jobs, role="mailer")
    until(
        lambda: [row["worker"] for row in jobs.worker_list(role="mailer")] == [running.name],
        what="registered",
    )
    jobs.worker_quiet(running.name)
    jobs.post(1, id="a")
    time.sleep(0.1)
    assert jobs.get("a").state == "ready"
    jobs.worker_resume(running.name)
    until(lambda: jobs.get("a").state == "complete", what="done")


def test_what_no_waiting_heals_ends_the_worker(jobs, work) -> None:
    jobs.client.set("board", "no board")
    jobs.handlers.handler()(lambda context, payload: None)
    running = work(jobs)
    running.thread.join(120)
    assert "WRONGTYPE" in str(running.result)


def test_options_are_checked(jobs) -> None:
    with pytest.raises(ValueError, match="no tasks"):
        Worker(jobs)
    jobs.handlers.handler()(lambda context, payload: None)
    with pytest.raises(ValueError, match="mode must be one of"):
        Worker(jobs, mode="fibres")
    with pytest.raises(ValueError, match="needs mode='processes'"):
        Worker(jobs, interrupt="kill")
    with pytest.raises(ValueError, match="module:board"):
        Worker(jobs, mode="processes").run(burst=True)
    with pytest.raises(ValueError, match="already"):
        jobs.handlers.handler()(lambda context, payload: None)


@pytest.mark.parametrize("way", ["plain", "complete", "next"])
def test_what_the_codec_takes_need_not_be_picklable(app, way) -> None:
    app.board.post(way, id="a", name="unpicklable", retain="1m", retries=0)
    assert app().run(burst=True)
    job = app.board.get("a")
    assert (job.state, job.message, job.result) == ("complete", None, {"a": 1})


def test_what_an_ended_run_says_is_not_the_next_ones(app) -> None:
    board = app.board
    board.post("a's", id="a", name="leave-a-thread")
    board.post("b's", id="b", name="while-it-speaks", retain="1m", retries=0)
    assert app(concurrency=1).run(burst=True)
    assert app.told() == ["a Lost"]
    job = board.get("b")
    assert (job.state, job.result, job.payload, job.meta) == ("complete", "b", "b's", None)


@pytest.mark.parametrize("how, state", [("awaited", "failed"), ("alone", "complete"), ("stop", "complete")])
def test_the_loop_outlives_an_exit_in_a_task(app, how, state) -> None:
    board = app.board
    board.post(how, id="a", name="exit-in-a-task", retain="1m", retries=0)
    board.post(3, id="b", name="square", retain="1m")
    assert app(concurrency=1).run(burst=True)
    job = board.get("a")
    assert (job.state, job.kind) == (state, "SystemExit" if state == "failed" else None)
    assert board.get("b").result == 9
    # Python logs the traceback of a task that nobody awaited when it frees it. Python 3.11 fails if that is
    # while a later test parses source (github.com/python/cpython/issues/106905).
    gc.collect()


@pytest.mark.parametrize("pool", [ThreadPool, ProcessPool])
def test_a_run_that_ends_while_it_is_stopped_is_no_fault(pool) -> None:
    class Ending:
        context, looks = SimpleNamespace(_raises=True), 0

        @property
        def interrupt(self):
            self.looks += 1
            return (lambda: None) if self.looks == 1 else None

    pool.interrupt(None, Ending())
