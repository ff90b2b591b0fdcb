"""Many jobs that fall due in one millisecond: when all are ready, and what a PING feels meanwhile."""

from __future__ import annotations

import time

import sampling
from cycles import BATCH, PAYLOAD
from report import table
from wire import Wire, encode


def measure(wire: Wire, jobs: int) -> str:
    """One row: fills a board with jobs of one due time, then watches it pass."""
    wire.call("FLUSHALL")
    wait = 5_000 + jobs // 50
    at = int(time.time() * 1000) + wait
    command = encode("JOB.MPOST", "bench", BATCH, *[PAYLOAD] * BATCH, "AT", at)
    due = at / 1000
    wire.pipeline([command] * (jobs // BATCH), 5)
    assert time.time() < due, "filling took too long"
    port = wire.socket.getpeername()[1]
    time.sleep(max(due - time.time() - 0.2, 0))
    stalls = sampling.Stalls(port)
    claims, ready = [], 0
    while ready < jobs - len(claims):
        start = time.perf_counter()
        if time.time() > due and wire.call("JOB.CLAIM", "bench", "w", "FIELDS", 1, "id"):
            claims.append((time.perf_counter() - start) * 1000)
        ready = wire.call("JOB.COUNT", "bench", "STATE", "ready")
        time.sleep(0.001)
    taken = time.time() - due
    longest = stalls.longest()
    wire.call("FLUSHALL", "SYNC")
    rows = [
        [f"{jobs:,}", f"{taken:.2f}", str(len(claims)), f"{max(claims, default=0):.2f}", f"{longest:.2f}"]
    ]
    text = "All jobs have one due time; a worker claims meanwhile."
    head = [
        "jobs",
        "all ready after, s",
        "claims meanwhile",
        "longest claim, ms",
        "longest answer to a PING, ms",
    ]
    return text + "\n\n" + table(head, rows)
