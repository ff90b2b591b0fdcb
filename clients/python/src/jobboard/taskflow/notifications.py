"""POSTED and REMOVAL, from the events that the board publishes."""

from __future__ import annotations

import base64
import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import redis
from taskflow.jobs import base
from taskflow.types import notifier

from ..connecting import BROKEN
from . import postings
from .job import FIELDS, STATES, Job, moment
from .replies import ask, pairs, text

if TYPE_CHECKING:
    from .board import JobBoard

LOG = logging.getLogger(__name__)

EVENTS = {
    "posted": 1,
    "completed": 32,
    "failed": 128,
    "retried": 256,
    "cancelled": 1024,
    "trashed": 2048,
    "deleted": 4096,
}
"""The events that make a notification, with their bits in the setting `events`."""

REMEMBERED = 10_000
"""Jobs that are remembered, so that a REMOVAL comes with more than their uuid."""

PATIENCE = 5.0
"""Seconds that a registration waits for the subscription."""


class BoardNotifier(notifier.Notifier):
    """Tells when a callback comes, so that a board without any does not listen."""

    def __init__(self, registered: Callable[[], None]) -> None:
        super().__init__()
        self._registered = registered

    def register(self, *words: Any, **options: Any) -> None:
        super().register(*words, **options)
        self._registered()


