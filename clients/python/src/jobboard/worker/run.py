"""One claim in a worker's hands."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..board import Requests
from ..board.context import Context
from ..jobs import Job

if TYPE_CHECKING:
    from .sender import Sender
    from .storing import Writing


class Run:
    """A claim, from the moment it is in our hands until the server has taken its end.

    It takes its context's reports. `made` and `answered` count them, so that a handler can wait.
    """

    __slots__ = (
        *("requests", "job", "id", "token", "context", "sender"),
        *("began", "took", "ended", "made", "answered", "interrupt", "told", "warned"),
        *("writing", "written", "writes", "returned", "lease", "is_known", "since"),
    )

    def __init__(self, requests: Requests, job: Job, sender: Sender) -> None:
        self.requests, self.job, self.sender = requests, job, sender
        self.id, self.token = job.id, job.token
        self.context: Context
        self.lease: int
        """How long it stays ours without a heartbeat, ms."""
        self.is_known = True
        """Whether that is the lease which the server gave it; else it is a guess, and a short one."""
        self.since = time.monotonic()
        """When it came."""
        self.began: float | None = None
        """When its handler was called, by the monotonic clock, and how long it took, s."""
        self.took = 0.0
        self.ended = False
        """Its outcome is known, and waits to be sent."""
        self.made = self.answered = 0
        self.writing: Writing | None = None
        """The chunk of output that may still grow."""
        self.written, self.writes = 0, True
        """How many chunks have a number, and whether the server takes them."""
        self.returned = False
        """It may be a claim that we have had before, and have written chunks for."""
        self.told: float | None = None
        """When the worker was asked to stop, by the monotonic clock."""
        self.warned = False
        """The log has told that it does not stop."""
        self.interrupt: Callable[[], None] | None = None
        """How its handler is stopped, while it runs; beside the context's flags."""

    @property
    def key(self) -> tuple[str, int]:
        return self.requests.key, self.token

    def words(self, verb: str, head: list[Any], options: list[Any]) -> list[Any]:
        """A worker's verb for this claim: its token is always passed."""
        worker = self.context.worker
        return [verb, self.requests.key, worker, *head, "TOKEN", self.token, *options]

    def numbered(self, fields: Mapping[str, Any]) -> None:
        """Gives a number to the chunk of output in a report, unless it has one."""
        chunk = fields.get("output")
        if chunk is not None and not chunk.number:
            self.written += 1
            chunk.number, self.writing = self.written, None

    def report(self, context: Context, fields: Mapping[str, Any]) -> None:
        self.sender.report(self, fields)

    def store(self, context: Context, name: str, data: bytes, replace: bool) -> bytes | None:
        return self.sender.store(self, name, data, replace)

    def confirm(self, context: Context, patient: bool) -> None:
        self.sender.confirm(self, patient)

    def wait(self, context: Context, words: list[Any]) -> dict[bytes, Any]:
        return self.sender.wait(self, words)

    def flush(self, context: Context, timeout: float | None) -> bool:
        return self.sender.flush_reports(self, timeout)
