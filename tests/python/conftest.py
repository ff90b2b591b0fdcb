"""Fixtures of the suite.

A test that uses one of the server fixtures runs on each kind of server when it has the marker `every_server`,
or its folder is in `ON_EVERY_SERVER` and it has no marker `one_server`; any other runs on one kind, chosen by
its name. `--every-server` runs all of them on all kinds, as `make ci` does, and those with the marker
`thorough`, which need it to run.
Tests with the marker `long` start first, then those with servers or programs of their own, each among
quick ones.

server         a shared server (system clock), empty at the start of the test
clocked        a shared server with `clock manual`, empty, its clock at harness.EPOCH
clock          the clock of `clocked`: clock.advance(ms)
board          Board "board" on `server` (RESP3, text replies)
clocked_board  Board "board" on `clocked`
fresh_server   a factory of servers of the test's own: fresh_server("clock", "manual", appendonly=True,
               replicaof=other, config=["maxmemory 100mb"]); they are killed at the end of the test
kind           redis70, redis82 or valkey91: the kind of server that the test runs on
cluster        a cluster of three primaries, of the test's own
watched        a primary, a replica and three Sentinels, of the test's own: watched.url, watched.servers,
               watched.sentinels, watched.fail_over()
protocol       2 and 3: name it to run a test under both, as in server.board(protocol=protocol)

A test fails when one of its servers has ended, crashed or panicked by its end (one that the test itself has
stopped need not run). A shared server begins each test without keys, clients, counters and SLOWLOG, and with
its first configuration. A test that leaves other traces (a reload) calls `server.spoil()` or takes a
`fresh_server`.

--server=redis70 (repeatable) restricts the kinds.

hiredis reads the replies, in a tenth of the time. With tests/without-hiredis in PYTHONPATH redis-py does,
as for most users.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness import EPOCH, KINDS, Board, Clock, Server
from harness.cluster import Cluster
from sentinels import Watched

ON_EVERY_SERVER = {"server"}
"""The folders with tests of what differs between servers: blocking, time, replication, disk, protocol …"""

STARTS_PROGRAMS = {"celery", "console", "django", "importers", "programs", "serving", "testing"}
"""The folders whose tests start programs: workers, browsers, compilers …"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--server", action="append", choices=KINDS, help="only this kind of server; repeatable")
    parser.addoption("--every-server", action="store_true", help="every test on every kind of server")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "server_kind" in metafunc.fixturenames:
        kinds = metafunc.config.getoption("--server") or KINDS
        if not (metafunc.config.getoption("--every-server") or needs_every_server(metafunc.definition)):
            name = f"{metafunc.definition.path.name} {metafunc.definition.originalname}"
            kinds = [kinds[zlib.crc32(name.encode()) % len(kinds)]]
        metafunc.parametrize("server_kind", kinds, scope="session")


def needs_every_server(test: pytest.Item) -> bool:
    for marker in test.iter_markers():  # the nearest first
        if marker.name in ("every_server", "one_server"):
            return marker.name == "every_server"
    return folder(test) in ON_EVERY_SERVER


def folder(test: pytest.Item) -> str:
    return test.path.relative_to(Path(__file__).parent).parts[0]


def turn(item: pytest.Item) -> int:
    """Tests with lower numbers start first, so that no process ends long after the others."""
    if item.get_closest_marker("long"):
        return 0
    if {"fresh_server", "cluster", "watched"} & set(item.fixturenames):
        return 1
    return 1 if folder(item) in STARTS_PROGRAMS else 2


