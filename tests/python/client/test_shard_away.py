"""A worker over the shards of a cluster while a node with some of them is away."""

from __future__ import annotations

import itertools
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest
import redis.asyncio
from harness import Server, wait_until
from harness.cluster import Cluster
from jobboard import AsyncShardedBoard, Board, ShardedBoard, Worker
from jobboard.board import events
from jobboard.worker import sender
from jobboard.worker.connection import ClusterConnection

from .conftest import Running

SHARDS = 6
FOR_EVER = 600.0
"""A socket timeout: what waits for a silent node then fails its test."""


@pytest.fixture
def cluster(server_kind: str) -> Iterator[Cluster]:
    """A node that was silent for longer than this would refuse commands for some seconds afterwards."""
    cluster = Cluster(server_kind, config=["cluster-node-timeout 60000"])
    yield cluster
    try:
        cluster.check_health()
    finally:
        cluster.close()


class Shop:
    """A sharded board over three nodes, one of which goes away. `board` is the worker's. The test has a
    client of its own: after a short timeout redis-py would repeat a post that may have been done.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.board = self.connected(socket_timeout=1.0)
        self.boards = self.connected().boards
        self.lost: Server = cluster.owner(self.boards[0].key)
        self.gone = [one for one in self.boards if cluster.owner(one.key) is self.lost]
        self.here = [one for one in self.boards if one not in self.gone]
        self.serial = itertools.count()

    def connected(self, **arguments: object) -> ShardedBoard:
        client = self.cluster.client(decode_responses=False, **arguments)
        return ShardedBoard("jobs", client, shards=SHARDS)

    def post(self, boards: list[Board], each: int = 3) -> list[str]:
        """No two payloads are alike."""
        return [
            one.post(f"{one.key} {next(self.serial)}", retain="1h") for one in boards for _ in range(each)
        ]

    def count(self, state: str) -> int:
        """Of the shards that are there."""
        return sum(one.count(state=state) for one in self.here)

    def back(self) -> None:
        self.lost.start()
        for one in self.cluster.primaries:
            wait_until(lambda one=one: self.cluster.state(one)["cluster_state"] == "ok")
        wait_until(lambda: [one.count() for one in self.gone])


@pytest.fixture
def shop(cluster: Cluster) -> Iterator[Shop]:
    yield Shop(cluster)


def kill(server: Server) -> None:
    server.kill()


def silence(server: Server) -> None:
    """It takes connections, and answers nothing."""
    os.kill(server.process.pid, signal.SIGSTOP)
    os.waitpid(server.process.pid, os.WUNTRACED)


def misses(worker: Running, boards: list[Board]) -> bool:
    """Whether the worker has found out that all of these are away."""
    return all(worker.worker._engine.senders[one.key].failed for one in boards)


@pytest.fixture(params=[kill, silence])
def goes(request, shop: Shop) -> Iterator[object]:
    yield request.param
    if shop.lost.process is not None:
        os.kill(shop.lost.process.pid, signal.SIGCONT)


def test_jobs_of_other_shards_are_claimed_and_ended(shop, goes, work, until, monkeypatch) -> None:
    done = []
    shop.board.handler()(lambda context, payload: done.append(payload))
    worker = work(shop.board, concurrency=2, lease="1m")
    shop.post(shop.boards, 1)
    until(lambda: len(done) == SHARDS, what="it works everywhere")
    goes(shop.lost)
    until(lambda: misses(worker, shop.gone), what="it misses the node")
    asked, ask = [], ClusterConnection.ask

    def listed(self, commands):
        if threading.current_thread().name == "jobboard-claimer":
            asked.extend(words[1] for words in commands)
        return ask(self, commands)

    monkeypatch.setattr(ClusterConnection, "ask", listed)
    for turn in range(1, 4):
        shop.post(shop.here)
        more = 3 * turn * len(shop.here)
        until(lambda more=more: len(set(done)) == SHARDS + more, what="claimed")
        until(lambda more=more: shop.count("complete") == len(shop.here) + more, what="told")
    assert len([key for key in asked if key in {one.key for one in shop.gone}]) <= 1, "one was under way"
    assert worker.thread.is_alive()


def test_what_is_held_of_other_shards_is_kept(shop, goes, work, until) -> None:
    """Ends and heartbeats: no lease lapses. Those of the shard that is away are told when it comes back."""
    began, end = [], threading.Event()
    board = shop.connected(socket_timeout=FOR_EVER)

    @board.handler()
    def handler(context, payload):
        began.append(payload)
        end.wait(FOR_EVER)

    worker = work(board, concurrency=SHARDS, lease="20s")
    ids = shop.post(shop.boards, 1)
    until(lambda: len(began) == SHARDS, what="all run")
    goes(shop.lost)

    def deadlines():
        return [one.get(id).deadline or 0 for one, id in zip(shop.boards, ids) if one in shop.here]

    for _ in range(2):
        before = deadlines()
        until(lambda before=before: all(map(int.__lt__, before, deadlines())), what="all leases are kept")
    end.set()
    until(lambda: shop.count("complete") == len(shop.here), what="told")
    history = [one.history(id) for one, id in zip(shop.boards, ids) if one in shop.here]
    assert not [event for events in history for event in events if event["event"] == "lapsed"]
    assert worker.thread.is_alive()


def test_ends_of_the_shard_that_was_away_are_told(shop, work, until, caplog) -> None:
    began, end = [], threading.Event()
    board = shop.connected(socket_timeout=5.0)  # the others may stand still for a moment

    @board.handler()
    def handler(context, payload):
        began.append(payload)
        end.wait(FOR_EVER)

    work(board, concurrency=SHARDS, lease="1h")
    shop.post(shop.boards, 1)
    until(lambda: len(began) == SHARDS, what="all run")
    with caplog.at_level(logging.WARNING, "jobboard.worker"):
        silence(shop.lost)
        end.set()
        until(lambda: shop.count("complete") == len(shop.here), what="told")
        until(lambda: all(one.key in caplog.text for one in shop.gone), what="the log names them")
        os.kill(shop.lost.process.pid, signal.SIGCONT)
        until(lambda: all(one.count(state="complete") == 1 for one in shop.gone), what="told later")
        until(lambda: caplog.text.count("the server is back") == len(shop.gone), what="back")
    assert sorted(began) == sorted(set(began)), "none ran twice"
    assert not [one.key for one in shop.here if one.key in caplog.text]


def test_an_end_that_cannot_be_told_leaves_room_for_others(shop, goes, work, until) -> None:
    began, end = [], threading.Event()

    @shop.board.handler()
    def handler(context, payload):
        began.append(payload)
        end.wait(FOR_EVER)

    work(shop.board, concurrency=1)
    shop.post(shop.gone[:1], 1)
    until(lambda: began, what="it runs")
    goes(shop.lost)
    time.sleep(1.5)
    end.set()
    shop.post(shop.here, 1)
    until(lambda: shop.count("complete") == len(shop.here), what="the others' are done")
    if goes is silence:
        os.kill(shop.lost.process.pid, signal.SIGCONT)
        until(lambda: shop.gone[0].count(state="complete") == 1, what="told")
        shop.post(shop.boards, 1)
        until(lambda: shop.count("complete") == 2 * len(shop.here), what="more are done")


def test_a_shard_that_comes_back_is_worked_on(shop, work, until) -> None:
    done = []
    shop.board.handler()(lambda context, payload: done.append(payload))
    kill(shop.lost)
    worker = work(shop.board, concurrency=2, name="w", keep=50)
    shop.post(shop.here, 1)
    until(lambda: len(done) == len(shop.here), what="it starts without one shard")
    shop.back()
    shop.post(shop.gone, 1)
    until(lambda: len(done) == SHARDS, what="it works there, too")
    kept = [one.settings_get("retain-complete", "keep-complete") for one in shop.boards]
    assert {one["retain-complete"].value for one in kept} == {3_600_000}
    assert {one["keep-complete"].value for one in kept} == {50 // SHARDS}
    until(lambda: all(list(one.worker_list()) for one in shop.boards), what="registered everywhere")
    assert worker.stop(120) is True


def test_without_a_registration_it_comes_back_too(shop, work, until) -> None:
    done = []
    shop.board.handler()(lambda context, payload: done.append(payload))
    worker = work(shop.board, register=False)
    shop.post(shop.boards, 1)
    until(lambda: len(done) == SHARDS)
    silence(shop.lost)
    until(lambda: misses(worker, shop.gone), what="it misses the node")
    os.kill(shop.lost.process.pid, signal.SIGCONT)
    shop.post(shop.gone, 1)
    until(lambda: len(done) == SHARDS + len(shop.gone), what="it works there again")


def test_a_cancel_reaches_the_worker(shop, goes, work, until) -> None:
    """Whichever node its subscription was at. That a node is silent comes out at a heartbeat."""
    began = []

    @shop.board.handler()
    def handler(context, payload):
        began.append(payload)
        context.sleep("1h")

    worker = work(shop.board, concurrency=SHARDS, lease="1h")
    ids = shop.post(shop.boards, 1)
    until(lambda: len(began) == SHARDS, what="all run")
    goes(shop.lost)
    if goes is silence:
        for one in shop.gone:
            worker.worker._engine.senders[one.key].beat_soon()

    nodes = [node for node in shop.cluster.primaries if node is not shop.lost]

    def listens(one: Board) -> bool:
        words = ("PUBSUB", "NUMSUB", f"job.worker:{one.key}:{worker.name}")
        return any(shop.cluster.ask(node, *words)[1] for node in nodes)

    until(lambda: all(map(listens, shop.here)), what="it listens at another node")
    for one, id in zip(shop.boards, ids):
        if one in shop.here:
            one.cancel(id)
            until(lambda one=one: one.count(state="cancelled") == 1, what="cancelled")


def test_a_burst_waits_for_the_shard_that_is_away(shop, until) -> None:
    """Until there is no job: there may be some."""
    done = []
    shop.board.handler()(lambda context, payload: done.append(payload))
    shop.post(shop.here, 2)
    kill(shop.lost)
    worker = Worker(shop.board, concurrency=2, lease="1m")
    thread = threading.Thread(target=worker.run, kwargs={"burst": True}, daemon=True)
    thread.start()
    until(lambda: shop.count("complete") == 2 * len(shop.here), what="the others' are done")
    thread.join(2)
    assert thread.is_alive()
    shop.back()
    thread.join(120)
    assert not thread.is_alive()


def test_it_stops_while_a_shard_is_away(shop, goes, work, until, monkeypatch) -> None:
    monkeypatch.setattr(sender, "DEREGISTER_WITHIN", 10.0)  # those that are there may take a while
    began, end = [], threading.Event()
    board = shop.connected(socket_timeout=FOR_EVER)

    @board.handler()
    def handler(context, payload):
        began.append(payload)
        end.wait(FOR_EVER)

    worker = work(board, concurrency=SHARDS, lease="1h", stop_within="1s")
    shop.post(shop.boards, 1)
    until(lambda: len(began) == SHARDS, what="all run")
    goes(shop.lost)
    end.set()
    until(lambda: shop.count("complete") == len(shop.here), what="told")
    until(lambda: not worker.worker._engine.busy, what="all have returned")
    assert worker.stop(120) is True, "3 s for the ends, 10 s for the registrations"
    until(lambda: not [row for one in shop.here for row in one.worker_list()], what="not registered")


def test_all_shards_away_and_back(cluster, work, until, caplog) -> None:
    done = []
    shop = Shop(cluster)
    shop.board.handler()(lambda context, payload: done.append(payload))
    worker = work(shop.board, concurrency=2)
    shop.post(shop.boards, 1)
    until(lambda: len(done) == SHARDS)
    for one in cluster.primaries:
        silence(one)
    until(lambda: any(misses(worker, [one]) for one in shop.boards), what="it misses a node")
    assert worker.thread.is_alive()
    for one in cluster.primaries:
        os.kill(one.process.pid, signal.SIGCONT)
    shop.post(shop.boards, 1)
    until(lambda: len(done) == 2 * SHARDS, what="it works again")
    assert worker.stop(120) is True


def test_the_worker_of_an_async_board(shop, work, until) -> None:
    done = []
    port = shop.here[0].client.get_primaries()[0].port
    client = redis.asyncio.RedisCluster(host="127.0.0.1", port=port, socket_timeout=1.0)
    board = AsyncShardedBoard("jobs", client, shards=SHARDS)

    @board.handler()
    async def handler(context, payload) -> None:
        done.append(payload)

    work(board, lease="1m")
    shop.post(shop.boards, 1)
    until(lambda: len(done) == SHARDS, what="it works everywhere")
    kill(shop.lost)
    shop.post(shop.here)
    until(lambda: shop.count("complete") == 4 * len(shop.here), what="claimed and ended")


def test_it_is_ready_while_a_shard_answers(shop, goes, work, until) -> None:
    shop.board.handler()(lambda context, payload: None)
    running = work(shop.board, lease="1m", block="100ms", health_port=0)
    worker = running.worker
    until(lambda: hasattr(worker, "health") and worker.health.ready)
    goes(shop.lost)
    until(lambda: misses(running, shop.gone), what="it misses the node")
    at = time.monotonic()
    until(lambda: worker._engine.heard > at, what="the others answer")
    assert worker.health.live and worker.health.ready
    worker.health.patience = 1.0
    time.sleep(1)
    until(lambda: worker.health.ready, what="ready though one was silent for longer")
    for one in shop.cluster.primaries:
        if one is not shop.lost:
            one.kill()
    until(lambda: not worker.health.ready, what="not ready without any")
    assert worker.health.live


def test_events_are_heard_from_another_node(shop, goes, until, monkeypatch) -> None:
    """Every node of a cluster hears of all, and the one that the listener was connected to is gone."""
    monkeypatch.setattr(events, "PING_EVERY", 0.2)
    monkeypatch.setattr(events, "SILENCE", 3.0)
    shop.board.settings_set({"events": "posted"})
    heard = []
    with shop.board.events() as found:
        threading.Thread(
            target=lambda: heard.extend(event.id or event.event for event in found), daemon=True
        ).start()
        until(lambda: shop.post(shop.here, 1) and heard, what="it listens")
        goes(shop.lost)
        posted = []

        def heard_again():  # what is posted before it listens elsewhere is not heard
            posted.extend(shop.post(shop.here[:1], 1))
            return set(posted) & set(heard)

        until(heard_again, what="another connection")
        assert "missed" in heard
