"""What each verb costs while more and more jobs wait, one a command: `make bench-growth [MANY=10000000]`."""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "python"))

import beside  # noqa: E402
from peers import PAYLOAD, jobboard  # noqa: E402
from report import number, table  # noqa: E402
from wire import encode  # noqa: E402

FILL = encode("JOB.MPOST", jobboard.BOARD, 100, *[PAYLOAD] * 100)


def main() -> None:
    parser = argparse.ArgumentParser(description="Cost of a verb by the number of jobs that wait.")
    parser.add_argument("--server", default="redis70")
    parser.add_argument("--many", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=20, help="of a thousand jobs each (default: 20)")
    arguments = parser.parse_args()
    peer, rows = jobboard.Peer(arguments.server, False), []
    try:
        there = 0
        for waiting in sorted({beside.FEW, 1_000_000, arguments.many}):
            beside.in_parts(lambda count: peer.wire.pipeline([FILL] * (count // 100), 10), waiting - there)
            there = waiting
            lives = beside.lives(peer, beside.FEW, arguments.rounds)
            costs = [statistics.median(values) for values in lives.values()]
            rows.append([f"{waiting:,}", *map(number, costs), number(peer.memory() / waiting)])
            print(f"{waiting:,} waiting: measured", flush=True)
    finally:
        peer.close()
    print(
        f"\nµs of CPU of the server's main thread, median of {arguments.rounds} rounds; {arguments.server}.\n"
    )
    print(table(["waiting", *peer.verbs, "bytes of the server a job"], rows))


if __name__ == "__main__":
    main()
