"""`jobboard doctor` finds what is wrong with a server, and says what to do."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import sys
import time
from pathlib import Path

import pytest
from harness import wait_until
from jobboard import __version__
from jobboard.cli import main
from jobboard.commands import condition, doctor
from rights import roles


@pytest.fixture
def ask(server, capsys):
    """doctor(words) -> (status, lines by what they are about)"""

    def ask(*words: str, url: str = f"redis://127.0.0.1:{server.port}"):
        status = main(["doctor", "--url", url, *words])
        found: dict[str, str] = {}
        about = ""
        said = capsys.readouterr().out
        print(said, file=sys.stderr)  # for the report of a test that fails
        for line in said.splitlines():
            if line.startswith("      → "):
                found[about] += line
            else:
                about = line.partition(":")[0]
                found[about] = line.partition(": ")[2]
        return status, found

    return ask


@pytest.fixture
def configured(server):
    """Sets the server's configuration for a test."""
    before = {}

    def configure(name: str, value: object) -> None:
        before.setdefault(name, server.client().config_get(name)[name])
        server.client().config_set(name, value)

    yield configure
    for name, value in before.items():
        server.client().config_set(name, value)


def test_a_server_that_is_fit(ask, configured, jobs) -> None:
    configured("appendonly", "yes")
    configured("maxmemory", "1gb")
    jobs.post(1)
    status, found = ask("board")
    assert status == 0
    assert list(found) == [
        f"ok    {one}" for one in "server module persistence eviction memory clock rights writes".split()
    ] + ["ok    board board"]
    assert re.fullmatch(r"(Redis|Valkey) [\d.]+, standalone", found["ok    server"])
    assert found["ok    module"] == f"jobboard {__version__}, this package {__version__}"
    assert found["ok    board board"] == "1 job, 1 ready, 0 failed"


def test_eviction_and_persistence(ask, configured) -> None:
    configured("maxmemory-policy", "allkeys-lru")
    status, found = ask()
    assert status == 0 and "→ set maxmemory-policy noeviction" in found["warn  eviction"]
    assert "CONFIG SET appendonly yes" in found["warn  persistence"]
    configured("maxmemory", "1gb")
    status, found = ask()
    assert status == 1 and "allkeys-lru" in found["bad   eviction"]


def test_it_leads_nobody_to_a_restart_that_loses_all_jobs(ask) -> None:
    """A server that finds `appendonly yes` in its file and no append-only file starts empty."""
    said = ask()[1]["warn  persistence"]
    words = ["CONFIG SET appendonly yes", "aof_rewrite_in_progress:0", "CONFIG REWRITE", "into its file"]
    assert [said.find(one) for one in words] == sorted(said.find(one) for one in words)
    assert said.find(words[0]) > 0 and "Do not write it there and restart first" in said


def test_a_server_without_a_bound_of_memory(ask, configured) -> None:
    status, found = ask()
    said = found["warn  memory"]
    assert status == 0 and "no maxmemory" in said and "→ set maxmemory to two thirds" in said
    configured("maxmemory", "1gb")
    assert "maxmemory 1.00G" in ask()[1]["ok    memory"]


@pytest.mark.parametrize(
    ("used", "limit", "level", "advice"),
    [
        (79, 100, "ok", ""),
        (81, 100, "warn", "posts are refused with OOM"),
        (100, 100, "bad", "posts are refused with OOM"),
        (10, 1000, "bad", "two thirds of the machine"),
        (10, 0, "warn", "two thirds of the machine"),
    ],
)
def test_memory(used: int, limit: int, level: str, advice: str) -> None:
    sizes = {"used_memory": used + 5, "maxmemory": limit, "total_system_memory": 1000}
    info = {**sizes, **{f"{name}_human": f"{size}B" for name, size in sizes.items()}}
    info |= {"maxmemory_policy": "noeviction", "mem_not_counted_for_evict": 5}
    found = {one.about: one for one in doctor.memory(info)}
    assert found["eviction"].level == "ok"
    assert found["memory"].level == level and advice in found["memory"].advice


