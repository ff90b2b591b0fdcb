"""Broadcasts: what is published to an exchange of the type fanout goes to all who listen at that moment.

Remote control and events of Celery are broadcasts. They go by Pub/Sub, as with Celery's redis transport.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import redis

from .. import replies
from ..connecting import BROKEN, TROUBLE
from ..worker.outage import Outage

PATIENCE = 1.0
"""Seconds that a look at the connection waits."""

SOON = 5.0
"""Seconds within which a server answers a subscription."""


def channel_name(db: int, board: str, exchange: str, routing_key: str = "") -> str:
    return f"jobboard.celery:{db}:{board}:{exchange}" + (f"/{routing_key}" if routing_key else "")


def is_pattern(topic: str) -> bool:
    return any(one in topic for one in "*?[\\")


class Listener:
    """Listens to topics, which are names of channels or patterns, and hands over the topic and what comes.

    A pattern is asked for only where there is a wildcard: the server lets a user ask for a name that is among
    those allowed, but for no pattern that is not allowed word for word.
    """

    def __init__(self, client: redis.Redis, arrived: Callable[[str, bytes], None], outage: Outage) -> None:
        self._arrived, self._outage = arrived, outage
        self._pubsub: Any = client.pubsub()  # type: ignore[no-untyped-call]
        self._lock = threading.Lock()
        self._answered: dict[str, threading.Event] = {}
        self._refused: redis.ResponseError | None = None
        self._thread: threading.Thread | None = None
        self._closing = False

    def listen(self, topic: str) -> None:
        """Returns when the server has heard of it, so that what is published from now on comes here."""
        with self._lock:
            answered = self._answered.setdefault(topic, threading.Event())
            (self._pubsub.psubscribe if is_pattern(topic) else self._pubsub.subscribe)(topic)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="jobboard-celery-fanout", daemon=True)
                self._thread.start()
        answered.wait(SOON)
        if self._refused is not None:
            raise self._refused

    def leave(self, topic: str) -> None:
        with self._lock:
            self._answered.pop(topic, None)
            with contextlib.suppress(*TROUBLE, *BROKEN):  # it is not asked for again
                (self._pubsub.punsubscribe if is_pattern(topic) else self._pubsub.unsubscribe)(topic)

    def close(self) -> None:
        self._closing = True
        if self._thread is not None:
            connected = getattr(self._pubsub.connection, "_sock", None)
            if connected is not None:
                with contextlib.suppress(OSError):
                    connected.shutdown(socket.SHUT_RDWR)
            self._thread.join(SOON)
        self._pubsub.close()

    def _run(self) -> None:
        lost = False
        while not self._closing:
            asked = time.monotonic()
            try:
                message = self._pubsub.get_message(timeout=PATIENCE)
            except (*TROUBLE, *BROKEN) as error:
                if self._closing:
                    return
                self._outage.gone(error, "broadcasts", asked)
                lost = True
                time.sleep(PATIENCE)  # redis-py connects and subscribes again at the next call
                continue
            except redis.ResponseError as error:
                self._refuse(error)
                return
            if lost:
                lost = False
                self._outage.back(asked)
            if message is not None:
                self._take(message)
            elif not self._pubsub.subscribed:
                time.sleep(PATIENCE / 20)  # get_message has not waited

    def _take(self, message: dict[str, Any]) -> None:
        kind = message["type"]
        if kind in ("psubscribe", "subscribe"):
            answered = self._answered.get(replies.text(message["channel"]))
            if answered is not None:
                answered.set()
        elif kind in ("pmessage", "message"):
            topic = message["pattern"] if kind == "pmessage" else message["channel"]
            self._arrived(replies.text(topic), message["data"])

    def _refuse(self, error: redis.ResponseError) -> None:
        self._refused = error
        for answered in list(self._answered.values()):
            answered.set()
