"""CONSUME … NEXT: a job goes on in the next queue under the same id."""

from __future__ import annotations

import lives
import pytest
from expect import check_consistent, drain, refused
from lives import LONG
from waiters import Waiter


def test_a_job_goes_through_its_queues_and_completes_at_the_end(clocked_board, clock):
    clocked_board.post("1", id_="j", queue="first", meta={"to": "ann"}, priority=3)
    for n, (queue, then) in enumerate([("first", "second"), ("second", "third")]):
        job = clocked_board.claim_one(f"w{n}", queues=[queue])
        assert (job["payload"], job["attempt"]) == (str(n + 1), 1)
        state = clocked_board.consume(f"w{n}", "j", token=job["token"], payload=str(n + 2), next=then)
        assert state == "ready"
        clock.advance(10)
    job = clocked_board.get("j")
    assert (job["queue"], job["payload"], job["meta"], job["priority"]) == ("third", "3", {"to": "ann"}, 3)
    token = clocked_board.claim_one("w2", queues=["third"])["token"]
    assert clocked_board.consume("w2", "j", token=token) == "complete"
    assert clocked_board.get("j") is None
    check_consistent(clocked_board)


def test_attempts_failures_and_lapses_begin_afresh(clocked_board, clock):
    lives.ready(clocked_board, retries=2, lapses=1)
    token = lives.claim(clocked_board, lease=1000)
    clock.advance(1000)
    token = lives.claim(clocked_board)
    clocked_board.fail("w1", "j", token=token, retry=0)
    token = lives.claim(clocked_board)
    clocked_board.heartbeat("w1", "j", token=token, progress=50, stage="half")
    clocked_board.consume("w1", "j", token=token, next="q")
    job = clocked_board.get("j")
    assert (job["attempt"], job["left"], job["state"]) == (0, 2, "ready")
    assert not {"kind", "message", "progress", "stage"} & set(job)
    assert clocked_board.count(lapsed=True) == 0
    assert clocked_board.events("j")[-1] == "advanced"
    assert clocked_board.history("j")[-1]["queue"] == "q"


def test_it_may_go_on_under_another_name(clocked_board):
    clocked_board.post(id_="j", name="resize", user="ann", maxlive=1)
    token = lives.claim(clocked_board)
    clocked_board.consume("w1", "j", token=token, next="q", name="publish")
    assert clocked_board.get("j")["name"] == "publish"
    assert [clocked_board.count(name=name) for name in ("resize", "publish")] == [0, 1]
    assert clocked_board.post(name="resize", user="ann", maxlive=1)
    token = lives.claim(clocked_board)
    clocked_board.consume("w1", "j", token=token, next="q")
    assert clocked_board.get("j")["name"] == "publish"
    check_consistent(clocked_board)


def test_it_may_wait_for_a_time_or_for_other_jobs(clocked_board, clock):
    token = lives.claimed(clocked_board)
    assert clocked_board.consume("w1", "j", token=token, next="q", delay=500, priority=7) == "scheduled"
    assert clocked_board.get("j")["priority"] == 7
    clock.advance(500)
    token = lives.claim(clocked_board)
    lives.ready(clocked_board, "other")
    with refused("CYCLE a job would wait for itself", clocked_board):
        clocked_board.consume("w1", "j", token=token, next="q", after=["j"])
    with refused("NOJOB no such job nobody", clocked_board):
        clocked_board.call("CONSUME", "w1", "j", "NEXT", "q", "AFTER", 1, "nobody", "STRICT")
    assert clocked_board.consume("w1", "j", token=token, next="q", after=["other"]) == "blocked"
    clocked_board.consume("w1", "other", token=lives.claim(clocked_board, "other"))
    assert clocked_board.state("j") == "ready"


def test_what_it_is_to_wait_for_may_have_failed(clocked_board):
    lives.failed(clocked_board, "other")
    token = lives.claimed(clocked_board)
    ask = ("CONSUME", "w1", "j", "TOKEN", token, "NEXT", "q", "AFTER", 1, "other", "ONFAILURE", "cancel")
    assert clocked_board.call(*ask) == "cancelled"
    assert clocked_board.get("j")["reason"] == "other failed"


