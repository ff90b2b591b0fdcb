"""Checks that read as sentences: a command is refused with this error, and nothing has changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import redis
from harness import Board

MS = " milliseconds, or a duration such as 30s or 1h30m"
"""How errors name the unit of a duration."""


def error_text(error: Exception) -> str:
    """The error line as the server sent it, code included (redis-py takes some codes away)."""
    code = getattr(error, "status_code", None)
    return f"{code} {error}" if code else str(error)


@contextmanager
def refused(expected: str, *boards: Board) -> Iterator[None]:
    """The block must end in exactly this error, and leave the boards named as they were."""
    with refused_like(re.escape(expected), *boards):
        yield


@contextmanager
def refused_like(pattern: str, *boards: Board) -> Iterator[None]:
    """Like `refused`, with a regular expression for the whole error line."""
    before = [board.digest() for board in boards]
    try:
        yield
    except redis.ResponseError as error:
        said = error_text(error)
        assert re.fullmatch(pattern, said), f"refused with {said!r}, expected {pattern!r}"
    else:
        raise AssertionError(f"accepted, expected {pattern!r}")
    assert [board.digest() for board in boards] == before, "a refused command has changed the board"


def error_of(board: Board, command: str, *words: object) -> str | None:
    """The error line with which a command is refused; None when it is accepted."""
    try:
        board.call(command, *words)
    except redis.ResponseError as error:
        return error_text(error)
    return None


def ids(records: list) -> list:
    return [record["id"] for record in records]


def drain(board: Board, worker: str = "drain", **claim_options: object) -> list:
    """Claims until there is nothing left and returns the ids in the order in which they came."""
    claimed: list = []
    while found := board.claim(worker, count=1000, **{"queues": [], **claim_options}):
        claimed += ids(found)
    return claimed


def check_consistent(board: Board) -> None:
    """The counts, lists and records of a board agree with one another."""
    info = board.info()
    if info is None:
        return
    states = ["scheduled", "blocked", "ready", "claimed", "complete", "failed", "cancelled", "trashed"]
    listed = board.list_all(fields=["id", "state", "queue", "worker"], count=1000)
    assert len({job["id"] for job in listed}) == len(listed) == info["jobs"] == sum(info[s] for s in states)
    queues, workers = board.queues(), board.workers()
    for state in states:
        of_state = [job for job in listed if job["state"] == state]
        assert len(of_state) == info[state] == board.count(state=state), state
        for name, row in queues.items():
            assert row[state] == sum(job["queue"] == name for job in of_state), (state, name)
    for name, row in workers.items():
        assert row["claimed"] == sum(job.get("worker") == name for job in listed if job["state"] == "claimed")
