"""How many jobs a second one core takes, at which latency, and what a cluster of three gives.

First the CPU of a job: 50 clients with one command each under way post a job, end one and claim the next.
What the server's main thread takes for that, of a second, is the most that one core can do. Then a client
posts and ends jobs at fixed rates, whether replies come or not, and beside it a prober takes one job after
the other through its life and measures its commands. In a cluster each of three nodes has a board of its
own; the nodes are loaded one after another, so that they need no core each: what counts is the CPU of a job
on a node. `make bench-capacity` writes docs/reports/capacity.md.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests" / "python"))

import cores  # noqa: E402
import cycles  # noqa: E402
from against_streams import CLIENTS, PERSISTENCE, Side, chained_life, crowd, title  # noqa: E402
from harness import KINDS  # noqa: E402
from harness.cluster import Cluster  # noqa: E402
from report import commit, cpu_model, number, percentiles, table  # noqa: E402
from sampling import main_thread_nanoseconds  # noqa: E402
from wire import Wire, encode, fields  # noqa: E402

REPORT = ROOT / "docs" / "reports" / "capacity.md"
RATES = (10_000, 20_000, 40_000)
"""Jobs a second under which latency is measured."""
TICK = 0.001
"""Seconds between two writes of the loading client."""
END = b"the end of the load"
NODES = 3

Rows = list[list[str]]


class Cost(NamedTuple):
    """Microseconds of the main thread for a job, by the way that clients talk to the server."""

    singly: float
    batched: float

    def rates(self) -> list[str]:
        """Jobs a second of a core."""
        return [f"{1e6 / cost:,.0f}" for cost in self]


def cost_of(pid: int, wires: list[Wire], board: str, rounds: int, jobs: int) -> Cost:
    """Medians of so many rounds; one more warms up."""
    spent: dict[str, list[float]] = {"singly": [], "batched": []}
    for turn in range(rounds + 1):
        for way, found in spent.items():
            before = main_thread_nanoseconds(pid)
            if way == "singly":
                crowd(wires, [chained_life(jobs // len(wires), n, board) for n in range(len(wires))])
            else:
                cycles.board_in_batches(wires[0], jobs, board=board)
            if turn:
                found.append((main_thread_nanoseconds(pid) - before) / jobs / 1000)
    return Cost(*(statistics.median(found) for found in spent.values()))


def load(port: int, rate: int, seconds: float, pipe: Connection) -> None:
    """In a process of its own: posts and ends so many jobs a second, whether replies have come or not.

    Tells when it begins, and how many a second it sent in the end.
    """
    wire = Wire(port)
    post, lease = encode("JOB.POST", "loaded", cycles.PAYLOAD), ("LEASE", 3_600_000)
    ids = wire.pipeline([post] * int(rate * seconds))
    wire.call("JOB.CLAIM", "loaded", "load", *lease)
    words = [post + encode("JOB.CONSUME", "loaded", "load", id, "CLAIM", *lease) for id in ids]
    drain = threading.Thread(target=read_to_the_end, args=(wire,))
    drain.start()
    pipe.send("begins")
    sent, begun = 0, time.perf_counter()
    while sent < len(words):
        due = min(int(rate * (time.perf_counter() - begun)) + 1, len(words))
        wire.socket.sendall(b"".join(words[sent:due]))
        sent = due
        time.sleep(TICK)
    pipe.send(sent / (time.perf_counter() - begun))
    wire.socket.sendall(encode("ECHO", END))
    drain.join()


def read_to_the_end(wire: Wire) -> None:
    tail = b""
    while END not in tail:
        tail = tail[-len(END) :] + wire.socket.recv(1 << 18)


def probe(port: int, pipe: Connection) -> list[float]:
    """Milliseconds of each command of jobs that a client takes through their life while the load runs."""
    wire, found = Wire(port), []

    def timed(*words: object) -> Any:
        start = time.perf_counter()
        reply = wire.call(*words)
        found.append((time.perf_counter() - start) * 1000)
        return reply

    while not pipe.poll():
        timed("JOB.POST", "probe", cycles.PAYLOAD)
        job = fields(timed("JOB.CLAIM", "probe", "w")[0])
        timed("JOB.CONSUME", "probe", "w", job[b"id"], "TOKEN", job[b"token"])
    wire.close()
    return found


def latencies_at(side: Side, persistence: str, seconds: float) -> Rows:
    """A row for each rate."""
    rows, port = [], side.servers[0].port
    for rate in RATES:
        side.empty()
        ours, theirs = multiprocessing.Pipe()
        loading = multiprocessing.Process(target=load, args=(port, rate, seconds, theirs))
        loading.start()
        ours.recv()
        begun, before = time.perf_counter(), main_thread_nanoseconds(side.pid)
        found = probe(port, ours)
        busy = (main_thread_nanoseconds(side.pid) - before) / (time.perf_counter() - begun) / 1e9
        sent = ours.recv()
        loading.join()
        p50, p99, _ = percentiles(found)
        rows.append([persistence, f"{sent:,.0f}", f"{busy:.0%}", p50, p99])
    return rows


def one_core(kind: str, given: argparse.Namespace) -> tuple[Rows, Rows]:
    """A row of costs and rows of latency for each sort of persistence."""
    costs, latencies = [], []
    for persistence in PERSISTENCE:
        side = Side(kind, persistence, True)
        try:
            side.part()
            cost = cost_of(side.pid, side.wires, "bench", given.rounds, given.jobs)
            costs.append([f"one server, {persistence}", *map(number, cost), *cost.rates()])
            latencies += latencies_at(side, persistence, given.seconds)
            side.servers[0].check_health()
        finally:
            side.close()
            cores.share()
        print(f"{persistence}: done", flush=True)
    return costs, latencies


def three_nodes(kind: str, given: argparse.Namespace) -> Rows:
    """A row for each node of a cluster, and one for all."""
    cluster = Cluster(kind, primaries=NODES)
    rows, sums = [], [0.0, 0.0]
    try:
        boards: dict[int, str] = {}
        while len(boards) < NODES:
            name = f"bench-{len(boards)}-{time.time_ns()}"
            boards.setdefault(cluster.owner(name).port, name)
        for at, (port, board) in enumerate(sorted(boards.items()), 1):
            pid = cluster.owner(board).process.pid
            others = [server.process.pid for server in cluster.servers if server.process.pid != pid]
            cores.part(pid, others)
            wires = [Wire(port) for _ in range(CLIENTS)]
            cost = cost_of(pid, wires, board, given.rounds, given.jobs)
            rows.append([f"node {at} of {NODES}", *map(number, cost), *cost.rates()])
            sums = [total + 1e6 / each for total, each in zip(sums, cost)]
            for wire in wires:
                wire.close()
        cluster.check_health()
    finally:
        cluster.close()
        cores.share()
    return [*rows, ["all nodes together", "", "", *(f"{rate:,.0f}" for rate in sums)]]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--server", choices=KINDS, default="redis82")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=5000, help="in a round (default: 5000)")
    parser.add_argument("--seconds", type=float, default=5, help="of each load (default: 5)")
    parser.add_argument("--to", type=Path, default=REPORT)
    given = parser.parse_args()
    taken = cores.taken_away()
    costs, latencies = one_core(given.server, given)
    costs += three_nodes(given.server, given)
    given.to.write_text(page(given, costs, latencies, cores.taken_away() - taken))
    print(given.to.read_text())


def page(given: argparse.Namespace, costs: Rows, latencies: Rows, taken: float) -> str:
    ways = ("singly", "by the hundred")
    head = ["where", *(f"{way}, µs" for way in ways), *(f"{way}, jobs a second" for way in ways)]
    return f"""# What one core holds, and a cluster of three

