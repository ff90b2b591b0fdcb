"""One logical board over many slots: more jobs than one core or one server holds.

    python examples/sharded.py --port 7000 [--shards 12] [--workers 3] [--jobs 30000]

The port is that of a cluster's node. Shard n is the board `mails:{n}`: the hash tag spreads the shards over
the slots, and so over the nodes. A job with an id of its own always goes to the same shard: its id is unique
over all of them. A batch goes to one shard, and takes one round trip.

A worker begins at a shard of its own and stays where there is work; when none has any it waits at its home.
So give every shard a worker, or let the waits be short. With more shards than nodes, nodes can be added and
slots moved. The rates are those of Python's clients, all on one machine.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import time
import zlib
from collections import Counter
from typing import Any

import redis
from redis.crc import key_slot

Job = dict[str, Any]
Found = tuple[list[str], float]
"""The jobs that a worker has done, and when it ended."""

BATCH = 100
DONE = 300
"""Milliseconds without work after which a worker of this example goes home."""


class Sharded:
    """A board of `count` shards; claims begin at the shard `at`."""

    def __init__(self, client: redis.RedisCluster, name: str, count: int, at: int = 0) -> None:
        self.client = client
        self.at = at
        self.shards = [f"{name}:{{{number}}}" for number in range(count)]

    def shard_of(self, id: str) -> str:
        return self.shards[zlib.crc32(id.encode()) % len(self.shards)]

    def post(self, payload: str, id: str) -> str:
        """One job with an id of its own."""
        return self.client.execute_command("JOB.POST", self.shard_of(id), payload, "ID", id, "NX")

    def post_many(self, payloads: list[str]) -> list[str]:
        """A batch, to any shard; the server makes the ids, which are unique everywhere."""
        return self.client.execute_command("JOB.MPOST", random.choice(self.shards), len(payloads), *payloads)

    def claim(self, worker: str, home: int, block: int) -> tuple[str, list[Job]]:
        """A shard and its jobs: where the last ones were, else the next that has some, else wait at home."""
        for _ in self.shards:
            if jobs := self._claim(self.shards[self.at], worker):
                return self.shards[self.at], jobs
            self.at = (self.at + 1) % len(self.shards)
        return self.shards[home], self._claim(self.shards[home], worker, "BLOCK", block)

    def _claim(self, shard: str, worker: str, *wait: object) -> list[Job]:
        fields = ("FIELDS", 3, "id", "token", "payload")
        return self.client.execute_command("JOB.CLAIM", shard, worker, "COUNT", BATCH, *wait, *fields)

    def consume(self, shard: str, worker: str, jobs: list[Job]) -> None:
        ids, tokens = [job["id"] for job in jobs], [job["token"] for job in jobs]
        words = (len(ids), *ids, "TOKENS", len(tokens), *tokens)
        self.client.execute_command("JOB.MCONSUME", shard, worker, *words)

    def count(self) -> int:
        return sum(self.client.execute_command("JOB.COUNT", shard) for shard in self.shards)


def connect(port: int) -> redis.RedisCluster:
    return redis.RedisCluster(host="127.0.0.1", port=port, protocol=3, decode_responses=True)


def work(port: int, shards: int, number: int, found: multiprocessing.Queue[Found]) -> None:
    """Claims and consumes until nothing has come for a while."""
    board, name = Sharded(connect(port), "mails", shards, at=number), f"worker-{number}"
    taken: list[str] = []
    while True:
        shard, jobs = board.claim(name, number, DONE)
        if not jobs:
            break
        board.consume(shard, name, jobs)
        taken += [job["payload"] for job in jobs]
    found.put((taken, time.time()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=7000)
    parser.add_argument("--shards", type=int, default=12)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=30_000)
    arguments = parser.parse_args()
    client = connect(arguments.port)
    board = Sharded(client, "mails", arguments.shards)
    for shard in board.shards:
        client.delete(shard)
    nodes = Counter(
        client.nodes_manager.get_node_from_slot(key_slot(one.encode())).port for one in board.shards
    )
    print(f"shards: {arguments.shards} on {len(nodes)} nodes: {', '.join(map(str, nodes.values()))}")

    board.post("0", "first")
    print("the same id again:", board.post("0", "first"))
    start = time.time()
    for first in range(1, arguments.jobs, BATCH):
        board.post_many([str(number) for number in range(first, min(first + BATCH, arguments.jobs))])
    print(f"posted: {board.count()}, {arguments.jobs / (time.time() - start):,.0f} a second")

    found: multiprocessing.Queue[Found] = multiprocessing.Queue()
    words = (arguments.port, arguments.shards)
    workers = [
        multiprocessing.Process(
            target=work, args=(*words, number * arguments.shards // arguments.workers, found)
        )
        for number in range(arguments.workers)
    ]
    start = time.time()
    for worker in workers:
        worker.start()
    results = [found.get() for _ in workers]
    for worker in workers:
        worker.join()
    taken = Counter(payload for payloads, _ in results for payload in payloads)
    seconds = max(end for _, end in results) - start - DONE / 1000
    print(f"consumed: {len(taken)}, each once: {set(taken.values()) == {1}}, left: {board.count()}")
    print(f"claimed and consumed: {arguments.jobs / seconds:,.0f} a second by {arguments.workers} workers")


if __name__ == "__main__":
    main()
