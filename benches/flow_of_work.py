"""Steps, signals, batches, output, waiting posts and searches beside plain commands: `make bench-flow`.

All ways of a round come after one another, and a ratio is the median of those of the rounds: both sides share
the machine's mood. CPU is the nanoseconds of the server's main thread. The search walks every payload of a
million jobs while another client sends PING after PING. Writes docs/reports/flow.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests" / "python"))

import cores  # noqa: E402
from cycles import PAYLOAD  # noqa: E402
from harness import KINDS, Server  # noqa: E402
from report import commit, cpu_model, number, table  # noqa: E402
from sampling import main_thread_nanoseconds  # noqa: E402
from waiters import LONG, Waiters, allow_connections, blocked_clients  # noqa: E402
from wire import Wire, encode, fields  # noqa: E402

REPORT = ROOT / "docs" / "reports" / "flow.md"
CLAIMS = 200
"""Claims of a round, a hundred jobs each."""
BEATS = 5_000
WAKES = 300
QUEUES = 100

Costs = dict[str, float]
"""Microseconds a command, by way."""


class Bench:
    def __init__(self, server: Server) -> None:
        self.pid, self.port = server.process.pid, server.port
        self.wire = Wire(server.port)
        self.turn = 0

    def both(self, without: Callable[[], float], given: Callable[[], float]) -> Costs:
        """Both ways, in an order that changes from round to round: the first finds other caches."""
        ways = [("without", without), ("with", given)]
        return {way: measure() for way, measure in (reversed(ways) if self.turn % 2 else ways)}

    def cost(self, commands: list[bytes], least: int = 0) -> float:
        """Microseconds of the server's main thread for each of these, in a pipeline.

        Every reply has at least `least` elements.
        """
        before = main_thread_nanoseconds(self.pid)
        replies = self.wire.pipeline(commands)
        spent = main_thread_nanoseconds(self.pid) - before
        assert all(len(reply) >= least for reply in replies if least), "a claim was not full"
        return spent / len(commands) / 1000

    def fill(self, jobs: int, payload: Callable[[int], object] = lambda _: PAYLOAD) -> None:
        for begin in range(0, jobs, 100_000):
            some = range(begin, min(begin + 100_000, jobs), 100)
            self.wire.pipeline(
                [encode("JOB.MPOST", "bench", 100, *(payload(at + n) for n in range(100))) for at in some]
            )


def batches(bench: Bench) -> Costs:
    """A claim for a hundred jobs that are there, with and without a minimum."""
    bench.wire.call("FLUSHALL")
    bench.fill(2 * CLAIMS * 100)
    words = ("JOB.CLAIM", "bench", "w", "COUNT", 100, "LEASE", LONG, "BLOCK", 1000)
    with_min = encode(*words, "MIN", 100, "LINGER", 50)
    return bench.both(
        lambda: bench.cost([encode(*words)] * CLAIMS, 100), lambda: bench.cost([with_min] * CLAIMS, 100)
    )


def waiting_batches(bench: Bench) -> Costs:
    """Posts while a worker waits for a hundred jobs, and while one waits for a job of another queue."""

    def beside(*words: object) -> float:
        bench.wire.call("FLUSHALL")
        claim = encode("JOB.CLAIM", "bench", "w", "BLOCK", 0, "LEASE", LONG, *words)
        waiting = Waiters(bench.port, 1, bench.wire, lambda _: claim)
        try:
            return bench.cost([encode("JOB.POST", "bench", PAYLOAD)] * 99)
        finally:
            waiting.close()
            while blocked_clients(bench.wire):
                time.sleep(0.01)

    return bench.both(lambda: beside("QUEUE", "other"), lambda: beside("COUNT", 100, "MIN", 100))


def steps(bench: Bench) -> Costs:
    """Heartbeats of claimed jobs, and steps of a hundred bytes of these jobs, ten each."""
    bench.wire.call("FLUSHALL")
    bench.fill(BEATS // 10)
    claim = encode("JOB.CLAIM", "bench", "w", "COUNT", 100, "LEASE", LONG)
    jobs = [fields(job) for reply in bench.wire.pipeline([claim] * (BEATS // 1000)) for job in reply]
    held = [("bench", "w", job[b"id"]) for _ in range(10) for job in jobs]
    tokens = [("TOKEN", job[b"token"]) for _ in range(10) for job in jobs]
    beats = [encode("JOB.HEARTBEAT", *job, *token) for job, token in zip(held, tokens, strict=True)]
    stored = [
        encode("JOB.STEP", *job, f"step-{n // len(jobs)}", PAYLOAD, *token)
        for n, (job, token) in enumerate(zip(held, tokens, strict=True))
    ]
    bench.cost(beats)
    return bench.both(lambda: bench.cost(beats), lambda: bench.cost(stored))


def signals(bench: Bench) -> Costs:
    """Posts, and signals that each wake a job that was posted with a gate."""
    bench.wire.call("FLUSHALL")
    posts = [encode("JOB.POST", "bench", PAYLOAD)] * BEATS
    ids = bench.wire.pipeline([encode("JOB.POST", "bench", PAYLOAD, "AWAIT", 1, "approved")] * BEATS)
    wakes = [encode("JOB.SIGNAL", "bench", "approved", 1, id) for id in ids]
    return bench.both(lambda: bench.cost(posts), lambda: bench.cost(wakes))


def output(bench: Bench) -> Costs:
    """A heartbeat of a claimed job, with a chunk of a hundred bytes and without."""
    bench.wire.call("FLUSHALL")
    bench.wire.call("JOB.POST", "bench", PAYLOAD, "ID", "j")
    [job] = bench.wire.call("JOB.CLAIM", "bench", "w", "LEASE", LONG)
    words = ("JOB.HEARTBEAT", "bench", "w", "j", "TOKEN", fields(job)[b"token"])
    chunks = [encode(*words, "OUTPUT", n + 1, PAYLOAD) for n in range(2 * BEATS)]
    bench.cost(chunks[:BEATS])  # until the ring is full
    return bench.both(lambda: bench.cost([encode(*words)] * BEATS), lambda: bench.cost(chunks[BEATS:]))


def posts(bench: Bench) -> Costs:
    """A post that finds room, with BLOCK and without; the board has a limit that it does not reach."""
    bench.wire.call("FLUSHALL")
    bench.wire.call("JOB.SETTINGS", "SET", "bench", "max-jobs", 1_000_000)
    words = ("JOB.POST", "bench", PAYLOAD)
    return bench.both(
        lambda: bench.cost([encode(*words)] * BEATS),
        lambda: bench.cost([encode(*words, "BLOCK", 1000)] * BEATS),
    )


def woken(bench: Bench, count: int) -> float:
    """Microseconds until the end of a job has let one of `count` waiting posts in, which waits again.

    They wait for a hundred queues with room for one job each; what the connections cost idle does not count.
    """
    bench.wire.call("FLUSHALL")
    for n in range(QUEUES):
        bench.wire.call("JOB.SETTINGS", "SET", "bench", "QUEUE", f"q{n}", "max-jobs", 1)
        bench.wire.call("JOB.POST", "bench", PAYLOAD, "QUEUE", f"q{n}")

    def post(number: int) -> bytes:
        return encode("JOB.POST", "bench", PAYLOAD, "QUEUE", f"q{number % QUEUES}", "BLOCK", 0)

    waiting = Waiters(bench.port, count, bench.wire, post)
    try:
        before, start = main_thread_nanoseconds(bench.pid), time.monotonic()
        time.sleep(1)
        idle = (main_thread_nanoseconds(bench.pid) - before) / (time.monotonic() - start)
        before, start = main_thread_nanoseconds(bench.pid), time.monotonic()
        for n in range(WAKES):
            [job] = bench.wire.call("JOB.CLAIM", "bench", "w", "QUEUE", f"q{n % QUEUES}", "LEASE", LONG)
            job = fields(job)
            bench.wire.call("JOB.CONSUME", "bench", "w", job[b"id"], "TOKEN", job[b"token"])
            waiting.take_one()
        idled = idle * (time.monotonic() - start)
        return (main_thread_nanoseconds(bench.pid) - before - idled) / WAKES / 1000
    finally:
        waiting.close()
        while blocked_clients(bench.wire):
            time.sleep(0.01)


class Pings:
    """A client that sends PING after PING, and notes how long each answer took."""

    def __init__(self, port: int) -> None:
        self.wire, self.stop, self.took = Wire(port), threading.Event(), [0.0]
        self.thread = threading.Thread(target=self.run)

    def run(self) -> None:
        while not self.stop.is_set():
            start = time.perf_counter()
            self.wire.call("PING")
            self.took.append((time.perf_counter() - start) * 1000)
            time.sleep(0.0005)

    def __enter__(self) -> Pings:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.thread.join()
        self.wire.close()

    def row(self) -> list[str]:
        took = sorted(self.took)
        return [f"{took[len(took) // 2]:.2f}", f"{took[len(took) * 99 // 100]:.2f}", f"{took[-1]:.2f}"]


def searches(bench: Bench, jobs: int) -> list[list[str]]:
    """Walks over all jobs with WHERE and a dry run; the answers to PING meanwhile."""
    bench.wire.call("FLUSHALL")
    bench.fill(jobs, lambda number: f"{number:09d}" + "x" * 91)
    needle = f"{jobs - 7:09d}"
    rows = []
    for title, words in (
        ("nothing", None),
        ("`WHERE STATE ready`", ("STATE", "ready")),
        ("`WHERE CONTAINS text`", ("CONTAINS", needle)),
    ):
        with Pings(bench.port) as pings:
            start, before, calls, longest, found = time.monotonic(), 0, 0, 0.0, 0
            before = main_thread_nanoseconds(bench.pid)
            if words is None:
                time.sleep(2)
            cursor: bytes | None = b"0" if words else None
            while cursor is not None:
                begun = main_thread_nanoseconds(bench.pid)
                reply = bench.wire.call(
                    "JOB.UPDATE", "bench", "WHERE", *words, "CURSOR", cursor, "COUNT", 1000, "DRYRUN",
                    "SET", "PRIORITY", 1,
                )  # fmt: skip
                longest = max(longest, (main_thread_nanoseconds(bench.pid) - begun) / 1e6)
                calls, found = calls + 1, found + reply[0]
                cursor = reply[1] if reply[1] != b"0" else None
            spent = (main_thread_nanoseconds(bench.pid) - before) / 1e9
            took = time.monotonic() - start
        shown = [f"{calls:,}", f"{found:,}", f"{took:.2f}", f"{spent:.2f}", f"{longest:.2f}"]
        rows.append([title, *(shown if words else ["–"] * 5), *pings.row()])
    return rows


AIMS = {"a sign of life": 1.2, "a job that becomes ready": 1.0}

WAYS: dict[str, tuple[Callable[[Bench], Costs], str, str]] = {
    "a claim of 100 jobs that are there": (batches, "without `MIN`", "with `MIN 100 LINGER 50`"),
    "a post while a worker waits": (waiting_batches, "in another queue", "for 100 with `MIN`"),
    "a heartbeat": (output, "alone", "with `OUTPUT`, 100 bytes"),
    "a sign of life": (steps, "a heartbeat", "a step of 100 bytes"),
    "a job that becomes ready": (signals, "a post", "a signal that wakes it"),
    "a post that finds room": (posts, "without `BLOCK`", "with `BLOCK`"),
}


def compared(bench: Bench, rounds: int) -> list[list[str]]:
    spent: dict[str, list[Costs]] = {name: [] for name in WAYS}
    for turn in range(rounds + 1):
        bench.turn = turn
        for name, (measure, *_) in WAYS.items():
            costs = measure(bench)
            if turn:  # the first round warms up
                spent[name].append(costs)
    rows = []
    for name, (_, without, given) in WAYS.items():
        middle = {way: statistics.median(costs[way] for costs in spent[name]) for way in ("without", "with")}
        ratio = statistics.median(costs["with"] / costs["without"] for costs in spent[name])
        aim = f"{AIMS[name]:.1f}" if name in AIMS else ""
        rows.append(
            [name, without, number(middle["without"]), given, number(middle["with"]), f"{ratio:.2f}", aim]
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--server", choices=KINDS, default="redis82")
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--waiters", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--to", type=Path, default=REPORT)
    given = parser.parse_args()
    many = allow_connections(given.waiters)
    server = Server(given.server, config=["loglevel notice", f"maxclients {many + 100}"])
    try:
        cores.part(server.process.pid)
        bench = Bench(server)
        rows = compared(bench, given.rounds)
        few = statistics.median(woken(bench, QUEUES) for _ in range(3))
        crowd = statistics.median(woken(bench, many) for _ in range(3))
        wakes = [["waiting posts", number(few), number(crowd), f"{crowd / few:.2f}"]]
        found = searches(bench, given.jobs)
        manner = cores.manner(server.process.pid)
        server.check_health()
    finally:
        server.close()
        cores.share()
    write(given, manner, rows, wakes, found, many)


def write(
    given: argparse.Namespace,
    manner: str,
    rows: list[list[str]],
    wakes: list[list[str]],
    found: list[list[str]],
    many: int,
) -> None:
    head = ["a walk over all jobs by", "calls", "found", "s", "CPU s", "longest call, CPU ms"]
    text = f"""# Steps, signals, batches, output, waiting posts and searches

Made by `make bench-flow SERVER={given.server} JOBS={given.jobs}` at {commit()}: {cpu_model()},
{os.cpu_count()} cores, load of the machine at the end {os.getloadavg()[0]:.1f}. {manner}

Microseconds of the server's main thread for a command, in pipelines, the median of {given.rounds} rounds.
Both sides of a row are measured in each round, one after the other, in an order that changes from round to
round; the ratio is the median of the rounds' own.

{table(["command", "beside", "µs", "with", "µs", "ratio", "aim"], rows)}

A job ends in one of {QUEUES} queues that have room for one each, and lets the first post in that waits for
that queue; the producer gets its reply and posts again. Microseconds of all that: a claim, an end, and the
post twice; without what the idle connections cost.

{table(["", f"{QUEUES} of them", f"{many:,}", "ratio"], wakes)}

A search through {given.jobs:,} payloads of 100 bytes, `JOB.UPDATE … WHERE … COUNT 1000 DRYRUN` from cursor to
cursor, and what a client that sends PING after PING sees meanwhile, in milliseconds.

{table([*head, "PING p50", "p99", "longest"], found)}
"""
    given.to.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
