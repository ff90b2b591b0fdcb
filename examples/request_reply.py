"""Request and reply: post a job, wait for its result, without a reply queue and without polling.

    python examples/request_reply.py [--port 6379]

The caller posts, and waits with JOB.WAIT, which wakes it at the moment the job has ended, whatever the end:
the worker here cannot square everything. RETAIN keeps the record, with result or error, for the caller.
"""

from __future__ import annotations

import argparse
import os
import threading

import redis

BOARD = "squares"
RETAIN = 60_000


def serve(url: str, stop: threading.Event) -> None:
    """A worker."""
    client = redis.Redis.from_url(url, protocol=3, decode_responses=True)
    while not stop.is_set():
        claimed = client.execute_command("JOB.CLAIM", BOARD, "worker", "BLOCK", 1000)
        if not claimed:
            continue
        id_, token, payload = (claimed[0][name] for name in ["id", "token", "payload"])
        try:
            result = int(payload) ** 2
        except ValueError as error:
            client.execute_command(
                *("JOB.FAIL", BOARD, "worker", id_, "ValueError", str(error), "TOKEN", token, "NORETRY")
            )
        else:
            client.execute_command("JOB.CONSUME", BOARD, "worker", id_, "TOKEN", token, "RESULT", result)


def ask(client: redis.Redis, payload: str, ms: int = 30_000) -> str:
    """What came of the job."""
    id_ = client.execute_command("JOB.POST", BOARD, payload, "RETAIN", RETAIN)
    fields = ["FIELDS", 3, "state", "result", "message"]
    answer = client.execute_command("JOB.WAIT", BOARD, ms, "JOBS", 1, id_, *fields)
    if answer is None:
        client.execute_command("JOB.CANCEL", BOARD, 1, id_)
        return "nobody answered in time"
    [job] = answer
    return job["result"] if job["state"] == "complete" else f"{job['state']}: {job['message']}"


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
    # JOB.WAIT answers after its 30 s at the latest; the client's own limit, of 5 s, would be shorter.
    client = redis.Redis.from_url(url, protocol=3, decode_responses=True, socket_timeout=60)
    client.delete(BOARD)
    stop = threading.Event()
    worker = threading.Thread(target=serve, args=(url, stop))
    worker.start()
    for payload in ["12", "many"]:
        print(f"{payload} squared: {ask(client, payload)}")
    stop.set()
    worker.join()
    print("without a worker:", ask(client, "7", ms=100))


if __name__ == "__main__":
    main()
