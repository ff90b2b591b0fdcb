"""Calls of a rate-limited API: at most 20 a second and 2,000 tokens a second, and none when it says 429.

    python examples/rate_limited_api.py [--port 6379]

The queue names two shared limits: `calls` counts requests, `tokens` what the answers cost. A job is posted
with an estimate of its tokens, and its worker says with COSTS how many it were: the server takes or returns
the difference. A worker that waits in BLOCK is woken at the moment the next permit arrives: nobody polls,
nobody sleeps. When the API answers 429 with Retry-After, the worker gives the job back, at no cost, and its
PAUSE stops all calls for that long.
"""

from __future__ import annotations

import argparse
import os
import random
import threading

import redis

BOARD, QUEUE = "calls", "api"
CALLS, RATE, PERIOD, BURST = 30, 20, 1000, 5
TOKENS, ESTIMATE = 2000, 40
RETRY_AFTER = 500


class Api:
    """A stand-in for the real one: it notes when each call was claimed, and once it answers 429."""

    def __init__(self) -> None:
        self.calls: list[int] = []
        """Unix milliseconds of the server."""
        self.refused = 0
        self.tokens = 0
        self.answered = 0
        self.lock = threading.Lock()

    def call(self, claimed: int) -> tuple[int, int]:
        """An HTTP status, and how many tokens the answer has cost."""
        with self.lock:
            self.calls.append(claimed)
            if len(self.calls) == 15:
                self.refused = claimed
                return 429, 0
            tokens = random.randrange(2 * ESTIMATE)
            self.tokens += tokens
            self.answered += 1
            return 200, tokens


def work(url: str, name: str, api: Api) -> None:
    client = redis.Redis.from_url(url, protocol=3, decode_responses=True)
    options = ("QUEUES", 1, QUEUE, "FIELDS", 3, "id", "token", "claimed", "BLOCK", 1000)
    while api.answered < CALLS:
        found = client.execute_command("JOB.CLAIM", BOARD, name, *options)
        if not found:
            continue
        id_, token, claimed = (found[0][field] for field in ("id", "token", "claimed"))
        status, tokens = api.call(claimed)
        words = (BOARD, name, id_, "TOKEN", token, "COSTS", 1, "tokens", tokens)
        if status == 429:
            client.execute_command("JOB.ABANDON", *words, "PAUSE", "calls", RETRY_AFTER)
        else:
            client.execute_command("JOB.CONSUME", *words)


def most_within(times: list[int], ms: int) -> int:
    """The greatest number of calls in any window of that length."""
    return max(sum(start <= at < start + ms for at in times) for start in times)


def url_of(port: int | None) -> str:
    """That of the server at this port, or else $JOBBOARD_URL."""
    default = os.environ.get("JOBBOARD_URL") or "redis://127.0.0.1:6379"
    return default if port is None else f"redis://127.0.0.1:{port}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--port", type=int, help="of a server on this machine (default: $JOBBOARD_URL, or 6379)"
    )
    url = url_of(parser.parse_args().port)
    client = redis.Redis.from_url(url, protocol=3, decode_responses=True)
    client.delete(BOARD)
    for limit, rate, burst in (("calls", RATE, BURST), ("tokens", TOKENS, TOKENS)):
        pace = ["rate", rate, "rate-period", PERIOD, "burst", burst]
        client.execute_command("JOB.SETTINGS", "SET", BOARD, "LIMIT", limit, *pace)
    client.execute_command("JOB.SETTINGS", "SET", BOARD, "QUEUE", QUEUE, "limits", 2, "calls", "tokens")
    words = ("QUEUE", QUEUE, "COSTS", 1, "tokens", ESTIMATE)
    client.execute_command("JOB.MPOST", BOARD, CALLS, *range(CALLS), *words)

    api = Api()
    workers = [threading.Thread(target=work, args=(url, f"worker-{n}", api)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    # Calls that were under way end; then there are none until the pause is over.
    after = sorted(at for at in api.calls if at >= api.refused)
    silence = max(later - at for at, later in zip(after, after[1:]))
    print(f"calls: {len(api.calls)}, one of them answered 429")
    print(f"most in any second: {most_within(api.calls, 1000)}, allowed: {RATE + BURST}")
    counted = client.execute_command("JOB.STATS", BOARD)["costs"]["tokens"]
    print(f"tokens: {CALLS * ESTIMATE} estimated, {api.tokens} used, {counted} counted")
    print(f"silence after the 429: {silence} ms, asked for: {RETRY_AFTER}")


if __name__ == "__main__":
    main()
