"""Workers that are killed, stopped and cut off: no job is lost, and none is ended by who has lost it."""

from __future__ import annotations

import logging
import os
import re
import signal
import threading
import time
from collections import Counter
from typing import Any

import jobboard
import pytest
import redis
from harness import SOON, now, past, wait_until
from harness.cluster import Cluster
from jobboard import Board, ShardedBoard
from proxy import Proxy
from redis.cache import CacheConfig


@pytest.fixture
def other(server) -> Board:
    """The same board with a handler that ends every job at once, and says which attempt it was."""
    board = Board("board", server.client(decode_responses=False))
    board.handlers.handler()(lambda context, payload: context.attempt)
    return board


@pytest.mark.every_server
@pytest.mark.parametrize(
    "words",
    [["--threads", "2", "--lease", "600ms"], ["--processes", "2", "--lease", "60s", "--session"]],
    ids=["by its lease", "by its connection"],
)
def test_jobs_of_a_killed_worker_go_to_another(jobs, other, process, work, told, until, words) -> None:
    jobs.post_many([60_000, 60_000], ids=["a", "b"], name="wait")
    first = process(*words)
    until(lambda: sorted(told()) == ["a began", "b began"], what="both run")
    first.signal(signal.SIGKILL)
    work(other)
    until(lambda: {job.state for job in jobs.list()} == {"complete"}, what="both done by the other")
    assert [jobs.result(id) for id in "ab"] == [2, 2]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def children(pid: int) -> list[int]:
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        found += [int(one) for one in open(f"/proc/{pid}/task/{task}/children").read().split()]
    return found


def test_children_end_with_a_killed_parent(jobs, process, told, until) -> None:
    jobs.post(60_000, id="a", name="wait")
    parent = process("--processes", "2")
    until(lambda: told() == ["a began"], what="it runs")
    own = children(parent.popen.pid)
    assert len([pid for pid in own if alive(pid)]) >= 2
    parent.signal(signal.SIGKILL)
    until(lambda: not any(map(alive, own)), what="children have ended")


def test_a_killed_child_costs_a_retry_and_is_replaced(jobs, process, until) -> None:
    jobs.post(None, id="a", name="die-once", backoff="10ms", retries=1)
    process("--processes", "1")
    until(lambda: jobs.get("a").state == "complete", what="complete")
    [failed] = [entry for entry in jobs.history("a") if entry["event"] == "failed"]
    assert "SIGKILL" in failed["message"]


@pytest.mark.parametrize(
    ("words", "charged"),
    [(["--threads", "2", "--lease", "10s"], [1, 1]), (["--processes", "2", "--lease", "60s"], [0, 0])],
    ids=["threads", "processes"],
)
def test_who_is_charged_when_a_job_kills_its_process(jobs, process, told, until, words, charged) -> None:
    """As docs/guides/retries.md says: in threads also the job beside it, in processes the culprit alone."""
    jobs.post(60_000, id="innocent", name="wait", timeout="1h")
    process(*words)
    until(lambda: told() == ["innocent began"], what="it runs")
    jobs.post(None, id="poison", name="die-once", retries=0)
    if charged == [0, 0]:
        until(lambda: jobs.state("poison") == "failed", what="the culprit has failed")
        assert (jobs.get("poison").kind, jobs.state("innocent")) == ("Killed", "claimed")
    until(lambda: [jobs.get(id).lapses for id in ("innocent", "poison")] == charged, what="the lapses")


def test_handlers_that_hear_nothing_are_killed(jobs, process, told, until) -> None:
    jobs.post(60_000, id="a", name="deaf")
    process("--processes", "1", "--interrupt", "kill", "--kill-after", "50ms")
    until(lambda: told() == ["a began"], what="it runs")
    jobs.cancel("a")
    until(lambda: jobs.get("a").state == "cancelled", what="cancelled")
    jobs.post(3, id="b", name="square")
    assert jobs.result("b", timeout="120s") == 9  # in a new child


def test_a_worker_that_was_stopped_too_long_is_told(jobs, process, work, told, until) -> None:
    """Its lease ends while it sleeps, another has the job: its handler hears it, its late end is refused."""
    board = Board("board", jobs.client)
    holding = threading.Event()
    board.handlers.handler()(lambda context, payload: holding.wait(60))
    jobs.post(60_000, id="a", name="wait")
    jobs.post(10_000, id="b", name="deaf")
    first = process("--threads", "2", "--lease", f"{SOON}ms")
    until(lambda: sorted(told()) == ["a began", "b began"], what="both run")
    end = now() + 10_000
    first.signal(signal.SIGSTOP)
    second = work(board, lease="1m")
    until(lambda: [job.worker for job in jobs.list(state="claimed")] == [second.name] * 2, what="taken over")
    past(end)
    first.signal(signal.SIGCONT)
    until(lambda: {"a Lost", "b done"} <= set(told()), what="the handlers know")
    until(
        lambda: re.search("deaf b lost in .*: its end was refused: NOTOWNER", first.text),
        what="the late consume is refused",
    )
    assert [job.worker for job in jobs.list(state="claimed")] == [second.name] * 2
    holding.set()


