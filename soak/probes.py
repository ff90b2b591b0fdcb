"""Who measures: a sort of call, over and over, noted in a file as `<what> <when> <microseconds>`."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from client import PROBE, Client

BLOCK = 25_000


class Probe(Client):
    """Any of them: its method named in `churn.PLAYERS` is one turn."""

    folder: Path

    def note(self, what: str, act: Callable[[], Any]) -> Any:
        begin = time.perf_counter()
        got = act()
        self.write(what, (time.perf_counter() - begin) * 1e6)
        return got

    def write(self, what: str, microseconds: float) -> None:
        if "file" not in vars(self):
            self.file = (self.folder / self.name).open("w", buffering=1)
        self.file.write(f"{what} {time.monotonic():.3f} {microseconds:.0f}\n")

    def ping(self) -> None:
        self.note("PING", self.client.ping)
        time.sleep(0.01)

    def verbs(self) -> None:
        """The whole life of a plain job."""
        board = self.board(PROBE)
        self.note("JOB.POST", lambda: board.post("x" * 100, queue="verbs"))
        [job] = self.note("JOB.CLAIM", lambda: board.claim("probe", queues=["verbs"]))
        self.note("JOB.CONSUME", lambda: board.consume("probe", job["id"], token=job["token"]))
        time.sleep(0.05)

    def due(self) -> None:
        """How late a blocked claim has a job that was due at a time."""
        board = self.board(PROBE)
        at = int(time.time() * 1000) + self.random.randrange(50, 300)
        board.post("x", queue="due", at=at)
        [job] = board.claim("due", queues=["due"], block=BLOCK)
        self.write("due job", (time.time() * 1000 - at) * 1000)
        board.consume("due", job["id"], token=job["token"])

    def lapses(self) -> None:
        """How late a blocked claim has a job whose lease has ended."""
        board = self.board(PROBE)
        board.post("x", queue="lapses", lapses=-1)
        lease = self.random.randrange(50, 300)
        [job] = board.claim("forgets", queues=["lapses"], lease=lease)
        [again] = board.claim("lapses", queues=["lapses"], block=BLOCK)
        self.write("ended lease", (time.time() * 1000 - job["deadline"]) * 1000)
        board.consume("lapses", again["id"], token=again["token"])

    def schedule(self) -> None:
        """How late a blocked claim has the child of a schedule, and whether its times stay in step."""
        board = self.board(PROBE)
        [job] = board.claim("schedule", queues=["schedule"], block=BLOCK, fields=["id", "token", "intended"])
        self.write("schedule", (time.time() * 1000 - job["intended"]) * 1000)
        number = int(job["id"].rpartition("@")[2])
        step = job["intended"] - number * EVERY
        self.step = vars(self).get("step", step)
        self.counts["children of the schedule", PROBE] += 1
        self.counts["children out of step", PROBE] += step != self.step or (
            number != self.counts["children of the schedule", PROBE]
        )
        board.consume("schedule", job["id"], token=job["token"])


EVERY = 250
"""ms from one time of the measured schedule to the next."""
