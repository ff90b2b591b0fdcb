"""What a command costs on a board of ten million jobs with every feature in use: `make bench-growth`.

The same commands on a board of a thousand jobs and on one of ten million, whose jobs are in a hundred queues
and a thousand groups, have tags and a user, stand under shared limits, and wait for each other. Then
posts that one of 10,000 blocked workers takes. CPU is the nanoseconds of the server's main thread. Writes
docs/reports/growth.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests" / "python"))

import cores  # noqa: E402
from cycles import PAYLOAD  # noqa: E402
from harness import KINDS, Server  # noqa: E402
from report import commit, cpu_model, number, table  # noqa: E402
from sampling import info, main_thread_nanoseconds  # noqa: E402
from waiters import LONG, Waiters, allow_connections, blocked_clients  # noqa: E402
from wire import Wire, encode, fields  # noqa: E402

REPORT = ROOT / "docs" / "reports" / "growth.md"
QUEUES, GROUPS, TAGS, USERS, LIMITS = 100, 1000, 100, 1000, 10
FEW = 1000
ROUNDS = 7
POSTS = 1000
"""Posts, claims and ends of a round."""

Spent = dict[str, list[float]]
"""Microseconds a command, by its name and round."""


def queue(number: int) -> str:
    return f"q{number % QUEUES}"


def options(number: int) -> list[object]:
    """What jobs of one MPOST have: they differ by its number."""
    words: list[object] = ["QUEUE", queue(number), "GROUP", f"g{number % GROUPS}"]
    words += ["TAGS", 2, f"t{number % TAGS}", "all", "USER", f"u{number % USERS}"]
    words += ["PRIORITY", number % 5, "NAME", f"kind{number % 7}"]
    return words


def settle(wire: Wire) -> None:
    """Each queue is under one of ten shared limits with a rate; none of them ever holds a job back."""
    for n in range(LIMITS):
        wire.call(
            "JOB.SETTINGS",
            "SET",
            "bench",
            "LIMIT",
            f"l{n}",
            "concurrency",
            10**6,
            "rate",
            10**6,
            "burst",
            10**6,
        )
    for n in range(QUEUES):
        words = ("JOB.SETTINGS", "SET", "bench", "QUEUE", queue(n), "limits", 1, f"l{n % LIMITS}")
        wire.call(*words, "concurrency", 1_000_000)


def fill(wire: Wire, begin: int, end: int) -> None:
    """Posts the jobs from `begin` to `end`, a hundred in a command; those of every tenth wait for another."""

    def commands() -> Iterator[bytes]:
        for at in range(begin, end, 100):
            ids = [f"j{number}" for number in range(at, at + 100)]
            words: list[object] = [*options(at // 100), "IDS", 100, *ids]
            if at // 100 % 10 == 9:
                words += ["AFTER", 1, f"j{at - 100}"]
            yield encode("JOB.MPOST", "bench", 100, *[PAYLOAD] * 100, *words)

    part: list[bytes] = []
    for command in commands():
        part.append(command)
        if len(part) == 1000:
            wire.pipeline(part, 10)
            part = []
    wire.pipeline(part, 10)


def lives(wire: Wire, pid: int, everywhere: bool) -> Spent:
    """Rounds of jobs from post to end beside those that wait. `everywhere`: each claim names all queues."""
    spent: Spent = {}
    names = [queue(number) for number in range(QUEUES)]

    def timed(name: str, commands: list[bytes]) -> list:
        before = main_thread_nanoseconds(pid)
        replies = wire.pipeline(commands)
        spent.setdefault(name, []).append((main_thread_nanoseconds(pid) - before) / len(commands) / 1000)
        return replies

    for _ in range(ROUNDS + 1):
        timed("POST", [encode("JOB.POST", "bench", PAYLOAD, *options(n)) for n in range(POSTS)])
        if everywhere:
            claims = [encode("JOB.CLAIM", "bench", "w", "QUEUES", QUEUES, *names, "LEASE", LONG)] * POSTS
        else:
            claims = [
                encode("JOB.CLAIM", "bench", "w", "QUEUE", queue(n), "LEASE", LONG) for n in range(POSTS)
            ]
        jobs = [fields(claim[0]) for claim in timed("CLAIM", claims)]
        words = [("bench", "w", job[b"id"], "TOKEN", job[b"token"]) for job in jobs]
        timed("HEARTBEAT", [encode("JOB.HEARTBEAT", *each, "LEASE", LONG) for each in words])
        timed("CONSUME", [encode("JOB.CONSUME", *each) for each in words])
    return {name: costs[1:] for name, costs in spent.items()}  # the first round warms up


def claims(names: Callable[[int], list[str]]) -> Callable[[int], bytes]:
    """The claim of each waiting worker, which waits for the queues `names(number)`."""

    def claim(number: int) -> bytes:
        chosen = names(number)
        words = ("QUEUES", len(chosen), *chosen, "BLOCK", 0, "LEASE", LONG)
        return encode("JOB.CLAIM", "bench", f"w{number}", *words)

    return claim


def post(wire: Wire, waiters: Waiters, number: int) -> None:
    """Posts a job, and waits until a worker has got it and waits again."""
    wire.call("JOB.POST", "bench", PAYLOAD, "QUEUE", queue(number), "GROUP", f"g{number % GROUPS}")
    waiters.take_one()


def blocked(server: Server, wire: Wire, count: int, names: Callable[[int], list[str]]) -> list[float]:
    """Microseconds of a post with its wake-up, claim and new wait, without what the connections cost idle."""
    wire.call("FLUSHALL")
    pid, waiting = server.process.pid, Waiters(server.port, count, wire, claims(names))
    try:
        before, start = main_thread_nanoseconds(pid), time.monotonic()
        time.sleep(1)
        idle = (main_thread_nanoseconds(pid) - before) / (time.monotonic() - start)
        spent = []
        for turn in range(ROUNDS + 1):
            before, start = main_thread_nanoseconds(pid), time.monotonic()
            for n in range(POSTS // 2):
                post(wire, waiting, n)
            idled = idle * (time.monotonic() - start)
            if turn:
                spent.append((main_thread_nanoseconds(pid) - before - idled) / (POSTS // 2) / 1000)
        return spent
    finally:
        waiting.close()
        while blocked_clients(wire):
            time.sleep(0.01)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--server", choices=KINDS, default="redis82")
    parser.add_argument("--most", type=int, default=10_000_000)
    parser.add_argument("--waiters", type=int, default=10_000)
    parser.add_argument("--to", type=Path, default=REPORT)
    given = parser.parse_args()
    waiters = allow_connections(given.waiters)
    server = Server(given.server, config=["loglevel notice", f"maxclients {waiters + 100}"])
    try:
        cores.part(server.process.pid)
        wire = Wire(server.port)
        settle(wire)
        found: dict[int, dict[bool, Spent]] = {}
        begin = 0
        for size in (FEW, given.most):
            fill(wire, begin, size)
            begin = size
            print(f"{wire.call('JOB.COUNT', 'bench'):,} jobs wait", flush=True)
            found[size] = {
                everywhere: lives(wire, server.process.pid, everywhere) for everywhere in (False, True)
            }
        memory = int(info(wire, "memory")["used_memory"])
        growth = rows(found, given.most)
        woken = [
            woken_row(server, wire, title, waiters, names)
            for title, names in (
                ("each on one of 100 queues", lambda number: [queue(number)]),
                ("each on all 100 queues", lambda number: [queue(n) for n in range(QUEUES)]),
            )
        ]
        server.check_health()
    finally:
        server.close()
        cores.share()
    write(given, growth, woken, memory / given.most, waiters)


def rows(found: dict[int, dict[bool, Spent]], most: int) -> list[list[str]]:
    lines = []
    for everywhere in (False, True):
        for verb in found[FEW][everywhere]:
            few, many = (statistics.median(found[size][everywhere][verb]) for size in (FEW, most))
            if not everywhere or verb == "CLAIM":
                name = f"{verb} over {QUEUES} queues" if everywhere else verb
                lines.append([name, number(few), number(many), f"{many / few:.2f}"])
    return lines


def woken_row(
    server: Server, wire: Wire, title: str, count: int, names: Callable[[int], list[str]]
) -> list[str]:
    few, many = (statistics.median(blocked(server, wire, of, names)) for of in (QUEUES, count))
    return [title, number(few), number(many), f"{many / few:.2f}"]


def write(
    given: argparse.Namespace, growth: list[list[str]], woken: list[list[str]], memory: float, waiters: int
) -> None:
    text = f"""# Growth with features in use

Made by `make bench-growth SERVER={given.server}` at {commit()}: {cpu_model()},
{os.cpu_count()} cores, load of the machine at the end {os.getloadavg()[0]:.1f}.

Jobs of 100 bytes in {QUEUES} queues and {GROUPS:,} groups, with two tags, a user, a name and one of five
priorities, under {LIMITS} shared limits with a rate and a concurrency; a tenth of them wait for another job.
Microseconds of the server's main thread for a command, the median of {ROUNDS} rounds of {POSTS:,}, in
pipelines. The aim is a ratio of at most 2.

{table(["command", f"{FEW:,} jobs", f"{given.most:,} jobs", "ratio"], growth)}

A job takes {memory:.0f} bytes here, with all of that.

A post that a blocked worker takes at once, with its wake-up, its claim and its new wait, one after the other;
without what the idle connections cost.

{table(["blocked workers", f"{QUEUES} of them", f"{waiters:,}", "ratio"], woken)}
"""
    given.to.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
