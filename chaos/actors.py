"""Producers and workers: a process each, which does its calls one by one and writes them down.

They find the primary in a file that the site keeps, as a client of Sentinel would be told; after any error
they look again. No call is ever resent: what nobody knows stays unknown.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import redis
from expect import error_text
from harness import Board
from harness.board import options
from journal import Journal
from redis.backoff import NoBackoff
from redis.retry import Retry
from servers import die_with_parent

BOARD = "chaos"
LIMIT = 3
"""So many jobs of the queue `limited` may run at once."""


class Actor:
    """A client with a journal."""

    def __init__(self, folder: str, name: str, seed: int, replicated: bool) -> None:
        die_with_parent()
        self.folder, self.name, self.replicated = Path(folder), name, replicated
        self.random = random.Random(f"{seed} {name}")
        self.journal = Journal(self.folder / f"{name}.jsonl").open()
        self.board: Board | None = None
        self.port = 0

    def connect(self) -> Board:
        """The board on the primary, over one connection."""
        if self.board is None:
            self.port = int((self.folder / "primary").read_text())
            client = redis.Redis(
                port=self.port,
                decode_responses=True,
                protocol=3,
                socket_timeout=5,
                socket_connect_timeout=1,
                single_connection_client=True,
                retry=Retry(NoBackoff(), 0),
            )
            self.board = Board(client, BOARD)
        return self.board

    def drop(self) -> None:
        """Lets go of the connection after an error, and waits a moment."""
        if self.board is not None:
            try:
                self.board.client.close()
            except redis.RedisError:
                pass
            self.board = None
        time.sleep(self.random.uniform(0.01, 0.1))

    def sure(self) -> bool:
        """Whether what was just answered can no longer be lost: it is on disk, and on both replicas."""
        if not self.replicated:
            return True
        try:
            return self.connect().client.execute_command("WAIT", 2, 400) >= 2
        except redis.RedisError:
            return False

    def call(self, verb: str, about: dict, act: Callable[[Board], Any]) -> Any:
        """One call; None when it was refused or nobody knows. The connection is dropped when it is broken."""
        try:
            board = self.connect()
        except (redis.RedisError, OSError, ValueError):
            self.drop()
            return None
        try:
            return self.journal.call(verb, self.port, about, lambda: act(board), self.sure)
        except redis.ResponseError as error:
            if error_text(error).startswith(("READONLY", "LOADING", "MASTERDOWN", "NOREPLICAS")):
                self.drop()
            return None
        except (redis.RedisError, OSError):
            self.drop()
            return None


def produce(folder: str, name: str, seed: int, replicated: bool) -> None:
    """Posts jobs of every sort, some that wait for the one before."""
    actor = Actor(folder, name, seed, replicated)
    draw = actor.random
    last = None
    before: dict[str, str] = {}
    number = 0
    while True:
        number += 1
        id = f"{name}-{number}-{os.getpid()}"
        extra: dict = {"queue": draw.choice(["plain", "plain", "batch", "limited", "session", "agents"])}
        if draw.random() < 0.2:
            extra["delay"] = draw.randrange(1, 600)
        if draw.random() < 0.3:
            extra["priority"] = draw.randrange(-2, 3)
        if last is not None and draw.random() < 0.2:
            extra["after"] = [last]
        about = {"id": id, "after": extra.get("after", []), "queue": extra["queue"]}
        if draw.random() < 0.15:
            group = draw.choice("abc")
            extra = {"queue": "ordered", "group": group}
            about = {"id": id, "after": [], "queue": "ordered", "before": before.get(group)}
        done = actor.call(
            "post", about, lambda board, id=id, extra=extra: board.post("x" * 50, id=id, **extra)
        )
        last = id if done is not None else None
        if done is not None and "group" in extra:
            before[extra["group"]] = id
        time.sleep(draw.uniform(0, 0.02))


CLAIMS: dict[str, dict] = {
    "plain": {"queues": ["plain", "limited", "ordered"], "block": 100},
    "batch": {"queues": ["batch", "plain", "ordered"], "count": 8},
    "lingering": {"queues": ["batch", "plain"], "count": 8, "min": 3, "linger": 40, "block": 300},
    "blocking": {"queues": [], "block": 300},
    "session": {"queues": ["session"], "block": 100, "session": True},
    "chained": {"queues": ["plain", "batch", "limited"], "block": 100},
}
"""The sorts of workers, and what their claims ask for. A chained one claims the next as it consumes."""


def work(folder: str, name: str, seed: int, replicated: bool, sort: str) -> None:
    """Claims and ends jobs in every way that a worker has, and now and then forgets one."""
    actor = Actor(folder, name, seed, replicated)
    draw = actor.random
    while True:
        lease = draw.choice([300, 700, 1500])
        claims = {**CLAIMS[sort], "lease": lease, "fields": ["id", "token", "queue"]}
        words = options(**claims)
        about = {"worker": name, "lease": lease, "session": bool(claims.get("session"))}
        got = actor.call(
            "claim",
            about,
            lambda board, words=words: board.client.execute_command("JOB.CLAIM", BOARD, name, *words),
        )
        if not got:
            time.sleep(0.01)
        jobs = list(got or [])
        while jobs:
            job = jobs.pop(0)
            jobs += end_one(actor, about, job["id"], job["token"], words if sort == "chained" else None)


def end_one(actor: Actor, about: dict, id: str, token: int, chain: list | None) -> list:
    """Ends a job, or forgets it. With the words of a claim, the jobs that its consume has taken."""
    draw, worker, lease = actor.random, about["worker"], about["lease"]
    time.sleep(draw.choice([0, 0, 0.002, 0.02, lease / 1000 * 0.4]))
    claim, about = about, {"id": id, "token": token, "worker": worker}
    chance = draw.random()
    if chance < 0.05:
        return []  # forgotten: its lease will end
    if chance < 0.25:
        actor.call("heartbeat", about, lambda board: board.heartbeat(worker, id, token=token, lease=lease))
    if chance < 0.10:
        actor.call("abandon", about, lambda board: str(board.abandon(worker, id, token=token)))
    elif chance < 0.17:
        actor.call(
            "fail", about, lambda board: board.fail(worker, id, "chaos", "on purpose", token=token, retry=50)
        )
    elif chain is None:
        actor.call("consume", about, lambda board: board.consume(worker, id, token=token))
    else:
        words = (worker, id, "TOKEN", token, "CLAIM", *chain)
        reply = actor.call("consume", {**about, **claim}, lambda board: board.call("CONSUME", *words))
        return (reply and reply[1]) or []
    return []