def test_an_operator_is_told_all_that_an_administrator_is(ask, jobs, server) -> None:
    """As docs/operate/README.md promises."""
    jobs.post(1)
    rules = [rule.replace("jobs:*", "boa*") for rule in roles()["operator"]]
    client = server.client()
    client.execute_command("ACL", "SETUSER", "operator", *rules)
    try:
        status, found = ask("board", url=f"redis://operator:choose-a-password@127.0.0.1:{server.port}")
        assert [*found] == [*ask("board")[1]]
        may, no = "read (observers), cancel (operators)", "; not post (producers), claim (workers)"
        assert found["ok    rights"] == f"the user operator may {may} on board{no}"
        url = f"redis://operator:choose-a-password@127.0.0.1:{server.port}"
        assert ask(url=url)[1]["ok    rights"] == f"the user operator may {may}{no}"
        elsewhere = ask("mails", url=url)[1]
        assert "read (observers), cancel (operators) on mails" in elsewhere["warn  rights"]
        assert "NOPERM" in elsewhere["skip  board mails"]
        words = ["boards", "--url", f"redis://operator:choose-a-password@127.0.0.1:{server.port}"]
        assert main(words) == 0
    finally:
        client.execute_command("ACL", "DELUSER", "operator")


@pytest.mark.parametrize("role", ["producer", "worker", "approver"])
def test_a_role_that_may_not_look_is_told_so(ask, jobs, server, role) -> None:
    """Pages for workers name this command: what their user may not ask is no fault of the board."""
    jobs.post(1)
    client = server.client()
    rules = [rule.replace("jobs:*", "*") for rule in roles()[role]]
    client.execute_command("ACL", "SETUSER", role, *rules)
    try:
        status, found = ask("board", url=f"redis://{role}:choose-a-password@127.0.0.1:{server.port}")
    finally:
        client.execute_command("ACL", "DELUSER", role)
    takes = ["skip  writes" if role == "approver" else "ok    writes"]
    assert status == 0 and [*found] == ["skip  server", "skip  rights", *takes, "skip  board board"]
    assert "→ ask as an operator, an observer or an administrator" in found["skip  board board"]


@pytest.mark.parametrize(
    ("info", "levels"),
    [
        ({"aof_enabled": 1}, ["ok"]),
        ({"aof_enabled": 0}, ["warn"]),
        ({"aof_enabled": 1, "aof_last_write_status": "err"}, ["bad"]),
        ({"aof_enabled": 1, "rdb_last_bgsave_status": "err"}, ["bad"]),
        ({"aof_enabled": 1, "aof_last_bgrewrite_status": "err"}, ["bad"]),
        ({"aof_enabled": 0, "rdb_last_bgsave_status": "err"}, ["bad", "warn"]),
    ],
)
def test_persistence_is_not_good_and_bad_at_once(info: dict, levels: list[str]) -> None:
    assert [found.level for found in doctor.persistence(info)] == levels


def test_no_server_and_no_module(ask, fresh_server) -> None:
    status, found = ask(url="redis://127.0.0.1:1")
    assert status == 1 and "`jobboard serve` starts one" in found["bad   server"] and len(found) == 1
    bare = fresh_server(module=False)
    status, found = ask("board", url=f"redis://127.0.0.1:{bare.port}")
    assert status == 1 and "→ load it" in found["bad   module"]
    assert "no jobboard module" in found["bad   board board"]


def test_rights(ask, server) -> None:
    client = server.client()
    url = f"redis://someone:secret@127.0.0.1:{server.port}"
    rights = [
        "-@all",
        "+ping",
        "+info",
        "+job.list",
        "+acl|whoami",
        "+acl|dryrun",
        "+hello",
        "+client",
    ]
    client.execute_command("ACL", "SETUSER", "someone", "on", ">secret", "~*", *rights)
    try:
        status, found = ask(url=url)
        assert status == 0 and "skip  rights" not in found
        assert found["skip  writes"].startswith("this user may send none that changes nothing")
        said = "the user someone may read (observers); not post (producers), claim (workers), cancel"
        assert found["ok    rights"].startswith(said)
        client.execute_command("ACL", "SETUSER", "someone", "-job.list")
        assert ask(url=url)[1]["warn  rights"].startswith("the user someone may not post (producers), claim")
        client.execute_command("ACL", "SETUSER", "someone", "-info", "-acl|dryrun")
        status, found = ask(url=url)
        assert status == 0 and found["skip  server"].startswith("this user may not call INFO")
        assert "skip  rights" in found
    finally:
        client.execute_command("ACL", "DELUSER", "someone")


