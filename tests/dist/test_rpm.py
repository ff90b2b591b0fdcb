"""The .rpm, as far as rpm itself goes on a machine that is not of its kind: in an empty root, without scripts
there. The scripts are run beside it, told the root.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from harness import Server

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "target" / "dist"
VERSION = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
DEBIANS = {"changelog.Debian.gz"}


def run(*words: object, **options: object) -> str:
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""As rpm and dpkg call them."""


@pytest.fixture(params=ARCHITECTURES)
def each(request: pytest.FixtureRequest) -> tuple[Path, Path]:
    """The .rpm and the .deb for a processor."""
    found = (
        list(DIST.glob(f"*.{request.param}.rpm")),
        list(DIST.glob(f"*_{ARCHITECTURES[request.param]}.deb")),
    )
    if request.param != platform.machine() and not any(found):
        pytest.skip(f"no packages for {request.param}: make dist MACHINES=all")
    [[rpm], [debian]] = found
    return rpm, debian


@pytest.fixture
def package() -> Path:
    [found] = DIST.glob(f"jobboard-{VERSION}-1.{platform.machine()}.rpm")
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    if os.geteuid() != 0:
        pytest.skip("rpm installs as root only")
    root = tmp_path / "root"
    root.mkdir()
    run("rpm", "--root", root, "--initdb")
    return root


def rpm_in(root: Path) -> tuple[object, ...]:
    """It finds no shell there, and none of what Debian's database has."""
    return ("rpm", "--root", root, "--nodeps", "--noscripts")


def test_it_has_the_files_of_the_debian_package(each: tuple[Path, Path], tmp_path: Path) -> None:
    package, debian = each
    run("dpkg-deb", "-x", debian, tmp_path)
    files = {f"/{path.relative_to(tmp_path)}" for path in tmp_path.rglob("*") if path.is_file()}
    assert set(run("rpm", "-qpl", package).split()) == {
        name for name in files if Path(name).name not in DEBIANS
    }
    settings = {"/etc/redis/jobboard.conf", "/etc/jobboard/console.env", "/etc/jobboard/exporter.env"}
    assert set(run("rpm", "-qpc", package).split()) == settings
    needed = run("rpm", "-qp", "--requires", package)
    assert "libc.so.6(GLIBC_" in needed and "python" not in needed


def test_it_is_installed_used_upgraded_and_removed(
    package: Path, root: Path, tmp_path: Path, programs
) -> None:
    rpm = rpm_in(root)
    run(*rpm, "--install", package)
    assert run("rpm", "--root", root, "-q", "jobboard").startswith(f"jobboard-{VERSION}-1.")
    assert not run("rpm", "--root", root, "-V", "--nodeps", "jobboard")
    snippet = (root / "etc/redis/jobboard.conf").read_text()
    [load] = re.findall(r"^#   (loadmodule .*)$", snippet, re.MULTILINE)
    load = load.replace(" /usr/lib/redis", f" {root}/usr/lib/redis")
    server = Server("redis70", module=False, config=[load, f"include {root}/etc/redis/jobboard.conf"])
    try:
        assert server.board().post("x", id_="a") == "a"
        programs.run(f"redis://127.0.0.1:{server.port}")
        server.check_health()
    finally:
        server.close()
    shown = run(root / "usr/bin/jobboard-console", "--version")
    assert shown.strip() == f"jobboard-console {VERSION}"

    (root / "etc/jobboard/console.env").write_text("REDIS_URL=redis://:secret@127.0.0.1\n")
    code = "import sys, rpm; from pathlib import Path; "
    code += "rpm.package('99.0.0', *map(Path, sys.argv[1:3]), sys.argv[3])"
    stage = tmp_path / "stage"
    stage.mkdir()
    words = [sys.executable, "-c", code, tmp_path, stage, platform.machine()]
    run(*words, env={**os.environ, "PYTHONPATH": str(ROOT / "packaging")})
    [newer] = tmp_path.glob("jobboard-99.0.0-1.*.rpm")
    run(*rpm, "--upgrade", newer)
    assert run("rpm", "--root", root, "-q", "jobboard").startswith("jobboard-99.0.0-1.")
    assert "secret" in (root / "etc/jobboard/console.env").read_text()
    run(*rpm, "--erase", "jobboard")
    left = [path for path in root.rglob("*") if path.is_file() and "rpm" not in path.parts[-2]]
    assert [path.name for path in left] == ["console.env.rpmsave"]


def test_its_script_refuses_to_remove_what_a_server_needs(package: Path, tmp_path: Path) -> None:
    """0 is how rpm says that the last package goes; 1 that a newer one stays."""
    shown = run("rpm", "-qp", "--scripts", package)
    text = re.search(r"preuninstall scriptlet [^\n]*\n(.*?)\n\w+ scriptlet ", shown, re.DOTALL)[1]
    script = tmp_path / "preun"
    script.write_text(text)
    assert text.strip() == (ROOT / "packaging/debian/prerm").read_text().strip()
    environment = {**os.environ, "DPKG_ROOT": str(tmp_path)}

    def preun(number: int) -> subprocess.CompletedProcess[str]:
        words = ["sh", str(script), str(number)]
        return subprocess.run(words, capture_output=True, text=True, env=environment)

    assert preun(0).returncode == 0
    (tmp_path / "etc/valkey").mkdir(parents=True)
    (tmp_path / "etc/valkey/valkey.conf").write_text("include /etc/redis/jobboard.conf\n")
    refused = preun(0)
    assert refused.returncode == 1 and "valkey.conf" in refused.stderr
    assert preun(1).returncode == 0


def test_no_shell_that_debian_lacks_is_needed() -> None:
    """The scripts keep to what dash and busybox know."""
    for script in (ROOT / "packaging/debian").iterdir():
        run("dash" if shutil.which("dash") else "sh", "-n", script)
