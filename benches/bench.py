"""Measures jobboard beside Streams on one server, and writes docs/benchmarks.md.

    make bench [SERVER=redis70|redis82|valkey91] [JOBS=100000]

CPU is that of the server's main thread (INFO cpu), so the client does not count. All numbers come
from one server process.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from pathlib import Path

import cpu
import memory
import waiters
from wire import Wire

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "python"))

from harness import KINDS, Server  # noqa: E402

REPORT = ROOT / "docs" / "benchmarks.md"


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures jobboard beside Streams.")
    parser.add_argument("--server", choices=KINDS, default="redis70")
    parser.add_argument("--jobs", type=int, default=100_000, help="jobs in one round (default: 100000)")
    arguments = parser.parse_args()
    waiters.allow_connections(waiters.MANY)  # before the server starts: it inherits the limit
    server = Server(arguments.server, config=["loglevel notice", f"maxclients {waiters.MANY + 100}"])
    try:
        text = measure(server, arguments)
        server.check_health()
    finally:
        server.close()
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(text)
    print(f"\nWritten to {REPORT.relative_to(ROOT)}")


def measure(server: Server, arguments: argparse.Namespace) -> str:
    wire = Wire(server.port)
    parts = [head(server, arguments)]
    print(parts[0], flush=True)
    for title, run in {
        "Server CPU": lambda: cpu.measure(wire, arguments.jobs),
        "Memory": lambda: memory.measure(wire),
        "Blocked workers": lambda: waiters.measure_posts(wire, server.port),
        "Latency": lambda: waiters.measure_latency(wire, server.port),
    }.items():
        parts.append(f"## {title}\n\n{run()}\n")
        print(parts[-1], flush=True)
    return "\n".join(parts)


def head(server: Server, arguments: argparse.Namespace) -> str:
    info = server.info("server")
    version = (
        f"Valkey {info['valkey_version']}" if "valkey_version" in info else f"Redis {info['redis_version']}"
    )
    allocator = server.info("memory")["mem_allocator"]
    command = f"make bench SERVER={arguments.server} JOBS={arguments.jobs}"
    return f"""# Benchmarks

Measured by `{command}` on {version} with {allocator}, no persistence, no replica.
Machine: {cpu_model()}, {os.cpu_count()} cores, {platform.system()} {platform.release().split("-")[0]}.
"""


def cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


if __name__ == "__main__":
    main()
