"""Settings and tasks of a site of Django, for processes of their own. $JOBBOARD_URL: where the server is."""

from __future__ import annotations

import os
import time
from typing import Any

import redis

try:
    from django.tasks import TaskContext, task  # type: ignore[import-not-found,unused-ignore]

    OWN = []
except ImportError:
    from django_tasks import TaskContext, task

    OWN = ["django_tasks"]

SECRET_KEY = "of tests"
USE_TZ = True
INSTALLED_APPS = [*OWN, "jobboard.django"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
TASKS = {
    "default": {
        "BACKEND": "jobboard.django.JobboardBackend",
        "QUEUES": ["default", "mails"],
        "OPTIONS": {"board": "site"},
    },
    "stubborn": {
        "BACKEND": "jobboard.django.JobboardBackend",
        "OPTIONS": {"board": "site", "retries": 2, "backoff": "0s"},
    },
}
LOGGING = {"version": 1, "disable_existing_loggers": False}


def tell(what: Any) -> None:
    redis.Redis.from_url(os.environ["JOBBOARD_URL"]).rpush("told", str(what))


@task
def add(a: int, b: int) -> int:
    return a + b


@task(takes_context=True, queue_name="mails")
def mail(context: TaskContext, to: str) -> dict[str, Any]:
    found = context.task_result
    tell(f"{found.status} {context.attempt} {found.args} {found.kwargs} {len(found.worker_ids)}")
    return {"to": to, "at": found.enqueued_at.year}


@task
async def later(what: str) -> None:
    tell(what)


@task
def fails() -> None:
    raise KeyError("nothing")


@task(backend="stubborn")
def third_time() -> str:
    tell("try")
    if redis.Redis.from_url(os.environ["JOBBOARD_URL"]).llen("told") < 3:
        raise ValueError("again")
    return "done"


@task
def slow(seconds: float) -> None:
    tell("began")
    time.sleep(seconds)
    tell("ended")


@task
def unserializable() -> object:
    return object()
