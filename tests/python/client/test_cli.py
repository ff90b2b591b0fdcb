"""The command line, as a person calls it."""

from __future__ import annotations

import contextlib
import importlib.machinery
import json
import os
import pty
import re
import select
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest
from jobboard import cli as cli_module

TESTS = Path(__file__).resolve().parents[1]
JOBBOARD = Path(sys.executable).with_name("jobboard")


@pytest.fixture
def cli(server, monkeypatch, capsys):
    """Calls `jobboard …` in this process and returns (status, output, errors)."""
    monkeypatch.setenv("JOBBOARD_URL", f"redis://127.0.0.1:{server.port}")

    def run(*words: str) -> tuple[int, str, str]:
        status = cli_module.main(words)
        return (status, *capsys.readouterr())

    return run


def test_the_console_script(server, jobs) -> None:
    def run(*words: str, input: str = "") -> str:
        environment = {**os.environ, "JOBBOARD_URL": f"redis://127.0.0.1:{server.port}"}
        command = [str(JOBBOARD), *words]
        done = subprocess.run(
            command, input=input, stdout=subprocess.PIPE, text=True, timeout=60, cwd=TESTS, env=environment
        )
        assert done.returncode == 0
        return done.stdout

    posting = ["post", "board", "--lines", "-", "--name", "square", "--retain", "1m"]
    assert run(*posting, input="1\n2\n") == "posted 2\n"
    run("worker", "client_app:board", "--burst", "--processes", "1")
    found = run("list", "board", "--state", "complete", "--fields", "result", "--json")
    assert [json.loads(line) for line in found.splitlines()] == [{"result": 1}, {"result": 4}]


def test_a_post_waits_for_room_and_says_which_bound_has_none(cli, jobs) -> None:
    jobs.settings_set({"max-jobs": 1})
    status, id, _ = cli("post", "board", "1", "--block", "5s")
    assert (status, jobs.get(id.strip()).payload) == (0, 1)
    status, _, told = cli("post", "board", "2", "--block", "10ms")
    assert status == 1 and "max-jobs" in told


def test_post_and_get(cli, jobs, tmp_path) -> None:
    status, id, _ = cli(
        *("post", "board", '{"to": "ann"}', "--name", "mail", "--queue", "mails", "--priority", "5"),
        *("--delay", "2h", "--tag", "red", "--tag", "night", "--meta", "a=b"),
    )
    job = jobs.get(id.strip())
    assert status == 0
    assert (job.payload, job.name, job.queue, job.priority) == ({"to": "ann"}, "mail", "mails", 5)
    assert (job.tags, job.meta, job.state) == (["red", "night"], {"a": "b"}, "scheduled")
    status, out, _ = cli("get", "board", id.strip(), "--json")
    assert json.loads(out)["payload"] == {"to": "ann"}
    status, out, _ = cli("get", "board", id.strip())
    assert "payload" in out and '{"to": "ann"}' in out
    assert cli("get", "board", "nobody")[0] == 1

    lines = tmp_path / "lines"
    lines.write_text("1\n2\n3\n")
    assert cli("post", "board", "--lines", str(lines), "--queue", "bulk")[:2] == (0, "posted 3\n")
    lines.write_text("a\nb\n")
    assert cli("post", "board", "--lines", str(lines), "--codec", "raw")[1] == "posted 2\n"
    assert jobs.count(queue="bulk") == 3


