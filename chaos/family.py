"""Jobs that post children while they run, and wait for all of them."""

from __future__ import annotations

import os
import time

from actors import Actor
from harness import from_pairs
from harness.board import options

PARENTS, CHILDREN = "parents", "children"
"""The queue of the jobs that wait, and that of their children, which `flow.work` ends."""


def produce(folder: str, name: str, seed: int, replicated: bool) -> None:
    """Posts parents; some of them wait from the beginning, and find no child."""
    actor = Actor(folder, name, seed, replicated)
    draw, number = actor.random, 0
    while True:
        number += 1
        id = f"{name}-{number}-{os.getpid()}"
        more = ["AFTER", "CHILDREN"] if draw.random() < 0.2 else []
        words = ("x", "ID", id, "QUEUE", PARENTS, *more)
        about = {"id": id, "after": [], "queue": PARENTS}
        actor.call("post", about, lambda board, words=words: board.call("POST", *words))
        time.sleep(draw.uniform(0.01, 0.1))


def split(folder: str, name: str, seed: int, replicated: bool) -> None:
    """Runs parents: the first run posts children, and each waits for all that there are."""
    actor = Actor(folder, name, seed, replicated)
    while True:
        lease = actor.random.choice([700, 1500])
        words = options(queues=[PARENTS], block=100, lease=lease, fields=["id", "token", "queue", "steps"])
        about = {"worker": name, "lease": lease, "session": False}
        got = actor.call("claim", about, lambda board, words=words: board.call("CLAIM", name, *words))
        for job in got or []:
            run(actor, name, job)
        if not got:
            time.sleep(0.01)


def run(actor: Actor, worker: str, job: dict) -> None:
    draw, id, token = actor.random, job["id"], job["token"]
    about = {"id": id, "token": token, "worker": worker}
    if draw.random() < 0.05:
        return  # forgotten
    if not job.get("steps"):
        for number in range(draw.randrange(4)):
            # The ids of each run are its own: a run that is killed leaves its children behind.
            child = f"{id}.{token}.{number}"
            known = {"id": child, "after": [], "queue": CHILDREN, "parent": id}
            actor.call(
                "post",
                known,
                lambda board, child=child: board.post("x", id=child, parent=id, queue=CHILDREN),
            )
        # Not noted: the steps that are checked are those of agents.
        actor.call("split", about, lambda board: board.step(worker, id, "split", "x", token=token))
    waited = actor.call(
        "await",
        {**about, "children": True},
        lambda board: from_pairs(board.call("AWAIT", worker, id, "CHILDREN", "TOKEN", token)),
    )
    if waited is not None and waited["state"] == "claimed":
        actor.call("consume", about, lambda board: board.consume(worker, id, token=token))
