"""What each client did and was answered, written down as it happens.

A call is two lines of JSON in the actor's own file: before it is sent, and when its answer is known. A
process that is killed leaves a call without an answer: nobody knows what became of it. Times are of the
machine's monotonic clock, so those of several processes can be compared.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Call:
    """One call: `end` is infinite and `reply` None when nobody knows how it ended."""

    actor: str
    verb: str
    about: dict
    node: int
    begin: float
    end: float = float("inf")
    reply: Any = None
    error: str | None = None
    durable: bool = False

    @property
    def answered(self) -> bool:
        return self.end != float("inf") and self.error is None

    @property
    def refused(self) -> bool:
        """The server has answered, and said no: nothing has changed."""
        return self.error is not None and self.error != "unknown"


@dataclass
class Journal:
    """The file of one actor."""

    path: Path
    count: int = 0
    _file: int = field(default=-1)

    def open(self) -> Journal:
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        return self

    def _write(self, entry: dict) -> None:
        os.write(self._file, (json.dumps(entry) + "\n").encode())

    def call(
        self, verb: str, node: int, about: dict, act: Callable[[], Any], sure: Callable[[], bool]
    ) -> Any:
        """Does one thing and notes it. `sure` is asked after an answer: whether it can no longer be lost.

        Raises what `act` raises; an error of the server is noted as such, any other as unknown.
        """
        import redis

        self.count += 1
        number = self.count
        self._write({"n": number, "v": verb, "a": about, "p": node, "t": time.monotonic()})
        try:
            reply = act()
        except redis.ResponseError as error:
            code = getattr(error, "status_code", None)
            text = f"{code} {error}" if code else str(error)
            self._write({"n": number, "t": time.monotonic(), "x": text})
            raise
        except Exception:
            self._write({"n": number, "t": time.monotonic(), "x": "unknown"})
            raise
        self._write({"n": number, "t": time.monotonic(), "r": reply})
        if sure():
            self._write({"n": number, "d": True})
        return reply


def read(folder: Path) -> list[Call]:
    """All calls of all actors, by the time at which they began."""
    calls: list[Call] = []
    for path in sorted(folder.glob("*.jsonl")):
        by_number: dict[int, Call] = {}
        for line in path.read_text().splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # the actor was killed while it wrote
            number = entry["n"]
            if "v" in entry:
                by_number[number] = Call(path.stem, entry["v"], entry["a"], entry["p"], entry["t"])
            elif "d" in entry:
                by_number[number].durable = True
            else:
                call = by_number[number]
                call.end, call.reply, call.error = entry["t"], entry.get("r"), entry.get("x")
                if call.error == "unknown":
                    call.end = float("inf")
        calls += by_number.values()
    return sorted(calls, key=lambda call: call.begin)
