"""Fixtures of pytest, which finds them by itself where jobboard is installed.

jobboard         a private server with the manual clock, started once for a test run and emptied before each
                 test. While the test runs it is that of $JOBBOARD_URL, so of Board("mails") too, and a board
                 of another server is refused until `jobboard.use(board)`
jobboard_worker  jobboard_worker(board) runs the handlers of a board inline until no job is ready;
                 `await jobboard_worker.run_async(board)` does so in an event loop

pytest imports this module in every run, also where no test uses jobboard: it imports the package in its
fixtures alone, and is a module of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from jobboard.testing import InlineWorker, TestServer


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("jobboard")
    group.addoption("--jobboard-server", metavar="PATH", help="the server of the fixture `jobboard`")


@pytest.fixture(scope="session")
def _jobboard_server(request: pytest.FixtureRequest) -> Iterator[TestServer]:
    from jobboard.testing import TestServer

    server = TestServer(server=request.config.getoption("--jobboard-server"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def jobboard(_jobboard_server: TestServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestServer]:
    """A private server, empty, whose time moves only by `jobboard.clock`."""
    _jobboard_server.empty()
    monkeypatch.setenv("JOBBOARD_URL", _jobboard_server.url)
    _jobboard_server.guard()
    yield _jobboard_server
    _jobboard_server.release()


@pytest.fixture
def jobboard_worker(jobboard: TestServer) -> InlineWorker:
    """Runs the handlers of a board in the thread of the test."""
    from jobboard.testing import InlineWorker

    return InlineWorker(jobboard)
