"""`jobboard list`, `get`, `explain`, `history`, `output`, `queues`: looking at a board."""

from __future__ import annotations

import argparse
import codecs
import contextlib
import itertools
import shlex
from collections.abc import Callable, Iterator
from typing import Any

import redis

from ..errors import JobUnknown
from ..escaping import escaped, escaped_lines
from ..jobs import Awaits
from . import advice
from .common import (
    Subparsers,
    add_board,
    add_filters,
    as_json,
    board_of,
    columns,
    filters_of,
    natural,
    say,
    span,
    time_of,
    with_times,
)
from .naming import say_if_missing
from .quotas import full
from .writing import refusals

SHOWN = ["id", "state", "queue", "name", "attempt", "progress", "worker", "kind", "message"]
INBOX = ["id", "queue", "name", "stage", "payload", "awaits"]
"""The columns of `list --awaits`: what a person needs to answer a job that waits for a signal."""
TIMES = {"posted", "due", "claimed", "ended", "modified", "deadline", "intended", "at", "until"}


def add(subparsers: Subparsers) -> None:
    listing = subparsers.add_parser("list", help="list jobs by filters")
    add_board(listing)
    add_filters(listing)
    listing.add_argument("--count", type=natural, default=100, help="at most so many; 0: all (default: 100)")
    listing.add_argument("--rev", action="store_true", help="the other way round")
    listing.add_argument(
        "--fields",
        help=f"comma-separated (default: {','.join(SHOWN)}; with --awaits {','.join(INBOX)})",
    )
    listing.add_argument("--json", action="store_true", help="a JSON object in each line")
    listing.set_defaults(run=run_list)
    for name, run, about in (
        ("get", run_get, "print the record of a job"),
        ("explain", run_explain, "why a job is not running, and what would change that"),
        ("history", run_history, "what happened to a job"),
    ):
        parser = subparsers.add_parser(name, help=about)
        add_board(parser)
        parser.add_argument("id")
        parser.add_argument("--json", action="store_true")
        parser.set_defaults(run=run)
    output = subparsers.add_parser("output", help="what the worker of a job writes, until the job has ended")
    add_board(output)
    output.add_argument("id")
    output.add_argument("--no-follow", action="store_true", help="only what is there")
    output.set_defaults(run=run_output)
    queues = subparsers.add_parser("queues", help="the queues with their jobs by state")
    add_board(queues)
    queues.add_argument("--json", action="store_true")
    queues.set_defaults(run=run_queues)


def run_list(arguments: argparse.Namespace) -> int:
    board = board_of(arguments)
    usual = INBOX if arguments.awaits else SHOWN
    fields = arguments.fields.split(",") if arguments.fields else usual
    wanted = [*dict.fromkeys([*fields, "state"])]
    filters = filters_of(arguments)
    count = arguments.count or None
    jobs = board.list(fields=wanted, rev=arguments.rev, page=min(count or 1000, 1000), **filters)
    shown = (job.as_dict() for job in itertools.islice(jobs, count))
    if arguments.json:
        empty = True
        for row in shown:
            empty = False
            print(as_json({name: row[name] for name in fields if name in row}), flush=True)
        if empty:
            say_if_missing(board)
        return 0
    rows = [[cell(name, value) for name, value in _of_now(row, fields)] for row in shown]
    print(columns(rows, [name.upper() for name in fields]))
    if not rows:
        say_if_missing(board)
    if count is not None and len(rows) == count:
        say(f"there may be more: --count 0 lists all of {board.count(**filters)}")
    return 0


def run_get(arguments: argparse.Namespace) -> int:
    job = board_of(arguments).get(arguments.id)
    return _shown(arguments, None if job is None else job.as_dict(), _lines)


def run_explain(arguments: argparse.Namespace) -> int:
    def text(found: Any) -> str:
        head = f"{found['id']} is {found['state']}" + (f" in {found['queue']}" if "queue" in found else "")
        own = f"JOB.UPDATE {shlex.quote(arguments.board)} 1 {shlex.quote(arguments.id)} "
        texts = (reason["text"].replace("JOB.UPDATE board 1 id ", own) for reason in found["reasons"])
        lines = [head]
        for reason, one in zip(found["reasons"], texts):
            lines.append(f"- {with_times(one)}")
            if (told := advice.failure(reason)) is not None:
                lines += [f"    {line}" for line in told.splitlines()]
            lines += [f"    {line}" for line in advice.commands(board, arguments.id, found, reason)]
        if found["state"] in ("ready", "scheduled"):
            job = target.get(arguments.id, fields=["reason"])
            if job is not None and job.reason:
                lines.append(f"- The last worker gave it back: {job.reason}.")
        return "\n".join(map(escaped, lines))

    board, target = arguments.board, board_of(arguments)
    status = _shown(arguments, target.explain(arguments.id), text)
    if status == 0 and not arguments.shards:
        say_if_refusing(target.client)
    return status


def say_if_refusing(client: Any) -> None:
    """A word on a server that takes no writes: whatever a board says of a job, nobody gets it then."""
    if isinstance(client, redis.RedisCluster):
        return
    with contextlib.suppress(redis.RedisError):
        for one in refusals(client.info("everything")):
            word = "refuses" if one.is_sure else "may refuse"
            say(f"the server {word} claims now ({one.text}): `jobboard doctor` says more")


def run_history(arguments: argparse.Namespace) -> int:
    def text(found: Any) -> str:
        rows = [
            line
            for one in found
            for line in _event(f"{time_of(one['at'])}  {one['event']:16} {one.get('worker', '')}  ", one)
        ]
        return "\n".join(map(escaped, rows))

    return _shown(arguments, board_of(arguments).history(arguments.id), text)