def among_quick_ones(slow: list[pytest.Item], quick: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Slow tests mostly wait, quick ones compute: mixed, both cores have work. The last ones are quick."""
    share, given = len(quick) // 2 / max(len(slow), 1), 0.0
    rest = iter(quick)
    for item in slow:
        yield item
        given += share
        while given >= 1:
            yield next(rest)
            given -= 1
    yield from rest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--every-server"):
        thorough = [item for item in items if item.get_closest_marker("thorough")]
        config.hook.pytest_deselected(items=thorough)
        items[:] = [item for item in items if not item.get_closest_marker("thorough")]
    if hasattr(config, "workerinput"):
        items.sort(key=turn)
        slow = [item for item in items if turn(item) < 2]
        items[:] = among_quick_ones(slow, items[len(slow) :])


class Pool:
    """The shared servers of this process, one per kind and load arguments, started when first asked for."""

    def __init__(self) -> None:
        self.servers: dict[tuple[str, ...], Server] = {}

    def borrow(self, kind: str, *module_args: str) -> Server:
        """An empty, healthy server."""
        key = (kind, *module_args)
        server = self.servers.get(key)
        if server and server.alive and not server.spoilt:
            server.flush()
        if server is None or server.spoilt or not server.alive:
            if server is not None:
                server.close()
            server = self.servers[key] = Server(kind, *module_args)
            server.first_config = server.server_config()
        return server

    def close(self) -> None:
        for server in self.servers.values():
            server.close()


@pytest.fixture
def thorough(request: pytest.FixtureRequest) -> bool:
    """Whether a test does all that it can, as in `make ci`."""
    return request.config.getoption("--every-server")


@pytest.fixture(autouse=True)
def loggers() -> None:
    """As a program begins: what a test before loaded may have switched them off, or made them quieter."""
    logging.disable(logging.NOTSET)
    logging.getLogger().setLevel(logging.WARNING)
    for name, logger in list(logging.getLogger().manager.loggerDict.items()):
        if name.startswith("jobboard") and isinstance(logger, logging.Logger):
            logger.disabled, logger.propagate = False, True
            logger.setLevel(logging.NOTSET)


@pytest.fixture(autouse=True)
def no_loop_of_a_browser(request: pytest.FixtureRequest) -> Iterator[None]:
    """Browser tests leave an event loop running in their thread: hides it from the tests after them."""
    loop = None if "console" in request.path.parts else asyncio._get_running_loop()
    if loop is not None:
        asyncio._set_running_loop(None)
    yield
    if loop is not None:
        asyncio._set_running_loop(loop)


@pytest.fixture(scope="session")
def pool() -> Iterator[Pool]:
    pool = Pool()
    yield pool
    pool.close()


def _lent(server: Server) -> Iterator[Server]:
    """Lends a shared server to a test and looks at it afterwards."""
    yield server
    try:
        server.check_health()
    except AssertionError:
        server.spoil()
        raise
    finally:
        server.close_clients()


@pytest.fixture
def kind(server_kind: str) -> str:
    return server_kind


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def protocol(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture
def server(pool: Pool, server_kind: str) -> Iterator[Server]:
    yield from _lent(pool.borrow(server_kind))


@pytest.fixture
def clocked(pool: Pool, server_kind: str) -> Iterator[Server]:
    server = pool.borrow(server_kind, "clock", "manual")
    server.clock.set(EPOCH)
    yield from _lent(server)


@pytest.fixture
def clock(clocked: Server) -> Clock:
    return clocked.clock


@pytest.fixture
def board(server: Server) -> Board:
    return server.board()


@pytest.fixture
def clocked_board(clocked: Server) -> Board:
    return clocked.board()


@pytest.fixture
def fresh_server(server_kind: str) -> Iterator[Callable[..., Server]]:
    started: list[Server] = []

    def start(*module_args: object, kind: str = server_kind, **arguments: object) -> Server:
        server = Server(kind, *module_args, **arguments)
        started.append(server)
        return server

    yield start
    try:
        for server in started:
            if server.process is not None:
                server.check_health()
            else:
                server.check_log()
    finally:
        for server in started:
            server.close()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Adds the end of the servers' logs to the report of a failed test."""
    outcome = yield
    report = outcome.get_result()
    if report.when != "call" or not report.failed:
        return
    for name in ("server", "clocked"):
        server = getattr(item, "funcargs", {}).get(name)
        if isinstance(server, Server) and server.log_file.exists():
            report.sections.append((f"log of {name}", server.log_end(30)))


@pytest.fixture
def cluster(server_kind: str) -> Iterator[Cluster]:
    cluster = Cluster(server_kind)
    yield cluster
    try:
        cluster.check_health()
    finally:
        cluster.close()


@pytest.fixture
def watched(fresh_server: Callable[..., Server], kind: str) -> Iterator[Watched]:
    watched = Watched(fresh_server, kind)
    yield watched
    watched.close()
