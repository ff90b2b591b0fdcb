"""Brings jobs into a state of their life."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness import Board, Clock, options, record, wait_until

LONG = 3_600_000
"""A lease or delay that does not end during a test."""


def scheduled(board: Board, id: str = "j", **options: Any) -> None:
    board.post(id=id, delay=LONG, **options)


def ready(board: Board, id: str = "j", **options: Any) -> None:
    board.post(id=id, **options)


def claimed(board: Board, id: str = "j", worker: str = "w1", lease: int = LONG, **options: Any) -> int:
    """Posts and claims a job and returns the token."""
    ready(board, id, **options)
    return claim(board, id, worker, lease)


def claim(board: Board, id: str = "j", worker: str = "w1", lease: int = LONG) -> int:
    """Claims the job with this id and returns the token."""
    return board.claim_one(worker, id=id, lease=lease)["token"]


def held(board: Board, id: str = "j", worker: str = "w1", lease: int = 100) -> int:
    """Claimed, and in the same transaction its server gets short of replicas: it ends no lease until its
    `min-replicas-to-write` is 0 again. Its replicas know nothing of that, nor does it after a restart.
    """
    pipe = board.client.pipeline()
    pipe.execute_command("JOB.POST", board.key, "payload", "ID", id)
    pipe.execute_command("JOB.CLAIM", board.key, worker, *options(id=id, lease=lease))
    pipe.execute_command("CONFIG", "SET", "min-replicas-to-write", 99)
    _, [job], _ = pipe.execute()
    return record(job)["token"]


def claimed_by_another(board: Board, id: str = "j", **options: Any) -> int:
    return claimed(board, id, worker="w2", **options)


def cancel_requested(board: Board, id: str = "j", worker: str = "w1", **options: Any) -> int:
    token = claimed(board, id, worker, **options)
    assert board.cancel(id) == ["requested"]
    return token


def lapsed(board: Board, id: str = "j", worker: str = "w1", **options: Any) -> int:
    """Its lease has ended and nobody has claimed it since. Needs a manual clock."""
    token = claimed(board, id, worker, lease=1000, **options)
    Clock(board.client).advance(1000)
    assert board.state(id) == "ready"
    return token


def lapsed_and_taken(board: Board, id: str = "j", **options: Any) -> int:
    """The lease of w1 has ended and w2 has claimed it. Returns the old token. Needs a manual clock."""
    token = lapsed(board, id, **options)
    claim(board, id, "w2")
    return token


def lapsed_and_taken_again(board: Board, id: str = "j", **options: Any) -> int:
    """The lease of w1 has ended and w1 has claimed it anew. Returns the old token. Needs a manual clock."""
    token = lapsed(board, id, **options)
    claim(board, id, "w1")
    return token


def retrying(board: Board, id: str = "j", worker: str = "w1", **options: Any) -> int:
    """It has failed once and waits for its next try."""
    token = claimed(board, id, worker, **options)
    assert board.fail(worker, id, token=token, retry=LONG)["state"] == "scheduled"
    return token


def abandoned(board: Board, id: str = "j", worker: str = "w1", **options: Any) -> int:
    token = claimed(board, id, worker, **options)
    board.abandon(worker, id, token=token)
    return token


def released(board: Board, id: str = "j", worker: str = "w1", **options: Any) -> int:
    token = claimed(board, id, worker, **options)
    board.release(id)
    return token


def complete(board: Board, id: str = "j", worker: str = "w1", **options: Any) -> int:
    """Complete, and its record is kept."""
    token = claimed(board, id, worker, **{"retain": LONG, **options})
    board.consume(worker, id, token=token)
    return token


def gone(board: Board, id: str = "j", worker: str = "w1", **options: Any) -> int:
    """Complete, and its record is not kept: only a tombstone is."""
    return complete(board, id, worker, retain=0, **options)


def failed(board: Board, id: str = "j", worker: str = "w1", kind: str = "boom", **options: Any) -> int:
    token = claimed(board, id, worker, **options)
    board.fail(worker, id, kind, "it broke", token=token, noretry=True)
    return token


def cancelled(board: Board, id: str = "j", **options: Any) -> None:
    ready(board, id, **options)
    assert board.cancel(id) == ["cancelled"]


def cancelled_by_force(board: Board, id: str = "j", worker: str = "w1", **options: Any) -> int:
    token = claimed(board, id, worker, **options)
    assert board.cancel(id, force=True) == ["cancelled"]
    return token


def trashed(board: Board, id: str = "j", worker: str = "w1", **options: Any) -> int:
    token = claimed(board, id, worker, **options)
    board.trash(worker, id, token=token, reason="rubbish")
    return token


LIVES: dict[str, Callable[..., Any]] = {
    "scheduled": scheduled,
    "ready": ready,
    "claimed": claimed,
    "cancel requested": cancel_requested,
    "retrying": retrying,
    "abandoned": abandoned,
    "released": released,
    "complete": complete,
    "failed": failed,
    "cancelled": cancelled,
    "trashed": trashed,
}
"""Ways of life that need no manual clock."""

ENDED = ["complete", "failed", "cancelled", "trashed"]


def busy(board: Board) -> None:
    """Fills a board with jobs of every state and with all that a board can hold. Needs no manual clock."""
    board.set(retain_cancelled=LONG, history_last=30)
    board.set(queue="mail", lease=LONG, retries=3)
    for number, (name, live) in enumerate(LIVES.items()):
        id = name.replace(" ", "-")
        live(
            board, id, queue="mail", name=f"name-{number}", priority=number - 3, meta={"n": number, "é": "ü"}
        )
        live(board, f"{id}-2", lapses=-1, retries=-1, expire=LONG, timeout=LONG, backoff=("FIXED", 7))
    board.post_many(50, "x" * 50, queue="many")
    for job in board.claim("w3", queues=["many"], count=20, lease=LONG):
        board.heartbeat("w3", job["id"], token=job["token"], progress=12.5, stage="half", log="a line")
        board.step("w3", job["id"], "fetched", "seven pages", token=job["token"])
        board.step("w3", job["id"], b"\x00\xff", b"\xff", token=job["token"], lease=LONG)
    for job in board.claim("w4", queues=["many"], count=5, lease=LONG):
        board.consume("w4", job["id"], token=job["token"], result=b"\x00\xff")
    gone(board, "gone")
    board.delete(board.post())
    late(board, "late")
    late(board, "late-again")
    claim(board, "late-again", "w1")
    cancelled(board, "again")
    board.requeue("again")


def late(board: Board, id: str, worker: str = "w1") -> int:
    """Like `lapsed`, on a server with the system clock."""
    token = claimed(board, id, worker, lease=1, lapses=-1)
    wait_until(lambda: board.state(id) == "ready", what=f"end of the lease of {id}")
    return token
