"""RQ: posts and job."""

from __future__ import annotations

import sys

import job
import redis
from rq import Queue


def nothing() -> None:
    job.nothing()


if __name__ == "__main__":
    import rq_app

    queue = Queue("bench", connection=redis.Redis(port=job.port()))
    queue.enqueue_many([Queue.prepare_data(rq_app.nothing, result_ttl=0) for _ in range(int(sys.argv[1]))])
