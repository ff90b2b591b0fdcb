"""Replies get lost and clients send again: the second answer is as the first, and nothing happens twice."""

from __future__ import annotations

import lives
import pytest
from expect import ids, refused, refused_like
from harness import EPOCH
from lives import LONG


def again(board, command, *words) -> tuple:
    """Both answers of a command that is sent twice."""
    return board.call(command, *words), board.call(command, *words)


def again_unchanged(board, command, *words) -> tuple:
    """Both answers; the second command changes nothing."""
    first = board.call(command, *words)
    before = board.digest()
    second = board.call(command, *words)
    assert board.digest() == before
    return first, second


# Posting


def test_a_post_with_an_id_is_told_that_it_exists(clocked_board):
    clocked_board.post("x", id="j")
    with refused("EXISTS j", clocked_board):
        clocked_board.post("x", id="j")


def test_a_post_with_an_id_and_nx_posts_once(clocked_board):
    assert again_unchanged(clocked_board, "POST", "x", "ID", "j", "NX") == ("j", None)


def test_a_post_is_known_after_its_job_has_run(clocked_board):
    """The job was posted, claimed and consumed before the producer sends again."""
    clocked_board.post("x", id="j", nx=True)
    clocked_board.consume("w1", "j", token=lives.claim(clocked_board))
    assert clocked_board.post("x", id="j", nx=True) is None
    assert clocked_board.claim() == []


def test_a_batch_with_ids_and_nx_posts_each_once(clocked_board):
    first, second = again_unchanged(clocked_board, "MPOST", 2, "x", "y", "IDS", 2, "a", "b", "NX")
    assert (first, second) == (["a", "b"], [None, None])


def test_a_replacing_post_sent_again_gives_the_same_job(clocked_board):
    lives.failed(clocked_board)
    assert again(clocked_board, "POST", "new", "ID", "j", "REPLACE") == ("j", "j")
    assert clocked_board.count() == 1
    assert clocked_board.claim_one()["payload"] == "new"


# Claiming


def test_a_claim_whose_reply_was_lost_is_handed_back(clocked_board, clock):
    clocked_board.post_many(3)
    lost = clocked_board.claim("w1", seen=0, count=2, lease=1000)
    clock.advance(500)
    found = clocked_board.claim("w1", seen=0, count=2, lease=1000)
    assert [(job["id"], job["token"], job["attempt"]) for job in found] == [
        (job["id"], job["token"], 1) for job in lost
    ]
    assert [job["deadline"] for job in found] == [EPOCH + 1500] * 2
    assert clocked_board.info()["claimed"] == 2


def test_nothing_is_stranded_by_a_restart_of_the_worker(clocked_board, clock):
    clocked_board.post_many(3)
    before = clocked_board.claim("w1", count=3, lease=1000)
    clock.advance(999)
    after = clocked_board.claim("w1", seen=0, count=100, lease=1000)
    assert ids(after) == ids(before)
    clock.advance(999)
    assert clocked_board.info()["claimed"] == 3


def test_a_resent_claim_gets_the_whole_record(clocked_board):
    clocked_board.post("hello", id="j", name="n", queue="q")
    first = clocked_board.claim_one("w1", queues=["q"], seen=0)
    assert clocked_board.claim_one("w1", queues=["q"], seen=0) == first


def test_what_is_handed_back_may_be_of_any_queue(clocked_board):
    """It asks what it may have missed, not where from."""
    clocked_board.post(id="j", queue="q")
    clocked_board.claim_one("w1", queues=["q"])
    assert ids(clocked_board.claim("w1", queues=["q"], seen=0)) == ["j"]


def test_a_lapsed_claim_is_not_handed_back(clocked_board):
    token = lives.lapsed(clocked_board)
    found = clocked_board.claim_one("w1", seen=0)
    assert found["token"] > token
    assert found["attempt"] == 2


def test_a_claim_by_id_sent_again_is_told_that_it_is_held(clocked_board):
    lives.ready(clocked_board)
    clocked_board.claim_one("w1", id="j")
    with refused("CLAIMED you", clocked_board):
        clocked_board.claim_one("w1", id="j")


# A worker's verbs, with the token


def test_a_consume_is_answered_as_before_when_the_record_has_gone(clocked_board):
    token = lives.claimed(clocked_board)
    first, second = again_unchanged(clocked_board, "CONSUME", "w1", "j", "TOKEN", token)
    assert (first, second) == ("complete", "complete")


def test_a_consume_is_answered_as_before_when_the_record_is_kept(clocked_board):
    token = lives.claimed(clocked_board)
    words = ["w1", "j", "TOKEN", token, "RESULT", "r", "RETAIN", LONG]
    assert again_unchanged(clocked_board, "CONSUME", *words) == ("complete", "complete")


