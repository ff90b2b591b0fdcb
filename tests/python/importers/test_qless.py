"""`jobboard import qless`, on jobs that qless's Lua has made."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import redis
from expect import ids
from harness import Server

LUA = (
    Path(__file__).resolve().parents[3] / "target" / "bench" / "qless" / "qless" / "qless-core" / "qless.lua"
)
"""`scripts/peers qless` puts it there."""

MENDED = "local table = setmetatable({}, {__index = table})\n"
"""It extends a table of the server, which no server allows any more: this gives it one of its own."""


class Theirs:
    """Calls of qless's Lua, as its clients make them."""

    def __init__(self, client: redis.Redis) -> None:
        self.script = client.register_script(MENDED + LUA.read_text())

    def __call__(self, command: str, *words: Any) -> Any:
        found = self.script(args=[command, repr(time.time()), *words])
        return json.loads(found) if isinstance(found, bytes) and found[:1] in b"[{" else found

    def put(self, queue: str, jid: str, data: Any = None, delay: float = 0, **options: Any) -> None:
        words: list[Any] = []
        for name, value in options.items():
            words += [name, json.dumps(value) if isinstance(value, list) else value]
        self("put", queue, jid, "mail.Send", json.dumps(data or {}), delay, *words)

    def pop(self, queue: str) -> dict:
        [job] = self("pop", queue, "their-worker", 1)
        return job


@pytest.fixture
def theirs(source: redis.Redis) -> Theirs:
    return Theirs(source)


def left(source: redis.Redis) -> set[str]:
    """Their keys, without statistics, names of queues and workers, and counts of tags that are zero."""
    kept = {key.decode() for key in source.keys("ql:*")}
    kept -= {key for key in kept if key.startswith(("ql:s:", "ql:w"))} | {"ql:queues"}
    if not any(score for _, score in source.zrange("ql:tags", 0, -1, withscores=True)):
        kept -= {"ql:tags"}
    return kept


def test_waiting_jobs_come_in_their_order_with_their_attributes(
    server: Server, source: redis.Redis, theirs: Theirs, imported
):
    theirs.put("mails", "low", {"to": "ann"}, priority=-3)
    theirs.put("mails", "first", {"to": "ann"}, priority=5, retries=3, tags=["red", "night"])
    theirs.put("mails", "second", {"to": "bob"}, priority=5, tags=["red"])
    theirs("track", "track", "second")
    theirs.put("texts", "text")
    order = [job["jid"] for job in theirs("peek", "mails", 9)]
    assert imported("qless")[0] == 0
    board = server.board()
    assert ids(board.list(queue="mails")[1]) == order == ["first", "second", "low"]
    job = board.get("first")
    assert (job["name"], json.loads(job["payload"]), job["priority"]) == ("mail.Send", {"to": "ann"}, 5)
    assert (job["tags"], job["left"]) == (["red", "night"], 3)
    assert job["meta"]["source"] == "qless"
    assert abs(int(job["meta"]["created"]) - time.time() * 1000) < 60_000
    assert board.get("second")["tracked"] == 1
    assert board.get("text")["queue"] == "texts"
    assert left(source) == set()


def test_delayed_jobs_keep_their_time(server: Server, theirs: Theirs, imported):
    before = time.time()
    theirs.put("mails", "later", delay=3600)
    after = time.time()
    assert imported("qless")[0] == 0
    job = server.board().get("later")
    assert job["state"] == "scheduled"
    assert int((before + 3600) * 1000) <= job["due"] <= (after + 3600) * 1000 + 1


