"""The jobboard itself: TaskFlow's calls as JOB.* commands."""

from __future__ import annotations

import heapq
import logging
import threading
from collections.abc import Iterator
from typing import Any

import fasteners
import redis
from oslo_utils import strutils, timeutils, uuidutils
from taskflow import exceptions as exc
from taskflow.jobs import base
from taskflow.types import entity as entities
from taskflow.utils import misc

from . import postings
from .connecting import make_client, patience
from .failures import LOST, code, translated
from .job import FIELDS, Job
from .notifications import BoardNotifier, Listener
from .replies import ask, pairs, text
from .session import Session

LOG = logging.getLogger(__name__)

PAGE = 100
"""Jobs that one command reads."""


class JobIterator(base.JobBoardIterator):
    """Jobs page by page, as they are asked for, so that the first job of a long board costs one page.

    A job may be claimed by another between its page and its turn: then claiming it raises UnclaimableJob."""

    _found: Iterator[Job] | None = None

    def __next__(self) -> Job:
        if self._found is None:
            fetch = self._board_fetch_func
            self._found = iter(fetch(ensure_fresh=self.ensure_fresh, only_unclaimed=self.only_unclaimed))
        return next(self._found)


class JobBoard(base.NotifyingJobBoard):
    """A jobboard of TaskFlow on a board of the module. `conf` has:

    namespace           the key of the board (default: taskflow)
    queue               its queue that is posted to and worked on (default: default)
    lease               seconds after which the claims of a process that hangs end (default: 30)
    emit_notifications  false: POSTED and REMOVAL are not told (default: true)

    and the options of the connection, which are those of TaskFlow's redis board: host, port, db, username,
    password, socket_timeout, ssl …, sentinel, sentinel_fallbacks, sentinel_kwargs. Or pass a redis.Redis as
    `client`. `persistence` is where logbooks are read.

    A claim without `expiry` lives as long as its process: it ends when the process does, or when the board is
    closed. One with `expiry` ends by itself, unless Job.extend_expiry is called in time.
    """

    DEFAULT_NAMESPACE = "taskflow"
    DEFAULT_LEASE = 30.0

    def __init__(
        self,
        name: str,
        conf: dict,
        client: redis.Redis | None = None,
        persistence: Any = None,
        emit_notifications: bool = True,
    ) -> None:
        super().__init__(name, conf)
        self.key: bytes = misc.binary_encode(conf.get("namespace") or self.DEFAULT_NAMESPACE)
        self.queue: str = conf.get("queue") or "default"
        self._lease = milliseconds(conf.get("lease", self.DEFAULT_LEASE), "lease")
        self._persistence = persistence
        self._owns_client = client is None
        self._client: Any = make_client(conf) if client is None else client
        if self._owns_client:
            self._client.close()  # it is usable once the board is connected
        self._lock = threading.RLock()
        self._session: Session | None = None
        emits = strutils.bool_from_string(conf.get("emit_notifications", emit_notifications), default=True)
        self._listener = Listener(self) if emits else None
        self.notifier = BoardNotifier(self._listen)

    # Connection

    @property
    def connected(self) -> bool:
        return self._session is not None

    @fasteners.locked(lock="_lock")
    def connect(self) -> None:
        """Raises JobFailure when there is no server, IncompatibleVersion when it lacks the module."""
        self.close()
        if self._owns_client:
            self._client = make_client(self._conf)
        with translated("Failed to connect"):
            try:
                self._client.ping()
                self._client.execute_command("JOB.COUNT", self.key)
                self._session = Session(self._client, self.key, self._lease)
            except redis.ResponseError as error:
                if "unknown command" in str(error):
                    exc.raise_with_cause(
                        exc.IncompatibleVersion, "the server has not loaded the jobboard module"
                    )
                raise
        self._listen()

    @fasteners.locked(lock="_lock")
    def close(self) -> None:
        """Ends the claims without an expiry as well, as the end of the process would."""
        if self._listener is not None:
            self._listener.stop()
        if self._session is not None:
            self._session.close()
            self._session = None
        if self._owns_client:
            self._client.close()

    def _listen(self) -> None:
        if self._listener is not None and self.connected and len(self.notifier):
            self._listener.start(self._client)

    def _connected_session(self, what: str) -> Session:
        session = self._session
        if session is None:
            raise exc.JobFailure(f"{what}: the board is not connected")
        return session

    # Jobs

    def post(
        self,
        name: str,
        book: Any = None,
        details: dict | None = None,
        priority: base.JobPriority = base.JobPriority.NORMAL,
    ) -> Job:
        uuid = uuidutils.generate_uuid()
        what = f"Posting the job {uuid}"
        priority = base.JobPriority.convert(priority)
        try:
            payload = postings.pack(details)
        except (TypeError, ValueError, OverflowError):
            exc.raise_with_cause(exc.JobFailure, f"{what}: its details cannot be packed")
        meta = postings.meta(book)
        words = ["ID", uuid, "QUEUE", self.queue, "PRIORITY", postings.PRIORITIES[priority]]
        words += ["RETRIES", -1, "LAPSES", -1]
        words += ["NAME", name] if name else []
        words += ["META", len(meta), *(part for pair in meta.items() for part in pair)] if meta else []
        with translated(what):
            try:
                self._client.execute_command("JOB.POST", self.key, payload, *words)
            except redis.ResponseError as error:
                if str(error) != f"EXISTS {uuid}":  # else an answer was lost and the client asked again
                    raise
        return self._seen(
            Job(
                self, name, priority=priority, uuid=uuid, details=details, backend=self._persistence,
                book=book, book_data=postings.book_data(meta),
            )
        )  # fmt: skip

    def iterjobs(self, only_unclaimed: bool = False, ensure_fresh: bool = False) -> JobIterator:
        """Higher priorities first, and within one in the order of the posts. Jobs that cannot be claimed
        yet, for a delay or for jobs that they wait for, are not among them. Always fresh."""
        return JobIterator(
            self,
            LOG,
            only_unclaimed=only_unclaimed,
            ensure_fresh=ensure_fresh,
            board_fetch_func=lambda **wanted: self._fetch_jobs(**wanted),
        )

    def _fetch_jobs(self, ensure_fresh: bool = False, only_unclaimed: bool = False) -> Iterator[Job]:
        ready = self._records("ready")
        claimed = [] if only_unclaimed else sorted(self._records("claimed"), key=place)
        for record in heapq.merge(claimed, ready, key=place):
            job = self.job_of(record)
            if job is not None:
                yield job

    def trashed(self) -> Iterator[Job]:
        """The jobs that were trashed, the oldest first. JOB.REQUEUE brings them back."""
        return filter(None, map(self.job_of, self._records("trashed")))

    def _records(self, state: str) -> Iterator[dict[str, Any]]:
        cursor = "0"
        while True:
            with translated("Fetching jobs"):
                cursor, found = ask(
                    self._client, "JOB.LIST", self.key, "STATE", state, "QUEUE", self.queue,
                    "COUNT", PAGE, "CURSOR", cursor, "FIELDS", len(FIELDS), *FIELDS,
                )  # fmt: skip
            yield from map(pairs, found)
            if text(cursor) == "0":
                return

    def job_of(self, record: dict[str, Any]) -> Job | None:
        """The job of a record; None, and a warning, for one that is no posting of TaskFlow."""
        try:
            return self._seen(Job.of(self, record, self._persistence))
        except ValueError as error:
            LOG.warning("The job %s on the board %r is passed over: %s", text(record["id"]), self.key, error)
            return None

    def _seen(self, job: Job) -> Job:
        """Remembers a job for the notification of its removal."""
        if self._listener is not None:
            self._listener.remember(job)
        return job

    @property
    def job_count(self) -> int:
        """How many jobs iterjobs would give."""
        with translated("Counting jobs"):
            return self._client.execute_command(
                "JOB.COUNT", self.key, "STATE", "ready", "STATE", "claimed", "QUEUE", self.queue
            )

    def find_owner(self, job: Job) -> str | None:
        return text(self.look(job, "worker").get("worker"))

    def wait(self, timeout: float | None = None) -> JobIterator:
        """Waits until there is a job to claim. The server tells; nothing is polled.

        Raises NotFound when `timeout` seconds have passed before."""
        watch = timeutils.StopWatch().start()
        if not self.wait_for("FOR", "claimable", "QUEUES", 1, self.queue, timeout=timeout):
            raise exc.NotFound(f"Expired waiting for jobs to arrive; waited {watch.elapsed()} seconds")
        return self.iterjobs()

    # Work

    @base.check_who
    def claim(self, job: Job, who: str, expiry: float | None = None) -> None:
        """`expiry` in seconds."""
        what = f"Claiming the job {job.uuid}"
        length = None if expiry is None else milliseconds(expiry, "expiry")
        with translated(what, claiming=True):
            self._connected_session(what).claim(job.uuid, who, length)

    @base.check_who
    def consume(self, job: Job, who: str) -> None:
        """A request to cancel the job does not undo that the work is done."""
        self._end("CONSUME", job, who, "FORCE")

    @base.check_who
    def abandon(self, job: Job, who: str) -> None:
        self._end("ABANDON", job, who)

    @base.check_who
    def trash(self, job: Job, who: str) -> None:
        """The job is kept aside as long as the board's setting retain-trashed says: see `trashed`."""
        self._end("TRASH", job, who)

    def _end(self, verb: str, job: Job, who: str, *words: str) -> None:
        session = self._session
        claim = session.token(job.uuid, who) if session else []
        if claim:
            session.let_go(job.uuid)  # also when this fails: then the lease ends by itself
        with translated(f"{verb.capitalize()} of the job {job.uuid} by {who}"):
            self._client.execute_command(f"JOB.{verb}", self.key, who, job.uuid, *words, *claim)
        if claim:
            session.forget(job.uuid)

    def extend(self, job: Job, expiry: float) -> bool:
        """Job.extend_expiry."""
        session = self._connected_session("Extending a claim")
        held = session.held(job.uuid)
        who = held.who if held else self.find_owner(job)
        if who is None:
            return False
        with translated(f"Extending the claim of the job {job.uuid}"):
            try:
                session.extend(job.uuid, who, max(int(expiry * 1000), 1))
            except redis.ResponseError as error:
                if code(error) in LOST:
                    return False
                raise
        return True

    # Entities

    def register_entity(self, entity: entities.Entity) -> None:
        """Registers an entity as long as this board is connected. Its kind is the role of a worker
        (JOB.WORKER), its metadata are the worker's fields: texts as they are, other values as JSON."""
        what = f"Registering {entity.kind} {entity.name}"
        meta = {name: postings.as_text(value) for name, value in entity.metadata.items()}
        with translated(what):
            self._connected_session(what).register(entity.name, entity.kind, meta)

    def entities(self, kind: str | None = None) -> list[entities.Entity]:
        """The entities that are registered now, of one kind or of all; their metadata are texts."""
        role, found, cursor = [] if kind is None else ["ROLE", kind], [], "0"
        while True:
            with translated("Fetching entities"):
                cursor, rows = ask(
                    self._client, "JOB.WORKER", "LIST", self.key, *role, "CURSOR", cursor, "COUNT", PAGE
                )
            for row in map(pairs, rows):
                meta = {text(name): text(value) for name, value in pairs(row.get("meta") or {}).items()}
                found.append(entities.Entity(text(row.get("role", "")), text(row["worker"]), meta))
            if text(cursor) == "0":
                return found

    # What jobs ask of their board

    def look(self, job: Job, *fields: str) -> dict[str, Any]:
        """These fields of the job's record; nothing when it has gone."""
        with translated(f"Reading the job {job.uuid}"):
            found = ask(self._client, "JOB.GET", self.key, job.uuid, "FIELDS", len(fields), *fields)
        return pairs(found or {})

    def extended(self, job: Job) -> bool:
        """Whether this process holds the job and lets its claim expire."""
        session = self._session
        held = session.held(job.uuid) if session else None
        return held is not None and not held.kept

    def time(self) -> float:
        """The server's clock, in seconds."""
        with translated("Reading the time"):
            seconds, micros = self._client.time()
        return seconds + micros / 1e6

    def wait_for(self, *words: Any, timeout: float | None) -> bool:
        """JOB.WAIT, sent anew before the client would give up on it; False after `timeout` seconds."""
        watch = timeutils.StopWatch(duration=timeout).start()
        slice = patience(self._client)
        while True:
            left = watch.leftover(return_none=True)
            span = slice if left is None else min(left, slice)
            with translated("Waiting"):
                if ask(self._client, "JOB.WAIT", self.key, max(int(span * 1000), 1), *words) is not None:
                    return True
            if watch.expired():
                return False


def place(record: dict[str, Any]) -> tuple[int, int]:
    """Where a job stands: higher priorities first, then in the order of the posts."""
    return -record["priority"], record["seq"]


def milliseconds(seconds: Any, name: str) -> int:
    found = int(float(seconds) * 1000)
    if found <= 0:
        raise ValueError(f"{name} must be at least a millisecond, not {seconds} seconds")
    return found
