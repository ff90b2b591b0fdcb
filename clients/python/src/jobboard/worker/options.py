"""What a worker is told at its making."""

from __future__ import annotations

import os
import re
import secrets
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..arguments import Name, counted
from ..replies import text
from .engine import FIELDS

if TYPE_CHECKING:
    from typing import Literal

    from ..board.working import Order

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


@dataclass
class Options:
    """See `Worker`. Durations are ms here."""

    mode: Mode
    concurrency: int
    queues: Sequence[Name]
    order: Order | None
    name: str
    lease: int
    prefetch: int
    block: int | None
    stop_within: int
    interrupt: Interrupt
    kill_after: int
    register: bool
    session: bool
    role: str
    listen: bool
    keep: bool
    health_port: str | None
    health_file: str | None
    tracebacks: bool
    burst: bool = False
    fields: Sequence[str] = FIELDS
    queue_words: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        _check("mode", self.mode, MODES)
        _check("interrupt", self.interrupt, INTERRUPTS)
        if self.interrupt == "kill" and self.mode != "processes":
            raise ValueError("interrupt='kill' needs mode='processes': a thread cannot be killed")
        _at_least("concurrency", self.concurrency, 1)
        _at_least("prefetch", self.prefetch, 0)
        _at_least("lease", self.lease, 30)
        _at_least("stop_within", self.stop_within, 0)
        if self.health_port is not None and not re.fullmatch(r"(.*:)?\d{1,5}", self.health_port):
            raise ValueError(f"health_port is a port, or host:port, such as 8080, not {self.health_port!r}")
        self.queue_words = counted("QUEUES", self.queues)
        self.queue_words += [] if self.order is None else ["ORDER", self.order]

    @property
    def queue_names(self) -> list[str]:
        """The queues that it claims from; every one when empty."""
        return [text(one) for one in self.queues]


def _check(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, not {value!r}")


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value}")
