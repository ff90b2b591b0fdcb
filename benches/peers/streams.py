"""Redis Streams with a consumer group: XADD, XREADGROUP, XACK and XDEL."""

from __future__ import annotations

import sys
import time

import sampling
from wire import Wire, encode

import peers
from peers import PAYLOAD, PLACE

KEY = "bench"


def read(count: int, *more: object) -> tuple:
    return ("XREADGROUP", "GROUP", "g", "c", "COUNT", count, *more, "STREAMS", KEY, ">")


class Peer(peers.Peer):
    title = "Redis Streams"

    @classmethod
    def version(cls) -> str:
        return "of the server"

    def setup(self) -> None:
        if not self.wire.call("EXISTS", KEY):
            self.wire.call("XGROUP", "CREATE", KEY, "g", "$", "MKSTREAM")

    def post(self, count: int) -> None:
        self.wire.pipeline([encode("XADD", KEY, "*", "d", PAYLOAD)] * count, self.depth)

    def claim(self, count: int) -> list:
        return [one[0][1][0][0] for one in self.wire.pipeline([encode(*read(1))] * count, self.depth)]

    def end(self, held: list) -> None:
        commands = (
            command for id in held for command in (encode("XACK", KEY, "g", id), encode("XDEL", KEY, id))
        )
        self.wire.pipeline(commands, self.depth)

    def blocked(self) -> sampling.Blocked:
        return sampling.Blocked(
            Wire(self.server.port),
            encode(*read(1, "BLOCK", 0)),
            lambda: self.wire.call("XADD", KEY, "*", "d", PAYLOAD),
            lambda: sampling.info(self.wire, "clients")["blocked_clients"] == "1",
            lambda reply: reply,
        )

    def recoveries(self, samples: int) -> list[float]:
        """Another consumer asks with XAUTOCLAIM once in 100 ms: nobody does it for it."""
        found = []
        for _ in range(max(samples // 100, 5)):
            self.wire.call("XADD", KEY, "*", "d", PAYLOAD)
            self.wire.call(*read(1))
            end, found_one = time.time() + 0.5, []
            while not found_one:
                time.sleep(0.1)
                found_one = self.wire.call("XAUTOCLAIM", KEY, "g", "other", 500, "0")[1]
            found.append((time.time() - end) * 1000)
            self.end([found_one[0][0]])
        return found

    def worker(self) -> list[str]:
        return [
            sys.executable,
            str(PLACE.parents[1] / "benches" / "work.py"),
            "streams",
            str(self.server.port),
        ]

    def left(self) -> int:
        return self.wire.call("XLEN", KEY)
