"""What happens on a board, as it happens: the messages that the server publishes."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import redis

from .. import replies
from ..connecting import BROKEN, TROUBLE
from .administering import Administering
from .sending import Steps, run_async, run_sync

MISSED = "missed"
PATIENCE = 1.0
"""Seconds that one look for a message takes, and after which a lost connection is tried again."""

PING_EVERY = 3.0
SILENCE = 10.0
"""Seconds without a word, not even a pong, after which a connection is taken for lost."""

LOST = (*TROUBLE, *BROKEN)


class Event:
    """One message. `event` is its kind, such as `posted` or `completed`: see Events in commands.md. `id` is
    the job, `at` the time (Unix ms), `version` the board's revision; `fields` has all that was said.

    The kind `missed` is the package's own: the connection was lost, and whatever happened since the event
    before was not heard.
    """

    __slots__ = ("event", "id", "at", "version", "fields")

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.fields = fields
        self.event: str = fields["event"]
        self.id: str | None = fields.get("id")
        self.at: int | None = fields.get("at")
        self.version: int | None = fields.get("version")

    def __repr__(self) -> str:
        return f"Event({', '.join(f'{name}={value!r}' for name, value in self.fields.items())})"


def event_of(data: bytes) -> Event | None:
    """Names that end in `64` are base64 of bytes that are not UTF-8; they become text as everywhere. None for
    what is no event: whoever may publish on the channel can say anything there.
    """
    try:
        found = json.loads(data)
        for name in [name for name in found if name.endswith("64")]:
            found[name[:-2]] = replies.text(base64.b64decode(found.pop(name)))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
    return Event(found) if isinstance(found, dict) and "event" in found else None


KINDS = {
    kind: 1 << bit
    for bit, kind in enumerate(
        "posted ready claimed lost progress completed advanced failed retried abandoned cancelled trashed "
        "deleted settings dead awaiting signalled grace updated".split()
    )
}
"""The kinds, with their bits in the setting `events`."""


class Source:
    """The channels of a board, and which kinds of its events are wanted."""

    def __init__(self, board: Any, kinds: tuple[str, ...]) -> None:
        if unknown := [kind for kind in kinds if kind not in KINDS]:
            raise ValueError(f"there is no event {unknown[0]!r}; there are {', '.join(KINDS)}")
        if not hasattr(board.client, "pubsub"):
            raise TypeError(
                "redis.asyncio.RedisCluster has no Pub/Sub: use a redis.asyncio.Redis of one node"
            )
        self.board, self.kinds = board, kinds
        shards: list[Any] = board.requests() if hasattr(board, "requests") else [board]
        self.channels = [b"job.events:" + replies.data(replies.text(one.key)) for one in shards]
        pool = getattr(board.client, "connection_pool", None)
        self.db = int(pool.connection_kwargs.get("db") or 0) if pool else 0

    def pubsub(self, losses: int) -> Any:
        """For a new connection, after so many were lost. A cluster's client gives one to the node of the
        first channel; when that one is lost, any other node hears of all.
        """
        client = self.board.client
        if not losses or not hasattr(client, "get_nodes"):
            return client.pubsub()
        nodes = client.get_nodes()
        return client.pubsub(node=nodes[losses % len(nodes)])

    def check(self) -> Steps[None]:
        """Raises ValueError when the board does not publish all that is wanted."""
        try:
            found = yield from Administering.settings_get.of(self.board, "events")
        except redis.exceptions.NoPermissionError:
            return
        published = found["events"].value
        missing = [kind for kind in self.kinds if not published & KINDS[kind]]
        if missing or not published:
            raise ValueError(
                f"this board publishes no {' or '.join(missing) or 'events'}: "
                "board.settings_set({'events': 'all'}), or those that you want: 'completed,failed'"
            )

    def wanted(self, message: Any) -> Event | None:
        """The event of a message of redis-py, if there is one."""
        if message is None:
            return None
        if message["type"] == "subscribe":  # redis-py has connected again
            first = message["channel"] in (self.channels[0], replies.text(self.channels[0]))
            return Event({"event": MISSED}) if first else None
        event = event_of(message["data"])
        if event is None or event.fields.get("db") != self.db:
            return None
        return event if not self.kinds or event.event in self.kinds else None


class Pulse:
    """When to ping, and when a connection has been silent for too long: a frozen server, or a machine that is
    gone, ends none.
    """

    def __init__(self) -> None:
        self.heard = self.pinged = time.monotonic()

    def take(self, message: Any) -> None:
        if message is not None:
            self.heard = time.monotonic()

    def is_due(self) -> bool:
        """Raises ConnectionError when the server has been silent for too long."""
        now = time.monotonic()
        if now - self.pinged < PING_EVERY:
            return False
        if now - self.pinged > SILENCE:  # nobody has looked meanwhile, so nothing could be heard
            self.heard = now
        if now - self.heard > SILENCE:
            raise redis.ConnectionError("the server is silent")
        self.pinged = now
        return True


def is_of_ping(error: Exception) -> bool:
    """A user without the right to ping is answered all the same."""
    return isinstance(error, redis.exceptions.NoPermissionError) and "ping" in str(error).lower()


def answered_by(until: float) -> None:
    """Raises ConnectionError when that moment, by the monotonic clock, has passed."""
    if time.monotonic() > until:
        raise redis.ConnectionError(f"SUBSCRIBE was not answered within {SILENCE:g} s")


class Events:
    """Walks over what happens on a board, from the moment when it was made until `close`."""

    def __init__(self, board: Any, kinds: tuple[str, ...]) -> None:
        self._source = Source(board, kinds)
        run_sync(board, self._source.check())
        self._pubsub: Any = None
        self._closed = False
        self._losses = 0
        self._connect()

    def __enter__(self) -> Events:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the walk, also from another thread."""
        self._closed = True
        self._disconnect()

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        while not self._closed:
            try:
                if (pubsub := self._pubsub) is None:
                    self._connect()
                    if self._closed:
                        break  # meanwhile
                    return Event({"event": MISSED})
                if self._pulse.is_due():
                    pubsub.ping()
                message = pubsub.get_message(timeout=PATIENCE)
                self._pulse.take(message)
            except Exception as error:
                if self._closed:
                    break  # meanwhile, which redis-py does not expect
                if is_of_ping(error):
                    self._pulse.take(error)
                    continue
                if not isinstance(error, LOST):
                    raise
                self._losses += 1
                self._disconnect()
                time.sleep(PATIENCE)
                continue
            found = self._source.wanted(message)
            if found is not None:
                return found
        raise StopIteration

    def _connect(self) -> None:
        pubsub = self._source.pubsub(self._losses)
        try:
            pubsub.subscribe(*self._source.channels)
            until = time.monotonic() + SILENCE
            for _ in self._source.channels:
                while pubsub.get_message(timeout=PATIENCE) is None:
                    answered_by(until)
        except BaseException:
            pubsub.close()
            raise
        self._pubsub, self._pulse = pubsub, Pulse()
        if self._closed:  # meanwhile
            self._disconnect()

    def _disconnect(self) -> None:
        pubsub, self._pubsub = self._pubsub, None
        if pubsub is not None:
            pubsub.close()


