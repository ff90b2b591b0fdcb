"""Celery: posts and task."""

from __future__ import annotations

import os
import sys

import job
from celery import Celery

app = Celery("celery_app", broker=f"{os.environ['BENCH_BROKER']}://127.0.0.1:{job.port()}")


@app.task(name="nothing", ignore_result=True)
def nothing() -> None:
    job.nothing()


if __name__ == "__main__":
    with app.producer_pool.acquire(block=True) as producer:
        for _ in range(int(sys.argv[1])):
            nothing.apply_async(producer=producer)
