"""Workers under one name: after a kill, and side by side."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable

import pytest
import redis
from jobboard import Board, Worker
from jobboard.worker.connection import connection_of
from redis.crc import key_slot


@pytest.mark.parametrize("register", [True, False])
def test_a_restart_under_a_name_gets_its_jobs_at_once_as_new_claims(jobs, register) -> None:
    jobs.post(5, id="a")
    [before] = jobs.claim("w1", lease="1h")
    seen = []
    jobs.handlers.handler()(lambda context, payload: seen.append((context.attempt, context.token, payload)))
    Worker(jobs, name="w1", register=register).run(burst=True)
    [(attempt, token, payload)] = seen
    assert (attempt, payload) == (2, 5)
    assert token > before.token
    assert [entry["event"] for entry in jobs.history("a")][:4] == ["posted", "claimed", "lapsed", "claimed"]
    assert list(jobs.worker_list()) == []


def test_a_name_of_its_own_leaves_the_claims_of_others_alone(jobs) -> None:
    jobs.post(1, id="a")
    jobs.claim("w1", lease="1h")
    jobs.handlers.handler()(lambda context, payload: None)
    Worker(jobs).run(burst=True)
    assert (jobs.get("a").worker, jobs.get("a").attempt) == ("w1", 1)


def test_a_job_that_kills_its_worker_fails_although_that_starts_again_under_its_name(
    app_board, process
) -> None:
    app_board.settings_set({"lapses": 2})
    app_board.post(None, name="kill-worker", id="poison")
    for _ in range(3):
        assert process("--threads", "1", "--name", "w1").wait() == -signal.SIGKILL
    found = app_board.get("poison")
    if found.state != "failed":  # the last loss is seen when the next worker starts
        ended = process("--threads", "1", "--name", "w1", "--burst")
        assert ended.wait() == 0, ended.text
        found = app_board.get("poison")
    assert (found.state, found.kind, found.attempt) == ("failed", "lapsed", 3)


def two_workers_of_one_name(
    board, work, until, listen: bool, told: Callable[[], bool] = lambda: True
) -> None:
    """Two workers of one name hold a job each, and never one together. They end when `told` is so."""
    go_on, began = threading.Event(), []

    @board.handler()
    def handler(context, payload):
        began.append((context.job.id, context.token))
        go_on.wait(60)
        context.check()

    board.post(1, id="a")
    options = {"name": "w1", "concurrency": 2, "lease": "10m", "listen": listen}
    work(board, block="30s" if listen else "50ms", **options)
    until(lambda: len(began) == 1, what="the first runs it")
    if listen:  # its claim gets the job at the moment of the loss, before it can ask for it
        until(lambda: board.client.pubsub_numsub("job.worker:board:w1")[0][1] == 1, what="it listens")
        until(lambda: board.client.info("jobboard")["jobboard_blocked_claims"] == 1, what="it waits")
    # The second takes it over, and both go on claiming while they hold a job.
    second = work(board, block="50ms", **options)
    until(lambda: len(began) == 2, what="one of them runs it anew")
    board.post_many(range(2), ids=["b", "c"])
    until(lambda: len(began) == 4, what="each place is taken")
    assert [job for job, _ in began].count("a") == 2
    assert len({token for _, token in began}) == 4
    until(told, what="the first has heard of its loss")
    go_on.set()
    until(lambda: board.count(state="claimed") == 0, what="all have ended")
    assert second.worker.done + board.stats()["lapsed"] >= 1
    assert board.stats()["lapsed"] == 1


@pytest.mark.parametrize("listen", [True, False])
def test_two_workers_of_one_name_never_run_a_job_under_one_token(jobs, work, until, caplog, listen) -> None:
    caplog.set_level(logging.WARNING, "jobboard.worker")

    def warnings() -> int:
        return sum("has another worker of this name started?" in text for text in caplog.messages)

    two_workers_of_one_name(jobs, work, until, listen, lambda: not listen or warnings() > 0)
    assert not listen or warnings() == 1


def test_the_same_holds_in_a_cluster(cluster, work, until) -> None:
    board = Board("board", cluster.client(decode_responses=False))
    board.post(5, id="old")
    [before] = board.claim("w1", lease="1h")
    seen = []
    board.handlers.handler()(lambda context, payload: seen.append((context.attempt, context.token)))
    Worker(board, name="w1").run(burst=True)
    [(attempt, token)] = seen
    assert attempt == 2 and token > before.token
    two_workers_of_one_name(Board("other", board.client), work, until, listen=False)


def test_a_claim_in_a_cluster_whose_connection_breaks_is_not_sent_again_unseen(cluster, until) -> None:
    """The worker has to know of it: it asks for what it may have missed."""
    board = Board("board", cluster.client(decode_responses=False))
    [shard] = board.requests()
    connection, ends = connection_of(board.client), []
    board.post(1, queue="other")

    def claim() -> None:
        with pytest.raises(redis.ConnectionError):
            connection.ask([["JOB.CLAIM", shard.key, "w1", "BLOCK", 600_000]])
        ends.append(True)

    thread = threading.Thread(target=claim, daemon=True)
    thread.start()
    [server] = [
        one for one in cluster.primaries if cluster.ask(one, "CLUSTER", "COUNTKEYSINSLOT", key_slot(b"board"))
    ]

    def blocked() -> int:
        return int(server.info("clients")["blocked_clients"])

    until(lambda: blocked() == 1, what="it waits")
    cluster.ask(server, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    until(lambda: ends, what="the break is told")
    assert blocked() == 0


def test_a_worker_that_may_not_register_leaves_what_was_claimed_under_its_name(jobs, server, caplog) -> None:
    jobs.post(1, id="old")
    jobs.claim("w1", lease="1h")
    jobs.post(2, id="new")
    seen = []
    jobs.handlers.handler()(lambda context, payload: seen.append(context.id))
    jobs.client.execute_command("ACL", "SETUSER", "default", "-job.worker")
    try:
        Worker(jobs, name="w1").run(burst=True)
    finally:
        jobs.client.execute_command("ACL", "SETUSER", "default", "+job.worker")
    assert seen == ["new"]
    assert jobs.get("old").attempt == 1
    assert any("comes back when its leases end" in text for text in caplog.messages)
