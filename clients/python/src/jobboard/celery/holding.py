"""What a channel has claimed, and the two threads behind it: one claims, one keeps the leases.

kombu's part of the process may be busy for long (the pool `solo` runs tasks in it), so leases are kept beside
it. Lost connections are mended here: neither kombu nor Celery hears of a server that was away for a moment,
and a task that runs goes on and ends as if nothing had been.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import redis

from .. import replies
from ..connecting import TROUBLE
from ..errors import translated
from ..worker.backoff import Backoff
from ..worker.connection import Connection
from ..worker.outage import Outage

log = logging.getLogger("jobboard.celery")

FIELDS = ("id", "token", "attempt", "queue", "payload")
BLOCK = 2000
"""How long a claim waits in the server, ms: shorter than redis-py's socket timeout."""

MANY = 1000
"""Jobs in one command."""

UNCOUNTED = 100
"""Jobs in one claim of a channel whose prefetch count is 0, which is no limit."""

LOOK = 0.05
"""Seconds between looks at a `can_consume` that somebody has replaced, as Celery's `worker_disable_prefetch`
does: nobody tells when its answer changes."""

PATIENCE = 5.0
"""Seconds that closing waits for a command that is under way."""


class Claimed(NamedTuple):
    """A claim. `worker` is the name that it was made under: claims that wait have one of their own, since
    `SEEN` gives back all claims of a name."""

    worker: str
    id: str
    token: int
    attempt: int
    queue: str
    payload: bytes


def claimed(worker: str, reply: Any) -> Claimed:
    found = {replies.text(name): value for name, value in replies.pairs(reply)}
    return Claimed(
        worker,
        replies.text(found["id"]),
        int(found["token"]),
        int(found["attempt"]),
        replies.text(found["queue"]),
        found["payload"],
    )


class Demand(NamedTuple):
    """What the channel wants now: how many jobs of which queues.

    `kept`: their leases are to be kept, since they are acknowledged later than they are given out.
    `told`: somebody tells when the demand changes.
    """

    room: int
    queues: tuple[str, ...]
    kept: bool = True
    told: bool = True


