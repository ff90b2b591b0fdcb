"""The backend that `TASKS` names."""

from __future__ import annotations

import secrets
import time
import uuid
from datetime import datetime, timedelta, timezone
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone as django_timezone
from django.utils.module_loading import import_string

from ..board import Board
from ..board.posting import post_words
from ..connecting import connect
from . import results
from .interface import (
    BaseTaskBackend,
    Task,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_enqueued,
)
from .performing import TaskHandlers

BOARD = "django-tasks"
RETAIN = "1d"
OF_POSTS = ("retries", "backoff", "jitter", "timeout", "lease", "lapses", "expire", "retain")
"""Options that go to each post."""


class JobboardBackend(BaseTaskBackend):
    """Tasks of Django as jobs of a board.

        TASKS = {
            "default": {
                "BACKEND": "jobboard.django.JobboardBackend",
                "QUEUES": ["default", "mails"],
                "OPTIONS": {"url": "redis://db:6379", "board": "shop", "retries": 3},
            }
        }

    Without a url it is that of $JOBBOARD_URL. A task is not tried again unless `retries` says so; results are
    kept for a day (`retain`).
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        own = dict(self.options)
        url, name = own.pop("url", None), own.pop("board", BOARD)
        if unknown := own.keys() - set(OF_POSTS):
            raise ImproperlyConfigured(
                f"TASKS[{alias!r}]: there is no option {unknown.pop()!r}; "
                f"there are url, board, {', '.join(OF_POSTS)}"
            )
        self.post_options: Any = {"retries": 0, "retain": RETAIN, **own}
        try:
            post_words(self.post_options)
            self.board = Board(name, connect(url) if url else None)
        except (TypeError, ValueError) as error:
            raise ImproperlyConfigured(f"TASKS[{alias!r}]: {error}") from error
        self.board.handlers = TaskHandlers(self)

    @property
    def retries(self) -> int:
        return int(self.post_options["retries"])

    def enqueue(self, task: Task, args: Any, kwargs: Any) -> TaskResult:
        self.validate_task(task)
        id, now = made_id(), datetime.now(timezone.utc)
        found = TaskResult(
            task=task,
            id=id,
            status=TaskResultStatus.READY,
            enqueued_at=now,
            started_at=None,
            last_attempted_at=None,
            finished_at=None,
            args=list(args),
            kwargs=kwargs,
            backend=self.alias,
            errors=[],
            worker_ids=[],
        )
        self.board.post(
            {"args": found.args, "kwargs": found.kwargs},
            id=id,
            nx=True,  # redis-py may send it again
            name=task.module_path,
            queue=task.queue_name,
            priority=task.priority,
            delay=None if task.run_after is None else _until(task.run_after, now),
            elsewhere=True,
            **self.post_options,
        )
        task_enqueued.send(type(self), task_result=found)
        return found

    def get_result(self, result_id: str) -> TaskResult:
        job = self.board.get(result_id)
        if job is None or job.name is None:
            raise TaskResultDoesNotExist(result_id)
        try:
            task = import_string(job.name)
        except ImportError as error:
            raise TaskResultDoesNotExist(f"{result_id}: its task cannot be imported: {error}") from error
        if not isinstance(task, Task) or not results.is_of_task(job):
            raise TaskResultDoesNotExist(f"{result_id}: this job was not enqueued as a task of Django's")
        changes: Any = {"priority": job.priority, "queue_name": job.queue, "backend": self.alias}
        return results.of_job(job, task.using(**changes), self.alias)

    def made_at(self, id: str) -> datetime | None:
        """When a task was enqueued, which its id tells."""
        try:
            return results.when(uuid.UUID(id).int >> 80)
        except ValueError:
            return None


def made_id() -> str:
    """A UUIDv7: made here and not by the server, so that a post that is sent again is the same one."""
    ms, random = int(time.time() * 1000), secrets.randbits(74)
    return str(uuid.UUID(int=ms << 80 | 7 << 76 | random >> 62 << 64 | 2 << 62 | random & (1 << 62) - 1))


def _until(time: datetime, now: datetime) -> timedelta | None:
    due = django_timezone.make_aware(time) if time.tzinfo is None else time
    return due - now if due > now else None
