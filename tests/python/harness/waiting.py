"""Waiting for a condition."""

from __future__ import annotations

import os
import time
from typing import Callable, TypeVar

T = TypeVar("T")

PATIENCE = 5 if os.environ.get("JOBBOARD_WRAP") else 1
"""A server that is run under something, such as valgrind, gets so many times as long."""


def wait_until(
    condition: Callable[[], T], timeout: float = 5.0, interval: float = 0.005, what: str = ""
) -> T:
    """Calls `condition` until it returns something true, and returns that.

    Raises AssertionError after `timeout` seconds (times PATIENCE), naming `what` was awaited and the last
    value seen. Exceptions of `condition` are not swallowed.
    """
    deadline = time.monotonic() + timeout * PATIENCE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            name = what or getattr(condition, "__name__", "condition")
            raise AssertionError(f"{name}: not met within {timeout} s; last value {value!r}")
        time.sleep(interval)
