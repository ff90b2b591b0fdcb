"""Waiting for a condition."""

from __future__ import annotations

import time
from typing import Callable, TypeVar

T = TypeVar("T")


def wait_until(
    condition: Callable[[], T], timeout: float = 5.0, interval: float = 0.005, what: str = ""
) -> T:
    """Calls `condition` until it returns something true, and returns that.

    Raises AssertionError after `timeout` seconds, naming `what` was awaited and the last value seen.
    Exceptions of `condition` are not swallowed.
    """
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            name = what or getattr(condition, "__name__", "condition")
            raise AssertionError(f"{name}: not met within {timeout} s; last value {value!r}")
        time.sleep(interval)
