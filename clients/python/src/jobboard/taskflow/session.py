"""What a process holds on a board, and how it keeps it.

Claims without an expiry of their own, and the registrations of entities, live by one connection: they end
when it closes, in whatever way, within milliseconds. Besides they have a lease, which a thread renews three
times in its length, so that those of a process that hangs, or of a machine that is gone, end as well.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from typing import Any, NamedTuple

import redis

from .replies import pairs, text

LOG = logging.getLogger(__name__)

BATCH = 1000
"""Claims that one heartbeat renews."""


PATIENCE = 2.0
"""Seconds that closing waits for a heartbeat that is under way; it ends by itself."""


class Held(NamedTuple):
    """A claim of this process: whose name it is in, its fencing token, and whether the thread renews it."""

    who: str
    token: int
    kept: bool


class Session:
    """Opens its connection at once; `lease` is in milliseconds."""

    def __init__(self, client: Any, key: bytes, lease: int) -> None:
        self._shared, self._key, self._lease = client, key, lease
        self._own: Any = client.client()
        self._own_lock = threading.Lock()
        self._held: dict[str, Held] = {}
        self._entities: dict[str, list] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="jobboard-session", daemon=True)
        self._keeper.start()

    def claim(self, id: str, who: str, expiry: int | None) -> None:
        """Claims a job: until the connection closes, or for `expiry` milliseconds."""
        execute = self._execute if expiry is None else self._shared.execute_command
        terms = ["SESSION", "LEASE", self._lease] if expiry is None else ["LEASE", expiry]
        [record] = execute(
            "JOB.CLAIM", self._key, who, "ID", id, *terms, "FIELDS", 1, "token"
        )  # fmt: skip
        with self._lock:
            self._held[id] = Held(who, int(pairs(record)["token"]), expiry is None)

    def held(self, id: str) -> Held | None:
        """The claim that this process has on the job, as far as it knows."""
        return self._held.get(id)

    def token(self, id: str, who: str) -> list:
        """The words that say which claim is meant; none when `who` has not claimed the job here."""
        held = self._held.get(id)
        return ["TOKEN", held.token] if held and held.who == who else []

    def let_go(self, id: str) -> None:
        """Renews this claim no more."""
        with self._lock:
            if id in self._held:
                self._held[id] = self._held[id]._replace(kept=False)

    def forget(self, id: str) -> None:
        with self._lock:
            self._held.pop(id, None)

    def extend(self, id: str, who: str, expiry: int) -> None:
        """Lets a claim end after `expiry` milliseconds, unless it is extended again."""
        self.let_go(id)
        # By this connection, which carries the claim: by another one it would end with that.
        self._execute(
            "JOB.HEARTBEAT", self._key, who, id, *self.token(id, who), "LEASE", expiry
        )  # fmt: skip

    def register(self, name: str, role: str, meta: dict[str, str]) -> None:
        """Registers a worker for as long as the connection lives."""
        words = ["JOB.WORKER", "REGISTER", self._key, name, "ROLE", role]
        if meta:
            words += ["META", len(meta), *(part for pair in meta.items() for part in pair)]
        self._execute(*words, "SESSION")
        with self._lock:
            self._entities[name] = [*words, "SESSION"]

    def close(self) -> None:
        """Closes the connection: what it carries ends."""
        self._closing.set()
        self._disconnect()
        self._keeper.join(PATIENCE)

    def _execute(self, *words: Any) -> Any:
        """Sends a command over its connection. After trouble the next takes another out of the pool, which
        alone asks a Sentinel what server is the primary now.
        """
        with self._own_lock:
            own = self._own = self._own or self._shared.client()
        try:
            return own.execute_command(*words)
        except (redis.ConnectionError, redis.TimeoutError):
            with self._own_lock:
                if self._own is own:
                    self._disconnect()
                    own.close()
                    self._own = None
            raise

    def _disconnect(self) -> None:
        own = self._own
        if own is not None and own.connection is not None:
            own.connection.disconnect()

    def _keep(self) -> None:
        while not self._closing.wait(self._lease / 3000):
            try:
                self._renew()
            except redis.RedisError as error:
                if not self._closing.is_set():
                    LOG.warning("The claims on %r could not be renewed: %s", self._key, error)
        self._disconnect()  # again: a command that was under way may have connected anew
        if self._own is not None:
            self._own.close()

    def _renew(self) -> None:
        """All claims and registrations; a new connection takes over what the old one carried."""
        with self._lock:
            entities = list(self._entities.values())
            kept = [(id, held) for id, held in self._held.items() if held.kept]
        for words in entities:
            self._execute(*words)
        owners = defaultdict(list)
        for id, held in kept:
            owners[held.who].append((id, held))
        for who, claims in owners.items():
            for start in range(0, len(claims), BATCH):
                self._renew_some(who, claims[start : start + BATCH])

    def _renew_some(self, who: str, claims: list[tuple[str, Held]]) -> None:
        replies = self._execute(
            "JOB.MHEARTBEAT", self._key, who, len(claims), *(id for id, _ in claims),
            "TOKENS", len(claims), *(held.token for _, held in claims),
        )  # fmt: skip
        for (id, held), reply in zip(claims, replies):
            if isinstance(reply, dict) or text(reply[0]) == "deadline":
                continue
            with self._lock:
                lost = self._held.get(id) == held
                if lost:
                    del self._held[id]
            if lost:
                LOG.warning("%s has lost the job %s: %s", who, id, " ".join(map(text, reply)))
