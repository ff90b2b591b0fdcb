"""The module is taken out of a server as docs/guides/install.md says, and copies of its data are put back."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from documents import ROOT, blocks
from harness import MODULE, Server, wait_until

PAGE = (ROOT / "docs/guides/install.md").read_text()
PRERM = ROOT / "packaging" / "debian" / "prerm"


def ends(server: Server) -> str:
    """Starts it, and waits until it has given up; what it said."""
    server.start(wait=False)
    assert server.process is not None
    server.process.wait(timeout=60)
    server.process = None
    said = server.log_end()
    server.spoil()
    return said


@pytest.mark.parametrize("appendonly", [False, True], ids=["rdb", "aof"])
def test_a_server_with_a_board_does_not_start_without_the_module(fresh_server, appendonly: bool) -> None:
    server = fresh_server(appendonly=appendonly)
    server.board().post("x")
    server.client().save()
    server.stop()
    server.module = False
    assert re.search("jobboard1|JOB.|module", ends(server))


def rewrite(server: Server) -> None:
    """Writes its append-only file anew."""
    server.client().bgrewriteaof()
    while True:
        state = server.info("persistence")
        if not state["aof_rewrite_in_progress"] and not state["aof_rewrite_scheduled"]:
            break
    assert state["aof_last_bgrewrite_status"] == "ok"


def steps(server: Server, *infos: str) -> str:
    """Runs these blocks of "Removing it", with redis-cli at the server's port; what they print."""
    found = {block.info: block.text for block in blocks(PAGE)}
    script = f'redis-cli() {{ command redis-cli -p {server.port} "$@"; }}\n'
    script += "\n".join(found[f"sh remove {info}"] for info in infos)
    for name in ("redis.conf", "users.acl"):
        script = script.replace(f"/etc/redis/{name}", str(server.folder / name))
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], check=True, capture_output=True, text=True, timeout=60
    )
    return done.stdout


USERS = """\
user default on nopass ~* &* +@all
user worker on >a-password ~jobs:* -@all +ping +job.claim +job.worker|register (~other +job.get -job.list)
user reader on >a-password (+job.get %R~jobs:*)
user bob on >a-password ~bob:* +@all -job.apply
"""


@pytest.mark.parametrize("appendonly", [False, True], ids=["rdb", "aof"])
@pytest.mark.parametrize("where", ["redis.conf", "users.acl"])
def test_the_module_is_taken_out_of_a_server(fresh_server, appendonly: bool, where: str) -> None:
    """As the page says: from every database, behind a snapshot under way, and from the rules of users."""
    server = fresh_server(appendonly=appendonly, config=["jobboard.lease 4321"])
    for key, database in [("a", 0), ("b 'c", 0), (" d", 3)]:
        client = server.client(db=database)
        client.execute_command("JOB.POST", key, "x")
        client.set("other", "stays")
    steps(server, "boards")
    wait_until(lambda: server.info("jobboard")["jobboard_boards"] == 0, what="they are gone")
    client = server.client()
    client.config_set("rdb-key-save-delay", 500_000)
    client.bgsave()
    client.config_set("rdb-key-save-delay", 0)
    assert "aof_last_bgrewrite_status:ok" in steps(server, "files")
    of_category = "user ann on >a-password ~ann:* +@jobs (-@jobs ~b)\n" if "jobs" in client.acl_cat() else ""
    server.stop()
    text = server.config_file.read_text()
    if where == "redis.conf":
        server.config_file.write_text(text + USERS + of_category)
    else:
        (server.folder / where).write_text(USERS + of_category)
        server.config_file.write_text(text + f"aclfile {server.folder / where}\n")
    server.start(rewrite_config=False)
    server.stop()
    steps(server, "lines")
    server.start(rewrite_config=False)
    for database in (0, 3):
        assert server.client(db=database).keys() == ["other"]
    assert "jobboard" not in [module["name"] for module in server.client().module_list()]
    rules = "\n".join(server.client().acl_list())
    assert "job" not in rules.replace("~jobs:", "") and "~jobs:*" in rules and "~bob:*" in rules


def test_a_copy_of_the_snapshot_brings_the_boards_back(fresh_server, tmp_path: Path) -> None:
    server = fresh_server()
    board = server.board()
    board.post("x", id_="j")
    server.client().save()
    shutil.copy(server.folder / "dump.rdb", tmp_path)
    before = board.digest()
    board.cancel("j")
    other = fresh_server(folder=tmp_path)
    assert other.board().digest() == before


def prerm(root: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DPKG_ROOT": str(root), **variables}
    return subprocess.run([str(PRERM), *words], capture_output=True, text=True, env=environment)


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("include /etc/redis/jobboard.conf", True),
        ("  LOADMODULE /usr/lib/redis/modules/libjobboard.so lease 1000", True),
        ("# include /etc/redis/jobboard.conf", False),
        ("include /etc/redis/other.conf", False),
    ],
)
@pytest.mark.parametrize("folder", ["redis", "valkey"])
def test_the_package_stays_while_a_configuration_loads_the_module(
    tmp_path: Path, folder: str, line: str, kept: bool
) -> None:
    etc = tmp_path / "etc"
    (etc / "redis").mkdir(parents=True)
    (etc / "redis" / "jobboard.conf").write_text(f"loadmodule {MODULE}\n")
    assert prerm(tmp_path, "remove").returncode == 0
    (etc / folder).mkdir(exist_ok=True)
    (etc / folder / "server.conf").write_text(f"port 6379\n{line}\n")
    done = prerm(tmp_path, "remove")
    assert done.returncode == int(kept), done.stderr
    assert ("server.conf" in done.stderr) == kept
    assert prerm(tmp_path, "upgrade", "0.2.0").returncode == 0


@pytest.mark.parametrize("appendonly", [False, True], ids=["rdb", "aof"])
@pytest.mark.parametrize("where", ["var/lib/redis", "srv/jobs"], ids=["debians", "configured"])
def test_the_package_stays_while_data_hold_a_board(
    fresh_server, tmp_path: Path, appendonly: bool, where: str
) -> None:
    """No configuration loads the module any more, and the server is down: it would not start."""
    folder, etc = tmp_path / where, tmp_path / "etc" / "redis"
    etc.mkdir(parents=True)
    (etc / "redis.conf").write_text(f'port 6379\ndir "/{where}"\n')
    server = fresh_server(appendonly=appendonly)
    client = server.client()
    client.set("other", "JOB.APPLY")
    client.save()
    shutil.copytree(server.folder, folder)
    assert prerm(tmp_path, "remove").returncode == 0
    server.board().post("x")
    if appendonly:
        server.stop()
    else:
        client.save()
    shutil.copytree(server.folder, folder, dirs_exist_ok=True)
    done = prerm(tmp_path, "remove")
    assert done.returncode == 1
    [file] = [line for line in done.stderr.splitlines() if line.startswith(str(folder))]
    assert file.endswith(".incr.aof" if appendonly else "dump.rdb")
    assert "not removed" in done.stderr and '"Removing it"' in done.stderr
    assert prerm(tmp_path, "upgrade", "0.2.0").returncode == 0
    assert prerm(tmp_path, "remove", JOBBOARD_REMOVE="anyway").returncode == 0
    if appendonly:
        server.start()
    client = server.client()
    client.unlink("board")
    if appendonly:
        rewrite(server)
    client.save()
    server.stop()
    shutil.rmtree(folder)
    shutil.copytree(server.folder, folder)
    assert prerm(tmp_path, "remove").returncode == 0
    server.start()
