"""The settings `grace` and `cancel-grace`: what a worker keeps, and for how long."""

from __future__ import annotations

import lives
from expect import ids, refused
from harness import from_pairs, wait_until
from lives import LONG
from waiters import Waiter


def test_the_worker_keeps_its_job_through_the_grace(clocked_board, clock):
    board = clocked_board
    board.set(grace=500)
    board.post(id="j")
    [job] = board.claim("w1", lease=1000)
    assert job["deadline"] == clock.now() + 1000
    clock.advance(1499)
    assert board.get("j")["deadline"] == job["deadline"]
    assert board.claim("w2") == []
    with refused("CLAIMED w1", board):
        board.claim("w2", id="j")
    clock.advance(1)
    assert board.events("j")[-1] == "lapsed"
    assert ids(board.claim("w2")) == ["j"]


def test_a_heartbeat_in_the_grace_renews(clocked_board, clock):
    board = clocked_board
    board.set(grace=500, queue="default")
    token = lives.claimed(board, lease=1000)
    clock.advance(1400)
    assert board.heartbeat("w1", "j", token=token) == {"deadline": clock.now() + 1000, "cancel": 0}
    clock.advance(1400)
    assert board.consume("w1", "j", token=token) == "complete"


def test_the_grace_is_fixed_by_the_claim(clocked_board, clock):
    board = clocked_board
    board.set(grace=500)
    lives.claimed(board, lease=1000)
    board.set(grace=0)
    clock.advance(1200)
    assert board.state("j") == "claimed"
    clock.advance(300)
    lives.claim(board, "j", lease=1000)
    clock.advance(1000)
    assert board.state("j") == "ready"


def test_the_grace_of_the_module(clocked):
    board = clocked.board()
    with clocked.configured(**{"jobboard.grace": 700, "jobboard.cancel-grace": 50}):
        lives.claimed(board, "a", lease=1000)
        lives.cancel_requested(board, "b")
        clocked.clock.advance(1699)
        assert (board.state("a"), board.state("b")) == ("claimed", "cancelled")
        clocked.clock.advance(1)
        assert board.state("a") == "ready"


def test_a_waiter_is_woken_when_the_grace_has_passed(server):
    board = server.board()
    board.set(grace=800)
    lives.claimed(board, lease=20)
    waiter = Waiter(server, "w2", await_block=False)
    assert waiter.job() == "j"
    at: dict = {}
    for entry in board.history("j"):
        at.setdefault(entry["event"], entry["at"])
    assert at["lapsed"] - at["claimed"] >= 820


def test_a_slot_stays_taken_during_the_grace(clocked_board, clock):
    board = clocked_board
    board.set(grace=500, concurrency=1)
    lives.claimed(board, "a", lease=1000)
    board.post(id="b")
    clock.advance(1200)
    assert board.claim("w2", count=2) == []
    clock.advance(300)
    assert ids(board.claim("w2", count=2)) == ["a"]


def test_a_worker_that_does_not_heed_a_cancel_loses_its_job(clocked_board, clock):
    board = clocked_board
    board.set(cancel_grace=300)
    token = lives.cancel_requested(board)
    end = clock.now() + 300
    clock.advance(200)
    assert board.heartbeat("w1", "j", token=token) == {"deadline": end, "cancel": 1}
    clock.advance(99)
    assert board.state("j") == "claimed"
    clock.advance(1)
    assert board.state("j") == "cancelled"
    with refused("CANCELLED the job was cancelled", board):
        board.consume("w1", "j", token=token, force=True)


def test_a_waiter_is_woken_when_a_cancel_frees_a_slot(server):
    board = server.board()
    board.set(cancel_grace=50, concurrency=1)
    lives.claimed(board, "a")
    board.post(id="b")
    waiter = Waiter(server, "w2")
    assert board.cancel("a") == ["requested"]
    assert waiter.job() == "b"
    assert board.state("a") == "cancelled"


