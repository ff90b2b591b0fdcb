"""Changing what is there: `jobboard requeue`, `cancel`, `release`, `delete`, `pause`, `resume`, `quiet`."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import redis

from ..errors import CannotDo, Exists, NoWorker, coded, translated
from ..escaping import escaped
from ..progress import progress
from .common import (
    Subparsers,
    add_board,
    add_filters,
    board_of,
    duration,
    filters_of,
    json_of,
    say,
)
from .confirming import ASKED, beyond, beyond_words, is_meant
from .naming import nearest, say_if_missing, saying_if_unknown
from .pauses import saying_what_stays

ABOUT = {
    "requeue": "make failed, trashed and cancelled jobs ready again",
    "cancel": "cancel jobs; a running one is asked to stop",
    "release": "take claimed jobs from their workers",
    "delete": "forget jobs, in any state",
}

LIVE = {"scheduled", "blocked", "ready", "claimed"}
APPLIES = {
    "cancel": LIVE,
    "signal": LIVE,
    "release": {"claimed"},
    "requeue": {"failed", "trashed", "cancelled"},
}
"""The states in which jobs can be changed by a verb, where it is not all."""
DESTROYS = {"delete": "deleted", "cancel": "cancelled"}
"""What may be lost for good. More than `ASKED` by filters are asked for once more."""
SAMPLE, NAMED = 1000, 5
"""How many jobs a dry run looks at, and how many it names."""


def add(subparsers: Subparsers) -> None:
    for verb, about in ABOUT.items():
        parser = subparsers.add_parser(verb, help=about, description=f"{about}: by ids, or by filters")
        add_board(parser)
        parser.add_argument("ids", nargs="*", metavar="ID")
        add_filters(parser)
        parser.add_argument(
            "--dry-run", action="store_true", help="with filters: only say how many, and which"
        )
        if verb == "requeue":
            parser.add_argument("--to", metavar="QUEUE", help="into another queue")
            parser.add_argument("--origin", action="store_true", help="dead jobs: to where they failed")
            parser.add_argument("--payload", metavar="TEXT", help="another payload, for one id")
            parser.add_argument("--fresh", action="store_true", help="forget the steps: do all work again")
        if verb in DESTROYS:
            parser.add_argument("--yes", action="store_true", help=f"do not ask, also for more than {ASKED}")
        if verb == "release":
            parser.add_argument("--front", action="store_true", help="they come next of their priority")
        if verb == "cancel":
            parser.add_argument("--by", metavar="USER", help="only jobs of that user")
            parser.add_argument("--force", action="store_true", help="running ones as well, at once")
        parser.set_defaults(run=run, verb=verb)
    for verb in ("pause", "resume"):
        about = "let nothing be claimed" if verb == "pause" else "end a pause"
        parser = subparsers.add_parser(verb, help=about)
        add_board(parser)
        parser.add_argument("--queue", help="only this queue")
        parser.add_argument("--group", help="only this group of it")
        parser.add_argument("--limit", help="only what counts against this shared limit")
        if verb == "pause":
            parser.add_argument("--for", dest="for_", type=duration, metavar="TIME")
            parser.add_argument("--release", action="store_true", help="take running jobs back")
        parser.set_defaults(run=run_pause, verb=verb)
    for verb in ("quiet", "unquiet"):
        about = "hand a worker no more jobs" if verb == "quiet" else "hand a quiet worker jobs again"
        parser = subparsers.add_parser(verb, help=about)
        add_board(parser)
        parser.add_argument("workers", nargs="+", metavar="WORKER", help="as `jobboard workers` names it")
        parser.set_defaults(run=run_quiet, verb=verb)


def run(arguments: argparse.Namespace) -> int:
    filters = filters_of(arguments)
    if bool(arguments.ids) == bool(filters):
        raise ValueError("give ids, or at least one filter")
    if arguments.ids and arguments.dry_run:
        raise ValueError("--dry-run goes with filters")
    if filters and getattr(arguments, "payload", None) is not None:
        raise ValueError("--payload goes with one id")
    return by_ids(arguments) if arguments.ids else by_filters(arguments, filters)


def by_ids(arguments: argparse.Namespace) -> int:
    board: Any = board_of(arguments)
    if arguments.verb == "cancel":
        found = board.cancel(*arguments.ids, by=arguments.by, force=arguments.force)
        for id, what in zip(arguments.ids, found):
            print(escaped(f"{id} {what or 'unknown'}"))
        if not all(found):
            say_if_missing(board)
        return 0 if all(found) else 1
    options = {}
    if arguments.verb == "requeue":
        options = {"queue": arguments.to, "fresh": arguments.fresh, "origin": arguments.origin}
        if arguments.payload is not None:
            options["payload"] = json_of(arguments, arguments.payload)
    if arguments.verb == "release":
        options = {"front": arguments.front}
    if arguments.verb == "update":
        options = arguments.changes
    try:
        done = getattr(board, arguments.verb)(*arguments.ids, **options)
    except Exists as error:
        id = next((id for id in arguments.ids if error.detail.endswith(f" {id}")), "")
        raise CannotDo(f"nothing is requeued: {key_held(arguments.board, id, error)}") from None
    print(f"{arguments.verb}: {done.count}")
    for id in done.held:
        say(f"no such job: {id}")
    if done.held:
        say_if_missing(board)
    return 1 if done.held else 0


def by_filters(
    arguments: argparse.Namespace,
    filters: Any,
    *,
    before: Sequence[str] = (),
    options: dict[str, Any] | None = None,
) -> int:
    """All that pass the filters. `before`: arguments of the method that come before them."""
    board: Any = board_of(arguments)
    options = dict(options or {})
    if arguments.verb == "requeue":
        options.update(to=arguments.to, fresh=arguments.fresh, origin=arguments.origin)
    if arguments.verb == "cancel":
        options.update(by=arguments.by, force=arguments.force)
    if arguments.verb == "release":
        options.update(front=arguments.front)
    total = board.count(**filters)
    if arguments.verb in DESTROYS and not arguments.dry_run:
        meant = how_many(arguments, board, filters, options) if total > ASKED else total
        if not is_meant(arguments, board, meant):
            say(f"nothing is {DESTROYS[arguments.verb]}")
            return 1
    with progress(arguments.verb, total) as told:
        changes = [arguments.changes] if arguments.verb == "update" else []
        done = getattr(board, f"{arguments.verb}_where")(
            *before, filters, *changes, dryrun=arguments.dry_run, progress=told, **options
        )
    print(f"{arguments.verb}: {done.count}{' (dry run)' if arguments.dry_run else ''}")
    if arguments.dry_run and done.count:
        is_origin = getattr(arguments, "origin", False)
        for line in sample(board, None if is_origin else APPLIES.get(arguments.verb), filters):
            print(escaped(line))
    if not total:
        say_if_missing(board, filters.get("queue", ()))
    if total and not done.count and not done.held:
        say(why_none(arguments, board, filters, total))
    if arguments.dry_run and arguments.verb == "cancel" and (lost := beyond(board, done.count)) and lost[0]:
        say(f"they would be cancelled{beyond_words(*lost)}")
    if done.held:
        more = f", the first {NAMED}" if len(done.held) > NAMED else ""
        say(f"{len(done.held)} {'would be' if arguments.dry_run else 'were'} held back{more}:")
        for id in done.held[:NAMED]:
            say(f"  {why_held(arguments, board, id, options)}")
    return 0


def how_many(arguments: argparse.Namespace, board: Any, filters: Any, options: dict[str, Any]) -> int:
    """How many jobs that pass the filters a verb would change."""
    found: int = getattr(board, f"{arguments.verb}_where")(filters, dryrun=True, **options).count
    return found


def why_none(arguments: argparse.Namespace, board: Any, filters: Any, total: int) -> str:
    """What a command has passed over that changed none of the jobs that pass its filters."""
    if arguments.verb == "update":
        return f"{total} pass, and have ended: only meta and log of such jobs can be changed"
    states = " or ".join(sorted(APPLIES.get(arguments.verb, ())))
    dead = ""
    if arguments.verb == "requeue" and not arguments.origin and is_dead(board, filters):
        dead = "; jobs of a dead queue are ready: --origin sends them back"
    return f"{total} pass, and none is {states}{dead}" if states else f"{total} pass, and none can be changed"


def is_dead(board: Any, filters: Any) -> bool:
    """Whether the first job that passes has come from another queue at its failure."""
    first = itertools.islice(board.list(fields=["origin"], page=1, **filters), 1)
    return any(job.origin is not None for job in first)


def key_held(board: str, id: str, error: Exists) -> str:
    """Why a job cannot come back while another one has its key."""
    holder = error.detail.removesuffix(f" {id}")
    cancel = shlex.join(["jobboard", "cancel", board, holder])
    return f"the unique key of {id} is held by job {holder}; wait until that has ended, or `{cancel}`"


def why_held(arguments: argparse.Namespace, board: Any, id: str, options: dict[str, Any]) -> str:
    """The id, and why a command with filters has passed it over. A requeue is tried again, and then says."""
    by_id = shlex.join(["jobboard", arguments.verb, arguments.board, id])
    if arguments.verb != "requeue":
        return f"{id}: `{by_id}` says why"
    if arguments.dry_run:
        job = board.get(id, fields=["unique"])
        key = job.unique if job is not None else None
        return (
            f"{id}: {f'another job holds its unique key {key!r}, or ' if key else ''}a limit allows no more"
        )
    try:
        board.requeue(id, queue=options["to"], fresh=options["fresh"], origin=options["origin"])
    except Exists as error:
        return key_held(arguments.board, id, error)
    except redis.ResponseError as error:
        return f"{id}: {coded(translated(error))}"
    return f"{id}: it could be requeued now, and was"


def sample(board: Any, states: set[str] | None, filters: Any) -> Iterator[str]:
    """Some jobs that a command with filters is about, and kinds of failure. `states`: theirs, or all."""
    listed = board.list(fields=["id", "state", "name", "kind"], page=SAMPLE, **filters)
    jobs = [job for job in itertools.islice(listed, SAMPLE) if states is None or job.state in states]
    for job in jobs[:NAMED]:
        yield "  " + "  ".join(str(one) for one in (job.id, job.state, job.name, job.kind) if one)
    if len(jobs) > NAMED:
        yield "  …"
    kinds = Counter(job.kind for job in jobs if job.kind and job.state != "complete")
    if kinds:
        of = f" of the first {SAMPLE}" if len(jobs) >= SAMPLE else ""
        yield f"  kinds{of}: " + ", ".join(f"{kind} {count}" for kind, count in kinds.most_common(NAMED))


def run_pause(arguments: argparse.Namespace) -> int:
    board = board_of(arguments)
    options = ("queue", "group", "limit")
    scope = [(f"--{name}", value) for name in options if (value := getattr(arguments, name)) is not None]
    staying: Any = contextlib.nullcontext()
    if arguments.verb == "resume":
        staying = saying_what_stays(board, arguments.board, tuple(itertools.chain(*scope)))
    with saying_if_unknown(board, arguments.queue), staying:
        if arguments.verb == "pause":
            board.pause(
                queue=arguments.queue,
                group=arguments.group,
                limit=arguments.limit,
                for_=arguments.for_,
                release=arguments.release,
            )
        else:
            board.resume(queue=arguments.queue, group=arguments.group, limit=arguments.limit)
    return 0


def run_quiet(arguments: argparse.Namespace) -> int:
    board: Any = board_of(arguments)
    change = board.worker_quiet if arguments.verb == "quiet" else board.worker_resume
    for worker in arguments.workers:
        try:
            change(worker)
        except NoWorker:
            near = nearest(worker, [row["worker"] for row in itertools.islice(board.worker_list(), 10_000)])
            say(f"the board has no worker {worker!r}{near or ': `jobboard workers` lists them'}")
            return 1
    return 0
