"""The transport of `jobboard://`, which kombu finds by jobboard_kombu.py.

Threads claim and listen, and put what came into one line; kombu's own thread takes it out: in `drain_events`,
or in the event loop of Celery's worker, which a pipe wakes.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import redis
from kombu.transport import virtual

from ..board import Board
from ..codecs import Raw
from ..errors import NAMES
from ..worker.outage import Outage
from . import addresses
from .channel import Channel

log = logging.getLogger("jobboard.celery")

Item = Callable[[], bool]
"""What has arrived: called in kombu's thread. False when nobody wanted it."""

_OUTAGES: dict[addresses.Address, Outage] = {}
"""By server: a worker has several connections, and one of them tells."""

_ALL: weakref.WeakSet[Any] = weakref.WeakSet()


class Transport(virtual.Transport):
    Channel = Channel

    default_port = addresses.PORT
    polling_interval = None
    # By this type Celery knows that workers can hear of each other (gossip, mingle), and that events are
    # broadcasts.
    driver_type = "redis"
    driver_name = "jobboard"

    implements = virtual.Transport.implements.extend(
        asynchronous=True, exchange_type=frozenset(["direct", "topic", "fanout"])
    )
    connection_errors = (
        *virtual.Transport.connection_errors,
        OSError,
        redis.ConnectionError,
        redis.TimeoutError,
    )
    channel_errors = (*virtual.Transport.channel_errors, redis.DataError, redis.ResponseError)

    def __init__(self, client: Any, **options: Any) -> None:
        super().__init__(client, **options)
        where = addresses.of_connection(client)
        if "," in (client.hostname or ""):  # kombu takes the Sentinels for one host with a wrong port
            client.as_uri = functools.partial(addresses.shown, client.hostname)
        own = {
            name: client.transport_options[name]
            for name in addresses.CLIENT_OPTIONS
            if name in client.transport_options
        }
        if isinstance(client.ssl, dict):
            own.update(client.ssl)
        self.redis = where.client(own)
        pool: Any = self.redis.connection_pool
        self.db: int = pool.connection_kwargs.get("db", 0)
        self.jobs = Board(where.board, self.redis, codec=Raw())
        self.outage = _OUTAGES.setdefault(where, Outage(log, f"board {where.board}"))
        self._pid = os.getpid()
        self._line: deque[Item] = deque()
        self._arrived = threading.Condition()
        self._wake: tuple[int, int] | None = None
        self._loop: Any = None
        _ALL.add(self)

    def driver_version(self) -> str:
        return redis.__version__

    def establish_connection(self) -> Any:
        try:
            self.jobs.info()  # raises what is wrong: no server, no module, no right
        except redis.ConnectionError as error:  # its hint is for the package's own URLs
            said = str(error).replace("redis://user", "jobboard://user")
            error.args = (said.replace(NAMES, "the URL of `broker`"),)
            raise
        return super().establish_connection()

    def verify_connection(self, connection: Any) -> bool:
        return bool(self.redis.ping())

    def close_connection(self, connection: Any) -> None:
        super().close_connection(connection)
        if self._wake is not None:
            reader, writer = self._wake
            if self._loop is not None and os.getpid() == self._pid:
                with contextlib.suppress(Exception):
                    self._loop.remove(reader)
            with self._arrived:
                self._wake = None
            os.close(reader)
            os.close(writer)
        self._line.clear()
        self.redis.close()

    def arrived(self, item: Item) -> None:
        """In any thread."""
        with self._arrived:
            self._line.append(item)
            self._arrived.notify()
            self._ring()

    def drain_events(self, connection: Any, timeout: float | None = None) -> None:
        """Gives one event to who wants it. Raises TimeoutError."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            with self._arrived:
                left = None if until is None else max(until - time.monotonic(), 0)
                if not self._arrived.wait_for(lambda: self._line, left):
                    raise TimeoutError
                item = self._line.popleft()
            if item():
                return

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        with self._arrived:
            if self._wake is None:
                self._wake = os.pipe()
                for end in self._wake:
                    os.set_blocking(end, False)
            self._loop = loop
            if self._line:
                self._ring()
        loop.add_reader(self._wake[0], self.on_readable, self._wake[0])

    def on_readable(self, fileno: int) -> None:
        """Gives out what has arrived by now; what comes meanwhile waits for the loop's next turn."""
        with contextlib.suppress(BlockingIOError):
            os.read(fileno, 65536)
        for _ in range(len(self._line)):
            with self._arrived:
                if not self._line:
                    return
                item = self._line.popleft()
            try:
                item()
            except BaseException:
                with self._arrived:
                    if self._line:
                        self._ring()
                raise

    def _ring(self) -> None:
        """With the lock."""
        if self._wake is not None:
            with contextlib.suppress(BlockingIOError):  # the pipe is full: it will be read
                os.write(self._wake[1], b"\0")


def _forked() -> None:
    """In a child: what the parent has open is closed here, so that its end is the end for the server."""
    for transport in list(_ALL):
        for channel in list(transport.channels or ()):
            channel.holder.forget()


os.register_at_fork(after_in_child=_forked)
