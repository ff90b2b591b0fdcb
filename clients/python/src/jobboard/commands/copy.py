"""`jobboard copy`, `jobboard archive`: boards to another server, ended jobs to where they are kept."""

from __future__ import annotations

import argparse
import contextlib
import signal

from ..board import Board
from ..board.sharded import shard_keys
from ..copying.archive import Archive, follow
from ..copying.boards import Copied, Copy
from ..copying.stores import SHAPES, store_of
from ..durations import to_ms
from ..progress import progress
from .common import Subparsers, add_server, connect, connect_to, duration, name, positive, say
from .ending import Ending


def add(subparsers: Subparsers) -> None:
    copy = subparsers.add_parser(
        "copy",
        help="copy a board to another server",
        description="Copies jobs, settings and schedules of a board to another server, Redis or Valkey. Both "
        "boards are paused meanwhile; at the end the copy resumes the target and leaves the source paused.",
    )
    copy.add_argument("board", type=name, help="name of the source")
    copy.add_argument("target", type=name, nargs="?", help="name of the target (default: the same)")
    add_server(copy)
    copy.add_argument("--to", required=True, metavar="URL", help="of the server of the target")
    copy.add_argument("--to-cluster", action="store_true", help="that server is a node of a cluster")
    copy.add_argument("--shards", type=positive, metavar="N", help="they are sharded boards of N parts")
    copy.add_argument("--running", action="store_true", help="claimed jobs too, when no worker is at them")
    copy.set_defaults(run=run_copy)
    archive = subparsers.add_parser(
        "archive",
        help="keep ended jobs in a file, SQLite or PostgreSQL",
        description="Keeps each job that has ended, at least once, and notes in the store how far it is. "
        "Start it again to continue there.",
    )
    archive.add_argument("board", type=name)
    archive.add_argument("store", help=SHAPES)
    add_server(archive)
    archive.add_argument("--shards", type=positive, metavar="N", help="it is a sharded board of N parts")
    archive.add_argument("--table", default="jobs", help="of a database (default: jobs)")
    archive.add_argument("--once", action="store_true", help="end when all there is has been handed over")
    archive.add_argument("--every", type=duration, default="1s", metavar="TIME", help="look so often (1s)")
    archive.set_defaults(run=run_archive)


def run_copy(arguments: argparse.Namespace) -> int:
    client = connect(arguments)
    other = connect_to(arguments.to, "--to", arguments.to_cluster)
    names = zip(keys(arguments.board, arguments), keys(arguments.target or arguments.board, arguments))
    pairs = [(Board(own, client, codec="raw"), Board(to, other, codec="raw")) for own, to in names]
    pairs = [(source, target) for source, target in pairs if source.info() is not None]
    if not pairs:
        say(f"there is no board {arguments.board!r}")
        return 1
    done = Copied()
    with progress("copying", sum(source.count() for source, _ in pairs)) as told:
        copies = [
            Copy(source, target, running=arguments.running, told=lambda jobs: told(done.jobs + jobs))
            for source, target in pairs
        ]
        for one in copies:
            one.check()
        for one in copies:
            one.prepare()
        for one in copies:
            done.add(one.carry())
    print(
        f"copied {done.jobs} jobs, {done.schedules} schedules, {done.settings} settings; "
        f"{done.there} jobs were there already"
    )
    for id, why in list(done.refused.items())[:10]:
        say(f"{id}: {why}")
    if done.later:
        say(f"{done.later} were posted meanwhile: call it again to copy them too")
    if done.refused:
        paused = ", the target stays paused until then" if done.unfinished else ""
        say(f"{len(done.refused)} were refused: mend that and call it again{paused}")
    return 1 if done.refused else 0


def keys(name: str, arguments: argparse.Namespace) -> list[str]:
    """The keys of a board, or of the parts of a sharded one."""
    if arguments.shards is None:
        return [name]
    return shard_keys(name, arguments.shards)


def run_archive(arguments: argparse.Namespace) -> int:
    client = connect(arguments)
    names = keys(arguments.board, arguments)
    boards = [Board(name, client) for name in names]
    every = to_ms(arguments.every) / 1000
    if all(board.info() is None for board in boards):
        say(f"there is no board {arguments.board!r}{'' if arguments.once else ' yet'}")
        if arguments.once:
            return 1
    ending = Ending()
    with contextlib.ExitStack() as stack:
        archives = []
        for board, name in zip(boards, names):
            store = store_of(arguments.store, name, arguments.table)
            stack.callback(store.close)
            archives.append(Archive(board, store))
        for number in (signal.SIGTERM, signal.SIGINT):
            stack.callback(signal.signal, number, signal.signal(number, ending.ask))
        follow(archives, every=None if arguments.once else every, ended=ending.wait)
    print(f"archived {sum(one.done for one in archives)} jobs")
    if any(one.missed for one in archives):
        say("the board did not know all that has gone since last time: keep records longer (retain-complete)")
    if any(one.anew for one in archives):
        say("this is another board than last time: what ended on that one after the last look is not kept")
    return 0
