"""`jobboard post`: one job, or a line of a file each."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from ..errors import NoResult
from ..escaping import escaped
from ..progress import progress
from .common import (
    AnyBoard,
    Subparsers,
    add_board,
    as_json,
    board_of,
    duration,
    json_of,
    pairs_of,
    read,
    say,
    title,
)


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("post", help="post a job, or one for each line of a file")
    add_board(parser)
    parser.add_argument("payload", nargs="?", help="JSON (with --codec raw: text)")
    parser.add_argument("--lines", metavar="FILE", help="a job for each line; - is standard input")
    parser.add_argument(
        "--wait", type=duration, metavar="TIME", help="wait for the job, and print its result"
    )
    parser.add_argument("--id", help="its id")
    parser.add_argument("--name", help="its type: which handler does it")
    for name in ("queue", "group", "user", "parent", "unique"):
        parser.add_argument(f"--{name}")
    for name in ("priority", "retries", "cost"):
        parser.add_argument(f"--{name}", type=int)
    for name in ("delay", "timeout", "expire", "retain", "lease"):
        parser.add_argument(f"--{name}", type=duration, metavar="TIME", help="30s, 5m, 2h …")
    parser.add_argument("--block", type=duration, metavar="TIME", help="how long to wait for room")
    parser.add_argument("--tag", action="append", dest="tags")
    parser.add_argument("--meta", action="append", metavar="FIELD=VALUE")
    parser.add_argument(
        "--costs",
        action="append",
        metavar="LIMIT=PERMITS",
        help="what it takes of a shared limit; repeatable",
    )
    parser.add_argument("--after", action="append", metavar="ID", help="wait for this job; repeatable")
    parser.set_defaults(run=run)


OPTIONS = (
    "name queue group user parent unique priority retries cost delay timeout expire retain lease tags after "
    "block"
)


def run(arguments: argparse.Namespace) -> int:
    if (arguments.payload is None) == (arguments.lines is None):
        raise ValueError("give a payload, or --lines")
    if arguments.lines is not None and (arguments.id or arguments.wait):
        raise ValueError("--id and --wait go with a single payload")
    board = board_of(arguments)
    options = {name: getattr(arguments, name) for name in OPTIONS.split()}
    options = {name: value for name, value in options.items() if value is not None}
    if arguments.meta:
        options["meta"] = pairs_of(arguments.meta, "--meta")
    if arguments.costs:
        options["costs"] = costs_of(arguments.costs)
    if arguments.lines is not None:
        return post_lines(board, arguments, options)
    if arguments.wait is not None:
        options.setdefault("retain", "60s")
    id = board.post(json_of(arguments, arguments.payload), id=arguments.id, **options)
    if arguments.wait is None or id is None:
        print(escaped(id))
        return 0
    return wait(board, id, arguments.wait)


def costs_of(words: list[str]) -> dict[str, int]:
    """`LIMIT=PERMITS`, repeated."""
    try:
        return {limit: int(cost) for limit, cost in pairs_of(words, "--costs").items()}
    except ValueError:
        raise ValueError("--costs takes a limit and a whole number, such as --costs tokens=500") from None


def post_lines(board: AnyBoard, arguments: argparse.Namespace, options: dict[str, Any]) -> int:
    def payloads() -> Iterator[Any]:
        for number, line in enumerate(lines, 1):
            try:
                yield json_of(arguments, line)
            except ValueError as error:
                raise ValueError(f"{title(arguments.lines)}, line {number}: {error}") from error

    lines = read(arguments.lines).splitlines()
    with progress("posting", len(lines)) as told:
        ids = board.post_many(payloads(), progress=told, **options)
    print(f"posted {len(ids)}")
    return 0


def wait(board: AnyBoard, id: str, within: str) -> int:
    try:
        print(as_json(board.result(id, timeout=within)))
        return 0
    except (TimeoutError, NoResult) as error:
        say(str(error))
        return 1
