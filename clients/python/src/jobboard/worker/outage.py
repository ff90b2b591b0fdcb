"""What is said of a server that does not answer."""

from __future__ import annotations

import logging
import threading
import time

AGAIN = 60.0
"""Seconds after which it is said again, with how long it has lasted."""


class Outage:
    """One warning when the server goes, one every minute, one when it is back, however many ask for it."""

    def __init__(self, log: logging.Logger, name: str) -> None:
        self._log, self._name = log, name
        self._lock = threading.Lock()
        self._since: float | None = None
        self._told = 0.0
        self._answered = self._missed = 0.0
        """When the last command that was answered was sent, and the last that was not (monotonic clock):
        threads tell of them in any order.
        """

    def gone(self, error: BaseException, doing: str, sent: float) -> None:
        """A command of that time has got no answer; `doing` says what it was for."""
        with self._lock:
            if sent < self._answered:
                return
            self._missed = max(self._missed, sent)
            now = time.monotonic()
            if self._since is None:
                self._since = self._told = now
                self._log.warning(
                    "%s: the server does not answer (%s): %s; trying again until it does",
                    *(self._name, doing, error),
                )
            elif now - self._told >= AGAIN:
                self._told = now
                self._log.warning(
                    "%s: the server has not answered for %s: %s", self._name, shown(now - self._since), error
                )

    def back(self, sent: float) -> None:
        """A command of that time was answered."""
        with self._lock:
            self._answered = max(self._answered, sent)
            if sent < self._missed:
                return
            since, self._since = self._since, None
            if since is not None:
                self._log.warning(
                    "%s: the server is back after %s", self._name, shown(time.monotonic() - since)
                )


def shown(seconds: float) -> str:
    """A duration for people: `12 s`, `3 min`, `2.5 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
