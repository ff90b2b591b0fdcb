"""JOB.FAIL: a run has failed; it is tried again, or not."""

from __future__ import annotations

import lives
import pytest
from expect import refused, refused_like
from harness import EPOCH
from lives import LONG


def fail_again(board, clock, **options) -> dict:
    """Waits for the next try, claims the job and fails it."""
    due = board.get("j").get("due")
    if board.state("j") == "scheduled":
        clock.set(due)
    token = lives.claim(board)
    return board.fail("w1", "j", token=token, **options)


def test_a_failure_is_followed_by_another_try(clocked_board, clock):
    token = lives.claimed(clocked_board, retries=2, backoff=("FIXED", 500), jitter=0)
    assert clocked_board.fail("w1", "j", "net", "no route", token=token) == {
        "state": "scheduled",
        "due": EPOCH + 500,
        "left": 1,
    }
    job = clocked_board.get("j")
    assert (job["state"], job["kind"], job["message"], job["left"]) == ("scheduled", "net", "no route", 1)
    clock.advance(500)
    assert clocked_board.claim_one("w2")["attempt"] == 2


def test_after_the_last_retry_a_failure_is_final(clocked_board, clock):
    lives.ready(clocked_board, retries=2, backoff=("FIXED", 0))
    assert fail_again(clocked_board, clock)["left"] == 1
    assert fail_again(clocked_board, clock)["left"] == 0
    last = fail_again(clocked_board, clock, kind="boom", message="at last")
    assert last == {"state": "failed", "left": 0}
    job = clocked_board.get("j")
    assert (job["state"], job["kind"], job["message"], job["attempt"]) == ("failed", "boom", "at last", 3)
    assert job["ended"] == EPOCH


def test_retries_0_means_no_second_try(clocked_board):
    lives.claimed(clocked_board, retries=0)
    assert clocked_board.fail("w1", "j") == {"state": "failed", "left": 0}


def test_retries_without_end_never_end(clocked_board, clock):
    lives.ready(clocked_board, retries=-1, backoff=("FIXED", 0))
    for _ in range(30):
        assert fail_again(clocked_board, clock) == {"state": "ready", "left": -1}


def test_the_pause_doubles_up_to_its_limit(clocked_board, clock):
    lives.ready(clocked_board, backoff=("EXPONENTIAL", 1000, 6000), jitter=0)
    pauses = []
    for _ in range(6):
        reply = fail_again(clocked_board, clock)
        pauses.append(reply["due"] - clock.now())
    assert pauses == [1000, 2000, 4000, 6000, 6000, 6000]


def test_the_default_pause_begins_at_5_seconds_and_varies_by_10_per_cent(clocked_board):
    pauses = set()
    for n in range(100):
        lives.claimed(clocked_board, f"j{n}")
        pauses.add(clocked_board.fail("w1", f"j{n}")["due"] - EPOCH)
    assert 4500 <= min(pauses) < 5000 < max(pauses) <= 5500
    assert len(pauses) > 20


def test_jitter_varies_the_pause_by_so_many_per_cent(clocked_board):
    pauses = set()
    for n in range(100):
        lives.claimed(clocked_board, f"j{n}", backoff=("FIXED", 1000), jitter=100)
        # A pause of 0 makes the job ready at once.
        pauses.add(clocked_board.fail("w1", f"j{n}").get("due", EPOCH) - EPOCH)
    assert 0 <= min(pauses) < 500
    assert 1500 < max(pauses) <= 2000


def test_a_worker_may_say_when_to_try_again(clocked_board):
    lives.claimed(clocked_board, backoff=("FIXED", 500))
    assert clocked_board.fail("w1", "j", retry=70)["due"] == EPOCH + 70


def test_a_retry_of_0_ms_is_ready_at_once(clocked_board):
    lives.claimed(clocked_board)
    clocked_board.fail("w1", "j", retry=0)
    assert clocked_board.claim_one("w2")["id"] == "j"


def test_a_named_retry_costs_a_retry_as_well(clocked_board):
    lives.claimed(clocked_board, retries=0)
    assert clocked_board.fail("w1", "j", retry=0) == {"state": "failed", "left": 0}


