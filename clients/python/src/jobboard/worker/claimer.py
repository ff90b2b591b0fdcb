"""The thread that waits for jobs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import redis

from .. import replies
from ..board import Requests
from ..board.sending import Request
from ..connecting import explained_of
from ..errors import translated
from .backoff import Backoff
from .connection import TROUBLE, connection_of
from .engine import Engine

T = TypeVar("T")
log = logging.getLogger("jobboard.worker")
KEEP_FOR = "1h"
"""How long completed jobs are kept unless told otherwise; how many of them, the server says."""
SHARD_BLOCK = 250
"""How long a worker of a sharded board waits at one shard before it looks at all others again, ms."""


class Claimer(threading.Thread):
    """Claims as many jobs as there is room for, and waits for the first of them.

    Over shards it stays where there is work, then looks at the others, then waits at its home, which is
    another one each time.
    """

    def __init__(self, engine: Engine) -> None:
        super().__init__(name="jobboard-claimer", daemon=True)
        self.engine = engine
        self.connection = connection_of(engine.board.client)
        self.backoff = Backoff()
        self.at = hash(engine.name) % len(engine.shards)
        self.home = self.at
        self.failed = False
        """The last command has got no answer."""
        self.answered = False
        """A claim has been answered: a password that is refused later may be just being changed."""
        self.kept = not engine.options.keep
        """The board is told how long to keep completed jobs."""
        self.behind = list(engine.shards) if engine.options.named else []
        """The boards on which an earlier process of our name may still hold jobs."""
        self.ends: int | None = None
        """Before the claim under way: how many runs had ended, None when we held none."""
        block = engine.options.block
        if block is None:
            block = engine.board.block if len(engine.shards) == 1 else SHARD_BLOCK
        self.block = block

    def run(self) -> None:
        try:
            while self._may_claim():
                self._claim()
        except BaseException as error:
            self.engine.not_claimed()
            self.engine.fail(error)
        finally:
            self.connection.close()

    def stop(self) -> None:
        """Ends a wait; the engine is stopping already."""
        self.connection.interrupt()

    def _may_claim(self) -> bool:
        """Waits until there is room, and takes the right to claim; False when the worker stops."""
        engine = self.engine
        with engine.lock:
            engine.changed.wait_for(lambda: engine.stopping or (not engine.asked and engine.room > 0))
            if engine.stopping:
                return False
            engine.asked = engine.room
            self.ends = None if not engine.held else engine.ends
            return True

    def _claim(self) -> None:
        engine, count = self.engine, self.engine.asked
        try:
            if not self.kept:
                self._keep()
            while self.behind:
                self._start_anew(self.behind[0])
                del self.behind[0]
            for _ in range(len(engine.shards) - 1 if not engine.options.burst else len(engine.shards)):
                shard = engine.shards[self.at]
                sent, found = self._ask(shard, count, [])
                self.answered = True
                if found:
                    engine.claimed(shard, found, sent=sent)
                    return
                self.at = (self.at + 1) % len(engine.shards)
            if engine.options.burst:
                self._end_of_burst()
                return
            self.home = (self.home + 1) % len(engine.shards)
            shard = engine.shards[self.home]
            sent, found = self._ask(shard, count, ["BLOCK", self.block])
            engine.claimed(shard, found, sent=sent)
            self.answered = True
            self.backoff.reset()
        except TROUBLE as error:
            engine.troubled()
            engine.not_claimed()
            if isinstance(error, redis.AuthenticationError) and not self.answered:
                raise explained_of(error, engine.board.client) from None
            if not engine.stopping:
                if self.failed:  # the first failure may be that of a connection which broke long ago
                    engine.outage.gone(explained_of(error, engine.board.client), "claiming")
                self.failed = True
                self.backoff.wait(engine.wants_stop)

    def _ask(self, shard: Requests, count: int, wait: list[Any]) -> tuple[float, list[Any]]:
        """When it was sent, and the records that came."""
        words = ["JOB.CLAIM", shard.key, self.engine.name, *self.engine.claim_words(shard, count), *wait]
        sent = time.monotonic()
        return sent, self._request(Request(words, lambda reply: replies.unpacked(reply) or []))

    def _keep(self) -> None:
        keep_completed(self.engine.shards, self._request, self.engine.options.keep)
        self.kept = True

    def _start_anew(self, shard: Requests) -> None:
        """Ends what an earlier process of our name still holds, as lapses."""
        engine = self.engine
        try:
            self._request(Request([*engine.registration(shard), "ANEW"], lambda _: None))
            if not engine.options.register:
                self._request(shard.worker_deregister(engine.name))
        except redis.ResponseError as error:
            log.warning(
                "%s: what a process of this name held before comes back when its leases end: %s",
                *(engine.name, error),
            )

    def _request(self, request: Request[T]) -> T:
        [reply] = self.connection.ask([request.words])
        self.engine.heard = time.monotonic()
        self.failed = False
        self.engine.outage.back()
        if isinstance(reply, redis.ResponseError):
            raise translated(reply)
        return request.parse(reply)

    def _end_of_burst(self) -> None:
        """There was nothing. When we held nothing either, the worker ends; else the next end may bring
        more.
        """
        engine, ends = self.engine, self.ends
        with engine.lock:
            engine.asked = 0
            if ends is None:
                engine.ask_to_stop()
            engine.changed.wait_for(lambda: engine.stopping or (ends is not None and engine.ends > ends))


def keep_completed(
    shards: Sequence[Requests], request: Callable[[Request[Any]], Any], most: int | bool = True
) -> None:
    """Sets what nobody has set: how long completed jobs are kept, and how many when `most` is a number.
    `request` asks the server.
    """
    wanted: dict[str, Any] = {"retain-complete": KEEP_FOR}
    if most is not True:
        wanted["keep-complete"] = max(most // len(shards), 1)
    for shard in shards:
        try:
            found = request(shard.settings_get(*wanted))
            unset = {name: value for name, value in wanted.items() if found[name].source == "default"}
            if unset:
                request(shard.settings_set(unset))
        except redis.exceptions.NoPermissionError as error:
            log.debug("how long completed jobs are kept is as it was: %s", error)
