"""Running coroutines in a test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

R = TypeVar("R")


def run_async(coroutine: Coroutine[Any, Any, R]) -> R:
    """Runs it to its end, in a thread of its own: browser tests leave an event loop running in theirs."""
    failed: list[BaseException] = []
    done: list[R] = []

    def run() -> None:
        try:
            done.append(asyncio.run(coroutine))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return done[0]
