"""What nothing brings back is asked for; names that may be written wrong are said to be."""

from __future__ import annotations

import io

import pytest
from harness import wait_until
from jobboard.cli import main


@pytest.fixture
def cli(server, monkeypatch, capsys):
    """Calls `jobboard …` in this process and returns (status, output, errors)."""
    monkeypatch.setenv("JOBBOARD_URL", f"redis://127.0.0.1:{server.port}")

    def run(*words: str) -> tuple[int, str, str]:
        status = main(words)
        return (status, *capsys.readouterr())

    return run


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("verb", "past"), [("delete", "deleted"), ("cancel", "cancelled")])
def test_many_jobs_are_not_lost_without_a_question(cli, jobs, monkeypatch, verb, past) -> None:
    jobs.post_many(range(1001), queue="q")
    words = [verb, "board", "--queue", "q"]
    status, out, errors = cli(*words)
    assert (status, out) == (2, "") and f"this {verb}s 1001 jobs of board" in errors and "--yes" in errors
    assert cli(*words, "--dry-run")[1].startswith(f"{verb}: 1001 (dry run)")
    for answer in ("", "\n", "no\n"):
        monkeypatch.setattr("sys.stdin", Terminal(answer))
        status, out, errors = cli(*words)
        assert (status, out) == (1, "") and "Write yes" in errors and f"nothing is {past}" in errors
    assert jobs.count(state="ready") == 1001
    monkeypatch.setattr("sys.stdin", Terminal("yes\n"))
    assert cli(*words)[:2] == (0, f"{verb}: 1001\n")
    monkeypatch.setattr("sys.stdin", io.StringIO())
    jobs.post_many(range(1001), queue="q")
    assert cli(*words, "--yes")[:2] == (0, f"{verb}: 1001\n")
    if verb == "cancel":  # those that have ended are not asked for
        assert jobs.count(state="cancelled") == 2002
    jobs.post_many(range(1000), queue="q")
    assert cli(*words)[:2] == (0, f"{verb}: 1000\n"), "up to a thousand nobody is asked"


def test_a_cancel_says_how_many_jobs_go_for_good(cli, jobs) -> None:
    jobs.settings_set({"keep-cancelled": 1500})
    jobs.post_many(range(300), queue="q")
    assert cli("cancel", "board", "--queue", "q")[0] == 0
    jobs.post_many(range(2000), queue="q")
    said = "drops the 800 oldest cancelled jobs for good, since it keeps 1500 (setting keep-cancelled)"
    assert said in cli("cancel", "board", "--queue", "q")[2]
    assert said in cli("cancel", "board", "--queue", "q", "--dry-run")[2]
    assert cli("cancel", "board", "--queue", "q", "--yes")[:2] == (0, "cancel: 2000\n")
    wait_until(lambda: jobs.count(state="cancelled") == 1500, 60, what="it was the truth")
    jobs.settings_set({"keep-cancelled": 10_000})
    jobs.post_many(range(2000), queue="r")
    assert "`jobboard requeue` brings back" in cli("cancel", "board", "--queue", "r")[2]
    assert "for good" not in cli("cancel", "board", "--queue", "r", "--dry-run")[2]


def test_a_command_that_changes_nothing_says_what_it_has_passed_over(cli, jobs) -> None:
    jobs.settings_set({"dead-queue": "unsent"}, queue="q")
    jobs.post(1, id="a", queue="q")
    jobs.claim_id("w", "a")
    jobs.fail("w", "a", "KeyError", noretry=True)
    jobs.post(1, id="b")
    jobs.cancel("b")
    status, out, errors = cli("requeue", "board", "--queue", "unsent", "--dry-run")
    assert (status, out) == (0, "requeue: 0 (dry run)\n") and "--origin sends them back" in errors
    assert cli("requeue", "board", "--queue", "unsent", "--origin")[:2] == (0, "requeue: 1\n")
    status, out, errors = cli("requeue", "board", "--queue", "q")
    assert out == "requeue: 0\n" and "1 pass, and none is cancelled or failed or trashed\n" in errors
    status, out, errors = cli("update", "board", "--state", "cancelled", "--set", "priority=5")
    assert out == "update: 0\n" and "1 pass, and have ended" in errors
    said = "queue 'nobody' of board has no jobs\n"
    assert cli("requeue", "board", "--queue", "nobody")[1:] == ("requeue: 0\n", said)
    assert cli("requeue", "board", "--kind", "nothing")[1:] == ("requeue: 0\n", "")


