"""`jobboard worker --reload`: starts the worker anew when a file of the program has changed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from .common import say

EVERY = 0.5
"""Seconds between two looks."""
SKIPPED = {"__pycache__", "node_modules", "site-packages"}


def run_reloading(words: Sequence[str], folder: Path) -> int:
    """Runs `jobboard` with these words in a process of its own, until it ends by a signal to this one. The
    worker is asked to stop as by SIGTERM, so its jobs are finished or given back.
    """
    stopped: list[int] = []
    old = {number: signal.signal(number, lambda number, _: stopped.append(number)) for number in (2, 15)}
    try:
        while True:
            before = changes(folder)
            child = subprocess.Popen([sys.executable, "-m", "jobboard", *words])
            while not stopped and changes(folder) == before:
                time.sleep(EVERY)
            if stopped:
                child.send_signal(signal.SIGTERM)
                return child.wait()
            say("a file has changed: the worker starts again")
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
            child.wait()
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def changes(folder: Path) -> dict[str, int]:
    """The Python files of a folder and when each was changed."""
    found = {}
    for path in sources(folder):
        try:
            found[path] = os.stat(path).st_mtime_ns
        except FileNotFoundError:
            continue
    return found


def sources(folder: Path) -> Iterator[str]:
    for root, folders, files in os.walk(folder):
        folders[:] = [one for one in folders if one not in SKIPPED and not one.startswith(".")]
        yield from (os.path.join(root, name) for name in files if name.endswith(".py"))
