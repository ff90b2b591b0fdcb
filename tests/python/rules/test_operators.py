"""JOB.RELEASE, JOB.REQUEUE, JOB.DELETE, JOB.UPDATE: an operator's verbs over a selection of jobs."""

from __future__ import annotations

import lives
import pytest
from expect import drain, ids, refused, refused_like
from harness import EPOCH
from lives import ENDED, LONG

NOT_CLAIMED = ["scheduled", "ready", "retrying", *ENDED]
LIVE = ["scheduled", "ready", "claimed", "retrying"]


@pytest.mark.parametrize("verb", ["release", "requeue", "delete"])
def test_unknown_ids_are_tolerated_and_told(clocked_board, verb):
    lives.ready(clocked_board, "other")
    assert getattr(clocked_board, verb)("a", "b") == (0, "0", ["a", "b"])


@pytest.mark.parametrize("verb", ["release", "requeue", "delete"])
def test_a_board_that_does_not_exist_knows_no_ids(clocked_board, verb):
    assert getattr(clocked_board, verb)("a", "b") == (0, "0", ["a", "b"])
    assert not clocked_board.client.exists("board")


def test_an_update_of_unknown_ids_tells_them(clocked_board):
    assert clocked_board.update("a", "b", priority=1) == (0, "0", ["a", "b"])
    assert not clocked_board.client.exists("board")


# Release


def test_a_released_job_is_ready_again(clocked_board):
    token = lives.claimed(clocked_board, "a")
    lives.claimed_by_another(clocked_board, "b")
    assert clocked_board.release("a", "unknown", "b") == (2, "0", ["unknown"])
    assert clocked_board.state("a") == clocked_board.state("b") == "ready"
    assert clocked_board.events("a")[-1] == "released"
    with refused("NOTCLAIMED ready", clocked_board):
        clocked_board.consume("w1", "a", token=token)


def test_a_release_costs_nothing(clocked_board):
    lives.ready(clocked_board, retries=0, lapses=0)
    for _ in range(5):
        lives.claim(clocked_board)
        clocked_board.release("j")
    assert clocked_board.state("j") == "ready"


@pytest.mark.parametrize("life", NOT_CLAIMED)
def test_a_selection_with_a_job_that_nobody_holds_is_not_released(clocked_board, life):
    lives.LIVES[life](clocked_board)
    lives.claimed(clocked_board, "a")
    for selection in [("a", "j"), ("j", "a"), ("j",)]:
        with refused(f"NOTCLAIMED {clocked_board.state('j')} j", clocked_board):
            clocked_board.release(*selection)
    assert clocked_board.state("a") == "claimed"


def test_a_job_named_twice_is_released_once(clocked_board):
    lives.claimed(clocked_board)
    assert clocked_board.release("j", "j").count == 1
    assert clocked_board.state("j") == "ready"


# Requeue


@pytest.mark.parametrize("life", ["failed", "cancelled", "trashed"])
def test_an_ended_job_is_ready_again(clocked_board, life):
    lives.LIVES[life](clocked_board, retries=3)
    assert clocked_board.requeue("j", "unknown") == (1, "0", ["unknown"])
    job = clocked_board.get("j")
    assert (job["state"], job["left"]) == ("ready", 3)
    assert "ended" not in job
    assert clocked_board.events("j")[-1] == "requeued"
    assert clocked_board.claim_one("w2")["attempt"] == 1


def test_a_requeued_job_may_go_to_another_queue(clocked_board):
    lives.failed(clocked_board, queue="mail")
    assert clocked_board.requeue("j", queue="slow").count == 1
    assert clocked_board.get("j")["queue"] == "slow"
    assert clocked_board.claim(queues=["mail"]) == []
    assert clocked_board.claim_one(queues=["slow"])["id"] == "j"