def test_clocks_apart(ask, monkeypatch) -> None:
    true = time.time
    monkeypatch.setattr(doctor.time, "time", lambda: true() + 9000)
    status, found = ask()
    said = found["warn  clock"]
    assert status == 0 and 8000 < float(said.split()[0]) < 10_000
    assert "→ keep both by NTP" in said


def test_a_board_with_a_queue_that_nobody_serves(ask, jobs, monkeypatch) -> None:
    status, found = ask("baord")
    assert status == 0 and "is the name right?" in found["warn  board baord"]
    jobs.post(1, queue="mails")
    monkeypatch.setattr(condition, "STUCK", -1)
    status, found = ask("board")
    assert "1 job is ready" in found["warn  queue mails"] and "→ start a worker" in found["warn  queue mails"]
    jobs.claim("w", queues=["mails"])
    assert "warn  queue mails" not in ask("board")[1]
    jobs.client.set("text", 1)
    status, found = ask("text")
    assert status == 1 and "give the board another name" in found["bad   board text"]


def test_what_the_server_tells_of_itself() -> None:
    """What no healthy server says."""
    info = {
        "modules": [{"name": "jobboard", "ver": 90}],
        "jobboard_broken_boards": 2,
        "jobboard_manual_clock": 1,
    }
    found = [(one.level, one.about) for one in doctor.module({**info, "jobboard_replies_before_sync": 1})]
    assert found == [("warn", "module"), ("bad", "boards"), ("bad", "clock"), ("warn", "persistence")]
    old = [*doctor.server({"redis_version": "6.2.1", "redis_mode": "standalone"})]
    assert [(one.level, one.about) for one in old] == [("bad", "server")]
    failing = [
        *doctor.persistence(
            {"rdb_last_bgsave_status": "err", "aof_last_write_status": "err", "aof_enabled": 1}
        )
    ]
    assert [one.level for one in failing] == ["bad", "bad"]


def test_a_replica_is_fit_when_one_is_meant(ask, fresh_server) -> None:
    """By cron on each server of a pair, and after an upgrade: it takes no writes, and that is right."""
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    primary.board().post("x")
    replica.wait_synced(primary)
    url = f"redis://127.0.0.1:{replica.port}"
    status, found = ask("board", url=url)
    assert status == 1 and "READONLY" in found["bad   writes"]
    assert "a replica: it refuses posts" in found["bad   role"] and "say --replica" in found["bad   role"]
    status, found = ask("board", "--replica", url=url)
    assert status == 0, found
    assert found["ok    role"] == f"a replica of 127.0.0.1 {primary.port}, with a link to it"
    assert found["ok    writes"] == "the server refuses posts, as a replica does"
    assert found["ok    board board"] == "1 job, 1 ready, 0 failed"
    primary.kill()
    info = lambda: replica.info("replication")  # noqa: E731
    wait_until(lambda: info()["master_link_status"] == "down", 30, what="the link is lost")
    status, found = ask("--replica", url=url)
    assert status == 1 and "without a link to it" in found["bad   role"]
    assert "ServerReplicaParted" in found["bad   role"] and "ok    writes" in found
    replica.client().execute_command("REPLICAOF", "NO", "ONE")
    status, found = ask("--replica", url=url)
    assert status == 1 and "a primary, where a replica should be" in found["bad   role"]


def test_a_replica_that_still_copies() -> None:
    info = {"role": "slave", "master_link_status": "down", "master_sync_in_progress": 1}
    assert [one.level for one in doctor.role(info, is_replica=True)] == ["warn"]


def test_a_server_that_refuses_writes(ask, configured, jobs, server) -> None:
    """As its clients hear it; nothing is written to find it out."""
    changes = jobs.client.info("persistence")["rdb_changes_since_last_save"]
    assert ask()[1]["ok    writes"] == "the server takes posts"
    assert jobs.client.keys() == []
    assert jobs.client.info("persistence")["rdb_changes_since_last_save"] == changes
    configured("min-replicas-to-write", 1)
    status, found = ask()
    assert status == 1 and "the server refuses posts: NOREPLICAS" in found["bad   writes"]
    assert "→ bring a replica back" in found["bad   writes"]
    configured("min-replicas-to-write", 0)
    configured("maxmemory", 1)
    status, found = ask("board")
    assert status == 1 and "the server refuses posts: OOM" in found["bad   writes"]


