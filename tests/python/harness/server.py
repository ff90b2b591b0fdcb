"""One server process with the module loaded, in a folder of its own."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import re
import resource
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.maint_notifications import MaintNotificationsConfig
from redis.retry import Retry

from .board import Board
from .clock import Clock
from .kinds import executable
from .waiting import PATIENCE, wait_until

ROOT = Path(__file__).resolve().parents[3]
MODULE = Path(os.environ.get("JOBBOARD_MODULE", ROOT / "target" / "release" / "libjobboard.so"))
"""The module under test."""
WRAP = os.environ.get("JOBBOARD_WRAP", "").split()
"""What every server is run under, such as valgrind with its options."""
WITH_ITS_PARENT = ("setpriv", "--pdeathsig", "KILL")
"""Starts a program that ends with this process; with a function for the child, Python would copy itself."""

BASE_CONFIG = (
    "bind 127.0.0.1",
    "protected-mode no",
    "daemonize no",
    'save ""',
    "loglevel notice",
    "enable-debug-command yes",
    "enable-module-command yes",
    "enable-protected-configs yes",
    "repl-diskless-sync-delay 0",
    "repl-ping-replica-period 1",
    "auto-aof-rewrite-percentage 0",
)
EMPTYING = (
    "INFO commandstats",
    "CLIENT UNPAUSE",
    "CLIENT KILL TYPE normal SKIPME yes",
    "CLIENT KILL TYPE pubsub SKIPME yes",
    "FLUSHALL SYNC",
    "SCRIPT FLUSH",
    "FUNCTION FLUSH",
    "CONFIG RESETSTAT",
    "SLOWLOG RESET",
    "LATENCY RESET",
)
"""What makes a shared server empty: of clients and keys, and of what it has counted and noted. Without SYNC
Valkey frees the keys in the background, and a test that looks at memory sees it.
"""
WITHOUT_NOTIFICATIONS = MaintNotificationsConfig(enabled=False)
CRASH = re.compile(r"crashed by signal|panicked|Guru Meditation|ASSERTION FAILED|=== .*BUG REPORT START")


class Server:
    """A server that runs from construction until `stop` (or `kill`), and again after `restart`.

        Server("redis82", "clock", "manual", config=["appendonly yes"])

    `module_args` are the words after the module's path in `loadmodule`; `module=False` loads none. `config`
    are lines of redis.conf; later ones win over the harness's own. `folder` is reused when given (a temporary
    one otherwise, removed by `close`). `environment` is added to this process's. `log_file` holds its log and
    what the module writes to stderr. The server dies with the process that started it.
    """

    def __init__(
        self,
        kind: str,
        *module_args: object,
        config: Sequence[str] = (),
        replicaof: Server | None = None,
        appendonly: bool = False,
        folder: Path | str | None = None,
        module: bool = True,
        wait: bool = True,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.kind = kind
        self.environment = dict(environment or {})
        self.module_args = [str(word) for word in module_args]
        self.module = module
        self.config = list(config)
        if appendonly:
            self.config.insert(0, "appendonly yes")
        if replicaof is not None:
            self.config.append(f"replicaof 127.0.0.1 {replicaof.port}")
        self._temporary = None if folder else tempfile.TemporaryDirectory(prefix="jobboard-")
        self.folder = Path(folder or self._temporary.name)
        self.log_file = self.folder / "server.log"
        self.config_file = self.folder / "redis.conf"
        self.port = 0
        self.process: subprocess.Popen[bytes] | None = None
        self.spoilt = False
        self.first_config: dict[str, str] | None = None
        self._log_start = 0
        self._log_checked = 0
        self._clients: list[redis.Redis] = []
        self.start(wait=wait)

    # Life

    def start(self, *, wait: bool = True, rewrite_config: bool = True) -> None:
        """Starts it on a free port (on its old one after a stop) and waits until it answers.

        `rewrite_config=False` starts from the redis.conf in its folder as it stands (after CONFIG REWRITE).
        """
        assert self.process is None, "already running"
        if self.module and not MODULE.exists():
            raise RuntimeError(f"{MODULE} is missing: run `make build`")
        for _ in range(10):
            self.port = self.port or free_port()
            if rewrite_config:
                self._write_config()
            self._log_start = self.log_file.stat().st_size if self.log_file.exists() else 0
            with self.log_file.open("ab") as log:
                self.process = subprocess.Popen(
                    [*WITH_ITS_PARENT, *WRAP, str(executable(self.kind)), str(self.config_file)],
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    # SIGXFSZ stays ignored: a file that may not grow is an error of the write.
                    restore_signals=False,
                    env={**os.environ, **self.environment},
                )
            if not wait:
                return
            try:
                self.wait_ready()
                return
            except ServerExited:
                if "Address already in use" not in self.log:
                    raise
                self.process, self.port = None, 0
        raise RuntimeError("no free port found")

    def wait_ready(self, timeout: float = 60.0) -> None:
        """Waits until it answers PING and has finished loading."""
        deadline = time.monotonic() + timeout * PATIENCE
        while True:
            assert self.process is not None
            if self.process.poll() is not None:
                raise ServerExited(f"{self.kind} ended with {self.process.returncode}\n{self.log_end()}")
            with contextlib.suppress(OSError, redis.ConnectionError):
                if self._is_ready(self.process.pid):
                    return
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.kind} did not answer within {timeout} s\n{self.log_end()}")
            time.sleep(0.01)

    def _is_ready(self, pid: int) -> bool:
        """Whether it answers and has loaded; and not another server, which has taken the port meanwhile."""
        pong, about = self.ask("PING", "INFO server")
        if pong.startswith(b"-NOAUTH"):
            with self.connect() as client:
                return client.ping() and client.info("server")["process_id"] == pid
        return pong == b"+PONG" and b"\r\nprocess_id:%d\r\n" % pid in about

    def stop(self) -> None:
        """Ends it with SIGTERM: it saves when `save` points are configured, as a server does.

        The signal is repeated: a server ignores it as long as it writes its first append-only file.
        """
        self.close_clients()
        process, self.process = self.process, None
        if process is None:
            return
        for _ in range(20 * PATIENCE):
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1)
                return
        process.kill()
        process.wait()
        raise AssertionError(f"{self.kind} did not stop on SIGTERM\n{self.log_end()}")

    def kill(self) -> None:
        """Ends it with SIGKILL: only what it has written to disk stays."""
        self.close_clients()
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def restart(self, *, kill: bool = False, config: Sequence[str] | None = None) -> None:
        """Stops it (or kills it) and starts it again on the same folder and port.

        New `config` lines replace the old ones. Fails when the old process has crashed. Old clients are
        closed; ask for new ones. What was answered is in the append-only file when it is killed.
        """
        if kill:
            with contextlib.suppress(redis.RedisError):
                wait_until(self.has_written, what="the append-only file has what was answered")
        self.kill() if kill else self.stop()
        self.check_log()
        if config is not None:
            self.config = list(config)
        self.start()

    def has_written(self) -> bool:
        """Whether all that it has answered is written. With `everysec` it may lag by two seconds, while the
        disk still syncs what came before."""
        info = self.info("persistence")
        return not info.get("aof_buffer_length", 0) or info["aof_last_write_status"] != "ok"

    def survive(self) -> Board:
        """Kills it and starts it again: the board is as before. Saves first if that is not done already."""
        before = self.board().digest()
        if "appendonly yes" not in self.config:
            self.client().save()
        self.restart(kill=True)
        board = self.board()
        assert board.digest() == before
        return board

    def close(self) -> None:
        """Kills it and removes its temporary folder. A wrapper is let say at its end what it has found."""
        if WRAP and self.alive:
            with contextlib.suppress(AssertionError):
                self.stop()
        self.kill()
        if self._temporary:
            self._temporary.cleanup()

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def spoil(self) -> None:
        """Says that this shared server must not be used by another test (it gets a new one)."""
        self.spoilt = True

    # Clients

    def connect(self, **arguments: Any) -> redis.Redis:
        """A new redis-py client that never resends, with text replies; the caller closes it.

        `protocol=2` or `3` (default 3), `decode_responses=False` for bytes, `db`, `socket_timeout` (15 s).
        """
        defaults: dict[str, Any] = {
            "decode_responses": True,
            "protocol": 3,
            "socket_timeout": 40 * PATIENCE,
            "socket_connect_timeout": 30 * PATIENCE,
            "retry": Retry(NoBackoff(), 0),
            # What redis-py asks of a new connection, and says to it, takes longer than most tests.
            "driver_info": None,
            "maint_notifications_config": WITHOUT_NOTIFICATIONS,
        }
        return redis.Redis(host="127.0.0.1", port=self.port, **{**defaults, **arguments})

    def client(self, **arguments: Any) -> redis.Redis:
        """Like `connect`; closed at the end of the test."""
        client = self.connect(**arguments)
        self._clients.append(client)
        return client

    def raw_client(self, **arguments: Any) -> redis.Redis:
        """A client whose replies are bytes."""
        return self.client(decode_responses=False, **arguments)

    def socket(self) -> socket.socket:
        """A plain TCP connection, for bytes that no client would send."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=40 * PATIENCE)

    def ask(self, *commands: str) -> list[bytes]:
        """Sends commands of plain words, without a client. Returns a text or a line for each."""
        with self.socket() as line, line.makefile("rb") as replies:
            line.sendall("".join(f"{command}\r\n" for command in commands).encode())
            found = []
            for _ in commands:
                first = replies.readline()
                if not first:
                    raise ConnectionError(f"{self.kind} closed the connection")
                found.append(replies.read(int(first[1:]) + 2) if first[:1] == b"$" else first.rstrip())
        return found

    def board(self, key: str | bytes = "board", **arguments: Any) -> Board:
        """A `Board` over a client of its own (`arguments` as for `client`)."""
        return Board(self.client(**arguments), key)

    @property
    def clock(self) -> Clock:
        """The manual clock of a server started with the words `clock manual`."""
        return Clock(self.client())

    def close_clients(self) -> None:
        for client in self._clients:
            with contextlib.suppress(Exception):
                client.close()
        self._clients.clear()

    # State

    def info(self, section: str = "all") -> dict[str, Any]:
        with self.connect() as client:
            return client.info(section)

    def cpu(self) -> float:
        """Seconds of CPU that the thread of its commands has had."""
        cpu = self.info("cpu")
        return cpu["used_cpu_user_main_thread"] + cpu["used_cpu_sys_main_thread"]

    @contextlib.contextmanager
    def configured(self, **settings: object) -> Iterator[None]:
        """Sets server or module configuration for the duration of a block, then puts the old values back.

        `__` stands for a dot and `_` for a dash: `configured(jobboard__max_batch=5)`.
        """
        named = {name.replace("__", ".").replace("_", "-"): value for name, value in settings.items()}
        with self.connect() as client:
            old = {name: client.config_get(name)[name] for name in named}
        try:
            with self.connect() as client:
                for name, value in named.items():
                    client.config_set(name, value)
            yield
        finally:
            with self.connect() as client:
                for name, value in old.items():
                    client.config_set(name, value)

    def limit_files(self, size: int | None) -> None:
        """No file may grow above that many bytes, as if the disk were full; None: any."""
        assert self.process is not None
        most = resource.RLIM_INFINITY if size is None else size
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))

    def flush(self) -> None:
        """Back to an empty server: see `EMPTYING`. With another configuration than at first it is spoilt."""
        self.close_clients()
        stats, *done = self.ask(*EMPTYING)
        assert not [reply for reply in done if reply.startswith(b"-")], done
        if self.first_config and b"cmdstat_config|set" in stats and self.server_config() != self.first_config:
            self.spoil()

    def server_config(self) -> dict[str, str]:
        """All of CONFIG GET."""
        with self.connect() as client:
            return client.config_get("*")

    def wait_synced(self, primary: Server, timeout: float = 60.0) -> None:
        """Waits until this replica has everything that `primary` has sent so far."""
        with self.connect() as own, primary.connect() as source:

            def caught_up() -> bool:
                target = source.info("replication")["master_repl_offset"]
                mine = own.info("replication")
                return mine.get("master_link_status") == "up" and mine["slave_repl_offset"] >= target

            wait_until(caught_up, timeout, what=f"replica {self.port} in step with {primary.port}")

    def fail_over_to(self, replica: Server) -> None:
        """Lets a replica of this primary take its place."""
        self.wait_online(replica)
        with self.connect() as client:
            client.execute_command("FAILOVER", "TO", "127.0.0.1", replica.port, "TIMEOUT", 30_000)

    def wait_online(self, replica: Server) -> None:
        """Waits until this primary counts a replica as online, and so takes a FAILOVER to it. The replica has
        its link and all data some time before.
        """
        with self.connect() as client:

            def online() -> bool:
                replicas = [about for about in client.info("replication").values() if isinstance(about, dict)]
                return any(one["port"] == replica.port and one["state"] == "online" for one in replicas)

            wait_until(online, what=f"replica {replica.port} online at {self.port}")

    # Log

    @property
    def log(self) -> str:
        """What the current (or last) process wrote."""
        with self.log_file.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode("utf-8", "replace")

    def log_end(self, lines: int = 60) -> str:
        crash = CRASH.search(self.log)
        text = self.log[max(crash.start() - 2000, 0) :] if crash else self.log
        chosen = text.splitlines()[: lines * 2] if crash else text.splitlines()[-lines:]
        return f"--- log of {self.kind} on port {self.port}\n" + "\n".join(chosen) + "\n---"

    def check_log(self) -> None:
        """Fails when the process has crashed or panicked since it was started."""
        with self.log_file.open("rb") as log:
            log.seek(max(self._log_start, self._log_checked - 100))
            found = CRASH.search(log.read().decode("utf-8", "replace"))
            end = log.tell()
        assert not found, f"the server wrote {found.group()!r}\n{self.log_end()}"
        self._log_checked = end

    def check_health(self) -> None:
        """Fails when the process has ended, crashed or panicked."""
        self.check_log()
        assert self.process is not None, f"{self.kind} was stopped"
        status = self.process.poll()
        assert status is None, f"{self.kind} has ended with {status}\n{self.log_end()}"

    def _write_config(self) -> None:
        lines = [*BASE_CONFIG, f"port {self.port}", f"dir {self.folder}"]
        if self.module:
            lines.append(" ".join(["loadmodule", str(MODULE), *self.module_args]))
        self.config_file.write_text("\n".join([*lines, *self.config]) + "\n")


class ServerExited(AssertionError):
    """The server ended while it was awaited; the text holds the end of its log."""


def _ports() -> Iterator[int]:
    """The ports of this process in turn, of 20000 to 29999: each process of pytest has its own share."""
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    share = range(20000 + number, 30000, processes)
    first = random.SystemRandom().randrange(len(share))
    return itertools.cycle([*share[first:], *share[:first]])


_PORTS = _ports()


def free_port() -> int:
    """A port that nobody listens on, with its cluster bus port (+10000) free as well.

    It is one that was not given for as long as possible: clients of a server that has ended, such as its
    replica or a worker, ask for its port again and again, and would speak to the next one on it.
    """
    for port in itertools.islice(_PORTS, 1000):
        with contextlib.suppress(OSError), socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", port))
            second.bind(("127.0.0.1", port + 10000))
            return port
    raise RuntimeError("no free port found")