def test_list_and_requeue(cli, jobs) -> None:
    jobs.post_many(range(1500), queue="q", name="n")
    jobs.cancel_where({"queue": "q"})
    status, out, errors = cli("list", "board", "--state", "cancelled", "--count", "2", "--fields", "id,state")
    rows = out.splitlines()
    assert rows[0].split() == ["ID", "STATE"] and rows[1].split()[1] == "cancelled" and len(rows) == 3
    assert "all of 1500" in errors
    status, out, _ = cli("list", "board", "--not-state", "ready", "--count", "0", "--json")
    assert len([json.loads(line) for line in out.splitlines()]) == 1500
    requeue = ["requeue", "board", "--state", "cancelled", "--name", "n", "--to", "r"]
    status, out, _ = cli(*requeue, "--dry-run")
    assert (status, out.splitlines()[0]) == (0, "requeue: 1500 (dry run)")
    assert out.splitlines()[1].split()[1:] == ["cancelled", "n"] and len(out.splitlines()) == 7
    assert jobs.count(queue="r") == 0
    assert cli(*requeue)[:2] == (0, "requeue: 1500\n")
    assert jobs.count(queue="r", state="ready") == 1500
    assert "r" in cli("queues", "board")[1]
    jobs.pause(queue="r")
    assert "r (paused)" in cli("queues", "board")[1]


def test_a_requeue_says_who_holds_the_unique_key(cli, jobs) -> None:
    for id in ("old", "other"):
        jobs.post(None, id=id, unique=f"key of {id}")
        jobs.claim_id("w", id)
        jobs.fail("w", id, "KeyError", noretry=True)
    jobs.post(None, id="new one", unique="key of old")
    status, out, errors = cli("requeue", "board", "--state", "failed", "--dry-run")
    assert (status, out.splitlines()[0]) == (0, "requeue: 1 (dry run)")
    assert "1 would be held back:\n  old: another job holds its unique key 'key of old'" in errors
    for words in (["old"], ["other", "old"]):
        status, out, errors = cli("requeue", "board", *words)
        assert (status, out) == (1, "")
        assert "nothing is requeued: the unique key of old is held by job new one; wait" in errors
        assert "`jobboard cancel board 'new one'`" in errors and "EXISTS" not in errors
    status, out, errors = cli("requeue", "board", "--state", "failed")
    assert (status, out) == (0, "requeue: 1\n") and jobs.state("other") == "ready"
    assert "1 were held back:\n  the unique key of old is held by job new one; wait" in errors
    jobs.settings_set({"max-jobs": 2})
    jobs.cancel("new one")
    jobs.post(None)
    errors = cli("requeue", "board", "old")[2] + cli("requeue", "board", "--state", "failed")[2]
    assert "LIMIT max-jobs old\n1 were held back:\n  old: LIMIT max-jobs old" in errors


def test_what_holds_a_job_back_from_a_deletion_is_a_command_away(cli, jobs) -> None:
    jobs.post(None, id="p")
    jobs.post(None, id="c", after=["p"])
    status, out, errors = cli("delete", "board", "--state", "ready")
    assert "1 were held back:\n  p: `jobboard delete board p` says why" in errors
    status, out, errors = cli("delete", "board", "p")
    assert status == 1 and "DEPENDED" in errors


def test_jobs_are_found_on_the_command_line(cli, jobs) -> None:
    for id in ("a1", "a2", "b1"):
        jobs.post({"to": id}, id=id, meta={"plan": id[0]})
    for words in (["--id", "a*"], ["--meta", "plan=a"], ["--contains", '"a', "--posted", "1h", "-"]):
        status, out, _ = cli("list", "board", *words, "--fields", "id", "--json")
        assert status == 0 and {json.loads(line)["id"] for line in out.splitlines()} == {"a1", "a2"}
    for words in (["--ended", "yesterday", "-"], ["--meta", "plan"], ["--posted", "2026-11-23T14:00", "-"]):
        with pytest.raises(SystemExit):
            cli("list", "board", *words)


def test_other_verbs(cli, jobs) -> None:
    jobs.post_many([1, 2], ids=["a", "b"], after=["c"])
    jobs.post(3, id="c", delay="1m")
    jobs.post_many([1, 2], ids=["d", "e"], after=["c"])
    status, out, _ = cli("explain", "board", "d")
    assert out.startswith("d is blocked in default\n- It waits")
    assert cli("cancel", "board", "e", "nobody")[:2] == (1, "e cancelled\nnobody unknown\n")
    assert cli("delete", "board", "e")[:2] == (0, "delete: 1\n")
    assert "posted" in cli("history", "board", "d")[1]
    assert cli("pause", "board", "--for", "1h")[0] == 0
    assert jobs.info()["paused"] > 0
    assert cli("resume", "board")[0] == 0
    assert cli("release", "board", "--worker", "nobody")[1] == "release: 0\n"