def test_explain_says_that_nobody_gets_a_job_now(configured, jobs, server, capsys) -> None:
    jobs.post(1, id="a")
    words = ["explain", "board", "a", "--url", f"redis://127.0.0.1:{server.port}"]
    assert main(words) == 0 and capsys.readouterr().err == ""
    configured("min-replicas-to-write", 1)
    assert main(words) == 0
    said = "the server refuses claims now (NOREPLICAS: too few replicas are connected)"
    assert said in capsys.readouterr().err


def test_a_snapshot_that_was_not_read(ask, fresh_server, jobs) -> None:
    """The server that was started anew with `appendonly yes` in its file, and has begun empty."""
    server = fresh_server()
    client = server.client()
    client.execute_command("JOB.POST", "mails", secrets.token_hex(500))
    client.save()
    folder = client.config_get("dir")["dir"]
    url = f"redis://127.0.0.1:{server.port}"
    client.config_set("appendonly", "yes")
    wait_for_rewrite(client)
    assert "bad   snapshot" not in ask(url=url)[1], "the way of docs/operate/README.md"
    empty = fresh_server(appendonly=True)
    url = f"redis://127.0.0.1:{empty.port}"
    assert "bad   snapshot" not in ask(url=url)[1]
    dump = Path(empty.client().config_get("dir")["dir"], "dump.rdb")
    shutil.copyfile(Path(folder, "dump.rdb"), dump)
    os.utime(dump, (1, 1))  # it was there first
    status, found = ask(url=url)
    assert status == 1 and "dump.rdb was not read" in found["bad   snapshot"]
    assert "copy that file elsewhere before anything else" in found["bad   snapshot"]


def wait_for_rewrite(client) -> None:
    def is_done() -> bool:
        info = client.info("persistence")
        return not (info["aof_rewrite_in_progress"] or info["aof_rewrite_scheduled"])

    wait_until(is_done, 60, what="the rewrite has ended")


def test_a_cluster_with_slots_that_nobody_serves(ask, cluster) -> None:
    """Every node is asked, not the first alone."""
    url = f"redis://127.0.0.1:{cluster.primaries[0].port}"
    wait_until(lambda: ask("--cluster", url=url)[0] == 0, 60, what="a cluster that is fit")
    last = cluster.primaries[-1].client()
    last.config_set("min-replicas-to-write", 1)
    status, found = ask("--cluster", url=url)
    [writes] = [one for one in found if one.startswith("bad")]
    assert status == 1 and writes.startswith("bad   writes of ") and "NOREPLICAS" in found[writes]
    last.config_set("min-replicas-to-write", 0)
    cluster.primaries[0].client().execute_command("CLUSTER", "DELSLOTS", 0)
    status, found = ask(url=url)
    assert "→ say --cluster" in found["warn  nodes"]
    served = {cluster.primaries[0].client().execute_command("CLUSTER", "KEYSLOT", one): one for one in "ab"}
    last = max(served)
    assert "→ say --cluster" in ask(served[last], url=url)[1][f"warn  board {served[last]}"]
    assert status == 1 and "16383 of 16384 slots are served" in found["bad   cluster"]


@pytest.mark.parametrize(("late", "level"), [(0, None), (1500, "warn"), (9000, "bad")])
def test_a_timer_that_is_late(late, level) -> None:
    found = [*doctor.timer({"jobboard_timer_overdue_ms": late})]
    assert [one.level for one in found] == ([level] if level else [])


def test_it_speaks_json(server, jobs, capsys) -> None:
    assert main(["doctor", "--json", "--url", f"redis://127.0.0.1:{server.port}"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"level": "ok", "about": "writes", "text": "the server takes posts", "advice": ""} in found
    jobs.post(1)
    assert main(["boards", "--json", "--url", f"redis://127.0.0.1:{server.port}"]) == 0
    [board] = json.loads(capsys.readouterr().out)
    assert board == {"board": "board", "jobs": 1, "ready": 1, "claimed": 0, "failed": 0, "condition": ""}
