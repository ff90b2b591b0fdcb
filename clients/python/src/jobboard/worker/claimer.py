"""The thread that waits for jobs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import redis

from .. import replies
from ..board import Requests
from ..board.sending import Request
from ..connecting import TROUBLE, explained_of
from ..errors import translated
from .backoff import Backoff
from .connection import connection_of
from .engine import Engine
from .sender import Sender

T = TypeVar("T")
log = logging.getLogger("jobboard.worker")
KEEP_FOR = "1h"
"""How long completed jobs are kept unless told otherwise; how many of them, the server says."""
SHARD_BLOCK = 250
"""How long a worker of a sharded board waits at one shard before it looks at all others again, ms."""


class Place:
    """A server as the claimer knows it: that of the shards of one sender."""

    def __init__(self, engine: Engine, sender: Sender) -> None:
        self.sender, self.shards = sender, sender.shards
        self.connection = connection_of(engine.board.client, self.shards[0].key)
        self.backoff = Backoff()
        self.failed = False
        """The last command has got no answer."""
        self.lost = 0.0
        """When it has got no answer, by the monotonic clock, unless a claim was answered since."""
        self.due = 0.0
        """When it is asked again."""
        self.to_keep = list(self.shards) if engine.options.keep else []
        """The boards that are not yet told how long to keep completed jobs."""
        self.behind = list(self.shards) if engine.options.named else []
        """The boards on which an earlier process of our name may still hold jobs."""

    @property
    def is_new(self) -> bool:
        return bool(self.to_keep or self.behind)

    @property
    def away(self) -> bool:
        """Whether it is not to be asked now. Where there are others, its sender finds out when there is an
        answer: jobs of theirs shall not wait for that.
        """
        sender = self.sender
        unheard = not sender.alone and (sender.failed or sender.heard < self.lost)
        return unheard or time.monotonic() < self.due

    def trouble(self) -> None:
        """A command has got no answer."""
        self.suspect()
        self.failed, self.due = True, self.lost + self.backoff.take()

    def suspect(self) -> None:
        """Leaves it to its sender whether there is an answer."""
        self.lost = time.monotonic()
        if not self.sender.alone:
            self.sender.beat_soon()

    def well(self) -> None:
        """A claim was answered."""
        self.lost = self.due = 0.0
        self.backoff.reset()


class Claimer(threading.Thread):
    """Claims as many jobs as there is room for, and waits for the first of them.

    Over shards it stays where there is work, then looks at the others, then waits at its home, which is
    another one each time. Those that are away it leaves out.
    """

    def __init__(self, engine: Engine) -> None:
        super().__init__(name="jobboard-claimer", daemon=True)
        self.engine = engine
        self.places = [Place(engine, sender) for sender in engine.each_sender()]
        self.round = [(shard, place) for place in self.places for shard in place.shards]
        """The shards, each with its place."""
        self.at = hash(engine.name) % len(self.round)
        self.home = self.at
        self.answered = False
        """A claim has been answered: a password that is refused later may be just being changed."""
        self.ends: int | None = None
        """Before the claim under way: how many runs had ended, None when we held none."""
        block = engine.options.block
        if block is None:
            block = engine.board.block if len(self.round) == 1 else SHARD_BLOCK
        self.block = block

    def run(self) -> None:
        try:
            while self._may_claim():
                self._claim()
        except BaseException as error:
            self.engine.not_claimed()
            self.engine.fail(error)
        finally:
            for place in self.places:
                place.connection.close()

    def stop(self) -> None:
        """Ends a wait; the engine is stopping already."""
        for place in self.places:
            place.connection.interrupt()

    def give_up(self, after: float) -> None:
        """Ends a claim that the server has not answered this many seconds after its BLOCK has passed."""
        for place in self.places:
            place.connection.give_up(self.block / 1000 + after)

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
        engine, burst, count = self.engine, self.engine.options.burst, len(self.round)
        for place in self.places:
            if place.is_new:
                self._try(place, lambda: None)
        answers = 0
        for _ in range(count if burst else count - 1):
            found = self._ask(self.at, [])
            if found:
                return
            answers += found is not None
            self.at = (self.at + 1) % count
        if not burst:
            for _ in range(count):
                self.home = (self.home + 1) % count
                if self._ask(self.home, ["BLOCK", self.block]) is not None:
                    return
        elif answers == count:
            self._end_of_burst()
            return
        engine.not_claimed()
        if away := [place.due for place in self.places if place.away]:
            left = min(away) - time.monotonic()
            engine.wants_stop.wait(left if left > 0 else SHARD_BLOCK / 1000)

    def _ask(self, number: int, wait: list[Any]) -> bool | None:
        """Whether a claim at a shard has brought jobs; None when the shard is away. One that waits gives up
        the right to claim also without jobs.
        """
        engine, (shard, place) = self.engine, self.round[number]

        def ask() -> bool:
            words = ["JOB.CLAIM", shard.key, engine.name, *engine.claim_words(shard, engine.asked), *wait]
            sent = time.monotonic()
            found = self._request(place, Request(words, lambda reply: replies.unpacked(reply) or []))
            self.answered = True
            place.well()
            if found or wait:
                engine.claimed(shard, found, sent=sent)
            else:
                engine.found_none(shard)
            return bool(found)

        return self._try(place, ask, shard)

    def _try(self, place: Place, ask: Callable[[], T], claimed: Requests | None = None) -> T | None:
        """None when the place is away. What is asked of one that is new begins with what it has to know.
        `claimed`: it claims from this board.
        """
        engine, begun = self.engine, time.monotonic()
        if place.away or engine.stopping:
            return None
        try:
            if place.is_new:
                self._meet(place)
            return ask()
        except TROUBLE as error:
            engine.troubled(place.shards, claimed)
            if isinstance(error, redis.AuthenticationError) and not self.answered:
                raise explained_of(error, engine.board.client) from None
            if not engine.stopping:
                if place.failed:  # the first failure may be that of a connection which broke long ago
                    place.sender.outage.gone(explained_of(error, engine.board.client), "claiming", begun)
                node = place.connection.node
                for other in self.places:
                    if other.connection.node == node:  # each would hold us up as long as this one has
                        other.suspect()
                place.trouble()
            return None

    def _meet(self, place: Place) -> None:
        keep, parts = self.engine.options.keep, len(self.round)
        while place.to_keep:
            keep_completed(place.to_keep[0], partial(self._request, place), keep, parts)
            del place.to_keep[0]
        while place.behind:
            self._start_anew(place, place.behind[0])
            del place.behind[0]

    def _start_anew(self, place: Place, shard: Requests) -> None:
        """Ends what an earlier process of our name still holds, as lapses."""
        engine = self.engine
        try:
            self._request(place, Request([*engine.registration(shard), "ANEW"], lambda _: None))
            engine.started_anew(shard)
            if not engine.options.register:
                self._request(place, shard.worker_deregister(engine.name))
        except redis.ResponseError as error:
            log.warning(
                "%s: what a process of this name held before comes back when its leases end: %s",
                *(engine.name, error),
            )

    def _request(self, place: Place, request: Request[T]) -> T:
        sent = time.monotonic()
        [reply] = place.connection.ask([request.words])
        self.engine.heard = time.monotonic()
        place.failed = False
        place.sender.outage.back(sent)
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
    shard: Requests, request: Callable[[Request[Any]], Any], most: int | bool = True, parts: int = 1
) -> None:
    """Sets what nobody has set: how long completed jobs are kept, and how many when `most` is a number, that
    of all `parts` of the board. `request` asks the server.
    """
    wanted: dict[str, Any] = {"retain-complete": KEEP_FOR}
    if most is not True:
        wanted["keep-complete"] = max(most // parts, 1)
    try:
        found = request(shard.settings_get(*wanted))
        unset = {name: value for name, value in wanted.items() if found[name].source == "default"}
        if unset:
            request(shard.settings_set(unset))
    except redis.exceptions.NoPermissionError as error:
        log.debug("how long completed jobs are kept is as it was: %s", error)
    except redis.exceptions.OutOfMemoryError as error:  # it still gives jobs, and their ends free memory
        log.warning("how long completed jobs are kept stays as it is until a worker starts again: %s", error)