def test_what_is_wrong_is_said_in_a_line(cli, jobs) -> None:
    jobs.client.set("no-board", "x")

    def errors(expected: int, *words: str) -> str:
        status, _, found = cli(*words)
        assert status == expected
        assert found.startswith("jobboard: ") and len(found.splitlines()) == 1
        return found

    assert "the payload is no JSON" in errors(2, "post", "board", "hello")
    assert "give a payload" in errors(2, "post", "board")
    assert "give ids, or at least one filter" in errors(2, "requeue", "board")
    assert "give ids, or at least one filter" in errors(2, "cancel", "board")
    assert "lease is text with a unit" in errors(2, "settings", "board", "lease=5")
    assert "client_app:nothing" in errors(2, "worker", "client_app:nothing")
    assert "no_such_module" in errors(2, "worker", "no_such_module:board")
    assert "must be module:name" in errors(2, "worker", "client_app")
    assert "WRONGTYPE" in errors(1, "list", "no-board")
    assert "127.0.0.1:1" in errors(1, "list", "board", "--url", "redis://127.0.0.1:1?retry_on_timeout=false")
    assert cli_module.main([]) == 2


def test_a_missing_password_is_told_in_our_words_first(cli, jobs, server) -> None:
    client = server.client()
    client.config_set("requirepass", "secret")
    try:
        said = cli("queues", "board", "--url", f"redis://127.0.0.1:{server.port}")[2]
        assert said.startswith("jobboard: the server refuses the password, or wants one: write redis://user:")
        assert "(the server says: " in said and "stand in the URL" not in said
    finally:
        client.config_set("requirepass", "")


def test_errors_of_the_server_have_their_codes(cli, jobs, server, fresh_server) -> None:
    """docs/operate/trouble.md is looked up by them, and redis-py cuts them off."""
    jobs.post(1)
    client = server.client()
    client.config_set("maxmemory", 1)
    try:
        assert cli("post", "board", "1")[2].startswith("jobboard: OOM command not allowed")
    finally:
        client.config_set("maxmemory", 0)
    client.execute_command("ACL", "SETUSER", "bob", "on", ">secret", "~*", "+ping", "+hello", "+client")
    try:
        url = f"redis://bob:secret@127.0.0.1:{server.port}"
        assert cli("queues", "board", "--url", url)[2].startswith("jobboard: NOPERM ")
    finally:
        client.execute_command("ACL", "DELUSER", "bob")
    replica = fresh_server(replicaof=server)
    url = f"redis://127.0.0.1:{replica.port}"
    status, _, errors = cli("post", "board", "1", "--url", url)
    assert status == 1 and errors.startswith("jobboard: READONLY ")


def test_words_and_options_come_in_any_order(cli, jobs) -> None:
    """Those that may be left out, too: Python's parser before 3.12 refuses them behind an option."""
    status, out, _ = cli("post", "board", "--name", "welcome", '{"to":"ann"}', "--id", "a")
    assert (status, out) == (0, "a\n")
    assert (jobs.get("a").name, jobs.get("a").payload) == ("welcome", {"to": "ann"})
    assert cli("settings", "board", "--queue", "bulk", "lease=5m")[0] == 0
    assert jobs.settings_get("lease", queue="bulk")["lease"].value == 300_000
    jobs.claim_id("w", "a")
    jobs.await_signals("w", "a", "approved")
    assert cli("signal", "board", "approved", "--value", "true", "a")[0] == 0
    assert jobs.state("a") == "ready"
    status, _, errors = cli("requeue", "board", "--dry-run", "a")
    assert (status, errors) == (2, "jobboard: --dry-run goes with filters\n")
    assert cli("schedule", "set", "board", "s", "--every", "1h", "1")[0] == 0
    assert cli("cancel", "--force", "board", "--", "--an-id")[1] == "--an-id unknown\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["post", "board", "1", "--retry", "5"], "(--retry: did you mean --retries?)"),
        (["list", "board", "--state=ready", "--qeue", "a"], "(--qeue: did you mean --queue?)"),
        (["get", "board", "a", "b"], "unrecognized arguments: b"),
    ],
)
def test_an_unknown_option_is_told_with_the_nearest(capsys, words, said) -> None:
    with pytest.raises(SystemExit) as ended:
        cli_module.main(words)
    errors = capsys.readouterr().err
    assert ended.value.code == 2 and said in errors and f"`jobboard {words[0]} --help`" in errors


