"""`jobboard boards`, `workers`, `stats`, `settings`, `schedules`, `schedule`: for who operates boards."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import itertools
from typing import Any

import redis

from ..board import Board
from ..board.administering import DURATIONS
from ..board.reading import DISTRIBUTIONS
from ..errors import NoSchedule, coded, translated
from ..escaping import escaped
from .common import (
    AnyBoard,
    Subparsers,
    add_board,
    add_server,
    as_json,
    board_of,
    columns,
    connect,
    duration,
    exact,
    json_of,
    say,
    span,
    time_of,
)
from .condition import until
from .naming import TYPE, saying_if_unknown
from .quotas import of_board

VERBS = ["set", "pause", "resume", "run", "delete"]


def add(subparsers: Subparsers) -> None:
    boards = subparsers.add_parser("boards", help="the boards of a server")
    add_server(boards)
    boards.add_argument("--json", action="store_true")
    boards.set_defaults(run=run_boards)
    for name, run, about in (
        ("workers", run_workers, "the registered workers of a board"),
        ("stats", run_stats, "what happened on a day"),
        ("schedules", run_schedules, "the schedules of a board"),
    ):
        parser = subparsers.add_parser(name, help=about)
        add_board(parser)
        parser.add_argument("--json", action="store_true")
        if name == "stats":
            parser.add_argument("--queue", help="of this queue alone")
            parser.add_argument("--day", help="2026-11-23, or how many days ago (default: 0, today)")
        parser.set_defaults(run=run)
    _add_settings(subparsers)
    _add_schedule(subparsers)


def _add_settings(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("settings", help="the settings of a board: show, set, reset")
    add_board(parser)
    parser.add_argument("settings", nargs="*", metavar="NAME[=VALUE]", help="show these, or set them")
    parser.add_argument("--reset", action="store_true", help="go back to those of the server: these, or all")
    parser.add_argument("--queue", help="of this queue")
    parser.add_argument("--group", help="of this group of the queue; '*' is every one")
    parser.add_argument("--limit", help="of this shared limit")
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(run=run_settings)


def _add_schedule(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("schedule", help="make, change, pause, resume, run or delete a schedule")
    parser.add_argument("verb", choices=VERBS)
    add_board(parser)
    parser.add_argument("id")
    parser.add_argument("payload", nargs="?", help="set: JSON (with --codec raw: text)")
    parser.add_argument("--cron", help="'0 2 * * *'")
    parser.add_argument("--every", type=duration, metavar="TIME")
    parser.add_argument("--tz", help="of --cron, such as Europe/Berlin (default: UTC)")
    parser.add_argument("--name", help="of its jobs: which handler does them")
    parser.add_argument("--queue", help="of its jobs")
    parser.add_argument(
        "--backlog",
        type=_backlog,
        metavar="skip|one|all|N",
        help="of missed times: none, one, each, or the last N",
    )
    parser.add_argument("--overlap", choices=["allow", "skip", "replace"], help="while the last one runs")
    parser.set_defaults(run=run_schedule)


def _backlog(text: str) -> str | int:
    return int(text) if text.isdecimal() else text


def run_boards(arguments: argparse.Namespace) -> int:
    client: Any = connect(arguments)
    rows, objects = [], []
    counts = "jobs ready claimed failed".split()
    for key in sorted(client.scan_iter(_type=TYPE, count=1000)):
        board = Board(key, client)
        try:
            found = board.info()
            if found is not None:
                condition = _condition(board, found)
                rows.append([_text(key), *(str(found[name]) for name in counts), condition])
                numbers = {name: found[name] for name in counts}
                objects.append({"board": _text(key), **numbers, "condition": condition})
        except redis.ResponseError as error:
            rows.append([_text(key), coded(translated(error))])
            objects.append({"board": _text(key), "error": coded(translated(error))})
    if not rows:
        with contextlib.suppress(redis.exceptions.NoPermissionError):
            Board("jobboard", client).info()  # raises NoModule
    if arguments.json:
        print(as_json(objects))
        return 0
    print(
        columns(
            [row + [""] * (6 - len(row)) for row in rows],
            ["BOARD", *(name.upper() for name in counts), ""],
        )
    )
    return 0


def _condition(board: Board, info: dict[str, Any]) -> str:
    """What keeps the board from giving jobs to workers, or from taking posts."""
    if info["broken"]:
        return "broken"
    found = []
    if info["paused"]:
        found.append(until(info["paused"]))
    elif paused := [row["queue"] for row in board.queues() if row["paused"]]:
        more = f" and {len(paused) - 3} more" if len(paused) > 3 else ""
        found.append(f"paused: {', '.join(paused[:3])}{more}")
    with contextlib.suppress(redis.exceptions.NoPermissionError):
        if full := [one.setting for one in of_board(board, info)]:
            found.append(f"full: {', '.join(full)}")
    return "; ".join(found)


def run_workers(arguments: argparse.Namespace) -> int:
    found = list(board_of(arguments).worker_list())
    if arguments.json:
        print(as_json(found))
        return 0
    rows = [
        [
            *(row["worker"], row["role"], str(row["claimed"]), str(row["lapsed"])),
            "quiet" if row["quiet"] else "",
            *(time_of(row["registered"]), " ".join(f"{name}={value}" for name, value in row["meta"].items())),
        ]
        for row in found
    ]
    print(columns(rows, ["WORKER", "ROLE", "CLAIMED", "LAPSED", "QUIET", "SINCE", "ABOUT"]))
    return 0


def run_stats(arguments: argparse.Namespace) -> int:
    found = board_of(arguments).stats(queue=arguments.queue, day=arguments.day)
    if arguments.json:
        print(as_json(found))
        return 0
    times = [name.replace("_", "-") for name in DISTRIBUTIONS]
    print(
        columns([[name, str(value)] for name, value in found.items() if name not in times], ["WHAT", "JOBS"])
    )
    heads = "count mean p50 p95 p99 max".split()
    rows = [
        [name, str(found[name]["count"]), *(span(found[name][head]) for head in heads[1:])]
        for name in times
        if found[name]["count"]
    ]
    if rows:
        print()
        print(columns(rows, ["TIME", *map(str.upper, heads)]))
    return 0


def run_settings(arguments: argparse.Namespace) -> int:
    board = board_of(arguments)
    scope: Any = {name: getattr(arguments, name) for name in ("queue", "group", "limit")}
    given = dict(one.split("=", 1) for one in arguments.settings if "=" in one)
    names = [one.partition("=")[0] for one in arguments.settings]
    if given and len(given) < len(names):
        raise ValueError("either NAME to show, or NAME=VALUE to set")
    if arguments.reset:
        if given:
            raise ValueError("--reset goes with names alone")
        with saying_if_unknown(board, arguments.queue):
            board.settings_reset(*names, **scope)
    elif given:
        with saying_if_unknown(board, arguments.queue, makes=["queue"]):
            board.settings_set({name: _value(name, text) for name, text in given.items()}, **scope)
    found = board.settings_get(*names, **scope)
    if arguments.json:
        print(as_json({name: {"value": one.value, "source": one.source} for name, one in found.items()}))
        return 0
    rows = [[name, _shown(name, one.value), one.source] for name, one in found.items()]
    print(columns(rows, ["SETTING", "VALUE", "FROM"]))
    return 0


def run_schedules(arguments: argparse.Namespace) -> int:
    found = list(board_of(arguments).schedule_list())
    if arguments.json:
        print(as_json(found))
        return 0
    rows = [
        [
            *(row["id"], row["state"], row.get("cron") or f"every {exact(row['every'])}", row.get("tz", "")),
            *(
                row.get("name", ""),
                row["queue"],
                time_of(row["next"], row.get("tz")) if row.get("next", -1) > 0 else "",
            ),
            str(row["fired"]),
        ]
        for row in found
    ]
    print(columns(rows, ["SCHEDULE", "STATE", "WHEN", "ZONE", "NAME", "QUEUE", "NEXT", "FIRED"]))
    return 0


def run_schedule(arguments: argparse.Namespace) -> int:
    board = board_of(arguments)
    try:
        return change_schedule(arguments, board)
    except NoSchedule as error:
        raise NoSchedule(f"{error.detail} {arguments.id!r}{nearest(board, arguments.id)}") from None


def nearest(board: AnyBoard, id: str) -> str:
    """The schedule that was meant, as far as the user may list them."""
    with contextlib.suppress(redis.RedisError):
        known = [row["id"] for row in itertools.islice(board.schedule_list(), 1000)]
        near = difflib.get_close_matches(id, known, 1)
        return f"; did you mean {near[0]!r}?" if near else "; `jobboard schedules` lists those that there are"
    return ""


def change_schedule(arguments: argparse.Namespace, board: AnyBoard) -> int:
    id = arguments.id
    if arguments.verb == "set":
        names = "cron every tz name queue backlog overlap".split()
        options: Any = {name: getattr(arguments, name) for name in names}
        before = board.schedule_get(id)
        payload = json_of(arguments, arguments.payload) if arguments.payload else before and before["payload"]
        with saying_if_unknown(board, arguments.queue, makes=["board", "queue"]):
            board.schedule_set(id, payload, **options)
    elif arguments.payload is not None:
        raise ValueError("only `schedule set` takes a payload")
    elif arguments.verb == "run":
        posted = board.schedule_run(id)
        if posted is None:
            say("nothing posted: the last one has not ended")
            return 1
        print(escaped(posted))
    elif arguments.verb == "delete":
        board.schedule_del(id)
    else:
        (board.schedule_pause if arguments.verb == "pause" else board.schedule_resume)(id)
    return 0


def _value(name: str, text: str) -> Any:
    """A value as settings_set takes it."""
    if name == "limits":
        return [one for one in text.split(",") if one]
    if name in DURATIONS and text in ("0", "-1"):
        return "0s" if text == "0" else "forever"
    return text


def _shown(name: str, value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    if value is None:
        return "none"
    return span(value) if name in DURATIONS and value > 0 else str(value)


def _text(key: Any) -> str:
    return key.decode("utf-8", "surrogateescape") if isinstance(key, bytes) else str(key)
