"""Tells when a handler blocks the event loop that all others need."""

from __future__ import annotations

import asyncio
import logging
import selectors
import sys
import threading
import traceback

log = logging.getLogger("jobboard.worker")
EVERY = 1.0
"""Seconds between two looks, and how long the loop may take to answer."""


class Watchdog(threading.Thread):
    """Asks the loop for a sign of life, and when none comes says where it is stuck: once for each place."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(name="jobboard-watchdog", daemon=True)
        self.loop = loop
        self.closed = threading.Event()
        self.thread: int | None = None
        self.told: set[str] = set()
        # Before any handler: the first one may be the one that blocks.
        loop.call_soon_threadsafe(self._sign, threading.Event())

    def run(self) -> None:
        while not self.closed.wait(EVERY):
            alive = threading.Event()
            try:
                self.loop.call_soon_threadsafe(self._sign, alive)
            except RuntimeError:  # the loop has ended
                return
            while not alive.wait(EVERY) and not self.closed.is_set():
                self._tell()

    def _sign(self, alive: threading.Event) -> None:
        self.thread = threading.get_ident()
        alive.set()

    def _tell(self) -> None:
        frame = sys._current_frames().get(self.thread or 0)
        if frame is None or not self.loop.is_running() or frame.f_code.co_filename == selectors.__file__:
            return  # it waits, and will answer: the machine is busy
        [at] = traceback.extract_stack(frame, limit=1) or [None]
        place = at and f"{at.filename}:{at.lineno} in {at.name}"
        if place and place not in self.told:
            self.told.add(place)
            log.warning(
                "the event loop has been blocked for more than %g s, and with it all handlers, at %s: await "
                "what waits, put it into asyncio.to_thread(…), or make the handler a plain function, which "
                "gets a thread of its own",
                *(EVERY, place),
            )
