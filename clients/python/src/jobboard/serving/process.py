"""One server process with the module, on loopback."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from .cannot import CannotServe
from .parts import Program
from .ports import HOST
from .reasons import Ended, reason

ALWAYS = ("bind " + HOST, "protected-mode yes", "daemonize no", 'logfile ""', 'save ""')
"""The data are in the append-only file, or nowhere: no snapshots."""
REFUSED_FOR = 5.0
"""Seconds for which a password may be refused: another server may have taken the port, and then ours ends."""


class ServerProcess:
    """A server from `start` to `stop` or `kill`.

    It reads its configuration from a pipe, so the password is neither in a file nor among the arguments.
    `config` are more lines of it. It ends by `last_signal` when this process dies; what it writes is for this
    user alone.
    """

    def __init__(
        self,
        server: Program,
        module: Path,
        folder: Path,
        *,
        port: int,
        password: str | None = None,
        load: Sequence[str] = (),
        config: Sequence[str] = (),
        last_signal: signal.Signals = signal.SIGTERM,
        keep: Sequence[int] = (),
        written_by: str | None = None,
    ) -> None:
        self.server, self.folder, self.port, self.password = server, folder, port, password
        self.log_file = folder / "server.log"
        self._lines = [*ALWAYS, f"port {port}", f"dir {quoted(folder)}"]
        self._lines += [" ".join(["loadmodule", quoted(module), *load])]
        self._lines += [] if password is None else [f"requirepass {quoted(password)}"]
        self._lines += config
        self._last_signal, self._keep, self._written_by = last_signal, keep, written_by
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """With the password, and the user's name: redis-cli of Redis 7.0 takes no password without it."""
        user = "" if self.password is None else f"default:{quote(self.password, safe='')}@"
        return f"redis://{user}{self.address}"

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def start(self, waiting: Callable[[], None] = lambda: None) -> None:
        """Starts it, and waits until it answers, however long it loads: `waiting` is called meanwhile."""
        with contextlib.suppress(OSError):
            os.replace(self.log_file, self.log_file.with_suffix(".log.old"))
        try:
            with self.log_file.open("wb") as log:
                self._process = subprocess.Popen(
                    [str(self.server.path), "-"],
                    cwd=self.folder,
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    pass_fds=self._keep,
                    start_new_session=True,  # Ctrl-C reaches us alone
                    umask=0o077,
                    preexec_fn=dies_with_us(self._last_signal),
                )
        except OSError as error:
            raise CannotServe(f"{self.server.path} cannot be started: {error}") from None
        try:
            assert self._process.stdin is not None
            with contextlib.suppress(BrokenPipeError), self._process.stdin as pipe:
                pipe.write("\n".join([*self._lines, ""]).encode())
            self._wait(waiting)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends it with SIGTERM: it writes what it has. Repeated: a server that writes its first append-only
        file ignores the signal.
        """
        process, self._process = self._process, None
        while process is not None and process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1)

    def kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def connect(self, within: float = 30.0) -> redis.Redis:
        """A client that sends nothing twice, and waits for so many seconds."""
        return redis.Redis(
            host=HOST,
            port=self.port,
            password=self.password,
            socket_timeout=within,
            socket_connect_timeout=within,
            retry=Retry(NoBackoff(), 0),
        )

    def unwritten(self) -> int:
        """Bytes of acknowledged commands that the disk has not taken; the server tries again each second."""
        with contextlib.suppress(redis.RedisError), self.connect() as client:
            found = client.info("persistence")
            if found.get("aof_last_write_status", "ok") != "ok":
                return max(int(found.get("aof_buffer_length", 0)), 1)
        return 0

    def last_words(self) -> str:
        """Why it has ended by itself."""
        assert self._process is not None
        try:
            log = self.log_file.read_text(errors="replace")
        except OSError:
            log = ""
        status = self._process.returncode
        return reason(Ended(*self.server, status, log, self.log_file, self.folder, self._written_by))

    def _wait(self, waiting: Callable[[], None]) -> None:
        refused, pause = float("inf"), 0.002
        while not self.ended:
            try:
                with self.connect(1.0) as client:
                    client.ping()  # a server that loads refuses it, and answers INFO
                    if client.info("server")["process_id"] == self.pid:
                        return
            except redis.AuthenticationError:
                refused = min(refused, time.monotonic())
                if time.monotonic() - refused > REFUSED_FOR:
                    raise CannotServe(
                        f"the server refuses the password of {self.folder}: its configuration must set no "
                        "other one (requirepass, user default)"
                    ) from None
            except (redis.ConnectionError, redis.TimeoutError):  # not there yet, or it is loading
                pass
            waiting()
            time.sleep(pause)
            pause = min(pause * 1.5, 0.05)
        raise CannotServe(self.last_words())


def quoted(value: object) -> str:
    """A word of a server's configuration."""
    text = str(value)
    if not text.isprintable():
        raise CannotServe(
            f"{text!r} cannot be written in a configuration: it has characters that are not printed"
        )
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def dies_with_us(number: signal.Signals) -> Callable[[], None] | None:
    """What a child does so that it gets this signal when we die, however we die; where the system can do so.

    The system takes the end of the thread that started the child for our end.
    """
    if PRCTL is None or threading.current_thread() is not threading.main_thread():
        return None

    def ask() -> None:
        PRCTL(PR_SET_PDEATHSIG, number)

    return ask


PRCTL = ctypes.CDLL(None).prctl if sys.platform == "linux" else None
PR_SET_PDEATHSIG = 1
