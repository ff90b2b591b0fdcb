"""Every action of the console, as its source has them: none is done without the secret of a session, and none
that changes a board on a console that only reads.

A new action is found by itself; it has to be given an example here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from harness import Board, Server
from harness.server import ROOT

from .process import Answer, Console
from .test_security import csrf, user

SOURCES = ROOT / "console" / "src"


def forms() -> set[str]:
    """The paths that take a form, by the routes of the program."""
    found = re.findall(r'\.route\("([^"]+)", (?:get\([^)]*\)\.)?post\(', (SOURCES / "main.rs").read_text())
    assert len(found) == (SOURCES / "main.rs").read_text().count("post(")
    return set(found)


def verbs() -> set[str]:
    """The verbs of /act: what stands before the arrows where the program reads them."""
    text = (SOURCES / "actions" / "mod.rs").read_text()
    [block] = re.findall(r'match query\.text\("verb"\).*?There is no such action', text, re.S)
    arms = re.findall(r"^ +(?:verb @ \()?((?:\"[a-z-]+\"(?: \| )?)+)\)? =>", block, re.M)
    return {verb for arm in arms for verb in re.findall(r'"([a-z-]+)"', arm)}


ACTS: dict[str, tuple[dict, str]] = {
    "now": ({"id": "later"}, "No job is chosen"),
    "requeue": ({"id": "failed"}, "No job is chosen"),
    "return": ({"id": "dead"}, "No job is chosen"),
    "cancel": ({"id": "ready"}, "No job is chosen"),
    "release": ({"id": "claimed"}, "No job is chosen"),
    "delete": ({"id": "failed"}, "No job is chosen"),
    "update": ({"id": "ready", "priority": "5"}, "No job is chosen"),
    "pause": ({}, ""),
    "resume": ({"queue": "stopped"}, ""),
    "settings": ({"s.lease": "5000"}, "No setting has another value"),
    "signal": ({"id": "gate", "signal": "approved", "value": "true"}, "No signal is named"),
    "schedule-pause": ({"schedule": "s"}, "No schedule is named"),
    "schedule-resume": ({"schedule": "stopped"}, "No schedule is named"),
    "schedule-run": ({"schedule": "s"}, "No schedule is named"),
    "schedule-del": ({"schedule": "s"}, "No schedule is named"),
    "worker-quiet": ({"worker": "busy"}, "No worker is named"),
    "worker-resume": ({"worker": "silent"}, "No worker is named"),
    "aside": ({"kind": "IOError", "alike": "m"}, "No failure is named"),
    "aside-end": ({"kind": "IOError", "alike": "m"}, "No failure is named"),
}
"""Of each verb what its address names, and what is said when it names nothing; "" where it needs nothing."""

OWN = {"aside", "aside-end"}
"""Those that the console does itself: the board stays as it is."""

FORMS: dict[str, tuple[dict, dict, str]] = {
    "/post": ({}, {"payload": "x", "sure": "1"}, ""),
    "/post?edit": ({"from": "ready", "edit": "1"}, {"payload": "other", "sure": "1"}, ""),
    "/schedule/edit": (
        {},
        {"id": "new", "every": "1h", "payload": "x", "sure": "1"},
        "Give the schedule an id",
    ),
}
"""Of the other forms that change a board their address, what they send, and the refusal of an empty one."""

SESSION = {"/sign-out", "/stop"}
"""Forms about the session alone, which a console that only reads has as well."""

OPEN = {"/sign-in"}
"""Forms of somebody without a session: other sites cannot send them (test_security)."""


def test_every_action_has_an_example():
    assert verbs() == set(ACTS)
    assert {path.split("?")[0] for path in FORMS} | SESSION | OPEN | {"/act"} == forms()


@pytest.fixture
def full(board: Board) -> Board:
    """A board with a job in each state that an action is for."""
    board.set(queue="mails", dead_queue="unsent")
    board.post(id="ready")
    board.post(id="later", delay=3_600_000)
    board.post(id="claimed")
    board.claim_one("w1", id="claimed")
    for id, queue in [("failed", "default"), ("dead", "mails")]:
        board.post(id=id, queue=queue)
        token = board.claim_one("w1", id=id)["token"]
        board.fail("w1", id, "IOError", "m", token=token, noretry=True)
    board.call("POST", "x", "ID", "gate", "AWAIT", 1, "approved")
    board.pause(queue="stopped")
    for worker in ["busy", "silent"]:
        board.client.execute_command("JOB.WORKER", "REGISTER", board.key, worker)
    board.client.execute_command("JOB.WORKER", "QUIET", board.key, "silent")
    for schedule in ["s", "stopped"]:
        board.client.execute_command("JOB.SCHEDULE", "SET", board.key, schedule, "x", "EVERY", 3_600_000)
    board.client.execute_command("JOB.SCHEDULE", "PAUSE", board.key, "stopped")
    return board


class Visitor:
    """Somebody who is signed in, and whose forms have the secret of the session."""

    def __init__(self, console: Console) -> None:
        self.console = console
        signed = console.ask("/sign-in", "POST", {"user": "ann", "password": "secret"})
        assert signed.status == 303
        self.cookie = signed.cookie
        self.secret = csrf(console, "/", self.cookie)

    def look(self, path: str, board: Board) -> str:
        return self.console.ask(self.console.at(path, b=board.key), headers={"Cookie": self.cookie}).body

    def send(self, path: str, query: dict, form: dict, secret: str | None) -> Answer:
        form = form if secret is None else {**form, "csrf": secret}
        return self.console.ask(self.console.at(path, **query), "POST", form, {"Cookie": self.cookie})


@pytest.fixture
def signed_in(store: Server) -> Iterator[None]:
    with user(store, "ann", "+@all", "~*"):
        yield


def cases() -> list[tuple[str, dict, dict, str]]:
    acts = [("/act", {"verb": verb, **query}, {}, empty) for verb, (query, empty) in ACTS.items()]
    unknown = [("/act", {"verb": verb}, {}, "") for verb in sorted(verbs() - set(ACTS))]
    return acts + unknown + [(path.split("?")[0], *rest) for path, rest in FORMS.items()]


@pytest.mark.parametrize(
    ("path", "query", "form", "empty"), cases(), ids=lambda value: str(value) if value else "-"
)
def test_every_action_is_guarded(
    reading: Console,
    writing: Console,
    signed_in: None,
    full: Board,
    path: str,
    query: dict,
    form: dict,
    empty: str,
):
    """Refused without the secret and without --write; done with both; with neither a job nor a name a refusal
    that says what is missing."""
    query = {"b": full.key, **query}
    before = full.digest()
    reader, writer, other = Visitor(reading), Visitor(writing), Visitor(writing)
    for secret in [None, "", "0" * 64, other.secret, writer.secret[:-1]]:
        assert writer.send(path, query, form, secret).status == 403, secret
    assert writing.ask(writing.at(path, **query), "POST", {**form, "csrf": writer.secret}).status == 403
    refused = reader.send(path, query, form, reader.secret)
    assert refused.status == 403 and "read-only" in refused.body
    assert full.digest() == before
    if empty:
        kept = {field: value for field, value in query.items() if field in ("b", "verb")}
        answer = writer.send(path, kept, {}, writer.secret)
        assert answer.status == 400 and empty in answer.body, answer
        assert full.digest() == before
    answer = writer.send(path, query, form, writer.secret)
    assert answer.status == 303, answer
    if query.get("verb") in OWN:
        expected = "Bring back" if query["verb"] == "aside" else "Set aside"
        assert expected in writer.look("/failures", full)
        assert "the failure IOError: m" in writer.look("/audit", full)
        assert full.digest() == before
    else:
        assert full.digest() != before


def test_a_failure_is_set_aside_by_who_may_requeue_it(writing: Console, store: Server, full: Board):
    query = {"b": full.key, "verb": "aside", "kind": "IOError", "alike": "m"}
    with user(store, "ann", "+@all", "-job.requeue", "~*"):
        visitor = Visitor(writing)
        assert visitor.send("/act", query, {}, visitor.secret).status == 403
        page = visitor.look("/failures", full)
        assert "Set aside" in page and "Bring back" not in page


@pytest.mark.parametrize("path", sorted(SESSION))
def test_every_form_about_a_session_is_guarded(
    reading: Console, writing: Console, signed_in: None, full: Board, path: str
):
    before = full.digest()
    for console in [reading, writing]:
        visitor, other = Visitor(console), Visitor(console)
        for secret in [None, "", other.secret]:
            assert visitor.send(path, {"b": full.key, "run": 1}, {}, secret).status == 403
        assert console.ask("/", headers={"Cookie": visitor.cookie}).status == 200
        answer = visitor.send(path, {"b": full.key, "run": 1}, {}, visitor.secret)
        # There is nothing to stop.
        assert answer.status == (303 if path == "/sign-out" else 404)
    assert full.digest() == before
