"""The job that all workers do: nothing, but for one byte into a file, by which it is counted."""

from __future__ import annotations

import os

COUNT = os.open(os.environ["BENCH_COUNT"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def nothing() -> None:
    os.write(COUNT, b".")


def port() -> int:
    return int(os.environ["BENCH_PORT"])
