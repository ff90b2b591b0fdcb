"""The flow of work: posts that wait for room, dead letters that go back, output and its readers."""

from __future__ import annotations

import os
import time

from actors import BOARD, Actor
from harness.board import options

NARROW, ROOM = "narrow", 6
"""A queue, and for how many jobs it has room."""
LETTERS, GRAVE = "letters", "grave"
"""A queue whose jobs have one try, and its dead queue."""
WRITTEN = "written"
"""The queue of jobs whose workers write output."""


def settle(client) -> None:
    """The settings of these queues."""
    client.execute_command("JOB.SETTINGS", "SET", BOARD, "QUEUE", NARROW, "max-jobs", ROOM)
    client.execute_command("JOB.SETTINGS", "SET", BOARD, "QUEUE", LETTERS, "dead-queue", GRAVE)


def produce(folder: str, name: str, seed: int, replicated: bool) -> None:
    """Posts jobs that wait for room, letters, and jobs whose workers write."""
    actor = Actor(folder, name, seed, replicated)
    draw, number = actor.random, 0
    while True:
        number += 1
        id = f"{name}-{number}-{os.getpid()}"
        queue = draw.choice([NARROW, NARROW, NARROW, LETTERS, WRITTEN])
        extra = {NARROW: {"block": draw.choice([20, 200, 1000])}, LETTERS: {"retries": 0}}.get(queue, {})
        about = {"id": id, "after": [], "queue": queue}
        actor.call(
            "post",
            about,
            lambda board, id=id, queue=queue, extra=extra: board.post("x", id=id, queue=queue, **extra),
        )
        time.sleep(draw.uniform(0, 0.01))


def work(folder: str, name: str, seed: int, replicated: bool, queue: str) -> None:
    """Claims from one queue: letters mostly fail, jobs of `written` write before they end."""
    actor = Actor(folder, name, seed, replicated)
    draw = actor.random
    while True:
        lease = draw.choice([500, 1500])
        words = options(queues=[queue], block=100, lease=lease, fields=["id", "token", "queue"])
        about = {"worker": name, "lease": lease, "session": False}
        got = actor.call("claim", about, lambda board, words=words: board.call("CLAIM", name, *words))
        for job in got or []:
            end_one(actor, name, job["id"], job["token"], queue)
        if not got:
            time.sleep(0.01)


def end_one(actor: Actor, worker: str, id: str, token: int, queue: str) -> None:
    draw, about = actor.random, {"id": id, "token": token, "worker": worker}
    if draw.random() < 0.05:
        return  # forgotten
    for number in range(1, draw.randrange(2, 8) if queue == WRITTEN else 1):
        # A chunk whose answer got lost is sent once more: it must not be there twice.
        for _ in range(2):
            wrote = actor.call(
                "write",
                {**about, "number": number},
                lambda board, number=number: board.heartbeat(
                    worker, id, token=token, output=(number, f"{token} {number}")
                ),
            )
            if wrote is not None:
                break
        else:
            return
    if queue == LETTERS and draw.random() < 0.7:
        actor.call("fail", about, lambda board: board.fail(worker, id, "chaos", "on purpose", token=token))
    else:
        actor.call("consume", about, lambda board: board.consume(worker, id, token=token))


def send_back(folder: str, name: str, seed: int, replicated: bool) -> None:
    """Sends dead letters back to where they failed."""
    actor = Actor(folder, name, seed, replicated)
    words = ("QUEUE", GRAVE, "STATE", "ready", "COUNT", 5, "JUSTID")
    while True:
        page = actor.call("list", {}, lambda board: board.call("LIST", *words))
        for id in page[1] if page else []:
            actor.call("requeue", {"id": id}, lambda board, id=id: board.call("REQUEUE", 1, id, "ORIGIN"))
        time.sleep(actor.random.uniform(0.02, 0.2))


def read(folder: str, name: str, seed: int, replicated: bool) -> None:
    """Reads what workers write, from the beginning."""
    actor = Actor(folder, name, seed, replicated)
    words = ("QUEUE", WRITTEN, "STATE", "claimed", "COUNT", 5, "JUSTID")
    while True:
        page = actor.call("list", {}, lambda board: board.call("LIST", *words))
        for id in page[1] if page else []:
            actor.call("read", {"id": id}, lambda board, id=id: board.output(id))
        time.sleep(actor.random.uniform(0.01, 0.05))
