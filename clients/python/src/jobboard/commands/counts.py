"""`jobboard count`, `kinds`, `tags`, `limits`: how many jobs there are of a sort."""

from __future__ import annotations

import argparse
from typing import Any

from .common import (
    Subparsers,
    add_board,
    add_filters,
    as_json,
    board_of,
    columns,
    filters_of,
    span,
    time_of,
)
from .naming import say_if_missing


def add(subparsers: Subparsers) -> None:
    count = subparsers.add_parser("count", help="how many jobs pass the filters")
    add_board(count)
    add_filters(count)
    count.set_defaults(run=run_count)
    for name, run, about in (
        ("kinds", run_kinds, "the failed jobs by kind of failure"),
        ("tags", run_tags, "the tags with their jobs, most used first"),
        ("limits", run_limits, "the shared limits, and what counts against them"),
    ):
        parser = subparsers.add_parser(name, help=about)
        add_board(parser)
        parser.add_argument("--json", action="store_true")
        parser.set_defaults(run=run)


def run_count(arguments: argparse.Namespace) -> int:
    board = board_of(arguments)
    found = board.count(**filters_of(arguments))
    print(found)
    if not found:
        say_if_missing(board)
    return 0


def run_kinds(arguments: argparse.Namespace) -> int:
    found = board_of(arguments).kinds()
    rows = sorted(found.items(), key=lambda row: (-row[1], row[0]))
    return _show(arguments, found, [[kind, str(jobs)] for kind, jobs in rows], ["KIND", "FAILED"])


def run_tags(arguments: argparse.Namespace) -> int:
    found = list(board_of(arguments).tags())
    return _show(arguments, found, [[row["tag"], str(row["jobs"])] for row in found], ["TAG", "JOBS"])


def run_limits(arguments: argparse.Namespace) -> int:
    found = list(board_of(arguments).limits())
    heads = "LIMIT CLAIMED CONCURRENCY RATE BURST DEBT REST".split()
    return _show(arguments, found, [_limit(row) for row in found], heads)


def _show(arguments: argparse.Namespace, found: Any, rows: list[list[str]], heads: list[str]) -> int:
    print(as_json(found) if arguments.json else columns(rows, heads))
    return 0


def _limit(row: dict[str, Any]) -> list[str]:
    rate = f"{row['rate']}/{span(row['rate-period'])}" if row["rate"] >= 0 else "-"
    numbers = [row["claimed"], row["concurrency"], rate, row["burst"], row["debt"]]
    paused, dry = row["paused"], row["dry"]
    rest = ("paused", paused) if paused else ("no permit", dry)
    until = "" if not rest[1] else rest[0] if rest[1] < 0 else f"{rest[0]} until {time_of(rest[1])}"
    return [row["limit"], *("-" if one == -1 else str(one) for one in numbers), until]
