"""Hostile text in jobs: to a terminal and to a log it is text, in JSON it is what it was."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import re
from collections.abc import Callable

import jobboard
import pytest
from harness import wait_until
from jobboard import cli
from jobboard.escaping import escaped, escaped_json, escaped_lines

EVIL = "a\x1b]52;c;ZXZpbA==\x07\x1b[2J\nb\rc\x00\x7f\x9b31m\u202ed\u2066e\u2028f"
UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def test_what_is_not_seen_is_named() -> None:
    assert escaped("\x1b[2J\n\t\x7f\x9b\u202e\ud800é\\ ") == "\\x1b[2J\\n\\t\\x7f\\x9b\\u202e\\ud800é\\ "
    assert escaped_lines("a\n\tb\x1b") == "a\n\tb\\x1b"
    assert escaped(escaped(EVIL)) == escaped(EVIL) and not UNSEEN.search(escaped(EVIL))


def test_json_is_exact() -> None:
    for text in (EVIL, "\ud800", "plain é"):
        written = escaped_json(json.dumps({text: text}, ensure_ascii=False))
        assert json.loads(written) == {text: text} and not UNSEEN.search(written)


@pytest.fixture
def printed(server, monkeypatch, capsys) -> Callable[..., str]:
    """What `jobboard …` writes, errors too."""
    monkeypatch.setenv("JOBBOARD_URL", f"redis://127.0.0.1:{server.port}")

    def run(*words: str) -> str:
        cli.main(words)
        return "".join(capsys.readouterr())

    return run


def hostile(jobs: jobboard.Board) -> None:
    """A board with a running and a failed job all of whose texts are hostile."""
    for id in (f"{EVIL}1", f"{EVIL}2"):
        jobs.post(EVIL, id=id, name=EVIL, queue=EVIL, meta={EVIL: EVIL}, tags=[EVIL], user=EVIL, group=EVIL)
    [failing, running] = jobs.claim(EVIL, queues=[EVIL], count=2)
    jobs.fail(EVIL, failing.id, kind="Evil", message=EVIL, token=failing.token, noretry=True)
    jobs.heartbeat(EVIL, running.id, token=running.token, stage=EVIL, log=EVIL)


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (["list", "board"], 3),
        (["list", "board", "--fields", "id,payload,meta,tags,user,group,kind,message,stage"], 3),
        (["get", "board", f"{EVIL}1"], None),
        (["history", "board", f"{EVIL}1"], None),
        (["explain", "board", f"{EVIL}2"], None),
        (["queues", "board"], 2),
        (["top", "board", "--once"], None),
        (["cancel", "board", f"{EVIL}2", "--force"], 1),
        (["get", "board", f"{EVIL}nobody"], 1),
        (["list", "board", "--url", f"redis://{EVIL}"], 1),
    ],
    ids=lambda words: words[0] if isinstance(words, list) else "",
)
def test_the_command_line_prints_text(jobs, printed, words, lines) -> None:
    hostile(jobs)
    out = printed(*words)
    assert "]52;c" in out or "list" in words and "--url" in words
    assert not UNSEEN.search(out), ascii(out)
    assert lines is None or len(out.splitlines()) == lines


def test_its_json_is_exact(jobs, printed) -> None:
    hostile(jobs)
    out = printed("get", "board", f"{EVIL}1", "--json")
    assert not UNSEEN.search(out)
    found = json.loads(out)
    assert (found["payload"], found["message"], found["meta"]) == (EVIL, EVIL, {EVIL: EVIL})


@contextlib.contextmanager
def logged() -> io.StringIO:
    """What a handler of the root writes, one line a record."""
    log, stream = logging.getLogger("jobboard.worker"), io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("| %(message)s"))
    log.addHandler(handler)
    level, log.level = log.level, logging.DEBUG
    try:
        yield stream
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


def test_the_log_of_a_worker_has_text(jobs, work) -> None:
    @jobs.handler("evil")
    def evil(job: jobboard.Context, payload: object) -> None:
        raise ValueError(EVIL)

    with logged() as stream:
        worker = work(jobs, mode="threads")
        jobs.post(1, id=EVIL, name="evil", retries=0)
        wait_until(lambda: jobs.count(state="failed") == 1)
        worker.stop()
    assert "]52;c" in stream.getvalue()
    assert not UNSEEN.search(stream.getvalue())
    assert not re.search(r"^[bc]", stream.getvalue(), re.M), "a line that a job has made"


def test_a_traceback_in_the_log_keeps_its_lines_alone() -> None:
    with logged() as stream:
        try:
            raise ValueError(EVIL)
        except ValueError:
            logging.getLogger("jobboard.worker").warning(
                "%(id)s after %(s)d", {"id": EVIL, "s": 2}, exc_info=True
            )
    assert "Traceback" in stream.getvalue() and " after 2\n" in stream.getvalue()
    assert not UNSEEN.search(stream.getvalue())
