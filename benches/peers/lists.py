"""The reliable list of redis-work-queue: two lists, a key for the item, one for the lease."""

from __future__ import annotations

import sys
import time

import sampling
from wire import Wire, encode

import peers
from peers import PAYLOAD, PLACE

NAME = "bench"
WAITING, CLAIMED = f"{NAME}:queue", f"{NAME}:processing"


def item(id: bytes) -> bytes:
    return NAME.encode() + b":item:" + id


def lease(id: bytes) -> bytes:
    return NAME.encode() + b":leased_by_session:" + id


class Peer(peers.Peer):
    title = "redis-work-queue"
    made = 0

    @classmethod
    def version(cls) -> str:
        return peers.package("redis-work-queue")

    def post(self, count: int) -> None:
        commands = []
        for _ in range(count):
            self.made += 1
            id = b"%032x" % self.made
            commands += [
                encode("MULTI"),
                encode("SET", item(id), PAYLOAD),
                encode("LPUSH", WAITING, id),
                encode("EXEC"),
            ]
        self.wire.pipeline(commands, self.depth)

    def claim(self, count: int) -> list:
        ids = self.wire.pipeline([encode("RPOPLPUSH", WAITING, CLAIMED)] * count, self.depth)
        commands = (
            command
            for id in ids
            for command in (encode("GET", item(id)), encode("SETEX", lease(id), 3600, b"s" * 32))
        )
        self.wire.pipeline(commands, self.depth)
        return ids

    def end(self, held: list) -> None:
        """LREM goes through the list of the claimed."""
        commands = (
            command
            for id in held
            for command in (
                encode("LREM", CLAIMED, 0, id),
                encode("MULTI"),
                encode("DEL", item(id)),
                encode("DEL", lease(id)),
                encode("EXEC"),
            )
        )
        self.wire.pipeline(commands, self.depth)

    def blocked(self) -> sampling.Blocked:
        wire = Wire(self.server.port)

        def take(id: bytes) -> None:
            wire.call("GET", item(id))
            wire.call("SETEX", lease(id), 3600, b"s" * 32)

        return sampling.Blocked(
            wire,
            encode("BRPOPLPUSH", WAITING, CLAIMED, 0),
            lambda: self.post(1),
            lambda: sampling.info(self.wire, "clients")["blocked_clients"] == "1",
            take,
        )

    def recoveries(self, samples: int) -> list[float]:
        """Somebody runs the client's light_clean once in 100 ms; leases are whole seconds."""
        import contextlib
        import io

        import redis
        from redis_work_queue import KeyPrefix, WorkQueue

        client, queue, found = redis.Redis(port=self.server.port), WorkQueue(KeyPrefix(NAME)), []
        for _ in range(max(samples // 200, 3)):
            self.post(1)
            queue.lease(client, 1)
            end, got = time.time() + 1, None
            while not got:
                time.sleep(0.1)
                with contextlib.redirect_stdout(io.StringIO()):
                    queue.light_clean(client)
                got = queue.lease(client, 10, block=False)
            found.append((time.time() - end) * 1000)
            queue.complete(client, got)
        client.close()
        return found

    def worker(self) -> list[str]:
        return [sys.executable, str(PLACE.parents[1] / "benches" / "work.py"), "lists", str(self.server.port)]

    def left(self) -> int:
        return self.wire.call("LLEN", WAITING) + self.wire.call("LLEN", CLAIMED)
