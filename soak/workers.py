"""Who works: each sort of worker ends jobs in its own ways, and counts what it was told."""

from __future__ import annotations

from client import EVENTS, JOBS, QUEUES, Client
from harness import record

GONE = ("STALE", "NOTOWNER", "NOJOB", "NOTCLAIMED", "ENDED", "CANCELLED")
"""What a worker is told whose job lapsed, was cancelled or taken away: no fault."""

BRIEF = ["id", "token"]


class Worker(Client):
    """Any of them: its method named in `churn.PLAYERS` is one turn."""

    def took(self, key: str, jobs: list) -> list:
        self.counts["claimed", key] += len(jobs)
        return jobs

    def done(self, key: str, reply: object) -> None:
        self.counts["completed", key] += reply == "complete"

    def batches(self) -> None:
        """Takes a hundred at a time, and ends them in one command."""
        for key, queues in ((JOBS, ["plain", "delayed"]), (QUEUES, [])):
            board = self.board(key)
            jobs = self.took(key, board.claim(self.name, queues=queues, count=100, fields=BRIEF))
            if jobs:
                for reply in board.mconsume(self.name, [job["id"] for job in jobs]):
                    self.done(key, reply)
        self.rest(0.15)

    def chain(self) -> None:
        """One at a time: ends a job and claims the next in the same command, with results now and then."""
        board, draw = self.board(JOBS), self.random
        queues = ["single", "unique", "flows", "waited"]
        [job, *_] = self.took(
            JOBS, board.claim(self.name, queues=queues, order="rotate", block=100, fields=BRIEF)
        ) or [None]
        while job is not None:
            self.rest(0.003)
            extra = {"result": "r" * draw.randrange(100)} if draw.random() < 0.2 else {}
            if draw.random() < 0.1:
                fields = {"progress": draw.randrange(100), "stage": "half way", "log": "so far"}
                self.expect(GONE, lambda job=job, fields=fields: self._heartbeat(job, **fields))
            if draw.random() < 0.05:
                failed = self.expect(
                    GONE,
                    lambda job=job: board.fail(
                        self.name, job["id"], "soak", "on purpose", token=job["token"], retry=30
                    ),
                )
                self.counts["failed tries", JOBS] += failed is not None
                return
            words = [
                part for pair in extra.items() for part in (pair[0].upper(), pair[1])
            ]  # CLAIM comes last
            both = self.expect(
                GONE,
                lambda job=job, words=words: board.call(
                    "CONSUME", self.name, job["id"], "TOKEN", job["token"], *words,
                    "CLAIM", "QUEUES", len(queues), *queues, "ORDER", "rotate",
                    "FIELDS", 2, *BRIEF,
                ),
            )  # fmt: skip
            if both is None:
                return
            self.done(JOBS, both[0])
            [job, *_] = self.took(JOBS, [record(one) for one in both[1] or []]) or [None]

    def _heartbeat(self, job: dict, **how: object) -> None:
        self.board(JOBS).heartbeat(self.name, job["id"], token=job["token"], **how)

    def failing(self) -> None:
        """Fails, gives back, puts aside, and forgets. The forgotten come back when their lease is over."""
        board, draw = self.board(JOBS), self.random
        name = draw.choice([self.name, self.fresh("worker")])
        queues = ["failing", "expiring"]
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
