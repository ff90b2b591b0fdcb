"""Many tenants, one queue: who posts a million jobs does not hold up who posts one.

    python examples/tenants.py [--port 6379]

Each tenant is a GROUP of the queue. Claims go round the groups that have work, by weight. `big` posts 1,000
jobs, then `small` posts one and `gold`, whose weight is 3, posts 30. The order in which one worker gets them
is printed.
"""

from __future__ import annotations

import argparse
import os

import redis

BOARD = "tenants"


def url_of(port: int | None) -> str:
    """That of the server at this port, or else $JOBBOARD_URL."""
    default = os.environ.get("JOBBOARD_URL") or "redis://127.0.0.1:6379"
    return default if port is None else f"redis://127.0.0.1:{port}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--port", type=int, help="of a server on this machine (default: $JOBBOARD_URL, or 6379)"
    )
    client = redis.Redis.from_url(url_of(parser.parse_args().port), protocol=3, decode_responses=True)
    job = client.execute_command
    client.delete(BOARD)
    job("JOB.SETTINGS", "SET", BOARD, "QUEUE", "mails", "GROUP", "gold", "weight", 3)
    for tenant, count in [("big", 1000), ("small", 1), ("gold", 30)]:
        job("JOB.MPOST", BOARD, count, *range(count), "QUEUE", "mails", "GROUP", tenant)

    order = []
    for _ in range(40):
        [claimed] = job("JOB.CLAIM", BOARD, "worker", "QUEUES", 1, "mails", "FIELDS", 2, "id", "group")
        order.append(claimed["group"])
        job("JOB.CONSUME", BOARD, "worker", claimed["id"])
    print("order:", *order)
    print(f"small had to wait for {order.index('small')} jobs of others, not for 1,000")
    waiting = job("JOB.GROUPS", BOARD, "QUEUE", "mails")[1]
    print("waiting:", *(f"{group['group']} {group['ready']}" for group in waiting))


if __name__ == "__main__":
    main()