def test_failed_jobs_come_with_their_failure(server: Server, source: redis.Redis, theirs: Theirs, imported):
    for number in range(3):
        theirs.put("mails" if number else "texts", f"j{number}", tags=["t"])
    for queue in ("texts", "mails", "mails"):
        job = theirs.pop(queue)
        theirs("fail", job["jid"], "their-worker", "SMTPError", f"no {job['jid']}", "{}")
    assert imported("qless", "board", "mails")[0] == 0
    board = server.board()
    assert board.kinds() == {"SMTPError": 2}
    assert (board.get("j1")["state"], board.get("j1")["message"]) == ("failed", "no j1")
    assert int(board.get("j1")["meta"]["failed"]) > 0
    assert source.lrange("ql:f:SMTPError", 0, -1) == [b"j0"], "it is of another queue"
    assert imported("qless")[0] == 0
    assert board.kinds() == {"SMTPError": 3}
    assert left(source) == set()


def test_a_job_that_lost_its_lock_has_the_retries_that_are_left(server: Server, theirs: Theirs, imported):
    theirs.put("mails", "j", retries=4)
    theirs.pop("mails")
    theirs("retry", "j", "mails", "their-worker", 0)
    assert imported("qless")[0] == 0
    assert server.board().get("j")["left"] == 3


def test_running_jobs_are_moved_when_it_is_asked_for(
    server: Server, source: redis.Redis, theirs: Theirs, imported
):
    theirs.put("mails", "begun")
    theirs.pop("mails")
    code, output = imported("qless")
    assert (code, server.board().count()) == (0, 0)
    assert "not asked for: 1 running of mails" in output
    assert imported("qless", "board", "--running")[0] == 0
    assert server.board().state("begun") == "ready"
    assert left(source) == set()


def test_dependent_jobs_wait_for_those_that_they_waited_for(
    server: Server, source: redis.Redis, theirs: Theirs, imported
):
    theirs.put("mails", "done")
    theirs.put("mails", "first")
    theirs.put("mails", "second", depends=["done", "first"])
    theirs.put("texts", "third", depends=["second"])
    job = theirs.pop("mails")
    theirs("complete", job["jid"], "their-worker", "mails", "{}")
    code, output = imported("qless", "board", "texts")
    assert code == 1
    assert "stays: third: waits for second, which is not on the board" in output
    assert imported("qless")[0] == 0
    board = server.board()
    assert (board.get("second")["after"], board.get("third")["after"]) == (["first"], ["second"])
    board.claim_one("w1", queues=["mails"])
    board.consume("w1", "first")
    assert (board.state("second"), board.state("third")) == ("ready", "blocked")
    assert left(source) - {"ql:j:done", "ql:j:done-history", "ql:completed"} == set()


def test_recurring_jobs_become_schedules(server: Server, source: redis.Redis, theirs: Theirs, imported):
    more = ("priority", 7, "tags", json.dumps(["night"]), "retries", 2)
    before = time.time()
    theirs("recur", "reports", "daily", "report.Make", '{"a": 1}', "interval", 86400, 3600, *more)
    after = time.time()
    assert imported("qless")[0] == 0
    schedule = server.client().execute_command("JOB.SCHEDULE", "GET", "board", "daily")
    assert (schedule["every"], schedule["queue"], schedule["name"]) == (86_400_000, "reports", "report.Make")
    assert (schedule["priority"], schedule["tags"], schedule["retries"]) == (7, ["night"], 2)
    assert int((before + 3600) * 1000) <= schedule["next"] <= (after + 3600) * 1000 + 1
    assert left(source) == set()
    theirs("recur", "reports", "daily", "report.Make", "{}", "interval", 60, 0)
    code, output = imported("qless")
    assert code == 1
    assert "EXISTS daily" in output, "a schedule of the board is not overwritten"


def test_a_pause_and_a_concurrency_are_set_on_the_board(
    server: Server, source: redis.Redis, theirs: Theirs, imported
):
    theirs.put("mails", "a")
    theirs.put("mails", "b")
    theirs("pause", "mails")
    theirs("config.set", "mails-max-concurrency", 1)
    code, output = imported("qless")
    assert code == 0 and "set: queue mails: paused, concurrency 1\n" in output
    board = server.board()
    assert board.claim("w1", queues=["mails"]) == []
    board.resume(queue="mails")
    assert len(board.claim("w1", queues=["mails"], count=2)) == 1
