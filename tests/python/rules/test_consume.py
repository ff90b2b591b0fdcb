"""JOB.CONSUME: a worker has done its job."""

from __future__ import annotations

import lives
import pytest
from expect import refused, refused_like
from harness import EPOCH
from lives import LONG


def test_a_consumed_job_is_complete_and_gone(clocked_board):
    token = lives.claimed(clocked_board)
    assert clocked_board.consume("w1", "j", token=token) == "complete"
    assert clocked_board.get("j") is None
    assert clocked_board.info()["jobs"] == 0
    assert clocked_board.claim(queues=[]) == []


def test_a_job_with_a_result_is_kept_for_an_hour(clocked_board, clock):
    lives.claimed(clocked_board)
    clock.advance(10)
    clocked_board.consume("w1", "j", result="42")
    job = clocked_board.get("j")
    assert (job["state"], job["result"], job["ended"]) == ("complete", "42", EPOCH + 10)
    clock.advance(3_599_999)
    assert clocked_board.state("j") == "complete"
    clock.advance(1)
    assert clocked_board.get("j") is None


def test_an_empty_result_is_a_result(clocked_board):
    lives.claimed(clocked_board)
    clocked_board.consume("w1", "j", result="")
    assert clocked_board.get("j")["result"] == ""


def test_retain_of_the_consume_wins_over_that_of_the_post(clocked_board, clock):
    lives.claimed(clocked_board, retain=LONG)
    clocked_board.consume("w1", "j", retain=100)
    clock.advance(99)
    assert clocked_board.state("j") == "complete"
    clock.advance(1)
    assert clocked_board.get("j") is None


def test_retain_of_the_post_wins_over_that_of_results(clocked_board, clock):
    lives.claimed(clocked_board, retain=100)
    clocked_board.consume("w1", "j", result="42")
    clock.advance(100)
    assert clocked_board.get("j") is None


def test_retain_0_drops_the_job_even_with_a_result(clocked_board):
    lives.claimed(clocked_board)
    clocked_board.consume("w1", "j", result="42", retain=0)
    assert clocked_board.get("j") is None


def test_retain_minus_one_keeps_the_job_for_ever(clocked_board, clock):
    lives.claimed(clocked_board)
    clocked_board.consume("w1", "j", retain=-1)
    clock.advance(2**40)
    assert clocked_board.state("j") == "complete"


def test_a_consume_may_change_the_payload(clocked_board):
    lives.claimed(clocked_board)
    clocked_board.consume("w1", "j", payload="what is left", retain=LONG)
    assert clocked_board.get("j")["payload"] == "what is left"


def test_a_consume_without_a_token_is_accepted_from_the_holder(clocked_board):
    lives.claimed(clocked_board)
    assert clocked_board.consume("w1", "j") == "complete"


def test_a_consume_with_another_token_is_refused(clocked_board):
    token = lives.claimed(clocked_board)
    with refused(f"STALE token {token - 1} is not the current one", clocked_board):
        clocked_board.consume("w1", "j", token=token - 1)


def test_a_consume_of_somebody_elses_job_is_refused(clocked_board):
    token = lives.claimed_by_another(clocked_board)
    with refused("NOTOWNER w2", clocked_board):
        clocked_board.consume("w1", "j", token=token)


def test_a_late_consume_is_accepted_until_somebody_else_claims(clocked_board):
    token = lives.lapsed(clocked_board)
    assert clocked_board.consume("w1", "j", token=token) == "complete"
    assert clocked_board.claim("w2") == []


def test_a_late_consume_without_a_token_is_accepted(clocked_board):
    lives.lapsed(clocked_board)
    assert clocked_board.consume("w1", "j") == "complete"


def test_a_late_consume_after_somebody_else_has_claimed_is_refused(clocked_board):
    token = lives.lapsed_and_taken(clocked_board)
    with refused("NOTOWNER w2", clocked_board):
        clocked_board.consume("w1", "j", token=token)
    assert clocked_board.consume("w2", "j") == "complete"


def test_a_worker_whose_earlier_claim_lapsed_needs_its_token(clocked_board):
    """Two threads of one worker's name: the older one must not end the newer one's job."""
    old = lives.lapsed_and_taken_again(clocked_board)
    new = clocked_board.get("j")["token"]
    with refused(f"STALE token {old} is not the current one", clocked_board):
        clocked_board.consume("w1", "j", token=old)
    with refused_like("STALE .+", clocked_board):
        clocked_board.consume("w1", "j")
    assert clocked_board.consume("w1", "j", token=new) == "complete"


