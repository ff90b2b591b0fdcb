"""The table of state by verb: what every verb does to a job in every state of its life."""

from __future__ import annotations

import lives
import pytest
from expect import refused, refused_like

WORKERS_VERBS = ["heartbeat", "step", "wait_for", "consume", "fail", "abandon", "trash"]
NOBODY = "NOJOB no such job"

REFUSALS = {
    lives.scheduled: "NOTCLAIMED scheduled",
    lives.ready: "NOTCLAIMED ready",
    lives.claimed_by_another: "NOTOWNER w2",
    lives.lapsed_and_taken: "NOTOWNER w2",
    lives.retrying: "NOTCLAIMED scheduled",
    lives.abandoned: "NOTCLAIMED ready",
    lives.released: "NOTCLAIMED ready",
    lives.complete: "ENDED complete",
    lives.failed: "ENDED failed",
    lives.cancelled: "CANCELLED the job was cancelled",
    lives.cancelled_by_force: "CANCELLED the job was cancelled",
    lives.trashed: "ENDED trashed",
    lives.gone: NOBODY,
}


def call(board, verb, worker="w1", **options):
    words = {"step": ["fetched"], "wait_for": [["approved"]]}.get(verb, [])
    return getattr(board, verb)(worker, "j", *words, **options)


def name(life) -> str:
    return getattr(life, "__name__", str(life))


@pytest.mark.parametrize("verb", WORKERS_VERBS)
@pytest.mark.parametrize(("life", "error"), REFUSALS.items(), ids=name)
def test_a_worker_that_does_not_hold_the_job_is_refused(clocked_board, life, error, verb):
    life(clocked_board)
    with refused(error, clocked_board):
        call(clocked_board, verb)


@pytest.mark.parametrize("verb", WORKERS_VERBS)
@pytest.mark.parametrize(
    "life",
    [life for life in REFUSALS if life not in (lives.claimed_by_another, lives.lapsed_and_taken)],
    ids=name,
)
def test_a_worker_that_never_held_the_job_is_refused(clocked_board, life, verb):
    life(clocked_board)
    with refused(REFUSALS[life], clocked_board):
        call(clocked_board, verb, worker="w9", token=12345)


@pytest.mark.parametrize("verb", WORKERS_VERBS)
def test_an_unknown_job_is_refused(clocked_board, verb):
    with refused(NOBODY):
        call(clocked_board, verb)
    assert not clocked_board.client.exists("board")
    lives.ready(clocked_board, "other")
    with refused(NOBODY, clocked_board):
        call(clocked_board, verb)
    with refused(NOBODY, clocked_board):
        call(clocked_board, verb, token=1)


@pytest.mark.parametrize("verb", WORKERS_VERBS)
def test_the_holder_without_a_token_is_accepted(clocked_board, verb):
    lives.claimed(clocked_board)
    call(clocked_board, verb)


@pytest.mark.parametrize("verb", WORKERS_VERBS)
@pytest.mark.parametrize("life", [lives.claimed, lives.cancel_requested, lives.lapsed], ids=name)
def test_the_holder_with_another_token_is_refused(clocked_board, life, verb):
    token = life(clocked_board)
    for wrong in [token + 1, token - 1, 1]:
        with refused(f"STALE token {wrong} is not the current one", clocked_board):
            call(clocked_board, verb, token=wrong)


@pytest.mark.parametrize("verb", WORKERS_VERBS)
def test_the_holder_whose_earlier_claim_lapsed_must_give_its_token(clocked_board, verb):
    old = lives.lapsed_and_taken_again(clocked_board)
    current = clocked_board.get("j")["token"]
    with refused_like("STALE .+", clocked_board):
        call(clocked_board, verb)
    with refused(f"STALE token {old} is not the current one", clocked_board):
        call(clocked_board, verb, token=old)
    call(clocked_board, verb, token=current)


@pytest.mark.parametrize("verb", WORKERS_VERBS)
@pytest.mark.parametrize("with_token", [True, False])
def test_the_holder_of_a_lapsed_lease_is_accepted(clocked_board, verb, with_token):
    token = lives.lapsed(clocked_board)
    call(clocked_board, verb, token=token if with_token else None)


@pytest.mark.parametrize("verb", WORKERS_VERBS)
def test_another_worker_of_a_lapsed_lease_is_refused(clocked_board, verb):
    token = lives.lapsed(clocked_board)
    with refused("NOTCLAIMED ready", clocked_board):
        call(clocked_board, verb, worker="w2", token=token)


@pytest.mark.parametrize("verb", WORKERS_VERBS)
def test_the_worker_of_a_job_whose_lapses_are_used_up_is_refused(clocked_board, clock, verb):
    token = lives.claimed(clocked_board, lease=10, lapses=0)
    clock.advance(10)
    with refused("ENDED failed", clocked_board):
        call(clocked_board, verb, token=token)


@pytest.mark.parametrize("verb", WORKERS_VERBS)
def test_a_worker_called_star_holds_nothing(clocked_board, verb):
    """On a board without `ownerless yes`."""
    lives.claimed(clocked_board)
    with refused_like("NOTOWNER w1|ERR worker must not be .+", clocked_board):
        call(clocked_board, verb, worker="*")


@pytest.mark.parametrize(
    ("verb", "state"),
    [
        ("consume", None),
        ("fail", "scheduled"),
        ("abandon", "ready"),
        ("trash", "trashed"),
        ("heartbeat", "claimed"),
        ("step", "claimed"),
        ("wait_for", "blocked"),
    ],
)
def test_what_each_verb_makes_of_a_claimed_job(clocked_board, verb, state):
    token = lives.claimed(clocked_board)
    call(clocked_board, verb, token=token)
    assert clocked_board.state("j") == state


@pytest.mark.parametrize(
    ("verb", "charged"), [("fail", 1), ("abandon", 0), ("heartbeat", 0), ("step", 0), ("wait_for", 0)]
)
def test_what_each_verb_costs(clocked_board, verb, charged):
    token = lives.claimed(clocked_board, retries=5)
    call(clocked_board, verb, token=token)
    assert clocked_board.get("j")["left"] == 5 - charged
