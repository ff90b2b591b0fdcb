"""What commands share: the board's address, durations, filters, output."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import sys
import zoneinfo
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import redis

from .. import connecting
from ..board import Board, ShardedBoard
from ..board.filters import FLAGS, NAMES, TIMES, Filters
from ..codecs import CODECS
from ..connecting import URL
from ..durations import UNITS, to_ms
from ..escaping import escaped, escaped_json

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Subparsers = argparse._SubParsersAction

AnyBoard = Board | ShardedBoard

STATES = ["scheduled", "blocked", "ready", "claimed", "complete", "failed", "cancelled", "trashed"]
FILTERS = {
    "state": f"in this state: {', '.join(STATES)}",
    "queue": "in this queue",
    "group": "of this group",
    "worker": "held by this worker",
    "name": "with this name",
    "tag": "with this tag",
    "kind": "whose last failure is of this kind",
    "user": "posted on behalf of this user",
    "tracked": "that somebody follows",
    "lapsed": "that have lost a lease",
    "parent": "that are children of this job",
    "after": "that wait for this job",
    "awaits": "that wait for this signal",
    "id": "whose id is this, or begins so: order-*",
    "meta": "with this value in this field of their meta",
    "stage": "whose reported stage contains this",
    "message": "the message of whose last failure contains this",
    "contains": "whose payload contains this, byte for byte",
}
"""What the filters say of the jobs that pass: see JOB.LIST."""


def add_board(parser: argparse.ArgumentParser) -> None:
    """The board and where it is."""
    parser.add_argument("board", type=name, help="name of the board: its key")
    add_server(parser)
    parser.add_argument("--shards", type=positive, metavar="N", help="it is a sharded board of N parts")
    parser.add_argument(
        "--codec", choices=list(CODECS), default="json", help="of payloads and results (default: json)"
    )


def add_server(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--url",
        help=f"of the server, or of its Sentinels (default: $JOBBOARD_URL, or {URL})",
    )
    parser.add_argument("--cluster", action="store_true", help="the server is a node of a cluster")


def connect(arguments: argparse.Namespace) -> redis.Redis | redis.RedisCluster:
    return connect_to(arguments.url, "--url", arguments.cluster)


def connect_to(url: str | None, name: str, cluster: bool) -> redis.Redis | redis.RedisCluster:
    """A client of the server at a URL that the option `name` has given."""
    return connecting.connect_cluster(url, name=name) if cluster else connecting.connect(url, name=name)


def board_of(arguments: argparse.Namespace) -> AnyBoard:
    client = connect(arguments)
    if arguments.shards:
        return ShardedBoard(arguments.board, client, shards=arguments.shards, codec=arguments.codec)
    return Board(arguments.board, client, codec=arguments.codec)


def add_filters(parser: argparse.ArgumentParser) -> None:
    """The filters of JOB.LIST."""
    group = parser.add_argument_group("filters", "repeated ones are alternatives; --not-… for the others")
    for name in NAMES:
        if name == "since":
            group.add_argument(
                "--since", type=revision, metavar="REVISION", help="changed since that revision"
            )
        elif name in FLAGS:
            group.add_argument(f"--{name}", action="store_true", default=None, help=FILTERS[name])
        elif name in TIMES:
            what = f"{name} between FROM and TO: 2h (before now), 2026-11-23T14:00+01:00, - for no bound"
            group.add_argument(f"--{name}", nargs=2, type=moment, metavar=("FROM", "TO"), help=what)
        elif name == "meta":
            for prefix in ("", "not-"):
                about = None if prefix else FILTERS[name]
                group.add_argument(
                    f"--{prefix}meta", action="append", type=pair, metavar="FIELD=VALUE", help=about
                )
        else:
            kind: dict[str, Any] = {"type": state, "choices": STATES} if name == "state" else {}
            for prefix in ("", "not-"):
                kind["help"] = None if prefix else FILTERS.get(name)
                group.add_argument(f"--{prefix}{name}", action="append", metavar=name.upper(), **kind)


def filters_of(arguments: argparse.Namespace) -> Filters:
    found: dict[str, Any] = {}
    excluded: dict[str, Any] = {}
    for name in NAMES:
        if getattr(arguments, name, None) is not None:
            found[name] = getattr(arguments, name)
        if getattr(arguments, f"not_{name}", None) is not None:
            excluded[name] = getattr(arguments, f"not_{name}")
    for some in (found, excluded):
        if "meta" in some:
            some["meta"] = by_field(some["meta"])
    if excluded:
        found["not_"] = excluded
    return found  # type: ignore[return-value]


def state(text: str) -> str:
    """A state by its name, or by the console's word."""
    return {"running": "claimed", "done": "complete"}.get(text, text)


