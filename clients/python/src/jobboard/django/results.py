"""The record of a job as a result of Django's, and the fields of META in which runs are noted.

`error-1`, `worker-1` and so on are of the first try: Django's results tell of all of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from ..jobs import Job
from .interface import Task, TaskError, TaskResult, TaskResultStatus

NOTED = 20
"""Tries that are noted: a record has at most 64 fields."""

LONGEST = 3500
"""Bytes of a traceback that are kept, from its end; META values have at most 4,096 by default."""

STATUS = {
    **dict.fromkeys(["ready", "scheduled", "blocked"], TaskResultStatus.READY),
    "claimed": TaskResultStatus.RUNNING,
    "complete": TaskResultStatus.SUCCESSFUL,
    **dict.fromkeys(["failed", "cancelled", "trashed"], TaskResultStatus.FAILED),
}


def is_of_task(job: Job) -> bool:
    """Others may post to the board, too, even under the name of a task."""
    payload = job.payload
    return (
        isinstance(payload, dict)
        and isinstance(payload.get("args"), list)
        and isinstance(payload.get("kwargs"), dict)
    )


def of_job(job: Job, task: Task, alias: str) -> TaskResult:
    meta, payload = job.meta or {}, job.payload
    started = meta.get("started")
    found = TaskResult(
        task=task,
        id=job.id,
        status=STATUS[job.state],
        enqueued_at=when(job.posted),
        started_at=None if started is None else when(int(started)),
        last_attempted_at=when(job.claimed),
        finished_at=when(job.ended),
        args=payload["args"],
        kwargs=payload["kwargs"],
        backend=alias,
        errors=errors(meta),
        worker_ids=workers(meta),
    )
    object.__setattr__(found, "_return_value", job.result)
    return found


def when(ms: int | None) -> datetime | None:
    return None if ms is None else datetime.fromtimestamp(ms / 1000, timezone.utc)


def errors(meta: Mapping[str, str]) -> list[TaskError]:
    noted = [meta[f"error-{number}"] for number in range(1, NOTED + 1) if f"error-{number}" in meta]
    return [TaskError(**json.loads(one)) for one in noted]


def workers(meta: Mapping[str, str]) -> list[str]:
    return [meta[f"worker-{number}"] for number in range(1, NOTED + 1) if f"worker-{number}" in meta]


def noted(error: BaseException, trace: str) -> str:
    """An exception as the text of a field."""
    kind = type(error)
    path = f"{kind.__module__}.{kind.__qualname__}"
    kept: Any = trace.encode()[-LONGEST:].decode(errors="ignore")
    while len(text := json.dumps({"exception_class_path": path, "traceback": kept})) > LONGEST:
        kept = kept[len(kept) // 8 + 1 :]
    return text
