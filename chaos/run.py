"""Chaos: producers and workers at work, servers and workers killed under them, and a checker that judges.

    make chaos [SECONDS=60] [SEED=n] [SERVER=redis70|redis82|valkey91]

First on one server that writes every command to disk, then on one whose machine's clock makes steps, then on
one whose append-only file and replicas come and go, then on a primary with two replicas and three Sentinels.
All of them talk over links that are made slow, stand still or break. The seed draws every deed and every
client's choices; the moments are the machine's. Ends with 1 when a promise was broken, and then leaves the
journals, and the servers' logs and files, where it says.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "python"))
sys.path.insert(0, str(ROOT / "chaos"))

import actors  # noqa: E402
import agents  # noqa: E402
import family  # noqa: E402
import flow  # noqa: E402
import journal  # noqa: E402
from checker import Checker  # noqa: E402
from expect import check_consistent  # noqa: E402
from harness import KINDS, wait_until  # noqa: E402
from nemesis import Nemesis  # noqa: E402
from servers import Site  # noqa: E402

SORTS = ["plain", "plain", "batch", "lingering", "blocking", "session", "chained"]
SITES = {
    "one": ("One server, every command on disk", {}),
    "clock": ("One server whose machine's clock makes steps", {"steps": True}),
    "listeners": ("One server whose file and replicas come and go", {"listeners": True}),
    "replicated": ("Three servers, three Sentinels", {"replicated": True}),
}
FORK = multiprocessing.get_context("fork")


@dataclass
class Player:
    """A client process, and how to start it anew."""

    target: Callable
    words: tuple
    process: Any = None


class Run:
    """One run on one site."""

    def __init__(
        self,
        kind: str,
        seconds: float,
        seed: int,
        replicated: bool = False,
        steps: bool = False,
        listeners: bool = False,
    ) -> None:
        self.seconds, self.seed = seconds, seed
        self.folder = Path(tempfile.mkdtemp(prefix="chaos-"))
        self.site = Site(kind, self.folder, replicated, steps, listeners)
        self.actors: dict[str, Player] = {}
        self.nemesis = Nemesis(self, seed)
        self.lives: Counter = Counter()
        self.counted: Counter = Counter()

    def start(self, name: str) -> None:
        player = self.actors[name]
        life = self.lives[name] = self.lives[name] + 1
        words = (str(self.folder), f"{name}-{life}", self.seed, self.site.replicated, *player.words)
        player.process = FORK.Process(target=player.target, args=words, daemon=True)
        player.process.start()

    def respawn(self, name: str) -> None:
        """Kills a client with SIGKILL; another takes its place."""
        self.actors[name].process.kill()
        self.actors[name].process.join()
        self.start(name)

    def play(self, wanted: Collection[str] = ()) -> list[str]:
        """Runs the clients, strikes, and judges: one sentence for each broken promise.

        After the last strike the clients run until the checker has counted each of `wanted` at least once.
        """
        with self.site.primary.connect() as client:
            client.execute_command("JOB.SETTINGS", "SET", "chaos", "lapses", -1, "retries", -1)
            client.execute_command(
                "JOB.SETTINGS", "SET", "chaos", "QUEUE", "limited", "concurrency", actors.LIMIT
            )
            client.execute_command(
                *("JOB.SETTINGS", "SET", "chaos", "QUEUE", "ordered", "GROUP", "*", "ordered", 1)
            )
            client.execute_command(
                "JOB.SCHEDULE", "SET", "chaos", "tick", "x", "EVERY", 200, "BACKLOG", "all"
            )
            flow.settle(client)
            if self.site.replicated:
                client.execute_command("WAIT", 2, 5000)
        for number in range(2):
            self.actors[f"producer-{number}"] = Player(actors.produce, ())
        for number, sort in enumerate(SORTS):
            self.actors[f"worker-{number}-{sort}"] = Player(actors.work, (sort,))
        for number in range(2):
            self.actors[f"agent-{number}"] = Player(agents.remember, ())
        self.actors["approver"] = Player(agents.approve, ())
        for number in range(3):
            self.actors[f"patient-{number}"] = Player(flow.produce, ())
        self.actors["producer-parents"] = Player(family.produce, ())
        for number in range(2):
            self.actors[f"parent-{number}"] = Player(family.split, ())
        for queue in (flow.NARROW, flow.LETTERS, flow.WRITTEN, family.CHILDREN):
            self.actors[f"worker-{queue}"] = Player(flow.work, (queue,))
        self.actors["sexton"] = Player(flow.send_back, ())
        self.actors["reader"] = Player(flow.read, ())
        for name in self.actors:
            self.start(name)
        try:
            self.strike()
            if wanted:
                self.site.heal()
                wait_until(lambda: self.count() >= set(wanted), what=f"each of {wanted} has been counted")
            gone = [name for name, player in self.actors.items() if player.process.exitcode]
        finally:
            for player in self.actors.values():
                player.process.kill()
                player.process.join()
        self.site.heal()
        self.drain()
        return [f"{name} has ended by itself" for name in gone] + self.judge()

    def strike(self) -> None:
        """Lets the nemesis act again and again, for `seconds`."""
        until = time.monotonic() + self.seconds
        while time.monotonic() < until:
            time.sleep(self.nemesis.random.uniform(0.05, 0.6))
            print(f"\r  {until - time.monotonic():4.0f} s  {self.nemesis.act():<16}", end="", flush=True)
        print("\r" + " " * 40 + "\r", end="")

    def count(self) -> set[str]:
        """The names of what the checker counts in the journals so far."""
        checker = Checker(journal.read(self.folder), self.site.replicated)
        checker.check()
        return {what for what, n in checker.counted.items() if n}

    def drain(self) -> None:
        """Takes whatever is left, as one last worker."""
        last = actors.Actor(str(self.folder), "last", self.seed, self.site.replicated)
        last.connect().client.execute_command("JOB.RESUME", actors.BOARD)
        last.connect().client.execute_command("JOB.SCHEDULE", "PAUSE", actors.BOARD, "tick")
        about = {"worker": "last", "lease": 60_000, "session": False}
        words = ["QUEUES", 0, "COUNT", 100, "LEASE", 60_000, "FIELDS", 3, "id", "token", "queue"]

        def empty() -> bool:
            got = last.call(
                "claim", about, lambda b: b.client.execute_command("JOB.CLAIM", b.key, "last", *words)
            )
            for job in got or []:
                done = {"id": job["id"], "token": job["token"], "worker": "last"}
                last.call("consume", done, lambda b, j=job: b.consume("last", j["id"], token=j["token"]))
            last.connect().call("SIGNAL", agents.SIGNAL, "WHERE", "AWAITS", agents.SIGNAL)
            # A letter that failed in the dead queue too has failed for good: it is there, but not ready.
            last.connect().call("REQUEUE", "WHERE", "STATE", "failed")
            return last.connect().count() == 0

        # What the workers have left undone may be much.
        wait_until(empty, 60 + self.seconds, what="the board is empty")

    def judge(self) -> list[str]:
        self.site.heal()
        wrong = []
        boards = [server.board(actors.BOARD) for server in self.site.servers]
        check_consistent(self.site.primary.board(actors.BOARD))
        if len({board.digest() for board in boards}) != 1:
            wrong.append(f"the copies differ: {[board.info() for board in boards]}")
        for server in self.site.servers:
            server.check_health()
        if self.site.listeners:
            self.nemesis.bring_replica()
            wrong += self.nemesis.wrong
        steps = self.site.steps
        moments = (steps.jumps, steps.backs) if steps is not None else ()
        checker = Checker(journal.read(self.folder), self.site.replicated, *moments)
        wrong += checker.check() + (steps.wrong if steps is not None else [])
        self.counted = checker.counted
        self.counted["calls"] = len(checker.calls)
        self.counted["calls of which nobody knows the end"] = sum(
            not call.answered and not call.refused for call in checker.calls
        )
        self.counted["changes of the primary"] = len(self.site.changes) - 1
        return wrong

    def close(self, keep: bool) -> None:
        if keep:
            self.site.keep(self.folder)
        self.site.close()
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)


def told(title: str, counts: Counter) -> str:
    rows = "\n".join(f"| {what} | {n} |" for what, n in sorted(counts.items()))
    return f"| {title} | |\n| --- | ---: |\n{rows}\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Kills servers and workers, and checks that nothing is lost."
    )
    parser.add_argument("--seconds", type=float, default=60, help="of each of the runs (default: 60)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--server", choices=KINDS, default="redis70")
    parser.add_argument("--only", choices=list(SITES))
    parser.add_argument("--report", type=Path, help="write a page of Markdown here")
    arguments = parser.parse_args()
    command = f"make chaos SECONDS={arguments.seconds:g} SEED={arguments.seed} SERVER={arguments.server}"
    print(f"{command}", flush=True)
    page = [f"`{command}`\n"]
    broken = False
    for name, (title, site) in SITES.items():
        if arguments.only not in (None, name):
            continue
        run = Run(arguments.server, arguments.seconds, arguments.seed, **site)
        wrong = ["the run did not end"]
        try:
            wrong = run.play()
        finally:
            run.close(keep=bool(wrong))
        text = f"## {title}\n\n{told('injected', run.nemesis.done)}\n{told('counted', run.counted)}"
        text += (
            "\n" + ("\n".join(f"- {line}" for line in wrong) if wrong else "Nothing was found wrong.") + "\n"
        )
        print(text, flush=True)
        page.append(text)
        if wrong:
            print(f"the journals, logs and files of the servers are in {run.folder}", flush=True)
            broken = True
    if arguments.report:
        arguments.report.write_text("\n".join(page))
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
