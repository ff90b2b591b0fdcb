"""`jobboard watch`: what becomes of a job, as it happens."""

from __future__ import annotations

import argparse
import time

from ..errors import JobUnknown
from ..escaping import escaped
from .common import Subparsers, add_board, as_json, board_of, duration, say
from .look import cell

SHOWN = ["state", "attempt", "worker", "progress", "stage", "kind", "message"]


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "watch",
        help="what becomes of a job, until it has ended",
        description="Prints a job now, and each time one of the fields has changed, until it has ended. "
        "Ends with 0 when the job is complete, else with 1.",
    )
    add_board(parser)
    parser.add_argument("id")
    parser.add_argument("--fields", help=f"comma-separated (default: {','.join(SHOWN)})")
    parser.add_argument("--timeout", type=duration, metavar="TIME", help="how long at most")
    parser.add_argument("--json", action="store_true", help="a JSON object in each line")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    fields = arguments.fields.split(",") if arguments.fields else SHOWN
    state = ""
    try:
        for job in board_of(arguments).watch(arguments.id, timeout=arguments.timeout, fields=fields):
            state, row = job.state, job.as_dict()
            if arguments.json:
                print(
                    as_json({name: row[name] for name in ["id", "state", *fields] if name in row}), flush=True
                )
                continue
            if state == "complete":  # of an earlier try
                row.update(kind=None, message=None)
            told = (f"{name} {cell(name, row[name])}" for name in fields if row.get(name) not in (None, ""))
            print(escaped(f"{time.strftime('%H:%M:%S')}  {'  '.join(told)}"), flush=True)
    except JobUnknown:
        say(f"no such job: {arguments.id}")
        return 1
    except TimeoutError as error:
        say(str(error))
        return 1
    return 0 if state == "complete" else 1
