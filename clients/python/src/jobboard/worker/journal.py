"""What the worker's log tells of each job: that it began, how it ended, how long it took, what comes next."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from datetime import datetime, timezone
from typing import Any

from ..board.answers import failure
from ..durations import to_ms
from ..outcomes import CANCELLED, Complete, Fail, GiveBack, Next, Outcome, PutAside, Unhandled, shortened
from ..replies import text
from .run import Run
from .traces import SHOWN_TEXT, shown

log = logging.getLogger("jobboard.worker")
SHOWN = 5
"""Jobs that are named where there may be many."""


def began(run: Run) -> None:
    if log.isEnabledFor(logging.DEBUG):
        log.debug(
            "%s began (queue %s, attempt %d)", who(run), *_place(run), extra=_fields(run, outcome="began")
        )


def ended(run: Run, outcome: Outcome, reply: Any) -> None:
    """Told when the server has taken the end, and has answered what becomes of the job."""
    if isinstance(outcome, Complete):
        if log.isEnabledFor(logging.INFO):
            _tell(logging.INFO, run, "done", "complete")
    elif isinstance(outcome, Next):
        queue, name = text(outcome.queue), outcome.name and text(outcome.name)
        said = f"goes on in the queue {queue}{f' as {name}' if name else ''}"
        _tell(logging.INFO, run, said, "next", next_queue=queue, next_name=name)
    elif isinstance(outcome, Fail):
        _failed(run, outcome, reply)
    elif isinstance(outcome, PutAside):
        _tell(logging.WARNING, run, "put aside", "trashed", outcome.reason)
    elif isinstance(outcome, GiveBack):
        _given_back(run, outcome)


def lost(run: Run, why: str) -> None:
    """What the handler did was for nothing."""
    _tell(logging.WARNING, run, "lost", "lost", why)


def waits(run: Run, why: str) -> None:
    """It was given up until signals arrive, or its children have ended."""
    _tell(logging.INFO, run, why.removeprefix("the job "), "waits")


def who(run: Run) -> str:
    return f"{run.job.name or 'job'} {run.id}"


def some(runs: Iterable[Run]) -> str:
    """Which they are, and since when they run: the oldest first."""
    now = time.monotonic()
    oldest = sorted(runs, key=lambda run: run.began or now)
    shown = [f"{who(run)} ({now - (run.began or now):.1f} s)" for run in oldest[:SHOWN]]
    more = len(oldest) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _failed(run: Run, outcome: Fail, reply: Any) -> None:
    found = failure(reply)
    message = shortened(outcome.message, SHOWN_TEXT).decode()
    why = f"{outcome.kind}: {message}"
    if found.state == "cancelled":
        _tell(logging.INFO, run, "cancelled", "cancelled", why)
        return
    error = None if outcome.error is None else shown(outcome.error)
    more = {"kind": outcome.kind, "detail": message, "left": found.left, "error": error}
    if found.dead is not None:
        why += f"; it is in the dead queue {found.dead}"
        _tell(logging.ERROR, run, "failed for good", "dead", why, dead=found.dead, **more)
        return
    if found.state == "failed":
        _tell(logging.ERROR, run, "failed for good", "failed", why, **more)
        return
    due = datetime.fromtimestamp((found.due or time.time() * 1000) / 1000, timezone.utc)
    left = "any number of retries" if found.left < 0 else counted(found.left, "retry", "retries")
    at = due.astimezone().isoformat(sep=" ", timespec="seconds")
    why += f"; next try at {at}, {left} left"
    _tell(logging.WARNING, run, "failed", "retry", why, due=due.isoformat(timespec="milliseconds"), **more)


def _given_back(run: Run, outcome: GiveBack) -> None:
    if run.context.cancelled or outcome.reason == CANCELLED:
        _tell(logging.INFO, run, "cancelled", "cancelled")
        return
    # Jobs without a handler are told of once for each name, by UnhandledJobs.
    level = logging.DEBUG if isinstance(outcome, Unhandled) else logging.INFO
    after = "" if outcome.delay is None else f"; ready again after {to_ms(outcome.delay) / 1000:.1f} s"
    _tell(level, run, "given back", "abandoned", (outcome.reason or "no reason given") + after)


def _tell(
    level: int, run: Run, said: str, outcome: str, why: str = "", error: Any = None, **more: Any
) -> None:
    took = "" if run.began is None else f" in {run.took:.3f} s"
    log.log(
        level,
        "%s %s%s (queue %s, attempt %d)%s",
        *(who(run), said, took, *_place(run), f": {why}" if why else ""),
        exc_info=error,
        extra=_fields(run, outcome=outcome, duration=round(run.took, 6), **more),
    )


def _place(run: Run) -> tuple[str, int]:
    return run.job.queue, run.job.attempt


def _fields(run: Run, **more: Any) -> dict[str, Any]:
    """What a record of the log has beside its text."""
    queue, attempt = _place(run)
    own = {"board": run.requests.key, "job_id": run.id, "job_name": run.job.name, "queue": queue}
    return {**own, "attempt": attempt, "worker": run.context.worker, **more}