def test_a_consume_is_forgotten_after_a_minute(clocked_board, clock):
    token = lives.gone(clocked_board)
    clock.advance(59_999)
    assert clocked_board.consume("w1", "j", token=token) == "complete"
    clock.advance(1)
    with refused("NOJOB no such job", clocked_board):
        clocked_board.consume("w1", "j", token=token)


def test_a_consume_without_its_token_is_not_answered_again(clocked_board):
    lives.claimed(clocked_board)
    clocked_board.consume("w1", "j")
    with refused("NOJOB no such job", clocked_board):
        clocked_board.consume("w1", "j")


def test_a_consume_with_another_token_is_not_answered_again(clocked_board):
    token = lives.gone(clocked_board)
    for wrong in [token - 1, token + 1, 0]:
        with refused("NOJOB no such job", clocked_board):
            clocked_board.consume("w1", "j", token=wrong)


def test_a_consume_of_a_job_posted_anew_is_not_answered_again(clocked_board):
    token = lives.gone(clocked_board)
    clocked_board.post("new", id="j", replace=True)
    with refused_like("NOTCLAIMED ready|STALE .+", clocked_board):
        clocked_board.consume("w1", "j", token=token)


@pytest.mark.parametrize("verb", ["fail", "abandon", "trash"])
def test_only_a_consume_is_answered_from_a_tombstone(clocked_board, verb):
    token = lives.gone(clocked_board)
    with refused("NOJOB no such job", clocked_board):
        getattr(clocked_board, verb)("w1", "j", token=token)


def test_a_failure_is_answered_as_before_and_charged_once(clocked_board):
    token = lives.claimed(clocked_board, retries=3)
    words = ["w1", "j", "net", "no route", "TOKEN", token]
    first, second = again_unchanged(clocked_board, "FAIL", *words)
    assert first == second
    assert clocked_board.get("j")["left"] == 2


def test_a_last_failure_is_answered_as_before(clocked_board):
    token = lives.claimed(clocked_board, retries=0)
    first, second = again_unchanged(clocked_board, "FAIL", "w1", "j", "k", "m", "TOKEN", token)
    assert first == second == {"state": "failed", "left": 0}


def test_an_abandon_is_answered_as_before(clocked_board):
    token = lives.claimed(clocked_board)
    assert again_unchanged(clocked_board, "ABANDON", "w1", "j", "TOKEN", token) == ("OK", "OK")


def test_an_abandon_with_a_delay_does_not_begin_anew(clocked_board, clock):
    token = lives.claimed(clocked_board)
    clocked_board.abandon("w1", "j", token=token, delay=1000)
    clock.advance(500)
    assert clocked_board.abandon("w1", "j", token=token, delay=1000) == "OK"
    assert clocked_board.get("j")["due"] == EPOCH + 1000


def test_a_trash_is_answered_as_before(clocked_board):
    token = lives.claimed(clocked_board)
    assert again_unchanged(clocked_board, "TRASH", "w1", "j", "TOKEN", token) == ("OK", "OK")


@pytest.mark.parametrize(
    ("first", "second", "error"),
    [
        ("consume", "fail", "ENDED complete"),
        ("consume", "abandon", "ENDED complete"),
        ("trash", "consume", "ENDED trashed"),
        ("abandon", "consume", "NOTCLAIMED ready"),
        ("fail", "consume", "NOTCLAIMED scheduled"),
        ("fail", "abandon", "NOTCLAIMED scheduled"),
        ("abandon", "heartbeat", "NOTCLAIMED ready"),
        ("consume", "heartbeat", "ENDED complete"),
    ],
)
def test_another_verb_than_the_first_is_refused(clocked_board, first, second, error):
    token = lives.claimed(clocked_board, retain=LONG)
    getattr(clocked_board, first)("w1", "j", token=token)
    with refused(error, clocked_board):
        getattr(clocked_board, second)("w1", "j", token=token)


@pytest.mark.parametrize(
    ("verb", "error"),
    [
        ("consume", "ENDED complete"),
        ("fail", "NOTCLAIMED scheduled"),
        ("abandon", "NOTCLAIMED ready"),
        ("trash", "ENDED trashed"),
    ],
)
def test_without_its_token_a_verb_is_not_answered_again(clocked_board, verb, error):
    lives.claimed(clocked_board, retain=LONG)
    getattr(clocked_board, verb)("w1", "j")
    with refused(error, clocked_board):
        getattr(clocked_board, verb)("w1", "j")


@pytest.mark.parametrize("verb", ["consume", "fail", "abandon", "trash"])
def test_another_worker_with_the_same_token_is_refused(clocked_board, verb):
    token = lives.claimed(clocked_board, retain=LONG)
    getattr(clocked_board, verb)("w1", "j", token=token)
    with refused_like("ENDED .+|NOTCLAIMED .+", clocked_board):
        getattr(clocked_board, verb)("w2", "j", token=token)


