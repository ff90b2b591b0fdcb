"""Server CPU of a whole job beside Redis Streams, on each server: `make bench-streams`.

Three ways to talk to the server (pipelines, fifty clients with one command each under way, one client), three
sorts of persistence, and the same job singly, chained and by the hundred. All ways of a round come after one
another in an order that is drawn anew, and a ratio is that of one round: both sides share the machine's
mood. CPU is the nanoseconds of the server's main thread from the scheduler, so the clients do not count.
Writes docs/reports/streams.md.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests" / "python"))

import cores  # noqa: E402
import cycles  # noqa: E402
from harness import KINDS, Server  # noqa: E402
from jobboard.replies import unpacked  # noqa: E402
from report import commit, cpu_model, number, table  # noqa: E402
from sampling import main_thread_nanoseconds  # noqa: E402
from wire import Wire, encode, fields  # noqa: E402

REPORT = ROOT / "docs" / "reports" / "streams.md"
PERSISTENCE = ["no persistence", "append-only file", "append-only file and replica"]
CLIENTS = 50

Life = Generator[bytes, Any, None]


def board_life(jobs: int, worker: int) -> Life:
    for _ in range(jobs):
        yield encode("JOB.POST", "bench", cycles.PAYLOAD)
        [job] = yield encode("JOB.CLAIM", "bench", f"w{worker}")
        job = fields(job)
        yield encode("JOB.CONSUME", "bench", f"w{worker}", job[b"id"], "TOKEN", job[b"token"])


def chained_life(jobs: int, worker: int, board: str = "bench") -> Life:
    """The end of each job claims the next one."""
    yield encode("JOB.POST", board, cycles.PAYLOAD)
    [job] = yield encode("JOB.CLAIM", board, f"w{worker}")
    job = fields(job)
    for _ in range(jobs):
        yield encode("JOB.POST", board, cycles.PAYLOAD)
        words = ("JOB.CONSUME", board, f"w{worker}", job[b"id"], "TOKEN", job[b"token"], "CLAIM")
        _, [job] = yield encode(*words)
        job = fields(job)
    yield encode("JOB.CONSUME", board, f"w{worker}", job[b"id"], "TOKEN", job[b"token"])


def stream_life(jobs: int, worker: int, ackdel: bool) -> Life:
    for _ in range(jobs):
        yield encode("XADD", "bench", "*", "d", cycles.PAYLOAD)
        read = yield encode("XREADGROUP", "GROUP", "g", f"w{worker}", "COUNT", 1, "STREAMS", "bench", ">")
        id = read[0][1][0][0]
        for command in cycles.stream_ends([id], ackdel):
            _ = yield command


def crowd(wires: list[Wire], lives: list[Life]) -> None:
    """All clients at once, each with one command under way; they begin apart, so that commands mix."""
    waiting = dict(zip(wires, lives))
    under_way: dict[Wire, Life] = {}
    last: dict[Wire, Any] = {}
    while waiting or under_way:
        for wire in list(waiting)[: len(wires) // 4 + 1]:
            under_way[wire] = waiting.pop(wire)
        for wire, life in list(under_way.items()):
            try:
                command = life.send(last.pop(wire)) if wire in last else next(life)
            except StopIteration:
                del under_way[wire]
                continue
            wire.socket.sendall(command)
        for wire in under_way:
            last[wire] = wire.read()


def batches_packed(wire: Wire, jobs: int) -> None:
    """Records as one string, and of them what a stream's entry has, and the token."""
    cycles.board_in_batches(wire, jobs, *cycles.AS_STREAMS, "PACKED", read=unpacked)


class Side:
    """One server, with or without the module, and its clients."""

    def __init__(self, kind: str, persistence: str, module: bool) -> None:
        file = "no" if persistence == PERSISTENCE[0] else "yes"
        config = ["loglevel notice", "appendfsync everysec", f"appendonly {file}"]
        self.servers = [Server(kind, config=config, module=module)]
        if persistence == PERSISTENCE[2]:
            self.servers.append(Server(kind, config=config, module=module, replicaof=self.servers[0]))
            self.servers[1].wait_synced(self.servers[0])
        self.pid = self.servers[0].process.pid
        self.wires = [Wire(self.servers[0].port) for _ in range(CLIENTS)]

    def part(self) -> None:
        cores.part(self.pid, [server.process.pid for server in self.servers[1:]])

    def empty(self) -> None:
        self.wires[0].call("FLUSHALL")
        if len(self.servers) == 2:
            self.servers[1].wait_synced(self.servers[0])

    def knows(self, command: str) -> bool:
        return self.wires[0].call("COMMAND", "INFO", command)[0] is not None

    def close(self) -> None:
        for wire in self.wires:
            wire.close()
        for server in reversed(self.servers):
            server.close()


class Way(NamedTuple):
    """One way to take jobs from post to end: a row of the report.

    `manner` says how the clients talk to the server, `name` which commands they send, and `whose` which side
    runs them, `ours` or `theirs`. `work` takes a number of jobs through their life; a round has `jobs`.
    """

    manner: str
    name: str
    whose: str
    work: Callable[[Side, int], None]
    jobs: int

    @property
    def key(self) -> tuple[str, str, str]:
        return self.manner, self.name, self.whose