Made by `make bench-capacity` at {commit()} on {title(given.server)}: {cpu_model()},
{os.cpu_count()} cores, load at the end {os.getloadavg()[0]:.1f}; the host gave {taken:.0f} s of a core to
others meanwhile.

## CPU of a job

Microseconds of the server's main thread for one job, posted and done, payload of 100 bytes, the median of
{given.rounds} rounds of {given.jobs:,} jobs; and how many such jobs fill a second of a core. Singly:
{CLIENTS} clients with one command each under way post a job, and end one and claim the next in one command.
By the hundred: `JOB.MPOST`, `JOB.CLAIM … COUNT`, `JOB.MCONSUME`, pipelined by one client. The append-only
file is synced every second.

Each node of the cluster has a board, no file and no replica; the nodes are loaded one after another. A node
of a cluster always hands over its effects. The last row adds up what the nodes can do when each has a core.

{table(head, costs)}

## Latency under load

One client posts so many jobs a second, and ends and claims as many in one command each, in a write every
{TICK * 1000:.0f} ms, whether replies have come or not. Beside it another client takes jobs through their
life, command by command: how long one of its commands takes, as that client sees it. The rate is the one
that was reached. Commands of one write cost less than those that come singly, so the core is less busy than
above.

{table(["persistence", "jobs a second", "core busy", "p50, ms", "p99, ms"], latencies)}
"""


if __name__ == "__main__":
    main()
