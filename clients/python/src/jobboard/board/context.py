"""What a handler is given beside the payload."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from ..durations import Duration, to_ms
from ..jobs import Job
from ..outcomes import GoHome, Lost, Stopped

if TYPE_CHECKING:
    pass


CURRENT: ContextVar[Context | None] = ContextVar("jobboard.context", default=None)
"""That of the handler which runs in this thread or task."""


class Reports(Protocol):
    """Where a context's reports go: to the worker's sender, or through a pipe to it."""

    def report(self, context: Context, fields: Mapping[str, Any]) -> None: ...

    def flush(self, context: Context, timeout: float | None) -> bool: ...


class Context:
    """One run of a job: what is known of it, and what the handler says while it works.

    Reports (`progress`, `stage`, `log`, `set_meta`, `save`) return at once; the worker sends them in the
    order in which they were made, and before the end of the run. Of what comes faster than it can be sent,
    the newest progress and stage count; log lines are all sent. `flush` waits until the server has answered.

    When the job is lost, cancelled, or the worker has to go, each of these methods raises `Lost`,
    `CancelRequested` or `GoHome`, unless the worker was made with `interrupt="flag"`.
    """

    def __init__(
        self,
        job: Job,
        worker: str,
        board: Any,
        reports: Reports,
        raises: bool = True,
    ) -> None:
        self.job, self.worker = job, worker
        self._board, self._reports, self._raises = board, reports, raises
        self._stop: Stopped | None = None
        self._wake = threading.Event()
        self.going_home = False
        """The worker is about to stop: the handler may finish, or raise `Abandon`."""
        self.cancelled = False
        """Somebody asked to cancel the job."""
        self.lost = False
        """The job is no longer ours."""

    @property
    def id(self) -> str:
        return self.job.id

    @property
    def token(self) -> int:
        """The fencing token: pass it on to what the handler writes to, so that it can refuse late writes."""
        return self.job.token

    @property
    def attempt(self) -> int:
        """1 at the first try."""
        return self.job.attempt

    @property
    def payload(self) -> Any:
        return self.job.payload

    @property
    def meta(self) -> Mapping[str, str]:
        return self.job.meta or {}

    @property
    def board(self) -> Any:
        """The worker's board, to post more jobs, for instance. Verbs of a `Board` block: for `async` handlers
        give the worker an `AsyncBoard`.
        """
        if self._board is None:
            raise RuntimeError(
                "the board's client cannot be made anew in a child process: name the board as 'module:board'"
            )
        return self._board

    def progress(self, percent: float, stage: str | None = None) -> None:
        """Says how far the job is, 0 to 100; a lower number than before is ignored."""
        found = {"progress": min(max(float(percent), 0.0), 100.0)}
        self._report(found if stage is None else {**found, "stage": str(stage)})

    def stage(self, text: str) -> None:
        """Says in words how far the job is."""
        self._report({"stage": str(text)})

    def log(self, text: str) -> None:
        """Adds a line to the job's history."""
        self._report({"log": str(text)})

    def set_meta(self, **fields: Any) -> None:
        """Sets fields of the job's META, as text; others stay."""
        self._report({"meta": {name: str(value) for name, value in fields.items()}})

    def save(self, payload: Any) -> None:
        """Replaces the job's payload, so that the next try can go on from here."""
        self._report({"payload": self.job._codec.encode(payload)})

    def flush(self, timeout: Duration | None = None) -> bool:
        """Waits until the server has taken all reports; False when it has not within `timeout`."""
        self.check()
        seconds = None if timeout is None else to_ms(timeout, "timeout") / 1000
        done = self._reports.flush(self, seconds)
        self.check()
        return done

    def check(self) -> None:
        """Raises when the handler has to stop. Costs nothing: call it between any two steps."""
        if self._raises and self._stop is not None:
            raise self._stop.with_traceback(None)

    def sleep(self, duration: Duration) -> None:
        """Waits so long, or until the handler has to stop. Not for `async` handlers: they have
        asyncio.sleep.
        """
        deadline = time.monotonic() + to_ms(duration) / 1000
        while not self.must_stop:
            left = deadline - time.monotonic()
            if left <= 0 or not self._wake.wait(left):
                break
        self.check()

    @property
    def must_stop(self) -> bool:
        """The job is lost or cancelled, or the worker has to go now."""
        return self._stop is not None

    def _report(self, fields: Mapping[str, Any]) -> None:
        self.check()
        if not self.lost:
            self._reports.report(self, fields)

    def _stopped_by(self, reason: Stopped) -> None:
        """Told by the worker. What came first counts, but for a loss, which is final."""
        if isinstance(reason, Lost):
            self.lost = True
        elif not isinstance(reason, GoHome):
            self.cancelled = True
        if self._stop is None or self.lost:
            self._stop = reason
        self._wake.set()
