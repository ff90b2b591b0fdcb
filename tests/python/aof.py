"""Append-only files as bytes: taken apart, and piped into a server."""

from __future__ import annotations

from typing import NamedTuple

from harness import Server


class Command(NamedTuple):
    """One command of a log: its words, and the bytes that stand for it."""

    words: list
    bytes: bytes

    @property
    def is_effect(self) -> bool:
        return self.words[0].upper() == b"JOB.APPLY"


def log_of(server: Server) -> bytes:
    """All that a stopped server without a preamble has written to its append-only file."""
    return b"".join(path.read_bytes() for path in sorted(server.folder.glob("appendonlydir/*.aof")))


def commands(log: bytes) -> list:
    found, at = [], 0
    while at < len(log):
        start = at
        if log[at : at + 1] == b"#":
            at = log.index(b"\n", at) + 1
            continue
        at = log.index(b"\r\n", at) + 2
        words = []
        for _ in range(int(log[start + 1 : at - 2])):
            end = log.index(b"\r\n", at)
            length = int(log[at + 1 : end])
            words.append(log[end + 2 : end + 2 + length])
            at = end + 2 + length + 2
        found.append(Command(words, log[start:at]))
    return found


def pipe(server: Server, log: bytes) -> bytes:
    """Sends the commands of a log as a client would; returns all replies."""
    with server.socket() as connection:
        connection.sendall(log + b"*1\r\n$4\r\nPING\r\n")
        replies = b""
        while not replies.endswith(b"+PONG\r\n"):
            part = connection.recv(65536)
            assert part, f"the server closed the connection after {replies[-200:]!r}"
            replies += part
    return replies


def errors(replies: bytes) -> list:
    return [line for line in replies.split(b"\r\n") if line.startswith(b"-")]
