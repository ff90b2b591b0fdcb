"""`jobboard import`: moves the jobs of another library to a board."""

from __future__ import annotations

import argparse
import json
import uuid
from typing import Any

import redis

from ..commands.common import add_server, connect, connect_to, duration, positive, say
from ..commands.common import name as board_name
from ..connecting import explained_of
from ..durations import to_ms
from ..errors import coded
from ..escaping import escaped
from ..progress import progress
from .bullmq import BullMQ
from .holds import Hold, Holds
from .moving import Board, Busy, Mover, Report, Section, Source, text
from .qless import Qless
from .rq import RQ
from .streams import Streams
from .work_queue import WorkQueue

RUNNING = {"running", "taken"}
"""What is moved only when it is asked for: somebody may be at work on it."""

LIBRARIES = {
    "rq": ("RQ", "queue", "its queues; default: all", "rq"),
    "bullmq": ("BullMQ", "queue", "its queues; default: all", "bull"),
    "qless": ("qless", "queue", "its queues; default: all", "ql"),
    "work-queue": ("redis-work-queue", "prefix", "the key prefixes of its queues", None),
    "taskflow": ("TaskFlow's redis jobboard", "namespace", "its namespaces; default: taskflow", None),
    "streams": ("Redis Streams", "stream", "the keys of the streams", None),
}
"""Title, what its queues are called, help, and the prefix of its keys where it can be chosen."""


def add_command(subparsers: Any) -> None:
    """Adds `import` to the command line: `run` of the parsed arguments does it."""
    parser = subparsers.add_parser(
        "import",
        help="move the jobs of another library to a board",
        description="Moves waiting, delayed and failed jobs with their attributes to a board. Stop the "
        "workers of the other library first. It can be killed and started again at any time: nothing is lost "
        "or moved twice. Jobs that cannot be moved stay where they are, and the exit code is 1.",
    )
    libraries = parser.add_subparsers(dest="library", required=True, metavar="library")
    for name, (title, word, about, prefix) in LIBRARIES.items():
        one = libraries.add_parser(name, help=f"from {title}", description=f"From {title}.")
        one.add_argument("board", type=board_name, help="the key of the board")
        needed = name in ("work-queue", "streams")
        one.add_argument("places", metavar=word, nargs="+" if needed else "*", help=about)
        if prefix:
            one.add_argument("--prefix", default=prefix, help=f"of its keys (default: {prefix})")
        if name == "streams":
            add_stream_options(one)
        add_options(one)
        one.set_defaults(run=run)


def add_options(parser: argparse.ArgumentParser) -> None:
    add_server(parser)
    parser.add_argument(
        "--from", dest="source", metavar="URL", help="of its server (default: that of the board)"
    )
    parser.add_argument("--queue", help="one queue of the board for all jobs (default: as they were)")
    parser.add_argument("--only", metavar="STATES", help="of these states alone: waiting,delayed,failed …")
    parser.add_argument(
        "--running", action="store_true", help="also jobs that were begun, which no worker may be at any more"
    )
    parser.add_argument("--slice", type=of_a_slice, default=500, help="jobs of one step (default: 500)")
    parser.add_argument("--dry-run", action="store_true", help="count, and change nothing")


def add_stream_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--group", required=True, help="the consumer group")
    parser.add_argument("--field", help="the field that is the payload (default: all, as a JSON object)")
    parser.add_argument("--name-field", help="the field that is the name of the job")
    parser.add_argument(
        "--idle",
        type=duration,
        default="0s",
        metavar="TIME",
        help="leave what was given to a consumer since (default: 0s)",
    )
    parser.add_argument("--delete", action="store_true", help="delete what is moved from the stream")


def of_a_slice(text: str) -> int:
    number = positive(text)
    if number > 10_000:
        raise argparse.ArgumentTypeError("from 1 to 10000")
    return number


def run(arguments: argparse.Namespace) -> int:
    """0: all is moved. 1: jobs stay, or another import has begun. 2: it could not be done."""
    try:
        if arguments.source is None:
            if arguments.cluster:
                raise ValueError("in front of a cluster, say --from")
        target = connect(arguments)
        from_, name = (arguments.source, "--from") if arguments.source else (arguments.url, "--url")
        origin = connect_to(from_, name, False)
        reach(origin)
        source = make_source(origin, arguments)
        sections = chosen(source, arguments)
        if arguments.dry_run:
            return dry_run(source, target, sections, arguments)
        return move(source, target, sections, arguments)
    except Busy as error:
        say(f"jobboard import: {error}")
        return 1
    except (redis.RedisError, ImportError, ValueError) as error:
        say(f"jobboard import: {coded(error)}")
        return 2


def reach(client: Any) -> None:
    """Raises what keeps its server from answering, with what said where it is."""
    try:
        client.ping()
    except redis.ConnectionError as error:
        raise explained_of(error, client) from None
    except redis.ResponseError:  # this user may not ask
        pass


