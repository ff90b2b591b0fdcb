"""Who works: each sort of worker ends jobs in its own ways, and counts what it was told."""

from __future__ import annotations

from client import EVENTS, JOBS, QUEUES, Client
from harness import Board, options, record
from producers import TARGET_OF_QUEUES, TARGETS

GONE = ("STALE", "NOTOWNER", "NOJOB", "NOTCLAIMED", "ENDED", "CANCELLED")
"""What a worker is told whose job lapsed, was cancelled or taken away: no fault."""

BRIEF = ["id", "token"]


class Worker(Client):
    """Any of them: its method named in `churn.PLAYERS` is one turn."""

    def took(self, key: str, jobs: list) -> list:
        self.counts["claimed", key] += len(jobs)
        return jobs

    def may_take(self, board: Board, queue: str) -> bool:
        """Whether the queue is nearly as full as it shall be: a slow producer makes slow workers."""
        return board.count(queue=queue) >= 0.9 * TARGETS[queue] * self.scale

    def done(self, key: str, reply: object) -> None:
        self.counts["completed", key] += reply == "complete"

    def batches(self) -> None:
        """Takes a hundred at a time, and ends them in one command."""
        board = self.board(JOBS)
        full = [queue for queue in ("plain", "delayed") if self.may_take(board, queue)]
        if full:
            self.batch(JOBS, full)
        if self.board(QUEUES).count() >= 0.9 * TARGET_OF_QUEUES * self.scale:
            self.batch(QUEUES, [])
        self.rest(0.15)

    def batch(self, key: str, queues: list) -> None:
        board = self.board(key)
        jobs = self.took(key, board.claim(self.name, queues=queues, count=100, fields=BRIEF))
        if jobs:
            for reply in board.mconsume(self.name, [job["id"] for job in jobs]):
                self.done(key, reply)

    def chain(self) -> None:
        """One at a time: ends a job and claims the next in the same command, with results now and then."""
        board, draw = self.board(JOBS), self.random
        queues = [queue for queue in ("single", "unique", "flows") if self.may_take(board, queue)]
        how = {"queues": [*queues, "waited"], "order": "rotate", "fields": BRIEF}
        jobs = self.took(JOBS, board.claim(self.name, block=100, **how))
        for more in range(20, -1, -1):
            if not jobs:
                return
            self.rest(0.003)
            id, token = jobs[0]["id"], jobs[0]["token"]
            said = {"token": token, "result": "r" * draw.randrange(100) if draw.random() < 0.2 else None}
            if draw.random() < 0.1:
                beat = {"token": token, "progress": draw.randrange(100), "stage": "half way", "log": "so far"}
                self.expect(GONE, lambda id=id, beat=beat: board.heartbeat(self.name, id, **beat))
            if draw.random() < 0.05:
                how_often = {"token": token, "retry": 30}
                self.expect(
                    GONE,
                    lambda id=id, rest=how_often: board.fail(self.name, id, "soak", "on purpose", **rest),
                )
                return
            words = [*options(**said), *(["CLAIM", *options(**how)] if more else [])]
            reply = self.expect(GONE, lambda id=id, words=words: board.call("CONSUME", self.name, id, *words))
            if reply is None:
                return
            done, claimed = reply if more else (reply, None)
            self.done(JOBS, done)
            jobs = self.took(JOBS, [record(one) for one in claimed or []])

    def failing(self) -> None:
        """Fails, gives back, puts aside, and forgets. The forgotten come back when their lease is over."""
        board, draw = self.board(JOBS), self.random
        name = draw.choice([self.name, self.fresh("worker")])
        queues = [queue for queue in ("failing", "expiring") if self.may_take(board, queue)]
        if not queues:
            return self.rest(0.05)
        for job in self.took(JOBS, board.claim(name, queues=queues, count=5, lease=300, fields=BRIEF)):
            id, token = job["id"], job["token"]
            ways = {
                "consume": lambda id=id, token=token: board.consume(name, id, token=token),
                "retry": lambda id=id, token=token: board.fail(name, id, "E", "m", token=token),
                "end": lambda id=id, token=token: board.fail(name, id, "E", "m", token=token, noretry=True),
                "abandon": lambda id=id, token=token: board.abandon(name, id, token=token, delay=50),
                "trash": lambda id=id, token=token: board.trash(name, id, token=token, reason="bad"),
                "forget": lambda: None,
            }
            way = draw.choices(list(ways), [4, 2, 1, 1, 1, 1])[0]
            reply = self.expect(GONE, ways[way])
            if way == "consume":
                self.done(JOBS, reply)
        self.rest(0.05)

    def tenants(self) -> None:
        """Serves the groups, which have rates and limits of their own."""
        board = self.board(JOBS)
        if not self.may_take(board, "groups"):
            return self.rest(0.1)
        for job in self.took(JOBS, board.claim(self.name, queues=["groups"], count=30, fields=BRIEF)):
            self.done(
                JOBS,
                self.expect(GONE, lambda job=job: board.consume(self.name, job["id"], token=job["token"])),
            )
        self.rest(0.1)

    def sessions(self) -> None:
        """Claims for as long as its connection stands, and lets go of that with jobs in hand."""
        board, draw = self.board(JOBS), self.random
        jobs = self.took(
            JOBS,
            board.claim(self.name, queues=["session"], count=5, session=True, block=200, fields=BRIEF),
        )
        for job in jobs:
            if draw.random() < 0.8:
                self.done(
                    JOBS,
                    self.expect(
                        GONE, lambda job=job: board.consume(self.name, job["id"], token=job["token"])
                    ),
                )
        if draw.random() < 0.3:
            self.reconnect()
        self.rest(0.1)

    def heard(self) -> None:
        """Works on the board whose events are published, with words that make long histories."""
        board = self.board(EVENTS)
        for job in self.took(EVENTS, board.claim(self.name, count=3, fields=BRIEF)):
            id, token = job["id"], job["token"]
            for percent in range(0, 100, self.random.choice([10, 50])):
                board.heartbeat(self.name, id, token=token, progress=percent, log="so far")
            if self.random.random() < 0.2:
                board.abandon(self.name, id, token=token)
            else:
                self.done(EVENTS, board.consume(self.name, id, token=token))
        self.rest(0.08)
