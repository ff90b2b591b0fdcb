"""Blocked workers: what they cost a post, and how fast they get a job."""

from __future__ import annotations

import resource
import selectors
import time
from collections.abc import Callable
from contextlib import suppress

import cores
from cycles import PAYLOAD
from report import number, percentiles, table
from sampling import main_thread_seconds
from wire import Wire, encode, fields

MANY = 10_000
POSTS = 2_000
SAMPLES = 2_000
SPREAD = 4_000
"""Milliseconds over which the due times of the samples lie."""

LONG = 3_600_000
CLAIM = encode("JOB.CLAIM", "bench", "w", "BLOCK", 0, "LEASE", LONG)


def allow_connections(count: int) -> int:
    """Raises this process's limit of open files if it may; returns how many of `count` connections fit."""
    wanted = count + 500
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(hard, wanted)))
        if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return min(count, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 500)


def blocked_clients(wire: Wire) -> int:
    lines = wire.call("INFO", "clients").decode().split("\r\n")
    return next(int(line.split(":")[1]) for line in lines if line.startswith("blocked_clients:"))


class Waiters:
    """Connections that each wait in JOB.CLAIM, and wait again whenever they have got a job.

    `claim` makes the command of each from its number.
    """

    def __init__(
        self, port: int, count: int, control: Wire, claim: Callable[[int], bytes] = lambda _: CLAIM
    ) -> None:
        self.selector = selectors.DefaultSelector()
        for n in range(count):
            wire, command = Wire(port), claim(n)
            wire.socket.sendall(command)
            self.selector.register(wire.socket, selectors.EVENT_READ, (wire, command))
        while blocked_clients(control) < count:
            time.sleep(0.01)

    def take_one(self) -> None:
        """Waits until one of them has got a job, and lets it wait again."""
        for key, _ in self.selector.select(10):
            wire, command = key.data
            wire.read()
            wire.socket.sendall(command)

    def close(self) -> None:
        for key in list(self.selector.get_map().values()):
            key.data[0].close()
        self.selector.close()


def post_costs(control: Wire, port: int, count: int) -> tuple[float, float]:
    """Microseconds of server CPU: of a post that one of `count` waiters takes, and of one for nobody."""
    control.call("FLUSHALL")
    waiters = Waiters(port, count, control)
    try:
        idle = idle_rate(control)
        taken = spend(control, idle, POSTS, lambda: [take(control, waiters) for _ in range(POSTS)])
        elsewhere = [encode("JOB.POST", "bench", PAYLOAD, "QUEUE", "other")] * POSTS * 10
        unwanted = spend(control, idle, len(elsewhere), lambda: control.pipeline(elsewhere))
    finally:
        waiters.close()
    while blocked_clients(control):
        time.sleep(0.01)
    return taken, unwanted


def take(control: Wire, waiters: Waiters) -> None:
    control.call("JOB.POST", "bench", PAYLOAD)
    waiters.take_one()


def idle_rate(control: Wire) -> float:
    """CPU seconds per second that the server spends on its connections while nothing happens."""
    before, start = main_thread_seconds(control), time.monotonic()
    time.sleep(2)
    return (main_thread_seconds(control) - before) / (time.monotonic() - start)


def spend(control: Wire, idle: float, count: int, work) -> float:
    before, start = main_thread_seconds(control), time.monotonic()
    work()
    idled = idle * (time.monotonic() - start)
    return (main_thread_seconds(control) - before - idled) / count * 1e6


def measure_posts(control: Wire, port: int) -> str:
    many = allow_connections(MANY)
    costs = {count: post_costs(control, port, count) for count in (1, many)}
    rows = [[str(count), number(taken), number(unwanted)] for count, (taken, unwanted) in costs.items()]
    rows.append(["ratio", *(number(b / a) for a, b in zip(costs[1], costs[many]))])
    text = (
        "Server CPU, less what the connections cost when idle. The first column is of single posts, each "
        "with its wake-up, claim and new wait; the second of pipelined posts to a queue nobody waits for."
    )
    return text + "\n\n" + table(["blocked workers", "µs, taken at once", "µs, not waited for"], rows)


