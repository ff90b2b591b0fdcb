"""A primary made of a socket: a real replica takes from it whatever a test lets it say."""

from __future__ import annotations

import socket
import struct
import threading
from typing import Any

from crc64 import body, crc64
from harness import Server, wait_until


def encoded(*words: Any) -> bytes:
    """A command as it stands in a log and on a link."""
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


def snapshot(dumps: dict | None = None) -> bytes:
    """A file of the server with these keys of database 0: name to DUMP."""
    content = b"REDIS0010"
    for name, dump in (dumps or {}).items():
        value = body(dump)
        assert len(name) < 64, "the length of the name takes one byte"
        content += b"\xfe\x00" + value[:1] + bytes([len(name)]) + name.encode() + value[1:]
    content += b"\xff"
    return content + struct.pack("<Q", crc64(content))


class Primary:
    """Listens on a port of its own; `send` goes to the replica that has synchronised last."""

    def __init__(self, dumps: dict | None = None) -> None:
        self.file = snapshot(dumps)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.link: socket.socket | None = None
        self.sent = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                link, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(link,), daemon=True).start()

    def _serve(self, link: socket.socket) -> None:
        reader = link.makefile("rb")
        try:
            while line := reader.readline():
                words = [line.strip()]
                if line.startswith(b"*"):
                    words = [reader.read(int(reader.readline()[1:]) + 2)[:-2] for _ in range(int(line[1:]))]
                self._answer(link, [word.upper() for word in words])
        except (OSError, ValueError):
            pass

    def _answer(self, link: socket.socket, words: list) -> None:
        if words[0] in (b"PSYNC", b"SYNC"):
            select = encoded("SELECT", 0)
            # Before it is sent: the replica may be in step before this thread goes on.
            self.sent, self.link = len(select), link
            begin = b"+FULLRESYNC " + b"a" * 40 + b" 0\r\n"
            link.sendall(begin + b"$%d\r\n%s" % (len(self.file), self.file) + select)
        elif words[0] == b"PING":
            link.sendall(b"+PONG\r\n")
        elif words[:2] != [b"REPLCONF", b"ACK"]:
            link.sendall(b"+OK\r\n")

    def send(self, *words: Any) -> None:
        self.say(encoded(*words))

    def say(self, stream: bytes) -> None:
        assert self.link is not None, "nobody follows"
        self.sent += len(stream)
        self.link.sendall(stream)

    def followed_by(self, replica: Server) -> None:
        """Waits until the replica has taken all that was sent."""

        def caught_up() -> bool:
            info = replica.info("replication")
            return info.get("master_link_status") == "up" and info["slave_repl_offset"] >= self.sent

        wait_until(caught_up, what="the replica has what was sent")

    def close(self) -> None:
        self.listener.close()
        if self.link is not None:
            self.link.close()
