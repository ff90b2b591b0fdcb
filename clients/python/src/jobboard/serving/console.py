"""The console beside the server."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from pathlib import Path

from .cannot import CannotServe
from .ports import HOST
from .process import dies_with_us


class ConsoleProcess:
    """From `start` to `stop`. It learns the server's address and password from its environment.

    The password is also what a scraper of `/metrics` has to send, unless $JOBBOARD_METRICS_TOKEN says another
    word: a client without a password for the server cannot read its numbers.
    """

    def __init__(
        self, path: Path, folder: Path, *, url: str, password: str | None, port: int, write: bool
    ) -> None:
        self.path, self.log_file, self.port = path, folder / "console.log", port
        self._words = [str(path), "--port", str(port), *(["--write"] if write else [])]
        self._environment = {**os.environ, "REDIS_URL": url}
        if password is not None:
            self._environment.setdefault("JOBBOARD_METRICS_TOKEN", password)
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def start(self) -> None:
        """Starts it, and waits until it listens."""
        try:
            with self.log_file.open("wb") as log:
                self._process = subprocess.Popen(
                    self._words,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    env=self._environment,
                    start_new_session=True,
                    preexec_fn=dies_with_us(signal.SIGTERM),
                )
        except OSError as error:
            raise CannotServe(f"{self.path} cannot be started: {error}") from None
        assert self._process.stdout is not None
        if not re.match(r"http://\S+", self._process.stdout.readline()):
            words = self.last_words()
            self.stop()
            raise CannotServe(f"the console did not start: {words}")

    def last_words(self) -> str:
        with contextlib.suppress(OSError):
            lines = self.log_file.read_text(errors="replace").strip().splitlines()
            return f"{lines[-1] if lines else 'it wrote nothing'} (log: {self.log_file})"
        return "it wrote nothing"

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
