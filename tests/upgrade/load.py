"""Producers and workers that survive what an upgrade does to their server: they ask again, and know what was
acknowledged.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import jobboard
import redis

T = TypeVar("T")
PATIENCE = 120
"""Seconds without an answer after which a test has failed."""


class Load:
    """Threads that post and do jobs of one board, until `stop`. `find` gives a client of who is to be asked;
    it is called anew after each trouble.
    """

    def __init__(self, name: str, find: Callable[[], Any], producers: int = 2, workers: int = 2) -> None:
        self.name, self.find = name, find
        self.posted: set[str] = set()
        self.done: set[str] = set()
        self.failures: list[BaseException] = []
        self._numbers = itertools.count()
        self._ended = threading.Event()
        self._posting = threading.Event()
        self._posting.set()
        roles = [self._produce] * producers + [self._work] * workers
        self._threads = [
            threading.Thread(target=self._run, args=(role, number), daemon=True)
            for number, role in enumerate(roles)
        ]
        for thread in self._threads:
            thread.start()

    def check(self) -> None:
        assert not self.failures, self.failures

    def wait_for_more(self, count: int = 100) -> None:
        """Until so many more jobs were posted and done than now."""
        wanted = len(self.posted) + count, len(self.done) + count
        self._wait(lambda: (len(self.posted), len(self.done)) >= wanted and len(self.done) >= wanted[1])

    def drain(self) -> None:
        """Posts nothing more, and ends when all that was posted is done."""
        self._posting.clear()
        self._wait(lambda: not any(one.name == "posting" for one in self._threads if one.is_alive()))
        self._wait(lambda: self.posted <= self.done)
        self._ended.set()
        for thread in self._threads:
            thread.join(PATIENCE)
        self.check()

    def stop(self) -> None:
        self._posting.clear()
        self._ended.set()

    def _wait(self, met: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE
        while not met():
            self.check()
            assert time.monotonic() < until, f"{len(self.posted)} posted, {len(self.done)} done"
            time.sleep(0.02)

    def _run(self, role: Callable[[int], None], number: int) -> None:
        try:
            role(number)
        except BaseException as error:
            self.failures.append(error)

    def _produce(self, number: int) -> None:
        threading.current_thread().name = "posting"
        asker = Asker(self)
        while self._posting.is_set():
            id = f"job-{next(self._numbers)}"
            asker.ask(lambda board, id=id: posted(board, id))
            self.posted.add(id)
            time.sleep(0.002)

    def _work(self, number: int) -> None:
        asker, name = Asker(self), f"worker-{number}"
        while not self._ended.is_set():
            for job in asker.ask(lambda board: board.claim(name, count=5, block="100ms")) or []:
                asker.ask(lambda board, job=job: consumed(board, name, job))
                self.done.add(job.id)


class Asker:
    """One connection at a time to whoever answers."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.board: jobboard.Board | None = None

    def ask(self, act: Callable[[jobboard.Board], T]) -> T | None:
        """What it comes to; asked again until there is an answer, or the load has ended."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                if self.board is None:
                    self.board = jobboard.Board(self.load.name, self.load.find())
                return act(self.board)
            except jobboard.BoardError as error:
                if error.code != "UNBLOCKED":
                    raise
            except (redis.RedisError, redis.exceptions.RedisClusterException, OSError) as error:
                if isinstance(error, redis.ResponseError) and not is_passing(error):
                    raise
                self.board = None
            if self.load._ended.is_set():
                return None
            assert time.monotonic() < until, "nobody answers"
            time.sleep(0.02)


PASSING = ("UNBLOCKED", "LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "BUSY")


def is_passing(error: redis.ResponseError) -> bool:
    """Whether a server refuses because it begins, ends, or is another's replica."""
    kinds = (redis.exceptions.BusyLoadingError, redis.exceptions.ReadOnlyError)
    kinds += (redis.exceptions.ClusterDownError, redis.exceptions.MasterDownError)
    return isinstance(error, kinds) or str(error).startswith(PASSING)


def posted(board: jobboard.Board, id: str) -> None:
    """A post whose answer was lost is there already."""
    try:
        board.post({"n": id}, id=id)
    except jobboard.Exists:
        pass


def consumed(board: jobboard.Board, worker: str, job: jobboard.Job) -> None:
    """A consume whose answer was lost has ended the job already."""
    try:
        board.consume(worker, job.id, token=job.token)
    except (jobboard.Ended, jobboard.NotClaimed, jobboard.NotOwner, jobboard.Stale, jobboard.NoJob):
        pass
