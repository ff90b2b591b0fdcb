"""What `jobboard serve` says instead of serving: one sentence, a status that is not 0, and nothing lost."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import jobboard.testing
import pytest
import redis
from daily import left_to_ci
from harness import executable, wait_until
from harness.server import MODULE
from jobboard.serving import CannotServe, find_module
from jobboard.serving.folder import default_folder

NO_CONSOLE = "--no-console"


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a server's data."""
    return {path.name: path.read_bytes() for path in sorted((folder / "appendonlydir").iterdir())}


@pytest.fixture
def filled(serve, data: Path) -> Path:
    """A data folder with the job `a`, written by Valkey, that nobody serves."""
    serving = serve(NO_CONSOLE, "--server", executable("valkey91"))
    serving.board().post(1, id="a")
    assert serving.stop() == 0
    return data


def still_there(serve, folder: Path) -> bool:
    serving = serve(NO_CONSOLE, "--server", executable("valkey91"), folder=folder)
    found = serving.board().get("a").payload == 1
    serving.stop()
    return found


def patched(path: Path, old: bytes, new: bytes, to: Path) -> Path:
    """A copy of a program with some bytes of the same length in place of others."""
    content = path.read_bytes()
    assert old in content and len(old) == len(new)
    to.write_bytes(content.replace(old, new))
    to.chmod(0o755)
    return to


def for_another_cpu(path: Path, to: Path) -> Path:
    content = bytearray(path.read_bytes())
    content[18:20] = (243 if content[18] != 243 else 62).to_bytes(2, "little")
    to.write_bytes(content)
    to.chmod(0o755)
    return to


