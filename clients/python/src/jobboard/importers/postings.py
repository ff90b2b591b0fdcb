"""What becomes of one job of another library: the commands that put it on the board."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from ..json_values import is_json
from ..outcomes import allowed_kind

Text = str | bytes

WORKER = "jobboard-import"
"""In whose name a job is claimed, for an instant, that has to be failed or trashed."""

LONGEST_MESSAGE = 4000
"""Bytes that are kept of the text of a failure; a board takes `max-text` (4096)."""


@dataclass
class Posting:
    """A job with its attributes, under the names and units of JOB.POST. What is None is left to the board."""

    id: str
    payload: Text
    name: str | None = None
    queue: str | None = None
    group: str | None = None
    priority: int = 0
    at: int | None = None
    retries: int | None = None
    lapses: int | None = None
    backoff: tuple[Any, ...] = ()
    jitter: int | None = None
    timeout: int | None = None
    expire: int | None = None
    retain: int | None = None
    meta: dict[str, Any] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    onfailure: str | None = None
    unique: tuple[Any, ...] = ()
    tracked: bool = False
    failure: tuple[str, str] | None = None
    trashed: bool = False
    parent: str | None = None
    result: Text | None = None
    done: list[Posting] = field(default_factory=list)
    """Children that are complete: they are posted with it, complete."""
    adopts: list[str] = field(default_factory=list)
    """Jobs on the board that become its children. Those that are complete or failed stay so."""

    def commands(self, board: Text) -> list[list[Any]]:
        """The first posts the job, the others bring it into its state, or post its children. When one is
        refused, what they posted is deleted."""
        found = [["JOB.POST", board, self.payload, "ID", self.id, *self.options()]]
        if self.tracked:
            found.append(["JOB.UPDATE", board, 1, self.id, "SET", "TRACK"])
        for child in self.done:
            found += child.commands(board)
        if self.adopts:
            found.append(["ADOPT", self.id, *self.adopts])
        if self.failure is None and self.result is None and not self.trashed:
            return found
        found.append(["JOB.CLAIM", board, WORKER, "ID", self.id])
        if self.result is not None:
            found.append(["JOB.CONSUME", board, WORKER, self.id, "RESULT", self.result])
        elif self.trashed:
            found.append(["JOB.TRASH", board, WORKER, self.id])
        else:
            kind, message = self.failure or ("", "")
            found.append(
                ["JOB.FAIL", board, WORKER, self.id, allowed_kind(kind), shortened(message), "NORETRY"]
            )
        return found

    def options(self) -> list[Any]:
        words: list[Any] = []
        plain = "name queue group at retries lapses jitter timeout expire retain parent".split()
        for name in plain:
            value = getattr(self, name)
            if value is not None:
                words += [name.upper(), value]
        if self.priority:
            words += ["PRIORITY", self.priority]
        if self.backoff:
            words += ["BACKOFF", *self.backoff]
        meta = {name: as_text(value) for name, value in self.meta.items() if value not in (None, "", b"")}
        if meta:
            words += ["META", len(meta), *(part for pair in meta.items() for part in pair)]
        if self.tags:
            words += ["TAGS", len(self.tags), *self.tags]
        if self.after:
            words += ["AFTER", len(self.after), *self.after]
            words += ["ONFAILURE", self.onfailure] if self.onfailure else []
        if self.unique:
            words += ["UNIQUE", *self.unique]
        return words

    def size(self) -> int:
        """About how many bytes it takes in a command."""
        own = len(self.payload) + sum(len(as_text(value)) for value in self.meta.values()) + 200
        return own + len(self.result or b"") + sum(child.size() for child in self.done)


@dataclass
class Recurring:
    """A schedule: what posts such a job at its times."""

    posting: Posting
    every: int | None = None
    cron: str | None = None
    tz: str | None = None
    start: int | None = None
    end: int | None = None
    most: int | None = None
    backlog: str | None = None

    @property
    def id(self) -> str:
        return self.posting.id

    def commands(self, board: Text) -> list[list[Any]]:
        words: list[Any] = []
        named = {
            "EVERY": self.every,
            "CRON": self.cron,
            "TZ": self.tz,
            "START": self.start,
            "END": self.end,
            "MAX": self.most,
            "BACKLOG": self.backlog,
        }
        for name, value in named.items():
            if value is not None:
                words += [name, value]
        options = self.posting.options()
        if "JITTER" in options:
            options[options.index("JITTER")] = "BACKOFF-JITTER"
        return [["JOB.SCHEDULE", "SET", board, self.id, self.posting.payload, *words, *options]]

    def size(self) -> int:
        return self.posting.size()


def shortened(message: str) -> bytes:
    """The end of a long message: of a traceback the part that says what happened."""
    raw = message.encode("utf-8", "replace")
    if len(raw) <= LONGEST_MESSAGE:
        return raw
    return b"... " + raw[-LONGEST_MESSAGE:].decode("utf-8", "ignore").encode()


def as_text(value: Any) -> Text:
    """A value as a meta field holds it: texts and bytes as they are, others as JSON."""
    if isinstance(value, (str, bytes)):
        return value
    return json.dumps(value, ensure_ascii=False) if is_json(value) else str(value)
