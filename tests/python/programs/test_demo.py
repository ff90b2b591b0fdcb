"""The demo of `make run`, on few files."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from harness import executable, wait_until
from harness.server import ROOT, free_port

pytestmark = pytest.mark.long

DEMO = ROOT / "examples" / "demo.py"


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


def command(kind: str, port: int, *words: object) -> list[str]:
    """The command line of the demo on one kind of server."""
    options = ["--executable", str(executable(kind)), "--port", str(port)]
    return [sys.executable, str(DEMO), *options, *map(str, words)]


def run(kind: str, port: int, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(kind, port, *words), capture_output=True, text=True, errors="replace", timeout=90
    )


def row(output: str, name: str) -> str:
    """The second cell of a row of the table."""
    found = re.search(rf"│ +{re.escape(name)} +│ (.*?) +│", output)
    assert found, f"no row {name!r} in:\n{output}"
    return found.group(1)


def test_every_file_is_consumed_once_although_a_worker_is_killed(kind: str, folder: Path) -> None:
    done = run(kind, free_port(), "--once", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert row(done.stdout, "posted") == "24"
    assert row(done.stdout, "consumed") == "24"
    assert row(done.stdout, "lost") == "0"
    assert row(done.stdout, "checksums equal to sha256sum's") == "24 of 24"
    held = int(row(done.stdout, "held by the killed worker"))
    assert held > 0
    assert int(row(done.stdout, "picked up again")) == held


def test_the_jobs_of_the_only_worker_go_to_its_successor(kind: str, folder: Path) -> None:
    done = run(kind, free_port(), "--once", "--workers", 1, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert row(done.stdout, "checksums equal to sha256sum's") == "24 of 24"


def test_a_taken_port_is_replaced_by_a_free_one(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run("redis70", port, "--once", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"port {port}," not in done.stdout


def test_the_server_stays_until_ctrl_c(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    with output.open("wb") as file:
        # A shell that runs the tests in the background has SIGINT ignored.
        demo = subprocess.Popen(
            command("redis70", free_port(), folder),
            stdout=file,
            stderr=file,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
    try:
        wait_until(
            lambda: demo.poll() is not None or "Ctrl-C stops it" in output.read_text(errors="replace"), 60
        )
        text = output.read_text(errors="replace")
        assert demo.poll() is None, text
        port = int(re.search(r"The server is up on port (\d+)", text).group(1))
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"PING\r\n")
            assert client.recv(100) == b"+PONG\r\n"
        demo.send_signal(signal.SIGINT)
        assert demo.wait(60) == 0
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
            raise AssertionError("the server still listens")
    finally:
        demo.kill()
        demo.wait()


def test_a_folder_without_files_is_an_error(tmp_path: Path) -> None:
    done = run("redis70", free_port(), "--once", tmp_path)
    assert done.returncode == 1
    assert "There is no file in" in done.stdout
