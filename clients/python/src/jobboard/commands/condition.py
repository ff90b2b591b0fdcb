"""The condition of a board: what keeps workers from its jobs, and posts from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import redis

from ..board import Board
from ..errors import coded, translated
from .common import span, time_of
from .finding import Finding
from .pauses import queues_paused, resume
from .quotas import full

STUCK = 60_000
"""From this age on, ms, a ready job shows that no worker serves its queue, when nothing there is claimed."""
NAMED = 20
"""How many of a kind are named."""


def board_of(client: Any, name: str) -> Iterator[Finding]:
    board = Board(name, client)
    about = f"board {name}"
    try:
        info = board.info()
        queues = board.queues()
    except redis.exceptions.NoPermissionError as error:
        advice = "ask as an operator, an observer or an administrator"
        yield Finding("skip", about, f"this user may not look at it: {coded(error)}", advice)
        return
    except redis.ResponseError as error:
        said = coded(translated(error))
        if said.startswith(("MOVED ", "ASK ")):
            yield Finding("warn", about, f"another node of the cluster has it: {said}", "say --cluster")
        else:
            yield Finding("bad", about, said)
        return
    if info is None:
        yield Finding("warn", about, "there is none yet", "the first post makes it: is the name right?")
        return
    yield Finding("ok", about, f"{jobs(info['jobs'])}, {info['ready']} ready, {info['failed']} failed")
    if info["paused"]:
        yield Finding("warn", about, f"it is {until(info['paused'])}", resume(name))
    yield from waiting(name, info, queues)
    for one in full(board, info, queues)[:NAMED]:
        text = f"{one.text}: posts above it are refused with LIMIT {one.setting}, or wait"
        yield Finding("warn", about if one.queue is None else one.where, text, one.command(name))


def waiting(name: str, info: dict[str, Any], queues: list[dict[str, Any]]) -> Iterator[Finding]:
    """Queues from which nothing can be claimed, or from which nobody claims."""
    paused = queues_paused(info, queues)
    for row in paused[:NAMED]:
        advice = resume(name, ("--queue", row["queue"]))
        yield Finding("warn", f"queue {row['queue']}", f"it is {until(row['paused'])}", advice)
    if len(paused) > NAMED:
        yield Finding("warn", "queues", f"{len(paused) - NAMED} more are paused", f"jobboard queues {name}")
    for row in queues:
        if row["ready"] and not row["claimed"] and not row["paused"] and row["oldest"] > STUCK:
            are = "is" if row["ready"] == 1 else "are"
            since = span(row["oldest"])
            text = f"{jobs(row['ready'])} {are} ready, the oldest since {since}, and none is claimed"
            advice = f"start a worker that claims from it, or ask `jobboard explain {name} ID`"
            yield Finding("warn", f"queue {row['queue']}", text, advice)


def until(paused: int) -> str:
    """A pause in words. -1: until it is resumed."""
    return "paused" if paused < 0 else f"paused until {time_of(paused)}"


def jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"
