"""`jobboard doctor`: whether a server is fit for boards, and what to do where it is not."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import redis

from .. import __version__
from ..connecting import explained_of
from ..errors import coded
from ..escaping import escaped
from ..replies import text as text_of
from .common import Subparsers, add_server, as_json, connect, name, span
from .condition import board_of
from .finding import Finding
from .writing import ADVICE, LATE, STOPPED, UNTRIED, advice_for, key_on, probe

SKEW = 1.0
"""Seconds by which two clocks may differ."""
KEEP = (
    "jobs since the last snapshot are lost when the server stops without saving. On the running server: "
    "CONFIG SET appendonly yes, wait until INFO persistence says aof_rewrite_scheduled:0 and "
    "aof_rewrite_in_progress:0, then CONFIG REWRITE, or write appendonly yes into its file. Do not write it "
    "there and restart first: the server would start empty (docs/operate/README.md)"
)
"""A server that finds `appendonly yes` and no append-only file reads no snapshot, and later overwrites it."""
UNREAD = (
    "when it holds jobs, save it now: copy that file elsewhere before anything else, since the next snapshot "
    "or stop overwrites it; then docs/operate/README.md#turn-the-append-only-file-on says how to go on"
)
EMPTY = 150
"""Below this size, bytes, a snapshot holds nothing."""
SLOTS = 16384
UNNAMED = "jobboard-doctor"
"""The key of questions where no board is named. Nothing is ever made there."""
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


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "doctor",
        help="say whether a server is fit for boards",
        description="Looks at a server, and a board when one is named. Changes nothing. Ends with 1 when "
        "something is bad.",
    )
    parser.add_argument("board", type=name, nargs="?", help="name of a board to look at, too")
    add_server(parser)
    parser.add_argument(
        "--replica",
        action="store_true",
        help="the server should be a replica: that it takes no writes is right",
    )
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    if arguments.replica and arguments.cluster:
        raise ValueError("--replica looks at one server: name the replica, without --cluster")
    client: Any = connect(arguments)
    found = []
    for finding in examine(client, arguments.board, is_replica=arguments.replica):
        found.append(finding)
        if not arguments.json:
            advice = f"\n      → {finding.advice}" if finding.advice else ""
            print(f"{finding.level:4}  {finding.about}: {escaped(finding.text)}{advice}")
    if arguments.json:
        print(as_json(found))
    return int(any(one.level == "bad" for one in found))


def examine(client: Any, board: str | None, *, is_replica: bool = False) -> Iterator[Finding]:
    """`is_replica`: what the server should be."""
    if isinstance(client, redis.RedisCluster):
        yield from nodes(client)
    else:
        info, found = asked(client)
        yield from found
        if any(one.level == "bad" for one in found):
            return
        if info:
            yield from of_server(client, info, is_replica=is_replica)
    may: list[str] | None = None
    try:
        yield rights(client, board)
        may = [words[0] for words in ROLES.values() if is_allowed(client, words, board or UNNAMED)]
        may += ["JOB.HEARTBEAT"] if "JOB.CLAIM" in may else []
    except redis.ResponseError as error:
        yield Finding("skip", "rights", f"could not be asked: {coded(error)}", "ask as an administrator")
    if not isinstance(client, redis.RedisCluster):
        yield from writes(client, board or UNNAMED, may, is_replica=is_replica)
    if board is not None:
        yield from board_of(client, board)


def asked(client: Any, **target: Any) -> tuple[dict[str, Any], list[Finding]]:
    """What the server tells of itself, or why not."""
    before = time.time()
    try:
        info: dict[str, Any] = client.info("everything", **target)
        return {**info, "asked": before, "answered": time.time()}, []
    except redis.exceptions.NoPermissionError:
        return {}, [Finding("skip", "server", "this user may not call INFO", "ask as an administrator")]
    except redis.ConnectionError as error:
        return {}, [Finding("bad", "server", str(explained_of(error, client)))]


def of_server(
    client: Any, info: dict[str, Any], *, of_cluster: bool = False, is_replica: bool = False
) -> Iterator[Finding]:
    yield from server(info)
    yield from role(info, is_replica=is_replica)
    for check in (module, persistence, memory, clock, timer):
        yield from check(info)
    if info.get("cluster_enabled") and info.get("role") != "slave":
        yield from cluster(client)
    if info.get("cluster_enabled") and not of_cluster:
        advice = "say --cluster: it asks all nodes, and finds boards of which another node has the slot"
        yield Finding("warn", "nodes", "this is a node of a cluster, and the others were not asked", advice)
    yield from unread(client)


def nodes(client: Any) -> Iterator[Finding]:
    """All nodes of a cluster: of the first primary everything, of the others what is not fit."""
    is_first = True
    for node in client.get_nodes():
        own = client.get_redis_connection(node)
        info, found = asked(own)
        if info and node.server_type == "primary":
            found += of_server(own, info, of_cluster=True)
            found += writes(own, key_on(client, node), None)
        elif info:
            found += [one for one in module(info) if one.about == "module"]
        for one in found:
            if is_first or one.level not in ("ok", "skip"):
                yield one._replace(about=f"{one.about} of {node.host} {node.port}")
        is_first = is_first and node.server_type != "primary"


def writes(
    client: Any, key: str, allowed: list[str] | None, *, is_replica: bool = False
) -> Iterator[Finding]:
    """What the server answers to a write that changes nothing."""
    found = probe(client, key, allowed)
    if found is None:
        text = "this user may send none that changes nothing"
        yield Finding("skip", "writes", text, "ask as a producer, a worker, an operator or an administrator")
        return
    what, said = found
    if what == UNTRIED:
        return
    if said is None:
        yield Finding("ok", "writes", f"the server takes {what}")
    elif is_replica and said.startswith("READONLY"):
        yield Finding("ok", "writes", f"the server refuses {what}, as a replica does")
    else:
        yield Finding("bad", "writes", f"the server refuses {what}: {said}", advice_for(said))


def timer(info: dict[str, Any]) -> Iterator[Finding]:
    """Whether leases, delays and schedules end in time."""
    late = int(info.get("jobboard_timer_overdue_ms", 0))
    if late > LATE:
        advice = "docs/operate/watching.md, JobboardTimerLate: the server is busy, or it cannot write"
        level = "bad" if late > STOPPED else "warn"
        yield Finding(level, "timer", f"leases, delays and schedules are late by {span(late)}", advice)


def cluster(client: Any) -> Iterator[Finding]:
    """Whether the cluster serves all of its slots, as this node sees it."""
    try:
        said = text_of(client.execute_command("CLUSTER", "INFO"))
    except redis.exceptions.NoPermissionError:
        return
    found = dict(line.split(":", 1) for line in said.split() if ":" in line)
    served = int(found.get("cluster_slots_ok", 0))
    if found.get("cluster_state") != "ok" or served < SLOTS:
        text = f"it is {found.get('cluster_state')}: {served} of {SLOTS} slots are served"
        yield Finding("bad", "cluster", text, ADVICE["CLUSTERDOWN"])


def unread(client: Any) -> Iterator[Finding]:
    """A snapshot that the server has not read, since it began with a new append-only file. It is seen where
    this runs on the server's machine."""
    host = client.connection_pool.connection_kwargs.get("host", "localhost")
    if host not in ("localhost", "::1") and not host.startswith("127."):
        return
    try:
        names: dict[Any, Any] = {}
        for name in ("dir", "dbfilename", "appenddirname", "appendfilename"):
            names |= client.config_get(name)
        folder = Path(text_of(names["dir"]))
        dump = (folder / text_of(names["dbfilename"])).stat()
        first = f"{text_of(names['appendfilename'])}.1.base.rdb"
        base = (folder / text_of(names["appenddirname"]) / first).stat()
    except (redis.ResponseError, KeyError, OSError):
        return
    if base.st_size < EMPTY <= dump.st_size and dump.st_mtime < base.st_mtime:
        text = (
            f"{folder / text_of(names['dbfilename'])} was not read: the server began with an empty new file"
        )
        yield Finding("bad", "snapshot", text, UNREAD)


