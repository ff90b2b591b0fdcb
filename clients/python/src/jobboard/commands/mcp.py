"""`jobboard mcp`: boards for a language model, by the Model Context Protocol."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path
from typing import Any

import redis

from ..connecting import place_of
from ..errors import CannotDo
from ..replies import text
from .common import Subparsers, add_server, connect, name, say


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "mcp",
        help="a server of the Model Context Protocol, for language models",
        description="Serves boards to a language model, by the Model Context Protocol on standard input and "
        "output: a program that speaks it starts this command. It only looks, unless --write is given.",
    )
    add_server(parser)
    parser.add_argument(
        "--board", action="append", type=name, metavar="NAME", help="this board alone; repeatable"
    )
    parser.add_argument("--write", action="store_true", help="tools that act, not only look")
    parser.add_argument("--no-payloads", action="store_true", help="show neither payloads nor results")
    parser.add_argument(
        "--audit",
        type=Path,
        metavar="FILE",
        help="where actions are written down (default: jobboard/mcp.jsonl in the user's state directory)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    if importlib.util.find_spec("mcp") is None:
        raise CannotDo("jobboard mcp needs its extra: pip install 'jobboard[mcp]'")
    if arguments.audit and not arguments.write:
        raise ValueError("--audit writes down actions, and there are none without --write")
    from ..mcp.acting import Acting
    from ..mcp.audit import Audit, default_file
    from ..mcp.reading import Reading
    from ..mcp.server import server

    client: Any = connect(arguments)
    boards = frozenset(arguments.board or ())
    payloads = not arguments.no_payloads
    if arguments.write:
        audit = Audit(arguments.audit or default_file(), place_of(client), user_of(client))
        tools: Reading = Acting(client, boards, payloads, audit)
    else:
        client.ping()
        tools = Reading(client, boards, payloads)
    if sys.stdin.isatty():
        say("jobboard mcp speaks the Model Context Protocol with the program that starts it; Ctrl-C ends it")
    server(tools).run("stdio")
    return 0


def user_of(client: Any) -> str:
    """As whom the server knows this client."""
    try:
        return text(client.execute_command("ACL", "WHOAMI"))
    except redis.exceptions.NoPermissionError:  # roles lack it
        has_nodes = isinstance(client, redis.RedisCluster)
        pool = client.nodes_manager if has_nodes else client.connection_pool
        return str(pool.connection_kwargs.get("username"))
