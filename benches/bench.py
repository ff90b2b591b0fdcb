"""Measures jobboard beside its peers and by itself: docs/reports/benchmarks.md and the plots beside it.

    make bench [SERVER=redis70|redis82|valkey91] [JOBS=100000] [MANY=1000000] [MOST=10000000] [DURABLE=1]

CPU is that of the server's main thread (INFO cpu), so the client does not count. The text between the two
`kept` marks of the document is written by hand and stays.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests" / "python"))

import beside  # noqa: E402
import cores  # noqa: E402
import cpu  # noqa: E402
import cycles  # noqa: E402
import due  # noqa: E402
import memory  # noqa: E402
import peers  # noqa: E402
import tables  # noqa: E402
import targets  # noqa: E402
import waiters  # noqa: E402
from harness import KINDS, Server  # noqa: E402
from report import commit, cpu_model  # noqa: E402
from wire import Wire  # noqa: E402

REPORT = ROOT / "docs" / "reports" / "benchmarks.md"
KEPT = ("<!-- kept -->", "<!-- /kept -->")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures jobboard beside Streams.")
    parser.add_argument("--server", choices=KINDS, default="redis70")
    parser.add_argument("--jobs", type=int, default=100_000, help="jobs in one round (default: 100000)")
    parser.add_argument("--many", type=int, default=1_000_000, help="jobs that wait (default: 1000000)")
    parser.add_argument("--most", type=int, default=10_000_000, help="growth to so many (default: 10000000)")
    parser.add_argument("--rounds", type=int, default=7, help="rounds beside the peers (default: 7)")
    parser.add_argument("--samples", type=int, default=500, help="samples of a latency (default: 500)")
    parser.add_argument("--peers", default=",".join(peers.NAMES), help="which (default: all)")
    parser.add_argument(
        "--durable", action="store_true", help="again with append-only file and replica, a tenth of the jobs"
    )
    arguments = parser.parse_args()
    start, taken = time.monotonic(), cores.taken_away()
    waiters.allow_connections(waiters.MANY)  # before the server starts: it inherits the limit
    server = Server(arguments.server, config=["loglevel notice", f"maxclients {waiters.MANY + 100}"])
    cores.part(server.process.pid)
    try:
        first, parts, own = measure(server, arguments)
        server.check_health()
    finally:
        server.close()
        cores.share()
    of_peers, found = measure_peers(arguments)
    minutes, taken = (time.monotonic() - start) / 60, cores.taken_away() - taken
    first += f"It took {minutes:.0f} minutes, in which the host gave {taken:.0f} s of a core to others.\n"
    text = "\n".join([first, targets.text(found, own), kept(), *parts, *of_peers])
    REPORT.write_text(text)
    print(f"\nWritten to {REPORT.relative_to(ROOT)}")


def measure(server: Server, arguments: argparse.Namespace) -> tuple[str, list[str], dict]:
    wire = Wire(server.port)
    first, parts, own = head(server, arguments), [], {}

    def server_cpu() -> str:
        jobs = arguments.jobs - arguments.jobs % cycles.BATCH
        own["cpu"] = cpu.measure(wire, jobs)
        return cpu.text(own["cpu"], jobs)

    def many_due() -> str:
        own["due"] = due.measure(arguments.server, arguments.many)
        return due.text(own["due"])

    print(first, flush=True)
    for title, run in {
        "Server CPU": server_cpu,
        "Memory": lambda: memory.measure(wire),
        "Blocked workers": lambda: waiters.measure_posts(wire, server.port),
        "Latency": lambda: waiters.measure_latency(wire, server.port),
        "Many due at once": many_due,
    }.items():
        parts.append(f"## {title}\n\n{run()}\n")
        print(parts[-1], flush=True)
    return first, parts, own


def measure_peers(arguments: argparse.Namespace) -> tuple[list[str], dict]:
    names, parts, volatile = arguments.peers.split(","), [], {}
    for durable in (False, True)[: 1 + arguments.durable]:
        many, most = (arguments.many // 10, 0) if durable else (arguments.many, arguments.most)
        sizes = beside.Sizes(many, most, arguments.rounds, arguments.samples)
        found = beside.measure(arguments.server, names, sizes, durable)
        volatile = volatile or found
        shown = [] if durable else tables.plots(found, REPORT.parent / "plots")
        pictures = "".join(f"\n![{name}](plots/{name})" for name in shown)
        title = "Beside the peers, durable" if durable else "Beside the peers"
        parts.append(f"## {title}\n\n{tables.text(found, many, durable)}\n{pictures}\n")
        print(parts[-1], flush=True)
    return parts, volatile


def kept() -> str:
    """The part of the last report that is written by hand."""
    text = REPORT.read_text() if REPORT.exists() else ""
    begin, end = (text.find(mark) for mark in KEPT)
    return text[begin : end + len(KEPT[1])] + "\n" if 0 <= begin < end else "\n".join([*KEPT, ""])


def head(server: Server, arguments: argparse.Namespace) -> str:
    info = server.info("server")
    version = (
        f"Valkey {info['valkey_version']}" if "valkey_version" in info else f"Redis {info['redis_version']}"
    )
    allocator = server.info("memory")["mem_allocator"]
    command = f"make bench SERVER={arguments.server} JOBS={arguments.jobs} MANY={arguments.many}"
    command += f" MOST={arguments.most}"
    command += " DURABLE=1" if arguments.durable else ""
    return f"""# Benchmarks

Measured by `{command}` at {commit()}, on {version} with {allocator}.
Machine: {cpu_model()}, {os.cpu_count()} cores, {platform.system()} {platform.release().split("-")[0]}.
{cores.manner(server.process.pid)}
"""


if __name__ == "__main__":
    main()
