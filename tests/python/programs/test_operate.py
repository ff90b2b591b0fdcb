"""docs/operate: the drill, TLS and Sentinels as they stand there; the log and the alerts are explained."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jobboard
import pytest
import redis
from documents import REDIS_CONF, ROOT, blocks, run_typescript, table
from harness import MODULE, Board, Server, wait_until
from harness.kinds import executable
from harness.server import free_port
from lives import LONG
from prometheus import GROUPS
from sentinels import Watched
from servers import NAME

FOLDER = ROOT / "docs" / "operate"
PAGES = {path.stem: path.read_text() for path in FOLDER.glob("*.md")}


# The drill of backup.md


def drill(info: str) -> str:
    [block] = [block for block in blocks(PAGES["backup"]) if block.info == info]
    return block.text


def shell(script: str, port: int, **names: object) -> str:
    """Runs a block as an operator does, with redis-cli at the server's port."""
    redis_cli = f'redis-cli() {{ command redis-cli -p {port} "$@"; }}\n'
    redis_server = f'redis-server() {{ {names.pop("program", "false")} "$@"; }}\n'
    environment = {**os.environ, **{name: str(value) for name, value in names.items()}}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", redis_cli + redis_server + script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """The name of a socket has 107 bytes at most, and pytest's folders have long names."""
    with tempfile.TemporaryDirectory(prefix="jobboard-") as folder:
        yield Path(folder)


@pytest.mark.every_server
def test_the_drill_of_backup_and_restore(fresh_server, kind: str, short_folder: Path) -> None:
    """Where the server runs on, which asks for a password: the restore leaves it alone."""
    server: Server = fresh_server(appendonly=True)
    board = server.board("mails")
    board.mpost([f"payload {n}" for n in range(500)])
    board.claim("w1", count=100, lease=LONG)
    board.call("SCHEDULE SET", "nightly", "x", "CRON", "0 3 * * *")
    digest = board.digest()
    server.client().config_set("requirepass", "a-password")
    backup, folder = short_folder / "copy", short_folder / "restored"
    backup.mkdir(), folder.mkdir()
    shell(drill("sh backup"), server.port, DIR=server.folder, BACKUP=backup, REDISCLI_AUTH="a-password")
    production = server.client(password="a-password")
    production.config_set("appendonly", "no")
    before = production.info("commandstats")

    names = {"TARGET": folder, "BACKUP": backup, "MODULE": MODULE, "program": executable(kind)}
    socket = folder / "restore.sock"
    client = redis.Redis(unix_socket_path=str(socket), protocol=3, decode_responses=True)
    try:
        printed = shell(drill("sh restore"), server.port, REDISCLI_AUTH="a-password", **names)
        lines = printed.splitlines()
        assert "500" in lines and "has changed" not in printed and "AUTH failed" not in printed
        assert lines[-1] == "aof_last_bgrewrite_status:ok"
        restored = Board(client, "mails")
        assert restored.digest() == digest
        assert restored.count(state="claimed") == 100
        assert client.config_get("appendonly") == {"appendonly": "yes"}
        assert client.info("server")["tcp_port"] == 0
        [look] = re.findall(r"`(jobboard list mails --url [^`]+)`", PAGES["backup"])
        words = look.replace('"', "").replace("$TARGET", str(folder)).split()
        assert "claimed" in run([sys.executable, "-m", *words])
    finally:
        client.shutdown(nosave=True)
        client.close()
    assert production.config_get("appendonly") == {"appendonly": "no"}
    asked = {"cmdstat_info", "cmdstat_config|get"}
    assert set(production.info("commandstats")) - set(before) <= asked, "the restore has asked it too"
    production.config_set("requirepass", "")


