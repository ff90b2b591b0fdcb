"""A pipeline: one job that goes through three queues under one id, each with workers of its own.

    python examples/pipeline.py [--port 6379]

It posts a few photos and runs a worker for each queue, as three programs would. Each task returns the call of
the next one. Retries begin anew in each queue.
"""

from __future__ import annotations

import argparse
import threading

from jobboard import Board, Next, Worker

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("--port", type=int, help="of a server on this machine (default: $JOBBOARD_URL, or 6379)")
port = parser.parse_args().port
board = Board("photos", None if port is None else f"redis://127.0.0.1:{port}")


@board.task()
def fetch(url: str) -> Next:
    return shrink.next(url, size=len(url) * 1000)


@board.task(queue="images")
def shrink(url: str, size: int) -> Next:
    return publish.next(url, size // 10)


@board.task(queue="web")
def publish(url: str, size: int) -> str:
    return f"{url} published with {size} bytes"


def main() -> None:
    board.settings_set({"concurrency": 1}, queue="images")  # one photo at a time
    ids = fetch.post_many({"url": f"{name}.png"} for name in ("cat", "dog", "tiger"))
    workers = [Worker(board, queues=[queue], concurrency=2) for queue in ("default", "images", "web")]
    threads = [threading.Thread(target=worker.run) for worker in workers]
    for thread in threads:
        thread.start()
    for id in ids:
        print(board.result(id, timeout="30s"))
    for worker in workers:
        worker.stop()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
