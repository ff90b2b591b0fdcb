"""Waiting for a condition."""

from __future__ import annotations

import faulthandler
import os
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 5 if os.environ.get("JOBBOARD_WRAP") else 1
"""A server that is run under something, such as valgrind, gets so many times as long."""
SOON = 3000 * PATIENCE
"""Milliseconds of a lease or delay that must not end while a test prepares, however busy the machine is."""


def wait_until(condition: Callable[[], T], timeout: float = 120.0, what: str = "") -> T:
    """Calls `condition` until it returns something true, and returns that.

    It is called often at first, and then more and more rarely, down to 20 times a second: a dozen tests that
    wait would leave the machine no time for anything else.
    Raises AssertionError after `timeout` seconds (times PATIENCE), naming `what` was awaited and the last
    value seen; all threads' stacks go to stderr. Exceptions of `condition` are not swallowed.
    """
    begun = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        waited = time.monotonic() - begun
        if waited > timeout * PATIENCE:
            faulthandler.dump_traceback(2)  # of all threads: a worker may run in this process
            name = what or getattr(condition, "__name__", "condition")
            raise AssertionError(f"{name}: not met within {timeout} s; last value {value!r}")
        time.sleep(min(max(waited / 10, 0.005), 0.05))


def past(unix_ms: float) -> None:
    """Waits until the time of this machine is later than that."""
    while (left := unix_ms / 1000 - time.time()) >= -0.002:
        time.sleep(max(left, 0) + 0.005)


def now() -> int:
    """The Unix millisecond of this machine, and so of a server with the system clock."""
    return int(time.time() * 1000)
