"""JOB.CANCEL: a job is called off; one that is being worked on is asked for."""

from __future__ import annotations

import lives
import pytest
from expect import refused
from harness import EPOCH
from lives import LONG


@pytest.mark.parametrize("life", ["scheduled", "ready", "retrying", "abandoned"])
def test_a_job_that_nobody_works_on_is_cancelled_at_once(clocked_board, clock, life):
    lives.LIVES[life](clocked_board)
    clock.advance(5)
    assert clocked_board.cancel("j") == ["cancelled"]
    job = clocked_board.get("j")
    assert (job["state"], job["ended"]) == ("cancelled", EPOCH + 5)
    assert clocked_board.claim() == []
    assert clocked_board.events("j")[-1] == "cancelled"


def test_a_job_that_is_worked_on_is_asked_for(clocked_board):
    token = lives.claimed(clocked_board)
    assert clocked_board.cancel("j") == ["requested"]
    assert clocked_board.state("j") == "claimed"
    assert clocked_board.events("j")[-1] == "cancel-requested"
    assert clocked_board.heartbeat("w1", "j", token=token)["cancel"] == 1


def test_a_cancelled_job_is_already_cancelled(clocked_board):
    lives.cancelled(clocked_board)
    before = clocked_board.digest()
    assert clocked_board.cancel("j") == ["already"]
    assert clocked_board.digest() == before


def test_asking_twice_is_as_asking_once(clocked_board):
    lives.cancel_requested(clocked_board)
    assert clocked_board.cancel("j") in (["requested"], ["already"])
    assert clocked_board.events("j").count("cancel-requested") == 1


def test_an_unknown_job_is_told_so(clocked_board):
    lives.ready(clocked_board)
    assert clocked_board.cancel("nowhere", "j") == [None, "cancelled"]


def test_a_board_that_does_not_exist_has_nothing_to_cancel(clocked_board):
    assert clocked_board.cancel("a", "b") == [None, None]
    assert not clocked_board.client.exists("board")


def test_each_job_has_its_own_answer(clocked_board):
    lives.ready(clocked_board, "ready")
    lives.claimed(clocked_board, "claimed")
    lives.cancelled(clocked_board, "cancelled")
    reply = clocked_board.cancel("ready", "unknown", "claimed", "cancelled")
    assert reply == ["cancelled", None, "requested", "already"]


@pytest.mark.parametrize("life", ["complete", "failed", "trashed"])
def test_a_selection_with_a_job_that_ended_otherwise_is_refused_whole(clocked_board, life):
    lives.LIVES[life](clocked_board)
    lives.ready(clocked_board, "a")
    for selection in [("a", "j"), ("j", "a"), ("j",)]:
        with refused(f"ENDED {life} j", clocked_board):
            clocked_board.cancel(*selection)
    assert clocked_board.state("a") == "ready"


@pytest.mark.parametrize("life", ["complete", "failed", "trashed"])
def test_force_does_not_change_what_has_ended(clocked_board, life):
    lives.LIVES[life](clocked_board)
    with refused(f"ENDED {life} j", clocked_board):
        clocked_board.cancel("j", force=True)


@pytest.mark.parametrize("life", [lives.claimed, lives.cancel_requested])
def test_force_takes_the_job_from_its_worker(clocked_board, life):
    token = life(clocked_board)
    assert clocked_board.cancel("j", force=True) == ["cancelled"]
    assert clocked_board.state("j") == "cancelled"
    for verb in ["heartbeat", "consume", "fail", "abandon", "trash"]:
        with refused("CANCELLED the job was cancelled", clocked_board):
            getattr(clocked_board, verb)("w1", "j", token=token)


def test_force_cancels_what_nobody_works_on_as_well(clocked_board):
    lives.ready(clocked_board)
    assert clocked_board.cancel("j", force=True) == ["cancelled"]


def test_the_end_of_the_lease_cancels_a_job_that_was_asked_for(clocked_board, clock):
    lives.claimed(clocked_board, lease=1000, lapses=-1)
    clocked_board.cancel("j")
    clock.advance(1000)
    assert clocked_board.state("j") == "cancelled"
    assert clocked_board.claim() == []


def test_the_timeout_of_the_run_cancels_a_job_that_was_asked_for(clocked_board, clock):
    lives.claimed(clocked_board, timeout=1000)
    clocked_board.cancel("j")
    clock.advance(1000)
    assert clocked_board.state("j") == "cancelled"


def test_a_release_cancels_a_job_that_was_asked_for(clocked_board):
    lives.cancel_requested(clocked_board)
    assert clocked_board.release("j").count == 1
    assert clocked_board.state("j") == "cancelled"


def test_a_worker_that_comes_after_the_cancel_is_told(clocked_board, clock):
    token = lives.claimed(clocked_board, lease=1000)
    clocked_board.cancel("j")
    clock.advance(1000)
    with refused("CANCELLED the job was cancelled", clocked_board):
        clocked_board.heartbeat("w1", "j", token=token)


def test_a_job_named_twice_is_cancelled_once(clocked_board):
    lives.ready(clocked_board)
    assert clocked_board.cancel("j", "j") == ["cancelled", "already"]


def test_a_cancelled_job_is_kept_for_a_day(clocked_board, clock):
    lives.cancelled(clocked_board)
    clock.advance(86_399_999)
    assert clocked_board.state("j") == "cancelled"
    clock.advance(1)
    assert clocked_board.get("j") is None


def test_only_so_many_cancelled_jobs_are_kept(clocked_board, clock):
    clocked_board.set(keep_cancelled=2)
    for id in "abc":
        lives.cancelled(clocked_board, id)
        clock.advance(1)
    assert [id for id in "abc" if clocked_board.get(id)] == ["b", "c"]


def test_a_late_worker_of_a_cancelled_job_is_told(clocked_board):
    token = lives.lapsed(clocked_board)
    clocked_board.cancel("j")
    with refused("CANCELLED the job was cancelled", clocked_board):
        clocked_board.consume("w1", "j", token=token)


def test_the_rest_of_a_large_selection_is_cancelled(clocked_board):
    posted = clocked_board.post_many(1000, delay=LONG)
    assert clocked_board.cancel(*posted) == ["cancelled"] * 1000
    assert clocked_board.info()["cancelled"] == 1000
