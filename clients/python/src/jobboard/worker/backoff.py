"""Waits between tries, each longer than the last."""

from __future__ import annotations

import random
import threading

FIRST, MOST = 0.05, 2.0


class Backoff:
    """Waits from 50 ms to 2 s, with half of it at random, so that not all workers come back at once."""

    def __init__(self) -> None:
        self.next = FIRST

    def take(self) -> float:
        """How long to wait now, in seconds."""
        now, self.next = self.next, min(self.next * 2, MOST)
        return now * random.uniform(0.5, 1.0)

    def wait(self, unless: threading.Event) -> None:
        unless.wait(self.take())

    def reset(self) -> None:
        """It has worked."""
        self.next = FIRST
