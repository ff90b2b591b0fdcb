"""Which cores the server and its clients run on, so that none of them waits for the other's turn.

The server has the first core, with priority where that is allowed; its clients share the others. What a clock
measures then holds less of the machine's scheduling. With one core there is nothing to part. (Not real-time
priority: a client that polls would leave the rest of the machine nothing.)
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

ALL = sorted(os.sched_getaffinity(0))
SERVER, CLIENTS = ALL[:1], ALL[1:] or ALL


def part(server: int, beside: Iterable[int] = ()) -> None:
    """The process `server` on the first core; this one, what it will start and `beside` on the others."""
    os.sched_setaffinity(server, SERVER)
    for pid in (0, *beside):
        os.sched_setaffinity(pid, CLIENTS)
    prefer(server)


def share(*pids: int) -> None:
    """These, this process and what it will start on all cores."""
    for pid in (0, *pids):
        os.sched_setaffinity(pid, ALL)


def prefer(pid: int = 0, niceness: int = -10) -> None:
    """Gives the process priority, where that is allowed."""
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, pid, niceness)


@contextmanager
def preferred() -> Iterator[None]:
    """This process and what it starts have priority meanwhile."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    prefer()
    try:
        yield
    finally:
        prefer(0, before)


def manner(server: int) -> str:
    """How the run was parted: a sentence of the report."""
    if len(ALL) == 1:
        return "Server and clients share the only core."
    if os.getpriority(os.PRIO_PROCESS, server) >= 0:
        return "The server has a core of its own, without priority, which was not allowed."
    return "The server has a core of its own, with priority."


def taken_away() -> float:
    """Seconds of all cores together that the host of a virtual machine has given to others so far."""
    with open("/proc/stat") as stat:
        return int(stat.readline().split()[8]) / os.sysconf("SC_CLK_TCK")
