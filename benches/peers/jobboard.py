"""This module, one job a command."""

from __future__ import annotations

import sys
import time

import sampling
from wire import Wire, encode, fields

import peers
from peers import PAYLOAD, PLACE

BOARD = "bench"
SPREAD = 4000
"""Milliseconds over which ends of leases and due times lie."""


class Peer(peers.Peer):
    title = "jobboard"
    module = True

    @classmethod
    def version(cls) -> str:
        return "this module"

    def post(self, count: int) -> None:
        self.wire.pipeline([encode("JOB.POST", BOARD, PAYLOAD)] * count, self.depth)

    def fill(self, count: int) -> None:
        command = encode("JOB.MPOST", BOARD, 100, *[PAYLOAD] * 100)
        self.wire.pipeline([command] * (count // 100), 10)

    def claim(self, count: int) -> list:
        claims = self.wire.pipeline([encode("JOB.CLAIM", BOARD, "w", "LEASE", 3_600_000)] * count, self.depth)
        return [fields(claim[0]) for claim in claims]

    def end(self, held: list) -> None:
        self.wire.pipeline(
            [encode("JOB.CONSUME", BOARD, "w", job[b"id"], "TOKEN", job[b"token"]) for job in held],
            self.depth,
        )

    def blocked(self) -> sampling.Blocked:
        wire = Wire(self.server.port)
        return sampling.Blocked(
            wire,
            encode("JOB.CLAIM", BOARD, "w", "BLOCK", 0, "LEASE", 3_600_000),
            lambda: self.wire.call("JOB.POST", BOARD, PAYLOAD),
            lambda: sampling.info(self.wire, "clients")["blocked_clients"] == "1",
            lambda reply: reply,
        )

    def recoveries(self, samples: int) -> list[float]:
        self.wire.pipeline([encode("JOB.POST", BOARD, PAYLOAD)] * samples)
        claims = self.wire.pipeline(
            encode("JOB.CLAIM", BOARD, "dead", "LEASE", 1000 + n * SPREAD // samples) for n in range(samples)
        )
        deadlines = {job[b"id"]: job[b"deadline"] for job in (fields(claim[0]) for claim in claims)}
        return self.lateness(samples, lambda job: deadlines[job[b"id"]])

    def late(self, samples: int) -> list[float]:
        first = int(time.time() * 1000) + 1000
        dues = [first + n * SPREAD // samples for n in range(samples)]
        self.wire.pipeline(encode("JOB.POST", BOARD, due, "AT", due) for due in dues)
        return self.lateness(samples, lambda job: int(job[b"payload"]))

    def lateness(self, samples: int, due) -> list[float]:
        found = []
        for _ in range(samples):
            [job] = self.wire.call("JOB.CLAIM", BOARD, "w", "BLOCK", 0, "LEASE", 3_600_000)
            found.append(time.time() * 1000 - due(fields(job)))
        return found

    def worker(self) -> list[str]:
        return [
            sys.executable,
            str(PLACE.parents[1] / "benches" / "work.py"),
            "jobboard",
            str(self.server.port),
        ]

    def left(self) -> int:
        return self.wire.call("JOB.COUNT", BOARD)