def test_a_requeued_job_may_get_another_payload_and_keeps_its_steps(board):
    token = board.claim_one("w", id=board.post("wrong", id="j"))["token"]
    board.step("w", "j", "charge", "receipt", token=token)
    board.fail("w", "j", "ValueError", "no address", token=token, noretry=True)
    board.client.execute_command("JOB.REQUEUE", "board", 1, "j", "PAYLOAD", "right")
    job = board.get("j", fields=["state", "payload", "steps"])
    assert (job["state"], job["payload"]) == ("ready", "right")
    assert job["steps"]["charge"]["value"] == "receipt"


@pytest.mark.parametrize(
    "words", [("2", "a", "b", "PAYLOAD", "x"), ("WHERE", "STATE", "failed", "PAYLOAD", "x")]
)
def test_a_payload_is_for_one_job(board, words):
    for id in ("a", "b"):
        board.post(id=id)
        board.cancel(id)
    with refused("ERR PAYLOAD needs exactly one id", board):
        board.client.execute_command("JOB.REQUEUE", "board", *words)


def test_requeued_jobs_run_in_the_order_in_which_they_were_posted(clocked_board, clock):
    for id in "abc":
        lives.ready(clocked_board, id)
        clock.advance(1)
    for id in "cab":
        clocked_board.cancel(id)
    clocked_board.requeue("b", "c", "a")
    assert drain(clocked_board) == ["a", "b", "c"]


@pytest.mark.parametrize("life", LIVE)
def test_a_selection_with_a_live_job_is_not_requeued(clocked_board, life):
    lives.LIVES[life](clocked_board)
    lives.failed(clocked_board, "a")
    state = clocked_board.state("j")
    for selection in [("a", "j"), ("j", "a"), ("j",)]:
        with refused(f"NOTENDED {state} j", clocked_board):
            clocked_board.requeue(*selection)


def test_a_selection_with_a_complete_job_is_not_requeued(clocked_board):
    lives.complete(clocked_board)
    lives.failed(clocked_board, "a")
    with refused("ENDED complete j", clocked_board):
        clocked_board.requeue("a", "j")
    assert clocked_board.state("a") == "failed"


def test_a_requeued_job_has_all_its_lapses_again(clocked_board, clock):
    lives.ready(clocked_board, lapses=0)
    lives.claim(clocked_board, lease=10)
    clock.advance(10)
    assert clocked_board.get("j")["kind"] == "lapsed"
    clocked_board.set(lapses=5)
    clocked_board.requeue("j")
    assert clocked_board.state("j") == "ready"


def test_an_expired_job_that_is_requeued_waits_as_long_again(clocked_board, clock):
    lives.ready(clocked_board, expire=100)
    clock.advance(100)
    assert clocked_board.state("j") == "failed"
    clocked_board.requeue("j")
    clock.advance(99)
    assert clocked_board.state("j") == "ready"
    clock.advance(1)
    assert clocked_board.state("j") == "failed"


# Delete


@pytest.mark.parametrize("life", lives.LIVES)
def test_a_job_of_any_state_is_deleted(clocked_board, life):
    lives.LIVES[life](clocked_board)
    lives.ready(clocked_board, "other")
    assert clocked_board.delete("unknown", "j") == (1, "0", ["unknown"])
    assert clocked_board.get("j") is None
    assert clocked_board.info()["jobs"] == 1
    assert drain(clocked_board) == ["other"]


def test_an_id_is_free_after_its_job_was_deleted(clocked_board):
    lives.ready(clocked_board)
    clocked_board.delete("j")
    assert clocked_board.post(id="j") == "j"


def test_deleting_what_was_dropped_forgets_its_tombstone(clocked_board):
    lives.gone(clocked_board)
    clocked_board.delete("j")
    assert clocked_board.post(id="j") == "j"


def test_the_worker_of_a_deleted_job_is_told(clocked_board):
    token = lives.claimed(clocked_board)
    clocked_board.delete("j")
    with refused("NOJOB no such job", clocked_board):
        clocked_board.consume("w1", "j", token=token)


