"""What to type about a job that does not run: the words of this command line, beside those of the server."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from typing import Any

Reason = dict[str, Any]


def failure(reason: Reason) -> str | None:
    """Kind and message of a failure, or why somebody ended the job."""
    parts = [reason[name] for name in ("kind", "message", "why") if reason.get(name)]
    return ": ".join(map(str, parts)) or None


def commands(board: str, id: str, found: dict[str, Any], reason: Reason) -> Iterator[str]:
    """Command lines that change this reason, or show more of it; under one what the handler sees then."""
    advise = ADVICE.get(reason["reason"])
    for verb, *words in advise(found, reason) if advise else ():
        names = [board] if verb in OF_BOARDS else [board, *([words.pop(0)] if verb == "signal" else []), id]
        yield "$ " + shlex.join(["jobboard", verb, *names, *words])
        if reason["reason"] == "signals":
            yield f"    {SEEN[verb]}"


SEEN = {
    "signal": "a handler sees this value, true, or other JSON in its place; without --value it sees null",
    "depend-remove": "a handler goes on without a signal, as when nobody answers in time",
}
"""What follows for the job, as a value that is left out may mean no."""

OF_BOARDS = {"resume", "settings", "workers", "limits"}
"""They take no job."""


def _due(found: dict[str, Any], reason: Reason) -> Iterator[list[str]]:
    yield ["update", "--set", "delay=0s"]


def _ended(found: dict[str, Any], reason: Reason) -> Iterator[list[str]]:
    yield ["history"]
    if found["state"] != "complete":
        yield ["requeue"]


def _signals(found: dict[str, Any], reason: Reason) -> Iterator[list[str]]:
    for one in reason["signals"]:
        if not one["arrived"]:
            yield ["signal", one["name"], "--value", "true"]
    yield ["depend-remove", "--signals"]


def _scope(found: dict[str, Any], reason: Reason) -> list[str]:
    """The options that name what keeps the job back."""
    if reason["level"] == "limit":
        return ["--limit", reason["name"]]
    group = ["--group", found["group"]] if reason["level"] == "group" and "group" in found else []
    return [] if reason["level"] == "board" else ["--queue", found["queue"], *group]


def _limited(found: dict[str, Any], reason: Reason) -> Iterator[list[str]]:
    yield ["settings", *_scope(found, reason)]


ADVICE: dict[str, Callable[[dict[str, Any], Reason], Iterator[list[str]]]] = {
    "delayed": _due,
    "retry": _due,
    "lapse": _due,
    "ended": _ended,
    "signals": _signals,
    "dependencies": lambda found, reason: (["depend-remove", one["id"]] for one in reason["jobs"][:1]),
    "children": lambda found, reason: iter([["depend-remove", "--children"]]),
    "paused": lambda found, reason: iter([["resume", *_scope(found, reason)]]),
    "concurrency": _limited,
    "rate": _limited,
    "unclaimed": lambda found, reason: iter([["workers"]]),
    "claimed": lambda found, reason: iter([["release"]]),
    "dead": lambda found, reason: iter([["history"], ["requeue", "--origin"]]),
}
"""By the code of a reason: verbs with their options, and the signal for `signal`."""
