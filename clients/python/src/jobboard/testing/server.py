"""A private server for tests."""

from __future__ import annotations

import atexit
import secrets
import signal
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import redis
import redis.asyncio

from ..board import AsyncBoard, AsyncShardedBoard, Board
from ..board.sending import GUARDS
from ..connecting import connect_async, place_of
from ..serving import CannotServe, ServerProcess, find_module, find_server
from ..serving.ports import any_free
from .clock import Clock

if TYPE_CHECKING:
    from ..codecs import Codec

WITHIN = 60.0
"""Seconds that a server has to start."""
ASYNC = (AsyncBoard, AsyncShardedBoard)
CLIENTS = (redis.Redis, redis.RedisCluster, redis.asyncio.Redis, redis.asyncio.RedisCluster)
SERVER, MODULE = "TestServer(server=…)", "TestServer(module=…)"
"""What names other parts."""
TRIES = 5
"""Ports that are tried: another program may take one between the look and the start."""
RUNNING: list[TestServer] = []
"""The servers of this process: a guard lets boards talk to each of them."""


class TestServer:
    """A server with the module for this process: a free port, a password, a folder that goes with it.

        with TestServer() as board:
            board.post({"to": "ann"}, name="welcome")

    `async with` gives an AsyncBoard. `server` and `module` are others than those of the extra `server`, as in
    `jobboard serve`. Time moves only by `clock`, unless `manual_clock` is False. `config` are lines for the
    server's configuration.
    """

    __test__ = False  # for pytest: no test, in spite of its name

    def __init__(
        self,
        name: str = "board",
        *,
        codec: str | Codec = "json",
        manual_clock: bool = True,
        server: str | None = None,
        module: str | None = None,
        config: Sequence[str] = (),
    ) -> None:
        self.name, self.codec, self.manual_clock = name, codec, manual_clock
        self._parts, self._config = (find_server(server, SERVER), find_module(module, MODULE)), config
        self._process: ServerProcess | None = None
        self._used: list[tuple[Any, Any]] = []
        self._allowed: set[str] = set()

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        self._folder = tempfile.TemporaryDirectory(prefix="jobboard-test-")
        try:
            self._process = self._started(TRIES)
        except BaseException:
            self._folder.cleanup()
            raise
        atexit.register(self.stop)
        RUNNING.append(self)
        self.client: redis.Redis = redis.Redis.from_url(self.url)
        if self.manual_clock:
            self.clock.set(datetime.now(timezone.utc))

    def stop(self) -> None:
        """Ends it at once, with all that is in it. Boards that `use` has taken are as before."""
        process, self._process = self._process, None
        if process is None:
            return
        atexit.unregister(self.stop)
        self.release()
        RUNNING.remove(self)
        self.client.close()
        process.kill()
        self._folder.cleanup()

    @property
    def url(self) -> str:
        """Its address, with the password."""
        return self._running.url

    @property
    def clock(self) -> Clock:
        if not self.manual_clock:
            raise TypeError("the clock of this server is the machine's: TestServer(manual_clock=True)")
        return Clock(self.client)

    def board(self, name: str | None = None, **options: Any) -> Board:
        """A board on it, with options of `Board`."""
        return Board(name or self.name, self.client, **{"codec": self.codec, **options})

    def async_board(self, name: str | None = None, **options: Any) -> AsyncBoard:
        """Likewise an AsyncBoard, with a client of its own, for the event loop that runs."""
        return AsyncBoard(name or self.name, connect_async(self.url), **{"codec": self.codec, **options})

    def use(self, *boards: Any) -> None:
        """Lets boards of a program (Board, ShardedBoard, AsyncBoard) talk to this server, until `release`.
        Until then boards of other servers are refused, as by `guard`.
        """
        _check_boards("use", boards)
        self.guard()
        for board in boards:
            client = connect_async(self.url) if isinstance(board, ASYNC) else self.client
            for part in (board, *getattr(board, "boards", ())):
                self._used.append((part, part.client))
                part.client = client

    def guard(self) -> None:
        """Refuses, until `release`, what a board of another server sends: a test that forgets `use` would
        post real jobs.
        """
        if self._refuse_real not in GUARDS:
            GUARDS.append(self._refuse_real)

    def allow(self, *boards: Any) -> None:
        """Lets boards talk to their own servers in spite of `guard`, until `release`."""
        _check_boards("allow", boards)
        self._allowed.update(place_of(board.client) for board in boards)

    def refuse_foreign(self, board: Any) -> None:
        """Raises RuntimeError when a board is on another server: its jobs are real."""
        if not self._has(board.client):
            raise _foreign(board, "")

    def _refuse_real(self, board: Any) -> None:
        client = board.client
        if not isinstance(client, CLIENTS) or any(server._has(client) for server in RUNNING):
            return  # what is no client of redis-py is a test's own
        if place_of(client) not in self._allowed:
            raise _foreign(board, ", or jobboard.allow(board) if you mean them")

    def _has(self, client: Any) -> bool:
        pool = getattr(client, "connection_pool", None)
        here, there = urlsplit(self.url), getattr(pool, "connection_kwargs", {})
        host = "127.0.0.1" if there.get("host") == "localhost" else there.get("host")
        return (host, there.get("port")) == (here.hostname, here.port)

    def release(self) -> None:
        """Gives the boards that `use` has taken their own clients again, and refuses none any more."""
        if self._refuse_real in GUARDS:
            GUARDS.remove(self._refuse_real)
        self._allowed.clear()
        while self._used:
            part, client = self._used.pop()
            part.client = client

    def empty(self) -> None:
        """Removes all boards, and ends all connections, so that nobody waits for jobs; it is now again."""
        for kind in ("normal", "pubsub"):
            self.client.execute_command("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")  # type: ignore[no-untyped-call]
        self.client.flushall()
        if self.manual_clock:
            self.clock.set(datetime.now(timezone.utc))

    def __enter__(self) -> Board:
        self.start()
        return self.board()

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> AsyncBoard:
        self.start()
        self._async = self.async_board()
        return self._async

    async def __aexit__(self, *_: object) -> None:
        await self._async.client.aclose()
        self.stop()

    @property
    def _running(self) -> ServerProcess:
        if self._process is None:
            raise RuntimeError("the server does not run: with TestServer() as board: …")
        return self._process

    def _started(self, tries: int) -> ServerProcess:
        server, module = self._parts
        process = ServerProcess(
            *(server, module, Path(self._folder.name)),
            port=any_free(),
            password=secrets.token_urlsafe(12),
            load=["clock", "manual"] if self.manual_clock else [],
            config=["appendonly no", *self._config],
            last_signal=signal.SIGKILL,
        )
        deadline = time.monotonic() + WITHIN

        def waiting() -> None:
            if time.monotonic() > deadline:
                raise CannotServe(f"{server.path} did not answer within {WITHIN} s")

        try:
            process.start(waiting)
        except CannotServe as error:
            if tries > 1 and "has taken the port" in str(error):
                return self._started(tries - 1)
            raise
        return process


def _check_boards(verb: str, boards: Sequence[Any]) -> None:
    for board in boards:
        if not hasattr(board, "client"):
            raise TypeError(f"{verb} takes boards, not {board!r:.100}")


def _foreign(board: Any, more: str) -> RuntimeError:
    return RuntimeError(
        f"{board!r:.100} is on another server than that of the tests, so its jobs are real: "
        f"call jobboard.use(board) first{more}"
    )