def test_a_cancelled_job_is_not_complete(clocked_board):
    token = lives.cancel_requested(clocked_board)
    with refused("CANCELLED cancel was requested", clocked_board):
        clocked_board.consume("w1", "j", token=token)
    assert clocked_board.state("j") == "claimed"


def test_force_completes_a_job_that_was_to_be_cancelled(clocked_board):
    token = lives.cancel_requested(clocked_board, retain=LONG)
    assert clocked_board.consume("w1", "j", token=token, force=True) == "complete"
    assert clocked_board.state("j") == "complete"


def test_force_changes_nothing_otherwise(clocked_board):
    token = lives.claimed(clocked_board)
    assert clocked_board.consume("w1", "j", token=token, force=True) == "complete"
    lives.claimed_by_another(clocked_board, "k")
    with refused("NOTOWNER w2", clocked_board):
        clocked_board.consume("w1", "k", force=True)


def test_a_result_longer_than_the_limit_is_refused(clocked):
    board = clocked.board()
    lives.claimed(board)
    with clocked.configured(jobboard__max_payload=10):
        for option in ["result", "payload"]:
            with refused_like(f"ERR {option.upper()} is longer than 10 bytes", board):
                board.consume("w1", "j", **{option: "x" * 11})
        board.consume("w1", "j", result="x" * 10, payload="y" * 10)


def test_a_completed_run_stands_in_the_history(clocked_board):
    lives.complete(clocked_board)
    assert clocked_board.events("j") == ["posted", "claimed", "complete"]


@pytest.mark.parametrize("retain", [0, LONG])
def test_only_so_many_complete_jobs_are_kept(clocked_board, retain):
    clocked_board.set(keep_complete=2)
    for id in "abc":
        lives.complete(clocked_board, id, retain=retain)
    kept = [id for id in "abc" if clocked_board.get(id)]
    assert kept == (["b", "c"] if retain else [])


def test_fields_come_with_the_end(clocked_board):
    lives.claimed(clocked_board, meta={"a": "1"})
    assert clocked_board.consume("w1", "j", meta={"b": "2"}, retain=LONG) == "complete"
    assert clocked_board.get("j")["meta"] == {"a": "1", "b": "2"}
    for id in "kl":
        lives.claimed(clocked_board, id)
    assert clocked_board.mconsume("w1", ["k", "l"], meta={"n": "3"}, next="onward") == ["ready", "ready"]
    assert [clocked_board.get(id)["meta"] for id in "kl"] == [{"n": "3"}] * 2


def test_a_job_is_only_consumed_in_the_queue_that_is_named(clocked_board):
    token = lives.claimed(clocked_board, queue="mails")
    for next in ([], ["NEXT", "sent"]):
        with refused("WRONGQUEUE mails", clocked_board):
            clocked_board.call("CONSUME", "w1", "j", "TOKEN", token, "IF", "QUEUE", "print", *next)
    [answer] = clocked_board.call("MCONSUME", "w1", 1, "j", "IF", "QUEUE", "print")
    assert answer == ["WRONGQUEUE", "mails"]
    assert clocked_board.call("CONSUME", "w1", "j", "TOKEN", token, "if", "queue", "mails") == "complete"
    # Sent again, the reply is the same, whatever queue is named: the record has gone.
    assert clocked_board.call("CONSUME", "w1", "j", "TOKEN", token, "IF", "QUEUE", "print") == "complete"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["IF"], "IF needs a value"),
        (["IF", "NAME", "n"], "IF must be followed by QUEUE and a name"),
        (["IF", "QUEUE"], "IF QUEUE needs a value"),
        (["IF", "QUEUE", ""], "IF QUEUE must be 1 to 255 bytes long"),
        (["IF", "QUEUE", "x" * 256], "IF QUEUE must be 1 to 255 bytes long"),
        (["IF", "QUEUE", "q", "IF", "QUEUE", "q"], "IF is given twice"),
    ],
)
def test_a_condition_names_a_queue(clocked_board, words, error):
    lives.claimed(clocked_board)
    with refused(f"ERR {error}", clocked_board):
        clocked_board.call("CONSUME", "w1", "j", *words)
