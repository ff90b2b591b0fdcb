"""`jobboard worker module:board`."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from pathlib import Path
from typing import Any

from ..worker import Worker
from ..worker.child import load
from ..worker.logs import configure
from ..worker.worker import check_board
from .common import Subparsers, duration, natural, positive
from .reloading import run_reloading


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "worker",
        help="run the handlers of a board",
        description="Runs the handlers of a board until SIGTERM; then they may finish for --stop-within.",
    )
    parser.add_argument("target", metavar="module:board", help="the board, with its handlers and its client")
    parser.add_argument("--url", help="of the server, or of its Sentinels (default: $JOBBOARD_URL)")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--processes", type=positive, metavar="N", help="N child processes")
    how.add_argument("--threads", type=positive, metavar="N", help="N threads (default: 8)")
    how.add_argument("--tasks", type=positive, metavar="N", help="N asyncio tasks")
    parser.add_argument(
        "--queue", action="append", dest="queues", help="repeatable (default: those of its tasks)"
    )
    parser.add_argument("--all-queues", action="store_true")
    parser.add_argument("--order", choices=["best", "listed", "rotate"])
    parser.add_argument(
        "--name", help="unique; jobs that an earlier process of this name still holds are ready again at once"
    )
    parser.add_argument("--role", default="worker")
    parser.add_argument("--lease", type=duration, metavar="TIME", help="(default: that of each job)")
    parser.add_argument("--prefetch", type=natural, default=0, metavar="N", help="claim N more than can run")
    parser.add_argument(
        "--stop-within", type=duration, default="20s", metavar="TIME", help="after SIGTERM (default: 20s)"
    )
    parser.add_argument(
        "--interrupt", choices=["raise", "flag", "kill"], default="raise", help="how handlers are stopped"
    )
    parser.add_argument("--kill-after", type=duration, default="0s", metavar="TIME")
    parser.add_argument("--session", action="store_true", help="claims end when the connection closes")
    keep = parser.add_mutually_exclusive_group()
    keep.add_argument(
        "--keep", type=positive, default=True, metavar="N", help="completed jobs that the board keeps"
    )
    keep.add_argument(
        "--no-keep",
        dest="keep",
        action="store_false",
        help="leave it to the server how long completed jobs stay",
    )
    parser.add_argument(
        "--health-port", metavar="[HOST:]PORT", help="answers /live and /ready there, for probes"
    )
    parser.add_argument("--health-file", metavar="FILE", help="is touched while the worker is ready")
    parser.add_argument("--reload", action="store_true", help="start again when a .py of this folder changes")
    parser.add_argument("--burst", action="store_true", help="end when there is no job")
    parser.add_argument("--log-level", default="info", choices=["debug", "info", "warning", "error"])
    parser.add_argument("--log-format", default="text", choices=["text", "json"])
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    if arguments.reload:
        return run_reloading([word for word in arguments.words if not word.startswith("--rel")], Path.cwd())
    configure(getattr(logging, arguments.log_level.upper()), arguments.log_format)
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())  # as `python -m` does: modules of this folder are found
    if arguments.url:
        os.environ["JOBBOARD_URL"] = arguments.url  # for the board, and for child processes
    try:
        board = load(arguments.target)
        check_board(board)
    except (ImportError, AttributeError, TypeError) as error:
        raise ValueError(f"{arguments.target}: {error}") from error
    if arguments.url and not board.by_default:
        raise ValueError(f"{arguments.target} names its own client: without one, Board(name), it heeds --url")
    worker = Worker(board, **options_of(arguments))
    return 0 if worker.run(burst=arguments.burst) else 1


def options_of(arguments: argparse.Namespace) -> dict[str, Any]:
    mode, concurrency = None if arguments.threads is None else "threads", arguments.threads
    if arguments.processes is not None:
        mode, concurrency = "processes", arguments.processes
    elif arguments.tasks is not None:
        mode, concurrency = "asyncio", arguments.tasks
    same = (
        "order name role lease prefetch stop_within interrupt kill_after session target keep "
        "health_port health_file"
    )
    return {
        **{name: getattr(arguments, name) for name in same.split()},
        "mode": mode,
        "concurrency": concurrency,
        "queues": [] if arguments.all_queues else arguments.queues,
    }
