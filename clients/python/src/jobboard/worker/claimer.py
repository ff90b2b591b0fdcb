"""The thread that waits for jobs."""

from __future__ import annotations

import logging
import threading
from typing import Any, Optional

import redis

from ..board import Requests
from ..errors import translated
from .backoff import Backoff
from .connection import TROUBLE, connection_of
from .engine import Engine

log = logging.getLogger("jobboard.worker")
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
        self.ends: Optional[int] = None
        """Before the claim under way: how many runs had ended, None when we held none."""
        self.block = engine.options.block
        if self.block is None:
            self.block = engine.board.block if len(engine.shards) == 1 else SHARD_BLOCK

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
            for _ in range(len(engine.shards) - 1 if not engine.options.burst else len(engine.shards)):
                shard = engine.shards[self.at]
                found = self._ask(shard, count, [])
                if found:
                    engine.claimed(shard, found)
                    return
                self.at = (self.at + 1) % len(engine.shards)
            if engine.options.burst:
                self._end_of_burst()
                return
            self.home = (self.home + 1) % len(engine.shards)
            shard = engine.shards[self.home]
            engine.claimed(shard, self._ask(shard, count, ["BLOCK", self.block]))
            self.backoff.reset()
        except TROUBLE as error:
            engine.not_claimed()
            if not engine.stopping:
                log.warning("no claim: %s", error)
                self.backoff.wait(engine.wants_stop)

    def _ask(self, shard: Requests, count: int, wait: list[Any]) -> list[Any]:
        words = ["JOB.CLAIM", shard.key, self.engine.name, *self.engine.claim_words(shard, count), *wait]
        [reply] = self.connection.ask([words])
        if isinstance(reply, redis.ResponseError):
            raise translated(reply)
        return reply or []

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
