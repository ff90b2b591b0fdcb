"""Memory of a job that waits, beside an entry of a stream."""

from __future__ import annotations

import cycles
from report import table
from wire import Wire, encode

WAITING = 200_000


def used_memory(wire: Wire) -> int:
    lines = wire.call("INFO", "memory").decode().split("\r\n")
    return next(int(line.split(":")[1]) for line in lines if line.startswith("used_memory:"))


def bytes_each(wire: Wire, command: bytes) -> float:
    """The growth of used_memory per command, over WAITING of them."""
    wire.call("FLUSHALL", "SYNC")
    before = used_memory(wire)
    wire.pipeline([command] * WAITING)
    return (used_memory(wire) - before) / WAITING


def measure(wire: Wire) -> str:
    rows = [
        ["job, id made by the server", encode("JOB.POST", "bench", cycles.PAYLOAD)],
        ["entry of a stream, not yet read", encode("XADD", "bench", "*", "d", cycles.PAYLOAD)],
    ]
    rows = [[name, f"{bytes_each(wire, command):.0f}"] for name, command in rows]
    wire.call("FLUSHALL", "SYNC")
    return "\n\n".join(
        [
            f"{WAITING} waiting, payloads of {len(cycles.PAYLOAD)} bytes, growth of used_memory.",
            table(["what waits", "bytes each"], rows),
        ]
    )