def ways(ackdel: bool, jobs: int) -> list[Way]:
    def people(count: int, life: Callable[..., Life], *words: Any) -> Callable[[Side, int], None]:
        def run(side: Side, jobs: int) -> None:
            lives = [life(jobs // count, worker, *words) for worker in range(count)]
            crowd(side.wires[:count], lives)

        return run

    def piped(work: Callable[..., None], *words: Any) -> Callable[[Side, int], None]:
        return lambda side, jobs: work(side.wires[0], jobs, *words)

    stream = f"XADD, XREADGROUP, {'XACKDEL' if ackdel else 'XACK, XDEL'}"
    some, few = jobs // 2 // CLIENTS * CLIENTS, jobs // 10
    found: list[Way] = [
        Way("pipelined", "POST, CLAIM, CONSUME", "ours", piped(cycles.board_singly), jobs),
        Way("pipelined", "POST, CONSUME with CLAIM", "ours", piped(cycles.board_chained), jobs),
        Way("pipelined", stream, "theirs", piped(cycles.stream_singly, ackdel), jobs),
        Way("by the hundred", "MPOST, CLAIM, MCONSUME", "ours", piped(cycles.board_in_batches), jobs),
        Way("by the hundred", "the same, PACKED, 3 fields", "ours", piped(batches_packed), jobs),
        Way("by the hundred", stream, "theirs", piped(cycles.stream_in_batches, ackdel), jobs),
    ]
    for manner, count, many in ((f"{CLIENTS} clients", CLIENTS, some), ("one client", 1, few)):
        found += [
            Way(manner, "POST, CLAIM, CONSUME", "ours", people(count, board_life), many),
            Way(manner, "POST, CONSUME with CLAIM", "ours", people(count, chained_life), many),
            Way(manner, stream, "theirs", people(count, stream_life, ackdel), many),
        ]
    return found


def measure(kind: str, persistence: str, rounds: int, jobs: int, draw: random.Random) -> dict:
    """Microseconds a job by manner and way, a number for each round."""
    sides = {"ours": Side(kind, persistence, True), "theirs": Side(kind, persistence, False)}
    try:
        for side in sides.values():
            side.part()
        ackdel = sides["theirs"].knows("xackdel")
        all_ways = ways(ackdel, jobs)
        spent: dict[tuple[str, str, str], list[float]] = {way.key: [] for way in all_ways}
        for turn in range(rounds + 1):
            draw.shuffle(all_ways)
            for way in all_ways:
                side = sides[way.whose]
                side.empty()
                if way.whose == "theirs":
                    side.wires[0].call("XGROUP", "CREATE", "bench", "g", "$", "MKSTREAM")
                before = main_thread_nanoseconds(side.pid)
                way.work(side, way.jobs)
                if turn:  # the first one warms up
                    spent[way.key].append((main_thread_nanoseconds(side.pid) - before) / way.jobs / 1000)
        for side in sides.values():
            side.servers[0].check_health()
        return spent
    finally:
        for side in sides.values():
            side.close()
        cores.share()


def rows(found: dict[str, dict]) -> list[list[str]]:
    """A row a way: for each persistence the microseconds and the ratio with its spread."""
    lines = []
    for manner, name, whose in next(iter(found.values())):
        line = [manner, name]
        for spent in found.values():
            mine = spent[manner, name, whose]
            cell = number(statistics.median(mine))
            if whose == "ours":
                [theirs] = [of for (how, _, who), of in spent.items() if how == manner and who == "theirs"]
                ratios = sorted(a / b for a, b in zip(mine, theirs))
                cell += f" · **{statistics.median(ratios):.2f}** ({ratios[0]:.2f} to {ratios[-1]:.2f})"
            line.append(cell)
        lines.append(line)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--server", choices=KINDS, action="append", help="(default: all three)")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--jobs", type=int, default=5000, help="in a pipelined round (default: 5000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--to", type=Path, default=REPORT)
    given = parser.parse_args()
    draw, taken = random.Random(given.seed), cores.taken_away()
    parts = []
    for kind in given.server or KINDS:
        found = {}
        for persistence in PERSISTENCE:
            found[persistence] = measure(kind, persistence, given.rounds, given.jobs, draw)
            print(f"{kind}, {persistence}: done", flush=True)
        head = ["how", "a job's life", *PERSISTENCE]
        parts.append(f"## {title(kind)}\n\n{table(head, rows(found))}\n")
        print(parts[-1], flush=True)
    given.to.write_text(page(given, parts, cores.taken_away() - taken))


def title(kind: str) -> str:
    return {"redis70": "Redis 7.0", "redis82": "Redis 8.2", "valkey91": "Valkey 9.1"}[kind]


def page(given: argparse.Namespace, parts: list[str], taken: float) -> str:
    body = "\n".join(parts)
    return f"""# Server CPU beside Redis Streams

Made by `make bench-streams` at {commit()}: {cpu_model()}, {os.cpu_count()} cores,
load at the end {os.getloadavg()[0]:.1f}; the host gave {taken:.0f} s of a core to others meanwhile.

Microseconds of the server's main thread for one job from post to end, payload of 100 bytes, the median of
{given.rounds} rounds. Behind it in bold the share of Streams' time: the median of the rounds' ratios, with
the smallest and the largest. A round of pipelines has {given.jobs:,} jobs: singly a client writes 500
commands at once, by the hundred those for 1,000 jobs, and XADD, which takes one entry, 500 at once.
{CLIENTS} clients and one client have one command each under way, as workers do. Streams ends a job with
XACKDEL where the server has it, otherwise with XACK and XDEL. The append-only file is synced every second.

Which row is yours? A worker that takes job after job is the row of {CLIENTS} clients, or of one; the packages
of this project end a job and claim the next in one command. Producers that post many jobs at once, and
workers that take batches, are the rows by the hundred.

{body}"""


if __name__ == "__main__":
    main()
