"""Jobs of five steps that wait for a signal, while workers and servers are killed: `make bench-agents`.

Each job stores five steps; after the second it waits for the signal `approved`, which another process sends,
to some of the jobs before they ask for it. Meanwhile one worker after another is killed with SIGKILL, and
with `--server-kills` the server too. Every call of a step's function writes a line into a journal before it
works. Ends with 1 when a job was lost, a signal did nothing, or the function of a step was called after its
value had been stored. Writes docs/reports/agents.md.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests" / "python"))

import redis  # noqa: E402
from harness import KINDS, Server  # noqa: E402
from jobboard import Board, Context, Worker  # noqa: E402
from report import commit, table  # noqa: E402

STEPS = ["plan", "fetch", "draft", "check", "send"]
WAIT_AFTER = "fetch"
SIGNAL = "approved"
WORK = 0.02
"""Seconds that each call of a step takes, as a call to a model or a payment would."""
EARLY = 4
"""One of so many jobs gets its signal when it is posted."""
FORK = multiprocessing.get_context("fork")


def now() -> int:
    return time.time_ns() // 1_000_000


def connected(port: int) -> Board:
    return Board("agents", redis.Redis(port=port))


def work(port: int, name: str, concurrency: int, journal: str) -> None:
    """A worker process. A line of the journal is one write, so that a kill leaves no half of one."""
    board = connected(port)
    lines = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def called(id: str, step: str) -> str:
        os.write(lines, json.dumps([id, step, now()]).encode() + b"\n")
        time.sleep(WORK)
        return f"{step} of {id}"

    @board.handler("agent")
    def agent(context: Context, payload: Any) -> str:
        for step in STEPS:
            context.step(step, called, context.id, step)
            if step == WAIT_AFTER:
                answer = context.wait_for(SIGNAL, within="1h")
                assert answer is not None and answer.value == f"yes {context.id}", answer
        return "done"

    Worker(board, name=name, concurrency=concurrency, lease="5s").run()


def approve(port: int) -> None:
    """Sends every job's signal once it waits for it."""
    board = connected(port)
    while True:
        with suppress(redis.ConnectionError, redis.TimeoutError):
            waiting = [job.id for job in islice(board.list(awaits=SIGNAL, fields=["id"]), 200)]
            random.shuffle(waiting)
            for id in waiting:
                board.signal(SIGNAL, id, value=f"yes {id}")
        time.sleep(0.01)


