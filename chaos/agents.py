"""Workers whose jobs store steps and wait for a signal, and the approver who sends it.

What a step stores and a signal says names its sender and has a number: the checker tells each from others.
"""

from __future__ import annotations

import time

from actors import Actor
from harness.board import options

QUEUE = "agents"
SIGNAL = "approved"
STEPS = ["plan", "pay"]
"""The job waits for the signal between them."""
FIELDS = ["id", "token", "queue", "steps", "signals"]


def remember(folder: str, name: str, seed: int, replicated: bool) -> None:
    """Runs jobs of steps; now and then forgets one in the middle, as a worker that dies does."""
    actor = Actor(folder, name, seed, replicated)
    while True:
        lease = actor.random.choice([700, 1500])
        words = options(queues=[QUEUE], block=100, lease=lease, fields=FIELDS)
        about = {"worker": name, "lease": lease, "session": False, "remembers": True}
        got = actor.call("claim", about, lambda board, words=words: board.call("CLAIM", name, *words))
        for job in got or []:
            run(actor, name, job)
        if not got:
            time.sleep(0.01)


def run(actor: Actor, worker: str, job: dict) -> None:
    draw, id, token = actor.random, job["id"], job["token"]
    about = {"id": id, "token": token, "worker": worker}
    for step in STEPS:
        time.sleep(draw.choice([0, 0, 0.005, 0.05]))
        if draw.random() < 0.05:
            return
        if step not in job.get("steps", {}):
            value = f"{worker} {token} {actor.journal.count}"
            stored = actor.call(
                "step",
                {**about, "step": step, "value": value},
                lambda board, step=step, value=value: board.step(worker, id, step, value, token=token),
            )
            if stored is None:
                return
        if step == STEPS[0]:
            waited = actor.call(
                "await", about, lambda board: board.wait_for(worker, id, [SIGNAL], token=token)
            )
            if waited is None or waited["state"] != "claimed":
                return
    if draw.random() < 0.1:
        actor.call(
            "fail", about, lambda board: board.fail(worker, id, "chaos", "on purpose", token=token, retry=50)
        )
    else:
        actor.call("consume", about, lambda board: board.consume(worker, id, token=token))


def approve(folder: str, name: str, seed: int, replicated: bool) -> None:
    """Sends the signal to jobs that wait for it, and to some that do not yet."""
    actor = Actor(folder, name, seed, replicated)
    while True:
        early = actor.random.random() < 0.3
        filters = ["QUEUE", QUEUE, "STATE", "ready"] if early else ["AWAITS", SIGNAL]
        page = actor.call(
            "list", {}, lambda board, filters=filters: board.call("LIST", *filters, "COUNT", 10, "JUSTID")
        )
        for id in page[1] if page else []:
            value = f"{name} {actor.journal.count}"
            actor.call(
                "signal",
                {"id": id, "value": value},
                lambda board, id=id, value=value: board.signal(SIGNAL, id, value=value),
            )
        time.sleep(actor.random.uniform(0.01, 0.1))
