"""RQ: what its client and its worker send, recorded once and sent again in pipelines.

All ids are made by the client, so the same bytes do the same work on an emptied server.
"""

from __future__ import annotations

import logging
import sys

import peers
from peers import PLACE

COUNT = 300
CONNECTING = (b"HELLO", b"CLIENT", b"SUBSCRIBE", b"PING")
"""What a client sends beside its work."""


def nothing(text: str) -> None:
    """The job."""


class Peer(peers.Peer):
    title = "RQ"
    verbs = ("post", "claim and end")
    most = COUNT
    why = "its commands are recorded, each job's with its id"
    chained = True
    posted: list[bytes] | None = None
    worked: list[bytes]

    @classmethod
    def version(cls) -> str:
        return peers.package("rq")

    def record(self) -> None:
        import redis
        from redis.connection import Connection
        from rq import Queue, SimpleWorker

        sent: list[bytes] = []
        send = Connection.send_packed_command

        def remember(connection, command, *words, **options):
            sent.append(command if isinstance(command, bytes) else b"".join(command))
            return send(connection, command, *words, **options)

        logging.getLogger("rq").setLevel(logging.ERROR)
        client = redis.Redis(port=self.server.port)
        queue = Queue("bench", connection=client)
        worker = SimpleWorker([queue], connection=client)
        client.ping()
        Connection.send_packed_command = remember
        try:
            for _ in range(COUNT):
                queue.enqueue(nothing, "x" * 92, result_ttl=0)
            type(self).posted, sent[:] = list(sent), []
            worker.work(burst=True, logging_level="ERROR")
        finally:
            Connection.send_packed_command = send
        type(self).worked = [one for one in sent if not any(word in one for word in CONNECTING)]
        client.close()

    def send(self, commands: list[bytes]) -> None:
        """Some recorded writes hold several commands: replies are counted by the server's PONG at the end."""
        for one in commands:
            self.wire.socket.sendall(one)
            for _ in range(count_commands(one)):
                self.wire.read(raising=False)

    def empty(self) -> None:
        super().empty()
        if self.posted is None:
            self.record()
            super().empty()

    def post(self, count: int) -> None:
        self.send(self.posted)

    def claim(self, count: int) -> list:
        self.send(self.worked)
        assert not self.left(), "what was recorded does not work when it is sent again"
        return []

    def end(self, held: list) -> None:
        pass

    def worker(self) -> list[str]:
        return [sys.executable, str(PLACE.parents[1] / "benches" / "work.py"), "rq", str(self.server.port)]

    def left(self) -> int:
        return self.wire.call("LLEN", "rq:queue:bench")


def count_commands(data: bytes) -> int:
    """How many commands in RESP lie in `data`."""
    found = at = 0
    while at < len(data):
        end = data.index(b"\r\n", at)
        words, at = int(data[at + 1 : end]), end + 2
        for _ in range(words):
            end = data.index(b"\r\n", at)
            at = end + 2 + int(data[at + 1 : end]) + 2
        found += 1
    return found
