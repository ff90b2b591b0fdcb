"""The servers of a run: one that writes every command to disk, or three that Sentinels watch over."""

from __future__ import annotations

import contextlib
import ctypes
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import redis
from clock import Steps
from harness import Server, executable, wait_until
from harness.server import WITH_ITS_PARENT, free_port
from links import Links

ALWAYS = ["appendonly yes", "appendfsync always"]
NAME = "chaos"


def die_with_parent() -> None:
    """For a process of Python's own, which setpriv did not start."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Sentinel:
    """One Sentinel; `more` are lines of its configuration."""

    def __init__(self, kind: str, port_of_primary: int, more: Sequence[str] = ()) -> None:
        self.port = free_port()
        self.folder = tempfile.TemporaryDirectory(prefix="sentinel-")
        config = Path(self.folder.name) / "sentinel.conf"
        lines = [
            f"port {self.port}",
            "bind 127.0.0.1",
            f"dir {self.folder.name}",
            f"sentinel monitor {NAME} 127.0.0.1 {port_of_primary} 2",
            f"sentinel down-after-milliseconds {NAME} 800",
            f"sentinel failover-timeout {NAME} 4000",
            f"sentinel parallel-syncs {NAME} 2",
            *more,
        ]
        config.write_text("\n".join(lines) + "\n")
        with (Path(self.folder.name) / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [*WITH_ITS_PARENT, str(executable(kind)), str(config), "--sentinel"],
                stdout=log,
                stderr=log,
            )

    def primary(self) -> int | None:
        """The port of the primary, as this Sentinel sees it."""
        with contextlib.suppress(redis.RedisError), redis.Redis(port=self.port, socket_timeout=1) as client:
            found = client.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME)
            return int(found[1]) if found else None
        return None

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()


class Site:
    """One server (`replicated=False`) or three, and the place where clients read which port serves them.

    They write every command to disk. With `listeners` the server begins without a file, and without a
    backlog soon after its last replica has left.

    Clients reach a server over one link (`doors` tells its port), other servers and the Sentinels over
    another, whose port they take for the server's own (`peers`). With `steps` its wall clock can be moved.
    """

    def __init__(
        self, kind: str, folder: Path, replicated: bool, steps: bool = False, listeners: bool = False
    ) -> None:
        self.kind, self.folder, self.replicated, self.listeners = kind, folder, replicated, listeners
        self.steps = Steps() if steps else None
        self.links = Links()
        self.doors: dict[Server, int] = {}
        self.peers: dict[Server, int] = {}
        self.servers: list[Server] = []
        self.sentinels: list[Sentinel] = []
        self.address = folder / "primary"
        self.changes: list[tuple[float, int]] = []
        self._stop = threading.Event()
        first = self._start()
        if replicated:
            for _ in range(2):
                self._start(primary=first)
            for server in self.servers[1:]:
                server.wait_synced(first)
            self.sentinels = [Sentinel(kind, self.peers[first]) for _ in range(3)]
            wait_until(lambda: self._agreed() == self.peers[first], what="the Sentinels agree")
        self._note(self.peers[first])
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def _start(self, primary: Server | None = None) -> Server:
        door, peer = self.links.open(), self.links.open()
        config = [
            *ALWAYS,
            "repl-backlog-size 64mb",
            "replica-announce-ip 127.0.0.1",
            f"replica-announce-port {peer}",
        ]
        if self.listeners:
            config = ["appendonly no", "appendfsync always", "repl-backlog-ttl 1", "hz 100"]
        if primary is not None:
            config.append(f"replicaof 127.0.0.1 {self.peers[primary]}")
        # The links are dead ends until the server has a port.
        environment = self.steps.wall.environment if self.steps is not None else None
        server = Server(self.kind, config=config, environment=environment)
        self.links.aim(door, server.port)
        self.links.aim(peer, server.port)
        self.doors[server], self.peers[server] = door, peer
        self.servers.append(server)
        return server

    def _note(self, port: int) -> None:
        self.changes.append((time.monotonic(), port))
        fresh = self.address.with_suffix(".new")
        fresh.write_text(str(self.doors[self.primary]))
        fresh.rename(self.address)

    def _agreed(self) -> int | None:
        told = [sentinel.primary() for sentinel in self.sentinels]
        return next((port for port in told if port is not None and told.count(port) >= 2), None)

    def _watch(self) -> None:
        while not self._stop.wait(0.05):
            port = self._agreed() if self.replicated else self.peers[self.servers[0]]
            if port is not None and port != self.changes[-1][1]:
                self._note(port)

    @property
    def primary(self) -> Server:
        return next(server for server, port in self.peers.items() if port == self.changes[-1][1])

    @property
    def replicas(self) -> list[Server]:
        return [server for server in self.servers if server is not self.primary]

    def heal(self) -> None:
        """Waits until every server runs, one is the primary, and the others follow it in step."""
        for server in self.servers:
            if server.process is None:
                if self.steps is not None:
                    self.steps.restarts()
                server.start(rewrite_config=False)
        if not self.replicated:
            return

        def whole() -> bool:
            with contextlib.suppress(redis.RedisError, OSError, AssertionError):
                primary = self.primary
                if primary.info("replication")["role"] != "master":
                    return False
                with primary.connect() as client:
                    offset = client.info("replication")["master_repl_offset"]
                for server in self.replicas:
                    info = server.info("replication")
                    if info["role"] != "slave" or info["master_port"] != self.peers[primary]:
                        return False
                    if info["master_link_status"] != "up" or info["slave_repl_offset"] < offset:
                        return False
                return True
            return False

        wait_until(whole, 180, what="the servers have healed")

    def keep(self, folder: Path) -> None:
        """Copies the logs and files of the servers: a broken promise is understood from them."""
        for number, server in enumerate(self.servers):
            shutil.copytree(server.folder, folder / f"server-{number}", dirs_exist_ok=True)

    def close(self) -> None:
        self._stop.set()
        self._watcher.join()
        for sentinel in self.sentinels:
            sentinel.close()
        for server in self.servers:
            server.close()
        if self.steps is not None:
            self.steps.close()
        self.links.close()
