"""Redis Streams, a hundred entries a command. XADD has no form for many: it is pipelined."""

from __future__ import annotations

from wire import encode

from peers import streams

BATCH = 100


class Peer(streams.Peer):
    title = "Redis Streams, 100 a command"
    most = 1_000_000
    why = "its structures are those of single commands"

    def claim(self, count: int) -> list:
        deep = max(self.depth // BATCH, 1)
        replies = self.wire.pipeline([encode(*streams.read(BATCH))] * (count // BATCH), deep)
        return [[entry[0] for entry in one[0][1]] for one in replies]

    def end(self, held: list) -> None:
        commands = [
            command
            for ids in held
            for command in (encode("XACK", streams.KEY, "g", *ids), encode("XDEL", streams.KEY, *ids))
        ]
        self.wire.pipeline(commands, max(self.depth // BATCH, 1) * 2)

    def blocked(self) -> None:
        return None

    def recoveries(self, samples: int) -> None:
        return None

    def worker(self) -> None:
        return None
