"""Many jobs that fall due in one millisecond: when all are ready, and what a PING feels meanwhile."""

from __future__ import annotations

import time

import cores
import sampling
from cycles import BATCH, PAYLOAD
from harness import Server
from report import table
from wire import Wire, encode


def measure(kind: str, jobs: int) -> dict[str, float]:
    """Of two plays the shorter time of each, as the machine adds its own."""
    plays = [play(kind, jobs) for _ in range(2)]
    return {name: min(found[name] for found in plays) for name in plays[0]}


def play(kind: str, jobs: int) -> dict[str, float]:
    """On a server of its own, whose timer has turned for nothing else."""
    server = Server(kind)
    try:
        cores.part(server.process.pid)
        return watched(Wire(server.port), jobs)
    finally:
        server.close()


def watched(wire: Wire, jobs: int) -> dict[str, float]:
    """Fills a board with jobs of one due time, then watches it pass."""
    wait = 5_000 + jobs // 50
    at = int(time.time() * 1000) + wait
    command = encode("JOB.MPOST", "bench", BATCH, *[PAYLOAD] * BATCH, "AT", at)
    due = at / 1000
    wire.pipeline([command] * (jobs // BATCH), 5)
    if time.time() > due:
        raise RuntimeError("filling took longer than the delay: the machine is too busy to measure")
    stalls = sampling.Stalls(wire.socket.getpeername()[1])
    time.sleep(max(due - time.time(), 0))
    claims, ready = [], 0
    while ready < jobs - len(claims):
        start = time.perf_counter()
        if wire.call("JOB.CLAIM", "bench", "w", "FIELDS", 1, "id"):
            claims.append((time.perf_counter() - start) * 1000)
        ready = wire.call("JOB.COUNT", "bench", "STATE", "ready")
        time.sleep(0.001)
    found = {"jobs": jobs, "taken": time.time() - due, "claims": len(claims)}
    found |= {"claim": max(claims, default=0), "longest": stalls.longest()}
    found["turn"] = int(sampling.info(wire, "jobboard")["jobboard_timer_longest_turn_us"]) / 1000
    return found


def text(found: dict[str, float]) -> str:
    row = [f"{found['jobs']:,}", f"{found['taken']:.2f}", f"{found['claims']}"]
    row += [f"{found['claim']:.2f}", f"{found['turn']:.2f}", f"{found['longest']:.2f}"]
    head = [
        "jobs",
        "all ready after, s",
        "claims meanwhile",
        "longest claim, ms",
        "longest turn of the timer, ms",
        "longest answer to a PING, ms",
    ]
    return (
        "All jobs have one due time; a worker claims meanwhile. The shorter times of two plays.\n\n"
        + table(head, [row])
    )
