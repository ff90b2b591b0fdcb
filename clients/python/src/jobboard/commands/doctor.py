"""`jobboard doctor`: whether a server is fit for boards, and what to do where it is not."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import redis

from .. import __version__
from ..board import Board
from ..connecting import name_of
from ..errors import coded, explained, translated
from ..escaping import escaped
from .common import Subparsers, add_server, connect, name, span

SKEW = 1.0
"""Seconds by which two clocks may differ."""
STUCK = 60_000
"""From this age on, ms, a ready job shows that no worker serves its queue, when nothing there is claimed."""
KEEP = (
    "jobs since the last snapshot are lost when the server stops without saving. On the running server: "
    "CONFIG SET appendonly yes, wait until INFO persistence says aof_rewrite_scheduled:0 and "
    "aof_rewrite_in_progress:0, then CONFIG REWRITE, or write appendonly yes into its file. Do not write it "
    "there and restart first: the server would start empty (docs/operate/README.md)"
)
"""A server that finds `appendonly yes` and no append-only file reads no snapshot, and later overwrites it."""
FULL = 0.8
"""From this part of maxmemory on the memory is nearly full."""
BOARD = "board"
"""Stands for the board in a command."""
ROLES = {
    "post (producers)": ["JOB.POST", BOARD, "payload"],
    "claim (workers)": ["JOB.CLAIM", BOARD, "worker"],
    "read (observers)": ["JOB.LIST", BOARD],
    "cancel (operators)": ["JOB.CANCEL", BOARD, "1", "id"],
}
KEY = re.compile(r"access the '.*' key", re.DOTALL)
"""The answer where a user may call the command, and not on this key."""


class Finding(NamedTuple):
    """`level` is ok, warn, bad, or skip where it could not be told."""

    level: str
    about: str
    text: str
    advice: str = ""


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "doctor",
        help="say whether a server is fit for boards",
        description="Looks at a server, and a board when one is named. Changes nothing. Ends with 1 when "
        "something is bad.",
    )
    parser.add_argument("board", type=name, nargs="?", help="name of a board to look at, too")
    add_server(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    client: Any = connect(arguments)
    worst = 0
    for finding in examine(client, arguments.board):
        worst |= finding.level == "bad"
        advice = f"\n      → {finding.advice}" if finding.advice else ""
        print(f"{finding.level:4}  {finding.about}: {escaped(finding.text)}{advice}")
    return worst


def examine(client: Any, board: str | None) -> Iterator[Finding]:
    asked = time.time()
    try:
        info: dict[str, Any] = client.info("everything")
        info["asked"], info["answered"] = asked, time.time()
    except redis.exceptions.NoPermissionError:
        yield Finding("skip", "server", "this user may not call INFO", "ask as an administrator")
        info = {}
    except redis.ConnectionError as error:
        yield Finding("bad", "server", str(explained(error, name_of(client))))
        return
    if info:
        for check in (server, module, persistence, memory, clock):
            yield from check(info)
    try:
        yield from rights(client, board)
    except redis.ResponseError as error:
        yield Finding("skip", "rights", f"could not be asked: {coded(error)}", "ask as an administrator")
    if board is not None:
        yield from board_of(client, board)


def server(info: dict[str, Any]) -> Iterator[Finding]:
    name = "Valkey" if "valkey_version" in info else "Redis"
    version = str(info.get("valkey_version", info["redis_version"]))
    fit = name == "Valkey" or int(version.partition(".")[0]) >= 7
    advice = "" if fit else "the module needs Redis 7.0 or newer, or Valkey"
    mode = info.get("server_mode") or info.get("redis_mode", "of an unknown mode")  # Valkey's word, Redis's
    yield Finding("ok" if fit else "bad", "server", f"{name} {version}, {mode}", advice)
    if info.get("role") == "slave":
        yield Finding(
            "bad", "role", "a replica: it refuses posts and claims", "name the primary, or its Sentinels"
        )


def module(info: dict[str, Any]) -> Iterator[Finding]:
    found = [one["ver"] for one in info.get("modules", []) if one["name"] == "jobboard"]
    if not found:
        advice = "load it (docs/guides/install.md), or start a server that has it with `jobboard serve`"
        yield Finding("bad", "module", "jobboard is not loaded", advice)
        return
    version = f"{found[0] // 10_000}.{found[0] // 100 % 100}.{found[0] % 100}"
    same = version == __version__
    advice = "" if same else "upgrade the older one: commands may be missing"
    text = f"jobboard {version}, this package {__version__}"
    yield Finding("ok" if same else "warn", "module", text, advice)
    if broken := info.get("jobboard_broken_boards"):
        advice = "docs/operate/trouble.md says how such a copy is made good"
        yield Finding("bad", "boards", f"{broken} are broken: this copy has missed changes", advice)
    if info.get("jobboard_manual_clock"):
        yield Finding(
            "bad", "clock", "it is moved by hand: no time passes", "load the module without its test clock"
        )
    if info.get("jobboard_replies_before_sync"):
        advice = "set io-threads to 1 where no acknowledged job may be lost"
        yield Finding("warn", "persistence", "with io-threads replies leave before the log is synced", advice)


def persistence(info: dict[str, Any]) -> Iterator[Finding]:
    failed = False
    for field, what in (
        ("rdb_last_bgsave_status", "the last snapshot"),
        ("aof_last_write_status", "the append-only file"),
        ("aof_last_bgrewrite_status", "the rewritten append-only file"),
    ):
        if info.get(field, "ok") != "ok":
            failed = True
            yield Finding("bad", "persistence", f"{what} could not be written", "look at disk and server log")
    if info.get("aof_enabled") and not failed:
        yield Finding("ok", "persistence", "an append-only file")
    elif not info.get("aof_enabled"):
        yield Finding("warn", "persistence", "no append-only file", KEEP)


def memory(info: dict[str, Any]) -> Iterator[Finding]:
    """What the server does when its memory is full, and how near that is."""
    policy, limit = str(info["maxmemory_policy"]), int(info["maxmemory"])
    used = int(info["used_memory"]) - int(info["mem_not_counted_for_evict"])
    machine = int(info["total_system_memory"])
    keeps = policy == "noeviction" or policy.startswith("volatile-")
    if not keeps:
        advice = "set maxmemory-policy noeviction: this one may throw whole boards away"
        yield Finding("bad" if limit else "warn", "eviction", policy, advice)
    else:
        yield Finding("ok", "eviction", policy)
    names = ("used_memory_human", "maxmemory_human", "total_system_memory_human")
    used_text, limit_text, machine_text = (info[name] for name in names)
    share = f"{used_text} used, maxmemory {limit_text}, the machine has {machine_text}"
    if not limit:
        advice = (
            "set maxmemory to two thirds of the machine, or the kernel kills the server when memory is full"
        )
        yield Finding(
            "warn", "memory", f"{used_text} used, no maxmemory, the machine has {machine_text}", advice
        )
    elif limit >= machine:
        advice = (
            "set maxmemory to two thirds of the machine: its memory is full before the server refuses posts"
        )
        yield Finding("bad", "memory", share, advice)
    elif used > FULL * limit:
        advice = "docs/operate/memory.md says what frees memory; at maxmemory posts are refused with OOM"
        yield Finding("bad" if used >= limit else "warn", "memory", share, advice)
    else:
        yield Finding("ok", "memory", share)


def clock(info: dict[str, Any]) -> Iterator[Finding]:
    asked, answered = info["asked"], info["answered"]
    apart = abs(info["server_time_usec"] / 1e6 - (asked + answered) / 2)
    if apart <= SKEW + (answered - asked):
        yield Finding("ok", "clock", f"{apart:.3f} s from this machine's")
    else:
        advice = "keep both by NTP: the server's decides, but logs and `at=` are those of this machine"
        yield Finding("warn", "clock", f"{apart:.1f} s from this machine's", advice)


def rights(client: Any, board: str | None) -> Iterator[Finding]:
    """What the user may do with the board; without one, which commands it may call on whichever keys."""
    user = client.acl_whoami()
    refused = []
    for role, words in ROLES.items():
        on = [(board or BOARD) if word == BOARD else word for word in words]
        said = client.execute_command("ACL", "DRYRUN", user, *on)
        may = said in ("OK", b"OK", True) or (board is None and KEY.search(_text(said)))
        if not may:
            refused.append(role)
    where = "" if board is None else f" on {board}"
    if refused:
        advice = "redis.conf has a user for each role; its rules name the keys on which it may"
        yield Finding("warn", "rights", f"the user {_text(user)} may not {', '.join(refused)}{where}", advice)
    else:
        yield Finding("ok", "rights", f"the user {_text(user)} may post, claim, read and cancel{where}")


def board_of(client: Any, name: str) -> Iterator[Finding]:
    board = Board(name, client)
    try:
        info = board.info()
        queues = board.queues()
    except redis.exceptions.NoPermissionError as error:
        advice = "ask as an operator, an observer or an administrator"
        yield Finding("skip", f"board {name}", f"this user may not look at it: {coded(error)}", advice)
        return
    except redis.ResponseError as error:
        yield Finding("bad", f"board {name}", coded(translated(error)))
        return
    if info is None:
        yield Finding(
            "warn", f"board {name}", "there is none yet", "the first post makes it: is the name right?"
        )
        return
    yield Finding(
        "ok", f"board {name}", f"{jobs(info['jobs'])}, {info['ready']} ready, {info['failed']} failed"
    )
    for row in queues:
        if row["ready"] and not row["claimed"] and row["oldest"] > STUCK:
            are = "is" if row["ready"] == 1 else "are"
            since = span(row["oldest"])
            text = f"{jobs(row['ready'])} {are} ready, the oldest since {since}, and none is claimed"
            advice = f"start a worker that claims from it, or ask `jobboard explain {name} ID`"
            yield Finding("warn", f"queue {row['queue']}", text, advice)


def jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