class Listener:
    """A thread that follows the events of a board while somebody wants notifications of it.

    It lets the board publish what it needs (the setting `events`). After a lost connection it reads what has
    changed meanwhile.
    """

    def __init__(self, board: JobBoard) -> None:
        self._board = board
        self._channel = b"job.events:" + board.key
        self._known: OrderedDict[str, Job] = OrderedDict()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._pubsub: Any = None
        self._version: int | None = None
        self._at = 0
        self._latest: set[str] = set()
        self._caught: dict[tuple[str, str], int] = {}
        """What catching up has told: notification and id, with the version up to which its event is late."""
        self._caught_up_to = 0
        """The greatest of these."""
        self._stopping = threading.Event()
        self._subscribed = threading.Event()

    def start(self, client: Any) -> None:
        """Returns when it listens: what happens from then on is told. Does nothing when it does already."""
        if self._thread is not None:
            return
        self._client = client
        self._stopping.clear()
        self._subscribed.clear()
        self._version = None
        self._thread = threading.Thread(target=self._run, name="jobboard-notifications", daemon=True)
        self._thread.start()
        if not self._subscribed.wait(PATIENCE):
            LOG.warning("No notifications of the board %r yet: the server does not answer", self._board.key)

    def stop(self) -> None:
        if self._thread is None:
            return
        self._stopping.set()
        if self._pubsub is not None:
            try:
                self._pubsub.unsubscribe(self._channel)  # which wakes the thread
            except (redis.RedisError, OSError, AttributeError):
                pass  # no connection: the thread looks by itself
        if self._thread is not threading.current_thread():
            self._thread.join()
        self._thread = None
        self._known.clear()

    def remember(self, job: Job) -> None:
        """Keeps a job until its REMOVAL."""
        if self._thread is not None:
            with self._lock:
                self._known[job.uuid] = job
                if len(self._known) > REMEMBERED:
                    self._known.popitem(last=False)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._publish()
                self._follow()
            except (redis.RedisError, *BROKEN) as error:
                if not self._stopping.is_set():
                    LOG.warning("No notifications of the board %r for now: %s", self._board.key, error)
                    self._stopping.wait(1)

    def _publish(self) -> None:
        """Lets the board publish the events of EVENTS beside those that it publishes already."""
        key = self._board.key
        try:
            found = pairs(ask(self._client, "JOB.SETTINGS", "GET", key, "events", "events-tracked"))
            now = int(found["events"][0])
            wanted = now | sum(EVENTS.values())
            if wanted != now:
                ask(self._client, "JOB.SETTINGS", "SET", key, "events", wanted)
        except redis.ResponseError as error:
            LOG.warning("The board %r may not publish all events: %s", key, error)
            return
        if int(found["events-tracked"][0]):
            LOG.warning("The board %r publishes events of tracked jobs alone (events-tracked)", key)

    def _follow(self) -> None:
        self._pubsub = self._client.pubsub()
        try:
            self._pubsub.subscribe(self._channel)
            while not self._stopping.is_set():
                message = self._pubsub.get_message(timeout=1.0)
                if message is None:
                    continue
                if message["type"] == "subscribe":  # again after a lost connection
                    self._catch_up()
                    self._subscribed.set()
                elif message["type"] == "message":
                    self._tell(json.loads(message["data"]))
        finally:
            self._pubsub.close()

    def _tell(self, event: dict[str, Any]) -> None:
        version = event["version"]
        if event["at"] > self._at:
            self._latest.clear()
            self._at = event["at"]
        self._version = max(self._version, version)
        if version > self._caught_up_to:
            self._caught.clear()
        if event["event"] not in EVENTS or event.get("queue", self._board.queue) != self._board.queue:
            return
        id = event.get("id") or base64.b64decode(event["id64"]).decode("utf-8", "surrogateescape")
        what = _meaning(event)
        if self._caught.get((what, id), 0) >= version:
            del self._caught[what, id]  # told already; what came and went meanwhile was not
        elif what == base.POSTED:
            self._posted(id, event)
        elif what == base.REMOVAL:
            self._removed(id)

    def _catch(self, what: str, id: str, version: int) -> None:
        self._caught[what, id] = version
        self._caught_up_to = max(self._caught_up_to, version)

    def _posted(self, id: str, event: dict[str, Any]) -> None:
        """Of a job that has gone since, what the event says of it."""
        record = ask(self._client, "JOB.GET", self._board.key, id, "FIELDS", len(FIELDS), *FIELDS)
        if record is None:
            job: Job | None = Job(
                self._board,
                event.get("name", ""),
                priority=postings.named(event.get("priority", 0)),
                created_on=moment(event["at"]),
                uuid=id,
            )
        else:
            job = self._board.job_of(pairs(record))
        self._notify_posted(job)

    def _notify_posted(self, job: Job | None) -> None:
        if job is not None:
            self.remember(job)
            self._latest.add(job.uuid)
            self._board.notifier.notify(base.POSTED, {"job": job})

    def _removed(self, id: str) -> None:
        with self._lock:
            job = self._known.pop(id, None)
        self._board.notifier.notify(base.REMOVAL, {"job": job or Job(self._board, "", uuid=id)})

    def _catch_up(self) -> None:
        """Tells what happened while nobody listened; at first, notes where the board is."""
        since, seen, told = self._version, self._at, frozenset(self._latest)
        if since is None:
            info = self._client.execute_command("JOB.INFO", self._board.key)
            self._version = int(pairs(info)["revision"]) if info else 0
            self._at = int(self._board.time() * 1000)
            return
        fields = (*FIELDS, "state", "queue", "ended", "version")
        cursor = "0"
        while True:
            reply = ask(
                self._client, "JOB.LIST", self._board.key, "SINCE", since, "CURSOR", cursor,
                "FIELDS", len(fields), *fields,
            )  # fmt: skip
            if cursor == "0":
                self._version = reply[3]
                if reply[2] is None:
                    LOG.warning("Some removals from the board %r were missed", self._board.key)
                for id in map(text, reply[2] or ()):
                    if id in self._known:  # others may be of another queue, or ended long ago
                        self._catch(base.REMOVAL, id, reply[3])
                        self._removed(id)
            for record in map(pairs, reply[1]):
                if text(record["queue"]) != self._board.queue:
                    continue
                id, live = text(record["id"]), text(record["state"]) in STATES
                version = int(record["version"])
                if live and record["posted"] >= seen and id not in told:
                    self._catch(base.POSTED, id, version)
                    self._notify_posted(self._board.job_of(record))
                elif not live and record["ended"] >= seen and id in self._known:
                    self._catch(base.REMOVAL, id, version)
                    self._removed(id)
            cursor = text(reply[0])
            if cursor == "0":
                return


def _meaning(event: dict[str, Any]) -> str:
    """The notification that an event makes, if any."""
    kind = event["event"]
    if kind == "posted":
        return "" if event.get("replaced") else base.POSTED
    if kind == "retried":
        return base.POSTED if event.get("requeued") else ""
    return "" if kind == "deleted" and event["state"] not in STATES else base.REMOVAL