@pytest.fixture
def proxied(server):
    """A board over a connection that can be cut, and the proxy."""
    proxy = Proxy(server.port)
    client = redis.Redis(port=proxy.port, socket_timeout=30)
    yield Board("board", client), proxy
    proxy.close()
    client.close()


def test_a_cut_connection_costs_nothing(proxied, work, until) -> None:
    board, proxy = proxied
    began, go_on = threading.Event(), threading.Event()

    @board.handler()
    def handler(context, payload):
        began.set()
        go_on.wait(60)
        context.progress(50)
        return context.flush("30s")

    board.post(1, id="a", name="x")
    work(board, lease="30s")
    assert began.wait(120)
    until(lambda: [*board.worker_list()], what="the sender is connected")
    proxy.refusing = True
    assert proxy.cut() >= 2
    go_on.set()
    time.sleep(0.3)
    proxy.refusing = False
    until(lambda: board.get("a").state == "complete", what="complete")
    job = board.get("a")
    assert (job.result, job.attempt, board.stats()["lapsed"]) == (True, 1, 0)
    began.clear()
    board.post(1, id="b", name="x")
    assert began.wait(120), "it does not claim any more"


def test_an_idle_worker_is_not_blamed_for_an_outage(proxied, work, until, caplog) -> None:
    """What it claims then is kept as if its lease were short, and is no older than the claim."""
    board, proxy = proxied
    board.handler()(lambda context, payload: context.flush("30s"))
    with caplog.at_level(logging.WARNING, "jobboard.worker"):
        running = work(board, lease=None)
        [sender] = until(lambda: running.worker._engine).each_sender()
        until(lambda: sender.beaten is not None, what="the first heartbeat")
        until(lambda: time.monotonic() - sender.beaten > 1.5, what="a while without jobs")
        beaten = sender.beaten
        assert proxy.cut() >= 1
        id = board.post(1, name="x", retain="1m")
        until(lambda: board.get(id).state == "complete", what="complete")
        until(lambda: sender.beaten > beaten, what="a heartbeat after the outage")
    assert "no heartbeat" not in caplog.text


class Failing:
    """A function that raises what redis-py does when a connection goes while it is made or read from."""

    def __init__(self, function, times: int) -> None:
        self.function, self.left = function, times

    def __call__(self, *words, **options):
        if self.left:
            self.left -= 1
            raise AttributeError("'NoneType' object has no attribute 'readline'")
        return self.function(*words, **options)


def test_a_fault_of_the_client_library_is_a_lost_connection(server, work, until, monkeypatch) -> None:
    """The threads that claim, send and listen go on: a cancel is heard long before the next heartbeat."""
    board = Board("board", server.client(decode_responses=False))
    began = threading.Event()

    @board.handler()
    def handler(context, payload):
        began.set()
        while not context.cancelled:
            time.sleep(0.01)

    pool = board.client.connection_pool
    connect = Failing(pool.get_connection, 3)
    hear = Failing(redis.client.PubSub.get_message, 2)
    send = Failing(redis.Connection.send_packed_command, 3)
    monkeypatch.setattr(pool, "get_connection", connect)
    sends = {"send_packed_command": lambda *words, **options: send(*words, **options)}
    monkeypatch.setattr(pool, "connection_class", type("Faulty", (redis.Connection,), sends))
    monkeypatch.setattr(redis.client.PubSub, "get_message", lambda *words, **options: hear(*words, **options))
    work(board, lease="1m")
    Board("board", server.client(decode_responses=False)).post(1, id="a", name="x")
    assert began.wait(120)
    until(lambda: hear.left == connect.left == send.left == 0, what="it has failed")
    channel = f"job.worker:board:{board.get('a').worker}"
    until(lambda: server.client().pubsub_numsub(channel)[0][1], what="it listens again")
    board.cancel("a")
    until(lambda: board.get("a").state == "cancelled", what="cancelled")


