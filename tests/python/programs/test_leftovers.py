"""Lines of a configuration that the module, or another version of it, leaves behind: the documents and the
package say of them what the server does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from harness.server import MODULE, ROOT, Server, ServerExited

sys.path.insert(0, str(ROOT / "packaging"))
import snippets

PRERM = ROOT / "packaging/debian/prerm"


def test_a_setting_that_no_module_knows_is_in_trouble(fresh_server) -> None:
    """The module cannot say it: the server ends before it is asked."""
    page = (ROOT / "docs/operate/trouble.md").read_text()
    [row] = [line for line in page.splitlines() if "Unused Module Configuration" in line]
    with pytest.raises(ServerExited) as caught:
        fresh_server(config=["jobboard.leese 5"])
    last = str(caught.value).strip().splitlines()[-1]
    assert last.partition(" # ")[2].partition(":")[0] in row
    assert "jobboard.leese" not in str(caught.value) or "Unused Module Configuration: jobboard.leese" in row


def test_a_rewrite_overrules_the_included_settings(fresh_server, tmp_path: Path) -> None:
    """As the head of the packaged file and install.md say."""
    text = snippets.settings((ROOT / "redis.conf").read_text())
    assert "writes it here" not in text and "writes it to the main file" in text
    included = tmp_path / "jobboard.conf"
    included.write_text(text.replace("# jobboard.lease ", "jobboard.lease "))
    server: Server = fresh_server(module=False, config=[f"loadmodule {MODULE}", f"include {included}"])
    client = server.client()
    client.config_set("jobboard.lease", 41_000)
    client.config_rewrite()
    main = server.config_file.read_text()
    assert main.index(f"include {included}") < main.index("jobboard.lease 41000")
    assert "jobboard.lease 30000" in included.read_text()
    server.stop()
    server.start(rewrite_config=False)
    assert server.client().config_get("jobboard.lease") == {"jobboard.lease": "41000"}


def removed(root: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    words = ["sh", str(PRERM), "remove"]
    return subprocess.run(
        words, env={**os.environ, "DPKG_ROOT": str(root), **environment}, capture_output=True, text=True
    )


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("redis.conf", "jobboard.lease 5"),
        ("redis.conf", "user ann on nopass ~* -@all +job.post"),
        ("conf.d/own.conf", "jobboard.lease 5"),
        ("users.acl", "user ann on nopass ~* +@all -job.delete"),
        ("users.acl", "user ann on nopass ~* -@all +@jobs"),
    ],
)
def test_the_package_warns_of_lines_with_which_no_server_starts(tmp_path: Path, file: str, line: str) -> None:
    path = tmp_path / "etc/redis" / file
    path.parent.mkdir(parents=True)
    path.write_text(f"port 1\n# jobboard.lease 7\nuser bob on nopass ~job.* +get\n{line}\n")
    (tmp_path / "etc/redis/jobboard.conf").write_text("jobboard.lease 9\n")
    for environment in ({}, {"JOBBOARD_REMOVE": "anyway"}):
        done = removed(tmp_path, **environment)
        assert done.returncode == 0 and "take these lines" in done.stderr
        assert re.findall(r"^(\S+?):(\d+):", done.stderr, re.MULTILINE) == [(str(path), "4")]
    path.write_text("port 1\n")
    assert removed(tmp_path).stderr == ""


def test_the_package_stays_while_a_file_of_conf_d_loads_it(tmp_path: Path) -> None:
    path = tmp_path / "etc/redis/conf.d/jobs.conf"
    path.parent.mkdir(parents=True)
    path.write_text("loadmodule /usr/lib/redis/modules/libjobboard.so\n")
    done = removed(tmp_path)
    assert done.returncode == 1 and str(path) in done.stderr


def test_the_unit_of_the_console_makes_the_folder_that_the_pages_name() -> None:
    unit = (ROOT / "packaging/services/jobboard-console.service").read_text()
    [folder] = re.findall(r"^StateDirectory=(\S+)$", unit, re.MULTILINE)
    for page in ("docs/guides/console.md", "packaging/services/console.env"):
        assert f"--history /var/lib/{folder}" in (ROOT / page).read_text()