@pytest.mark.every_server
@pytest.mark.parametrize("what", ["rewrite", "snapshot"])
def test_the_drill_waits_for_what_is_written_meanwhile(fresh_server, tmp_path: Path, what: str) -> None:
    """The server refuses a snapshot beside it, or would hand out an older one."""
    server: Server = fresh_server(appendonly=True)
    client = server.client()
    server.board("mails").post("x")
    client.save()
    client.config_set("rdb-key-save-delay", 15_000_000)  # 15 seconds
    client.bgrewriteaof() if what == "rewrite" else client.bgsave()
    server.board("mails").post("y")
    client.config_set("rdb-key-save-delay", 0)
    busy = {"rewrite": "aof_rewrite_in_progress", "snapshot": "rdb_bgsave_in_progress"}[what]
    wait_until(lambda: client.info("persistence")[busy], 30, what="it is under way")
    server.board("other").post("z")
    printed = shell(drill("sh backup"), server.port, DIR=server.folder, BACKUP=tmp_path)
    assert f"{busy}:1" in printed and "NO NEW SNAPSHOT" not in printed
    assert b"other" in (tmp_path / "dump.rdb").read_bytes()


def test_the_drill_copies_no_old_snapshot_when_none_can_be_written(fresh_server, tmp_path: Path) -> None:
    server: Server = fresh_server(kind="redis70")
    client = server.client()
    server.board("mails").post("x")
    client.save()
    client.config_set("dbfilename", "dump.rdb")
    (server.folder / "dump.rdb").unlink()
    (server.folder / "dump.rdb").mkdir()
    printed = shell(drill("sh backup"), server.port, DIR=server.folder, BACKUP=tmp_path)
    assert "NO NEW SNAPSHOT" in printed and not (tmp_path / "dump.rdb").exists()
    before = {"dump.rdb": "the copy from before", "mails": "and its digest"}
    for name, text in before.items():
        (tmp_path / name).write_text(text)
    assert "NO NEW SNAPSHOT" in shell(drill("sh backup"), server.port, DIR=server.folder, BACKUP=tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == before
    server.spoil()


def test_the_drill_leaves_the_copy_from_before_when_there_is_no_room(fresh_server, tmp_path: Path) -> None:
    server: Server = fresh_server(kind="redis70")
    server.board("mails").post("x")
    (tmp_path / "dump.rdb").write_text("the copy from before")
    (tmp_path / "dump.part").symlink_to("/dev/full")
    printed = shell(drill("sh backup"), server.port, DIR=server.folder, BACKUP=tmp_path)
    assert "NOT COPIED" in printed
    assert (tmp_path / "dump.rdb").read_text() == "the copy from before"


# The append-only file of README.md


@pytest.mark.every_server
def test_the_append_only_file_is_turned_on_without_a_loss(fresh_server) -> None:
    """Also behind a snapshot that is under way, which makes the rewrite wait."""
    [block] = [block for block in blocks(PAGES["README"]) if block.info == "sh aof"]
    server: Server = fresh_server()
    board = server.board("mails")
    board.mpost([f"payload {n}" for n in range(500)])
    client = server.client()
    client.save()
    client.config_set("rdb-key-save-delay", 10_000_000)  # ten seconds
    client.bgsave()
    assert client.info("persistence")["rdb_bgsave_in_progress"] == 1
    client.config_set("rdb-key-save-delay", 0)
    printed = shell(block.text, server.port)
    assert "aof_last_bgrewrite_status:ok" in printed
    digest = board.digest()
    assert "\nappendonly yes\n" in server.config_file.read_text()
    server.stop()
    server.start(rewrite_config=False)
    assert server.client().config_get("appendonly") == {"appendonly": "yes"}
    assert server.board("mails").digest() == digest and server.board("mails").count() == 500


@pytest.mark.every_server
def test_a_server_that_was_restarted_first_starts_empty_and_is_put_right(fresh_server) -> None:
    """When this does not happen any more, the pages need not warn of it, nor doctor."""
    assert "do not write it there and restart" in PAGES["README"]
    server: Server = fresh_server()
    board = server.board("mails")
    board.mpost([f"payload {n}" for n in range(500)])
    digest = board.digest()
    server.client().save()
    server.restart(config=["appendonly yes", *server.config])
    assert not server.client().exists("mails")
    assert "SHUTDOWN NOSAVE" in PAGES["README"]
    kept = (server.folder / "dump.rdb").read_bytes()
    server.client().shutdown(nosave=True)
    server.stop()
    (server.folder / "appendonlydir").rename(server.folder / "moved")
    (server.folder / "dump.rdb").write_bytes(kept)
    server.config.remove("appendonly yes")
    server.start()
    assert server.board("mails").digest() == digest


# The pair of pair.md


def of_pair(info: str, server: Server, other: Server) -> str:
    """The block, with the places and ports of the tests; what calls systemd only says so."""
    [block] = [block for block in blocks(PAGES["pair"]) if block.info == f"sh {info}"]
    names = {"/etc/redis/redis.conf": str(server.config_file), " 6379": f" {other.port}"}
    return "systemctl() { echo systemctl $*; }\n" + replaced(block.text, names)


def linked(server: Server) -> bool:
    return server.info("replication").get("master_link_status") == "up"


@pytest.mark.every_server
def test_a_pair_is_switched_and_survives_the_loss_of_its_primary(fresh_server) -> None:
    first: Server = fresh_server(appendonly=True)
    second: Server = fresh_server(appendonly=True, replicaof=first)
    first.board("mails").mpost([f"payload {n}" for n in range(100)])
    second.wait_synced(first)
    first.wait_online(second)
    printed = shell(of_pair("switch", first, second), first.port, REPLICA="127.0.0.1")
    assert printed.splitlines()[-1] == "slave" and second.info("replication")["role"] == "master"
    for server in (first, second):
        server.client().config_rewrite()
    wait_until(lambda: linked(first), 60, what="the old primary follows")

    second.kill()
    assert "systemctl mask --now" in shell(of_pair("fence", second, first), second.port)
    first.client().config_set("min-replicas-to-write", 1)
    printed = shell(of_pair("promote", first, second), first.port)
    assert printed.splitlines()[-1] == "master" and "replicaof" not in first.config_file.read_text()
    first.board("mails").post("after the loss")

    before, _, after = of_pair("back", second, first).partition("until ")
    printed = shell(before, second.port, PRIMARY="127.0.0.1")
    assert printed.splitlines() == ["systemctl unmask redis-server", "systemctl start redis-server"]
    second.start(rewrite_config=False)
    assert "master_link_status:up" in shell("until " + after, second.port)
    assert second.info("replication")["role"] == "slave"
    assert second.board("mails").count() == 101
    assert second.board("mails").digest() == first.board("mails").digest()


# TLS


REQUEST = "openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"


def certificates(folder: Path) -> dict[str, str]:
    """A CA of our own and what it has signed, for the files that tls.md names."""
    for command in (
        f"{REQUEST} -x509 -keyout ca.key -out jobs-ca.pem -days 2 -subj /CN=ours",
        f"{REQUEST} -keyout jobs.key -out jobs.csr -subj /CN=jobs",
        "printf 'subjectAltName=IP:127.0.0.1' > ext",
        "openssl x509 -req -in jobs.csr -CA jobs-ca.pem -CAkey ca.key -out jobs.pem -days 2 -extfile ext",
    ):
        subprocess.run(command, shell=True, check=True, cwd=folder, capture_output=True)
    return {f"/etc/ssl/{name}": f"{folder}/{name}" for name in ("jobs.pem", "jobs.key", "jobs-ca.pem")}


def replaced(text: str, by: dict[str, str]) -> str:
    for old, new in by.items():
        text = text.replace(old, new)
    return text


def test_programs_and_the_command_line_come_in_by_tls(fresh_server, tmp_path: Path) -> None:
    port, names = free_port(), certificates(tmp_path)
    by = {**names, "jobs.example.com:6380": f"127.0.0.1:{port}", "jobs.example.com": "127.0.0.1"}
    by |= {"tls-port 6380": f"tls-port {port}", "-p 6380": f"-p {port}"}
    page = replaced(PAGES["tls"], by)
    [conf] = [block.text for block in blocks(page) if block.info == "conf"]
    rules = "user worker on >password ~* +@all"
    server = fresh_server(kind="redis70", config=[*conf.replace("port 0\n", "").splitlines(), rules])
    server.board("mails").post("x")
    [url] = re.findall(r"JOBBOARD_URL='(.+)'", page)
    words = [sys.executable, "-m", "jobboard", "list", "mails", "--url", url]
    assert "1 job" in run(words) or "ready" in run(words)
    [program] = [block.text for block in blocks(page) if block.info == "ts"]
    assert run_typescript(program) == "1\n"
    [check] = re.findall(r"`(redis-cli --tls .+?)`", page)
    assert run(["bash", "-c", f"{check.removesuffix('PING')} --user worker --pass password PING"]) == "PONG\n"
    with pytest.raises(AssertionError, match="CERTIFICATE_VERIFY_FAILED|certificate verify failed"):
        run([sys.executable, "-m", "jobboard", "list", "mails", "--url", url.partition("?")[0]])


def run(words: list[str], **more: Any) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# Sentinels


def test_programs_follow_a_failover_of_the_sentinels_of_the_page(watched: Watched) -> None:
    """The options of sentinel.md are those of the servers and Sentinels of the tests, with other values."""
    servers, sentinels = (
        block.text.splitlines() for block in blocks(PAGES["sentinel"]) if block.info == "conf"
    )
    client, sentinel = watched.servers[0].client(), watched.sentinels[0]
    for line in servers:
        client.config_set(*line.split())
    config = Path(sentinel.folder.name, "sentinel.conf").read_text()
    for line in sentinels:
        assert " ".join(line.split()[:2]) in config, line
    environment = {**os.environ, "JOBBOARD_URL": watched.url}
    words = [sys.executable, "-m", "jobboard"]
    run([*words, "post", "mails", '"x"', "--id", "a"], env=environment)
    old = sentinel.primary()
    wait_until(lambda: failed_over(sentinel.port), 30, what="the Sentinels agree to a failover")
    [new] = {server.port for server in watched.servers} - {old}
    wait_until(lambda: all(one.primary() == new for one in watched.sentinels), 60, what="the failover")
    assert "ready" in run([*words, "get", "mails", "a"], env=environment)


def failed_over(port: int) -> bool:
    """`SENTINEL FAILOVER jobs` of the page, under the name of the tests."""
    assert "SENTINEL FAILOVER jobs" in PAGES["sentinel"]
    try:
        with redis.Redis(port=port) as client:
            return bool(client.execute_command("SENTINEL", "FAILOVER", NAME))
    except redis.ResponseError:
        return False


# The runbook


def test_the_first_commands_of_the_runbook_run(server) -> None:
    """Each as it stands there, on a board with a job that has failed."""
    board = server.board("mails")
    board.post("x", id="ID", retries=0)
    board.fail("w1", board.claim_one()["id"])
    runbook = PAGES["trouble"].partition("\n## ")[0]
    rows = [line.split("|")[2] for line in runbook.splitlines() if line.startswith("| ")][1:]
    commands = [command for row in rows for command in re.findall(r"`((?:jobboard|redis-cli) [^`]+)`", row)]
    environment = {**os.environ, "JOBBOARD_URL": f"redis://127.0.0.1:{server.port}"}
    for command in commands:
        program, *words = command.split()
        if program == "jobboard":
            run([sys.executable, "-m", "jobboard", *words], env=environment)
        else:
            # Raw: what SLOWLOG shows of a shared server need not be text.
            server.raw_client().execute_command(*words)
    assert len(commands) > 15
    fields = re.findall(r"`redis-cli INFO (\w+)`: `(\w+)`", runbook)
    assert len(fields) == 2 and all(field in server.info(section) for section, field in fields)


# The log


def told() -> set[str]:
    """The lines that trouble.md explains, with `…` for what varies."""
    rows = table(PAGES["trouble"], "What the log says")
    return {line for row in rows for line in re.findall(r"`([^`]+)`", row["line"] + row["it means"])}


def log_calls(text: str) -> Iterator[tuple[str, str]]:
    """What stands before each call of the log, and its words behind the level."""
    for call in re.finditer(r"\blog\(\s*Level::\w+,\s*(.*?)\);\s*\n", text, re.DOTALL):
        yield text[: call.start()], call[1]


def literal_of(before: str, words: str) -> str | None:
    """The text that a call logs: its own, or that of `line` right before it."""
    own = re.search(r'"((?:[^"\\]|\\.)*)"', words, re.DOTALL)
    lines = re.findall(r'let line = format!\(\s*"([^"]+)"', "\n".join(before.splitlines()[-8:]))
    return own[1] if own else lines[-1] if lines and words.startswith("&line") else None


def logged() -> Iterator[str]:
    """The lines that the code can write: of log calls, of failed loads, and what it says of broken copies."""
    for path in sorted((ROOT / "src").rglob("*.rs")):
        text = path.read_text()
        for before, words in log_calls(text):
            literal = literal_of(before, words)
            if literal is not None:
                yield literal
            else:
                # What a load has failed for, which the lines below find.
                assert (path.name, words) == ("load.rs", "&what"), f"{path.name}: log({words})"
        if path.parent.name == "module" or path.name == "config.rs":
            yield from re.findall(r'Err\((?:format!\()?"([^"]+)"', text)
        yield from re.findall(r'eprintln!\("([^"]+)"', text)
    error = (ROOT / "board/src/effect.rs").read_text()
    display = error.partition("impl fmt::Display for ReplayError")[2].partition("\n}\n")[0]
    yield from re.findall(r'(?:write!\(f, |f\.write_str\()"([^"]+)"', display)


def test_each_call_of_the_log_is_read() -> None:
    """Whatever its form: a line that the test below does not see would need no explanation."""
    for path in sorted((ROOT / "src").rglob("*.rs")):
        text = path.read_text()
        assert len(list(log_calls(text))) == len(re.findall(r"\.log\(", text)), path
        assert len(re.findall(r'eprintln!\("', text)) == len(re.findall(r"\be?print(?:ln)?!", text)), path


def pattern(line: str) -> str:
    """As the page writes it: `…` for what varies, and joined lines."""
    line = re.sub(r"\\\n\s*", "", line)
    return re.sub(r"\{[^}]*\}", "…", line)


def is_told(line: str) -> bool:
    """Word for word, or cut at a `…` of the page."""
    for one in told():
        if re.fullmatch(re.escape(one).replace("…", ".*"), line, re.DOTALL):
            return True
    return False


NEVER_ALONE = {"it was broken before"}
"""Said of a copy that is broken already, which the log does not repeat."""


def test_each_line_of_the_log_is_explained() -> None:
    lines = {pattern(line) for line in logged()} - NEVER_ALONE
    assert len(lines) > 15
    assert not [line for line in sorted(lines) if not is_told(line)]


def test_no_line_is_explained_that_there_is_not() -> None:
    lines = [pattern(line) for line in logged()]
    rows = table(PAGES["trouble"], "What the log says")
    for one in {line for row in rows for line in re.findall(r"`([^`]+)`", row["line"])}:
        matching = re.escape(one).replace("…", ".*")
        assert any(re.fullmatch(matching, line, re.DOTALL) for line in lines), one


# Alerts


def test_each_alert_has_its_section() -> None:
    sections = re.findall(r"^## ((?:Jobboard|Server)\w+)$", PAGES["watching"], re.MULTILINE)
    assert sections == [alert for alerts in GROUPS.values() for alert in alerts]


def test_each_field_of_info_is_explained(server) -> None:
    rows = table(PAGES["watching"], "What INFO jobboard says")
    told = [field for row in rows for field in re.findall(r"`(jobboard_\w+)`", row["field"])]
    assert sorted(told) == sorted(server.info("jobboard"))


# Clusters


def test_roles_and_the_command_line_in_a_cluster(cluster) -> None:
    """What cluster.md says that users need besides their role is enough."""
    [more] = set(re.findall(r"`\+(cluster\|\w+)`", PAGES["cluster"]))
    roles = re.findall(r"^# (user (?:producer|worker|observer) on .*)$", REDIS_CONF, re.MULTILINE)
    for server in cluster.servers:
        for role in roles:
            words = role.replace("jobs:*", "*").split()
            server.client().execute_command("ACL", "SETUSER", *words[1:], f"+{more}")
    port, password = cluster.servers[0].port, "choose-a-password"

    def client(user: str) -> redis.RedisCluster:
        return redis.RedisCluster("127.0.0.1", port, username=user, password=password)

    for name in ("mails", "{shop}:mails", "reports"):
        jobboard.Board(name, client("producer")).post("x", id="a")
        [job] = jobboard.Board(name, client("worker")).claim("w1")
        jobboard.Board(name, client("worker")).consume("w1", job.id, token=job.token, retain="1h")
    url = f"redis://observer:{password}@127.0.0.1:{cluster.servers[1].port}"
    words = [sys.executable, "-m", "jobboard", "list", "reports", "--url", url, "--cluster"]
    assert "complete" in run(words)