def test_graces_outlive_restart_reload_and_replication(fresh_server):
    primary = fresh_server("clock", "manual", appendonly=True)
    board = primary.board()
    board.set(grace=LONG, cancel_grace=LONG, queue="mail")
    lives.claimed(board, "a", lease=1000, queue="mail")
    lives.cancel_requested(board, "b", queue="mail")
    before = board.digest()
    board.client.execute_command("DEBUG", "RELOAD")
    assert board.digest() == before
    now = primary.clock.now()
    primary.restart()
    board = primary.board()
    assert board.digest() == before
    replica = fresh_server("clock", "manual", replicaof=primary)
    primary.clock.set(now + LONG)
    assert (board.state("a"), board.state("b")) == ("claimed", "cancelled")
    primary.clock.advance(1000)
    assert board.state("a") == "ready"
    replica.wait_synced(primary)
    assert replica.board().digest() == board.digest()


def test_a_record_and_its_history_say_that_the_grace_has_begun(clocked_board, clock):
    board = clocked_board
    board.set(grace=500)
    lives.claimed(board, lease=1000)
    end = clock.now() + 1500
    assert (board.get("j")["deadline"], board.get("j")["until"]) == (end - 500, end)
    clock.advance(1000)
    assert board.history("j")[-1] == {"at": clock.now(), "event": "grace", "worker": "w1"}
    reason = from_pairs(from_pairs(board.call("EXPLAIN", "j"))["reasons"][0])
    assert (reason["grace"], reason["until"]) == (1, end)
    assert "the lease of w1 has ended" in reason["text"]
    board.heartbeat("w1", "j")
    assert from_pairs(from_pairs(board.call("EXPLAIN", "j"))["reasons"][0])["grace"] == 0
    board.consume("w1", "j", retain=LONG)
    assert "until" not in board.get("j")


def test_a_change_of_a_job_in_its_grace_announces_nothing_again(clocked_board, clock):
    board = clocked_board
    board.set(grace=500)
    lives.claimed(board, lease=1000)
    clock.advance(1100)
    board.update("j", priority=3, queue="other")
    clock.advance(399)
    assert (board.state("j"), board.events("j").count("grace")) == ("claimed", 1)
    clock.advance(1)
    assert board.events("j")[-1] == "lapsed"


# lapse-delay


def test_a_job_that_kills_its_workers_does_not_come_first_each_time(clocked_board, clock):
    board = clocked_board
    board.set(queue="default", lapse_delay=1000, jitter=0, backoff_max=3000)
    lives.ready(board, "poison", lapses=9)
    lives.ready(board, "other")
    for wait in (1000, 2000, 3000, 3000):
        board.claim("w1", id="poison", lease=10)
        clock.advance(10)
        job = board.get("poison")
        assert (job["state"], job["due"]) == ("scheduled", clock.now() + wait)
        [reason] = map(from_pairs, from_pairs(board.call("EXPLAIN", "poison"))["reasons"])
        assert (reason["reason"], reason["worker"], reason["lapses"]) == ("lapse", "w1", job["lapses"])
        assert ids(board.claim("w2")) == ["other"]
        board.abandon("w2", "other")
        clock.advance(wait)
    assert ids(board.claim("w2", count=2)) == ["poison", "other"]


def test_the_wait_after_a_lapse_ends_by_itself_and_the_late_worker_may_come_back(server):
    board = server.board()
    board.set(lapse_delay=LONG)
    token = lives.claimed(board, "a", lease=20)
    wait_until(lambda: board.state("a") == "scheduled", what="the lapse")
    assert board.heartbeat("w1", "a", token=token, lease=LONG)["cancel"] == 0
    assert board.state("a") == "claimed"
    board.set(lapse_delay=20)
    lives.claimed(board, "b", lease=20)
    waiter = Waiter(server, "w2", await_block=False)
    assert waiter.job() == "b"