@pytest.mark.parametrize("prefetch", [0, 50])
def test_cuts_under_load_lose_nothing_and_repeat_nothing(server, proxied, work, until, prefetch) -> None:
    """Each cut comes when some jobs more have run, and the last ones wait until all cuts have come."""
    board, proxy = proxied
    runs: Counter = Counter()
    cuts, most = 0, 10

    @board.handler()
    def handler(context, payload):
        until(lambda: cuts == most or len(runs) < 100 * (cuts + 1), 60, what="the next cut")
        runs.update([payload])

    direct = Board("board", server.client(decode_responses=False))
    direct.post_many(range(1500))
    work(board, concurrency=4, prefetch=prefetch, lease="1m")
    while cuts < most:
        until(lambda: len(runs) >= 100 * cuts + 50, what="jobs run")  # noqa: B023
        until(lambda: proxy.cut(), what="it is connected")
        cuts += 1
    until(lambda: direct.count() == 0, what="all done")
    assert (len(runs), max(runs.values())) == (1500, 1)


@pytest.mark.parametrize("concurrency", [1, 3])
def test_what_comes_after_a_cut_has_its_own_lease(server, proxied, work, until, concurrency) -> None:
    """Also of a backlog, where each claim brings as many jobs as it asks for. The leases of those that a
    claim without an answer may have taken are taken for short: nobody knows how old they are.
    """
    board, proxy = proxied
    leases: list[int] = []

    @board.handler()
    def handler(context, number):
        if number == 5:
            proxy.cut()
        leases.append(context._reports.lease)

    direct = Board("board", server.client(decode_responses=False))
    direct.settings_set({"lease": "1h"})
    direct.post_many(range(100))
    work(board, concurrency=concurrency, lease=None)
    until(lambda: direct.count() == 0, what="all done")
    assert set(leases[:5]) == set(leases[80:]) == {3_600_000}, leases


def test_jobs_of_a_claim_that_the_server_reads_late_are_found(server, proxied, work, until) -> None:
    """A server may answer a claim before it reads one that was sent earlier, over a connection that broke."""
    board, proxy = proxied
    direct = Board("board", server.client(decode_responses=False))
    numbers: list[int] = []
    late: dict[int, int] = {}

    @board.handler()
    def handler(context, number):
        numbers.append(number)
        if number == 5:
            proxy.cut()
        if not late and context._reports.lease < 3_600_000:
            [job] = direct.claim(context.worker)
            late[job.payload] = len(numbers)

    direct.settings_set({"lease": "1h"})
    direct.post_many(range(20))
    work(board, concurrency=1, lease=None)
    until(lambda: direct.count() == 0, what="all done")
    [(number, at)] = late.items()
    assert sorted(numbers) == [*range(20)]
    assert numbers[at] == number, numbers


@pytest.mark.every_server
def test_a_promoted_replica_is_worked_on(fresh_server, work, until) -> None:
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    proxy = Proxy(primary.port)
    board = Board("board", redis.Redis(port=proxy.port, socket_timeout=30))
    runs: Counter = Counter()
    go_on = threading.Event()

    @board.handler()
    def handler(context, payload):
        if len(runs) > 100:
            go_on.wait(60)
        runs[payload] += 1

    board.post_many(range(600))
    replica.wait_synced(primary)
    try:
        work(board, concurrency=4, lease="5s")
        until(lambda: len(runs) > 100, what="it works")
        replica.wait_synced(primary)
        primary.kill()
        with replica.connect() as client:
            client.execute_command("REPLICAOF", "NO", "ONE")
        proxy.target = replica.port
        proxy.cut()
        go_on.set()
        until(lambda: board.count() == 0, 60, what="all done on the promoted one")
        assert len(runs) == 600
        # What the replica had not received runs again: at most what was under way.
        assert sum(runs.values()) < 700
    finally:
        board.client.close()
        proxy.close()


@pytest.mark.parametrize("mode", ["burst", "service"])
def test_ends_that_the_server_has_lost_are_made_again(server, proxied, until, mode) -> None:
    """As a failover loses them: the server still counts the claims of jobs that we have ended. A worker that
    holds nothing asks for them, long before their leases end.
    """
    board, proxy = proxied
    began: list[int] = []
    first, second = threading.Event(), threading.Event()

    @board.handler()
    def handler(context, payload):
        began.append(payload)
        (first if payload < 4 else second).wait(60)
        return context.attempt

    direct = server.client()
    jobs = Board("board", server.client(decode_responses=False))
    ids = jobs.post_many(range(8))
    worker = jobboard.Worker(board, concurrency=4, lease="10m")
    thread = threading.Thread(target=worker.run, kwargs={"burst": mode == "burst"}, daemon=True)
    thread.start()
    try:
        until(lambda: len(began) == 4, what="half of them run")
        direct.copy("board", "before")
        first.set()
        until(lambda: len(began) == 8 and jobs.count(state="complete") == 4, what="their ends are told")
        direct.copy("before", "board", replace=True)
        proxy.cut()
        second.set()
        until(lambda: not jobs.count() or not thread.is_alive(), what="the worker has done what it does")
        assert [job and (job.state, job.result) for job in map(jobs.get, ids)] == [("complete", 1)] * 8
        assert sorted(began) == sorted([*range(8), *range(8)])
    finally:
        second.set()
        worker.stop()
        thread.join(120)
    assert not thread.is_alive()


