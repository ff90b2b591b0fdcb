"""Users of jobs, and limits on posting."""

from __future__ import annotations

import lives
import pytest
from expect import refused
from harness import Board
from harness.board import from_pairs

# Users


def test_a_job_has_the_user_that_it_was_posted_for(board):
    board.post(id="a", user="eve")
    board.post(id="b")
    assert board.get("a")["user"] == "eve"
    assert "user" not in board.get("b")
    assert board.claim_one("w1", id="a", fields=["user"]) == {"user": "eve"}


def test_every_job_of_a_batch_has_the_user(board):
    board.mpost(["x", "y"], ids=["a", "b"], user="\u00fc\0\n")
    assert [board.get(id)["user"] for id in "ab"] == ["\u00fc\0\n"] * 2


@pytest.mark.parametrize("mode", ["replace", "xx"])
def test_a_replacing_post_keeps_the_user_unless_it_names_another(board, mode):
    board.post(id="a", user="eve")
    board.post(id="a", **{mode: True})
    assert board.get("a")["user"] == "eve"
    board.post(id="a", user="fay", **{mode: True})
    assert board.get("a")["user"] == "fay"


def test_a_child_has_the_user_of_its_schedule(board):
    board.call("SCHEDULE SET", "s", "x", "EVERY", 3_600_000, "USER", "eve")
    board.call("SCHEDULE SET", "s", "x", "EVERY", 1_800_000)
    assert from_pairs(board.call("SCHEDULE GET", "s"))["user"] == "eve"
    assert board.get(board.call("SCHEDULE RUN", "s"))["user"] == "eve"


@pytest.mark.parametrize("user", ["", "u" * 256])
def test_a_user_has_a_length_that_names_have(board, user):
    with refused("ERR USER must be 1 to 255 bytes long", board):
        board.post(user=user)
    with refused("ERR BY must be 1 to 255 bytes long", board):
        board.cancel("j", by=user)


def test_a_user_cancels_jobs_of_its_own(board):
    board.post(id="a", user="eve")
    lives.claimed(board, "b", user="eve")
    assert board.cancel("a", "nobody", "b", by="eve") == ["cancelled", None, "requested"]
    assert board.cancel("a", "b", by="eve", force=True) == ["already", "cancelled"]


@pytest.mark.parametrize("other", [{"user": "fay"}, {}])
def test_a_selection_with_a_job_of_anothers_is_refused_whole(board: Board, other: dict) -> None:
    board.mpost(["x", "y"], ids=["a", "b"], user="eve")
    board.post(id="c", **other)
    with refused(f"NOTOWNER {other.get('user', '-')} c", board):
        board.cancel("a", "c", "b", by="eve")
    assert board.count(state="ready") == 3


def test_a_selection_by_filter_with_a_job_of_anothers_is_refused_whole(board):
    board.mpost(["x", "y"], ids=["a", "b"], user="eve", queue="q")
    board.post(id="c", user="fay", queue="q")
    with refused("NOTOWNER fay c", board):
        board.call("CANCEL", "WHERE", "QUEUE", "q", "BY", "eve")
    board.delete("c")
    assert board.call("CANCEL", "WHERE", "QUEUE", "q", "BY", "eve") == [2, "0", []]


def test_the_user_is_asked_for_before_the_state(board):
    lives.failed(board, "a", user="fay")
    with refused("NOTOWNER fay a", board):
        board.cancel("a", by="eve")
    with refused("ENDED failed a", board):
        board.cancel("a", by="fay")


def test_users_come_back_after_a_restart(server):
    board = server.board()
    board.post(id="a", user="eve")
    before = board.digest()
    board.client.execute_command("DEBUG", "RELOAD")
    assert board.digest() == before
    with refused("NOTOWNER eve a", board):
        board.cancel("a", by="fay")
