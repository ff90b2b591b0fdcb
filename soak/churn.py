"""A soak: one server under churn of every sort at a steady population, for as long as it is told.

    make soak [SECONDS=3600] [SERVER=redis70|redis82|valkey91] [SEED=n] [REPORT=file]

Producers keep every queue as full as it shall be; workers, waiting clients, operators and short-lived boards
come and go. What is sampled meanwhile is judged at the end: memory, indexes, latency, lateness, and whether
the counts are the truth. Ends with 1 when a verdict is bad.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
for folder in ("tests/python", "chaos", "soak"):
    sys.path.insert(0, str(ROOT / folder))

import report  # noqa: E402
import truth  # noqa: E402
from client import PROBE, Client  # noqa: E402
from harness import KINDS, Server  # noqa: E402
from probes import EVERY, Probe  # noqa: E402
from producers import Producer, settle  # noqa: E402
from verdicts import Measured, Quarters, Verdict, steady  # noqa: E402
from visitors import Visitor  # noqa: E402
from watch import Watch, memory  # noqa: E402
from workers import Worker  # noqa: E402

FORK = multiprocessing.get_context("fork")
PLAYERS: list[tuple[type[Client], str]] = [
    (Producer, "fill"),
    (Worker, "batches"),
    (Worker, "batches"),
    (Worker, "chain"),
    (Worker, "chain"),
    (Worker, "failing"),
    (Worker, "failing"),
    (Worker, "tenants"),
    (Worker, "sessions"),
    (Worker, "heard"),
    (Visitor, "waits"),
    (Visitor, "listens"),
    (Visitor, "registers"),
    (Visitor, "operates"),
    (Visitor, "boards"),
    (Probe, "ping"),
    (Probe, "verbs"),
    (Probe, "due"),
    (Probe, "lapses"),
    (Probe, "schedule"),
]
"""Who plays, each in a process of its own: a class and the method that is one turn."""


def play(player: type[Client], turn: str, folder: Path, words: tuple) -> None:
    client = player(*words)
    if isinstance(client, Probe):
        client.folder = folder
    client.live(getattr(client, turn), getattr(client, "leaves", None))


class Soak:
    """One run. `scale` makes all populations smaller or larger."""

    def __init__(self, kind: str, seconds: float, seed: int, scale: float = 1.0) -> None:
        self.seconds, self.seed, self.scale = seconds, seed, scale
        self.server = Server(kind)
        self.folder = tempfile.TemporaryDirectory(prefix="soak-")
        self.counts: Counter = Counter()
        self.wrong: list[str] = []
        self.before = memory(self.server)
        with self.server.connect() as client:
            settle(client)
            client.execute_command(
                "JOB.SCHEDULE",
                "SET",
                PROBE,
                "tick",
                "x",
                "EVERY",
                EVERY,
                "QUEUE",
                "schedule",
                "BACKLOG",
                "ALL",
            )
        self.watch = Watch(self.server)

    def run(self, show: bool = True, wanted: Collection[str] = ()) -> list[Verdict]:
        """Runs the clients and judges what they did: the verdicts.

        The clients run for `seconds`, and longer until each name in `wanted` has been measured.
        """
        stop, told = FORK.Event(), FORK.Queue()
        players = []
        for number, (player, turn) in enumerate(PLAYERS):
            words = (self.server.port, f"{turn}-{number}", self.seed, self.scale, stop, told)
            process = FORK.Process(
                target=play, args=(player, turn, Path(self.folder.name), words), daemon=True
            )
            process.start()
            players.append(process)
        pause = min(5.0, self.seconds / 40)
        while True:
            sample = self.watch.look()
            enough = sample.at >= self.seconds and self.measured().keys() >= set(wanted)
            if enough or not all(player.is_alive() for player in players):
                break
            if show:
                numbers = sample.numbers
                print(
                    f"{sample.at:6.0f} s  {numbers['records']:8.0f} records"
                    f"  {numbers['used_memory']:12.0f} used  {numbers['rss']:12.0f} RSS",
                    flush=True,
                )
            time.sleep(pause)
        stop.set()
        self.collect(told, players)
        self.quarters = Quarters(self.watch.samples, self.measured(), self.watch.samples[-1].at)
        return [*steady(self.quarters), *truth.verdicts(self)]

    def collect(self, told: Any, players: list) -> None:
        for _ in players:
            name, counts, wrong = told.get(timeout=60)
            self.counts += counts
            if wrong:
                self.wrong.append(wrong)
        for process in players:
            process.join()

    def measured(self) -> Measured:
        """What the probes have written, by what they measured."""
        found: Measured = {}
        for path in Path(self.folder.name).iterdir():
            for line in path.read_text().splitlines():
                what, at, value = line.rsplit(" ", 2)
                found.setdefault(what, []).append((float(at) - self.watch.begin, float(value)))
        return found

    def close(self) -> None:
        self.server.close()
        self.folder.cleanup()


def named(server: Server) -> str:
    info = server.info()
    name, key = ("Valkey", "valkey_version") if "valkey_version" in info else ("Redis", "redis_version")
    return f"{name} {info[key]} with {info['mem_allocator']}"


def main() -> int:
    parser = argparse.ArgumentParser(description="One server under churn, and whether it stays as it was.")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--server", choices=KINDS, default="redis82")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--scale", type=float, default=1.0, help="of all populations (default: 1)")
    parser.add_argument("--report", type=Path, help="write a page of Markdown here")
    arguments = parser.parse_args()
    command = f"make soak SECONDS={arguments.seconds:g} SERVER={arguments.server} SEED={arguments.seed}"
    print(command, flush=True)
    soak = Soak(arguments.server, arguments.seconds, arguments.seed, arguments.scale)
    try:
        title = f"# Soak\n\n`{command}` on {named(soak.server)}."
        verdicts = soak.run()
        text = report.page(title, soak.quarters, soak.counts, verdicts, soak.wrong)
    finally:
        soak.close()
    print(text, flush=True)
    if arguments.report:
        arguments.report.write_text(text)
    return int(bool(soak.wrong) or not all(verdict.good for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main())
