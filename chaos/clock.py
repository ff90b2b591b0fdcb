"""Steps of the machine's clock, as the server sees it; its timer is its own."""

from __future__ import annotations

import time

from harness import Board, Server, WallClock, wait_until

SOON = 200
"""Ms after which the things that are watched over a step are due."""


class Steps:
    """Steps the wall clock of a server, and sees that what is due happens all the same.

    `jumps` are the moments at which the clock of boards may have gone ahead of time: what a lease promises
    ends there. `backs` are those at which it may have gone back: what was posted before need not come before
    what is posted after. That is at a restart alone, when it begins by the machine's.
    """

    def __init__(self) -> None:
        self.wall = WallClock()
        self.jumps: list[float] = []
        self.backs: list[float] = []
        self.wrong: list[str] = []
        self._count = 0

    def step(self, server: Server, seconds: float) -> None:
        """A step, back when negative, with things that are due soon on both sides of it."""
        with server.connect(socket_timeout=20) as client:
            self._count += 1
            board = Board(client, f"steps-{self._count}")
            board.post(delay=600_000, queue="far")
            self._begin(board, "before")
            self._note(seconds)
            self.wall.step(seconds)
            wait_until(lambda: self.wall.seen_by(client), 20, what="the server sees the step")
            self._note(seconds)
            self._begin(board, "after")
            for name in ("before", "after"):
                try:
                    wait_until(lambda n=name: self._is_done(board, n), 20, what=name)
                except AssertionError:
                    self.wrong.append(f"a step of {seconds} s stopped what was due soon, begun {name} it")
            client.delete(board.key)

    def _note(self, seconds: float) -> None:
        if seconds > 0:
            self.jumps.append(time.monotonic())

    def _begin(self, board: Board, name: str) -> None:
        board.post(id=f"{name}-delayed", delay=SOON, queue="later")
        board.post(id=f"{name}-leased", queue=name, lapses=-1)
        board.claim("w", queues=[name], lease=SOON)
        board.client.execute_command(
            "JOB.SCHEDULE", "SET", board.key, name, "x", "EVERY", SOON, "QUEUE", "fired"
        )

    def _is_done(self, board: Board, name: str) -> bool:
        if board.state(f"{name}-delayed") != "ready" or board.state(f"{name}-leased") != "ready":
            return False
        return board.client.execute_command("JOB.SCHEDULE", "GET", board.key, name)["fired"] > 1

    def restarts(self) -> None:
        """The server starts, and the clock of boards with it, by the machine's time."""
        self.backs.append(time.monotonic())

    def close(self) -> None:
        self.wall.close()