@pytest.mark.parametrize("words", [["pause"], ["resume"], ["settings", "retries=3"]])
def test_a_change_of_a_board_or_queue_that_is_not_there_is_told(cli, jobs, words) -> None:
    verb, *more = words
    assert "this server had no board 'baord'" in cli(verb, "baord", *more)[2]
    jobs.post(1, queue="bulk")
    if verb == "resume":
        assert cli("pause", "board")[0] == cli("pause", "board", "--queue", "bulk")[0] == 0
    assert cli(verb, "board", *more, "--queue", "bulk")[2].count("is paused") == (verb == "resume")
    assert cli(verb, "board", *more)[2] == ""
    jobs.settings_set({"retries": 1}, queue="bulk")
    said = "queue 'bukl' of board has no jobs; did you mean 'bulk'?\n"
    assert cli(verb, "board", *more, "--queue", "bukl")[2] == said
    away = cli(verb, "board", *more, "--queue", "else")[2]
    assert away == ("" if verb == "settings" else "queue 'else' of board has no jobs\n")


CHANGES = {
    "cancel": [],
    "requeue": [],
    "release": [],
    "delete": [],
    "update": ["--set", "priority=5"],
}


@pytest.mark.parametrize("verb", CHANGES)
def test_a_change_of_jobs_of_a_board_that_is_not_there_is_told(cli, jobs, verb) -> None:
    jobs.post(1)
    said = "this server has no board 'baord'; did you mean 'board'?\n"
    status, _, errors = cli(verb, "baord", "an-id", *CHANGES[verb])
    assert status == 1 and errors.endswith(said)
    assert cli(verb, "baord", "--state", "ready", *CHANGES[verb]) == (0, f"{verb}: 0\n", said)
    assert cli(verb, "else", "--state", "ready", *CHANGES[verb])[2].endswith(
        "`jobboard boards` lists those that it has\n"
    )


def test_a_job_for_a_new_board_or_queue_is_told_where_a_name_is_near(cli, jobs, server) -> None:
    jobs.post(1, queue="bulk")
    assert cli("post", "mails", "1")[2] == "" == cli("post", "board", "1", "--queue", "mails")[2]
    assert cli("post", "baord", "1")[2] == "this server had no board 'baord'; did you mean 'board'?\n"
    assert cli("post", "baord", "1")[2] == ""
    assert (
        cli("post", "board", "1", "--queue", "bukl")[2]
        == "queue 'bukl' of board has no jobs; did you mean 'bulk'?\n"
    )
    assert cli("post", "board-2", "1")[2] == "", "who numbers boards means it so"
    said = cli("schedule", "set", "borad", "nightly", "1", "--every", "1h")[2]
    assert said == "this server had no board 'borad'; did you mean 'board'?\n"


def test_who_may_not_ask_is_told_nothing(cli, jobs, server) -> None:
    """A producer may post, and neither look at boards nor list them."""
    jobs.post(1)
    server.client().execute_command(
        "ACL", "SETUSER", "producer", "reset", "on", "nopass", "%W~*", "-@all", "+job.post"
    )
    url = f"redis://producer:x@127.0.0.1:{server.port}"
    assert cli("post", "baord", "1", "--url", url)[::2] == (0, "")
    server.client().execute_command(
        "ACL", "SETUSER", "operator", "reset", "on", "nopass", "~*", "+@all", "-scan"
    )
    url = f"redis://operator:x@127.0.0.1:{server.port}"
    said = cli("pause", "braod", "--url", url)[2]
    assert said == "this server had no board 'braod': `jobboard boards` lists those that it has\n"


def test_a_worker_is_made_quiet(cli, jobs) -> None:
    jobs.worker_register("web-1-1")
    assert cli("quiet", "board", "web-1-1")[0] == 0
    assert [row["quiet"] for row in jobs.worker_list()] == [1]
    assert cli("unquiet", "board", "web-1-1")[0] == 0
    assert [row["quiet"] for row in jobs.worker_list()] == [0]
    status, _, errors = cli("quiet", "board", "web-1-2")
    assert status == 1 and "no worker 'web-1-2'; did you mean 'web-1-1'?" in errors