def measure_latency(control: Wire, port: int) -> str:
    cases = {
        "post until a blocked JOB.CLAIM has the job": pick_ups_from_board,
        "XADD until a blocked XREADGROUP has the entry": pick_ups_from_stream,
        "due time of a delayed job until it has it": late_due,
        "end of a lease until it has it": late_leases,
    }
    with cores.preferred():
        rows = [[title, *percentiles(sample(control, port))] for title, sample in cases.items()]
    text = (
        f"One blocked worker, {SAMPLES} samples, seen by the client, its own turn included. Due times and "
        f"ends of leases are spread over {SPREAD // 1000} s; the server's clock counts whole milliseconds."
    )
    return text + "\n\n" + table(["from, to", "p50 ms", "p99 ms", "largest ms"], rows)


def pick_ups_from_board(control: Wire, port: int) -> list[float]:
    claim = encode("JOB.CLAIM", "bench", "w", "BLOCK", 0, "LEASE", LONG)
    control.call("FLUSHALL")
    return pick_ups(control, port, claim, encode("JOB.POST", "bench", PAYLOAD))


def pick_ups_from_stream(control: Wire, port: int) -> list[float]:
    control.call("FLUSHALL")
    control.call("XGROUP", "CREATE", "bench", "g", "$", "MKSTREAM")
    read = encode("XREADGROUP", "GROUP", "g", "c", "COUNT", 1, "BLOCK", 0, "STREAMS", "bench", ">")
    return pick_ups(control, port, read, encode("XADD", "bench", "*", "d", PAYLOAD))


def pick_ups(control: Wire, port: int, wait: bytes, post: bytes) -> list[float]:
    """Milliseconds from sending `post` to the reply of a `wait` that has blocked before."""
    worker, found = Wire(port), []
    for _ in range(SAMPLES):
        worker.socket.sendall(wait)
        while not blocked_clients(control):
            pass
        start = time.perf_counter()
        control.socket.sendall(post)
        worker.read()
        found.append((time.perf_counter() - start) * 1000)
        control.read()
    worker.close()
    return found


def late_due(control: Wire, port: int) -> list[float]:
    control.call("FLUSHALL")
    first = int(time.time() * 1000) + 1000
    control.pipeline(
        encode("JOB.POST", "bench", first + offset, "AT", first + offset) for offset in offsets()
    )
    return lateness(port, lambda job: int(job[b"payload"]), "payload")


def late_leases(control: Wire, port: int) -> list[float]:
    control.call("FLUSHALL")
    control.pipeline([encode("JOB.POST", "bench", PAYLOAD)] * SAMPLES)
    now = int(time.time() * 1000)
    claims = control.pipeline(
        encode("JOB.CLAIM", "bench", "gone", "LEASE", 1000 + offset) for offset in offsets()
    )
    assert int(time.time() * 1000) < now + 1000, "leases have ended before all were given"
    jobs = [fields(claim[0]) for claim in claims]
    deadlines = {job[b"id"]: job[b"deadline"] for job in jobs}
    return lateness(port, lambda job: deadlines[job[b"id"]], "id")


def lateness(port: int, due, *names: str) -> list[float]:
    """Milliseconds by which a blocked worker gets each of SAMPLES jobs after what `due` says of it."""
    worker, found = Wire(port), []
    claim = encode("JOB.CLAIM", "bench", "w", "BLOCK", 0, "LEASE", LONG, "FIELDS", len(names), *names)
    for _ in range(SAMPLES):
        worker.socket.sendall(claim)
        [job] = worker.read()
        found.append(time.time() * 1000 - due(fields(job)))
    worker.close()
    return found


def offsets() -> list[int]:
    """SAMPLES different-looking, repeatable points within SPREAD, in no order."""
    return [number * 7919 % SPREAD for number in range(SAMPLES)]
