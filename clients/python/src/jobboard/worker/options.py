"""What a worker is told at its making."""

from __future__ import annotations

import os
import re
import secrets
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..arguments import Name, check_choice, check_flag, check_name, check_whole, counted
from ..board.claiming import ORDERS
from ..replies import text
from .engine import FIELDS

if TYPE_CHECKING:
    from typing import Literal

    from ..board.claiming import Order

    Mode = Literal["threads", "processes", "asyncio"]
    Interrupt = Literal["raise", "flag", "kill"]

MODES = ("threads", "processes", "asyncio")
INTERRUPTS = ("raise", "flag", "kill")


def default_name() -> str:
    """Host, process, and something that no other process has."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"


def default_concurrency() -> dict[str, int]:
    """Of each mode."""
    return {"threads": 8, "processes": os.cpu_count() or 1, "asyncio": 100}


SHORTEST_LEASE = 30
"""Milliseconds: there are three heartbeats in it."""


@dataclass
class Options:
    """See `Worker`. Durations are ms here."""

    mode: Mode
    concurrency: int
    queues: Sequence[Name]
    order: Order | None
    name: str
    named: bool
    """Somebody has given it its name, which an earlier process may have had."""
    lease: int | None
    """None: each job's own."""
    prefetch: int
    block: int | None
    stop_within: int
    interrupt: Interrupt
    kill_after: int
    register: bool
    session: bool
    role: str
    listen: bool
    keep: bool | int
    """A number: that of the completed jobs that the board keeps, too."""
    health_port: str | None
    health_file: str | None
    tracebacks: bool
    burst: bool = False
    fields: Sequence[str] = FIELDS
    queue_words: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        check_choice(self.mode, "mode", MODES)
        check_choice(self.interrupt, "interrupt", INTERRUPTS)
        if self.interrupt == "kill" and self.mode != "processes":
            raise ValueError("interrupt='kill' needs mode='processes': a thread cannot be killed")
        check_whole(self.concurrency, "concurrency", 1)
        check_whole(self.prefetch, "prefetch", 0)
        if self.lease is not None and self.lease < SHORTEST_LEASE:
            raise ValueError(f"lease is at least '{SHORTEST_LEASE}ms', not '{self.lease}ms'")
        for name in ("stop_within", "kill_after"):
            check_whole(getattr(self, name), name, 0)
        if self.block is not None and self.block < 1:
            raise ValueError(f"block is at least '1ms', not '{self.block}ms'")
        for name in ("register", "session", "listen", "tracebacks"):
            check_flag(getattr(self, name), name)
        check_keep(self.keep)
        for name in ("name", "role"):
            check_name(getattr(self, name), name)
        if self.order is not None:
            check_choice(self.order, "order", ORDERS)
        if self.health_port is not None and not is_port(self.health_port):
            raise ValueError(f"health_port is a port, or host:port, such as 8080, not {self.health_port!r}")
        for one in self.queues:
            check_name(one, "a queue of queues")
        self.queue_words = counted("QUEUES", self.queues)
        self.queue_words += [] if self.order is None else ["ORDER", self.order]

    @property
    def queue_names(self) -> list[str]:
        """The queues that it claims from; every one when empty."""
        return [text(one) for one in self.queues]


def check_keep(keep: bool | int) -> None:
    if not isinstance(keep, bool) and (not isinstance(keep, int) or keep < 1):
        raise (ValueError if isinstance(keep, int) else TypeError)(
            f"keep is True, False, or how many completed jobs a board keeps, such as 5000, not {keep!r:.100}"
        )


def is_port(text: str) -> bool:
    """Whether it is `port` or `host:port`."""
    found = re.fullmatch(r"(?:.*:)?(\d{1,5})", text, re.ASCII)
    return found is not None and int(found[1]) < 65_536
