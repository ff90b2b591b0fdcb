"""Our worker in Node beside BullMQ's: a part of docs/reports/workers.md.

    make bench-node [SERVER=redis82] [JOBS=5000]

Jobs have a payload of about a kilobyte and a small result. Rate and CPU are taken as bench.py takes them,
at the same concurrency. Pick-up: from a post until its handler is called, one job at a time. Recovery: from
the SIGKILL of a worker in mid-job until another one, which waits, is called with it; each library with its
defaults, which are 30 s of lease and lock.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from bench import REPORT, ROOT, Found, await_count, cpu_of_server, cpu_of_tree
from harness import KINDS, Server
from report import commit

HERE = Path(__file__).resolve().parent / "node"
MARKS = ("<!-- node -->", "<!-- /node -->")
PEERS = ROOT / "target" / "bench"
PROGRAMS = {"jobboard": "jobboard.mjs", "BullMQ": "bullmq.cjs"}
WAYS = [
    ("jobboard", 1, "{}"),
    ("jobboard", 1, '{"prefetch": 100}'),
    ("BullMQ", 1, ""),
    ("jobboard", 10, "{}"),
    ("BullMQ", 10, ""),
    ("jobboard", 100, "{}"),
    ("BullMQ", 100, ""),
]
RECOVERIES = [("jobboard", "{}"), ("jobboard", '{"session": true}'), ("BullMQ", "")]


class Node:
    """Programs of both libraries on one server."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server, self.count = server, folder / "count"
        self.log = folder / "log"
        self.environment = {
            **os.environ,
            "BENCH_PORT": str(server.port),
            "BENCH_PEERS": str(PEERS),
            "BENCH_COUNT": str(self.count),
        }

    def words(self, library: str, *words: object) -> list[str]:
        return ["node", PROGRAMS[library], *map(str, words)]

    def asked(self, library: str, *words: object) -> str:
        found = self.words(library, *words)
        return subprocess.run(
            found, cwd=HERE, env=self.environment, stdout=subprocess.PIPE, text=True, check=True
        ).stdout

    @contextmanager
    def running(
        self, library: str, *words: object, output: IO[bytes] | int
    ) -> Iterator[subprocess.Popen[bytes]]:
        process = subprocess.Popen(
            self.words(library, *words),
            cwd=HERE,
            env=self.environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def cost(self, library: str, concurrency: int, options: str, jobs: int) -> Found:
        self.server.flush()
        self.count.unlink(missing_ok=True)
        self.asked(library, "post", jobs)
        with (
            self.log.open("wb") as log,
            self.running(library, "work", concurrency, options, output=log) as worker,
        ):
            first = await_count(self.count, jobs // 5, worker, self.count.parent)
            begin = time.perf_counter(), cpu_of_tree(worker.pid), cpu_of_server(self.server)
            last = await_count(self.count, jobs, worker, self.count.parent)
            end = time.perf_counter(), cpu_of_tree(worker.pid), cpu_of_server(self.server)
        seconds, own, servers = (after - before for after, before in zip(end, begin))
        done = last - first
        return Found(done / seconds, own / done * 1e6, servers / done * 1e6)

    def latency(self, library: str, samples: int) -> list[float]:
        self.server.flush()
        found: list[float] = json.loads(self.asked(library, "latency", samples))
        return found

    def recovery(self, library: str, options: str) -> float:
        """Seconds until another worker is called with the job of one that was killed."""
        self.server.flush()
        self.asked(library, "post", 1)
        with self.running(library, "hold", options, output=subprocess.PIPE) as first:
            assert first.stdout
            first.stdout.readline()
            with self.running(library, "hold", options, output=subprocess.PIPE) as second:
                time.sleep(2)  # it waits for jobs
                first.kill()
                killed = time.perf_counter()
                assert second.stdout
                second.stdout.readline()
                return time.perf_counter() - killed


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def table(
    costs: dict[tuple[str, int, str], list[Found]], picks: dict[str, list[float]], recoveries: list[list[str]]
) -> str:
    lines = [
        "| worker | concurrency | jobs a second | CPU of the worker, µs a job | CPU of the server, µs a job "
        "| jobs a CPU second |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for (library, concurrency, options), all_found in costs.items():
        rate, own, server = (statistics.median(values) for values in zip(*all_found))
        cpu_second = 1e6 / (own + server)
        numbers = f"{rate:,.0f} | {own:,.0f} | {server:,.0f} | {cpu_second:,.0f}"
        how = f"{concurrency}, `prefetch: 100`" if "prefetch" in options else concurrency
        lines.append(f"| {library} | {how} | {numbers} |")
    lines += ["", "| worker | pick-up p50 | p99 |", "|---|---:|---:|"]
    for library, found in picks.items():
        lines.append(f"| {library} | {percentile(found, 0.5):.2f} ms | {percentile(found, 0.99):.2f} ms |")
    lines += ["", "| worker | options | a killed worker's job runs again after |", "|---|---|---:|"]
    lines += [f"| {library} | {how} | {after} |" for library, how, after in recoveries]
    return "\n".join(lines)


def version() -> str:
    bullmq = json.loads((PEERS / "node_modules" / "bullmq" / "package.json").read_text())["version"]
    ours = json.loads((ROOT / "clients" / "typescript" / "package.json").read_text())["version"]
    node = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    return f"jobboard {ours}, BullMQ {bullmq}, Node {node.removeprefix('v')}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures our worker in Node beside BullMQ's.")
    parser.add_argument("--server", choices=KINDS, default="redis82")
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--quick", action="store_true", help="prints rates and CPU only")
    arguments = parser.parse_args()
    costs: dict[tuple[str, int, str], list[Found]] = {}
    picks: dict[str, list[float]] = {}
    recoveries: list[list[str]] = []
    with tempfile.TemporaryDirectory(prefix="jobboard-bench-") as folder:
        server = Server(arguments.server)
        try:
            node = Node(server, Path(folder))
            for number in range(arguments.rounds):
                for way in WAYS:
                    one = node.cost(*way, jobs=arguments.jobs)
                    costs.setdefault(way, []).append(one)
                    shown = f"{one.rate:9,.0f} {one.worker:7,.0f} {one.server:7,.0f}"
                    print(f"{number} {way[0]:9} {way[1]:4} {shown}", flush=True)
            if not arguments.quick:
                picks = {library: node.latency(library, arguments.samples) for library in PROGRAMS}
                for library, options in RECOVERIES:
                    seconds = node.recovery(library, options)
                    how = "`session: true`" if "session" in options else "none"
                    recoveries.append([library, how, f"{seconds * 1000:,.0f} ms"])
            name = server.info("server")["redis_version"]
        finally:
            server.close()
    command = f"make bench-node SERVER={arguments.server} JOBS={arguments.jobs}"
    section = f"""{MARKS[0]}
## In Node, beside BullMQ

Jobs with a payload of a kilobyte and a small result, by `{command}` at {commit()}, on Redis {name}: \
medians of {arguments.rounds} rounds. {version()}.

{table(costs, picks, recoveries)}
{MARKS[1]}
"""
    print(section)
    if arguments.quick:
        return
    text = REPORT.read_text()
    begin, end = (text.find(mark) for mark in MARKS)
    if 0 <= begin < end:
        text = text[:begin] + section.rstrip("\n") + text[end + len(MARKS[1]) :]
    else:
        text = text.rstrip("\n") + "\n\n" + section
    REPORT.write_text(text)
    print(f"Written to {REPORT.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
