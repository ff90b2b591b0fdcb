"""`jobboard update`, `flow`, `groups`."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from ..board.operating import CHANGES
from ..board.posting import After, Node
from ..escaping import escaped
from .common import Subparsers, add_board, add_filters, as_json, board_of, columns, json_of, say
from .operate import run as run_on_jobs

NUMBERS = {"priority", "retries", "progress"}
LISTS = {"tag", "untag"}
FLAGS = {"track", "untrack"}


def add(subparsers: Subparsers) -> None:
    update = subparsers.add_parser(
        "update", help="change jobs that have not ended", description="Changes jobs: by ids, or by filters."
    )
    add_board(update)
    update.add_argument("ids", nargs="*", metavar="ID")
    add_filters(update)
    update.add_argument(
        "--set",
        action="append",
        required=True,
        metavar="WHAT=VALUE",
        help=f"repeatable: priority=5, queue=slow, delay=1h; there are {', '.join(sorted(CHANGES))}",
    )
    update.add_argument("--dry-run", action="store_true", help="with filters: only say how many")
    update.set_defaults(run=run_update, verb="update")
    flow = subparsers.add_parser(
        "flow",
        help="post jobs that wait for each other, all or none",
        description='A list of jobs: [{"label": "a", "payload": 1, "name": "fetch"}, '
        '{"label": "b", "payload": 2, "after": ["a"], "onfailure": "cancel"}]',
    )
    add_board(flow)
    flow.add_argument("file", help="JSON; - is standard input")
    flow.set_defaults(run=run_flow)
    groups = subparsers.add_parser("groups", help="the groups with their jobs by state")
    add_board(groups)
    groups.add_argument("--queue", help="of this queue")
    groups.add_argument("--json", action="store_true")
    groups.set_defaults(run=run_groups)


def run_update(arguments: argparse.Namespace) -> int:
    changes: dict[str, Any] = {}
    for one in arguments.set:
        name, is_given, text = one.partition("=")
        if name not in CHANGES:
            raise ValueError(f"--set {name}: there are {', '.join(sorted(CHANGES))}")
        if not is_given and name not in FLAGS:
            raise ValueError(f"--set {name}=VALUE")
        if name in LISTS:
            changes.setdefault(name, []).append(text)
        else:
            changes[name] = value_of(arguments, name, text)
    arguments.changes = changes
    return run_on_jobs(arguments)


def value_of(arguments: argparse.Namespace, name: str, text: str) -> Any:
    if name in FLAGS:
        return True
    if name == "payload":
        return json_of(arguments, text)
    if name == "at":
        return datetime.fromisoformat(text)
    if name == "meta":
        field, _, value = text.partition("=")
        return {field: value}
    if name in NUMBERS:
        try:
            return int(text)
        except ValueError:
            raise ValueError(f"--set {name} is a number, not {text!r}") from None
    return text


def run_flow(arguments: argparse.Namespace) -> int:
    text = sys.stdin.read() if arguments.file == "-" else Path(arguments.file).read_text()
    try:
        rows = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{arguments.file} is no JSON: {error}") from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"{arguments.file} has no list of jobs: see jobboard flow --help")
    board: Any = board_of(arguments)
    try:
        ids = board.flow([node_of(row) for row in rows])
    except TypeError as error:
        raise ValueError(f"{arguments.file}: {error}") from error
    for row, id in zip(rows, ids):
        print(escaped(f"{row.get('label', '')} {id}".strip()))
    return 0


def node_of(row: dict[str, Any]) -> Node:
    options = dict(row)
    label, payload = options.pop("label", None), options.pop("payload", None)
    onfailure = options.pop("onfailure", None)
    if onfailure is not None and options.get("after"):
        options["after"] = [After(options["after"], onfailure)]
    return Node(label, payload, **options)


def run_groups(arguments: argparse.Namespace) -> int:
    found = list(board_of(arguments).groups(queue=arguments.queue))
    if arguments.json:
        print(as_json(found))
        return 0
    names = "ready claimed scheduled blocked failed".split()
    rows = [[row["queue"], row["group"], *(str(row[name]) for name in names)] for row in found]
    print(columns(rows, ["QUEUE", "GROUP", *map(str.upper, names)]))
    if not found:
        say("no job of this board has a group")
    return 0