def server(info: dict[str, Any]) -> Iterator[Finding]:
    name = "Valkey" if "valkey_version" in info else "Redis"
    version = str(info.get("valkey_version", info["redis_version"]))
    fit = name == "Valkey" or int(version.partition(".")[0]) >= 7
    advice = "" if fit else "the module needs Redis 7.0 or newer, or Valkey"
    mode = info.get("server_mode") or info.get("redis_mode", "of an unknown mode")  # Valkey's word, Redis's
    yield Finding("ok" if fit else "bad", "server", f"{name} {version}, {mode}", advice)


def role(info: dict[str, Any], *, is_replica: bool) -> Iterator[Finding]:
    """Whether the server is what it should be; of a replica, whether it follows its primary."""
    if info.get("role") != "slave":
        if is_replica:
            advice = "it was promoted, or its replicaof is missing: docs/operate/pair.md"
            yield Finding("bad", "role", "a primary, where a replica should be", advice)
        return
    if not is_replica:
        advice = "name the primary, or its Sentinels; to look at the replica itself say --replica"
        yield Finding("bad", "role", "a replica: it refuses posts and claims", advice)
        return
    primary = f"a replica of {info.get('master_host')} {info.get('master_port')}"
    if info.get("master_link_status") == "up":
        yield Finding("ok", "role", f"{primary}, with a link to it")
    elif info.get("master_sync_in_progress"):
        yield Finding("warn", "role", f"{primary}, whose data it still copies")
    else:
        advice = "docs/operate/watching.md, ServerReplicaParted: its log has the reason"
        yield Finding("bad", "role", f"{primary}, without a link to it", advice)


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


def rights(client: Any, board: str | None) -> Finding:
    """What the user may do with the board; without one, which commands it may call on whichever keys. A user
    of one role has no other's commands: it is no fault that they are refused.
    """
    user = f"the user {_text(client.acl_whoami())}"
    has = [role for role, words in ROLES.items() if is_allowed(client, words, None)]
    may = [role for role in has if board is None or is_allowed(client, ROLES[role], board)]
    where = "" if board is None else f" on {board}"
    if not has or len(may) < len(has):
        refused = [role for role in has or ROLES if role not in may]
        advice = "redis.conf has a user for each role; its rules name the keys on which it may"
        return Finding("warn", "rights", f"{user} may not {', '.join(refused)}{where}", advice)
    others = [role for role in ROLES if role not in may]
    more = f"; not {', '.join(others)}" if others else ""
    return Finding("ok", "rights", f"{user} may {', '.join(may)}{where}{more}")


def is_allowed(client: Any, command: list[str], board: str | None) -> bool:
    """Whether the user may call a command of `ROLES` on the board; without one, on any."""
    words = [(board or BOARD) if word == BOARD else word for word in command]
    said = client.execute_command("ACL", "DRYRUN", client.acl_whoami(), *words)
    return said in ("OK", b"OK", True) or (board is None and bool(KEY.search(_text(said))))


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
