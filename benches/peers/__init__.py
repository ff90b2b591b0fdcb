"""The systems that `make bench` measures, one small file each, behind one interface.

`Peer` is that interface. A peer posts, claims and ends jobs in pipelines with the commands of its own client;
what it cannot do it leaves out, and the report has a dash. `Missing`: why a peer is not measured at all.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from pathlib import Path

import cores
import sampling
from harness import Server
from wire import Wire

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / "target" / "bench"
"""Where scripts/peers installs."""

NAMES = [
    "jobboard",
    "batches",
    "streams",
    "streambatches",
    "lists",
    "beanstalkd",
    "taskflow",
    "bullmq",
    "qless",
    "rq",
]
PAYLOAD = b"x" * 100


class Missing(Exception):
    """Why a peer cannot be measured on this machine."""


class Peer:
    """One system on a server of its own. `title` names it in the report."""

    title = ""
    verbs = ("post", "claim", "end")
    depth = 500
    """Commands in one write."""
    most = 10_000_000
    """So many jobs at the most."""
    why = ""
    """Why there are no more."""
    module = False
    chained = False
    """Whether its claims and ends are one phase (`end` is not called)."""

    def __init__(self, kind: str, durable: bool) -> None:
        config = ["loglevel notice", "appendfsync everysec", f"appendonly {'yes' if durable else 'no'}"]
        self.server = Server(kind, config=config, module=self.module)
        self.replica = None
        if durable:
            self.replica = Server(kind, config=config, module=self.module, replicaof=self.server)
            self.replica.wait_synced(self.server)
        self.connect()

    def connect(self) -> None:
        self.wire = Wire(self.server.port)
        self.setup()

    def processes(self) -> list[int]:
        """The server, then its replica."""
        return [server.process.pid for server in (self.server, self.replica) if server]

    def part(self) -> None:
        """Server and clients on cores of their own."""
        server, *replicas = self.processes()
        cores.part(server, replicas)

    def close(self) -> None:
        self.wire.close()
        for server in (self.replica, self.server):
            if server:
                server.close()

    # What a peer is

    @classmethod
    def version(cls) -> str:
        return ""

    def setup(self) -> None:
        """Scripts loaded, groups made; also after a restart."""

    def post(self, count: int) -> None:
        raise NotImplementedError

    def fill(self, count: int) -> None:
        """Posts as fast as it can."""
        self.post(count)

    def claim(self, count: int) -> list:
        """Claims; returns what `end` needs of each job."""
        raise NotImplementedError

    def end(self, held: list) -> None:
        raise NotImplementedError

    def pick_ups(self, samples: int) -> list[float] | None:
        """Milliseconds from a post until the worker that waits for it has the job."""
        blocked = self.blocked()
        return sampling.pick_ups(blocked, samples) if blocked else None

    def blocked(self) -> sampling.Blocked | None:
        """A worker that waits, for the pick-up latency; None when its workers poll."""
        return None

    def recoveries(self, samples: int) -> list[float] | None:
        """Milliseconds from the end of a dead worker's lease until another has the job."""
        return None

    def late(self, samples: int) -> list[float] | None:
        """Milliseconds by which delayed jobs reach a waiting worker after their time."""
        return None

    def worker(self) -> list[str] | None:
        """The command of a process that works with the real client until it is killed."""
        return None

    def left(self) -> int:
        """Jobs that wait or are claimed."""
        raise NotImplementedError

    # What it costs

    def cpu(self) -> float:
        """CPU seconds that the server's main thread has used."""
        return sampling.main_thread_seconds(self.wire)

    def memory(self) -> int:
        """Bytes that the server uses, once its replica has all: what is still to be sent would count."""
        if self.replica:
            self.replica.wait_synced(self.server)
        return int(sampling.info(self.wire, "memory")["used_memory"])

    def empty(self) -> None:
        self.wire.call("FLUSHALL", "SYNC")
        self.setup()

    def shorten(self) -> None:
        """The append-only file, if there is one, holds no more than what is there now."""
        if self.replica:
            self.wire.call("BGREWRITEAOF")
            sampling.wait_rewritten(self.wire)

    def restart(self) -> float:
        """Seconds from the start of the process until it answers, its data loaded."""
        return sampling.restart(self)


def package(name: str) -> str:
    """The version of an installed Python package."""
    try:
        return f"{name} {importlib.metadata.version(name)}"
    except importlib.metadata.PackageNotFoundError:
        raise Missing(f"the Python package {name} is not installed") from None


def find(name: str) -> type[Peer]:
    """The class of a peer, its version asked for: fails with `Missing`."""
    kind = importlib.import_module(f"peers.{name}").Peer
    kind.version()
    return kind
