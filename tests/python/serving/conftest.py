"""Fixtures of the tests of `jobboard serve`.

serve       starts `jobboard serve` on a folder of the test, on free ports: serve("--no-console"). It is ended
            at the end of the test
refused     the same, for one that must not start: returns the sentence
small_disk  a folder that is a volume of its own, with room for 48 MB
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import jobboard
import pytest
from harness import executable, wait_until
from harness.server import MODULE

ROOT = Path(__file__).resolve().parents[3]
CONSOLE = Path(os.environ.get("JOBBOARD_CONSOLE_FILE", ROOT / "target" / "checked" / "jobboard-console"))
ENVIRONMENT = {**os.environ, "JOBBOARD_MODULE": str(MODULE), "PYTHONUNBUFFERED": "1"}


def heed_signals() -> None:
    """A shell that runs the tests in the background has SIGINT ignored, and `nohup` SIGHUP."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class Serving:
    """`jobboard serve` in a process of its own. `wait` returns when it serves, or has ended.

    It writes to the file `output`, or to a terminal that is copied there.
    """

    def __init__(
        self, words: list[object], output: Path, environment: dict[str, str], *, terminal: bool = False
    ) -> None:
        self.output = output
        with output.open("wb") as file, contextlib.ExitStack() as stack:
            if terminal:
                screen, file_of_it = os.openpty()
                stack.callback(os.close, file_of_it)
                threading.Thread(target=self._copy, args=(screen,), daemon=True).start()
            self.process = subprocess.Popen(
                [sys.executable, "-m", "jobboard", "serve", *map(str, words)],
                stdin=subprocess.DEVNULL,
                stdout=file_of_it if terminal else file,
                stderr=file,
                env={**ENVIRONMENT, **environment},
                preexec_fn=heed_signals,
            )

    def _copy(self, screen: int) -> None:
        with contextlib.suppress(OSError), self.output.open("ab") as file:  # until the last writer has ended
            while read := os.read(screen, 4096):
                file.write(read)
                file.flush()
        os.close(screen)

    def wait(self) -> None:
        wait_until(
            lambda: self.process.poll() is not None or "saves and ends" in self.text,
            60,
            what="jobboard serve",
        )

    @property
    def text(self) -> str:
        return self.output.read_text(errors="replace")

    @property
    def url(self) -> str:
        """By the line that it prints, which a shell would understand."""
        line = re.search(r"export JOBBOARD_URL=.+", self.text)[0]
        words = ["sh", "-c", f'{line}\nprintf %s "$JOBBOARD_URL"']
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout

    @property
    def console(self) -> str:
        return re.search(r"console +(http://\S+)", self.text)[1]

    def board(self, name: str = "mails") -> jobboard.Board:
        return jobboard.Board(name, self.url)

    def server_pid(self) -> int:
        return self.board().client.info("server")["process_id"]

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)

    def kill(self) -> None:
        """As kill -9 does: what it started has to end by itself."""
        self.process.kill()
        self.process.wait()


@pytest.fixture
def built_console() -> Path:
    return CONSOLE


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def serve(data: Path, tmp_path: Path) -> Iterator[Callable[..., Serving]]:
    started: list[Serving] = []

    def start(
        *words: object, folder: Path | None = data, terminal: bool = False, **environment: str
    ) -> Serving:
        ports = [] if "--port" in words else ["--port", 0]
        where = ["--temporary"] if folder is None else ["--dir", folder]
        words = (*where, "--console-port", 0, *ports, *words)
        console = [] if "--no-console" in words or "--console" in words else ["--console", CONSOLE]
        one = Serving([*words, *console], tmp_path / f"serve-{len(started)}", environment, terminal=terminal)
        started.append(one)
        one.wait()
        return one

    yield start
    for one in started:
        if one.process.poll() is None:
            try:
                one.stop()
            finally:
                one.kill()


@pytest.fixture
def refused(serve: Callable[..., Serving]) -> Callable[..., str]:
    def start(*words: object, **options: object) -> str:
        one = serve(*words, "--no-console", **options)
        assert one.process.poll() not in (None, 0), one.text
        # It says so of a server that takes long to start, as on a busy machine.
        [line] = [line for line in one.text.splitlines() if line != "The server is loading its data."]
        assert line.startswith("jobboard: ")
        return line

    return start


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=48m", "none", folder], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def of_kind(kind: str) -> list[str]:
    return ["--server", str(executable(kind))]
