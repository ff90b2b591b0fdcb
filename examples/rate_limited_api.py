"""Calls of a rate-limited API: at most 20 a second, by however many workers, and none when it says 429.

    python examples/rate_limited_api.py --port 6379

The queue has a rate: `rate` jobs in each `rate-period` ms, and `burst` at once after a rest. A worker that
waits in BLOCK is woken at the moment the next permit arrives: nobody polls, nobody sleeps. When the API
answers 429 with Retry-After, the worker pauses the queue for that long and gives the job back, at no cost.
"""

from __future__ import annotations

import argparse
import threading
import time

import redis

BOARD, QUEUE = "calls", "api"
CALLS, RATE, PERIOD, BURST = 30, 20, 1000, 5
RETRY_AFTER = 500


class Api:
    """A stand-in for the real one: it notes when it is called, and once it answers 429."""

    def __init__(self) -> None:
        self.calls: list[float] = []
        self.refused = 0.0
        self.lock = threading.Lock()

    def call(self) -> int:
        """An HTTP status."""
        with self.lock:
            self.calls.append(time.monotonic())
            if len(self.calls) == 15:
                self.refused = self.calls[-1]
                return 429
            return 200


def work(port: int, name: str, api: Api) -> None:
    client = redis.Redis(port=port, protocol=3, decode_responses=True)
    while claimed := client.execute_command("JOB.CLAIM", BOARD, name, "QUEUES", 1, QUEUE, "BLOCK", 2000):
        id_, token = claimed[0]["id"], claimed[0]["token"]
        if api.call() == 429:
            client.execute_command("JOB.PAUSE", BOARD, "QUEUE", QUEUE, "FOR", RETRY_AFTER)
            client.execute_command("JOB.ABANDON", BOARD, name, id_, "TOKEN", token)
        else:
            client.execute_command("JOB.CONSUME", BOARD, name, id_, "TOKEN", token)


def most_within(times: list[float], seconds: float) -> int:
    """The greatest number of calls in any window of that length."""
    return max(sum(start <= at < start + seconds for at in times) for start in times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=6379)
    port = parser.parse_args().port
    client = redis.Redis(port=port)
    client.delete(BOARD)
    pace = ["rate", RATE, "rate-period", PERIOD, "burst", BURST]
    client.execute_command("JOB.SETTINGS", "SET", BOARD, "QUEUE", QUEUE, *pace)
    client.execute_command("JOB.MPOST", BOARD, CALLS, *range(CALLS), "QUEUE", QUEUE)

    api = Api()
    workers = [threading.Thread(target=work, args=(port, f"worker-{n}", api)) for n in range(4)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    # Calls that were under way end; then there are none until the pause is over.
    after = [at for at in api.calls if at >= api.refused]
    silence = max(later - at for at, later in zip(after, after[1:]))
    print(f"calls: {len(api.calls)}, one of them answered 429")
    print(f"most in any second: {most_within(api.calls, 1.0)}, allowed: {RATE + BURST}")
    print(f"silence after the 429: {silence * 1000:.0f} ms, asked for: {RETRY_AFTER}")


if __name__ == "__main__":
    main()