def test_waiting_for_what_was_posted(cli, jobs, work) -> None:
    status, _, errors = cli("post", "board", "7", "--name", "square", "--wait", "50ms")
    assert status == 1 and "has not ended in time" in errors
    jobs.handlers.handler()(lambda context, payload: payload * payload)
    work(jobs)
    assert cli("post", "board", "7", "--name", "square", "--wait", "60s")[:2] == (0, "49\n")


def test_top(cli, jobs) -> None:
    jobs.post_many(range(3), queue="mails", name="m")
    jobs.claim("w1", queues=["mails"])
    status, out, _ = cli("top", "board", "--once")
    assert status == 0
    assert "mails" in out and "w1" in out and "QUEUE" in out


def test_top_is_live_in_a_terminal(server, jobs) -> None:
    jobs.post(1, queue="first")
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm", COLUMNS="120", LINES="40")
        os.execv(
            JOBBOARD,
            ["jobboard", "top", "board", "--url", f"redis://127.0.0.1:{server.port}", "--every", "100ms"],
        )
    try:
        seen = read_until(terminal, b"first")
        jobs.post(1, queue="second")
        seen = read_until(terminal, b"second")
        os.write(terminal, b"\x03")
        read_to_end(terminal)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 130
        pid = 0
    finally:
        if pid:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
        os.close(terminal)
    assert seen


