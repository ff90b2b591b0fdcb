"""A client that costs little: commands encoded beforehand, one socket, replies as plain Python values."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any


def encode(*words: Any) -> bytes:
    """One command in RESP."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        data = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(data), data))
    return b"".join(parts)


class ServerError(Exception):
    """An error reply."""


class Wire:
    """One connection in RESP2."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        self.at = 0
        self.watch = nullcontext
        """Makes a context for each write of a pipeline and its replies."""

    def call(self, *words: Any) -> Any:
        self.socket.sendall(encode(*words))
        return self.read()

    def pipeline(self, commands: Iterable[bytes], depth: int = 500) -> list:
        """Sends encoded commands, `depth` in one write, and returns their replies."""
        commands = list(commands)
        replies = []
        for start in range(0, len(commands), depth):
            some = commands[start : start + depth]
            with self.watch():
                self.socket.sendall(b"".join(some))
                replies += [self.read() for _ in some]
        return replies

    def read(self, raising: bool = True) -> Any:
        """The next reply; an error reply is raised, or with `raising=False` returned."""
        line = self._line()
        kind, rest = line[:1], line[1:]
        if kind == b"$":
            length = int(rest)
            return None if length < 0 else self._bytes(length)
        if kind == b":":
            return int(rest)
        if kind == b"*":
            length = int(rest)
            return None if length < 0 else [self.read(raising) for _ in range(length)]
        if kind == b"-":
            if raising:
                raise ServerError(rest.decode())
            return ServerError(rest.decode())
        return rest

    def close(self) -> None:
        self.socket.close()

    def _line(self) -> bytes:
        while (end := self.buffer.find(b"\r\n", self.at)) < 0:
            self._receive()
        line, self.at = self.buffer[self.at : end], end + 2
        return line

    def _bytes(self, length: int) -> bytes:
        while len(self.buffer) < self.at + length + 2:
            self._receive()
        data, self.at = self.buffer[self.at : self.at + length], self.at + length + 2
        return data

    def _receive(self) -> None:
        data = self.socket.recv(1 << 18)
        if not data:
            raise ConnectionError("the server closed the connection")
        self.buffer, self.at = self.buffer[self.at :] + data, 0


def fields(record: list) -> dict[bytes, Any]:
    """A map reply in RESP2."""
    return dict(zip(record[::2], record[1::2]))
