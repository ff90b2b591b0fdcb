"""A pipeline: one job that goes through three queues under one id, each with workers of its own.

    python examples/steps.py --port 6379

It posts a few photos and runs a worker for each queue, as three programs would. Each handler says with `Next`
in which queue the job goes on, and by which name the next handler knows it. Retries begin anew at each step.
"""

from __future__ import annotations

import argparse
import threading
from typing import Any

import redis
from jobboard import Board, Next, Worker

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("--port", type=int, default=6379)
board = Board("photos", redis.Redis(port=parser.parse_args().port))


@board.handler("fetch")
def fetch(context: Any, payload: dict[str, Any]) -> Next:
    return Next("images", {**payload, "bytes": len(payload["url"]) * 1000}, name="shrink")


@board.handler("shrink")
def shrink(context: Any, payload: dict[str, Any]) -> Next:
    return Next("web", {**payload, "bytes": payload["bytes"] // 10}, name="publish")


@board.handler("publish")
def publish(context: Any, payload: dict[str, Any]) -> str:
    return f"{payload['url']} published with {payload['bytes']} bytes"


def main() -> None:
    board.settings_set({"concurrency": 1}, queue="images")  # one photo at a time
    ids = board.post_many([{"url": f"{name}.png"} for name in ("cat", "dog", "tiger")], name="fetch")
    workers = [Worker(board, queues=[queue], concurrency=2) for queue in ("default", "images", "web")]
    threads = [threading.Thread(target=worker.run) for worker in workers]
    for thread in threads:
        thread.start()
    for id in ids:
        print(board.result(id, within="30s"))
    for worker in workers:
        worker.stop()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
