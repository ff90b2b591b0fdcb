"""A server that was set up as docs/guides/install.md says, with the files of the packages, starts again."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import redis
from documents import REDIS_CONF, ROOT, blocks
from harness import MODULE, Server, wait_until

sys.path.insert(0, str(ROOT / "packaging"))
import snippets  # noqa: E402

PAGE = (ROOT / "docs/guides/install.md").read_text()
PLACES = {
    "/usr/lib/redis/modules/libjobboard.so": MODULE,
    "/usr/share/doc/jobboard/examples/roles.conf": "roles.conf",
    "/etc/redis/jobboard.conf": "jobboard.conf",
    "/etc/redis/redis.conf": "redis.conf",
    "/etc/redis/users.acl": "users.acl",
}


def set_up(folder: Path, *infos: str, behind: str = "") -> str:
    """Runs these blocks of the page, with the files of the packages and of the server in this folder, and
    what is to follow in the same shell; what they print.
    """
    (folder / "roles.conf").write_text(snippets.roles(REDIS_CONF))
    (folder / "jobboard.conf").write_text(snippets.settings(REDIS_CONF))
    found = {block.info: block.text for block in blocks(PAGE)}
    script = "\n".join([*(found[f"sh {info}"] for info in infos), behind])
    for place, here in PLACES.items():
        script = script.replace(place, str(folder / here))
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        check=True,
        env={**os.environ, "LC_ALL": "C"},
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout


@pytest.fixture
def installed(fresh_server) -> Server:
    """A server that has run without the module, set up as the page says, and not started again."""
    server = fresh_server(module=False)
    server.stop()
    set_up(server.folder, "load")
    return server


def test_the_settings_of_the_packages_survive_config_rewrite(installed: Server) -> None:
    settings = installed.folder / "jobboard.conf"
    assert "\n# jobboard.lease 30000\n" in settings.read_text()
    settings.write_text(settings.read_text().replace("# jobboard.lease 30000", "jobboard.lease 4321"))
    for retries in (3, 4):
        installed.start(rewrite_config=False)
        client = installed.client()
        assert client.config_get("jobboard.lease") == {"jobboard.lease": "4321"}
        client.config_set("jobboard.retries", retries)
        client.config_rewrite()
        installed.stop()
    installed.start(rewrite_config=False)
    assert installed.client().config_get("jobboard.retries") == {"jobboard.retries": "4"}


def test_the_users_of_the_page_survive_config_rewrite(installed: Server) -> None:
    set_up(installed.folder, "users")
    file = installed.folder / "users.acl"
    assert file.stat().st_mode & 0o077 == 0, "others can read the passwords"
    passwords = passwords_of(installed)
    assert list(passwords) == ["default", "producer", "worker", "operator", "approver", "observer", "metrics"]
    assert len(set(passwords.values())) == len(passwords)
    for _ in range(2):
        installed.start(wait=False, rewrite_config=False)
        wait_until(lambda: answers(installed, **own("default", passwords)), 60, what="the server answers")
        with pytest.raises(redis.AuthenticationError):
            installed.client().ping()
        installed.client(**own("producer", passwords)).execute_command("JOB.POST", "jobs:mails", "x")
        listed = installed.client(**own("observer", passwords)).scan_iter()
        assert "jobs:mails" in list(listed)
        admin = installed.client(**own("default", passwords))
        admin.config_rewrite()
        admin.acl_save()
        installed.stop()


def test_the_users_of_the_page_are_made_again_behind_config_rewrite(installed: Server) -> None:
    """Turning the append-only file on writes a line for the default user, with which no ACL file is read."""
    installed.start(rewrite_config=False)
    installed.client().config_rewrite()
    installed.stop()
    assert "\nuser default on" in installed.config_file.read_text()
    mask = set_up(installed.folder, "load", behind="umask")
    assert set_up(installed.folder, "users", "users", behind="umask") == mask
    first = (installed.folder / "users.acl").read_text()
    set_up(installed.folder, "users")
    assert (installed.folder / "users.acl").read_text() == first, "it has other passwords now"
    text = installed.config_file.read_text()
    text = text.replace(f"loadmodule {MODULE}\ninclude", "include", 1)
    installed.config_file.write_text(text)
    assert text.count("\naclfile ") == 1 and "\nuser " not in text
    passwords = passwords_of(installed)
    installed.start(wait=False, rewrite_config=False)
    wait_until(lambda: answers(installed, **own("default", passwords)), 60, what="the server answers")


def test_the_masterauth_of_the_page_lets_a_pair_change_places(fresh_server) -> None:
    """The primary needs it as well: it becomes the replica of its replica."""
    servers = [fresh_server(module=False, config=["repl-diskless-sync-delay 0"]) for _ in range(2)]
    for server in servers:
        server.stop()
    first, second = servers
    set_up(first.folder, "load", "users", "masterauth", "masterauth")
    (second.folder / "users.acl").write_text((first.folder / "users.acl").read_text())
    set_up(
        second.folder,
        "load",
        "users",
        "masterauth",
        behind=f"echo 'replicaof 127.0.0.1 {first.port}' >> /etc/redis/redis.conf",
    )
    login = own("default", passwords_of(first))
    for server in servers:
        assert server.config_file.read_text().count("\nmasterauth ") == 1
        server.start(wait=False, rewrite_config=False)
        wait_until(lambda server=server: answers(server, **login), 60, what="the server answers")
    admins = [server.client(**login) for server in servers]
    linked = lambda one: one.info("replication").get("master_link_status") == "up"  # noqa: E731
    wait_until(lambda: linked(admins[1]), 60, what="the replica follows")
    wait_until(lambda: failover(admins[0], second.port), 60, what="the replica has caught up")
    wait_until(lambda: admins[1].info("replication")["role"] == "master", 60, what="it is the primary")
    wait_until(lambda: linked(admins[0]), 60, what="the old primary follows")


def failover(client: redis.Redis, port: int) -> bool:
    """OK means that it has begun; the replica has to be online before."""
    try:
        return bool(client.execute_command("FAILOVER", "TO", "127.0.0.1", port))
    except redis.ResponseError as error:
        assert "FAILOVER target replica is not online" in str(error)
        return False


def passwords_of(server: Server) -> dict[str, str]:
    lines = (server.folder / "users.acl").read_text().splitlines()
    return {line.split()[1]: line.split()[3].lstrip(">") for line in lines}


def own(user: str, passwords: dict[str, str]) -> dict[str, str]:
    return {"username": user, "password": passwords[user]}


def answers(server: Server, **arguments: str) -> bool:
    try:
        with server.connect(**arguments) as client:
            return bool(client.ping())
    except redis.ConnectionError:
        return False


@pytest.mark.parametrize("unit", ["redis-server", "redis-server@"])
def test_debians_units_allow_what_the_page_says(unit: str) -> None:
    file = Path(f"/usr/lib/systemd/system/{unit}.service")
    if not file.exists():
        pytest.skip("there is no unit of Debian's here")
    said = dict[str, list[str]]()
    for name, paths in re.findall(r"^(\w+(?:Paths|Directories))=(.+)$", file.read_text(), re.MULTILINE):
        said.setdefault(name, []).extend(paths.removeprefix("-").split())
    assert said["NoExecPaths"] == ["/"] and set(said["ExecPaths"]) >= {"/usr/lib", "/lib"}
    writable = {*said["ReadWritePaths"], *said.get("ReadWriteDirectories", [])}
    assert {"/var/lib/redis", "/var/log/redis", "/etc/redis"} < writable
    assert not [path for path in writable if path.count("/") < 2]
    assert "`failed to map segment from shared object`" in PAGE


@pytest.mark.parametrize("line", ["loadmodule {module}", "user bob on nopass"], ids=["module", "user"])
def test_what_the_page_keeps_out_of_included_files_stops_the_server(
    fresh_server, tmp_path: Path, line: str
) -> None:
    """When this starts again on every server, the page need not warn any more."""
    assert "**Keep `loadmodule` and `user` out of included files.**" in PAGE
    included = tmp_path / "included.conf"
    included.write_text(line.format(module=MODULE) + "\n")
    server = fresh_server(module="user" in line, config=[f"include {included}"])
    server.client().config_rewrite()
    server.stop()
    server.start(wait=False, rewrite_config=False)
    wait_until(lambda: not server.alive, 20, what="the server refuses to start")
    if "user" not in line:
        assert "the module is loaded already: keep one loadmodule line for it" in server.log
    server.kill()
