"""JOB.HEARTBEAT: a worker keeps its lease, and says how far it is."""

from __future__ import annotations

import lives
import pytest
from expect import refused, refused_like
from harness import EPOCH
from lives import LONG


def test_a_heartbeat_begins_the_lease_anew(clocked_board, clock):
    token = lives.claimed(clocked_board, lease=5000)
    clock.advance(4000)
    assert clocked_board.heartbeat("w1", "j", token=token) == {"deadline": EPOCH + 9000, "cancel": 0}
    clock.advance(4999)
    assert clocked_board.state("j") == "claimed"
    clock.advance(1)
    assert clocked_board.state("j") == "ready"


def test_a_heartbeat_may_ask_for_another_lease(clocked_board):
    lives.claimed(clocked_board, lease=5000)
    assert clocked_board.heartbeat("w1", "j", lease=100)["deadline"] == EPOCH + 100
    assert clocked_board.get("j")["deadline"] == EPOCH + 100


def test_a_heartbeat_does_not_move_the_timeout_of_the_run(clocked_board, clock):
    lives.claimed(clocked_board, lease=5000, timeout=7000)
    clock.advance(4000)
    assert clocked_board.heartbeat("w1", "j")["deadline"] == EPOCH + 7000


def test_a_worker_is_told_that_its_job_is_to_be_cancelled(clocked_board):
    token = lives.cancel_requested(clocked_board)
    assert clocked_board.heartbeat("w1", "j", token=token)["cancel"] == 1


# What it says


@pytest.mark.parametrize(
    ("said", "kept"), [("0", 0.0), ("12.5", 12.5), ("33.33", 33.33), ("100", 100.0), ("99.999", None)]
)
def test_progress_has_two_places(clocked_board, said, kept):
    lives.claimed(clocked_board)
    clocked_board.heartbeat("w1", "j", progress=said)
    progress = clocked_board.get("j")["progress"]
    assert progress == kept if kept is not None else progress in (99.99, 100.0)


def test_progress_never_goes_back(clocked_board):
    lives.claimed(clocked_board)
    for said in [10, 50.5, 20, 50.49]:
        clocked_board.heartbeat("w1", "j", progress=said)
    assert clocked_board.get("j")["progress"] == 50.5


@pytest.mark.parametrize(
    "wrong",
    ["-1", "-0.01", "100.01", "101", "x", "", "nan", "inf", "-inf", "1e1000", "0x10", "1,5", "9" * 400],
)
def test_strange_progress_is_refused(clocked_board, wrong):
    lives.claimed(clocked_board)
    with refused_like("ERR PROGRESS must be .+", clocked_board):
        clocked_board.heartbeat("w1", "j", progress=wrong)


def test_a_stage_is_kept(clocked_board):
    lives.claimed(clocked_board)
    clocked_board.heartbeat("w1", "j", stage="reading")
    clocked_board.heartbeat("w1", "j", stage="writing")
    clocked_board.heartbeat("w1", "j")
    assert clocked_board.get("j")["stage"] == "writing"


def test_a_payload_is_replaced(clocked_board):
    lives.claimed(clocked_board)
    clocked_board.heartbeat("w1", "j", payload="half done")
    assert clocked_board.get("j")["payload"] == "half done"


def test_meta_fields_are_set_and_others_kept(clocked_board):
    lives.claimed(clocked_board, meta={"to": "ann", "cc": "bob"})
    clocked_board.heartbeat("w1", "j", meta={"cc": "carl", "bcc": "dora"})
    assert clocked_board.get("j")["meta"] == {"to": "ann", "cc": "carl", "bcc": "dora"}


def test_meta_does_not_grow_over_its_limit(clocked_board):
    lives.claimed(clocked_board, meta={f"f{n}": "v" for n in range(60)})
    clocked_board.heartbeat("w1", "j", meta={f"f{n}": "w" for n in range(64)})
    with refused_like("ERR .*META.*|LIMIT .*", clocked_board):
        clocked_board.heartbeat("w1", "j", meta={"one": "more"})