class AsyncEvents:
    """The same of `asyncio`; it begins with `async with`, or with the first event."""

    def __init__(self, board: Any, kinds: tuple[str, ...]) -> None:
        self._source = Source(board, kinds)
        self._pubsub: Any = None
        self._closed = False
        self._losses = 0

    async def __aenter__(self) -> AsyncEvents:
        await self._connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        self._closed = True
        await self._disconnect()

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        while not self._closed:
            if self._pubsub is None and not self._losses:
                await self._connect()
                continue
            try:
                if (pubsub := self._pubsub) is None:
                    await self._connect()
                    if self._closed:
                        break  # meanwhile
                    return Event({"event": MISSED})
                if self._pulse.is_due():
                    await pubsub.ping()
                message = await pubsub.get_message(timeout=PATIENCE)
                self._pulse.take(message)
            except Exception as error:
                if self._closed:
                    break  # by another task
                if is_of_ping(error):
                    self._pulse.take(error)
                    continue
                if not isinstance(error, LOST):
                    raise
                self._losses += 1
                await self._disconnect()
                await asyncio.sleep(PATIENCE)
                continue
            found = self._source.wanted(message)
            if found is not None:
                return found
        raise StopAsyncIteration

    async def _connect(self) -> None:
        if not self._losses:
            await run_async(self._source.board, self._source.check())
        pubsub = self._source.pubsub(self._losses)
        try:
            await pubsub.subscribe(*self._source.channels)
            until = time.monotonic() + SILENCE
            for _ in self._source.channels:
                while await pubsub.get_message(timeout=PATIENCE) is None:
                    answered_by(until)
        except BaseException:  # also a cancel: the next call begins anew
            await pubsub.aclose()
            raise
        self._pubsub, self._pulse = pubsub, Pulse()
        if self._closed:  # meanwhile
            await self._disconnect()

    async def _disconnect(self) -> None:
        pubsub, self._pubsub = self._pubsub, None
        if pubsub is not None:
            await pubsub.aclose()


class Watched:
    """A board whose events can be heard."""

    def events(self, *kinds: str) -> Events:
        """Walks over what happens on the board from now on, all of it or these kinds.

            for event in board.events("completed", "failed"):
                print(event.event, event.id)

        Raises ValueError when the board does not publish them (setting `events`). After a lost connection
        there is an event `missed`: read what you need anew. It has a connection of its own.
        """
        return Events(self, kinds)


class AsyncWatched:
    """The same of `asyncio`."""

    def events(self, *kinds: str) -> AsyncEvents:
        """Walks over what happens on the board, `async for event in board.events("completed")`: see
        `Board.events`.
        """
        return AsyncEvents(self, kinds)
