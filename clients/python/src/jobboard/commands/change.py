"""`jobboard update`, `flow`, `groups`."""

from __future__ import annotations

import argparse
import json
import re
from datetime import datetime
from typing import Any

from ..board.operating import CHANGES
from ..board.posting import After, Node
from ..escaping import escaped
from .common import Subparsers, add_board, add_filters, as_json, board_of, columns, json_of, read, say, title
from .operate import run as run_on_jobs

NUMBERS = {"priority", "retries", "progress"}
LISTS = {"tag", "untag", "unstep"}
FLAGS = {"track", "untrack"}
OTHER = {"track": "untrack", "untrack": "track"}
BOOLEANS = {**dict.fromkeys(["yes", "true", "1"], True), **dict.fromkeys(["no", "false", "0"], False)}


def add(subparsers: Subparsers) -> None:
    update = subparsers.add_parser(
        "update", help="change jobs", description="Changes jobs: by ids, or by filters."
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
    update.add_argument("--dry-run", action="store_true", help="with filters: only say how many, and which")
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
        if name in FLAGS:
            set_it = not is_given or boolean(name, text)
            changes[name if set_it else OTHER[name]] = True
        elif name in LISTS:
            changes.setdefault(name, []).append(text)
        elif name == "meta":
            changes.setdefault(name, {}).update(meta_of(text))
        else:
            changes[name] = value_of(arguments, name, text)
    arguments.changes = changes
    return run_on_jobs(arguments)


def value_of(arguments: argparse.Namespace, name: str, text: str) -> Any:
    if name == "payload":
        return json_of(arguments, text)
    if name == "at":
        return moment(name, text)
    if name in NUMBERS:
        try:
            return float(text) if name == "progress" else int(text)
        except ValueError:
            raise ValueError(f"--set {name} is a number, not {text!r}") from None
    return text


def boolean(name: str, text: str) -> bool:
    if text.lower() not in BOOLEANS:
        raise ValueError(f"--set {name} is yes or no (also true, false, 1, 0), not {text!r}")
    return BOOLEANS[text.lower()]


def moment(name: str, text: str) -> datetime:
    """A time with its zone."""
    shape = "a time with its zone, such as 2030-01-31T08:00+01:00 or 2030-01-31T07:00Z"
    try:
        found = datetime.fromisoformat(re.sub("[Zz]$", "+00:00", text))
    except ValueError:
        raise ValueError(f"{name} is {shape}, not {text!r}") from None
    if found.tzinfo is None:
        raise ValueError(f"{name} is {shape}; {text!r} has none")
    return found


def meta_of(text: str) -> dict[str, Any]:
    """`FIELD=VALUE`, or a JSON object."""
    shape = '--set meta is FIELD=VALUE, or JSON such as {"to": "ann"}'
    if text.startswith("{"):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{shape}: this is no JSON: {error}") from None
        if wrong := [one for one in found.values() if not isinstance(one, (str, int, float))]:
            raise ValueError(f"{shape}: its values are texts and numbers, not {json.dumps(wrong[0])}")
        return {name: as_json(one) if isinstance(one, bool) else one for name, one in found.items()}
    field, is_given, value = text.partition("=")
    if not is_given or not field:
        raise ValueError(f"{shape}, not {text!r}")
    return {field: value}


def run_flow(arguments: argparse.Namespace) -> int:
    text, file = read(arguments.file), title(arguments.file)
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} is no JSON: {error}") from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"{file} has no list of jobs: see jobboard flow --help")
    board: Any = board_of(arguments)
    try:
        ids = board.flow([node_of(row) for row in rows])
    except (TypeError, ValueError) as error:
        raise ValueError(f"{file}: {error}") from error
    for row, id in zip(rows, ids):
        print(escaped(f"{row.get('label', '')} {id}".strip()))
    return 0


def node_of(row: dict[str, Any]) -> Node:
    options = dict(row)
    label, payload = options.pop("label", None), options.pop("payload", None)
    onfailure = options.pop("onfailure", None)
    if onfailure is not None:
        if not options.get("after"):
            raise ValueError(f"{label or 'a job'}: onfailure goes with after")
        options["after"] = [After(options["after"], onfailure)]
    if "at" in options:
        options["at"] = moment("at", str(options["at"]))
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
