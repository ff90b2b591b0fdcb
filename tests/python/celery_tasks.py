"""An application of Celery, for workers in other processes. $CELERY_URL says where its broker is.

Tasks write what befalls them to the list `told`, in the database of the broker.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from typing import Any

import redis
from celery import Celery
from celery.exceptions import Reject
from jobboard.celery.addresses import of_url

URL = os.environ["CELERY_URL"]

app = Celery("tasks", broker=URL, backend=URL)
app.conf.update(
    broker_connection_retry_on_startup=True,
    worker_prefetch_multiplier=1,
    broker_transport_options=json.loads(os.environ.get("CELERY_OPTIONS", "{}")),
    task_track_started=True,
)


def tell(what: str) -> None:
    redis.Redis.from_url(of_url(URL).url).rpush("told", what)


@app.task
def add(a: int, b: int) -> int:
    return a + b


@app.task
def total(numbers: list[int]) -> int:
    return sum(numbers)


@app.task
def say(what: str) -> None:
    tell(what)


def _work(self: Any, seconds: float | None = None) -> str:
    """Lasts so long, or until the database of the broker has the key `go`."""
    tell(f"began {self.request.id} {os.getppid()} {bool(self.request.delivery_info.get('redelivered'))}")
    client, over = redis.Redis.from_url(of_url(URL).url), seconds is not None
    time.sleep(seconds or 0)
    while not over:
        time.sleep(0.05)
        with contextlib.suppress(redis.RedisError):  # while the server is away
            over = client.exists("go")
    tell(f"ended {self.request.id}")
    return "done"


early = app.task(bind=True, name="early")(_work)
late = app.task(bind=True, acks_late=True, name="late")(_work)


@app.task(bind=True, max_retries=3, default_retry_delay=0.2)
def thrice(self: Any) -> int:
    if self.request.retries < 2:
        raise self.retry()
    return int(self.request.retries)


@app.task
def fails() -> None:
    raise ValueError("no")


@app.task(acks_late=True)
def refuses() -> None:
    raise Reject("bad", requeue=False)
