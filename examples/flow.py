"""Fan-out and fan-in: split a text, count the words of its parts side by side, add the counts up.

    python examples/flow.py [--port 6379]

One JOB.FLOW posts the whole graph, all or nothing: `split`, the parts AFTER it, and `sum` AFTER all parts.
They are its children too: it reads their results with its own record. A part that fails for good cancels it.
"""

from __future__ import annotations

import argparse
import os

import redis

BOARD = "words"
TEXT = ["the quick brown fox", "jumps over", "the lazy dog again and again"]


def handle(client: redis.Redis, job: dict[str, str]) -> str:
    """The result of a job."""
    if job["name"] == "count":
        return str(len(job["payload"].split()))
    if job["name"] == "sum":
        _, _, parts = client.execute_command("JOB.GET", BOARD, job["id"], "CHILDREN", "FIELDS", 1, "result")
        return str(sum(int(part["result"]) for part in parts))
    return "ready"


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
    client.delete(BOARD)
    parts = [f"part-{n}" for n in range(len(TEXT))]
    nodes: list[str | int] = ["NODE", "split", "", "NAME", "split"]
    for label, line in zip(parts, TEXT):
        nodes += ["NODE", label, line, "NAME", "count", "AFTER", 1, "split", "PARENT", "sum"]
    nodes += [
        "NODE",
        "sum",
        "",
        "NAME",
        "sum",
        "AFTER",
        len(parts),
        *parts,
        "ONFAILURE",
        "cancel",
        "RETAIN",
        -1,
    ]
    total = client.execute_command("JOB.FLOW", BOARD, 2 + len(parts), *nodes)[-1]

    fields = ["FIELDS", 4, "id", "token", "name", "payload"]
    while claimed := client.execute_command("JOB.CLAIM", BOARD, "worker", "COUNT", 10, *fields):
        print("claimed:", *sorted(job["name"] for job in claimed))
        for job in claimed:
            result = handle(client, job)
            words = [BOARD, "worker", job["id"], "TOKEN", job["token"], "RESULT", result]
            client.execute_command("JOB.CONSUME", *words)
    print("words:", client.execute_command("JOB.GET", BOARD, total, "FIELDS", 1, "result")["result"])


if __name__ == "__main__":
    main()
