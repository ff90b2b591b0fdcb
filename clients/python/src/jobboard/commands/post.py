"""`jobboard post`: one job, or a line of a file each."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import redis

from ..board.posting import CHUNK
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
    positive,
    read,
    say,
    title,
)
from .naming import saying_if_unknown


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("post", help="post a job, or one for each line of a file")
    add_board(parser)
    parser.add_argument("payload", nargs="?", help="JSON (with --codec raw: text)")
    parser.add_argument("--lines", metavar="FILE", help="a job for each line; - is standard input")
    parser.add_argument(
        "--from-line", type=positive, metavar="N", help="with --lines: begin at this line (default: 1)"
    )
    parser.add_argument(
        "--id-prefix",
        metavar="TEXT",
        help="with --lines: ids of this text and the number of the line, so that a repetition posts no job "
        "twice",
    )
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
    if arguments.lines is None and (arguments.from_line or arguments.id_prefix is not None):
        raise ValueError("--from-line and --id-prefix go with --lines")
    if arguments.id_prefix == "":
        raise ValueError("--id-prefix is a text that is not empty, such as --id-prefix import-7-")
    board = board_of(arguments)
    options = {name: getattr(arguments, name) for name in OPTIONS.split()}
    options = {name: value for name, value in options.items() if value is not None}
    if arguments.meta:
        options["meta"] = pairs_of(arguments.meta, "--meta")
    if arguments.costs:
        options["costs"] = costs_of(arguments.costs)
    with saying_if_unknown(board, arguments.queue, makes=["board", "queue"]):
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
    """Checks all lines, then posts them in their order."""
    lines, first = lines_of(read(arguments.lines)), arguments.from_line or 1
    if first > max(len(lines), 1):
        raise ValueError(f"--from-line {first}: {title(arguments.lines)} has {len(lines)} lines")

    def payloads() -> Iterator[Any]:
        for number, line in enumerate(lines[first - 1 :], first):
            try:
                yield json_of(arguments, line)
            except ValueError as error:
                raise ValueError(f"{title(arguments.lines)}, line {number}: {error}") from error

    for number, payload in enumerate(payloads(), first):
        try:
            board.codec.encode(payload)
        except ValueError as error:
            raise ValueError(f"{title(arguments.lines)}, line {number}: {error}") from error
    if arguments.id_prefix is not None:
        options["ids"] = [f"{arguments.id_prefix}{number}" for number in range(first, len(lines) + 1)]
        options["nx"] = True
    total = len(lines) - first + 1
    with contextlib.suppress(redis.exceptions.NoPermissionError):
        board.client.ping()  # a server that is away has got nothing
    with progress("posting", total) as told, telling_how_far(arguments, first, total) as count:

        def note(done: int) -> None:
            count(done)
            told(done)

        ids = board.post_many(payloads(), progress=note, **options)
    there = ids.count(None)
    print(f"posted {len(ids) - there}{f', {there} were there already' if there else ''}")
    return 0


def lines_of(text: str) -> list[str]:
    """The lines of a file, as editors count them: JSON may have other separators within its texts."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines[:-1] if not lines[-1] else lines


@contextlib.contextmanager
def telling_how_far(arguments: argparse.Namespace, first: int, total: int) -> Iterator[Callable[[int], None]]:
    """Gives a function to be told how many lines are done. When it breaks off, says where to go on."""
    done = 0

    def count(now: int) -> None:
        nonlocal done
        done = now

    try:
        yield count
    except BaseException as error:
        say(f"jobboard: posted {done} of {total} lines; {how_to_go_on(arguments, first + done, error)}")
        raise


def how_to_go_on(arguments: argparse.Namespace, line: int, error: BaseException) -> str:
    """What to do after posting broke off. Only a refusal of the server says for sure that nothing of the
    command was posted, and of a sharded board not even that where each job has an id: it has several."""
    if arguments.id_prefix is not None:
        return f"repeat it as it was, or with --from-line {line}: no job is posted twice"
    if isinstance(error, redis.ResponseError):
        return f"continue with --from-line {line}"
    return (
        f"the answer for those from line {line} on was lost: up to {CHUNK} of them may be posted. Count the "
        f"jobs before you continue with --from-line {line}; with --id-prefix a repetition posts no job twice"
    )


def wait(board: AnyBoard, id: str, within: str) -> int:
    try:
        print(as_json(board.result(id, timeout=within)))
        return 0
    except (TimeoutError, NoResult) as error:
        say(str(error))
        return 1
