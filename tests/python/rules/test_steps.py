"""JOB.STEP: what a step came to is stored, and no later run does it again."""

from __future__ import annotations

import lives
import pytest
import redis
from expect import refused, refused_like
from harness import EPOCH
from lives import LONG


def steps(board, id="j") -> dict:
    """The values of the job's steps by name."""
    found = board.get(id, fields=["steps"]).get("steps", {})
    return {name: step["value"] for name, step in found.items()}


def test_a_step_is_stored_and_begins_the_lease_anew(clocked_board, clock):
    token = lives.claimed(clocked_board, lease=5000)
    clock.advance(4000)
    answer = clocked_board.step("w1", "j", "charge", "receipt", token=token)
    assert answer == {"deadline": EPOCH + 9000, "cancel": 0}
    assert clocked_board.get("j", fields=["steps"]) == {
        "steps": {"charge": {"value": "receipt", "at": EPOCH + 4000}}
    }
    assert clocked_board.step("w1", "j", "pack", lease=100)["deadline"] == EPOCH + 4100


def test_the_first_value_wins(board):
    token = lives.claimed(board)
    assert "value" not in board.step("w1", "j", "charge", "1", token=token)
    assert "value" not in board.step("w1", "j", "charge", "1", token=token)
    assert board.step("w1", "j", "charge", "2", token=token)["value"] == "1"
    assert steps(board) == {"charge": "1"}


def test_replace_overwrites_and_keeps_the_place(board):
    lives.claimed(board)
    for name in ("row", "charge"):
        board.step("w1", "j", name, "1")
    assert "value" not in board.step("w1", "j", "row", "2", replace=True)
    assert list(steps(board).items()) == [("row", "2"), ("charge", "1")]


def test_names_and_values_are_bytes(server):
    board = server.board(decode_responses=False)
    lives.claimed(board)
    board.step("w1", "j", b"\x00\xff\r\n", b"\xff\x00")
    board.step("w1", "j", "empty", b"")
    found = board.get("j", fields=["steps"])["steps"]
    assert [step["value"] for step in found.values()] == [b"\xff\x00", b""]
    assert board.step("w1", "j", b"\x00\xff\r\n", b"x")["value"] == b"\xff\x00"


def test_steps_come_only_when_they_are_asked_for(board):
    lives.claimed(board)
    board.step("w1", "j", "a")
    assert "steps" not in board.get("j")
    [job] = board.list_all()
    assert "steps" not in job
    [job] = board.list_all(fields=["id", "steps"])
    assert list(job["steps"]) == ["a"]
    board.release("j")
    [job] = board.claim("w2", fields=["id", "steps"])
    assert list(job["steps"]) == ["a"]
    assert board.get("j", fields=["id", "meta"]) == {"id": "j"}
    lives.ready(board, "without")
    assert board.get("without", fields=["id", "steps"]) == {"id": "without"}


COME_BACK = {
    "failure": lambda board, clock: board.fail("w1", "j", retry=0),
    "lapse": lambda board, clock: clock.advance(LONG),
    "abandon": lambda board, clock: board.abandon("w1", "j"),
    "release": lambda board, clock: board.release("j"),
    "requeue": lambda board, clock: (board.fail("w1", "j", noretry=True), board.requeue("j")),
}


@pytest.mark.parametrize("way", COME_BACK)
def test_steps_stay(clocked_board, clock, way):
    lives.claimed(clocked_board)
    clocked_board.step("w1", "j", "charge", "1")
    COME_BACK[way](clocked_board, clock)
    assert clocked_board.state("j") == "ready"
    assert steps(clocked_board) == {"charge": "1"}
    lives.claim(clocked_board, worker="w2")
    assert clocked_board.step("w2", "j", "charge", "2")["value"] == "1"


FORGET = {
    "the next queue": lambda board: board.consume("w1", "j", next="q2"),
    "a post that replaces": lambda board: board.post(id="j", replace=True),
    "FRESH": lambda board: (board.fail("w1", "j", noretry=True), board.requeue("j", fresh=True)),
    "FRESH by filter": lambda board: (
        board.fail("w1", "j", noretry=True),
        board.call("REQUEUE", "WHERE", "STATE", "failed", "FRESH"),
    ),
}


@pytest.mark.parametrize("way", FORGET)
def test_steps_are_forgotten(board, way):
    lives.claimed(board)
    board.step("w1", "j", "charge", "1")
    FORGET[way](board)
    assert (board.state("j"), steps(board)) == ("ready", {})


