"""`jobboard signal`, `depend-add`, `depend-remove`, `depend-clear`: what jobs wait for."""

from __future__ import annotations

import argparse
from typing import Any

from ..escaping import escaped
from ..jobs import Job
from .common import Subparsers, add_board, add_filters, board_of, filters_of, json_of, say
from .operate import by_filters


def add(subparsers: Subparsers) -> None:
    about = "tell jobs what they wait for, or will wait for: an approval, say"
    parser = subparsers.add_parser("signal", help=about, description=f"{about}: by ids, or by filters")
    add_board(parser)
    parser.add_argument("signal", metavar="SIGNAL", help="its name, such as approved")
    parser.add_argument("ids", nargs="*", metavar="ID")
    parser.add_argument("--value", metavar="VALUE", help="what it says: JSON (with --codec raw: text)")
    parser.add_argument("--sender", metavar="WHO", help="who sends it; it is shown, and not checked")
    add_filters(parser)
    parser.add_argument("--dry-run", action="store_true", help="with filters: only say how many, and which")
    parser.set_defaults(run=run_signal, verb="signal")
    adding = subparsers.add_parser("depend-add", help="let a job that was never claimed wait for others")
    _add_job(adding)
    adding.add_argument("--children", action="store_true", help="for its children, in place of IDs")
    adding.add_argument("--onfailure", choices=["hold", "cancel", "fail", "run"], help="(default: hold)")
    adding.add_argument("--strict", action="store_true", help="refuse ids that the board does not know")
    removing = subparsers.add_parser("depend-remove", help="let a job wait no longer for some others")
    _add_job(removing)
    removing.add_argument("--signals", action="store_true", help="for its signals, in place of IDs")
    removing.add_argument("--children", action="store_true", help="for its children, in place of IDs")
    clearing = subparsers.add_parser("depend-clear", help="let a job wait for nothing but its time")
    add_board(clearing)
    clearing.add_argument("id")
    clearing.set_defaults(run=run_clear)
    adding.set_defaults(run=run_depend, verb="depend_add")
    removing.set_defaults(run=run_depend, verb="depend_remove")


def _add_job(parser: argparse.ArgumentParser) -> None:
    add_board(parser)
    parser.add_argument("id")
    parser.add_argument("others", nargs="*", metavar="OTHER", help="ids of the jobs that it waits for")


def run_signal(arguments: argparse.Namespace) -> int:
    filters = filters_of(arguments)
    if bool(arguments.ids) == bool(filters):
        raise ValueError("give ids, or at least one filter")
    if arguments.ids and arguments.dry_run:
        raise ValueError("--dry-run goes with filters")
    value = None if arguments.value is None else json_of(arguments, arguments.value, "value")
    said = {"value": value, "sender": arguments.sender}
    if filters:
        return by_filters(arguments, filters, before=(arguments.signal,), options=said)
    board: Any = board_of(arguments)
    found = board.signal(arguments.signal, *arguments.ids, **said)
    for id, what in zip(arguments.ids, found):
        print(escaped(f"{id} {what or 'unknown'}"))
    kept = [id for id, what in zip(arguments.ids, found) if what == "kept"]
    for job in board.get_many(kept, fields=["id", "awaits"]) if kept else ():
        if job is not None:
            say(why_kept(arguments.signal, job))
    return 1 if {None, "ended"} & set(found) else 0


def why_kept(signal: str, job: Job) -> str:
    """A name that is written wrong looks like a signal that comes early."""
    awaits = job.awaits
    if awaits is None or not awaits.signals:
        return f"{job.id} waits for no signal now, and keeps {signal} for later"
    missing = ", ".join(awaits.missing)
    if signal not in awaits.signals:
        return f"{job.id} does not wait for {signal}, and keeps it for later: it waits for {missing}"
    return f"{job.id} has {signal}, and still waits" + (f" for {missing}" if missing else "")


def run_depend(arguments: argparse.Namespace) -> int:
    names = ("signals", "children", "onfailure", "strict")
    options = {name: getattr(arguments, name) for name in names if getattr(arguments, name, None)}
    if not (arguments.others or options.get("signals") or options.get("children")):
        raise ValueError("name the jobs that it waits for, or give --signals or --children")
    board: Any = board_of(arguments)
    print(getattr(board, arguments.verb)(arguments.id, *arguments.others, **options))
    return 0


def run_clear(arguments: argparse.Namespace) -> int:
    print(board_of(arguments).depend_clear(arguments.id))
    return 0
