"""TaskFlow's own tests, as they come in its wheel, on the driver.

- its redis jobboard tests, the jobboard mixin among them: `RedisJobBoard` stands for the driver
- the mixin again, on boards that are fetched by their entry point and make their client themselves
- its conductor tests and its claim-listener tests, which are written for ZooKeeper: their methods that make
  the board, or reach into ZooKeeper's tree, are replaced

Every test of these classes runs. Those of other classes in the same files know no jobboard. The conductor
tests wait a second each; so each kind of server has one of the three conductors.
"""

from __future__ import annotations

import importlib
import os
import threading
import time
import types
import unittest
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest

pytest.importorskip("taskflow", reason="TaskFlow 6.5 needs Python 3.11")

from harness import KINDS, Server  # noqa: E402
from jobboard.taskflow import JobBoard  # noqa: E402
from taskflow.conductors import backends as conductors  # noqa: E402
from taskflow.jobs import backends  # noqa: E402
from taskflow.persistence.backends import impl_memory  # noqa: E402


def load(name: str, backend: str) -> Any:
    """A module of TaskFlow's tests. When it is imported it looks for a backend, for up to 30 s, and skips its
    tests when there is none; this variable (so spelled) tells it that there is one."""
    with mock.patch.dict(os.environ, TAKSFLOW_TEST_URL=f"{backend}://"):
        return importlib.import_module(f"taskflow.tests.unit.{name}")


redis_job = load("jobs.test_redis_job", "redis")
board_tests = load("jobs.base", "redis")
test_conductors = load("test_conductors", "zookeeper")
test_listeners = load("test_listeners", "zookeeper")

NAMESPACE = "theirs"


def conf(server: Server) -> dict:
    return {"board": "jobboard", "port": server.port, "namespace": NAMESPACE}


class FetchedBoard(redis_job.test.TestCase, board_tests.BoardTestMixin):
    """The mixin on a board that owns its client."""

    __test__ = False  # pytest: run below
    server: Server

    def setUp(self) -> None:
        super().setUp()
        self.client, self.board = self.create_board()

    def create_board(self, persistence: Any = None) -> tuple:
        board = backends.fetch("test-board", conf(self.server), persistence=persistence)
        self.addCleanup(board.close)
        return None, board


class Conductors(test_conductors.ManyConductorTest):
    __test__ = False  # pytest: run below
    server: Server

    def make_components(self) -> Any:
        persistence = impl_memory.MemoryBackend()
        board = backends.fetch("testing", conf(self.server), persistence=persistence)
        conductor = conductors.fetch(
            self.kind, "testing", board, persistence=persistence, **self.conductor_kwargs
        )
        self.sleep_until_stop_of(conductor)
        return test_conductors.ComponentBundle(board, persistence, conductor)

    def sleep_until_stop_of(self, conductor: Any) -> None:
        """Its tasks that sleep do so until it is told to stop, and not for some seconds."""
        stop, stopped = conductor.stop, threading.Event()

        def execute(task: Any, duration: float, **_: Any) -> None:
            assert stopped.wait(test_conductors.test_utils.WAIT_TIMEOUT)

        conductor.stop = lambda: (stop(), stopped.set())
        patch = mock.patch.object(test_conductors.test_utils.SleepTask, "execute", execute)
        patch.start()
        self.addCleanup(patch.stop)


class ClaimListener(test_listeners.TestClaimListener):
    __test__ = False  # pytest: run below
    server: Server

    def setUp(self) -> None:
        super(test_listeners.TestClaimListener, self).setUp()
        self.board = backends.fetch("test", conf(self.server))
        self.addCleanup(self.board.close)
        self.board.connect()

    def _post_claim_job(self, job_name: str, book: Any = None, details: Any = None) -> Any:
        job = self.board.post("test-1")
        self.board.claim(job, self.board.name)
        return job

    def _destroy_locks(self) -> int:
        """The server takes the claims back."""
        return self.server.board(NAMESPACE).where("release", state="claimed").count

    def _change_owner(self, new_owner: str) -> int:
        """The server takes the claims back and another claims the jobs."""
        released = self._destroy_locks()
        return released and len(self.server.board(NAMESPACE).claim(new_owner, count=released))


def cases(base: type) -> list:
    """All tests of a class, each for each of its scenarios."""
    found = []
    for name in unittest.TestLoader().getTestCaseNames(base):
        for scenario, attributes in getattr(base, "scenarios", [("", {})]):
            found.append(pytest.param(name, attributes, id=f"{name}-{scenario}".rstrip("-")))
    return found


def run(base: type, name: str, attributes: dict, server: Server) -> None:
    case = type(base.__name__, (base,), {**attributes, "scenarios": None, "server": server})(name)
    result = unittest.TestResult()
    case.run(result)
    assert (result.testsRun, result.skipped) == (1, [])
    for _, text in result.errors + result.failures:
        pytest.fail(text, pytrace=False)


SLOWER = 20


class SlowerBoard(JobBoard):
    """Claims end later, as the tests' sleeps do: theirs is of half a second."""

    def claim(self, job: Any, who: str, expiry: float | None = None) -> None:
        super().claim(job, who, expiry and SLOWER * expiry)


@pytest.fixture
def as_redis_board(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(redis_job.impl_redis, "RedisJobBoard", SlowerBoard)
    slower = types.SimpleNamespace(sleep=lambda seconds: time.sleep(SLOWER * seconds))
    monkeypatch.setattr(redis_job, "time", slower)
    monkeypatch.setattr(redis_job, "REDIS_PORT", server.port)
    yield


@pytest.mark.parametrize("name, attributes", cases(redis_job.RedisJobboardTest))
def test_redis_jobboard(server: Server, as_redis_board: None, name: str, attributes: dict):
    run(redis_job.RedisJobboardTest, name, attributes, server)


@pytest.mark.parametrize("name, attributes", cases(FetchedBoard))
def test_board_mixin(server: Server, name: str, attributes: dict):
    run(FetchedBoard, name, attributes, server)


@pytest.mark.parametrize("name", unittest.TestLoader().getTestCaseNames(Conductors))
def test_conductor(server: Server, kind: str, name: str):
    _, attributes = Conductors.scenarios[list(KINDS).index(kind)]
    run(Conductors, name, attributes, server)


@pytest.mark.parametrize("name, attributes", cases(ClaimListener))
def test_claim_listener(server: Server, name: str, attributes: dict):
    run(ClaimListener, name, attributes, server)


def test_all_of_them_run():
    """A later TaskFlow with more tests, or other names, is seen here."""
    counts = [
        len(cases(one)) for one in (redis_job.RedisJobboardTest, FetchedBoard, Conductors, ClaimListener)
    ]
    assert counts == [22, 13, 33, 4]