def test_unstep_forgets_single_steps_in_any_state(board):
    lives.claimed(board)
    for name in "abc":
        board.step("w1", "j", name)
    board.update("j", unstep=["b", "nowhere"])
    assert list(steps(board)) == ["a", "c"]
    assert board.history("j")[-1]["event"] == "updated"
    board.fail("w1", "j", noretry=True)
    board.update("j", unstep=["a"], meta={"k": "v"}, log="seen")
    assert (list(steps(board)), board.state("j")) == (["c"], "failed")
    with refused("ENDED failed j", board):
        board.update("j", unstep=["c"], priority=1)
    board.call("UPDATE", "WHERE", "STATE", "failed", "SET", "UNSTEP", 1, "c")
    assert steps(board) == {}


def test_a_late_step_takes_the_job_back(clocked_board):
    token = lives.lapsed(clocked_board)
    assert clocked_board.step("w1", "j", "charge", token=token)["deadline"] > EPOCH
    assert clocked_board.state("j") == "claimed"


def test_a_late_step_is_stored_though_the_slot_is_taken(clocked_board):
    clocked_board.set(concurrency=1)
    token = lives.lapsed(clocked_board)
    lives.claimed(clocked_board, "other", worker="w2")
    with refused("LIMIT concurrency", clocked_board):
        clocked_board.heartbeat("w1", "j", token=token)
    assert clocked_board.step("w1", "j", "charge", "1", token=token) == {"deadline": 0, "cancel": 0}
    assert (clocked_board.state("j"), steps(clocked_board)) == ("ready", {"charge": "1"})
    before = clocked_board.digest()
    again = clocked_board.step("w1", "j", "charge", "2", token=token)
    assert (again, clocked_board.digest()) == ({"deadline": 0, "cancel": 0, "value": "1"}, before)


def test_settings_limit_how_many_and_how_large(board):
    lives.claimed(board)
    board.set(max_steps=2, max_step_bytes=10)
    board.step("w1", "j", "a", "1234")
    with refused("LIMIT max-step-bytes", board):
        board.step("w1", "j", "b", "12345")
    board.step("w1", "j", "b", "1234")
    with refused("LIMIT max-steps", board):
        board.step("w1", "j", "c", "")
    with refused("LIMIT max-step-bytes", board):
        board.step("w1", "j", "b", "12345", replace=True)
    assert board.step("w1", "j", "b", "12345")["value"] == "1234", "nothing is stored, so nothing is too much"
    board.set(max_steps=0)
    assert board.step("w1", "j", "a", "1", replace=True)["deadline"]


def test_steps_count_in_the_bytes_and_are_never_refused_by_them(board):
    lives.claimed(board)
    board.step("w1", "j", "a", "")
    before = board.info()["record-bytes"]
    board.set(max_bytes=1)
    board.step("w1", "j", "b", "x" * 1000)
    assert 1000 < board.info()["record-bytes"] - before < 1100
    with refused("LIMIT max-bytes", board):
        board.post()


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["n"], "ERR wrong number of arguments .+"),
        (["", "v"], "ERR name must be 1 to 255 bytes long"),
        (["n", "v", "LEASE", 0], "ERR LEASE must be an integer from 1 to .+"),
        (["n", "v", "REPLACE", "REPLACE"], "ERR REPLACE is given twice"),
        (["n", "v", "REPLAC"], "ERR syntax error near 'REPLAC': did you mean REPLACE.+"),
        (["n", "v", "PROGRESS", 5], "ERR syntax error near 'PROGRESS'.*"),
    ],
)
def test_wrong_words_are_refused(board, words, error):
    lives.claimed(board)
    with refused_like(error, board):
        board.call("STEP", "w1", "j", *words)


def test_a_dropped_job_stores_nothing(board):
    token = lives.gone(board)
    with refused("NOJOB no such job", board):
        board.step("w1", "j", "n", token=token)


def test_anybody_may_store_on_an_ownerless_board(board):
    board.set(ownerless="yes")
    lives.ready(board)
    with refused("NOTCLAIMED ready", board):
        board.step("*", "j", "a")
    lives.claim(board)
    assert board.step("*", "j", "a", "1")["deadline"]
    assert steps(board) == {"a": "1"}


def test_a_full_page_of_steps_ends_early(server):
    board = server.board()
    for id in "abc":
        lives.claimed(board, id)
        board.step("w1", id, "s", "x" * 2000)
    with server.configured(jobboard__max_reply=3000):
        page, cursor = [], "0"
        while True:
            cursor, jobs = board.call("LIST", "FIELDS", 2, "id", "steps", "CURSOR", cursor)
            page.append(len(jobs))
            if cursor == "0":
                break
        assert page == [2, 1] or page == [1, 1, 1]
        with pytest.raises(redis.ResponseError, match="longer than max-reply"):
            board.call("MGET", 3, *"abc", "FIELDS", 1, "steps")