def test_top_ends_though_a_destructor_swallows_the_interrupt(server, jobs) -> None:
    jobs.post(1, queue="first")
    program = """
import os, signal, sys
from jobboard.cli import main
from jobboard.commands import top

class Dropped:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        sum(range(1000))  # the handler runs here

def read(*arguments, before=top.read):
    Dropped()
    return before(*arguments)

top.read = read
sys.exit(main())
"""
    pid, terminal = pty.fork()
    if pid == 0:
        url = f"redis://127.0.0.1:{server.port}"
        words = ["-c", program, "top", "board", "--url", url, "--every", "100ms"]
        os.execv(sys.executable, [sys.executable, *words])
    read_to_end(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 130
    os.close(terminal)


def read_to_end(terminal: int) -> None:
    """What a program still writes has to be read, or it never ends."""
    with contextlib.suppress(OSError):
        while os.read(terminal, 65536):
            pass


def read_until(terminal: int, text: bytes, within: float = 40.0) -> bytes:
    seen, deadline = b"", time.monotonic() + within
    while text not in seen:
        readable, _, _ = select.select([terminal], [], [], max(deadline - time.monotonic(), 0))
        assert readable, f"{text!r} did not come: {seen[-500:]!r}"
        seen += os.read(terminal, 65536)
    return seen


def test_a_bar_while_it_is_long(server, jobs) -> None:
    jobs.post_many(range(3000))
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm", COLUMNS="120", LINES="40")
        url = f"redis://127.0.0.1:{server.port}"
        os.execv(JOBBOARD, ["jobboard", "cancel", "board", "--state", "ready", "--yes", "--url", url])
    seen = read_until(terminal, b"cancel: 3000")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(terminal)
    assert b"/3000" in seen


def test_a_module_of_importers_adds_its_command(monkeypatch) -> None:
    module = types.ModuleType("jobboard.importers")
    module.__spec__ = importlib.machinery.ModuleSpec("jobboard.importers", None)
    module.add_command = lambda subparsers: subparsers.add_parser("import")
    monkeypatch.setitem(sys.modules, "jobboard.importers", module)
    parsed = cli_module.build_parser.__wrapped__().parse_args(["import"])
    assert not hasattr(parsed, "run")


def test_times_are_those_of_the_terminal_and_tracebacks_have_lines(cli, jobs, monkeypatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        jobs.post(1, id="later", delay="1h")
        _, out, _ = cli("explain", "board", "later")
        due = jobs.get("later").due
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(due / 1000))
        assert f"- It is due at {at}+05:30. " in out
        _, raw, _ = cli("explain", "board", "later", "--json")
        assert json.loads(raw)["reasons"][0]["due"] == due and str(due) in raw
        _, record, _ = cli("get", "board", "later")
        assert f"{at}+05:30" in record
        jobs.post(2, id="bad", retries=0)
        [job] = jobs.claim("w")
        jobs.fail("w", "bad", "ValueError", "Traceback:\n  line 1\n\x1b[2Jline 2", job.token)
        _, out, _ = cli("get", "board", "bad")
        assert "message\n    Traceback:\n      line 1\n    \\x1b[2Jline 2\n" in out
        _, out, _ = cli("history", "board", "bad")
        assert "\n    ValueError: Traceback:\n" in out or "\n    Traceback:\n" in out
        jobs.post(3, id="logs")
        [job] = jobs.claim("w")
        jobs.heartbeat("w", "logs", token=job.token, log="one\ntwo")
        _, out, _ = cli("history", "board", "logs")
        assert "\n    one\n    two\n" in out and "+05:30" in out
    finally:
        monkeypatch.undo()
        time.tzset()


def test_the_output_of_a_job_is_printed_without_control_characters(cli, jobs) -> None:
    jobs.post(1, id="j")
    [job] = jobs.claim("w")
    jobs.heartbeat("w", "j", job.token, output=(1, "one\n\x1b[2J"))
    assert cli("output", "board", "j", "--no-follow") == (0, "one\n\\x1b[2J\n", "")
    jobs.consume("w", "j", job.token, output=(2, "two"))
    assert cli("output", "board", "j")[1] == "one\n\\x1b[2Jtwo\n"
    assert cli("output", "board", "nobody")[0] == 1


SECRET = "redis://:topsecret@127.0.0.1:1"


@pytest.mark.parametrize(
    "words, said",
    [
        (["--url", SECRET, "list", "board"], "--url stands after the command: jobboard <command> … --url …"),
        ([f"--url={SECRET}", "list", "board"], "--url stands after the command"),
        (["--json", "list", "board"], "--json stands after the command"),
        (
            ["import", "--dry-run", "rq", "jobs"],
            "--dry-run stands after the command: jobboard import library",
        ),
        ([SECRET], "invalid choice: 'redis://…@127.0.0.1:1'"),
        (["lst", "board"], "did you mean list?"),
        (["list", "board", SECRET], "unrecognized arguments: redis://…@127.0.0.1:1"),
        (["list", "board", f"--urll={SECRET}"], "did you mean --url?"),
        (["list", "board", "--state", "ruining"], "'claimed', 'complete'"),
        (["list", "board", "--state", "canceled"], "did you mean cancelled?"),
        (["list", "board", "--state=failed,cancelled"], "write --state failed --state cancelled"),
    ],
)
def test_a_word_in_the_wrong_place(words, said, capsys) -> None:
    with pytest.raises(SystemExit) as end:
        cli_module.main(words)
    shown = capsys.readouterr().err
    assert end.value.code == 2 and said in shown and "topsecret" not in shown


def test_states_go_by_the_words_of_the_console_too(cli, jobs) -> None:
    jobs.post(1, id="a", retain="1m")
    jobs.claim_id("w", "a")
    assert cli("count", "board", "--state", "running")[1] == "1\n"
    assert cli("count", "board", "--not-state", "running")[1] == "0\n"
    jobs.consume("w", "a", force=True)
    assert cli("list", "board", "--state", "done")[1].splitlines()[1].split()[0] == "a"


def test_signal_answers_the_inbox(cli, jobs) -> None:
    jobs.post({"to": "ann"}, id="a", await_="approved")
    out = cli("list", "board", "--awaits", "approved")[1]
    assert '{"to": "ann"}' in out and "STAGE" in out
    status, out, told = cli("signal", "board", "aproved", "a")
    assert (status, out) == (0, "a kept\n") and "it waits for approved" in told
    lines = cli("explain", "board", "a")[1].splitlines()
    advised = lines.index("    $ jobboard signal board approved a --value true")
    assert "without --value it sees null" in lines[advised + 1]
    assert lines[advised + 2] == "    $ jobboard depend-remove board a --signals"
    assert "goes on without a signal" in lines[advised + 3]
    assert cli("signal", "board", "approved", "a", "--value", "true", "--sender", "eve")[:2] == (
        0,
        "a woken\n",
    )
    found = jobs.get("a", fields=["signals"]).signals["approved"]
    assert (found.value, found.sender) == (True, "eve")
    assert cli("signal", "board", "approved", "a", "zebra")[:2] == (1, "a already\nzebra unknown\n")
    jobs.post(1, id="b", await_="paid")
    words = ("signal", "board", "paid", "--awaits", "paid")
    assert cli(*words, "--dry-run")[1].startswith("signal: 1 (dry run)\n")
    assert cli(*words)[:2] == (0, "signal: 1\n")


def test_watch_shows_a_job_to_its_end(cli, jobs) -> None:
    jobs.post(1, id="a", retain="1m")
    status, out, told = cli("watch", "board", "a", "--timeout", "10ms")
    assert status == 1 and "state ready" in out and "has not ended in time" in told
    jobs.consume("w", "a", token=jobs.claim_id("w", "a").token)
    status, out, _ = cli("watch", "board", "a", "--json")
    assert status == 0 and json.loads(out)["state"] == "complete"
    assert cli("watch", "board", "nobody")[0] == 1


def test_a_failed_job_says_why_and_what_to_type(cli, jobs) -> None:
    jobs.post(1, id="a")
    jobs.fail("w", "a", "KeyError", "count", token=jobs.claim_id("w", "a").token, noretry=True)
    out = cli("explain", "board", "a")[1]
    assert "KeyError: count" in out and "$ jobboard requeue board a" in out
    assert (
        "KIND" in cli("list", "board")[1]
        and "kinds: KeyError 1" in cli("requeue", "board", "--state", "failed", "--dry-run")[1]
    )
    assert cli("kinds", "board")[1].splitlines()[1].split() == ["KeyError", "1"]
    assert cli("count", "board", "--kind", "KeyError")[1] == "1\n"


def test_a_complete_job_shows_its_old_failure_as_such(cli, jobs) -> None:
    for state in ("failed", "complete"):
        job_id = jobs.post(1, id=state, retries=int(state == "complete"), backoff="1ms", retain="1h")
        [job] = jobs.claim("w")
        jobs.fail("w", job_id, token=job.token, kind="SMTPError", message="451")
    [job] = jobs.claim("w", block="10s")
    jobs.consume("w", job.id, token=job.token)
    lines = cli("get", "board", "complete")[1].splitlines()
    assert [" ".join(line.split()) for line in lines if "SMTP" in line or "451" in line] == [
        "last failure SMTPError",
        "its message 451",
    ]
    assert re.search(r"^kind +SMTPError$", cli("get", "board", "failed")[1], re.MULTILINE)
    assert json.loads(cli("get", "board", "complete", "--json")[1])["kind"] == "SMTPError"


def test_each_filter_says_what_passes(capsys) -> None:
    with pytest.raises(SystemExit):
        cli_module.main(["list", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    for option in ("--tracked", "--lapsed", "--stage STAGE", "--awaits AWAITS", "--contains CONTAINS"):
        assert re.search(rf"{option} (?:that|whose) ", told), option
    assert "--message MESSAGE the message of whose last failure" in told
