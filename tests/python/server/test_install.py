"""A server that was set up as docs/guides/install.md says, with the files of the packages, starts again."""

from __future__ import annotations

import os
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


def set_up(folder: Path, *infos: str) -> None:
    """Runs these blocks of the page, with the files of the packages and of the server in this folder."""
    (folder / "roles.conf").write_text(snippets.roles(REDIS_CONF))
    (folder / "jobboard.conf").write_text(snippets.settings(REDIS_CONF))
    found = {block.info: block.text for block in blocks(PAGE)}
    for info in infos:
        script = found[f"sh {info}"]
        for place, here in PLACES.items():
            script = script.replace(place, str(folder / here))
        subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script], check=True, env={**os.environ, "LC_ALL": "C"}
        )


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
    passwords = {line.split()[1]: line.split()[3].lstrip(">") for line in file.read_text().splitlines()}
    assert list(passwords) == ["default", "producer", "worker", "operator", "approver", "observer"]
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


def own(user: str, passwords: dict[str, str]) -> dict[str, str]:
    return {"username": user, "password": passwords[user]}


def answers(server: Server, **arguments: str) -> bool:
    try:
        with server.connect(**arguments) as client:
            return bool(client.ping())
    except redis.ConnectionError:
        return False


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
