"""What every client of a soak is: a process with a connection, a pace, and a count of what it was told."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import redis
from expect import error_text
from harness import Board
from redis.backoff import NoBackoff
from redis.retry import Retry
from servers import die_with_parent

JOBS, EVENTS, QUEUES, PROBE = "soak:jobs", "soak:events", "soak:queues", "soak:probe"
"""The boards that stand from beginning to end: all sorts of jobs; published and with long histories; queues
whose names come and go; what is measured."""

TEMPORARY = "soak:temporary:"
"""What the names of boards begin with that come and go."""


def connect(port: int) -> redis.Redis:
    """One connection, which never resends."""
    return redis.Redis(
        port=port,
        decode_responses=True,
        protocol=3,
        socket_timeout=30,
        single_connection_client=True,
        retry=Retry(NoBackoff(), 0),
    )


class Client:
    """Does one thing after another until it is told to stop, and then tells what it counted."""

    def __init__(self, port: int, name: str, seed: int, scale: float, stop: Any, told: Any) -> None:
        die_with_parent()
        self.port, self.name, self.scale, self.stop, self.told = port, name, scale, stop, told
        self.random = random.Random(f"{seed} {name}")
        self.counts: Counter = Counter()
        self.number = 0
        self.client = connect(port)

    def board(self, key: str) -> Board:
        return Board(self.client, key)

    def reconnect(self) -> None:
        """Comes back as another client."""
        self.client.close()
        self.client = connect(self.port)
        self.counts["connections", ""] += 1

    def fresh(self, sort: str) -> str:
        """A name that was never used before."""
        self.number += 1
        return f"{sort}-{self.name}-{self.number}"

    def rest(self, seconds: float) -> None:
        time.sleep(seconds * self.random.uniform(0.5, 1.5))

    def expect(self, codes: tuple[str, ...], act: Callable[[], Any]) -> Any:
        """Does it; None when it is refused with one of these codes. Another error ends the client."""
        try:
            return act()
        except redis.ResponseError as error:
            code = error_text(error).split()[0]
            if code not in codes:
                raise
            self.counts["refused", code] += 1
            return None

    def live(self, turn: Callable[[], None], farewell: Callable[[], None] | None = None) -> None:
        """Takes turns until it is stopped; what went wrong is told as text."""
        wrong = None
        try:
            while not self.stop.is_set():
                turn()
            if farewell is not None:
                farewell()
        except Exception as error:
            wrong = f"{self.name}: {type(error).__name__} {error_text(error)}"
        self.told.put((self.name, self.counts, wrong))
