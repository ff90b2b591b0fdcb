"""Keys: as long as a job holds one, no other job of the board can have it."""

from __future__ import annotations

import lives
import pytest
from expect import MS, refused
from harness.board import from_pairs
from lives import LONG


def test_a_key_is_held_until_the_job_ends(board):
    board.post(id="a", unique="k")
    assert board.get("a")["unique"] == "k"
    with refused("EXISTS a", board):
        board.post(unique="k")
    board.post(id="other", unique="l")
    lives.claim(board, "a")
    with refused("EXISTS a", board):
        board.post(unique="k")
    board.consume("w1", "a")
    assert board.post(id="b", unique="k") == "b"


def test_a_key_is_one_for_the_board_whatever_the_queue(board):
    board.post(id="a", queue="mail", name="n", unique="k")
    with refused("EXISTS a", board):
        board.post(queue="sms", name="m", unique="k")


def test_a_key_until_the_start_is_free_once_claimed(board):
    board.post(id="a", unique="k", until="start")
    with refused("EXISTS a", board):
        board.post(unique="k")
    lives.claim(board, "a")
    board.post(id="b", unique="k", until="start")
    board.abandon("w1", "a")
    assert board.state("a") == "ready"
    board.delete("b")
    board.post(id="c", unique="k")


def test_a_key_for_a_time_is_held_exactly_so_long(clocked_board, clock):
    board = clocked_board
    board.post(id="a", unique="k", for_=1000)
    lives.claim(board, "a")
    board.consume("w1", "a")
    clock.advance(999)
    with refused("EXISTS a", board):
        board.post(unique="k")
    clock.advance(1)
    board.post(id="b", unique="k", for_=1000)
    clock.advance(1000)
    assert board.state("b") == "ready"
    board.post(id="c", unique="k")


def test_a_key_for_a_time_and_until_is_held_at_most_so_long(clocked_board, clock):
    board = clocked_board
    board.post(id="a", unique="k", until="end", for_=1000)
    board.cancel("a")
    board.post(id="b", unique="k", until="end", for_=1000)
    clock.advance(1000)
    board.post(id="c", unique="k")


def test_replaced_jobs_of_one_key_are_refused_whole(board):
    for id in "ac":
        board.post("old", id=id, unique="k")
        board.cancel(id)
    with refused("EXISTS a c", board):
        board.mpost(["1", "2"], ids=["a", "c"], replace=True)
    assert board.mpost(["1", "2"], ids=["a", "new"], replace=True) == ["a", "new"]


def test_a_replaced_job_takes_its_key_again_where_there_is_room(board):
    board.set(max_keys=1)
    board.post(id="a", unique="k")
    board.cancel("a")
    board.post(id="b", unique="l")
    with refused("LIMIT max-keys", board):
        board.post(id="a", replace=True)
    assert board.post("anew", id="b", replace=True) == "b"


def test_return_answers_the_holder(board):
    board.post("old", id="a", unique="k")
    before = board.digest()
    assert board.post("new", unique="k", onconflict="return") == "a"
    assert board.post("new", id="b", unique="k", onconflict="return") == "a"
    assert board.mpost(["new"], unique="k", onconflict="return") == ["a"]
    assert board.digest() == before


@pytest.mark.parametrize("mode", ["replace", "debounce"])
def test_a_replacement_goes_into_the_holder(clocked_board, clock, mode):
    board = clocked_board
    made = board.post("old", delay=1000, unique="k", user="eve", priority=1)
    due = board.get(made)["due"]
    clock.advance(400)
    assert board.post("new", id="b", delay=1000, unique="k", priority=2, onconflict=mode) == made
    job = board.get(made)
    assert (job["payload"], job["priority"], job["user"]) == ("new", 2, "eve")
    assert job["due"] == due + (400 if mode == "debounce" else 0)
    assert board.get("b") is None
    clock.advance(1000)
    lives.claim(board, made)
    with refused(f"EXISTS {made}", board):
        board.post("newer", unique="k", onconflict=mode)


def test_a_holder_whose_lease_has_ended_can_be_replaced(clocked_board, clock):
    board = clocked_board
    board.post(id="a", unique="k")
    lives.claim(board, "a", lease=1000)
    clock.advance(1000)
    assert board.post("new", unique="k", onconflict="replace") == "a"
    assert board.get("a")["attempt"] == 0


