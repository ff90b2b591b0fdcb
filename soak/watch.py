"""Looks at the server every few seconds: memory, processor, sizes of boards, times of commands."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from client import EVENTS, JOBS, PROBE, QUEUES
from harness import Board, Server

STANDING = (JOBS, EVENTS, QUEUES, PROBE)
SIZES = ("jobs", "queues", "workers", "schedules", "tombstones", "bytes", "record-bytes")
"""What is noted of `JOB.INFO`."""

VERBS = ("JOB.POST", "JOB.MPOST", "JOB.CLAIM", "JOB.CONSUME", "JOB.MCONSUME", "JOB.FAIL", "JOB.LIST")
OWN = ("boards", "blocked_claims", "waiting_clients", "timer_boards", "timer_overdue_ms")
"""What is noted of the section `jobboard` of INFO."""

TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass
class Sample:
    """The server at one moment. `at` is seconds since the beginning; numbers are by name."""

    at: float
    numbers: dict[str, float] = field(default_factory=dict)


def memory(server: Server) -> dict[str, float]:
    """Bytes that are used, and those that the allocator and the system count."""
    info = server.info("memory")
    names = ("used_memory", "allocator_allocated", "allocator_active", "allocator_resident")
    found: dict[str, float] = {name: info.get(name, 0) for name in names}
    assert server.process is not None
    found["rss"] = int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]) * PAGE
    return found


def processor(server: Server) -> float:
    """Seconds of CPU that the server has taken so far."""
    assert server.process is not None
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


class Watch:
    """The samples of a run."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.client = server.connect()
        self.samples: list[Sample] = []
        self.begin = time.monotonic()

    def look(self) -> Sample:
        """Takes a sample."""
        numbers = memory(self.server)
        numbers["cpu"] = processor(self.server)
        numbers["load"] = os.getloadavg()[0]
        if numbers["allocator_allocated"]:
            numbers["fragmentation"] = numbers["allocator_active"] / numbers["allocator_allocated"]
        own = self.client.info("jobboard")
        numbers.update({name: own[f"jobboard_{name}"] for name in OWN})
        numbers["commands"] = self.client.info("stats")["total_commands_processed"]
        numbers["records"] = 0
        for key in STANDING:
            info = Board(self.client, key).info() or {}
            numbers.update({f"{key} {size}": info.get(size, 0) for size in SIZES})
            numbers["records"] += info.get("jobs", 0)
        numbers["bytes each"] = numbers["used_memory"] / max(numbers["records"], 1)
        numbers["board bytes each"] = numbers[f"{JOBS} bytes"] / max(numbers[f"{JOBS} jobs"], 1)
        for name, row in self.client.info("commandstats").items():
            verb = name.removeprefix("cmdstat_").upper()
            if verb in VERBS:
                numbers[f"calls {verb}"], numbers[f"usec {verb}"] = row["calls"], row["usec"]
        sample = Sample(time.monotonic() - self.begin, numbers)
        self.samples.append(sample)
        return sample
