"""What a worker does for a job of Django's: it imports the task by its name, calls it, and tells Django."""

from __future__ import annotations

import json
import time
from datetime import datetime, timezone
from traceback import format_exception
from typing import TYPE_CHECKING, Any

from django.db import close_old_connections
from django.utils.module_loading import import_string

from ..board.context import Context
from ..handlers import Handler, Handlers, NoHandler
from ..outcomes import Stopped
from . import results
from .interface import Task, TaskContext, TaskResult, TaskResultStatus, task_finished, task_started

if TYPE_CHECKING:
    from .backend import JobboardBackend


class TaskHandlers(Handlers):
    """A handler for each task that can be imported. A job of another name goes back, as always."""

    def __init__(self, backend: JobboardBackend) -> None:
        super().__init__()
        self.backend = backend

    def find(self, name: str | None, queue: str) -> Handler:
        try:
            task = import_string(name or "")
        except ImportError as error:
            raise NoHandler(f"no task {name!r} can be imported: {error}") from None
        if not isinstance(task, Task):
            raise NoHandler(f"{name!r} is no task of Django")
        return Handler(Performance(self.backend, task).run, queue=queue)

    def queues(self) -> list[str]:
        return sorted(self.backend.queues)  # none: every queue

    def __str__(self) -> str:
        return f"those of Django's {self.backend.alias!r}"

    def __len__(self) -> int:
        return 1


class Performance:
    def __init__(self, backend: JobboardBackend, task: Task) -> None:
        self.backend, self.task = backend, task

    def run(self, context: Context, payload: Any) -> Any:
        close_old_connections()
        try:
            return self._run(context, payload)
        finally:
            close_old_connections()

    def _run(self, context: Context, payload: Any) -> Any:
        found = self._begun(context, payload)
        task_started.send(sender=type(self.backend), task_result=found)
        given = (TaskContext(task_result=found),) if self.task.takes_context else ()
        try:
            value = self.task.call(*given, *payload["args"], **payload["kwargs"])
            json.dumps(value, allow_nan=False)
        except (Stopped, KeyboardInterrupt):
            raise
        except BaseException as error:
            self._failed(context, found, error)
            raise
        self._ended(found, TaskResultStatus.SUCCESSFUL, value)
        return value

    def _begun(self, context: Context, payload: Any) -> TaskResult:
        now = time.time()
        fields = {f"worker-{context.attempt}": context.worker} if context.attempt <= results.NOTED else {}
        started = context.meta.get("started") or str(int(now * 1000))
        context.set_meta(started=started, **fields)
        return TaskResult(
            task=self.task,
            id=context.id,
            status=TaskResultStatus.RUNNING,
            enqueued_at=self.backend.made_at(context.id),
            started_at=results.when(int(started)),
            last_attempted_at=datetime.fromtimestamp(now, timezone.utc),
            finished_at=None,
            args=payload["args"],
            kwargs=payload["kwargs"],
            backend=self.backend.alias,
            errors=results.errors(context.meta),
            worker_ids=[*results.workers(context.meta), context.worker],
        )

    def _failed(self, context: Context, found: TaskResult, error: BaseException) -> None:
        noted = results.noted(error, "".join(format_exception(error)))
        before = len(found.errors)
        if context.attempt <= results.NOTED and not context.must_stop:
            context.set_meta(**{f"error-{context.attempt}": noted})
        found.errors.extend(results.errors({"error-1": noted}))
        retries = self.backend.retries
        if retries >= 0 and before >= retries:
            self._ended(found, TaskResultStatus.FAILED, None)

    def _ended(self, found: TaskResult, status: TaskResultStatus, value: Any) -> None:
        object.__setattr__(found, "status", status)
        object.__setattr__(found, "finished_at", datetime.now(timezone.utc))
        object.__setattr__(found, "_return_value", value)
        task_finished.send(type(self.backend), task_result=found)
