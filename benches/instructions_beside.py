"""Instructions of a whole job's life beside the peers: ratios that do not depend on the machine's mood.

    make instructions-beside [PEERS=jobboard,streams] [SERVER=redis70] [WRITE=1]

Each peer works on a server of its own under callgrind, with the pipelines of `make bench`. Counted is all
that the server's process executes: its event loop, parser, commands, effects, replies and timers. What the
kernel does for it is not counted. `WRITE=1` notes the table in docs/reports/instructions.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "python"))

import beside  # noqa: E402
import cpu  # noqa: E402
import harness.server  # noqa: E402
import peers  # noqa: E402
from callgrind import CACHES, Counter  # noqa: E402
from harness import KINDS  # noqa: E402
from instructions import BESIDE, RECORD  # noqa: E402
from report import table  # noqa: E402

NAMES = [name for name in peers.NAMES if name != "beanstalkd"]
"""Those that are a Redis server: others are not started by the harness."""
BATCHES = "jobboard, 100 a command"
SHORT_BATCHES = "jobboard, 100 in a command, records of id, token, payload"
STREAM_BATCHES = "Redis Streams, 100 a command"
JOBS = 500
"""In one round."""
WHOLE = (
    "jobboard: POST, CONSUME with CLAIM",
    SHORT_BATCHES,
    "three JOB.GET of an absent board",
    "three PING",
)
"""Cases of cpu.py that are counted as a whole, in the server of jobboard."""


class Life(NamedTuple):
    """What a job has cost."""

    spent: dict[str, float]
    """Instructions by verb."""
    missed: float
    """Lines of code that were not in the first cache."""


Lives = dict[str, Life]
"""By title."""


def measure(kind: str, names: list[str], counter: Counter) -> Lives:
    found: Lives = {}
    for name in names:
        try:
            peer = peers.find(name)(kind, False)
        except peers.Missing as reason:
            print(f"{name}: not counted: {reason}", flush=True)
            continue
        try:
            found |= counted(peer, counter, with_whole=name == "jobboard")
        finally:
            peer.close()
        print(f"{name}: counted", flush=True)
    return found


def counted(peer: peers.Peer, counter: Counter, with_whole: bool) -> Lives:
    """The second of two rounds, beside a thousand jobs that wait: what is new the first time is over."""
    peer.wire.call("CONFIG", "SET", "hz", 1)
    peer.cpu = lambda: counter.total(peer.server.process.pid) / 1e6  # `life` makes microseconds of seconds
    jobs, found = min(JOBS, peer.most), {}
    peer.empty()
    if not peer.chained:
        peer.post(beside.FEW)
    for _ in range(2):
        if peer.chained:
            peer.empty()
        missed = counter.missed
        spent = beside.life(peer, jobs)
    found[peer.title] = Life(spent, (counter.missed - missed) / jobs)
    for title in WHOLE if with_whole else ():
        prepare, cycle = cpu.CASES[title]
        prepare(peer.wire)
        for _ in range(2):
            before, missed = peer.cpu(), counter.missed
            cycle(peer.wire, jobs)
            spent = {"whole": (peer.cpu() - before) / jobs * 1e6}
        found[title] = Life(spent, (counter.missed - missed) / jobs)
    return found


def text(found: Lives) -> str:
    whole = {title: sum(life.spent.values()) for title, life in found.items()}
    streams = whole.get("Redis Streams")
    rows = []
    for title, (verbs, missed) in found.items():
        columns = [f"{verbs[verb]:,.0f}" if verb in verbs else "-" for verb in ("post", "claim", "end")]
        if "claim and end" in verbs:
            columns[2] = f"both: {verbs['claim and end']:,.0f}"
        ratio = f"{whole[title] / streams:.2f}" if streams else "-"
        rows.append([title, *columns, f"{whole[title]:,.0f}", ratio, f"{missed:,.0f}"])
    head = ["instructions a job", "post", "claim", "end", "whole life", "of Streams", "lines missed"]
    parts = [table(head, rows)]
    if all(title in whole for title in (BATCHES, SHORT_BATCHES, STREAM_BATCHES)):
        ours, short = (f"{whole[title] / whole[STREAM_BATCHES]:.2f}" for title in (BATCHES, SHORT_BATCHES))
        against = "A hundred in a command, against Streams by the hundred"
        parts.append(f"{against}: {ours}, with records of id, token and payload {short}.")
    return "\n\n".join(parts)


HEAD = f"""{BESIDE}
All that the server's process executes for a job, with its event loop, its parser and its replies, and without
the kernel's part: pipelines of up to 500 commands (RQ: one write at a time), payloads of 100 bytes, 1,000
jobs waiting. Counted by `make instructions-beside`; two runs differ by 1 to 2 %, in batches by up to 6.

The last column is what instructions do not show: lines of code (64 bytes) that are not in a first cache of
32 KiB when they are needed, in a simulation of it. A single command of ours runs once through more code than
that; a batch runs in a loop that fits, and so does most of what the server does for Streams.

"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", choices=KINDS, default="redis70")
    parser.add_argument("--peers", default=",".join(NAMES), help="which (default: all)")
    parser.add_argument("--write", action="store_true", help=f"note the table in {RECORD.name}")
    arguments = parser.parse_args()
    names = arguments.peers.split(",")
    with tempfile.TemporaryDirectory() as folder:
        counter = Counter(Path(folder), *CACHES)
        harness.server.WRAP[:] = counter.command
        found = measure(arguments.server, names, counter)
    print("\n" + text(found))
    if arguments.write:
        RECORD.write_text(RECORD.read_text().partition(BESIDE)[0] + HEAD + text(found) + "\n")


if __name__ == "__main__":
    main()
