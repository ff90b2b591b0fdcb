"""A manual clock that goes as fast as the machine's, and now and then jumps."""

from __future__ import annotations

import contextlib
import threading
import time

import redis
from harness import Server

LATE = 0.03
"""Where the clock stood still for so many seconds it has jumped."""


class Ticker:
    """Sets the clock of a server some hundred times a second, over its restarts.

    `jumps` are the moments at which it went ahead of the machine's: what a lease promises ends there. `backs`
    are those at which it went back: what was posted before need not come before what is posted after.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self.jumps: list[float] = []
        self.backs: list[float] = []
        self.ahead = 0.0
        self._begin = time.time() - time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)
        self._thread.start()

    def now(self) -> int:
        """Unix ms by this clock."""
        return round((self._begin + self.ahead + time.monotonic()) * 1000)

    def _note(self) -> None:
        """It goes wherever it goes."""
        self.jumps.append(time.monotonic())
        self.backs.append(time.monotonic())

    def jump(self, seconds: float) -> None:
        """To another time; a negative one goes back. Noted before it happens, and after."""
        self._note()
        self.ahead += seconds
        time.sleep(0.02)
        self._note()

    def started(self) -> None:
        """The server starts, and its clock with it, at the machine's time."""
        self._note()

    def _tick(self) -> None:
        client, last = None, 0.0
        while not self._stop.wait(0.005):
            with contextlib.suppress(redis.RedisError, OSError):
                fresh = client is None
                client = client or self.server.connect(socket_timeout=5)
                begin = time.monotonic()
                client.execute_command("JOB.CLOCK", "SET", self.now())
                if fresh:
                    # Until now it may have stood at the machine's time.
                    self._note()
                elif time.monotonic() - last > LATE:
                    self.jumps.append(time.monotonic())
                # It stands at this time, however long the server took to set it.
                last = begin
                continue
            client = None

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