def test_those_who_wait_for_it_wait_on(clocked_board):
    token = lives.claimed(clocked_board)
    clocked_board.post(id_="then", after=["j"])
    clocked_board.consume("w1", "j", token=token, next="q")
    assert clocked_board.state("then") == "blocked"
    clocked_board.consume("w1", "j", token=lives.claim(clocked_board))
    assert clocked_board.state("then") == "ready"


def test_a_repetition_changes_nothing_and_a_plain_consume_is_refused(clocked_board):
    token = lives.claimed(clocked_board)
    assert clocked_board.consume("w1", "j", token=token, next="q") == "ready"
    digest = clocked_board.digest()
    assert clocked_board.consume("w1", "j", token=token, next="q") == "ready"
    assert clocked_board.digest() == digest
    with refused("NOTCLAIMED ready", clocked_board):
        clocked_board.consume("w1", "j", token=token)
    lives.claim(clocked_board, "j", "w2")
    assert clocked_board.consume("w1", "j", token=token, next="q") == "claimed"
    with refused("NOTOWNER w2", clocked_board):
        clocked_board.consume("w1", "j", token=token)


def test_a_cancel_request_refuses_it(clocked_board):
    token = lives.cancel_requested(clocked_board)
    with refused("CANCELLED cancel was requested", clocked_board):
        clocked_board.consume("w1", "j", token=token, next="q")


@pytest.mark.parametrize("words", [("RESULT", "r"), ("RETAIN", "1"), ("FORCE",)])
def test_next_excludes_what_belongs_to_an_end(board, words):
    lives.claimed(board)
    with refused("ERR NEXT excludes RESULT, RETAIN and FORCE", board):
        board.call("CONSUME", "w1", "j", "NEXT", "q", *words)
    with refused("ERR NEXT excludes RESULT, RETAIN and FORCE", board):
        board.call("MCONSUME", "w1", "ALL", "NEXT", "q", *words)


@pytest.mark.parametrize("words", [("NAME", "n"), ("DELAY", "1"), ("PRIORITY", "1"), ("AFTER", "1", "x")])
def test_its_options_need_next(board, words):
    lives.claimed(board)
    with refused("ERR NAME, DELAY, PRIORITY, AFTER, AWAIT, NEXT-COST and NEXT-COSTS need NEXT", board):
        board.call("CONSUME", "w1", "j", *words)


def test_many_go_on_at_once(clocked_board):
    clocked_board.mpost(list("abc"), ids=list("abc"))
    tokens = [job["token"] for job in clocked_board.claim("w1", count=2, lease=LONG)]
    reply = clocked_board.mconsume("w1", ["a", "b", "c"], tokens=[*tokens, 7], next="q", delay=100)
    assert reply == ["scheduled", "scheduled", ["NOTCLAIMED", "ready"]]
    clocked_board.claim("w1")
    assert clocked_board.mconsume("w1", "ALL", next="q", name="third") == [["c", "ready"]]
    assert [job.get("name") for job in clocked_board.mget("abc")] == [None, None, "third"]
    check_consistent(clocked_board)


def test_a_worker_that_waits_at_the_next_queue_is_woken(server):
    board = server.board()
    token = lives.claimed(board)
    waiter = Waiter(server, "w2", queues=["q"])
    assert board.consume("w1", "j", token=token, next="q") == "ready"
    assert waiter.job() == "j"
    assert board.consume("w1", "j", token=token, next="q") == "claimed"
    waiter.close()


def test_a_replica_and_a_restart_know_it(fresh_server):
    primary = fresh_server("clock", "manual")
    replica = fresh_server("clock", "manual", replicaof=primary)
    board = primary.board()
    lives.ready(board, "other")
    token = lives.claimed(board)
    board.consume("w1", "j", token=token, next="q", after=["other"])
    replica.wait_synced(primary)
    assert replica.board().digest() == board.digest() is not None
    board.client.execute_command("DEBUG", "RELOAD")
    assert board.consume("w1", "j", token=token, next="q", after=["other"]) == "blocked"
    assert replica.board().digest() == board.digest()
    assert drain(board) == ["other"]
