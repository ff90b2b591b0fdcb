"""TaskFlow's redis jobboard: its own scripts for claim and consume, its commands for post.

A claim here is of a job whose key is known. To find one, its workers read the whole listing (HGETALL).
"""

from __future__ import annotations

import string
import sys
import time

from wire import encode

import peers
from peers import PLACE

SPACE = b"taskflow:"
LISTINGS = SPACE + b"listings"


class Peer(peers.Peer):
    title = "TaskFlow"
    made = taken = 0

    @classmethod
    def version(cls) -> str:
        return peers.package("taskflow")

    def setup(self) -> None:
        from taskflow.jobs import base
        from taskflow.jobs.backends.impl_redis import RedisJobBoard as Board

        names = "STATUS_OK STATUS_ERROR NOT_EXPECTED_OWNER UNKNOWN_OWNER UNKNOWN_JOB ALREADY_CLAIMED".split()
        words = {name.lower().removeprefix("status_"): getattr(Board, "SCRIPT_" + name) for name in names}
        templates = {name: string.Template(text) for name, text in Board.SCRIPT_TEMPLATES.items()}
        self.shas = {
            name: self.wire.call("SCRIPT", "LOAD", templates[name].substitute(words))
            for name in ("claim", "consume")
        }
        from oslo_utils import timeutils

        now = timeutils.utcnow()
        priority = base.JobPriority.NORMAL
        posting = base.format_posting(
            "0" * 36, "job", created_on=now, details={"d": "x" * 92}, priority=priority
        )
        self.posting = Board._dumps({**posting, "sequence": 1})
        self.modified = Board._dumps(now)

    def empty(self) -> None:
        super().empty()
        self.taken = self.made

    def post(self, count: int) -> None:
        commands = []
        for _ in range(count):
            self.made += 1
            commands += [
                encode("INCR", SPACE + b"sequence"),
                encode("HSETNX", LISTINGS, b"%036x" % self.made, self.posting),
            ]
        self.wire.pipeline(commands, self.depth)

    def of_job(self, script: str, key: bytes, *words: object) -> bytes:
        keys = (SPACE + key + b".owned", LISTINGS, SPACE + key + b".last_modified")
        return encode("EVALSHA", self.shas[script], 3, *keys, "w", key, *words)

    def claim(self, count: int) -> list:
        keys = [b"%036x" % (self.taken + n + 1) for n in range(count)]
        self.taken += count
        self.wire.pipeline([self.of_job("claim", key, self.modified, 3_600_000) for key in keys], self.depth)
        return keys

    def end(self, held: list) -> None:
        self.wire.pipeline([self.of_job("consume", key) for key in held], self.depth)

    def find(self) -> float:
        """Microseconds of server CPU to read the listing once, as a worker does before each claim."""
        before = self.cpu()
        self.wire.call("HGETALL", LISTINGS)
        return (self.cpu() - before) * 1e6

    def recoveries(self, samples: int) -> list[float]:
        """Another conductor looks every 10 ms whether the owner's key is gone."""
        found = []
        for _ in range(5):
            self.post(1)
            self.taken += 1
            key = b"%036x" % self.taken
            self.wire.pipeline([self.of_job("claim", key, self.modified, 500)])
            end = time.time() + 0.5
            while self.wire.call("EXISTS", SPACE + key + b".owned"):
                time.sleep(0.01)
            self.wire.pipeline([self.of_job("claim", key, self.modified, 3_600_000)])
            found.append((time.time() - end) * 1000)
            self.end([key])
        return found

    def worker(self) -> list[str]:
        return [
            sys.executable,
            str(PLACE.parents[1] / "benches" / "work.py"),
            "taskflow",
            str(self.server.port),
        ]

    def left(self) -> int:
        return self.wire.call("HLEN", LISTINGS)