def test_a_worker_may_say_that_there_is_no_sense_in_trying_again(clocked_board):
    lives.claimed(clocked_board, retries=5)
    reply = clocked_board.fail("w1", "j", "bad input", "not a number", noretry=True)
    assert reply["state"] == "failed"
    assert "due" not in reply
    assert clocked_board.get("j")["kind"] == "bad input"


def test_retry_and_noretry_exclude_each_other(clocked_board):
    lives.claimed(clocked_board)
    with refused_like("ERR .+", clocked_board):
        clocked_board.fail("w1", "j", retry=5, noretry=True)


def test_a_failure_may_leave_another_payload(clocked_board):
    lives.claimed(clocked_board)
    clocked_board.fail("w1", "j", payload="from line 7")
    assert clocked_board.get("j")["payload"] == "from line 7"


def test_the_last_failure_is_told_and_earlier_ones_stand_in_the_history(clocked_board, clock):
    lives.ready(clocked_board, backoff=("FIXED", 5), jitter=0)
    fail_again(clocked_board, clock, kind="one", message="first")
    fail_again(clocked_board, clock, kind="two", message="second")
    job = clocked_board.get("j")
    assert (job["kind"], job["message"]) == ("two", "second")
    failures = [entry for entry in clocked_board.history("j") if entry["event"] == "failed"]
    assert ["first" in entry["text"] for entry in failures] == [True, False]
    assert all(entry["worker"] == "w1" for entry in failures)


@pytest.mark.parametrize("kind", ["", "x" * 256])
def test_a_kind_has_1_to_255_bytes(clocked_board, kind):
    lives.claimed(clocked_board)
    with refused_like("ERR kind .+", clocked_board):
        clocked_board.fail("w1", "j", kind)


def test_a_message_may_be_empty_and_has_a_limit(clocked_board):
    lives.claimed(clocked_board)
    with refused_like("ERR (message|MESSAGE) is longer than 4096 bytes", clocked_board):
        clocked_board.fail("w1", "j", "k", "x" * 4097)
    clocked_board.fail("w1", "j", "k", "")
    assert clocked_board.get("j")["kind"] == "k"


def test_a_late_failure_is_accepted_until_somebody_else_claims(clocked_board):
    token = lives.lapsed(clocked_board)
    assert clocked_board.fail("w1", "j", token=token)["state"] == "scheduled"
    assert clocked_board.claim("w2") == []


def test_a_late_failure_after_somebody_else_has_claimed_is_refused(clocked_board):
    token = lives.lapsed_and_taken(clocked_board)
    with refused("NOTOWNER w2", clocked_board):
        clocked_board.fail("w1", "j", token=token)


def test_a_failure_of_a_job_that_is_to_be_cancelled_cancels_it(clocked_board):
    token = lives.cancel_requested(clocked_board)
    assert clocked_board.fail("w1", "j", token=token)["state"] == "cancelled"
    assert clocked_board.state("j") == "cancelled"


def test_a_failed_job_is_kept_for_30_days(clocked_board, clock):
    lives.failed(clocked_board)
    clock.advance(30 * 86_400_000 - 1)
    assert clocked_board.state("j") == "failed"
    clock.advance(1)
    assert clocked_board.get("j") is None


def test_only_so_many_failed_jobs_are_kept(clocked_board, clock):
    clocked_board.set(keep_failed=2)
    for id in "abc":
        lives.failed(clocked_board, id)
        clock.advance(1)
    assert [id for id in "abc" if clocked_board.get(id)] == ["b", "c"]


def test_failures_and_lost_leases_are_counted_apart(clocked_board, clock):
    lives.ready(clocked_board, retries=1, lapses=1, backoff=("FIXED", 0))
    lives.claim(clocked_board, lease=10)
    clock.advance(10)
    assert clocked_board.get("j")["left"] == 1
    assert fail_again(clocked_board, clock)["state"] == "ready"
    lives.claim(clocked_board, lease=LONG)
    assert clocked_board.fail("w1", "j", token=clocked_board.get("j")["token"])["state"] == "failed"
