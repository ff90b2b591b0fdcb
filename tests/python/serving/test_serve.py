"""`jobboard serve`: from nothing to a board, and back."""

from __future__ import annotations

import http.client
import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import redis
from harness import wait_until

NO_CONSOLE = "--no-console"


def ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.every_server
def test_a_job_survives_a_stop_on_each_server(serve, of_kind) -> None:
    serving = serve(*of_kind, NO_CONSOLE)
    serving.board().post({"to": "ann"}, id="a")
    pid = serving.server_pid()
    assert serving.stop() == 0
    assert ended(pid)
    assert serve(*of_kind, NO_CONSOLE).board().get("a").payload == {"to": "ann"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_ctrl_c_and_a_closed_terminal_save_and_end(serve, number) -> None:
    serving = serve(NO_CONSOLE)
    serving.board().post(1, id="a")
    assert serving.stop(number) == 0
    assert serve(NO_CONSOLE).board().get("a").payload == 1


SIGNAL_MEETS_A_DESTRUCTOR = """
import os, signal
from jobboard.serving import serve

class Closing:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)

say_what_next = serve._say_what_next

def meanwhile(*arguments):
    say_what_next(*arguments)
    Closing()

serve._say_what_next = meanwhile
"""


def test_a_signal_is_heeded_that_comes_while_a_destructor_runs(serve, tmp_path) -> None:
    """Python drops what a handler raises then."""
    (tmp_path / "sitecustomize.py").write_text(SIGNAL_MEETS_A_DESTRUCTOR)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    serving = serve(NO_CONSOLE, PYTHONPATH=path)
    assert serving.process.wait(60) == 0
    assert "Saving, and ending." in serving.text


def test_nothing_of_it_outlives_a_kill(serve) -> None:
    serving = serve()
    serving.board().post(1, id="a")
    pid, page = serving.server_pid(), serving.console
    serving.kill()
    wait_until(lambda: ended(pid), 60, what="the server's end")

    def is_gone() -> bool:
        try:
            urllib.request.urlopen(page, timeout=5)
        except TimeoutError:
            return False
        except (OSError, http.client.HTTPException):
            return True
        return False

    wait_until(is_gone, 60, what="the console's end")
    assert serve(NO_CONSOLE).board().get("a").payload == 1


def test_the_password_is_made_once_and_for_this_user_alone(serve, data) -> None:
    serving = serve(NO_CONSOLE)
    password = (data / "password").read_text().strip()
    assert len(password) > 20 and f"//default:{password}@" in serving.url, (
        "redis-cli -u of 7.0 wants the user"
    )
    assert (data / "password").stat().st_mode & 0o777 == 0o600
    assert data.stat().st_mode & 0o077 == 0
    assert all(file.stat().st_mode & 0o077 == 0 for file in (data / "appendonlydir").iterdir())
    arguments = open(f"/proc/{serving.server_pid()}/cmdline").read()
    assert password not in arguments
    with pytest.raises(redis.AuthenticationError):
        redis.Redis.from_url(re.sub("[^/]*@", "", serving.url)).ping()
    serving.stop()
    assert f":{password}@" in serve(NO_CONSOLE).url


def test_the_password_is_shown_on_a_terminal_alone(serve, data) -> None:
    """Elsewhere, as in a log, stands the file that has it."""
    serving = serve()
    password = (data / "password").read_text().strip()
    assert password not in serving.text
    assert f"password the line in {data / 'password'}\n" in serving.text
    assert (data / "url").stat().st_mode & 0o777 == 0o600
    serving.stop()
    assert not (data / "url").exists()
    serving = serve("--no-console", terminal=True)
    assert re.search(rf"^  password {re.escape(password)}\s*$", serving.text, re.MULTILINE)
    assert serving.text.count(password) == 1


def test_a_password_of_ones_own_may_have_any_characters(serve, data) -> None:
    data.mkdir()
    (data / "password").write_text('a "b" \\ c@d/e#%\n')
    serving = serve(NO_CONSOLE)
    assert serving.board().client.ping()
    assert (data / "password").stat().st_mode & 0o777 == 0o600


def test_without_a_password(serve, data) -> None:
    serving = serve(NO_CONSOLE, "--no-password")
    assert re.fullmatch(r"redis://127\.0\.0\.1:\d+", serving.url)
    assert "  password " not in serving.text and "  user " not in serving.text
    assert serving.board().client.ping()
    assert not (data / "password").exists()


def test_only_this_machine_is_served(serve) -> None:
    client = serve(NO_CONSOLE).board().client
    assert client.config_get("bind")["bind"] == "127.0.0.1"
    assert client.config_get("protected-mode")["protected-mode"] == "yes"
    assert client.config_get("appendonly")["appendonly"] == "yes"


def test_the_lines_that_it_prints_can_be_used(serve, tmp_path) -> None:
    serving = serve(NO_CONSOLE)
    lines = [line.strip() for line in serving.text.splitlines() if line.startswith("  jobboard ")]
    assert len(lines) == 3
    [export] = re.findall(r"export JOBBOARD_URL=.*", serving.text)
    for line in lines[:2]:  # the third, `top`, goes on
        script = f"{export}\n{shlex.quote(sys.executable)} -m {line}"
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert "welcome" in done.stdout
    assert lines[2].startswith("jobboard top ")
    assert f"kill {serving.process.pid}" in serving.text


def test_a_log_that_is_named_is_kept(serve, tmp_path) -> None:
    """A temporary folder goes, unless the server failed and its log tells why."""
    serving = serve(NO_CONSOLE, folder=None, TMPDIR=str(tmp_path))
    os.kill(serving.server_pid(), signal.SIGKILL)
    assert serving.process.wait(60) == 1
    [log] = re.findall(r"\(log: (.+)\)", serving.text)
    assert "jobboard" in Path(log).read_text()


def test_the_console_shows_the_boards_to_who_knows_the_password(serve, data) -> None:
    serving = serve()
    serving.board("letters").post(1)
    password = (data / "password").read_text().strip()
    page = urllib.request.urlopen(serving.console + "/sign-in").read().decode()
    assert "password" in page and "letters" not in page
    request = urllib.request.Request(serving.console + "/metrics")
    with pytest.raises(urllib.error.HTTPError) as refusal:
        urllib.request.urlopen(request)
    assert refusal.value.code in (401, 403)
    request.add_header("Authorization", f"Bearer {password}")
    assert b'board="letters"' in urllib.request.urlopen(request).read()


@pytest.mark.parametrize("write", [False, True])
def test_the_console_acts_only_when_asked_to(serve, write) -> None:
    serving = serve("--no-password", *(["--write"] if write else []))
    serving.board("letters").post(1, id="a")
    page = urllib.request.urlopen(serving.console + "/job?b=letters&id=a").read().decode()
    assert ("Cancel" in page) == write


def test_the_server_goes_on_when_the_console_has_ended(serve) -> None:
    serving = serve("--no-password")
    serving.board("letters").post(1, id="a")
    assert b"letters" in urllib.request.urlopen(serving.console).read()
    [console] = [
        line.split()[0]
        for line in subprocess.run(
            ["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True
        ).stdout.splitlines()
        if line.split()[1] == str(serving.process.pid) and "jobboard-console" in line
    ]
    os.kill(int(console), signal.SIGKILL)
    wait_until(lambda: "the console has ended" in serving.text, 60)
    assert serving.board("letters").get("a").payload == 1


def test_it_ends_when_the_server_does_and_says_so(serve) -> None:
    serving = serve(NO_CONSOLE)
    os.kill(serving.server_pid(), signal.SIGKILL)
    assert serving.process.wait(60) == 1
    assert (
        "was killed (SIGKILL): the kernel does that when memory is full" in serving.text
        and "server.log" in serving.text
    )


def test_more_lines_for_the_server(serve, tmp_path) -> None:
    config = tmp_path / "more lines.conf"
    config.write_text("maxmemory 123mb\njobboard.lease 60000\n")
    client = serve(NO_CONSOLE, "--config", config).board().client
    assert client.config_get("maxmemory")["maxmemory"] == str(123 << 20)
    assert client.config_get("jobboard.lease")["jobboard.lease"] == "60000"


@pytest.mark.every_server
def test_it_serves_once_all_is_loaded(serve, of_kind, tmp_path) -> None:
    """A server that loads answers INFO, and refuses the rest."""
    first = serve(NO_CONSOLE, *of_kind)
    client = first.board().client
    for number in range(40):
        client.set(f"key-{number}", os.urandom(4096))
    client.bgrewriteaof()
    wait_until(lambda: not client.info("persistence")["aof_rewrite_in_progress"], 60)
    assert client.info("persistence")["aof_last_bgrewrite_status"] == "ok"
    first.stop()
    slow = tmp_path / "slow.conf"
    slow.write_text("key-load-delay 300000\nloading-process-events-interval-bytes 1024\n")
    second = serve(NO_CONSOLE, *of_kind, "--config", slow)
    assert second.board().client.dbsize() == 40
    assert "The server is loading its data." in second.text


def test_a_folder_with_odd_characters(serve, tmp_path) -> None:
    folder = tmp_path / 'a "b" \\ ü %'
    serve(NO_CONSOLE, folder=folder).board().post(1)
    assert (folder / "appendonlydir").is_dir()


def test_the_default_folder_is_in_the_users_data_directory(monkeypatch, tmp_path) -> None:
    from jobboard.serving.folder import default_folder

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "jobboard"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder() in (
        tmp_path / ".local/share/jobboard",
        tmp_path / "Library/Application Support/jobboard",
    )
