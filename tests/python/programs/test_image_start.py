"""What the image starts, `jobboard-start`, looks at in its volume before the server does."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from documents import ROOT

FOLDER = ROOT / "packaging" / "image"
Start = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    (tmp_path / "volume").mkdir()
    return tmp_path / "volume"


@pytest.fixture
def start(tmp_path: Path, volume: Path) -> Start:
    """start(options …): the script with this volume, and a server that prints its options and its file."""
    script, server = tmp_path / "jobboard-start", tmp_path / "valkey-server"
    text = (FOLDER / "jobboard-start").read_text()
    script.write_text(text.replace("/data", str(volume)).replace("/etc/jobboard", str(FOLDER)))
    server.write_text('#!/bin/sh\necho "$@"\ncat\n')
    server.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    environment |= {"JOBBOARD_PASSWORD": "secret", "JOBBOARD_CONSOLE": "no"}

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/sh", script, *options], capture_output=True, text=True, timeout=60, env=environment
        )

    return run


def test_an_empty_volume_and_one_of_its_own(start: Start, volume: Path) -> None:
    done = start("--maxmemory", "1gb")
    assert done.returncode == 0 and done.stdout.startswith("- --maxmemory 1gb\n")
    assert "appendonly yes" in done.stdout and "user default on #" in done.stdout
    (volume / "appendonlydir").mkdir()
    (volume / "dump.rdb").write_text("of a BGSAVE")
    assert start().returncode == 0


def test_a_snapshot_of_another_server_is_not_hidden(start: Start, volume: Path) -> None:
    (volume / "dump.rdb").write_text("REDIS0011 jobs")
    done = start()
    assert done.returncode == 1 and done.stdout == ""
    assert "no append-only file: this server would start without its jobs" in done.stderr
    assert "Start it once with --appendonly no" in done.stderr
    assert (volume / "dump.rdb").read_text() == "REDIS0011 jobs"
    assert start("--appendonly", "no").returncode == 0, "then the server reads it"
