"""A worker with the real client of one peer: `python work.py <peer> <port>`, until it is killed."""

from __future__ import annotations

import logging
import socket
import sys


def jobboard(port: int) -> None:
    import redis

    client = redis.Redis(port=port)
    [job] = client.execute_command("JOB.CLAIM", "bench", "w", "BLOCK", 0)
    while True:
        job = dict(zip(job[::2], job[1::2])) if isinstance(job, list) else job
        command = ("JOB.CONSUME", "bench", "w", job[b"id"], "TOKEN", job[b"token"], "CLAIM", "BLOCK", 0)
        job = taken(client.execute_command(*command))


def taken(reply: list) -> list:
    """The job that a chained claim brings."""
    while not (isinstance(reply, dict) or b"id" in reply[::2]):
        reply = reply[-1]
    return reply


def streams(port: int) -> None:
    import os

    import redis

    client, name = redis.Redis(port=port), f"c{os.getpid()}"
    while True:
        reply = client.xreadgroup("g", name, {"bench": ">"}, count=1, block=0)
        [[_, [[id, _]]]] = reply.items() if isinstance(reply, dict) else reply
        pipe = client.pipeline(transaction=False)
        pipe.xack("bench", "g", id)
        pipe.xdel("bench", id)
        pipe.execute()


def lists(port: int) -> None:
    import redis
    from redis_work_queue import KeyPrefix, WorkQueue

    client, queue = redis.Redis(port=port), WorkQueue(KeyPrefix("bench"))
    while True:
        queue.complete(client, queue.lease(client, 60))


def qless(port: int) -> None:
    import pkgutil
    import time

    import qless
    from peers.qless import MENDED

    client = qless.Client(f"redis://127.0.0.1:{port}", hostname=f"w{time.time()}")
    client._lua = client.redis.register_script(MENDED + pkgutil.get_data("qless", "qless-core/qless.lua"))
    queue = client.queues["bench"]
    while True:
        job = queue.pop()
        if job:
            job.complete()
        else:
            time.sleep(0.01)


def taskflow(port: int) -> None:
    """Takes the oldest unclaimed of the listing, which it reads for each."""
    import random

    from taskflow import exceptions
    from taskflow.jobs.backends import impl_redis

    board = impl_redis.RedisJobBoard("bench", {"host": "127.0.0.1", "port": port, "namespace": "taskflow"})
    board.connect()
    who = f"w{random.random()}"
    while True:
        for job in board.iterjobs(only_unclaimed=True, ensure_fresh=True):
            try:
                board.claim(job, who, expiry=60)
                board.consume(job, who)
            except (exceptions.UnclaimableJob, exceptions.NotFound, exceptions.JobFailure):
                continue


def rq(port: int) -> None:
    import redis
    from rq import Queue, SimpleWorker

    client = redis.Redis(port=port)
    SimpleWorker([Queue("bench", connection=client)], connection=client).work(logging_level="ERROR")


def beanstalkd(port: int) -> None:
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    replies = connection.makefile("rb")
    while True:
        connection.sendall(b"reserve\r\n")
        _, id, size = replies.readline().split()
        replies.read(int(size) + 2)
        connection.sendall(b"delete %b\r\n" % id)
        replies.readline()


if __name__ == "__main__":
    from pathlib import Path

    sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "python"))
    logging.disable(logging.ERROR)
    {one.__name__: one for one in (jobboard, streams, lists, qless, taskflow, rq, beanstalkd)}[sys.argv[1]](
        int(sys.argv[2])
    )
