"""SIGTERM: what runs may finish within the deadline; then it is given back, which costs it nothing."""

from __future__ import annotations

import os
import signal
import time

import jobboard
import pytest

MODES = {"threads": ["--threads", "1"], "processes": ["--processes", "1"], "asyncio": ["--tasks", "1"]}


@pytest.mark.parametrize("mode", MODES)
def test_what_runs_finishes_and_the_rest_is_given_back(jobs, process, told, until, mode) -> None:
    name = "held-up-async" if mode == "asyncio" else "held-up"
    jobs.post_many([None] * 3, ids=["a", "b", "c"], name=name)
    worker = process(*MODES[mode], "--prefetch", "2", "--stop-within", "2m")
    until(lambda: told() == ["a began"] and jobs.count(state="claimed") == 3, what="one runs, two wait")
    worker.signal(signal.SIGTERM)
    until(lambda: jobs.count(state="ready") == 2, what="the rest is given back while it runs")
    jobs.client.rpush("go", "on")
    assert worker.wait() == 0
    assert told() == ["a began", "a done"]
    assert {job.id: (job.state, job.left) for job in jobs.list()} == {
        "a": ("complete", 10),
        "b": ("ready", 10),
        "c": ("ready", 10),
    }
    assert list(jobs.worker_list()) == []


@pytest.mark.parametrize("mode", MODES)
def test_what_does_not_finish_in_time_is_given_back(jobs, process, told, until, mode) -> None:
    name = "wait-async" if mode == "asyncio" else "wait"
    jobs.post(60_000, id="a", name="deaf" if mode == "processes" else name)
    worker = process(*MODES[mode], "--stop-within", "200ms")
    until(lambda: told() == ["a began"], what="it runs")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 1, "long before the handler would have ended"
    job = jobs.get("a")
    assert (job.state, job.left, job.reason) == ("ready", 10, "the worker stops")
    assert jobs.stats()["lapsed"] == 0


def test_a_plain_handler_beside_the_loop_does_not_keep_the_process(jobs, process, told, until) -> None:
    jobs.post(60_000, id="a", name="deaf")
    worker = process("--tasks", "2", "--stop-within", "0s")
    until(lambda: told() == ["a began"], what="it runs")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 1
    assert jobs.get("a").state == "ready"


def test_a_worker_can_run_again(jobs, work, until) -> None:
    jobs.handlers.handler()(lambda context, payload: None)
    running = work(jobs)
    until(lambda: list(jobs.worker_list()), what="registered")
    assert running.stop() is True
    jobs.post(1)
    assert running.worker.run(burst=True) is True
    assert jobs.count() == 0


def test_a_second_signal_hurries(jobs, process, told, until) -> None:
    jobs.post(60_000, id="a", name="deaf")
    worker = process("--threads", "1", "--stop-within", "60s")
    until(lambda: told() == ["a began"], what="it runs")
    worker.signal(signal.SIGTERM)
    until(lambda: "stops" in worker.text, what="it stops")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 1
    assert jobs.get("a").state == "ready"


def test_a_signal_that_another_thread_gets_stops_it_at_once(jobs, process) -> None:
    """The main thread sleeps on, and Python calls handlers of signals there alone."""
    jobs.post(1, id="a", name="hit")
    assert process("--threads", "1").wait() == 0
    assert jobs.get("a").state == "complete"


def test_an_idle_worker_stops_on_a_signal(jobs, process, until) -> None:
    worker = process("--threads", "1")
    until(lambda: list(jobs.worker_list()), what="registered")
    worker.signal(signal.SIGINT)
    assert worker.wait() == 0


def test_a_worker_that_waits_for_jobs_stops_at_once(jobs, work, until) -> None:
    jobs.handlers.handler()(lambda context, payload: None)
    running = work(jobs, block="35s")
    until(lambda: jobs.client.info("clients")["blocked_clients"] == 1, what="it waits")
    assert running.stop(within=25) is True


def test_handlers_see_that_the_worker_goes_home(jobs, work, until) -> None:
    seen = []

    @jobs.handler()
    def handler(context, payload):
        seen.append("began")
        while not context.going_home:
            time.sleep(0.005)
        seen.append("going home")

    jobs.post(1, id="a")
    running = work(jobs)
    until(lambda: seen, what="it runs")
    assert running.stop() is True
    assert seen == ["began", "going home"]
    assert jobs.get("a").state == "complete"


def test_a_server_that_is_silent_does_not_hold_it_up(fresh_server, work, until, monkeypatch) -> None:
    """Its client has no socket timeout, as in redis-py before version 8."""
    monkeypatch.setattr("jobboard.worker.sender.DEREGISTER_WITHIN", 0.2, raising=False)
    monkeypatch.setattr("jobboard.worker.worker.LEAVE_WITHIN", 0.2)
    server, began = fresh_server(), []
    board = jobboard.Board("board", server.client(decode_responses=False, socket_timeout=None))
    board.handlers.handler()(lambda context, payload: began.append(1) or context.sleep("1h"))
    board.post(1)
    running = work(board, lease="300ms", stop_within="0s")
    until(lambda: began, what="it runs")
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        time.sleep(0.5)  # a heartbeat is under way
        assert running.stop() is False
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
