"""Sentry: what handlers raise, with the job that they did.

    sentry_sdk.init(…)
    board = Board("mails", client, hook=Reporting())

Needs the extra `sentry`. With both, `hook=Hooks(Tracing(), Reporting())`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

try:
    import sentry_sdk
except ImportError as error:
    raise ImportError("pip install 'jobboard[sentry]'") from error

from .board.context import Context
from .board.hooks import Hook
from .outcomes import Abandon, Retry, Stopped, Trash


class Reporting(Hook):
    """Reports the exceptions of handlers, but not what only says what becomes of the job: `Retry`, `Abandon`,
    `Trash`, a cancel. Each job has a scope of its own, with name, queue and attempt as tags, and the payload
    when `payloads` allows it. Child processes have to call `sentry_sdk.init` themselves: put it into the
    module of the board.
    """

    def __init__(self, *, payloads: bool = False) -> None:
        self.payloads = payloads

    @contextmanager
    def running(self, context: Context) -> Iterator[None]:
        job = context.job
        with sentry_sdk.isolation_scope() as scope:
            scope.set_transaction_name(job.name or job.queue, source="task")
            for name, value in (("name", job.name), ("queue", job.queue), ("attempt", job.attempt)):
                scope.set_tag(f"jobboard.{name}", value)
            about = {"id": job.id, "name": job.name, "queue": job.queue, "attempt": job.attempt}
            if self.payloads:
                about["payload"] = job.payload
            scope.set_context("job", {**about, "worker": context.worker})
            try:
                yield
            except (Stopped, Abandon, Retry, Trash):
                raise
            except Exception as error:
                sentry_sdk.capture_exception(error)
                raise