def test_a_board_stays_when_its_last_job_is_deleted(clocked_board):
    lives.ready(clocked_board)
    clocked_board.delete("j")
    assert clocked_board.client.exists("board") == 1
    assert clocked_board.info()["jobs"] == 0


# Update


@pytest.mark.parametrize(
    ("change", "field", "value"),
    [
        ({"priority": -3}, "priority", -3),
        ({"queue": "slow"}, "queue", "slow"),
        ({"payload": "new"}, "payload", "new"),
        ({"retries": 1}, "left", 1),
        ({"retries": -1}, "left", -1),
        ({"meta": {"k": "v"}}, "meta", {"k": "v"}),
        ({"progress": 5}, "progress", 5.0),
    ],
    ids=str,
)
@pytest.mark.parametrize("life", ["scheduled", "ready", "claimed"])
def test_a_live_job_is_changed(clocked_board, life, change, field, value):
    lives.LIVES[life](clocked_board)
    state = clocked_board.state("j")
    assert clocked_board.update("j", "unknown", **change) == (1, "0", ["unknown"])
    assert clocked_board.get("j")[field] == value
    assert clocked_board.state("j") == state
    assert clocked_board.events("j")[-1] == "updated"


def test_several_things_are_changed_at_once(clocked_board):
    for id in "ab":
        lives.ready(clocked_board, id)
    assert clocked_board.update("a", "b", priority=4, queue="q", payload="p").count == 2
    for job in clocked_board.mget("ab"):
        assert (job["priority"], job["queue"], job["payload"]) == (4, "q", "p")


def test_a_job_with_another_priority_keeps_its_age(clocked_board, clock):
    for id in "abcd":
        lives.ready(clocked_board, id, priority=1 if id == "c" else 0)
        clock.advance(1)
    clocked_board.update("b", priority=1)
    assert drain(clocked_board) == ["b", "c", "a", "d"]


def test_a_job_moved_to_another_queue_is_claimed_there(clocked_board):
    lives.ready(clocked_board)
    clocked_board.update("j", queue="slow")
    assert clocked_board.claim() == []
    assert clocked_board.claim_one(queues=["slow"])["id"] == "j"


def test_a_claimed_job_moved_to_another_queue_comes_back_there(clocked_board):
    token = lives.claimed(clocked_board)
    clocked_board.update("j", queue="slow")
    clocked_board.abandon("w1", "j", token=token)
    assert clocked_board.claim_one(queues=["slow"])["id"] == "j"


@pytest.mark.parametrize("life", ["scheduled", "ready", "retrying"])
@pytest.mark.parametrize("when", [{"delay": 500}, {"at": EPOCH + 500}], ids=str)
def test_a_waiting_job_is_put_off(clocked_board, clock, life, when):
    lives.LIVES[life](clocked_board)
    clocked_board.update("j", **when)
    job = clocked_board.get("j")
    assert (job["state"], job["due"]) == ("scheduled", EPOCH + 500)
    assert clocked_board.claim() == []
    clock.advance(500)
    assert clocked_board.claim_one()["id"] == "j"


@pytest.mark.parametrize("when", [{"delay": 0}, {"at": 1}], ids=str)
def test_a_scheduled_job_is_made_ready(clocked_board, when):
    lives.scheduled(clocked_board)
    clocked_board.update("j", **when)
    assert clocked_board.claim_one()["id"] == "j"


@pytest.mark.parametrize("when", [{"delay": 5}, {"at": EPOCH}], ids=str)
def test_a_claimed_job_cannot_be_put_off(clocked_board, when):
    lives.claimed(clocked_board)
    lives.ready(clocked_board, "a")
    with refused("CLAIMED w1 j", clocked_board):
        clocked_board.update("a", "j", **when)


def test_another_lease_holds_from_the_next_claim_or_heartbeat(clocked_board):
    lives.ready(clocked_board)
    clocked_board.update("j", lease=123)
    assert clocked_board.claim_one()["deadline"] == EPOCH + 123


