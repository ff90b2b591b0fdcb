"""Fixtures of the tests of clients/python.

jobs        a jobboard.Board "board" on `server`
work        runs a worker of a board in a thread: work(board, mode="threads"); it is stopped at the end
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, Callable

import jobboard
import pytest
from harness import Server, wait_until


@pytest.fixture
def jobs(server: Server) -> jobboard.Board:
    return jobboard.Board("board", server.client(decode_responses=False))


class Running:
    """A worker in a thread."""

    def __init__(self, board: Any, **options: Any) -> None:
        options.setdefault("lease", 3000)
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

    def stop(self, within: float = 10.0) -> Any:
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
        one.thread.join(10)
        assert not one.thread.is_alive(), "a worker did not stop"


@pytest.fixture
def until() -> Callable[..., Any]:
    return wait_until
