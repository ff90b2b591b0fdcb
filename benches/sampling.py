"""How the peers are measured: CPU, stalls, latency, restarts."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from wire import Wire

HERE = Path(__file__).resolve().parent


def info(wire: Wire, section: str) -> dict[str, str]:
    lines = wire.call("INFO", section).decode().split("\r\n")
    return dict(line.split(":", 1) for line in lines if ":" in line)


def main_thread_seconds(wire: Wire) -> float:
    """CPU that the server's main thread has used."""
    found = info(wire, "cpu")
    return float(found["used_cpu_user_main_thread"]) + float(found["used_cpu_sys_main_thread"])


def main_thread_nanoseconds(pid: int) -> int:
    """The same by the process's id, in nanoseconds, as the scheduler has counted them."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0])


@dataclass
class Blocked:
    """A connection of a worker: `wait` blocks, `take` does the rest once it has answered."""

    wire: Wire
    wait: bytes
    post: Callable[[], object]
    waiting: Callable[[], bool]
    take: Callable[[object], object]


def pick_ups(blocked: Blocked, samples: int) -> list[float]:
    """Milliseconds from a post until the worker that waits for it has the job. Ten times as many as other
    samples: as short as they are, fewer would all fall into one mood of the machine."""
    found = []
    for _ in range(10 * samples):
        blocked.wire.socket.sendall(blocked.wait)
        while not blocked.waiting():
            pass
        start = time.perf_counter()
        blocked.post()
        blocked.take(blocked.wire.read())
        found.append((time.perf_counter() - start) * 1000)
    return found


class Turns:
    """CPU milliseconds that the process `pid` has taken for each write of a pipeline, in order."""

    def __init__(self, pid: int) -> None:
        self.clock = (~pid << 3) | 2  # the CPU clock of another process, as clock_getcpuclockid(3) makes it
        self.spent: list[float] = []

    @contextmanager
    def write(self) -> Iterator[None]:
        before = time.clock_gettime(self.clock)
        yield
        self.spent.append((time.clock_gettime(self.clock) - before) * 1000)


class Stalls:
    """A PING loop in a process of its own, preferred: `longest` is the longest answer in milliseconds."""

    def __init__(self, port: int, word: bytes = b"PING\r\n") -> None:
        command = [sys.executable, str(HERE / "sampling.py"), str(port), word.decode()]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()

    def longest(self) -> float:
        out, _ = self.process.communicate("end\n")
        return float(out)


def ping(port: int, word: bytes) -> None:
    import select
    import socket

    import cores

    cores.prefer(0, -15)
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    print("ready", flush=True)
    longest = 0.0
    while not select.select([sys.stdin], [], [], 0.0001)[0]:
        start = time.perf_counter()
        connection.sendall(word)
        connection.recv(4096)
        longest = max(longest, time.perf_counter() - start)
    print(longest * 1000)


def wait_rewritten(wire: Wire) -> None:
    """No rewrite of the append-only file is under way or to come."""
    while True:
        state = info(wire, "persistence")
        if state["aof_rewrite_in_progress"] == state["aof_rewrite_scheduled"] == "0":
            return
        time.sleep(0.05)


def restart(peer) -> float:
    """A snapshot or the append-only file, then a new process; less what an empty one takes to start."""
    server = peer.server
    if peer.replica:
        peer.replica.close()
        peer.replica = None
        wait_rewritten(peer.wire)
    else:
        peer.wire.call("SAVE")
    peer.wire.close()
    server.kill()
    start = time.perf_counter()
    server.start(wait=False)
    wire = None
    while True:
        try:
            wire = wire or Wire(server.port)
            if wire.call("PING") == b"+PONG"[1:]:
                break
        except Exception:
            if wire and server.process.poll() is not None:
                raise
        time.sleep(0.005)
    taken = time.perf_counter() - start
    wire.close()
    peer.connect()
    return taken


if __name__ == "__main__":
    ping(int(sys.argv[1]), sys.argv[2].encode())
