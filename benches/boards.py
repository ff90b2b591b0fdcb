"""Memory of boards and of jobs, and what MEMORY USAGE says of it. Prints, and writes no document.

.venv/bin/python benches/boards.py [--server redis82] [--boards 1000] [--jobs 200000]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests" / "python"))

from harness import KINDS, Server  # noqa: E402
from memory import used_memory  # noqa: E402
from report import table  # noqa: E402
from wire import Wire, encode, fields  # noqa: E402

PAYLOAD = "x" * 100
BATCH = 1000
LONG = 1 << 30


def post(wire: Wire, board: str) -> None:
    wire.call("JOB.POST", board, "x" * 60)


def live(wire: Wire, board: str) -> None:
    """A job's whole life: nothing is left but the board."""
    post(wire, board)
    [job] = wire.call("JOB.CLAIM", board, "w")
    job = fields(job)
    wire.call("JOB.CONSUME", board, "w", job[b"id"], "TOKEN", job[b"token"])


def empty(wire: Wire, board: str) -> None:
    """Nothing has ever been posted: there is a board because it has a setting."""
    wire.call("JOB.SETTINGS", "SET", board, "lease", 40_000)


def many_lives(wire: Wire, board: str, jobs: int = BATCH) -> None:
    """Most jobs are deleted while they wait; the last lives to its end. The board remembers none of them."""
    wire.call("JOB.SETTINGS", "SET", board, "tombstones", 0)
    ids = [id for _ in range(0, jobs, BATCH) for id in waiting(wire, board, BATCH)]
    for start in range(0, len(ids), BATCH):
        wire.call("JOB.DELETE", board, BATCH, *ids[start : start + BATCH])
    live(wire, board)


def waiting(wire: Wire, board: str, jobs: int, *options: object) -> list[bytes]:
    words = encode("JOB.MPOST", board, BATCH, *[PAYLOAD] * BATCH, *options)
    return [id for ids in wire.pipeline([words] * (jobs // BATCH), 10) for id in ids]


def chosen(wire: Wire, board: str, jobs: int) -> None:
    wire.pipeline(encode("JOB.POST", board, PAYLOAD, "ID", f"{n:020}") for n in range(jobs))


def claimed(wire: Wire, board: str, jobs: int) -> None:
    waiting(wire, board, jobs)
    wire.pipeline([encode("JOB.CLAIM", board, "w", "COUNT", BATCH, "LEASE", LONG)] * (jobs // BATCH), 10)


def kept(wire: Wire, board: str, jobs: int) -> None:
    wire.call("JOB.SETTINGS", "SET", board, "keep-complete", LONG)
    waiting(wire, board, jobs, "RETAIN", LONG)
    for _ in range(0, jobs, BATCH):
        wire.call("JOB.CLAIM", board, "w", "COUNT", BATCH, "LEASE", LONG)
        wire.call("JOB.MCONSUME", board, "w", "ALL")


def used_when_empty(wire: Wire) -> int:
    wire.call("FLUSHALL", "SYNC")
    return used_memory(wire)


@contextmanager
def another(wire: Wire) -> Iterator[Wire]:
    """Another connection, whose buffers are gone at the end."""
    worker = Wire(wire.socket.getpeername()[1])
    yield worker
    worker.socket.close()
    while len(wire.call("CLIENT", "LIST").splitlines()) > 1:
        time.sleep(0.01)


def usage(wire: Wire, board: str) -> int:
    return wire.call("MEMORY", "USAGE", board)


def boards_each(wire: Wire, boards: int, make: Callable[[Wire, str], None]) -> tuple[float, float]:
    """The growth of used_memory for each board, and what MEMORY USAGE says of one."""
    before = used_when_empty(wire)
    with another(wire) as worker:
        for n in range(boards):
            make(worker, f"b{n:04}")
    return (used_memory(wire) - before) / boards, usage(wire, "b0000")


def jobs_each(wire: Wire, jobs: int, make: Callable[[Wire, str, int], object]) -> tuple[float, float]:
    """The same for each job of one board."""
    used_when_empty(wire)
    post(wire, "b")
    before, said = used_memory(wire), usage(wire, "b")
    with another(wire) as worker:
        make(worker, "b", jobs)
    return (used_memory(wire) - before) / jobs, (usage(wire, "b") - said) / jobs


BOARDS: dict[str, Callable[[Wire, str], None]] = {
    "a setting, no job": empty,
    "one small job waits": post,
    "one job was posted, claimed and consumed": live,
    "a thousand jobs were posted and deleted, one was consumed": many_lives,
}
JOBS: dict[str, Callable[[Wire, str, int], object]] = {
    "waiting": waiting,
    "waiting, with an id of 20 bytes of the client's": chosen,
    "claimed": claimed,
    "complete, kept by RETAIN": kept,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", choices=KINDS, default="redis82")
    parser.add_argument("--boards", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=200_000)
    arguments = parser.parse_args()
    server = Server(arguments.server)
    try:
        wire = Wire(server.port)
        live(wire, "warm")
        rows = []
        for name, make in BOARDS.items():
            used, said = boards_each(wire, arguments.boards, make)
            rows.append([name, f"{used:,.0f}", f"{said:,.0f}", f"{said / used - 1:+.1%}"])
        head = ["of used_memory, each", "MEMORY USAGE", "off by"]
        print(table([f"{arguments.boards:,} boards, in each of which", *head], rows), end="\n\n")
        rows = []
        for name, make_jobs in JOBS.items():
            used, said = jobs_each(wire, arguments.jobs, make_jobs)
            rows.append([name, f"{used:,.1f}", f"{said:,.1f}", f"{said / used - 1:+.1%}"])
        print(table([f"{arguments.jobs:,} jobs of {len(PAYLOAD)} bytes", *head], rows))
    finally:
        server.close()


if __name__ == "__main__":
    main()