def test_a_claim_whose_end_is_refused_is_left_to_its_lease(server, work, until) -> None:
    """It is not run again and again by the worker that cannot end it."""
    admin = server.client()
    admin.execute_command("ACL", "SETUSER", "w", "on", "nopass", "~*", "&*", "+@all", "-job.consume")
    board = Board("board", redis.Redis(port=server.port, username="w", password="x"))
    runs: Counter = Counter()

    @board.handler(noretry=())
    def handler(context, payload):
        runs[payload] += 1

    board.post(1)
    work(board, concurrency=2, lease="10m", block="10ms")
    until(lambda: runs[1] == 1, what="it runs")
    asked = lambda: admin.info("commandstats")["cmdstat_job.claim"]["calls"]  # noqa: E731
    before = asked()
    until(lambda: asked() >= before + 10, what="the worker has asked ten times more")
    assert runs == Counter({1: 1})
    board.client.close()
    admin.execute_command("ACL", "DELUSER", "w")


def test_a_failover_in_a_cluster(server_kind, work) -> None:
    cluster = Cluster(server_kind, replicas=1)
    try:
        board = ShardedBoard("jobs", cluster.client(decode_responses=False), shards=4)
        runs: Counter = Counter()

        @board.handler()
        def handler(context, payload):
            time.sleep(0.001)
            runs[payload] += 1

        board.post_many(range(1200), ids=[f"j{n}" for n in range(1200)])
        work(board, concurrency=4, lease="5s")
        wait_until(lambda: len(runs) > 100, what="it works")
        owner = cluster.owner(board.place("j1"))
        cluster.failover(cluster.replica_of(owner))
        wait_until(lambda: board.count() == 0, 60, what="all done")
        assert len(runs) == 1200
    finally:
        cluster.close()


def test_a_fault_of_the_clusters_client_is_a_lost_connection(server_kind, work, monkeypatch) -> None:
    cluster = Cluster(server_kind)
    try:
        board = ShardedBoard("jobs", cluster.client(decode_responses=False), shards=2)
        runs: Counter = Counter()

        @board.handler()
        def handler(context, payload):
            runs[payload] += 1

        board.post_many(range(20))
        ask = Failing(board.client.execute_command, 3)
        monkeypatch.setattr(board.client, "execute_command", ask)
        work(board, concurrency=2)
        wait_until(lambda: len(runs) == 20, what="all done")
        assert ask.left == 0
    finally:
        cluster.close()


@pytest.mark.every_server
def test_a_worker_outlives_its_server(fresh_server, work, until) -> None:
    server = fresh_server(appendonly=True, config=["appendfsync always"])
    board = jobboard.Board("board", redis.Redis(port=server.port))
    runs: list = []
    board.handlers.handler()(lambda context, payload: runs.append(payload))
    board.post(1)
    work(board)
    until(lambda: runs == [1], what="the first")
    server.restart(kill=True)
    board.post(2)
    until(lambda: runs == [1, 2], what="the second, after the restart")
    board.client.close()


@pytest.mark.parametrize("cached", [False, True])
def test_connections_that_go_silent_are_given_up(fresh_server, work, until, monkeypatch, cached) -> None:
    """A machine that is gone says nothing. Only redis-py from version 8 on has a timeout by itself."""
    server = fresh_server(kind="redis82") if cached else fresh_server()  # 7.0 is too old for redis-py's cache
    options: dict[str, Any] = {"protocol": 3, "cache_config": CacheConfig()} if cached else {}
    jobs = Board("board", server.client(decode_responses=False))
    monkeypatch.setattr("jobboard.worker.worker.LOOK", 0.05, raising=False)
    monkeypatch.setattr("jobboard.worker.worker.SILENT", 0.5, raising=False)
    proxy = Proxy(server.port)
    board = Board("board", redis.Redis(port=proxy.port, socket_timeout=None, **options))
    board.handlers.handler()(lambda context, payload: payload)
    work(board, block="100ms")
    jobs.post(1, id="first", retain="1m")
    until(lambda: jobs.state("first") == "complete", what="it works")
    proxy.silence()
    jobs.post(1, id="a", retain="1m")
    until(lambda: jobs.state("a") == "complete", what="it works again")
    proxy.close()
