"""OUTPUT of a worker's verbs, and JOB.OUTPUT. Waiting for it is in server/test_output.py."""

from __future__ import annotations

import lives
import pytest
from expect import refused, refused_like


def write(board, number, text, verb="heartbeat", **options):
    return board.call(verb, "w1", "j", output=(number, text), **options)


def test_a_reader_follows_the_output(clocked_board):
    lives.claimed(clocked_board)
    write(clocked_board, 1, "the ")
    write(clocked_board, 2, "sky ")
    assert clocked_board.output("j") == {
        "next": 2,
        "missed": 0,
        "anew": 1,
        "attempt": 1,
        "state": "claimed",
        "chunks": ["the ", "sky "],
    }
    assert clocked_board.output("j", count=1)["next"] == 1
    clocked_board.step("w1", "j", "a", "1", output=(3, "is "))
    write(clocked_board, 4, "blue", verb="consume")
    told = clocked_board.output("j", since=2)
    assert (told["next"], told["anew"], told["state"]) == (4, 0, "complete")
    assert told["chunks"] == ["is ", "blue"]


def test_a_job_without_output_says_so_and_an_unknown_one_is_null(clocked_board):
    lives.ready(clocked_board)
    nothing = {"next": 0, "missed": 0, "anew": 0, "attempt": 0, "state": "ready", "chunks": []}
    assert clocked_board.output("j") == nothing
    assert clocked_board.output("nobody") is None


def test_a_resend_writes_nothing_twice(clocked_board):
    lives.claimed(clocked_board)
    for _ in range(3):
        write(clocked_board, 1, "once")
    assert clocked_board.output("j")["chunks"] == ["once"]
    token = clocked_board.get("j")["token"]
    for _ in range(3):
        assert write(clocked_board, 2, "end", verb="consume", token=token) == "complete"
    assert clocked_board.output("j")["chunks"] == ["once", "end"]


@pytest.mark.parametrize("verb", ["heartbeat", "consume"])
def test_a_chunk_out_of_order_is_refused(clocked_board, verb):
    lives.claimed(clocked_board)
    write(clocked_board, 1, "a")
    with refused("GAP the next chunk of this run is 2", clocked_board):
        write(clocked_board, 3, "c", verb=verb)


@pytest.mark.parametrize("verb", ["heartbeat", "consume"])
@pytest.mark.parametrize("most", [0, 3])
def test_a_chunk_that_is_too_long_is_refused_and_so_is_any_without_the_setting(clocked_board, verb, most):
    lives.claimed(clocked_board)
    clocked_board.set(output_bytes=most)
    with refused("LIMIT output-bytes", clocked_board):
        write(clocked_board, 1, "x" * (most + 1), verb=verb)
    if most:
        write(clocked_board, 1, "x" * most)


def test_an_empty_chunk_and_a_number_below_one_are_refused(clocked_board):
    lives.claimed(clocked_board)
    with refused("ERR OUTPUT needs a chunk of at least one byte", clocked_board):
        write(clocked_board, 1, "")
    with refused_like("ERR OUTPUT must be an integer from 1 to .*", clocked_board):
        write(clocked_board, 0, "x")


def test_a_reader_that_comes_late_learns_what_it_has_missed(clocked_board):
    lives.claimed(clocked_board)
    clocked_board.set(output_bytes=4)
    for number in range(1, 8):
        write(clocked_board, number, str(number))
    told = clocked_board.output("j", since=1)
    assert (told["missed"], told["chunks"], told["next"]) == (2, list("4567"), 7)


def test_a_new_run_writes_anew(clocked_board, clock):
    lives.claimed(clocked_board)
    write(clocked_board, 1, "first")
    clocked_board.fail("w1", "j", retry=0)
    assert clocked_board.output("j")["chunks"] == ["first"]
    clocked_board.claim_one("w1")
    write(clocked_board, 1, "second")
    told = clocked_board.output("j", since=1)
    assert (told["anew"], told["attempt"], told["chunks"], told["next"]) == (1, 2, ["second"], 2)


def test_output_changes_no_field_of_the_record(clocked_board):
    lives.claimed(clocked_board)
    clocked_board.heartbeat("w1", "j")
    before = clocked_board.get("j")
    write(clocked_board, 1, "x")
    after = clocked_board.get("j")
    assert after.pop("version") == before.pop("version") + 1, "the heartbeat's own"
    assert after == before


def test_a_job_with_output_is_kept_for_a_time(clocked_board, clock):
    lives.claimed(clocked_board)
    clocked_board.set(retain_output="30s")
    write(clocked_board, 1, "x", verb="consume", retain=0)
    clock.advance(29_999)
    assert clocked_board.output("j")["chunks"] == ["x"]
    clock.advance(1)
    assert clocked_board.output("j") is None


def test_any_bytes_are_written_and_read(clocked):
    board = clocked.board()
    lives.claimed(board)
    write(board, 1, "é\r\n\0 <b>")
    assert board.output("j")["chunks"] == ["é\r\n\0 <b>"]
