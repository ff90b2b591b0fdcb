"""The alerts on servers of examples/alerts.yml: redis_exporter reads servers that are in trouble.

Nothing here writes down what the exporter gives: it runs, and Prometheus's own tool evaluates the rules.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
import yaml
from harness import Server, wait_until
from harness.server import free_port
from harness.wall import WallClock
from prometheus import EXPORTER, GROUPS, PROMTOOL, RULES, Scrape, check_firing, needed, read

Fresh = Callable[..., Server]


class Exporter:
    """redis_exporter, which asks the server that a scrape names."""

    def __init__(self) -> None:
        self.port = free_port()
        words = [needed(EXPORTER), "-redis.addr", "", "-web.listen-address", f"127.0.0.1:{self.port}"]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self._answers, what="redis_exporter answers")

    def _answers(self) -> bool:
        with contextlib.suppress(urllib.error.URLError):
            return self._get("/health").status == 200
        return False

    def _get(self, path: str):
        return urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30)

    def scrape(self, *servers: Server) -> Scrape:
        """What Prometheus stores of a scrape: with the label `instance`."""
        found: Scrape = {}
        for server in servers:
            text = self._get(f"/scrape?target=redis://127.0.0.1:{server.port}").read().decode()
            for name, value in read(text, "redis_").items():
                found[labelled(name, f"127.0.0.1:{server.port}")] = value
        return found

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def labelled(name: str, instance: str) -> str:
    family, _, labels = name.removesuffix("}").partition("{")
    return f"{family}{{{','.join(filter(None, [labels, f'instance={chr(34)}{instance}{chr(34)}']))}}}"


@pytest.fixture(scope="module")
def exporter() -> Iterator[Exporter]:
    needed(PROMTOOL)
    exporter = Exporter()
    yield exporter
    exporter.close()


def refused(server: Server, code: str) -> None:
    with pytest.raises(redis.RedisError, match=code):
        server.board("mails").post("x")


Condition = Callable[[Fresh], "contextlib.AbstractContextManager[list[Server]]"]
"""Brings servers into the state, and puts them right."""


@contextlib.contextmanager
def unreachable(fresh: Fresh) -> Iterator[list[Server]]:
    server = fresh()
    server.stop()
    yield [server]
    server.start()


@contextlib.contextmanager
def snapshot_fails(fresh: Fresh) -> Iterator[list[Server]]:
    server = fresh(config=["save 3600 1000000"])
    server.board("mails").post("x")
    server.limit_files(10)
    server.client().bgsave()
    wait_until(lambda: server.info("persistence")["rdb_last_bgsave_status"] == "err")
    refused(server, "MISCONF")
    yield [server]
    server.limit_files(None)


@contextlib.contextmanager
def file_cannot_grow(fresh: Fresh) -> Iterator[list[Server]]:
    server = fresh(appendonly=True)
    [log] = server.folder.glob("appendonlydir/*.incr.aof")
    server.board("mails").post("x")
    wait_until(lambda: log.stat().st_size > 0)
    server.limit_files(log.stat().st_size + 50)
    wait_until(lambda: cannot_append(server), what="the server has noticed")
    refused(server, "MISCONF")
    yield [server]
    server.limit_files(None)
    wait_until(lambda: server.info("persistence")["aof_last_write_status"] == "ok")


def cannot_append(server: Server) -> bool:
    with contextlib.suppress(redis.ResponseError):
        server.board("mails").post("x" * 100)
    return server.info("persistence")["aof_last_write_status"] == "err"


@contextlib.contextmanager
def rewrite_fails(fresh: Fresh) -> Iterator[list[Server]]:
    server = fresh(appendonly=True)
    server.board("mails").mpost(["x" * 100] * 100)
    server.limit_files(2000)  # enough for the list of the files
    server.client().bgrewriteaof()
    wait_until(lambda: server.info("persistence")["aof_last_bgrewrite_status"] == "err")
    yield [server]
    server.limit_files(None)


@contextlib.contextmanager
def replica_stands_still(fresh: Fresh) -> Iterator[list[Server]]:
    """It is connected, and has not answered for a minute: what counts is when it last did."""
    wall = WallClock()
    primary = fresh(environment=wall.environment)
    replica = fresh(replicaof=primary)
    replica.wait_synced(primary)
    primary.client().config_set("min-replicas-to-write", 1)
    wait_until(lambda: primary.info("replication")["min_slaves_good_slaves"] == 1)
    primary.board("mails").post("x")
    os.kill(replica.process.pid, signal.SIGSTOP)
    wall.step(30)
    wait_until(lambda: primary.info("replication")["slave0"]["lag"] > 10)
    assert primary.info("replication")["connected_slaves"] == 1
    wait_until(lambda: primary.info("replication")["min_slaves_good_slaves"] == 0)
    refused(primary, "NOREPLICAS")
    yield [primary]
    os.kill(replica.process.pid, signal.SIGCONT)
    wall.close()


@contextlib.contextmanager
def primary_is_away(fresh: Fresh) -> Iterator[list[Server]]:
    primary = fresh()
    replica = fresh(replicaof=primary)
    replica.wait_synced(primary)
    primary.stop()
    wait_until(lambda: replica.info("replication")["master_link_status"] == "down")
    yield [replica]
    primary.start()


@contextlib.contextmanager
def slots_are_nobodys(fresh: Fresh) -> Iterator[list[Server]]:
    server = fresh(config=["cluster-enabled yes"])
    refused(server, "Hash slot not served")  # CLUSTERDOWN, in redis-py
    yield [server]


CONDITIONS: dict[str, tuple[str, Condition]] = {
    "unreachable": ("ServerUnreachable", unreachable),
    "snapshot fails": ("ServerSnapshotFails", snapshot_fails),
    "file cannot grow": ("ServerAppendOnlyFileFails", file_cannot_grow),
    "rewrite fails": ("ServerAppendOnlyFileFails", rewrite_fails),
    "replica stands still": ("ServerReplicasMissing", replica_stands_still),
    "primary is away": ("ServerReplicaParted", primary_is_away),
    "slots are nobody's": ("ServerClusterDown", slots_are_nobodys),
}
BOARDS = {"jobboard_boards": 1.0}
"""The console answers meanwhile."""


@pytest.mark.parametrize("condition", CONDITIONS)
def test_it_fires_when_a_server_is_in_that_state(
    exporter: Exporter, fresh_server: Fresh, tmp_path: Path, condition: str
) -> None:
    alert, brought = CONDITIONS[condition]
    with brought(fresh_server) as servers:
        scrape = exporter.scrape(*servers)
    check_firing(tmp_path, [{**BOARDS, **scrape}] * 4, 1, {alert})


def test_a_primary_whose_replica_has_gone_is_told_of(
    exporter: Exporter, fresh_server: Fresh, tmp_path: Path
) -> None:
    """Not one that never had any, nor one that has become a replica itself."""
    primary, alone = fresh_server(), fresh_server()
    replica = fresh_server(replicaof=primary)
    replica.wait_synced(primary)
    wait_until(lambda: primary.info("replication")["connected_slaves"] == 1)
    before = exporter.scrape(primary, replica, alone)
    check_firing(tmp_path, [{**BOARDS, **before}] * 4, 1, set())
    replica.client().replicaof("NO", "ONE")
    wait_until(lambda: primary.info("replication")["connected_slaves"] == 0)
    scrapes = [before, *[exporter.scrape(primary, replica, alone)] * 4]
    check_firing(tmp_path, [{**BOARDS, **scrape} for scrape in scrapes], 1, {"ServerReplicasMissing"})
    primary.client().replicaof("127.0.0.1", replica.port)
    primary.wait_synced(replica)
    wait_until(lambda: replica.info("replication")["connected_slaves"] == 1)
    scrapes = [before, *[exporter.scrape(primary, replica, alone)] * 4]
    check_firing(tmp_path, [{**BOARDS, **scrape} for scrape in scrapes], 1, set())


def test_every_rule_says_what_prometheus_and_a_person_need() -> None:
    """Also where the programs that evaluate them are missing."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}, rule
        assert re.fullmatch(r"\d+[mh]", rule.get("for", "1m")), rule
        assert rule["labels"]["severity"] in ("info", "warning", "critical"), rule
        assert rule["annotations"]["summary"].endswith("."), rule
        assert all(rule["expr"].count(a) == rule["expr"].count(b) for a, b in ("()", "[]", "{}")), rule
    prefixes = {"jobboard": "jobboard_", "server": "redis_"}
    for group in groups:
        for rule in group["rules"]:
            assert re.search(rf"\b{prefixes[group['name']]}\w+", rule["expr"]), rule


def test_every_alert_on_servers_is_tried() -> None:
    assert {alert for alert, _ in CONDITIONS.values()} == set(GROUPS["server"])


def test_the_rules_read_what_the_exporter_gives(exporter: Exporter, fresh_server: Fresh) -> None:
    primary = fresh_server(appendonly=True, config=["cluster-enabled yes"])
    other = fresh_server()
    replica = fresh_server(replicaof=other)
    replica.wait_synced(other)
    given = {name.partition("{")[0] for name in exporter.scrape(primary, other, replica)}
    read_by_rules = set(re.findall(r"\bredis_\w+", RULES.read_text())) - {"redis_exporter"}
    assert len(read_by_rules) > 8
    assert read_by_rules <= given
