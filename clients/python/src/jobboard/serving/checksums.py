"""A worker of the demo: a job's payload is the path of a file, its result the SHA-256 of that file.

    JOBBOARD_URL=redis://… python -m jobboard.serving.checksums NAME BATCH PAUSE [JOBS]

It is not registered, so that its leases end by themselves and not with its registration.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import sys
from datetime import timedelta

import redis

from ..board import Board
from ..board.context import Context
from ..connecting import default_url
from ..outcomes import NoRetry
from ..worker import Worker

NAME = "checksums-demo"
LEASE = "2s"
FOREVER = timedelta(days=1)
CHUNK = 1 << 20
"""Bytes read between two looks at whether the job is still ours."""


def work(name: str, batch: int, pause: float, jobs: int | None = None) -> None:
    """Claims up to `batch` jobs at a time and works on them one by one. It sleeps for `pause` seconds before
    each. With `jobs`, the worker ends only so many, then holds its next claims until it is killed.
    """
    rest, done = timedelta(seconds=pause), itertools.count()
    board = Board(NAME, redis.Redis.from_url(default_url(), client_name=name), codec="raw")

    @board.handler("sha256")
    def sha256(context: Context, path: bytes) -> str:
        context.sleep(rest if jobs is None or next(done) < jobs else FOREVER)
        try:
            return _digest(context, path)
        except OSError as error:
            raise NoRetry(str(error), kind="unreadable") from error

    Worker(
        board, name=name, concurrency=1, prefetch=batch - 1, lease=LEASE, register=False, stop_within=LEASE
    ).run()


def _digest(context: Context, path: bytes) -> str:
    digest = hashlib.sha256()
    with open(os.fsdecode(path), "rb") as file:
        while chunk := file.read(CHUNK):
            context.check()
            digest.update(chunk)
    return digest.hexdigest()


if __name__ == "__main__":
    work(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), *map(int, sys.argv[4:]))
