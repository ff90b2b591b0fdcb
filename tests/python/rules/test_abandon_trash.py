"""JOB.ABANDON: a worker gives a job back. JOB.TRASH: a worker puts it aside for good."""

from __future__ import annotations

import lives
import pytest
from expect import refused
from harness import EPOCH


def test_an_abandoned_job_is_ready_again(clocked_board):
    token = lives.claimed(clocked_board)
    assert clocked_board.abandon("w1", "j", token=token) == "OK"
    job = clocked_board.get("j")
    assert job["state"] == "ready"
    for field in ("worker", "deadline"):
        assert field not in job
    assert clocked_board.claim_one("w2")["token"] > token


def test_giving_back_costs_no_retry_and_no_lapse(clocked_board):
    lives.ready(clocked_board, retries=0, lapses=0)
    for _ in range(5):
        lives.claim(clocked_board)
        clocked_board.abandon("w1", "j")
    assert clocked_board.state("j") == "ready"
    assert clocked_board.get("j")["left"] == 0


def test_a_job_may_be_given_back_for_later(clocked_board, clock):
    lives.claimed(clocked_board)
    clocked_board.abandon("w1", "j", delay=100)
    job = clocked_board.get("j")
    assert (job["state"], job["due"]) == ("scheduled", EPOCH + 100)
    clock.advance(100)
    assert clocked_board.claim_one("w2")["id"] == "j"


def test_a_reason_of_giving_back_is_told(clocked_board):
    lives.claimed(clocked_board)
    clocked_board.abandon("w1", "j", reason="going home")
    last = clocked_board.history("j")[-1]
    assert (last["event"], last["worker"], last["message"]) == ("abandoned", "w1", "going home")
    assert clocked_board.get("j")["reason"] == "going home"


def test_a_trashed_job_is_put_aside(clocked_board, clock):
    token = lives.claimed(clocked_board)
    clock.advance(3)
    assert clocked_board.trash("w1", "j", token=token, reason="rubbish") == "OK"
    job = clocked_board.get("j")
    assert (job["state"], job["reason"], job["ended"]) == ("trashed", "rubbish", EPOCH + 3)
    assert clocked_board.claim("w2") == []
    last = clocked_board.history("j")[-1]
    assert (last["event"], last["worker"], last["message"]) == ("trashed", "w1", "rubbish")


def test_a_trashed_job_is_kept_for_30_days(clocked_board, clock):
    lives.trashed(clocked_board)
    clock.advance(30 * 86_400_000 - 1)
    assert clocked_board.state("j") == "trashed"
    clock.advance(1)
    assert clocked_board.get("j") is None


def test_only_so_many_trashed_jobs_are_kept(clocked_board, clock):
    clocked_board.set(keep_trashed=2)
    for id in "abc":
        lives.trashed(clocked_board, id)
        clock.advance(1)
    assert [id for id in "abc" if clocked_board.get(id)] == ["b", "c"]


@pytest.mark.parametrize("verb", ["abandon", "trash"])
def test_the_reason_has_a_limit(clocked_board, verb):
    lives.claimed(clocked_board)
    with refused("ERR REASON is longer than 4096 bytes", clocked_board):
        getattr(clocked_board, verb)("w1", "j", reason="x" * 4097)
    getattr(clocked_board, verb)("w1", "j", reason="x" * 4096)
    assert clocked_board.get("j")["reason"] == "x" * 4096


@pytest.mark.parametrize(("verb", "state"), [("abandon", "ready"), ("trash", "trashed")])
def test_coming_late_is_accepted_until_somebody_else_claims(clocked_board, verb, state):
    token = lives.lapsed(clocked_board)
    assert getattr(clocked_board, verb)("w1", "j", token=token) == "OK"
    assert clocked_board.state("j") == state


@pytest.mark.parametrize("verb", ["abandon", "trash"])
def test_coming_late_after_somebody_else_has_claimed_is_refused(clocked_board, verb):
    token = lives.lapsed_and_taken(clocked_board)
    with refused("NOTOWNER w2", clocked_board):
        getattr(clocked_board, verb)("w1", "j", token=token)


@pytest.mark.parametrize("verb", ["abandon", "trash"])
def test_a_job_that_was_to_be_cancelled_is_cancelled(clocked_board, verb):
    token = lives.cancel_requested(clocked_board)
    assert getattr(clocked_board, verb)("w1", "j", token=token) == "OK"
    assert clocked_board.state("j") == "cancelled"
    assert clocked_board.claim("w2") == []


def test_a_late_delay_is_kept(clocked_board):
    token = lives.lapsed(clocked_board)
    clocked_board.abandon("w1", "j", token=token, delay=5000)
    assert clocked_board.state("j") == "scheduled"


def test_fields_come_with_a_job_that_is_given_back_or_put_aside(clocked_board):
    lives.claimed(clocked_board, meta={"a": "1"})
    clocked_board.abandon("w1", "j", meta={"page": "7"})
    assert clocked_board.get("j")["meta"] == {"a": "1", "page": "7"}
    lives.claim(clocked_board)
    clocked_board.trash("w1", "j", meta={"page": "8"})
    assert clocked_board.get("j")["meta"] == {"a": "1", "page": "8"}
    for id in "kl":
        lives.claimed(clocked_board, id)
    clocked_board.mabandon("w1", ["k"], meta={"x": "1"})
    clocked_board.mtrash("w1", ["l"], meta={"x": "2"})
    assert [clocked_board.get(id)["meta"] for id in "kl"] == [{"x": "1"}, {"x": "2"}]


def test_fields_are_kept_though_the_job_is_cancelled(clocked_board):
    token = lives.cancel_requested(clocked_board)
    clocked_board.abandon("w1", "j", token=token, meta={"page": "7"})
    job = clocked_board.get("j")
    assert (job["state"], job["meta"]) == ("cancelled", {"page": "7"})
