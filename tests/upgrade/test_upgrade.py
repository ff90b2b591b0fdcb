"""Upgrades as docs/operate/upgrade.md has them, from this version to a pretended next one: under load, on
each kind of server. And the way back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from harness import KINDS, MODULE, Board, Server, wait_until
from harness.cluster import Cluster
from load import Load
from next_version import MODULE as NEXT
from next_version import SETTING, VERSION

pytestmark = pytest.mark.parametrize("kind", KINDS)

KEPT = {"retain-complete": -1, "keep-complete": 1_000_000, "lease": 10_000, "lapses": -1}
"""Every job stays, so that all can be counted; who loses an answer has its job back soon."""
NEW = ("next-setting", 7)


def replace_module(server: Server, path: object, *more: str) -> None:
    """Another file of the module, and a restart; `more` are lines of the configuration."""
    server.module = False
    kept = [line for line in server.config if not line.startswith(("loadmodule ", "replicaof "))]
    server.restart(config=[f"loadmodule {path}", *kept, *more])


def version(server: Server) -> int:
    with server.connect() as client:
        [module] = [one for one in client.module_list() if one["name"] == "jobboard"]
        return int(module["ver"])


def pause(board: Board) -> None:
    """The effect of a pause is the one that has a field more; it is written where the setting is used."""
    board.call("PAUSE", "QUEUE", "other")
    board.call("RESUME", "QUEUE", "other")


def use_what_is_new(board: Board) -> None:
    board.call("SETTINGS SET", *NEW)
    pause(board)


def check_nothing_is_lost(board: Board, load: Load) -> None:
    info = board.info()
    assert not info["broken"] and load.posted == load.done
    assert info["complete"] == len(load.posted) == info["jobs"]


@pytest.fixture
def servers(kind: str) -> Iterator[list[Server]]:
    """A primary and its replica, with this version."""
    primary = Server(kind, appendonly=True)
    replica = Server(kind, appendonly=True, replicaof=primary)
    try:
        yield [primary, replica]
        primary.check_health()
        replica.check_health()
    finally:
        replica.close()
        primary.close()


def test_a_running_pair_loses_nothing(servers: list[Server], kind: str) -> None:
    old, new = servers
    assert version(old) < VERSION
    for name, value in KEPT.items():
        old.board().call("SETTINGS SET", name, value)

    def primary() -> redis.Redis:
        for server in servers:
            with contextlib.suppress(redis.RedisError), server.connect(socket_timeout=10) as client:
                if client.role()[0] in ("master", b"master"):
                    return server.connect(socket_timeout=10)
        raise redis.ConnectionError("no primary at the moment")

    load = Load("board", primary)
    try:
        load.wait_for_more()
        replace_module(new, NEXT, f"replicaof 127.0.0.1 {old.port}")
        load.wait_for_more()
        pause(old.board())
        new.wait_synced(old)
        assert (version(old) < VERSION, version(new)) == (True, VERSION)
        assert not new.board().info()["broken"]

        with old.connect() as client:
            client.execute_command("FAILOVER", "TO", "127.0.0.1", new.port)
        wait_until(lambda: new.info("replication")["role"] == "master", 60, what="the failover")
        load.wait_for_more()
        pause(new.board())
        old.wait_synced(new)
        assert not old.board().info()["broken"], "an older replica follows where nothing new is used"

        replace_module(old, NEXT, f"replicaof 127.0.0.1 {new.port}")
        old.wait_synced(new)
        use_what_is_new(new.board())
        load.wait_for_more()
        load.drain()
    finally:
        load.stop()
    check_nothing_is_lost(new.board(), load)
    old.wait_synced(new)
    assert old.board().digest() == new.board().digest()
    digest = new.board().digest()
    for server in servers:
        server.restart()
        assert server.board().digest() == digest


def test_a_running_cluster_of_three_loses_nothing(kind: str) -> None:
    cluster = Cluster(kind, config=["appendonly yes"])
    loads: list[Load] = []
    try:
        names: dict[int, str] = {}
        for number in range(100):
            names.setdefault(cluster.owner(f"board-{number}").port, f"board-{number}")
        assert len(names) == 3
        for server in cluster.servers:
            for name, value in KEPT.items():
                server.board(names[server.port]).call("SETTINGS SET", name, value)

        def client() -> Any:
            port = cluster.servers[0].port
            for server in cluster.servers:
                if server.alive:
                    port = server.port
            return redis.RedisCluster("127.0.0.1", port, socket_timeout=10)

        loads += [Load(name, client, producers=1, workers=1) for name in names.values()]
        for server in cluster.servers:
            for load in loads:
                load.wait_for_more(30)
            replace_module(server, NEXT)
            wait_until(lambda s=server: cluster.state(s)["cluster_state"] == "ok", 60, what="cluster ok")
        assert [version(server) for server in cluster.servers] == [VERSION] * 3
        for server in cluster.servers:
            use_what_is_new(server.board(names[server.port]))
        for load in loads:
            load.wait_for_more(30)
            load.drain()
        for server in cluster.servers:
            [load] = [one for one in loads if one.name == names[server.port]]
            check_nothing_is_lost(server.board(load.name), load)
        cluster.check_health()
    finally:
        for load in loads:
            load.stop()
        cluster.close()


# The way back


@pytest.fixture
def newer(kind: str) -> Iterator[Server]:
    """A server with the next version, and two boards: in one of them something new is used."""
    server = Server(kind, module=False, config=[f"loadmodule {NEXT}", "appendonly yes"])
    try:
        for name in ("plain", "new"):
            board = server.board(name)
            board.mpost([f"payload {number}" for number in range(100)])
            board.claim("w1", count=10)
        use_what_is_new(server.board("new"))
        yield server
    finally:
        server.close()


@pytest.mark.parametrize("rewritten", [True, False], ids=["snapshot", "effects"])
def test_an_older_version_keeps_what_it_cannot_read(newer: Server, kind: str, rewritten: bool) -> None:
    if rewritten:
        newer.client().bgrewriteaof()
        wait_until(lambda: not newer.info("persistence")["aof_rewrite_in_progress"], 60)
    digests = {name: newer.board(name).digest() for name in ("plain", "new")}
    replace_module(newer, MODULE)
    assert newer.board("plain").digest() == digests["plain"]
    assert newer.board("plain").count(state="claimed") == 10
    newer.board("plain").post("later")
    with pytest.raises(redis.ResponseError, match="BROKEN"):
        newer.board("new").post("later")
    assert newer.board("new").info()["broken"]
    plain = newer.board("plain").digest()
    newer.restart(kill=True)
    replace_module(newer, NEXT)
    assert newer.board("plain").digest() == plain
    assert newer.board("new").digest() == digests["new"], "the newer version finds it whole"
    newer.board("new").post("later")


def test_an_older_replica_says_that_it_cannot_follow(newer: Server, kind: str) -> None:
    newer.board("new").call("SETTINGS RESET", SETTING)
    newer.board("fresh").post("x")
    replica = Server(kind, replicaof=newer)
    try:
        replica.wait_synced(newer)
        assert not replica.board("fresh").info()["broken"]
        use_what_is_new(newer.board("fresh"))
        replica.wait_synced(newer)
        assert replica.board("fresh").info()["broken"] and not replica.board("plain").info()["broken"]
        assert "board fresh is broken from now on" in replica.log
        assert not newer.board("fresh").info()["broken"]
        replace_module(replica, NEXT, f"replicaof 127.0.0.1 {newer.port}")
        replica.wait_synced(newer)
        for name in ("plain", "new", "fresh"):
            assert replica.board(name).digest() == newer.board(name).digest()
    finally:
        replica.close()


def test_what_an_older_version_rewrites_is_lost(newer: Server, kind: str) -> None:
    """Of a board in which something new is used: docs/operate/upgrade.md says how to prevent it."""
    replace_module(newer, MODULE)
    newer.client().bgrewriteaof()
    wait_until(lambda: not newer.info("persistence")["aof_rewrite_in_progress"], 60)
    assert newer.info("persistence")["aof_last_bgrewrite_status"] == "ok"
    replace_module(newer, NEXT)
    assert newer.board("plain").count(state="claimed") == 10
    assert newer.board("new").info()["broken"]