def make_source(client: Any, arguments: argparse.Namespace) -> Source:
    library, places, queue = arguments.library, arguments.places, arguments.queue
    if library == "rq":
        return RQ(client, places, arguments.prefix, queue)
    if library == "bullmq":
        return BullMQ(client, places, arguments.prefix, queue)
    if library == "qless":
        return Qless(client, places, arguments.prefix, queue)
    if library == "work-queue":
        return WorkQueue(client, places, queue)
    if library == "streams":
        return Streams(
            client,
            places,
            arguments.group,
            to_queue=queue,
            field=arguments.field,
            name_field=arguments.name_field,
            idle=to_ms(arguments.idle),
            delete=arguments.delete,
            dry=arguments.dry_run,
        )
    try:
        from .taskflow import TaskFlow
    except ImportError as error:
        raise ImportError(f"this needs TaskFlow: pip install 'jobboard[taskflow]' ({error})") from error
    return TaskFlow(client, places or ["taskflow"], queue)


def chosen(source: Source, arguments: argparse.Namespace) -> list[Section]:
    """The sections that are to be moved."""
    sections = source.sections()
    known = {section.state for section in sections}
    if arguments.only is None:
        wanted = known - (set() if arguments.running else RUNNING)
    else:
        wanted = {state.strip() for state in arguments.only.split(",")}
        if wanted - known:
            raise ValueError(
                f"no such states: {', '.join(sorted(wanted - known))}; there are {', '.join(sorted(known))}"
            )
        wanted |= RUNNING if arguments.running else set()
    return [section for section in sections if section.state in wanted]


def dry_run(source: Source, target: Any, sections: list[Section], arguments: argparse.Namespace) -> int:
    mover = Mover(source, Board(target, arguments.board, source.name), arguments.slice)
    with progress("counting", sum(map(source.count, sections))) as mover.told:
        report = mover.count(sections)
    tell(report, moving=False)
    holds = Holds(target, arguments.board, source.holds())
    holds.tell()
    tell_holds(holds)
    tell_others(source, sections)
    return 0


def move(source: Source, target: Any, sections: list[Section], arguments: argparse.Namespace) -> int:
    origin = Origin(source, arguments.board)
    mover = Mover(source, Board(target, arguments.board, origin.name), arguments.slice)
    ended = mover.recover()
    if ended:
        say(f"an import that was broken off had moved {ended} jobs, which are removed now")
    if mover.again:
        say(f"the board was deleted since an import was broken off: {mover.again} jobs are moved again")
    holds = Holds(target, arguments.board, origin.begin(source.holds()))
    holds.begin()
    mover.board.lifting = holds.lifting
    with progress("moving", sum(map(source.count, sections))) as mover.told:
        report = mover.move(sections)
    holds.end()
    origin.forget()
    tell(report, moving=True)
    tell_holds(holds)
    tell_others(source, sections)
    return 1 if any(report.stayed.values()) else 0


class Origin:
    """What tells this import from others to the same board: the library, its keys, its server. The server is
    known by a word that is kept there while an import has begun: its URL may be spelled in many ways.
    """

    def __init__(self, source: Source, board: str) -> None:
        self.client = source.client
        self.key = f"jobboard-import.{source.name}.{board}"
        self._rates = f"jobboard-import.rates.{source.name}.{board}"
        self.client.set(self.key, uuid.uuid4().hex, nx=True)
        self.name = f"{source.name}.{text(self.client.get(self.key))}"

    def begin(self, holds: list[Hold]) -> list[Hold]:
        """Notes the rates, which are set at the end. With those that an import has noted that was broken off:
        queues that it has emptied are known by nothing else.
        """
        noted = json.loads(self.client.get(self._rates) or "{}")
        found = {hold.queue for hold in holds}
        holds = holds + [Hold(queue, rate=tuple(rate)) for queue, rate in noted.items() if queue not in found]
        rates = {hold.queue: hold.rate for hold in holds if hold.rate is not None}
        if rates:
            self.client.set(self._rates, json.dumps(rates))
        return holds

    def forget(self) -> None:
        """The import is at its end."""
        self.client.delete(self.key, self._rates)


def tell(report: Report, moving: bool) -> None:
    """A table of the states, and why jobs stay."""
    titles = ["state", "found", *(["moved"] if moving else []), "stay"]
    print("".join(f"{title:>12}" for title in titles))
    for state in sorted(report.found):
        numbers = [report.found[state], *([report.moved[state]] if moving else []), report.stayed[state]]
        print(f"{state:>12}" + "".join(f"{number:>12,}" for number in numbers))
    if not report.found:
        print(f"{'none':>12}")
    for id, reason in report.reasons:
        print(escaped(f"stays: {id}: {reason}"))
    more = sum(report.stayed.values()) - len(report.reasons)
    if more > 0:
        print(f"stay: {more:,} more")


def tell_holds(holds: Holds) -> None:
    """What keeps back the jobs of the board from now on."""
    for line in holds.said:
        print(escaped(line))


def tell_others(source: Source, sections: list[Section]) -> None:
    """What was not asked for."""
    for section in source.sections():
        if section not in sections:
            number = source.count(section)
            if number:
                print(escaped(f"not asked for: {number:,} {section.state} of {section.place}"))