def test_log_lines_stand_in_the_history(clocked_board, clock):
    lives.claimed(clocked_board)
    clock.advance(5)
    clocked_board.heartbeat("w1", "j", log="first")
    clocked_board.heartbeat("w1", "j", log="second")
    first, second = clocked_board.history("j")[-2:]
    assert (first["event"], first["worker"], first["message"], first["at"]) == (
        "log",
        "w1",
        "first",
        EPOCH + 5,
    )
    assert second["message"] == "second"


def test_a_plain_heartbeat_leaves_no_trace_in_the_history(clocked_board):
    lives.claimed(clocked_board)
    before = clocked_board.events("j")
    clocked_board.heartbeat("w1", "j")
    assert clocked_board.events("j") == before


@pytest.mark.parametrize("option", ["stage", "log"])
def test_a_text_longer_than_the_limit_is_refused(clocked_board, option):
    lives.claimed(clocked_board)
    clocked_board.heartbeat("w1", "j", **{option: "x" * 4096})
    with refused(f"ERR {option.upper()} is longer than 4096 bytes", clocked_board):
        clocked_board.heartbeat("w1", "j", **{option: "x" * 4097})


def test_the_limit_of_texts_is_a_setting(clocked):
    board = clocked.board()
    lives.claimed(board)
    with clocked.configured(jobboard__max_text=10), refused("ERR STAGE is longer than 10 bytes", board):
        board.heartbeat("w1", "j", stage="x" * 11)


def test_a_payload_longer_than_the_limit_is_refused(clocked):
    board = clocked.board()
    lives.claimed(board)
    with clocked.configured(jobboard__max_payload=10), refused_like("ERR PAYLOAD .*10 bytes", board):
        board.heartbeat("w1", "j", payload="x" * 11)


def test_what_a_worker_said_outlives_its_claim(clocked_board):
    token = lives.claimed(clocked_board)
    clocked_board.heartbeat("w1", "j", progress=40, stage="half", meta={"k": "v"}, payload="rest")
    clocked_board.abandon("w1", "j", token=token)
    job = clocked_board.get("j")
    assert (job["stage"], job["meta"], job["payload"]) == ("half", {"k": "v"}, "rest")


# Coming late


def test_a_late_heartbeat_takes_the_job_back(clocked_board):
    token = lives.lapsed(clocked_board)
    assert clocked_board.heartbeat("w1", "j", token=token)["cancel"] == 0
    job = clocked_board.get("j")
    assert (job["state"], job["worker"], job["token"], job["attempt"]) == ("claimed", "w1", token, 1)
    assert clocked_board.events("j") == ["posted", "claimed", "lapsed", "revived"]
    assert clocked_board.claim("w2") == []


def test_a_late_heartbeat_needs_no_token(clocked_board):
    token = lives.lapsed(clocked_board)
    clocked_board.heartbeat("w1", "j")
    assert clocked_board.get("j")["token"] == token


def test_a_late_heartbeat_with_another_token_is_refused(clocked_board):
    token = lives.lapsed(clocked_board)
    with refused(f"STALE token {token + 1} is not the current one", clocked_board):
        clocked_board.heartbeat("w1", "j", token=token + 1)


def test_a_late_heartbeat_of_another_worker_is_refused(clocked_board):
    token = lives.lapsed(clocked_board)
    with refused("NOTCLAIMED ready", clocked_board):
        clocked_board.heartbeat("w2", "j", token=token)


def test_a_heartbeat_after_another_has_claimed_is_refused(clocked_board):
    token = lives.lapsed_and_taken(clocked_board)
    with refused("NOTOWNER w2", clocked_board):
        clocked_board.heartbeat("w1", "j", token=token)


def test_a_job_taken_back_ends_its_lease_as_any(clocked_board, clock):
    token = lives.lapsed(clocked_board)
    clocked_board.heartbeat("w1", "j", token=token, lease=100)
    clock.advance(100)
    assert clocked_board.state("j") == "ready"
    assert clocked_board.claim_one("w2")["attempt"] == 2


def test_a_late_heartbeat_may_say_all_that_another_may(clocked_board):
    token = lives.lapsed(clocked_board)
    clocked_board.heartbeat("w1", "j", token=token, progress=5, stage="s", payload="p", log="l", lease=LONG)
    job = clocked_board.get("j")
    assert (job["progress"], job["stage"], job["payload"]) == (5.0, "s", "p")
