"""Handlers of signals for as long as a worker works. They are not for a process that a job forks: that one
gets back what was there before. With ours it would not end at SIGTERM, which `multiprocessing` sends to its
processes, and its signals would reach the worker, through the pipe that both have.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

_before: dict[int, Any] = {}
"""What our handlers have replaced."""
_writer_before = -1
_mask = threading.local()
"""What signals this thread blocked before it began to fork."""


def heed(numbers: tuple[int, ...], handler: Callable[..., Any], writer: int = -1) -> None:
    """Sets the handler. To `writer` Python writes the number of each signal."""
    global _writer_before
    if writer != -1:
        _writer_before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in numbers:
        _before[number] = signal.signal(number, handler)


def restore() -> None:
    """Undoes `heed`."""
    global _writer_before
    while _before:
        number, handler = _before.popitem()
        signal.signal(number, signal.SIG_DFL if handler is None else handler)
    signal.set_wakeup_fd(_writer_before)
    _writer_before = -1


# A signal that comes between the fork and our taking leave waits for that.


def _before_fork() -> None:
    if _before:
        _mask.before = signal.pthread_sigmask(signal.SIG_BLOCK, list(_before))


def _in_parent() -> None:
    before = vars(_mask).pop("before", None)
    if before is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _in_child() -> None:
    if _before:
        restore()
    _in_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
