"""Who posts: keeps every queue as full as it shall be, each with jobs of its own sort."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from client import EVENTS, JOBS, QUEUES, Client
from harness import Board

TARGETS = {
    "plain": 20_000,
    "single": 2000,
    "delayed": 3000,
    "failing": 2000,
    "expiring": 500,
    "groups": 4000,
    "flows": 1500,
    "unique": 1000,
    "session": 500,
}
"""So many jobs that have not ended each queue of the board `soak:jobs` shall have."""

TARGET_OF_EVENTS, TARGET_OF_QUEUES = 1000, 3000
AT_ONCE = 400
LIVE = ("scheduled", "blocked", "ready", "claimed")
LONG = 600_000

SETTINGS: dict[str, dict] = {
    JOBS: {
        "retain-complete": 5000,
        "keep-complete": 3000,
        "retain-result": 20_000,
        "retain-failed": 20_000,
        "keep-failed": 2000,
        "retain-cancelled": 10_000,
        "keep-cancelled": 500,
        "retain-trashed": 10_000,
        "keep-trashed": 500,
        "tombstone-ttl": 20_000,
        "tombstones": 10_000,
        "lapses": 3,
        "backoff-base": 100,
        "backoff-max": 2000,
    },
    EVENTS: {"events": "all", "history-first": 2, "history-last": 30, "retain-complete": 2000},
    QUEUES: {"stats-days": 0},
}


def settle(client: Any) -> None:
    """The boards as they stand at the beginning."""
    for key, settings in SETTINGS.items():
        words = [word for pair in settings.items() for word in pair]
        client.execute_command("JOB.SETTINGS", "SET", key, *words)
    board = Board(client, JOBS)
    board.set(queue="single", ageing=5000)
    board.set(queue="groups", group="*", rate=20, burst=50, concurrency=20)
    board.set(queue="groups", group="ordered", ordered=1)
    board.set(queue="session", concurrency=200)


class Producer(Client):
    """One of the two producers; `keys` are the boards that it fills."""

    def fill(self) -> None:
        """Posts what every queue lacks; rests when nothing does."""
        posted = 0
        board = self.board(JOBS)
        rows = board.queues()
        for queue, target in TARGETS.items():
            row = rows.get(queue, {})
            lacking = int(target * self.scale) - sum(row.get(state, 0) for state in LIVE)
            if lacking > 0:
                act: Callable = getattr(self, queue)
                new = act(board, min(lacking, AT_ONCE))
                self.counts["posted", JOBS] += new
                posted += new
        posted += self.fill_events() + self.fill_queues()
        if posted < AT_ONCE:
            self.rest(0.05)

    def fill_events(self) -> int:
        board = self.board(EVENTS)
        lacking = min(int(TARGET_OF_EVENTS * self.scale) - board.count(), 20)
        for _ in range(lacking):
            board.post("x" * 40, id=self.fresh("e"), name="told", meta={"a": "b" * 20})
        self.counts["posted", EVENTS] += max(lacking, 0)
        return max(lacking, 0)

    def fill_queues(self) -> int:
        """Queues that never were before, with a few jobs each."""
        board = self.board(QUEUES)
        lacking = min(int(TARGET_OF_QUEUES * self.scale) - board.count(), AT_ONCE)
        for _ in range(0, lacking, 10):
            board.mpost(["x" * 30] * 10, queue=self.fresh("queue"))
            self.counts["posted", QUEUES] += 10
        return max(lacking, 0)

    def plain(self, board: Board, n: int) -> int:
        size = self.random.randrange(20, 400)
        return len(board.mpost(["x" * size] * n, queue="plain"))

    def single(self, board: Board, n: int) -> int:
        draw = self.random
        n = min(n, 20)
        for _ in range(n):
            board.post(
                "x" * draw.randrange(1, 1000),
                id=self.fresh("j"),
                queue="single",
                name=draw.choice(["mail", "print", self.fresh("name")]),
                user=draw.choice(["ann", "bob", self.fresh("user")]),
                priority=draw.randrange(-3, 4),
                meta={self.fresh("field"): "x" * draw.randrange(100)} if draw.random() < 0.3 else None,
                tags=["red", self.fresh("tag")] if draw.random() < 0.5 else None,
            )
        return n

    def delayed(self, board: Board, n: int) -> int:
        return len(board.mpost(["x" * 60] * n, queue="delayed", delay=self.random.randrange(100, 8000)))

    def failing(self, board: Board, n: int) -> int:
        lapses = self.random.choice([0, 1, 3])
        return len(
            board.mpost(["x" * 60] * n, queue="failing", lease=2000, timeout=4000, retries=2, lapses=lapses)
        )

    def expiring(self, board: Board, n: int) -> int:
        return len(board.mpost(["x" * 60] * n, queue="expiring", expire=self.random.randrange(500, 10_000)))

    def groups(self, board: Board, n: int) -> int:
        draw, posted = self.random, 0
        while posted < n:
            names = ["ordered", f"tenant-{draw.randrange(200)}", self.fresh("tenant")]
            group, few = draw.choice(names), min(draw.randrange(1, 20), n - posted)
            cost = draw.choice([None, 2])
            posted += len(
                board.mpost(["x" * 40] * few, queue="groups", group=group, cost=cost, expire=120_000)
            )
        return posted

    def flows(self, board: Board, n: int) -> int:
        """A parent that runs when its two children have, and one that waits for them all."""
        words = []
        for label, after in (("left", []), ("right", []), ("top", ["left", "right"]), ("last", ["top"])):
            words += ["NODE", label, "x" * 30, "QUEUE", "flows", "RETRIES", 1, "EXPIRE", 60_000]
            if label in ("left", "right"):
                words += ["PARENT", "top"]
            if after:
                how = self.random.choice(["cancel", "fail", "run"])
                words += ["AFTER", len(after), *after, "ONFAILURE", how]
        posted = 0
        for _ in range(max(min(n, 40) // 4, 1)):
            posted += len(board.call("FLOW", 4, *words))
        return posted

    def unique(self, board: Board, n: int) -> int:
        """Under keys that are often taken: the answer is the id of who has the key."""
        draw, posted = self.random, 0
        for _ in range(min(n, 20)):
            id, key = self.fresh("u"), f"key-{draw.randrange(int(3000 * self.scale) + 2)}"
            how = draw.choice([{"onconflict": c} for c in ("reject", "return", "replace", "debounce")])
            if draw.random() < 0.3:
                how["until"] = "start"
            elif draw.random() < 0.2:
                id, key = self.fresh("u"), self.fresh("key")
                how = {"for_": 3000}
            got = self.expect(
                ("EXISTS",),
                lambda id=id, key=key, how=how: board.post(
                    "x" * 50, id=id, queue="unique", unique=key, delay=20, **how
                ),
            )
            posted += got == id
        return posted

    def session(self, board: Board, n: int) -> int:
        return len(board.mpost(["x" * 40] * n, queue="session", lapses=-1))