def script(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return path


# The folder


def test_a_second_start_says_who_holds_the_folder(serve, refused, data) -> None:
    first = serve(NO_CONSOLE)
    said = refused()
    assert f"{data} is held by process {first.process.pid}" in said
    assert re.search(r"127\.0\.0\.1:\d+", said)[0] in first.url
    assert first.board().client.ping()


def test_the_folder_is_held_as_long_as_the_server_lives(serve, refused) -> None:
    """Also when what started it was killed while the server was not able to end."""
    first = serve(NO_CONSOLE)
    pid = first.server_pid()
    os.kill(pid, 19)  # SIGSTOP
    first.kill()
    try:
        assert "is held by process" in refused()
    finally:
        os.kill(pid, 9)


@pytest.mark.parametrize("left", [0, 4 << 20])
def test_no_room_on_the_disk(serve, refused, small_disk, left) -> None:
    folder = small_disk / "data"
    first = serve(NO_CONSOLE, "--server", executable("valkey91"), folder=folder)
    first.board().post(1, id="a")
    first.stop()
    ballast = small_disk / "ballast"
    with pytest.raises(OSError), ballast.open("wb") as file:
        while True:
            file.write(bytes(1 << 20))
            file.flush()
    os.truncate(ballast, ballast.stat().st_size - left)
    before = contents(folder)
    assert f"no room on the disk of {folder}" in refused(folder=folder)
    assert contents(folder) == before
    ballast.unlink()
    assert still_there(serve, folder)


def test_a_disk_that_fills_while_it_serves(serve, small_disk) -> None:
    """What was acknowledged is written before it ends, or it says that it is not."""
    folder = small_disk / "data"
    serving = serve(NO_CONSOLE, folder=folder)
    board = serving.board()
    ballast = small_disk / "ballast"
    with pytest.raises(OSError), ballast.open("wb") as file:
        while True:
            file.write(bytes(1 << 20))
            file.flush()
    os.truncate(ballast, ballast.stat().st_size - (256 << 10))
    posted = []
    with pytest.raises(redis.ResponseError, match="MISCONF"):
        while True:
            posted.append(board.post("x" * 2000))
    wait_until(lambda: "the server refuses changes" in serving.text, 60)
    serving.process.terminate()
    wait_until(lambda: "free some, and it ends." in serving.text, 60)
    assert serving.process.poll() is None
    ballast.unlink()
    assert serving.process.wait(60) == 0
    again = serve(NO_CONSOLE, folder=folder)
    assert [job.id for job in again.board().list(state="ready")] == posted


def test_a_second_signal_ends_it_on_a_full_disk(serve, small_disk) -> None:
    serving = serve(NO_CONSOLE, folder=small_disk / "data")
    with pytest.raises(OSError), (small_disk / "ballast").open("wb") as file:
        while True:
            file.write(bytes(1 << 20))
            file.flush()
    with pytest.raises(redis.ResponseError, match="MISCONF"):
        while True:
            serving.board().post("x" * 2000)
    serving.process.terminate()
    wait_until(lambda: "Another signal ends it" in serving.text, 60)
    assert serving.stop() == 1


def test_a_read_only_volume(serve, refused, small_disk) -> None:
    folder = small_disk / "data"
    first = serve(NO_CONSOLE, "--server", executable("valkey91"), folder=folder)
    first.board().post(1, id="a")
    first.stop()
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    assert f"{folder} is on a read-only volume" in refused(folder=folder)
    subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
    assert still_there(serve, folder)


def test_a_file_in_place_of_the_folder(refused, data) -> None:
    data.write_text("x")
    assert f"{data} is no folder" in refused()
    assert data.read_text() == "x"


@pytest.mark.parametrize("mark", [{"layout": 2}, {"layout": 1, "jobboard": "99.0.0"}])
def test_data_of_a_newer_version(serve, refused, filled, mark) -> None:
    known = (filled / "jobboard.json").read_text()
    (filled / "jobboard.json").write_text(json.dumps({"jobboard": "0.9", **mark}))
    before = contents(filled)
    assert "was written by jobboard" in refused()
    assert contents(filled) == before
    (filled / "jobboard.json").write_text(known)
    assert still_there(serve, filled)


def test_data_of_another_server(serve, refused, filled) -> None:
    """Redis takes Valkey's files for damaged ones: that they must not be repaired, the sentence says."""
    before = contents(filled)
    said = refused("--server", executable("redis70"))
    assert "written by Valkey 9.1" in said and "Redis 7.0" in said and "unchanged" in said
    assert contents(filled) == before
    assert still_there(serve, filled)


def test_a_snapshot_of_another_server(refused, data) -> None:
    data.mkdir()
    (data / "dump.rdb").write_bytes(b"REDIS0010")
    assert "dump.rdb" in refused()
    assert [path.name for path in data.iterdir()] == ["dump.rdb"]


@pytest.mark.parametrize("damage", [b"no aof at all\r\n", b"*1\r\n$3\r\nXXX\r\n"], ids=["format", "command"])
def test_a_broken_append_only_file(serve, refused, filled, damage) -> None:
    [log] = (filled / "appendonlydir").glob("*.incr.aof")
    whole = log.read_bytes()
    log.write_bytes(damage + whole)
    before = contents(filled)
    said = refused("--server", executable("valkey91"))
    assert f"{log} is damaged, and nothing of it was changed" in said
    assert contents(filled) == before
    log.write_bytes(whole)
    assert still_there(serve, filled)


def test_a_broken_manifest(serve, refused, filled) -> None:
    [manifest] = (filled / "appendonlydir").glob("*.manifest")
    whole = manifest.read_bytes()
    manifest.write_bytes(b"nonsense\n")
    assert "is not whole" in refused("--server", executable("valkey91"))
    manifest.write_bytes(whole)
    assert still_there(serve, filled)


def test_a_missing_part_of_the_append_only_file(serve, refused, filled) -> None:
    [log] = (filled / "appendonlydir").glob("*.incr.aof")
    moved = log.rename(filled / "elsewhere")
    assert "is not whole" in refused("--server", executable("valkey91"))
    moved.rename(log)
    assert still_there(serve, filled)


def test_a_password_file_without_a_password(refused, data) -> None:
    data.mkdir()
    (data / "password").write_text("\n")
    assert f"{data / 'password'} must hold one line" in refused()


def test_a_configuration_with_another_password(refused, tmp_path) -> None:
    (tmp_path / "more.conf").write_text("requirepass another\n")
    assert "refuses the password" in refused("--config", tmp_path / "more.conf")


def test_a_configuration_that_the_server_does_not_know(refused, tmp_path) -> None:
    (tmp_path / "more.conf").write_text("no-such-setting 1\n")
    assert "no-such-setting 1" in refused("--config", tmp_path / "more.conf")


@pytest.mark.parametrize("kind", ["valkey91", *left_to_ci(["redis70"])])
@pytest.mark.parametrize(
    "line, says",
    [
        ("jobboard.leese 1000", "no module has the setting 'jobboard.leese'"),
        ("jobboard.lease soon", "the value of the setting 'jobboard.lease'"),
        ("maxmemory lots", "a line of its configuration, 'maxmemory lots'"),
    ],
)
def test_a_wrong_line_of_a_configuration_is_named_and_a_temporary_folder_goes(
    refused, tmp_path, kind, line, says
) -> None:
    (tmp_path / "more.conf").write_text(line + "\n")
    place = tmp_path / "temporary"
    place.mkdir()
    options = ["--config", tmp_path / "more.conf", "--server", executable(kind)]
    if kind == "redis70" and "leese" in line:  # which does not name it
        says = "no module has one of the settings"
    assert says in refused(*options, folder=None, TMPDIR=str(place))
    assert list(place.iterdir()) == []


def test_what_is_missing_is_named_by_what_the_caller_can_say(monkeypatch) -> None:
    monkeypatch.delenv("JOBBOARD_MODULE", raising=False)
    monkeypatch.setattr("jobboard.serving.parts._in_package", lambda *_: None)
    with pytest.raises(CannotServe, match=r"by \$JOBBOARD_MODULE or TestServer\(module=…\)"):
        jobboard.testing.TestServer(server=str(executable("redis70")))
    with pytest.raises(CannotServe, match=r"by \$JOBBOARD_MODULE or --module"):
        find_module()


def test_a_wrong_password_of_a_client(serve) -> None:
    serving = serve(NO_CONSOLE)
    for url in (re.sub("[^/]*@", "", serving.url), re.sub(":[^:@]*@", ":wrong@", serving.url)):
        done = subprocess.run(
            [sys.executable, "-m", "jobboard", "list", "mails", "--url", url], capture_output=True, text=True
        )
        assert done.returncode == 1
        [line] = done.stderr.splitlines()
        assert "refuses the password" in line and "--url" in line


@pytest.mark.every_server
def test_the_repair_that_is_offered_works(serve, refused, of_kind, data) -> None:
    """It cuts the damage off, with what comes after it; what came before is there again."""
    first = serve(NO_CONSOLE, *of_kind)
    first.board().post(1, id="a")
    first.stop()
    [log] = (data / "appendonlydir").glob("*.incr.aof")
    log.write_bytes(log.read_bytes() + b"no aof at all\r\n")
    repair = re.search(r"cut off what is damaged with (bash -c '.*') \(log: ", refused(*of_kind))[1]
    done = subprocess.run(repair, shell=True, input="y\n", capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert serve(NO_CONSOLE, *of_kind).board().get("a").payload == 1


@pytest.mark.every_server
def test_a_broken_append_only_file_of_each_server(serve, refused, of_kind, data) -> None:
    first = serve(NO_CONSOLE, *of_kind)
    first.board().post(1, id="a")
    first.stop()
    [log] = (data / "appendonlydir").glob("*.incr.aof")
    log.write_bytes(b"*1\r\n$3\r\nXXX\r\n" + log.read_bytes())
    before = contents(data)
    assert f"{log} is damaged, and nothing of it was changed" in refused(*of_kind)
    assert contents(data) == before


def test_a_board_that_cannot_be_read_is_told_and_kept(serve, filled) -> None:
    """The others are served."""
    [log] = (filled / "appendonlydir").glob("*.incr.aof")
    found = re.search(rb"\$9\r\nJOB\.APPLY\r\n\$5\r\nmails\r\n\$\d+\r\n", log.read_bytes(), re.IGNORECASE)
    content = bytearray(log.read_bytes())
    content[found.end()] ^= 0xFF
    log.write_bytes(content)
    serving = serve(NO_CONSOLE, "--server", executable("valkey91"))
    assert "Warning: 1 board could not be read" in serving.text
    with pytest.raises(jobboard.Broken):
        serving.board().get("a")
    assert serving.board("others").post(1, id="b") == "b"
    serving.stop()
    assert log.read_bytes().startswith(bytes(content))


# Ports


def test_a_taken_port(refused) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        said = refused("--port", taken.getsockname()[1])
    assert f"port {taken_port(said)} is taken by" in said and f"(process {os.getpid()})" in said


def taken_port(said: str) -> str:
    return re.search(r"port (\d+) is taken", said)[1]


def test_a_second_start_says_who_holds_the_port(serve, refused, tmp_path) -> None:
    first = serve(NO_CONSOLE)
    port = first.url.rpartition(":")[2]
    said = refused("--port", port, folder=tmp_path / "other")
    assert f"port {port} is taken by valkey-server (process {first.server_pid()})" in said
    assert first.board().client.ping()


def test_a_taken_port_of_the_console(serve) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        serving = serve("--console-port", taken.getsockname()[1])
    assert serving.process.poll() == 1
    assert "another with --console-port" in serving.text


def test_a_free_port_in_place_of_a_taken_one_when_asked_for(serve) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        serving = serve(NO_CONSOLE, "--any-port", "--port", taken.getsockname()[1])
        assert serving.board().client.ping()


# Parts


def test_a_module_for_another_cpu(refused, tmp_path) -> None:
    module = for_another_cpu(MODULE, tmp_path / "module.so")
    assert f"{module} was built for another CPU (RISC-V)" in refused("--module", module)


def test_a_server_for_another_cpu(refused, tmp_path) -> None:
    server = for_another_cpu(executable("valkey91"), tmp_path / "valkey-server")
    assert f"{server} was built for another CPU (RISC-V)" in refused("--server", server)


def test_a_module_for_another_c_library(refused, tmp_path) -> None:
    module = patched(MODULE, b"GLIBC_2.34\0", b"GLIBC_9.34\0", tmp_path / "module.so")
    assert "needs another C library than this machine has (GLIBC_9.34)" in refused("--module", module)


def test_a_module_for_musl_in_a_server_for_glibc(refused, tmp_path) -> None:
    module = patched(MODULE, b"\0libc.so.6\0", b"\0libc.so\0\0\0", tmp_path / "module.so")
    assert "the module is for musl, and this Valkey 9.1" in refused("--module", module)


def test_a_module_for_glibc_in_a_server_for_musl(refused, tmp_path) -> None:
    """One that says it is a server of ours, with the words of musl."""
    why = "Error loading shared library ld-linux-x86-64.so.2: No such file or directory (needed by module.so)"
    lines = [
        'if [ "$1" = --version ]; then echo "Valkey server v=9.1.0 sha=0"; exit; fi',
        f'echo "1:M 01 Jan 2026 00:00:00.000 # Module module.so failed to load: {why}"',
        "exit 1",
    ]
    said = refused("--server", script(tmp_path / "valkey-server", *lines))
    assert "the module is for glibc, and this Valkey 9.1.0 is for musl" in said


def test_a_server_for_a_newer_c_library(refused, tmp_path) -> None:
    [version] = set(re.findall(rb"GLIBC_2\.28\0", executable("valkey91").read_bytes()))
    server = patched(executable("valkey91"), version, b"GLIBC_9.28\0", tmp_path / "valkey-server")
    assert "needs a newer C library than this machine has (GLIBC_9.28)" in refused("--server", server)


def test_a_server_for_a_c_library_that_is_not_here(refused, tmp_path) -> None:
    loader = re.search(rb"/lib[^\0]*/ld-[^\0]*\0", executable("valkey91").read_bytes())[0]
    server = patched(executable("valkey91"), loader, b"/no" + loader[3:], tmp_path / "valkey-server")
    assert "needs another C library" in refused("--server", server)


def test_a_server_that_is_too_old(refused, tmp_path) -> None:
    server = script(tmp_path / "redis-server", "echo 'Redis server v=6.2.14 sha=00000000:0 malloc=libc'")
    assert "Redis 6.2.14: the module needs Redis 7.0 or newer" in refused("--server", server)


def test_a_program_that_is_no_server(refused) -> None:
    assert "is no redis-server or valkey-server" in refused("--server", shutil.which("true"))


def test_a_server_that_refuses_the_module(refused, tmp_path) -> None:
    """One that says it is a server of ours, and ends as one that cannot load the module."""
    lines = [
        'if [ "$1" = --version ]; then echo "Redis server v=7.9.0 sha=0"; exit; fi',
        'echo "1:M 01 Jan 2026 00:00:00.000 # Module x.so initialization failed. Module not loaded."',
        "exit 1",
    ]
    said = refused("--server", script(tmp_path / "redis-server", *lines))
    assert "Redis 7.9.0 refuses the module" in said


def test_a_file_that_is_no_module(refused, tmp_path) -> None:
    (tmp_path / "text.so").write_text("text\n" * 1000)
    assert "text.so is no module for this system" in refused("--module", tmp_path / "text.so")
    library = next(Path("/lib").glob("*/libm.so.6"))
    assert "is no module" in refused("--module", library)


def test_a_console_for_another_cpu_or_c_library(serve, built_console, tmp_path) -> None:
    console = for_another_cpu(built_console, tmp_path / "cpu")
    serving = serve("--console", console)
    assert serving.process.poll() == 1 and f"{console} was built for another CPU" in serving.text
    console = patched(built_console, b"GLIBC_2.34\0", b"GLIBC_9.34\0", tmp_path / "library")
    serving = serve("--console", console)
    assert serving.process.poll() == 1
    assert "the console did not start" in serving.text and "GLIBC_9.34" in serving.text


def test_a_user_without_a_home(monkeypatch) -> None:
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    with pytest.raises(CannotServe, match="no home directory: say with --dir"):
        default_folder()


@pytest.mark.parametrize("option", ["--server", "--module", "--config"])
def test_a_part_that_is_not_there(refused, option) -> None:
    said = refused(option, "/no/such/file")
    assert option in said and "/no/such/file" in said


def test_a_console_that_is_not_there(serve) -> None:
    serving = serve("--console", "/no/such/file")
    assert serving.process.poll() == 1
    assert "--console: there is no file /no/such/file" in serving.text


def test_without_the_extra(refused) -> None:
    said = refused(JOBBOARD_MODULE="")
    assert "pip install --find-links FOLDER 'jobboard[server]' brings it (FOLDER has the wheels)" in said
    assert "--module" in said


def test_programs_in_other_languages_are_told_where_server_and_module_are(monkeypatch) -> None:
    def printed() -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "jobboard.serving"], capture_output=True, text=True)

    monkeypatch.setenv("JOBBOARD_MODULE", str(MODULE))
    server, module = printed().stdout.splitlines()
    assert server.startswith("export JOBBOARD_SERVER=/") and server.endswith("/valkey-server")
    assert module == f"export JOBBOARD_MODULE={MODULE}"
    monkeypatch.setenv("JOBBOARD_MODULE", "")
    found = printed()
    assert (found.returncode, found.stdout) == (1, "") and "there is no module" in found.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--port", "x"], "'x' is no port: write 0 to 65535"),
        (["--once"], "give --demo too"),
        (["--demo", "/no/such/folder"], "/no/such/folder is no folder"),
        (["--workers", "0"], "at least 1"),
    ],
)
def test_options_that_make_no_sense(serve, words, said) -> None:
    serving = serve(NO_CONSOLE, *words)
    assert serving.process.poll() != 0 and said in serving.text