def moment(text: str) -> datetime | str | None:
    """A time with a zone, a duration before now, or `-`."""
    if text == "-":
        return None
    with contextlib.suppress(ValueError):
        to_ms(text)
        return text
    with contextlib.suppress(ValueError):
        time = datetime.fromisoformat(text)
        if time.tzinfo is not None:
            return time
    raise argparse.ArgumentTypeError(
        f"{text!r} is no time: write 2h for two hours ago, 2026-11-23T14:00+01:00, or - for no bound"
    )


def pair(text: str) -> tuple[str, str]:
    field, equals, value = text.partition("=")
    if not field or not equals:
        shown = escaped(text)
        raise argparse.ArgumentTypeError(f"'{shown}' is no field and value: write {shown or 'plan'}=pro")
    return field, value


def by_field(pairs: list[tuple[str, str]]) -> dict[str, list[str]]:
    fields: dict[str, list[str]] = {}
    for field, value in pairs:
        fields.setdefault(field, []).append(value)
    return fields


def duration(text: str) -> str:
    """`500ms`, `30s`, `5m`, `2h`, `1d`."""
    try:
        to_ms(text)
    except ValueError:
        unit = f": write {text}s or {text}ms" if text.isdecimal() else ": 500ms, 30s, 5m, 2h, 1d"
        raise argparse.ArgumentTypeError(f"{text!r} is no duration{unit}") from None
    return text


def name(text: str) -> str:
    """The name of a board."""
    if not text:
        raise argparse.ArgumentTypeError("the name of a board is a text that is not empty")
    if "://" in text:
        raise argparse.ArgumentTypeError("this is a URL, and the name of the board stands here: see --url")
    return text


def positive(text: str) -> int:
    """A number of a command line, at least 1."""
    return _whole(text, 1)


def natural(text: str) -> int:
    """A number of a command line, 0 or more."""
    return _whole(text, 0)


def revision(text: str) -> int:
    """That of a board, which counts its changes."""
    try:
        return natural(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no revision of the board, a number that JOB.INFO tells: for a time write "
            "--posted 2h - or --ended 2h -"
        ) from None


def _whole(text: str, least: int) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 16 and int(text) >= least):
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number, at least {least}")
    return int(text)


def pairs_of(words: Iterable[str], option: str) -> dict[str, str]:
    """`FIELD=VALUE` of a command line, repeated."""
    found = {}
    for word in words:
        name, is_given, value = word.partition("=")
        if not is_given or not name:
            raise ValueError(f"{option} is FIELD=VALUE, not {word!r}")
        found[name] = value
    return found


def read(file: str) -> str:
    """The text of a file; `-` is standard input."""
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{title(file)} is no text in UTF-8: {error.reason}") from None


def title(file: str) -> str:
    """What errors call a file."""
    return "standard input" if file == "-" else file


def json_of(arguments: argparse.Namespace, text: str, what: str = "payload") -> Any:
    """A payload, or another value, of a command line."""
    if arguments.codec == "raw":
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the {what} is no JSON ({error}): quote text, or say --codec raw") from error


def as_json(value: Any) -> str:
    return escaped_json(json.dumps(_named(value), ensure_ascii=False, default=_other))


def _named(value: Any) -> Any:
    """With named tuples as objects, at any depth."""
    if isinstance(value, dict):
        return {name: _named(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        fields = getattr(value, "_fields", None)
        return [*map(_named, value)] if fields is None else dict(zip(fields, map(_named, value)))
    return value


def _other(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def time_of(ms: Any, zone: str | None = None) -> str:
    """A time as a person reads it, in a zone or in that of the terminal."""
    info = None
    with contextlib.suppress(ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        info = None if not zone else zoneinfo.ZoneInfo(zone)
    return datetime.fromtimestamp(ms / 1000).astimezone(info).isoformat(sep=" ", timespec="seconds")


_UNIX = re.compile(r"\b1[0-9]{12}\b")


def with_times(text: str) -> str:
    """A sentence of the server, with the times in it as a person reads them. The module's own sentences have
    Unix milliseconds; no other number of theirs has 13 digits and begins with 1."""
    return _UNIX.sub(lambda found: time_of(int(found[0])), text)


def span(ms: Any) -> str:
    """A duration as a person reads it."""
    if ms is None or ms < 0:
        return "-"
    for unit in ("d", "h", "m", "s"):
        if ms >= UNITS[unit]:
            return f"{ms / UNITS[unit]:.1f}{unit}"
    return f"{round(ms)}ms"


def exact(ms: int) -> str:
    """A duration as a person writes it: 1h30m."""
    parts = []
    for unit in ("d", "h", "m", "s", "ms"):
        number, ms = divmod(ms, UNITS[unit])
        parts += [f"{number}{unit}"] if number else []
    return "".join(parts)


def say(*words: Any) -> None:
    """To the terminal, beside the output."""
    print(*map(escaped, words), file=sys.stderr)


def columns(rows: Iterable[list[str]], heads: list[str]) -> str:
    """A plain table."""
    lines = [heads, *([escaped(cell) for cell in row] for row in rows)]
    widths = [max(len(line[number]) for line in lines) for number in range(len(heads))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines
    )