class Holder:
    """The claims of one channel.

    `demand` says what to claim, `arrived` is given what was claimed. Both are called in the claiming thread.
    """

    def __init__(
        self,
        client: redis.Redis,
        board: str,
        *,
        lease: int,
        order: str,
        session: bool,
        demand: Callable[[], Demand],
        arrived: Callable[[Claimed | Exception], None],
        outage: Outage,
    ) -> None:
        self.client, self.board = client, board
        self.lease, self.order, self.session = lease, order, session
        self.demand, self.arrived, self.outage = demand, arrived, outage
        self.name = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self.direct = f"{self.name}:get"
        """The name for claims that do not wait."""
        self.changed = threading.Condition()
        self.closing = False
        self.held: dict[int, Claimed] = {}
        """By token."""
        self.unsaid: list[list[Any]] = []
        """Ends that no server has heard yet. They are said again: the token makes that harmless."""
        self._pid = os.getpid()
        self._claimer: threading.Thread | None = None
        self._keeper: threading.Thread | None = None
        self._claims = Connection(client)
        self._beats = Connection(client)
        self._waiting: tuple[str, ...] = ()
        """The queues at which the claim under way waits."""
        self._moved = False
        """That claim was broken off, since other queues are wanted now."""

    @property
    def mine(self) -> bool:
        """False in a forked child: the claims are its parent's, and so is whoever holds the lock."""
        return os.getpid() == self._pid

    def wake(self) -> None:
        """The demand may have changed."""
        if not self.mine:
            return
        with self.changed:
            if self.closing:
                return
            demand = self.demand()
            if self._claimer is None and demand.queues:
                self._claimer = self._thread(self._claim_on, "jobboard-celery-claims")
            if demand.kept and demand.queues:
                self._keep()
            if self._waiting and self._waiting != demand.queues:
                self._moved = True
                self._claims.interrupt()
            self.changed.notify_all()

    def get(self, queue: str) -> Claimed | None:
        """Claims one job of a queue, if there is one now."""
        words: list[Any] = ["JOB.CLAIM", self.board, self.direct, "QUEUES", 1, queue, "LEASE", self.lease]
        [found] = self._ask_once([[*words, "FIELDS", len(FIELDS), *FIELDS]])
        if not found:
            return None
        one = claimed(self.direct, found[0])
        self._hold(one)
        self._keep()
        return one

    def end(self, token: int, verb: str, *words: Any) -> None:
        """Ends a claim by a verb. When no server answers it is said again later."""
        if not self.mine:
            return
        with self.changed:
            one = self.held.pop(token, None)
            self.changed.notify_all()
        if one is None:
            return
        command = [verb, self.board, one.worker, one.id, "TOKEN", token, *words]
        sent = time.monotonic()
        try:
            [reply] = self._ask(self.client, [command])
        except TROUBLE as error:
            self.outage.gone(error, "the end of a task", sent)
            with self.changed:
                self.unsaid.append(command)
            self._keep()
            return
        self._judge(command, reply)

    def give_back(self, tokens: list[int] | None = None) -> None:
        """Gives claims back, or all of them."""
        if not self.mine:
            return
        with self.changed:
            found = [self.held.pop(token, None) for token in tokens or list(self.held)]
            self.changed.notify_all()
        self._abandon([one for one in found if one is not None])

    def close(self) -> None:
        """Ends the threads and gives back what they hold, also what the server has granted unheard."""
        if not self.mine:
            return
        with self.changed:
            self.closing = True
            self.changed.notify_all()
        self._claims.interrupt()
        for thread in (self._claimer, self._keeper):
            if thread is not None and thread is not threading.current_thread():
                thread.join(PATIENCE)
        with self.changed:
            held = any(one.worker == self.direct for one in self.held.values())
            self.held = {}
            unsaid, self.unsaid = self.unsaid, []
        names = [self.name] if self._claimer is not None else []
        names += [self.direct] if held else []
        commands = unsaid + [["JOB.MABANDON", self.board, name, "ALL"] for name in names]
        if self._keeper is not None:
            commands += [["JOB.WORKER", "DEREGISTER", self.board, self.name]]
        try:
            if commands:
                self._ask_once(commands)
        except (*TROUBLE, redis.RedisError) as error:
            log.warning("board %s: claims stay until their leases end: %s", self.board, error)

    def forget(self) -> None:
        """In a forked child: drops the connections of the parent without ending them for it."""
        for connection in (self._claims, self._beats):
            connection.forget()

    # The thread that claims

    def _claim_on(self) -> None:
        backoff, seen, missed = Backoff(), 0, False
        while True:
            with self.changed:
                demand = self.demand()
                while not (self.closing or missed or (demand.queues and demand.room > 0)):
                    self.changed.wait(None if demand.told else LOOK)
                    demand = self.demand()
                if self.closing:
                    self._claims.close()
                    return
                self._waiting = demand.queues
            sent = time.monotonic()
            try:
                [reply] = self._ask_twice(self._claims, [self._claim_words(demand, seen)])
            except TROUBLE as error:
                with self.changed:
                    moved, self._moved = self._moved or self.closing, False
                    self._waiting = ()
                missed = True
                if not moved:
                    self.outage.gone(error, "claiming", sent)
                    self._pause(backoff)
                continue
            with self.changed:
                self._waiting, self._moved = (), False
            missed = False
            if isinstance(reply, redis.ResponseError):
                self.arrived(translated(reply))
                self._pause(backoff)
                continue
            self.outage.back(sent)
            backoff.reset()
            for row in reply or ():
                one = claimed(self.name, row)
                seen = max(seen, one.token)
                self._hold(one)
                self.arrived(one)

    def _claim_words(self, demand: Demand, seen: int) -> list[Any]:
        words: list[Any] = ["JOB.CLAIM", self.board, self.name]
        if demand.queues and demand.room > 0:
            words += ["QUEUES", len(demand.queues), *demand.queues, "COUNT", demand.room, "BLOCK", BLOCK]
        else:  # only what was granted before and not heard: there is no such queue
            words += ["QUEUES", 1, self.name]
        words += ["ORDER", self.order, "LEASE", self.lease, "SEEN", seen]
        return [*words, "FIELDS", len(FIELDS), *FIELDS]

    def _pause(self, backoff: Backoff) -> None:
        with self.changed:
            self.changed.wait_for(lambda: self.closing, backoff.take())

    def _hold(self, one: Claimed) -> None:
        with self.changed:
            self.held[one.token] = one

    # The thread that keeps the leases

    def _keep(self) -> None:
        with self.changed:
            if self._keeper is None and not self.closing:
                self._keeper = self._thread(self._keep_on, "jobboard-celery-leases")

    def _keep_on(self) -> None:
        pause = 0.0
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.closing, pause)
                if self.closing:
                    self._beats.close()
                    return
            sent = time.monotonic()
            try:
                self._beat()
                self.outage.back(sent)
            except TROUBLE as error:
                self.outage.gone(error, "keeping leases", sent)
            except Exception:
                log.exception("board %s: the leases could not be kept", self.board)
            pause = min(self.lease / 3000, 1.0 if self.unsaid else 3600.0)

    def _beat(self) -> None:
        with self.changed:
            held, unsaid = list(self.held.values()), list(self.unsaid)
        register: list[Any] = ["JOB.WORKER", "REGISTER", self.board, self.name, "ROLE", "celery"]
        register += ["SESSION"] if self.session else ["FOR", max(3 * self.lease, 60_000)]
        for command, reply in zip(unsaid, self._ask_twice(self._beats, [*unsaid, register])):
            self._judge(command, reply)
            with self.changed:
                self.unsaid.remove(command)
        for name in (self.name, self.direct):
            mine = [one for one in held if one.worker == name]
            for start in range(0, len(mine), MANY):
                self._renew(name, mine[start : start + MANY])

    def _renew(self, name: str, claims: list[Claimed]) -> None:
        words: list[Any] = ["JOB.MHEARTBEAT", self.board, name, len(claims), *(one.id for one in claims)]
        words += ["TOKENS", len(claims), *(one.token for one in claims)]
        [answers] = self._beats.ask([words])
        if isinstance(answers, redis.ResponseError):
            raise translated(answers)
        for one, answer in zip(claims, answers):
            if replies.is_map(answer, b"deadline"):
                continue
            with self.changed:
                lost = self.held.pop(one.token, None)
                self.changed.notify_all()
            if lost:
                log.warning(
                    "the job %s is no longer ours: %s; it may run again",
                    *(one.id, " ".join(map(replies.text, answer))),
                )

    # Both

    def _thread(self, run: Callable[[], None], name: str) -> threading.Thread:
        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread

    def _abandon(self, found: list[Claimed]) -> None:
        if not found:
            return
        commands = []
        for name in (self.name, self.direct):
            mine = [one for one in found if one.worker == name]
            for start in range(0, len(mine), MANY):
                some = mine[start : start + MANY]
                words: list[Any] = ["JOB.MABANDON", self.board, name, len(some), *(one.id for one in some)]
                commands.append([*words, "TOKENS", len(some), *(one.token for one in some)])
        try:
            self._ask_once(commands)
        except (*TROUBLE, redis.RedisError) as error:
            log.warning("board %s: %s jobs stay until their leases end: %s", self.board, len(found), error)

    def _ask_twice(self, connection: Connection, commands: list[list[Any]]) -> list[Any]:
        """Asks over another connection when the first has broken: it may have done so long ago, unused."""
        try:
            return connection.ask(commands)
        except TROUBLE:
            if self._moved or self.closing:
                raise
            return connection.ask(commands)

    def _ask_once(self, commands: list[list[Any]]) -> list[Any]:
        """Replies of commands of this thread; raises what was refused."""
        found = self._ask(self.client, commands)
        for reply in found:
            if isinstance(reply, redis.ResponseError):
                raise translated(reply)
        return found

    def _ask(self, client: redis.Redis, commands: list[list[Any]]) -> list[Any]:
        connection = Connection(client)
        try:
            found = connection.ask(commands)
        except BaseException:
            connection.close()
            raise
        connection.release()
        return found

    def _judge(self, command: list[Any], reply: Any) -> None:
        if isinstance(reply, redis.ResponseError):
            log.warning(
                "%s of the job %s was refused: %s; its lease had ended, so it may run again",
                *(command[0], command[3], reply),
            )
