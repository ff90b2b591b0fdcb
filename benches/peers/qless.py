"""qless: the Lua that ships in qless-py.

It defines `table.extend`, and since 7.0 servers refuse to change their own tables. One line before it gives
the script a table of its own.
"""

from __future__ import annotations

import json
import pkgutil
import sys
import time

from wire import encode

import peers
from peers import PLACE

MENDED = b"local table = setmetatable({}, {__index = table})\n"
DATA = json.dumps({"d": "x" * 92})


class Peer(peers.Peer):
    title = "qless"
    made = 0

    @classmethod
    def version(cls) -> str:
        return peers.package("qless-py")

    def setup(self) -> None:
        text = MENDED + pkgutil.get_data("qless", "qless-core/qless.lua")
        self.sha = self.wire.call("SCRIPT", "LOAD", text)

    def call(self, command: str, *words: object) -> bytes:
        return encode("EVALSHA", self.sha, 0, command, repr(time.time()), *words)

    def post(self, count: int) -> None:
        more = (DATA, 0, "priority", 0, "tags", "[]", "retries", 5, "depends", "[]")
        commands = []
        for _ in range(count):
            self.made += 1
            commands.append(self.call("put", "bench", f"{self.made:032x}", "bench.Job", *more))
        self.wire.pipeline(commands, self.depth)

    def claim(self, count: int) -> list:
        replies = self.wire.pipeline([self.call("pop", "bench", "w", 1)] * count, self.depth)
        return [json.loads(one)[0]["jid"] for one in replies]

    def end(self, held: list) -> None:
        self.wire.pipeline([self.call("complete", jid, "w", "bench", DATA) for jid in held], self.depth)

    def worker(self) -> list[str]:
        return [sys.executable, str(PLACE.parents[1] / "benches" / "work.py"), "qless", str(self.server.port)]

    def recoveries(self, samples: int) -> list[float]:
        """Another worker asks every 10 ms; qless-py's own asks every 60 s."""
        self.wire.pipeline(
            [self.call("config.set", "bench-heartbeat", 1), self.call("config.set", "grace-period", 0)]
        )
        found = []
        for _ in range(5):
            self.post(1)
            [job] = json.loads(self.wire.pipeline([self.call("pop", "bench", "dead", 1)])[0])
            got: list = []
            while not got:
                time.sleep(0.01)
                got = json.loads(self.wire.pipeline([self.call("pop", "bench", "w", 1)])[0])
            found.append((time.time() - job["expires"]) * 1000)
            self.end([got[0]["jid"]])
        return found

    def left(self) -> int:
        return self.wire.call("ZCARD", "ql:q:bench-work") + self.wire.call("ZCARD", "ql:q:bench-locks")
