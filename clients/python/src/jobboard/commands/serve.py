"""`jobboard serve`: a server with the module, and the console."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..errors import CannotDo
from .common import Subparsers


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "serve",
        help="start a server with the module, and the console",
        description="Starts a server with the module, and the console, for this machine alone, until Ctrl-C "
        "or SIGTERM. Jobs are kept in a folder, in an append-only file.",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--dir", type=Path, help="data folder (default: jobboard in the user's data directory)"
    )
    where.add_argument("--temporary", action="store_true", help="a data folder that is removed at the end")
    parser.add_argument(
        "--port", type=port, default=6379, help="of the server; 0: a free one (default: 6379)"
    )
    parser.add_argument(
        "--console-port", type=port, default=8379, metavar="PORT", help="0: a free one (default: 8379)"
    )
    parser.add_argument("--any-port", action="store_true", help="free ports in place of those that are taken")
    parser.add_argument("--no-password", action="store_true", help="all users of this machine may come in")
    parser.add_argument("--no-console", action="store_true")
    parser.add_argument("--write", action="store_true", help="the console's users may act, not only look")
    parser.add_argument("--server", metavar="PATH", help="a redis-server or valkey-server, 7.0 or newer")
    parser.add_argument("--module", metavar="PATH", help="another libjobboard.so (also: $JOBBOARD_MODULE)")
    parser.add_argument("--console", metavar="PATH", help="another console (also: $JOBBOARD_CONSOLE_FILE)")
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="more lines for the server's configuration"
    )
    demo = parser.add_argument_group(
        "demo", "the checksums of all files of a folder, while a worker is killed"
    )
    demo.add_argument("--demo", type=Path, nargs="?", const=Path("."), metavar="FOLDER")
    demo.add_argument("--workers", type=count, default=4, metavar="N", help="(default: 4)")
    demo.add_argument("--once", action="store_true", help="end after the demo")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    if sys.platform == "win32":
        raise CannotDo("jobboard serve needs Linux or macOS: on Windows use it in WSL")
    from ..serving.serve import Settings, serve

    if arguments.once and arguments.demo is None:
        raise ValueError("--once ends after the demo: give --demo too")
    if arguments.demo is not None and not arguments.demo.is_dir():
        raise ValueError(f"--demo: {arguments.demo} is no folder")
    return serve(
        Settings(
            folder=arguments.dir,
            temporary=arguments.temporary,
            port=arguments.port,
            console_port=arguments.console_port,
            any_port=arguments.any_port,
            with_password=not arguments.no_password,
            with_console=not arguments.no_console,
            write=arguments.write,
            server=arguments.server,
            module=arguments.module,
            console=arguments.console,
            config=arguments.config,
            demo=arguments.demo,
            workers=arguments.workers,
            once=arguments.once,
        )
    )


def port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: write 0 to 65535")
    return int(text)


def count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number, at least 1")
    return int(text)
