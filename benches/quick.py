"""A small selection of `make bench` in about a minute: `make bench-quick`. Prints, and writes no document.

make bench-quick [SERVER=redis70|redis82|valkey91] [PEERS=jobboard,streams]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests" / "python"))

import beside  # noqa: E402
import peers  # noqa: E402
import tables  # noqa: E402
from harness import KINDS  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", choices=KINDS, default="redis70")
    parser.add_argument("--peers", default=",".join(peers.NAMES))
    parser.add_argument("--many", type=int, default=20_000)
    parser.add_argument("--most", type=int, default=0, help="growth to so many (default: none)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=50)
    arguments = parser.parse_args()
    names = arguments.peers.split(",")
    sizes = beside.Sizes(arguments.many, arguments.most, arguments.rounds, arguments.samples)
    found = beside.measure(arguments.server, names, sizes, durable=False)
    print()
    print(tables.text(found, arguments.many, durable=False))


if __name__ == "__main__":
    main()
