"""A worker over the shards of a cluster while a node with some of them is away."""

from __future__ import annotations

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

SHARDS = 6


class Shop:
    """A sharded board over three nodes, one of which goes away."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.board = self.connected()
        self.lost: Server = cluster.owner(self.board.boards[0].key)
        self.gone = [one for one in self.board.boards if cluster.owner(one.key) is self.lost]
        self.here = [one for one in self.board.boards if one not in self.gone]

    def connected(self) -> ShardedBoard:
        client = self.cluster.client(decode_responses=False, socket_timeout=1.0)
        return ShardedBoard("jobs", client, shards=SHARDS)

    def post(self, boards: list[Board], each: int = 3, **options: object) -> list[str]:
        return [one.post(f"{one.key} {n}", retain="1h", **options) for one in boards for n in range(each)]

    def count(self, state: str) -> int:
        """Of the shards that are there."""
        return sum(one.count(state=state) for one in self.here)

    def back(self) -> None:
        self.lost.start()
        for one in self.cluster.primaries:
            wait_until(lambda one=one: self.cluster.state(one)["cluster_state"] == "ok", 60)
        wait_until(lambda: [one.count() for one in self.gone], 60)


@pytest.fixture
def shop(cluster: Cluster) -> Iterator[Shop]:
    yield Shop(cluster)


def kill(server: Server) -> None:
    server.kill()


def silence(server: Server) -> None:
    """It takes connections, and answers nothing."""
    os.kill(server.process.pid, signal.SIGSTOP)


@pytest.fixture(params=[kill, silence])
def goes(request, shop: Shop) -> Iterator[object]:
    yield request.param
    if shop.lost.process is not None:
        os.kill(shop.lost.process.pid, signal.SIGCONT)


def test_jobs_of_other_shards_are_claimed_and_ended(shop, goes, work, until) -> None:
    done = []
    shop.board.handler()(lambda context, payload: done.append(payload))
    worker = work(shop.board, concurrency=2, lease="3s")
    shop.post(shop.board.boards, 1)
    until(lambda: len(done) == SHARDS, what="it works everywhere")
    goes(shop.lost)
    for turn in range(1, 4):
        shop.post(shop.here)
        more = 3 * turn * len(shop.here)
        until(lambda more=more: len(done) == SHARDS + more, 15, what="claimed")
        until(lambda more=more: shop.count("complete") == len(shop.here) + more, 5, what="told")
    assert worker.thread.is_alive()


def test_what_is_held_of_other_shards_is_kept(shop, goes, work, until) -> None:
    """Ends and heartbeats: no lease lapses. Those of the shard that is away are told when it comes back."""
    began, done, end = [], [], threading.Event()

    @shop.board.handler()
    def handler(context, payload):
        began.append(payload)
        end.wait(60)
        done.append(payload)

    worker = work(shop.board, concurrency=SHARDS, lease="1500ms")
    ids = shop.post(shop.board.boards, 1)
    until(lambda: len(began) == SHARDS, what="all run")
    goes(shop.lost)
    time.sleep(4)
    assert shop.count("claimed") == len(shop.here)
    end.set()
    until(lambda: shop.count("complete") == len(shop.here), 5, what="told")
    history = [one.history(id) for one, id in zip(shop.board.boards, ids) if one in shop.here]
    assert not [event for events in history for event in events if event["event"] == "lapsed"]
    assert worker.thread.is_alive()


def test_ends_of_the_shard_that_was_away_are_told(shop, work, until, caplog) -> None:
    began, end = [], threading.Event()

    @shop.board.handler()
    def handler(context, payload):
        began.append(payload)
        end.wait(60)

    work(shop.board, concurrency=SHARDS, lease="1m")
    shop.post(shop.board.boards, 1)
    until(lambda: len(began) == SHARDS, what="all run")
    with caplog.at_level(logging.WARNING, "jobboard.worker"):
        silence(shop.lost)
        time.sleep(0.2)
        end.set()
        until(lambda: shop.count("complete") == len(shop.here), 5, what="told")
        until(lambda: all(one.key in caplog.text for one in shop.gone), 20, what="the log names them")
        os.kill(shop.lost.process.pid, signal.SIGCONT)
        until(lambda: all(one.count(state="complete") == 1 for one in shop.gone), 20, what="told later")
        until(lambda: caplog.text.count("the server is back") == len(shop.gone), 20, what="back")
    assert sorted(began) == sorted(set(began)), "none ran twice"
    assert not [one.key for one in shop.here if one.key in caplog.text]


def test_an_end_that_cannot_be_told_leaves_room_for_others(shop, goes, work, until) -> None:
    began, end = [], threading.Event()

    @shop.board.handler()
    def handler(context, payload):
        began.append(payload)
        end.wait(60)

    work(shop.board, concurrency=1)
    shop.post(shop.gone[:1], 1)
    until(lambda: began, what="it runs")
    goes(shop.lost)
    time.sleep(1.5)
    end.set()
    shop.post(shop.here, 1)
    until(lambda: shop.count("complete") == len(shop.here), 10, what="the others' are done")
    if goes is silence:
        os.kill(shop.lost.process.pid, signal.SIGCONT)
        until(lambda: shop.gone[0].count(state="complete") == 1, 20, what="told")
        shop.post(shop.board.boards, 1)
        until(lambda: shop.count("complete") == 2 * len(shop.here), 10, what="more are done")


def test_a_shard_that_comes_back_is_worked_on(shop, work, until) -> None:
    done = []
    shop.board.handler()(lambda context, payload: done.append(payload))
    kill(shop.lost)
    worker = work(shop.board, concurrency=2, name="w", keep=50)
    shop.post(shop.here, 1)
    until(lambda: len(done) == len(shop.here), 20, what="it starts without one shard")
    shop.back()
    shop.post(shop.gone, 1)
    until(lambda: len(done) == SHARDS, 20, what="it works there, too")
    kept = [one.settings_get("retain-complete", "keep-complete") for one in shop.board.boards]
    assert {one["retain-complete"].value for one in kept} == {3_600_000}
    assert {one["keep-complete"].value for one in kept} == {50 // SHARDS}
    until(lambda: len([*shop.board.worker_list()]) == SHARDS, 20, what="registered everywhere")
    assert worker.stop() is True


def test_without_a_registration_it_comes_back_too(shop, work, until) -> None:
    done = []
    shop.board.handler()(lambda context, payload: done.append(payload))
    work(shop.board, register=False)
    shop.post(shop.board.boards, 1)
    until(lambda: len(done) == SHARDS)
    silence(shop.lost)
    time.sleep(3)
    os.kill(shop.lost.process.pid, signal.SIGCONT)
    shop.post(shop.gone, 1)
    until(lambda: len(done) == SHARDS + len(shop.gone), 20, what="it works there again")


def test_a_cancel_reaches_the_worker(shop, goes, work, until) -> None:
    """Whichever node its subscription was at. That a node is silent comes out at a heartbeat."""
    began = []

    @shop.board.handler()
    def handler(context, payload):
        began.append(payload)
        context.sleep("1m")

    work(shop.board, concurrency=SHARDS, lease="1m" if goes is kill else "15s")
    ids = shop.post(shop.board.boards, 1)
    until(lambda: len(began) == SHARDS, what="all run")
    goes(shop.lost)
    time.sleep(3)
    for one, id in zip(shop.board.boards, ids):
        if one in shop.here:
            one.cancel(id)
            until(lambda one=one: one.count(state="cancelled") == 1, 6, what="cancelled")


def test_a_burst_waits_for_the_shard_that_is_away(shop, until) -> None:
    """Until there is no job: there may be some."""
    done = []
    shop.board.handler()(lambda context, payload: done.append(payload))
    shop.post(shop.here, 2)
    kill(shop.lost)
    worker = Worker(shop.board, concurrency=2)
    thread = threading.Thread(target=worker.run, kwargs={"burst": True}, daemon=True)
    thread.start()
    until(lambda: shop.count("complete") == 2 * len(shop.here), 20, what="the others' are done")
    thread.join(2)
    assert thread.is_alive()
    shop.back()
    thread.join(20)
    assert not thread.is_alive()


def test_it_stops_while_a_shard_is_away(shop, goes, work, until) -> None:
    began, end = [], threading.Event()

    @shop.board.handler()
    def handler(context, payload):
        began.append(payload)
        end.wait(60)

    worker = work(shop.board, concurrency=SHARDS)
    shop.post(shop.board.boards, 1)
    until(lambda: len(began) == SHARDS, what="all run")
    goes(shop.lost)
    end.set()
    until(lambda: shop.count("complete") == len(shop.here), 5, what="told")
    at = time.monotonic()
    assert worker.stop(10) is True, "3 s for the ends, 3 s for the registrations"
    assert time.monotonic() - at < 9
    assert [row["worker"] for one in shop.here for row in one.worker_list()] == []


def test_all_shards_away_and_back(cluster, work, until, caplog) -> None:
    done = []
    shop = Shop(cluster)
    shop.board.handler()(lambda context, payload: done.append(payload))
    worker = work(shop.board, concurrency=2)
    shop.post(shop.board.boards, 1)
    until(lambda: len(done) == SHARDS)
    for one in cluster.primaries:
        silence(one)
    time.sleep(4)
    assert worker.thread.is_alive()
    for one in cluster.primaries:
        os.kill(one.process.pid, signal.SIGCONT)
    shop.post(shop.board.boards, 1)
    until(lambda: len(done) == 2 * SHARDS, 20, what="it works again")
    assert worker.stop() is True


def test_the_worker_of_an_async_board(shop, work, until) -> None:
    done = []
    port = shop.here[0].client.get_primaries()[0].port
    client = redis.asyncio.RedisCluster(host="127.0.0.1", port=port, socket_timeout=1.0)
    board = AsyncShardedBoard("jobs", client, shards=SHARDS)

    @board.handler()
    async def handler(context, payload) -> None:
        done.append(payload)

    work(board, lease="3s")
    shop.post(shop.board.boards, 1)
    until(lambda: len(done) == SHARDS, what="it works everywhere")
    kill(shop.lost)
    shop.post(shop.here)
    until(lambda: shop.count("complete") == 4 * len(shop.here), 15, what="claimed and ended")


def test_it_is_ready_while_a_shard_answers(shop, goes, work, until) -> None:
    shop.board.handler()(lambda context, payload: None)
    worker = work(shop.board, lease="2s", block="100ms", health_port=0).worker
    until(lambda: hasattr(worker, "health") and worker.health.ready)
    goes(shop.lost)
    time.sleep(3)
    for _ in range(20):
        assert worker.health.live and worker.health.ready
        time.sleep(0.1)
    for one in shop.cluster.primaries:
        if one is not shop.lost:
            one.kill()
    until(lambda: not worker.health.ready, 20, what="not ready without any")
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
        until(lambda: "missed" in heard, 30, what="another connection")
        (last,) = shop.post(shop.here[:1], 1)
        until(lambda: last in heard, what="heard")