def run_output(arguments: argparse.Namespace) -> int:
    # A character may be in two chunks.
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    try:
        for chunk in board_of(arguments).output(arguments.id, follow=not arguments.no_follow):
            if chunk.anew and chunk.attempt > 1:
                say(f"attempt {chunk.attempt} writes anew")
            if chunk.missed:
                say(f"{chunk.missed} chunks before this are no longer there")
            print(escaped_lines(decoder.decode(chunk.data)), end="", flush=True)
    except JobUnknown:
        say(f"no such job: {arguments.id}")
        return 1
    print()
    return 0


def run_queues(arguments: argparse.Namespace) -> int:
    board = board_of(arguments)
    found: list[dict[str, Any]] = board.queues()
    if not found:
        say_if_missing(board)
    settings: dict[str, list[str]] = {}
    for one in full(board, board.info() or {}, found):
        if one.queue is not None:
            settings.setdefault(one.queue, []).append(one.setting)
        elif not arguments.json:
            say(f"the board is full: {one.text}")
    found = [{**row, "full": [*dict.fromkeys(settings.get(row["queue"], []))]} for row in found]
    if arguments.json:
        print(as_json(found))
        return 0
    names = "ready claimed scheduled blocked failed".split()
    rows = [
        [
            row["queue"] + (" (paused)" if row["paused"] else "") + full_of(row),
            *(str(row[name]) for name in names),
            span(row["oldest"]),
        ]
        for row in found
    ]
    print(columns(rows, ["QUEUE", *(name.upper() for name in names), "OLDEST"]))
    return 0


def full_of(row: dict[str, Any]) -> str:
    """The settings above which the queue, or a group of it, takes no posts."""
    return f" (full: {', '.join(row['full'])})" if row["full"] else ""


def _shown(arguments: argparse.Namespace, found: Any, text: Callable[[Any], str]) -> int:
    if found is None:
        say(f"no such job: {arguments.id}")
        return 1
    print(as_json(found) if arguments.json else text(found))
    return 0


def _event(head: str, event: dict[str, Any]) -> list[str]:
    """An event on a line; a text of several lines, such as a traceback, below it."""
    parts = [str(event[name]) for name in ("kind", "message", "queue", "signal") if event.get(name)]
    more = event.get("signals", 1) - 1
    lines = (": ".join(parts) + (f" and {more} more" if more else "")).splitlines()
    if len(lines) < 2:
        return [f"{head}{''.join(lines)}".rstrip()]
    return [head.rstrip(), *(f"    {line}" for line in lines)]


def _lines(found: dict[str, Any]) -> str:
    """A field on a line; a text of several lines below its name."""
    found = in_words(found)
    width, rows = max(map(len, found)), []
    for name, value in found.items():
        lines = value.splitlines() if isinstance(value, str) else []
        if len(lines) < 2:
            rows.append(f"{name.ljust(width)}  {escaped(cell(name, value))}")
        else:
            rows += [name, *(f"    {escaped(line)}" for line in lines)]
    return "\n".join(rows)


def in_words(found: dict[str, Any]) -> dict[str, Any]:
    """A record as a person reads it: numbers that mean something only beside others are told as words."""
    found = dict(found)
    left, allowed = found.pop("left", None), found.get("retries")
    if left is not None and allowed is not None:
        found["retries"] = "no limit" if allowed < 0 else f"{left} of {allowed} left"
    elif left is not None:
        found["left"] = left
    if "lapses" in found:
        found["lapses"] = f"{found['lapses']} leases lost" if found["lapses"] != 1 else "1 lease lost"
    if found.get("state") == "complete":  # tried again after a failure: it is not what has become of the job
        past = {"kind": "last failure", "message": "its message"}
        found = {past.get(name, name): value for name, value in found.items()}
    if "previous" in found:
        found["previous"] = f"{found['previous']} (the worker that held it last)"
    return found


def _of_now(row: dict[str, Any], fields: list[str]) -> Iterator[tuple[str, Any]]:
    """The cells of a row. A complete job still has the failure of its last try: it is in `get` and
    `history`, where nobody takes it for what has become of the job.
    """
    for name in fields:
        is_past = row.get("state") == "complete" and name in ("kind", "message")
        yield name, None if is_past else row.get(name)


def _awaited(awaits: Awaits) -> str:
    """What a job waits for, as a sentence."""
    parts = []
    if awaits.signals:
        missing = [one for one in awaits.signals if one in awaits.missing]
        arrived = [one for one in awaits.signals if one not in missing]
        names = ", ".join(missing) or "nothing more"
        parts.append(f"one of {names}" if awaits.any and len(missing) > 1 else names)
        parts += [f"({', '.join(arrived)} arrived)"] if arrived else []
        if awaits.until is not None and awaits.until > 0:
            parts.append(f"until {time_of(awaits.until)}, then {ON_TIMEOUT[awaits.ontimeout or 'run']}")
    if awaits.children is not None:
        parts.append(f"{'and ' if parts else ''}its children (onfailure: {awaits.children.onfailure})")
    return " ".join(parts)


ON_TIMEOUT = {
    "run": "its handler runs, and learns that nobody answered",
    "fail": "it fails",
    "cancel": "it is cancelled",
}


def cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Awaits):
        return _awaited(value)
    if name in TIMES and isinstance(value, int) and value > 0:
        return time_of(value)
    return value if isinstance(value, str) else as_json(value)