def test_a_requeue_is_refused_when_another_holds_the_key(board):
    for id_ in "ab":
        lives.cancelled(board, id_, unique="k")
    with refused("EXISTS a b", board):
        board.requeue("a", "b")
    board.requeue("a")
    with refused("EXISTS a b", board):
        board.requeue("b")
    with refused("EXISTS a", board):
        board.post(id="b", replace=True)
    board.cancel("a")
    assert board.requeue("b").count == 1


def test_a_requeue_by_filter_holds_back_whose_key_is_taken_and_who_finds_no_room(board):
    for id_ in "abc":
        lives.cancelled(board, id_, unique="k" if id_ > "a" else "other")
    requeue = "REQUEUE", "WHERE", "STATE", "cancelled"
    assert board.call(*requeue) == [2, "0", ["c"]]
    assert board.call(*requeue) == [0, "0", ["c"]]
    board.delete("b")
    board.set(**{"max-jobs": 1})
    assert board.call(*requeue) == [0, "0", ["c"]]
    board.reset("max-jobs")
    assert board.call(*requeue) == [1, "0", []]


def test_delete_frees_a_key_at_once(board):
    board.post(id="a", unique="k", for_=LONG)
    board.delete("a")
    board.post(id="b", unique="k")


def test_a_child_whose_key_is_taken_is_not_posted(clocked_board, clock):
    board = clocked_board
    board.call("SCHEDULE SET", "s", "x", "EVERY", 1000, "UNIQUE", "k", "UNTIL", "end", "FOR", LONG)
    clock.advance(1000)
    clock.advance(5000)
    shown = from_pairs(board.call("SCHEDULE GET", "s"))
    assert (shown["unique"], shown["until"], shown["for"]) == ("k", "end", LONG)
    assert (shown["fired"], shown["refused"]) == (1, 1) or shown["refused"] > 1
    with refused("EXISTS @s@1", board):
        board.call("SCHEDULE RUN", "s")
    lives.claim(board, "@s@1")
    board.consume("w1", "@s@1")
    clock.advance(1000)
    assert board.state("@s@2") == "ready"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["UNTIL", "end"], "UNTIL needs UNIQUE"),
        (["FOR", 5], "FOR needs UNIQUE"),
        (["ONCONFLICT", "return"], "ONCONFLICT needs UNIQUE"),
        (["UNIQUE", ""], "UNIQUE must be 1 to 255 bytes long"),
        (["UNIQUE", "k" * 256], "UNIQUE must be 1 to 255 bytes long"),
        (["UNIQUE", "k", "UNTIL", "never"], "UNTIL must be start or end"),
        (["UNIQUE", "k", "FOR", 0], f"FOR must be an integer from 1 to {2**40}{MS}"),
        (["UNIQUE", "k", "ONCONFLICT", "x"], "ONCONFLICT must be reject, return, replace or debounce"),
        (
            ["ID", "j", "REPLACE", "UNIQUE", "k", "ONCONFLICT", "debounce"],
            "ONCONFLICT replace and debounce exclude XX and REPLACE",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(board, words, error):
    with refused(f"ERR {error}", board):
        board.call("POST", "x", *words)


def test_a_key_goes_with_one_payload(board):
    with refused("ERR UNIQUE goes with a single payload", board):
        board.mpost(["x", "y"], unique="k")
    assert board.mpost(["x"], ids=["a"], unique="k") == ["a"]


def test_keys_come_back_after_a_reload(server):
    board = server.board()
    board.post(id="a", unique="k")
    board.post(id="b", unique="l", for_=LONG)
    lives.claim(board, "b")
    board.consume("w1", "b")
    before = board.digest()
    board.client.execute_command("DEBUG", "RELOAD")
    server.spoil()
    assert board.digest() == before
    for key, holder in [("k", "a"), ("l", "b")]:
        with refused(f"EXISTS {holder}", board):
            board.post(unique=key)
    copy = board.client.copy("board", "copy")
    assert copy
    with refused("EXISTS a"):
        server.board("copy").post(unique="k")
