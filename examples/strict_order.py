"""Strict order per key: the events of one account one after the other, those of many accounts side by side.

    python examples/strict_order.py [--port 6379]

Each account is a GROUP, and the setting `ordered` for all groups hands out the next job of a group only when
the one before has ended, also while that waits for its retry. Four workers handle the events of ten accounts;
every seventh try fails and is made again. What each account has seen is in the order of the posts.
"""

from __future__ import annotations

import argparse
import os
import threading

import redis

BOARD = "ledger"
ACCOUNTS, EVENTS = 10, 12


def work(url: str, name: str, seen: list[tuple[str, int]], tries: list[str]) -> None:
    client = redis.Redis.from_url(url, protocol=3, decode_responses=True)
    fields = ["FIELDS", 4, "id", "token", "group", "payload"]
    while len(seen) < ACCOUNTS * EVENTS:
        claimed = client.execute_command("JOB.CLAIM", BOARD, name, *fields, "BLOCK", 1000)
        if not claimed:
            continue
        [job] = claimed
        tries.append(job["id"])
        if len(tries) % 7 == 0:
            client.execute_command(
                "JOB.FAIL", BOARD, name, job["id"], "flaky", "try again", "TOKEN", job["token"]
            )
            continue
        seen.append((job["group"], int(job["payload"])))
        client.execute_command("JOB.CONSUME", BOARD, name, job["id"], "TOKEN", job["token"])


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
    client = redis.Redis.from_url(url)
    client.delete(BOARD)
    client.execute_command("JOB.SETTINGS", "SET", BOARD, "QUEUE", "default", "GROUP", "*", "ordered", 1)
    for event in range(EVENTS):
        for account in range(ACCOUNTS):
            client.execute_command(
                *("JOB.POST", BOARD, event, "GROUP", f"account-{account}", "BACKOFF", "FIXED", 20)
            )

    seen: list[tuple[str, int]] = []
    tries: list[str] = []
    workers = [threading.Thread(target=work, args=(url, f"worker-{n}", seen, tries)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    accounts = {account for account, _ in seen}
    right = sum([n for one, n in seen if one == account] == list(range(EVENTS)) for account in accounts)
    print(f"{len(tries)} tries for {ACCOUNTS * EVENTS} events")
    print(f"accounts that saw their events in order: {right} of {ACCOUNTS}")


if __name__ == "__main__":
    main()
