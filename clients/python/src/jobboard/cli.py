"""The command line of the package: `jobboard <command> …`.

Each command is a module under commands/ with `add(subparsers)`. It sets `run`, a function of the parsed
arguments that returns what the process ends with. `jobboard.importers`, where it is installed, adds `import`
in the same way.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import importlib.util
import os
import signal
import sys
from collections.abc import Sequence

import redis

from . import __version__
from .commands import (
    awaiting,
    change,
    completion,
    copy,
    counts,
    doctor,
    look,
    mcp,
    operate,
    post,
    serve,
    steer,
    top,
    watch,
    work,
)
from .commands.parsing import Parser
from .connecting import default_url, is_sentinel, name_of_default
from .errors import coded, explained, translated
from .escaping import escaped

PASSWORD = (
    "the server refuses the password, or wants one: write redis://user:password@host:port in --url or "
    "$JOBBOARD_URL"
)
CLUSTERED = ": this server is a node of a cluster: say --cluster"
ENDS = """Ends with 0; with 1 when the server refused it, or there was no such job, or it did not end well;
with 2 when the command is written wrong; with 128 and the number of the signal that ended it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns what the process ends with: see `ENDS`."""
    parser = build_parser()
    completion.complete(parser)
    words = sys.argv[1:] if arguments is None else [*arguments]
    parsed = argparse.Namespace(words=words)
    try:
        try:
            parser.parse_args(words, parsed)
            if not hasattr(parsed, "run"):
                parser.print_help()
                return 2
            status: int = parsed.run(parsed)
            return status
        finally:
            flush()
    except BrokenPipeError:  # `jobboard list … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except redis.AuthenticationError as error:
        said = str(error).rpartition("(the server says: ")[2].removesuffix(")")
        print(escaped(f"jobboard: {PASSWORD} (the server says: {said})"), file=sys.stderr)
        return 1
    except (redis.ConnectionError, redis.InvalidResponse) as error:
        named = "--url" if getattr(parsed, "url", None) else name_of_default()
        said = coded(explained(error, named, among(parsed)))
        print(escaped(f"jobboard: {said}"), file=sys.stderr)
        return 1
    except (redis.RedisError, redis.exceptions.RedisClusterException) as error:
        error = translated(error)
        print(escaped(f"jobboard: {coded(error)}{CLUSTERED if is_moved(error) else ''}"), file=sys.stderr)
        return 1
    except ValueError as error:
        print(escaped(f"jobboard: {error}"), file=sys.stderr)
        return 2 if type(error) is ValueError else 1  # its subclasses say what cannot be done, or read
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
        print(escaped(f"jobboard: {what}"), file=sys.stderr)
        return 1


def flush() -> None:
    """Writes what is left of the output. At the end of the process Python would tell in its own way, and with
    a status of its own, that it cannot be written.
    """
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def among(parsed: argparse.Namespace) -> str:
    """What the server of a command line belongs to, as `explained` takes it."""
    if getattr(parsed, "cluster", False):
        return "cluster"
    return "sentinels" if is_sentinel(getattr(parsed, "url", None) or default_url()) else "server"


def is_moved(error: Exception) -> bool:
    """Whether another node of a cluster has the board."""
    return coded(error).startswith(("MOVED ", "ASK "))


@functools.cache
def build_parser() -> argparse.ArgumentParser:
    """All commands, put together once: it takes longer than most of them."""
    parser = Parser(prog="jobboard", description="Job boards inside Redis and Valkey.", epilog=ENDS)
    parser.add_argument("--version", action="version", version=f"jobboard {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="<command>")
    modules = (serve, work, doctor, post, look, counts, watch, operate, change, awaiting, steer, copy, top)
    for module in (*modules, mcp, completion):
        module.add(subparsers)
    if importlib.util.find_spec("jobboard.importers") is not None:
        importlib.import_module("jobboard.importers").add_command(subparsers)
    return parser


if __name__ == "__main__":
    sys.exit(main())
