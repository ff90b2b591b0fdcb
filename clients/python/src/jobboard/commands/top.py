"""`jobboard top`: boards, live."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

from ..durations import to_ms
from ..errors import CannotDo
from ..escaping import escaped
from .common import AnyBoard, Subparsers, add_board, board_of, columns, duration, natural, span
from .ending import Ending

HEADS = ["QUEUE", "READY", "CLAIMED", "SCHEDULED", "BLOCKED", "FAILED", "IN/S", "OUT/S", "OLDEST", "DRAIN"]
WORKERS = ["WORKER", "HOLDS", "ACTIVE"]
JOBS = ["JOB", "NAME", "WORKER", "PROGRESS", "STAGE"]


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("top", help="a board, live: queues, workers, running jobs")
    add_board(parser)
    parser.add_argument("--every", type=duration, default="1s", metavar="TIME")
    parser.add_argument(
        "--jobs", type=natural, default=10, metavar="N", help="running jobs shown (default: 10)"
    )
    parser.add_argument("--once", action="store_true", help="print it once, and end")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    board = board_of(arguments)
    if arguments.once or not sys.stdout.isatty():
        print(plain(read(board, arguments.jobs)))
        return 0
    try:
        from rich.console import Console
        from rich.live import Live
    except ImportError:
        raise CannotDo("the live view needs rich: pip install 'jobboard[cli]', or say --once") from None
    console = Console()
    with interrupted() as ending, Live(console=console, screen=True, auto_refresh=False) as live:
        while not ending.asked:
            live.update(drawn(read(board, arguments.jobs), arguments.board), refresh=True)
            ending.wait(to_ms(arguments.every) / 1000)
    raise KeyboardInterrupt


@contextlib.contextmanager
def interrupted() -> Iterator[Ending]:
    """Whether Ctrl-C was pressed: Python drops the exception when it comes while a destructor runs."""
    ending = Ending()

    def interrupt(*_: object) -> None:
        ending.ask()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield ending
    finally:
        signal.signal(signal.SIGINT, before)


class View:
    """What is shown: rows of queues, workers and jobs."""

    def __init__(self, queues: list[list[str]], workers: list[list[str]], jobs: list[list[str]]) -> None:
        self.queues, self.workers, self.jobs = queues, workers, jobs


def read(board: AnyBoard, jobs: int) -> View:
    fields = ["id", "name", "worker", "progress", "stage"]
    running: list[list[str]] = []
    for job in board.list(state="claimed", fields=fields, page=max(jobs, 1)):
        if len(running) >= jobs:
            break
        progress = "" if job.progress is None else f"{job.progress:.0f} %"
        running.append([job.id, job.name or "", job.worker or "", progress, job.stage or ""])
    workers = sorted(board.workers(), key=lambda row: -row["claimed"])
    return View(
        [_queue(row) for row in board.queues()],
        [[row["worker"], str(row["claimed"]), span(row["active"])] for row in workers[:10]],
        running,
    )


def plain(view: View) -> str:
    parts = [columns(view.queues, HEADS)]
    for rows, heads in ((view.workers, WORKERS), (view.jobs, JOBS)):
        if rows:
            parts.append(columns(rows, heads))
    return "\n\n".join(parts)


def drawn(view: View, title: str) -> Any:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    tables: list[Any] = [Text(f"{escaped(title)}   {time.strftime('%H:%M:%S')}   ctrl-c ends", style="bold")]
    for rows, heads in ((view.queues, HEADS), (view.workers, WORKERS), (view.jobs, JOBS)):
        table = Table(box=None, pad_edge=False, header_style="dim")
        for number, head in enumerate(heads):
            table.add_column(head, justify="right" if heads is HEADS and number else "left")
        for row in rows:
            table.add_row(*(Text(escaped(cell)) for cell in row))
        tables += [Text(""), table]
    return Group(*tables)


def _queue(row: dict[str, Any]) -> list[str]:
    name = row["queue"] + (" (paused)" if row["paused"] else "")
    counts = [str(row[state]) for state in ("ready", "claimed", "scheduled", "blocked", "failed")]
    rates = [f"{row['arrival-rate']:.1f}", f"{row['completion-rate']:.1f}"]
    return [name, *counts, *rates, span(row["oldest"]), span(row["drain"])]
