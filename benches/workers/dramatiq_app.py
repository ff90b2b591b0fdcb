"""Dramatiq: posts and actor."""

from __future__ import annotations

import sys

import dramatiq
import job
from dramatiq.brokers.redis import RedisBroker

dramatiq.set_broker(RedisBroker(port=job.port()))


@dramatiq.actor(actor_name="nothing")
def nothing() -> None:
    job.nothing()


if __name__ == "__main__":
    for _ in range(int(sys.argv[1])):
        nothing.send()
