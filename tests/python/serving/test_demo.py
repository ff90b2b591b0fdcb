"""`jobboard serve --demo`, which `make run` is too, on few files."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from documents import ROOT

pytestmark = pytest.mark.long


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """24 files, of all sizes and with odd names; and three that the demo leaves out."""
    folder = tmp_path / "files"
    (folder / "below").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("left out")
    (folder / "link").symlink_to("empty")
    (folder / "target").mkdir()
    (folder / "target" / "out").write_text("left out")
    (folder / "empty").write_bytes(b"")
    (folder / "large").write_bytes(bytes(range(256)) * 20_000)
    (folder / "with space and 100% \n newline").write_text("odd name")
    Path(os.fsdecode(os.fsencode(folder) + b"/not utf-8 \xff")).write_text("odder name")
    for number in range(20):
        (folder / "below" / f"file-{number}").write_text(f"content {number}")
    return folder


def row(output: str, name: str) -> str:
    """The second cell of a row of the table."""
    found = re.search(rf"^  {re.escape(name)}  +(\S.*)$", output, re.MULTILINE)
    assert found, f"no row {name!r} in:\n{output}"
    return found.group(1)


@pytest.mark.every_server
def test_every_file_is_consumed_once_although_a_worker_is_killed(serve, of_kind, folder: Path) -> None:
    done = serve(*of_kind, "--no-console", "--demo", folder, "--once")
    assert done.process.wait(60) == 0, done.text
    assert row(done.text, "posted") == "24"
    assert row(done.text, "consumed") == "24"
    assert row(done.text, "lost") == "0"
    assert row(done.text, "checksums equal to sha256sum's") == "24 of 24"
    held = int(row(done.text, "held by the killed worker"))
    assert held > 0
    assert int(row(done.text, "picked up again")) == held


def test_the_jobs_of_the_only_worker_go_to_its_successor(serve, folder: Path) -> None:
    done = serve("--no-console", "--demo", folder, "--once", "--workers", 1)
    assert done.process.wait(60) == 0, done.text
    assert row(done.text, "checksums equal to sha256sum's") == "24 of 24"


def test_the_server_stays_with_the_jobs_and_the_demo_runs_again(serve, folder: Path) -> None:
    """A demo empties its own board, and no other."""
    first = serve("--no-console", "--demo", folder)
    assert first.board("checksums-demo").count(state="complete") == 24
    first.board().post(1, id="a")
    assert first.stop() == 0
    (folder / "large").unlink()
    second = serve("--no-console", "--demo", folder)
    assert second.board("checksums-demo").count(state="complete") == 23
    assert second.board().get("a").payload == 1
    assert "jobboard list checksums-demo" in second.text


def test_a_temporary_folder_is_removed(serve, folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    serving = serve("--no-console", folder=None, TMPDIR=str(place))
    [data] = place.glob("jobboard-*")
    assert (data / "appendonlydir").is_dir()
    assert serving.stop() == 0
    assert not list(place.iterdir())


def test_a_folder_without_files_is_an_error(serve, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = serve("--no-console", "--demo", tmp_path / "empty", "--once")
    assert done.process.wait(60) == 1
    assert f"there is no file in {tmp_path / 'empty'}" in done.text


def test_a_changed_result_is_found(serve, folder: Path) -> None:
    """The demo compares each checksum with that of another program, and reports a wrong one."""
    lying = folder.parent / "bin"
    lying.mkdir()
    (lying / "sha256sum").write_text('#!/bin/sh\n/usr/bin/sha256sum "$@" | sed -z s/^./g/\n')
    (lying / "sha256sum").chmod(0o755)
    done = serve("--no-console", "--demo", folder, "--once", PATH=f"{lying}{os.pathsep}{os.environ['PATH']}")
    assert done.process.wait(60) == 1
    assert "differs: " in done.text


@pytest.mark.parametrize("console", ["/a/console", ""])
def test_make_run_offers_the_console_that_is_built(console: str) -> None:
    """And builds none: that takes minutes."""
    words = ["make", "-n", "run", f"CONSOLE={console}", "FOLDER=/a/folder"]
    told = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert ("--console /a/console" in told, "--no-console" in told) == (bool(console), not console)
    assert ("`make console` builds it" in told) == (not console)
    assert "--demo '/a/folder'" in told and "-p jobboard-console" not in told and "--workspace" not in told
