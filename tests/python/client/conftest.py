"""Fixtures of the tests of clients/python.

jobs        a jobboard.Board "board" on `server`
app_board   the same with the handlers of client_app
app         makes workers of tests/python/client_app.py, in each mode: app(concurrency=3).run(burst=True)
process     starts `jobboard worker client_app:board …`: process("--threads", "2")
told        what the handlers of client_app have told
work        runs a worker of a board in a thread: work(board, mode="threads"); it is stopped at the end
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jobboard
import pytest
from harness import Server, wait_until

MODES = ["threads", "asyncio", "processes"]
TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def time_to_leave(request, monkeypatch) -> None:
    """So that workers here tell the server of their last ends also on a busy machine."""
    if request.path.name != "test_shard_away.py":  # where there is nobody to be told
        monkeypatch.setattr("jobboard.worker.worker.LEAVE_WITHIN", 60.0)
        monkeypatch.setattr("jobboard.worker.sender.DEREGISTER_WITHIN", 60.0)


@pytest.fixture
def jobs(server: Server) -> jobboard.Board:
    return jobboard.Board("board", server.client(decode_responses=False))


@pytest.fixture
def app_board(jobs: jobboard.Board, server: Server, monkeypatch) -> jobboard.Board:
    """`jobs` with the handlers of tests/python/client_app.py, in this process and in its children."""
    monkeypatch.setenv("JOBBOARD_URL", f"redis://127.0.0.1:{server.port}")
    import client_app

    jobs.handlers = client_app.board.handlers
    monkeypatch.setattr(client_app, "client", jobs.client)
    return jobs


@pytest.fixture(params=MODES)
def app(
    request, app_board: jobboard.Board, told: Callable[[], list[str]]
) -> Iterator[Callable[..., jobboard.Worker]]:
    """Also has `board`, `mode` and `told`."""
    made: list[jobboard.Worker] = []

    def make(**options: Any) -> jobboard.Worker:
        options = {"concurrency": 2, "lease": "30s", "queues": [], "target": "client_app:board", **options}
        made.append(jobboard.Worker(app_board, mode=request.param, **options))
        return made[-1]

    make.board, make.mode, make.told = app_board, request.param, told
    yield make
    for worker in made:
        worker.stop()
        worker.stop()


class Running:
    """A worker in a thread."""

    def __init__(self, board: Any, **options: Any) -> None:
        # None ends while a test prepares, however busy the machine is: tests of lost leases set their own.
        options.setdefault("lease", "1m")
        self.worker = jobboard.Worker(board, **options)
        self.result: Any = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.result = self.worker.run()
        except BaseException as error:
            self.result = error

    @property
    def name(self) -> str:
        return self.worker.name

    def stop(self, within: float = 120.0) -> Any:
        """What `run` returned or raised."""
        self.worker.stop()
        self.thread.join(within)
        assert not self.thread.is_alive(), "the worker did not stop"
        return self.result


@pytest.fixture
def work() -> Iterator[Callable[..., Running]]:
    running: list[Running] = []

    def start(board: Any, **options: Any) -> Running:
        one = Running(board, **options)
        running.append(one)
        return one

    yield start
    for one in running:
        if one.thread.is_alive():
            one.worker.stop()
            one.worker.stop()
    for one in running:
        one.thread.join(120)
        assert not one.thread.is_alive(), "a worker did not stop"


@pytest.fixture
def until() -> Callable[..., Any]:
    return wait_until


class Process:
    """`jobboard worker client_app:board …` in a process of its own, that dies with the test."""

    def __init__(self, port: int, log: Any, *words: str) -> None:
        self.log = log
        self.output = log.open("wb")
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "jobboard", "worker", "client_app:board", *words],
            env={**os.environ, "JOBBOARD_URL": f"redis://127.0.0.1:{port}", "PYTHONPATH": str(TESTS)},
            stdout=self.output,
            stderr=self.output,
        )

    def signal(self, number: int) -> None:
        self.popen.send_signal(number)

    def wait(self, within: float = 120.0) -> int:
        return self.popen.wait(within)

    @property
    def text(self) -> str:
        return self.log.read_text()

    def close(self) -> None:
        self.popen.kill()
        self.popen.wait()
        self.output.close()


@pytest.fixture
def process(server: Server, tmp_path: Any) -> Iterator[Callable[..., Process]]:
    """Starts a worker process of `server`: process("--threads", "2")."""
    started: list[Process] = []

    def start(*words: str) -> Process:
        one = Process(server.port, tmp_path / f"worker-{len(started)}.log", *words)
        started.append(one)
        return one

    yield start
    for one in started:
        one.close()


@pytest.fixture
def told(jobs: jobboard.Board) -> Callable[[], list[str]]:
    """What the handlers of client_app have told."""
    return lambda: [line.decode() for line in jobs.client.lrange("told", 0, -1)]