@pytest.mark.parametrize("verb", ["fail", "abandon"])
def test_a_verb_sent_again_after_another_has_claimed_is_refused(clocked_board, clock, verb):
    token = lives.claimed(clocked_board, backoff=("FIXED", 0))
    getattr(clocked_board, verb)("w1", "j", token=token)
    lives.claim(clocked_board, "j", "w2")
    with refused("NOTOWNER w2", clocked_board):
        getattr(clocked_board, verb)("w1", "j", token=token)


@pytest.mark.parametrize("verb", ["fail", "abandon"])
def test_a_verb_sent_again_after_the_same_worker_has_claimed_is_stale(clocked_board, clock, verb):
    token = lives.claimed(clocked_board, backoff=("FIXED", 0))
    getattr(clocked_board, verb)("w1", "j", token=token)
    lives.claim(clocked_board, "j", "w1")
    with refused(f"STALE token {token} is not the current one", clocked_board):
        getattr(clocked_board, verb)("w1", "j", token=token)


def test_a_heartbeat_sent_again_keeps_the_lease(clocked_board):
    token = lives.claimed(clocked_board, lease=1000)
    first, second = again(clocked_board, "HEARTBEAT", "w1", "j", "TOKEN", token, "LEASE", 500)
    assert first == second == {"deadline": EPOCH + 500, "cancel": 0}


def test_a_batch_sent_again_is_answered_as_before(clocked_board):
    tokens = [lives.claimed(clocked_board, id) for id in "ab"]
    for _ in range(2):
        assert clocked_board.mconsume("w1", "ab", tokens=tokens) == ["complete", "complete"]
    tokens = [lives.claimed(clocked_board, id) for id in "cd"]
    for _ in range(2):
        assert clocked_board.mabandon("w1", "cd", tokens=tokens) == ["OK", "OK"]


def test_all_sent_again_finds_nothing_more(clocked_board):
    lives.claimed(clocked_board)
    assert clocked_board.mabandon("w1", "ALL") == [["j", "OK"]]
    assert clocked_board.mabandon("w1", "ALL") == []


# An operator's verbs


def test_a_cancel_sent_again_is_told_that_it_is_done(clocked_board):
    lives.ready(clocked_board)
    assert again_unchanged(clocked_board, "CANCEL", 1, "j") == (["cancelled"], ["already"])


def test_a_release_sent_again_does_not_take_from_the_next_worker(clocked_board):
    lives.claimed(clocked_board)
    clocked_board.release("j")
    with refused("NOTCLAIMED ready j", clocked_board):
        clocked_board.release("j")


def test_a_requeue_sent_again_does_not_run_the_job_twice(clocked_board):
    lives.failed(clocked_board)
    clocked_board.requeue("j")
    with refused("NOTENDED ready j", clocked_board):
        clocked_board.requeue("j")


def test_a_delete_sent_again_finds_nothing(clocked_board):
    lives.ready(clocked_board)
    assert clocked_board.delete("j") == (1, "0", [])
    assert clocked_board.delete("j") == (0, "0", ["j"])


@pytest.mark.parametrize(
    "change", [{"priority": 5}, {"queue": "q"}, {"payload": "p"}, {"meta": {"k": "v"}}], ids=str
)
def test_an_update_sent_again_gives_the_same_job(clocked_board, change):
    lives.ready(clocked_board)
    clocked_board.update("j", **change)
    first = clocked_board.get("j")
    assert clocked_board.update("j", **change).count == 1
    second = clocked_board.get("j")
    for field in ["version", "modified"]:
        first.pop(field, None), second.pop(field, None)
    assert first == second


@pytest.mark.parametrize("words", [["SET", "board", "lease", 5], ["RESET", "board", "lease"]], ids=str)
def test_settings_sent_again_are_the_same(clocked_board, words):
    lives.ready(clocked_board)
    for _ in range(2):
        assert clocked_board.client.execute_command("JOB.SETTINGS", *words) == "OK"


# After a restart and on another server


def test_a_resent_consume_is_answered_after_a_restart(fresh_server):
    server = fresh_server(appendonly=True)
    server.board().set(tombstone_ttl=LONG)
    token = lives.gone(server.board())
    server.restart()
    assert server.board().consume("w1", "j", token=token) == "complete"


def test_resent_commands_are_answered_after_a_promotion(fresh_server):
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    board = primary.board()
    board.set(tombstone_ttl=LONG)
    gone = lives.gone(board, "gone")
    kept = lives.complete(board, "kept")
    failing = lives.claimed(board, "failing")
    before = board.fail("w1", "failing", token=failing)
    lost = lives.claimed(board, "lost", "w2")
    replica.wait_synced(primary)
    primary.kill()
    replica.client().replicaof("NO", "ONE")
    board = replica.board()
    assert board.consume("w1", "gone", token=gone) == "complete"
    assert board.consume("w1", "kept", token=kept) == "complete"
    assert board.fail("w1", "failing", token=failing) == before
    assert board.claim_one("w2", seen=0)["token"] == lost
    with refused("EXISTS gone", board):
        board.post(id="gone")
