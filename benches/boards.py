"""Memory of many boards, new and used: what a board takes beside its jobs. Prints, and writes no document.

.venv/bin/python benches/boards.py [--server redis82] [--boards 1000]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests" / "python"))

from harness import KINDS, Server  # noqa: E402
from memory import used_memory  # noqa: E402
from report import table  # noqa: E402
from wire import Wire, fields  # noqa: E402


def post(wire: Wire, board: str) -> None:
    wire.call("JOB.POST", board, "x" * 60)


def live(wire: Wire, board: str) -> None:
    """A job's whole life: nothing is left but the board."""
    post(wire, board)
    [job] = wire.call("JOB.CLAIM", board, "w")
    job = fields(job)
    wire.call("JOB.CONSUME", board, "w", job[b"id"], "TOKEN", job[b"token"])


def each(wire: Wire, boards: int, make) -> float:
    wire.call("FLUSHALL", "SYNC")
    before = used_memory(wire)
    for n in range(boards):
        make(wire, f"b{n}")
    return (used_memory(wire) - before) / boards


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", choices=KINDS, default="redis82")
    parser.add_argument("--boards", type=int, default=1000)
    arguments = parser.parse_args()
    server = Server(arguments.server)
    try:
        wire = Wire(server.port)
        live(wire, "warm")
        made = {"one small job waits": post, "one job was posted, claimed and consumed": live}
        rows = [[name, f"{each(wire, arguments.boards, make):,.0f}"] for name, make in made.items()]
        print(table([f"{arguments.boards:,} boards, in each of which", "bytes of used_memory each"], rows))
    finally:
        server.close()


if __name__ == "__main__":
    main()