@dataclass
class Crew:
    """The worker processes, and who kills them."""

    port: int
    workers: int
    concurrency: int
    journal: str
    processes: dict[str, Any] = field(default_factory=dict)
    kills: int = 0

    def start(self, name: str) -> None:
        words = (self.port, name, self.concurrency, self.journal)
        process = FORK.Process(target=work, args=words, daemon=True)
        process.start()
        self.processes[name] = process

    def begin(self) -> None:
        for number in range(self.workers):
            self.start(f"agent-{number}")

    def kill_one(self, draw: random.Random) -> None:
        name = draw.choice(sorted(self.processes))
        self.processes[name].kill()
        self.processes[name].join()
        self.kills += 1
        self.start(name)

    def end(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.join()


def judge(board: Board, ids: list[str], journal: Path) -> tuple[Counter, list[str]]:
    """What is to be counted, and what must not be."""
    counted: Counter = Counter()
    wrong: list[str] = []
    calls: dict[tuple[str, str], list[int]] = {}
    for line in journal.read_text().splitlines():
        id, step, at = json.loads(line)
        calls.setdefault((id, step), []).append(at)
    for id in ids:
        job = board.get(id, fields=["state", "steps"])
        if job is None or job.state != "complete":
            wrong.append(f"job {id} is {job and job.state}")
            counted["jobs lost"] += 1
            continue
        for step in STEPS:
            stored = job.steps.get(step)
            if stored is None:
                wrong.append(f"job {id} is complete without its step {step}")
                counted["steps lost"] += 1
                continue
            begun = calls.get((id, step), [])
            counted["calls"] += len(begun)
            counted["calls that a kill cut"] += len(begun) - 1
            stored_at = stored.at
            for at in begun:
                if at > stored_at + 1:
                    wrong.append(f"job {id}: {step} was called {at - stored_at} ms after it had been stored")
                    counted["stored steps that ran again"] += 1
    return counted, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--server", choices=KINDS, default="redis82")
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kill-every", type=float, default=0.2, help="seconds between two kills of a worker")
    parser.add_argument("--server-kills", type=int, default=3, help="how often the server is killed, too")
    parser.add_argument("--to", type=Path, default=ROOT / "docs" / "reports" / "agents.md")
    given = parser.parse_args()
    draw = random.Random(given.seed)
    folder = Path(tempfile.mkdtemp(prefix="agents-"))
    journal = folder / "calls"
    journal.touch()
    server = Server(given.server, config=["appendonly yes", "appendfsync always"])
    crew = Crew(server.port, given.workers, given.concurrency, str(journal))
    try:
        board = connected(server.port)
        board.settings_set({"lapses": -1, "retain-complete": "1d", "retain-result": "1d"})
        begun = time.perf_counter()
        ids = [board.post(None, name="agent", id=f"job-{number}") for number in range(given.jobs)]
        early = ids[::EARLY]
        for id in early:
            board.signal(SIGNAL, id, value=f"yes {id}")
        crew.begin()
        approver = FORK.Process(target=approve, args=(server.port,), daemon=True)
        approver.start()
        marks = [given.jobs * (n + 1) // (given.server_kills + 1) for n in range(given.server_kills)]
        done = 0
        while done < given.jobs:
            time.sleep(given.kill_every)
            crew.kill_one(draw)
            if marks and done >= marks[0]:
                marks.pop(0)
                server.restart(kill=True)
            done = board.info()["complete"]
            print(f"{done} of {given.jobs} complete, {crew.kills} workers killed", flush=True)
        taken = time.perf_counter() - begun
        approver.kill()
        counted, wrong = judge(board, ids, journal)
    finally:
        crew.end()
        server.close()
    write(given, crew, counted, wrong, taken, len(early))
    print("\n".join(wrong[:50]))
    return 1 if wrong else 0


def write(
    given: argparse.Namespace, crew: Crew, counted: Counter, wrong: list[str], taken: float, early: int
) -> None:
    works = given.jobs * len(STEPS) * WORK / (given.workers * given.concurrency)
    rows = [
        ["jobs complete", f"{given.jobs - counted['jobs lost']:,} of {given.jobs:,}"],
        ["jobs lost", str(counted["jobs lost"])],
        ["steps lost", str(counted["steps lost"])],
        ["stored steps that ran again", str(counted["stored steps that ran again"])],
        ["calls of a step's function", f"{counted['calls']:,} for {given.jobs * len(STEPS):,} steps"],
        ["signals sent before the job asked", f"{early:,}"],
        ["workers killed", f"{crew.kills:,}"],
        ["servers killed", f"{given.server_kills}"],
        ["time", f"{taken:.1f} s"],
        ["the work alone, without kills and server", f"{works:.1f} s"],
    ]
    text = f"""# Jobs that remember and wait, under kills

Made by `make bench-agents SERVER={given.server} JOBS={given.jobs}` at {commit()}: \
{platform.machine()}, {os.cpu_count()} cores, load of the machine at the end {os.getloadavg()[0]:.1f}.

{given.workers} workers of {given.concurrency} threads run jobs of {len(STEPS)} steps, {WORK * 1000:.0f} ms \
each. After the second step a job waits for a signal. A worker is killed every {given.kill_every} s; the \
server writes each command to disk, and is killed too.

{table(["what", "result"], rows)}

A call that a kill cuts before its value is stored runs again: that is the difference of calls and steps. \
[Steps](../guides/steps.md) says what to pass to the outside world, so that such a call does no harm.
"""
    given.to.write_text(text)
    print(text)


if __name__ == "__main__":
    sys.exit(main())
