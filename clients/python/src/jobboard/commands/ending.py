"""Ends a program at a signal, also in the middle of a wait."""

from __future__ import annotations

import contextlib
import queue


class Ending:
    """Notes that a signal asked the program to end, and wakes the program's wait.

    Python runs the handler in the main thread, perhaps in the middle of that thread's wait. An `Event` would
    then wait for ever for a lock that the same thread holds; a `SimpleQueue` takes what the handler puts in.
    """

    def __init__(self) -> None:
        self.asked = False
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()

    def ask(self, *_: object) -> None:
        """Asks for the end: a handler of signals."""
        self.asked = True
        self._wakes.put(None)

    def wait(self, seconds: float) -> bool:
        """Waits at most that long for a signal; returns whether one has asked the program to end."""
        if not self.asked:
            with contextlib.suppress(queue.Empty):
                self._wakes.get(timeout=seconds)
        return self.asked
