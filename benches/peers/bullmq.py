"""BullMQ: its own scripts with the arguments that its client sends, jobs removed when complete."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

from wire import encode

import peers
from peers import PLACE, Missing

PREFIX = "bull:bench:"
DATA = json.dumps({"d": "x" * 92})
HOUR = 3_600_000
ADD = "wait paused meta id completed delayed active events marker".split()
CLAIM = "wait active prioritized events stalled limiter delayed paused meta pc marker".split()
END = "wait active prioritized events stalled limiter delayed paused meta pc completed".split()


def node(*words: object) -> list[str]:
    return [shutil.which("node"), str(Path(__file__).with_suffix(".js")), *map(str, words)]


def ask(*words: object) -> object:
    environment = {**os.environ, "PEERS": str(PLACE)}
    done = subprocess.run(
        node(*words), env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    return json.loads(done.stdout)


@functools.cache
def scripts() -> dict[str, str]:
    return ask("scripts")


class Peer(peers.Peer):
    title = "BullMQ"

    @classmethod
    def version(cls) -> str:
        description = PLACE / "node_modules" / "bullmq" / "package.json"
        if not shutil.which("node"):
            raise Missing("node is not installed")
        if not description.exists():
            raise Missing("the npm package bullmq is not installed")
        peers.package("msgpack")
        return f"bullmq {json.loads(description.read_text())['version']}"

    def setup(self) -> None:
        import msgpack

        self.pack = msgpack.packb
        self.shas = {
            name: self.wire.call("SCRIPT", "LOAD", scripts()[name])
            for name in ("addStandardJob", "moveToActive", "moveToFinished")
        }
        self.wire.call("HSET", PREFIX + "meta", "opts.maxLenEvents", 10000, "version", "bullmq")

    def call(self, script: str, keys: list[str], *words: object) -> bytes:
        return encode("EVALSHA", self.shas[script], len(keys), *keys, *words)

    def post(self, count: int) -> None:
        now = int(time.time() * 1000)
        packed = self.pack([PREFIX, "", "job", now, None, None, None, None, None])
        options = self.pack({"attempts": 0, "removeOnComplete": True})
        command = self.call("addStandardJob", [PREFIX + key for key in ADD], packed, DATA, options)
        self.wire.pipeline([command] * count, self.depth)

    def claim(self, count: int) -> list:
        options = self.pack({"token": "token", "lockDuration": HOUR, "limiter": None, "name": "w"})
        now = int(time.time() * 1000)
        command = self.call("moveToActive", [PREFIX + key for key in CLAIM], PREFIX, now, options)
        return [reply[1] for reply in self.wire.pipeline([command] * count, self.depth)]

    def end(self, held: list) -> None:
        now = int(time.time() * 1000)
        options = {
            "token": "token",
            "name": "w",
            "keepJobs": {"count": 0},
            "limiter": None,
            "lockDuration": HOUR,
        }
        options |= {
            "attempts": 0,
            "maxMetricsSize": "",
            "fpof": False,
            "cpof": False,
            "idof": False,
            "rdof": False,
        }
        packed, keys = self.pack(options), [PREFIX + key for key in END]
        commands = []
        for id in held:
            its = [*keys, PREFIX + id.decode(), PREFIX + "metrics:completed", PREFIX + "marker"]
            words = (id, now, "returnvalue", "null", "completed", 0, PREFIX, packed)
            commands.append(self.call("moveToFinished", its, *words))
        assert not any(self.wire.pipeline(commands, self.depth)), "moveToFinished has refused"

    def pick_ups(self, samples: int) -> list[float]:
        return ask("latency", self.server.port, min(samples, 300), 0)

    def late(self, samples: int) -> list[float]:
        return ask("latency", self.server.port, 20, 200)

    def worker(self) -> list[str]:
        os.environ["PEERS"] = str(PLACE)
        return node("work", self.server.port)

    def left(self) -> int:
        return self.wire.call("LLEN", PREFIX + "wait") + self.wire.call("LLEN", PREFIX + "active")
