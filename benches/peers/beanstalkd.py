"""beanstalkd: its own server and protocol; CPU of its one process, memory resident."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import sampling
from harness.server import WITH_ITS_PARENT, free_port

import peers
from peers import PAYLOAD, PLACE, Missing

PUT = b"put 0 0 3600 %d\r\n%b\r\n" % (len(PAYLOAD), PAYLOAD)


def executable() -> str:
    unpacked = PLACE / "beanstalkd" / "usr" / "bin" / "beanstalkd"
    found = str(unpacked) if unpacked.exists() else shutil.which("beanstalkd")
    if not found:
        raise Missing("Debian's package beanstalkd is not there")
    return found


class Line:
    """One connection."""

    def __init__(self, port: int) -> None:
        import socket

        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")
        self.watch = nullcontext

    def read(self) -> tuple[bytes, bytes]:
        """A reply: its words, and the body when it has one."""
        line = self.file.readline()
        words = line.split()
        if words and words[0] in (b"RESERVED", b"OK"):
            return words, self.file.read(int(words[-1]) + 2)
        return words, b""

    def call(self, command: bytes) -> tuple[bytes, bytes]:
        self.socket.sendall(command)
        return self.read()

    def pipeline(self, commands: list[bytes], depth: int) -> list:
        replies = []
        for start in range(0, len(commands), depth):
            some = commands[start : start + depth]
            with self.watch():
                self.socket.sendall(b"".join(some))
                replies += [self.read() for _ in some]
        return replies

    def close(self) -> None:
        self.socket.close()


class Peer(peers.Peer):
    title = "beanstalkd"

    @classmethod
    def version(cls) -> str:
        return subprocess.run([executable(), "-v"], capture_output=True, text=True).stdout.strip()

    def __init__(self, kind: str, durable: bool) -> None:
        self.durable, self.replica, self.folder = (
            durable,
            None,
            tempfile.TemporaryDirectory(prefix="beanstalkd-"),
        )
        self.port = free_port()
        self.start()

    def start(self) -> None:
        command = [executable(), "-l", "127.0.0.1", "-p", str(self.port), "-z", "1000000"]
        if self.durable:
            command += ["-b", self.folder.name, "-f", "1000"]
        self.process = subprocess.Popen([*WITH_ITS_PARENT, *command], stderr=subprocess.DEVNULL)
        self.wire = None
        while self.wire is None:
            try:
                self.wire = Line(self.port)
            except OSError:
                time.sleep(0.005)
        self.wire.call(b"stats\r\n")
        self.part()

    @property
    def server(self):
        return self

    def close(self) -> None:
        self.wire.close()
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()

    def empty(self) -> None:
        """There is no command for it: a new process."""
        self.close()
        self.folder = tempfile.TemporaryDirectory(prefix="beanstalkd-")
        self.start()

    def cpu(self) -> float:
        return int(Path(f"/proc/{self.process.pid}/schedstat").read_text().split()[0]) / 1e9

    def memory(self) -> int:
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmRSS")

    def restart(self) -> float | None:
        if not self.durable:
            return None
        self.wire.close()
        self.process.kill()
        self.process.wait()
        start = time.perf_counter()
        self.start()
        return time.perf_counter() - start

    def post(self, count: int) -> None:
        self.wire.pipeline([PUT] * count, self.depth)

    def claim(self, count: int) -> list:
        return [words[1] for words, _ in self.wire.pipeline([b"reserve\r\n"] * count, self.depth)]

    def end(self, held: list) -> None:
        self.wire.pipeline([b"delete %b\r\n" % id for id in held], self.depth)

    def blocked(self) -> sampling.Blocked:
        def waiting() -> bool:
            return b"\ncurrent-waiting: 1\n" in self.wire.call(b"stats\r\n")[1]

        return sampling.Blocked(
            Line(self.port), b"reserve\r\n", lambda: self.wire.call(PUT), waiting, lambda reply: reply
        )

    def recoveries(self, samples: int) -> list[float]:
        """Its time to run is in whole seconds; a closed connection gives its jobs back at once.

        On a busy machine it may miss the end of a lease altogether: such a sample is left out.
        """
        found: list[float] = []
        for _ in range(9):
            dead = Line(self.port)
            self.wire.call(b"put 0 0 1 1\r\nx\r\n")
            dead.call(b"reserve\r\n")
            end = time.time() + 1
            self.wire.socket.settimeout(4)
            try:
                words, _ = self.wire.call(b"reserve\r\n")
            except OSError:  # it has timed out
                self.empty()
                continue
            found.append((time.time() - end) * 1000)
            self.end([words[1]])
            dead.close()
            if len(found) == 3:
                break
        self.wire.socket.settimeout(60)
        return found

    def late(self, samples: int) -> list[float]:
        found = []
        for _ in range(3):
            due = time.time() + 1
            self.wire.call(b"put 0 1 60 1\r\nx\r\n")
            words, _ = self.wire.call(b"reserve\r\n")
            found.append((time.time() - due) * 1000)
            self.end([words[1]])
        return found

    def worker(self) -> list[str]:
        return [sys.executable, str(PLACE.parents[1] / "benches" / "work.py"), "beanstalkd", str(self.port)]

    def left(self) -> int:
        body = self.wire.call(b"stats\r\n")[1].decode()
        counts = dict(line.split(": ") for line in body.splitlines() if ": " in line)
        return int(counts["current-jobs-ready"]) + int(counts["current-jobs-reserved"])
