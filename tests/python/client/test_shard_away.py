"""A worker over the shards of a cluster while a node with some of them is away."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest
import redis
from harness import Server, wait_until
from harness.cluster import Cluster
from jobboard import Board, ShardedBoard, Worker

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
        until(lambda: len(done) == SHARDS + 3 * turn * len(shop.here), 15, what="claimed")
        until(lambda: shop.count("complete") == (1 + 3 * turn) * len(shop.here), 5, what="told")
    assert worker.thread.is_alive()
