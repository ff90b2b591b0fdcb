"""The end of a program that a signal asks for, while the program waits."""

from __future__ import annotations

import contextlib
import queue


class Ending:
    """Whether a signal has asked for the end.

    A handler runs in the thread that it interrupts, perhaps in the middle of a wait. There an `Event` waits
    for its own lock without end; a `SimpleQueue` takes what a handler puts into it.
    """

    def __init__(self) -> None:
        self.asked = False
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()

    def ask(self, *_: object) -> None:
        """Asks for the end: a handler of signals."""
        self.asked = True
        self._wakes.put(None)

    def wait(self, seconds: float) -> bool:
        """Waits for so long, or until the end is asked for; tells whether it is."""
        if not self.asked:
            with contextlib.suppress(queue.Empty):
                self._wakes.get(timeout=seconds)
        return self.asked
