"""The server of the demo: the repository's redis.conf, the module, a free port and a temporary folder."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import redis

ROOT = Path(__file__).resolve().parents[1]
MODULE = Path(os.environ.get("JOBBOARD_MODULE", ROOT / "target" / "release" / "libjobboard.so"))


class DemoServer:
    """A context: the server answers inside it, and is stopped and its folder removed at the end."""

    def __init__(self, port: int, executable: str) -> None:
        self.executable = executable
        self.port = port if is_free(port) else any_free_port()
        self.version = subprocess.run([executable, "--version"], capture_output=True, text=True).stdout.split(
            " sha="
        )[0]

    def __enter__(self) -> DemoServer:
        if not MODULE.exists():
            raise SystemExit(f"{MODULE} is missing: run `make build`")
        self._temporary = tempfile.TemporaryDirectory(prefix="jobboard-demo-")
        self.folder = Path(self._temporary.name)
        self.log = self.folder / "server.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    self.executable,
                    str(self._configuration()),
                    *("--port", str(self.port), "--dir", str(self.folder)),
                ],
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C reaches the demo alone, which then stops the server
            )
        try:
            self._wait_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._temporary.cleanup()

    def last_words(self) -> str:
        """The end of the log when the server has ended by itself, else nothing."""
        if self.process.poll() is None:
            return ""
        lines = self.log.read_text(errors="replace").splitlines()
        crash = next((n for n, line in enumerate(lines) if "panicked" in line or "crashed by" in line), None)
        shown = lines[-20:] if crash is None else lines[max(crash - 5, 0) : crash + 40]
        return "\n".join([f"The server ended with {self.process.returncode}:", *shown])

    def _configuration(self) -> Path:
        """redis.conf with the absolute path of the module: the server loads it from its own folder."""
        lines = (ROOT / "redis.conf").read_text().splitlines()
        found = [line for line in lines if line.startswith("loadmodule ")]
        assert len(found) == 1, "redis.conf must have one loadmodule line"
        path = self.folder / "redis.conf"
        path.write_text("\n".join(f"loadmodule {MODULE}" if line in found else line for line in lines) + "\n")
        return path

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + 20
        while True:
            try:
                with redis.Redis(port=self.port, retry=None) as client:
                    client.ping()
                return
            except redis.ConnectionError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"the server did not start:\n{self.log.read_text()}") from None
                time.sleep(0.02)


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def any_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