@pytest.mark.parametrize("life", ENDED)
def test_a_selection_with_an_ended_job_is_not_changed(clocked_board, life):
    lives.LIVES[life](clocked_board)
    lives.ready(clocked_board, "a")
    for selection in [("a", "j"), ("j", "a"), ("j",)]:
        with refused(f"ENDED {life} j", clocked_board):
            clocked_board.update(*selection, priority=1)


def test_an_update_changes_something(clocked_board):
    lives.ready(clocked_board)
    with refused_like("ERR .+", clocked_board):
        clocked_board.call("UPDATE", 1, "j", "SET")


def test_an_update_needs_the_word_set(clocked_board):
    lives.ready(clocked_board)
    with refused_like("ERR syntax error.*", clocked_board):
        clocked_board.call("UPDATE", 1, "j", "PRIORITY", 1)


def test_an_operator_may_write_into_the_history(clocked_board):
    lives.ready(clocked_board)
    clocked_board.update("j", log="looked at it")
    entries = [entry for entry in clocked_board.history("j") if entry["event"] == "log"]
    assert [entry["message"] for entry in entries] == ["looked at it"]
    assert "worker" not in entries[0]


def test_meta_is_merged(clocked_board):
    lives.ready(clocked_board, meta={"a": "1", "b": "2"})
    clocked_board.update("j", meta={"b": "3", "c": "4"})
    assert clocked_board.get("j")["meta"] == {"a": "1", "b": "3", "c": "4"}


def test_fewer_retries_than_failures_leave_none(clocked_board):
    lives.retrying(clocked_board, retries=5)
    clocked_board.update("j", retries=0)
    assert clocked_board.get("j")["left"] == 0


@pytest.mark.parametrize(
    "words", ["QUEUE ''", "PROGRESS 101", "PAYLOAD", "DELAY 1 AT 1", "META 1 f", "NAME n"], ids=str
)
def test_a_strange_update_is_refused(clocked_board, words):
    lives.ready(clocked_board)
    with refused_like("ERR .+", clocked_board):
        clocked_board.call("UPDATE", 1, "j", "SET", *words.replace("''", "").split(" "))


def test_a_job_named_twice_is_changed_once(clocked_board):
    lives.ready(clocked_board)
    assert clocked_board.update("j", "j", priority=1).count == 1


def test_an_update_puts_off_many(clocked_board):
    posted = clocked_board.post_many(1000)
    assert clocked_board.update(*posted, delay=LONG).count == 1000
    assert clocked_board.info()["scheduled"] == 1000


def test_jobs_that_are_released_to_the_front_come_next(clocked_board, clock):
    board = clocked_board
    for id in ["a", "b", "c", "d"]:
        lives.ready(board, id)
        clock.advance(10)
    board.claim("w1", id="c")
    board.claim("w1", id="d")
    assert board.release("d", "c", "d", front=True).count == 2
    assert ids(board.claim("w1", count=9)) == ["d", "c", "a", "b"]
    done = board.where("release", "FRONT", worker="w1", count=2)
    assert ids(board.claim("w1", count=2)) == ["d", "c"] and done.count == 2


def test_the_front_is_that_of_the_priority(clocked_board):
    board = clocked_board
    for id, priority in [("high", 5), ("a", 0), ("b", 0)]:
        lives.ready(board, id, priority=priority)
    board.claim("w1", id="b")
    board.release("b", front=True)
    assert ids(board.claim("w1", count=9)) == ["high", "b", "a"]
    lives.complete(board, "x")
    with refused("NOTCLAIMED complete x", board):
        board.release("x", front=True)
    with refused("ERR FRONT is given twice", board):
        board.call("RELEASE", 1, "a", "FRONT", "FRONT")
    with refused("ERR syntax error near 'FRNT': did you mean FRONT?", board):
        board.call("RELEASE", 1, "a", "FRNT")
