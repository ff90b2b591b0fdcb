"""`jobboard copy`, `jobboard archive`: boards to another server, ended jobs to where they are kept."""

from __future__ import annotations

import argparse
import signal
import threading
from types import FrameType

from ..board import Board
from ..connecting import connect as connect_to
from ..copying.archive import Archive
from ..copying.boards import Copy
from ..copying.stores import store_of
from ..durations import to_ms
from ..progress import progress
from .common import Subparsers, add_server, connect, duration, say


def add(subparsers: Subparsers) -> None:
    copy = subparsers.add_parser(
        "copy",
        help="copy a board to another server",
        description="Copies jobs, settings and schedules of a board to another server, Redis or Valkey. Both "
        "boards are paused meanwhile; at the end the copy resumes the target and leaves the source paused.",
    )
    copy.add_argument("board", help="name of the source")
    copy.add_argument("target", nargs="?", help="name of the target (default: the same)")
    add_server(copy)
    copy.add_argument("--to", required=True, metavar="URL", help="of the server of the target")
    copy.add_argument("--running", action="store_true", help="claimed jobs too, when no worker is at them")
    copy.set_defaults(run=run_copy)
    archive = subparsers.add_parser(
        "archive",
        help="keep ended jobs in a file, SQLite or PostgreSQL",
        description="Keeps each job that has ended, at least once, and notes in the store how far it is. "
        "Started again it goes on there.",
    )
    archive.add_argument("board")
    archive.add_argument("store", help="jobs.ndjson, jobs.db, sqlite:FILE or postgresql://…")
    add_server(archive)
    archive.add_argument("--table", default="jobs", help="of a database (default: jobs)")
    archive.add_argument("--once", action="store_true", help="end when all there is has been handed over")
    archive.add_argument("--every", type=duration, default="1s", metavar="TIME", help="look so often (1s)")
    archive.set_defaults(run=run_archive)


def run_copy(arguments: argparse.Namespace) -> int:
    source = Board(arguments.board, connect(arguments), codec="raw")
    target = Board(arguments.target or arguments.board, connect_to(arguments.to), codec="raw")
    if source.info() is None:
        say(f"there is no board {arguments.board!r}")
        return 1
    with progress("copying", source.count()) as told:
        done = Copy(source, target, running=arguments.running, told=told).run()
    print(
        f"copied {done.jobs} jobs, {done.schedules} schedules, {done.settings} settings; "
        f"{done.there} jobs were there already"
    )
    for id, why in list(done.refused.items())[:10]:
        say(f"{id}: {why}")
    if done.later:
        say(f"{done.later} were posted meanwhile: call it again to copy them too")
    if done.refused:
        say(f"{len(done.refused)} were refused: mend that and call it again")
    return 1 if done.refused else 0


def run_archive(arguments: argparse.Namespace) -> int:
    board = Board(arguments.board, connect(arguments))
    store = store_of(arguments.store, arguments.board, arguments.table)
    stop = threading.Event()

    def heed(number: int, frame: FrameType | None) -> None:
        stop.set()

    old = {number: signal.signal(number, heed) for number in (signal.SIGTERM, signal.SIGINT)}
    archive = Archive(board, store)
    try:
        archive.run(follow=not arguments.once, every=to_ms(arguments.every) / 1000, stop=stop.is_set)
    finally:
        store.close()
        for number, before in old.items():
            signal.signal(number, before)
    print(f"archived {archive.done} jobs")
    if archive.missed:
        say("the board did not know all that has gone since last time: keep records longer (retain-complete)")
    return 0
