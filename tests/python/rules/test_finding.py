"""Filters that find jobs by what they say and when: in LIST, COUNT and every WHERE."""

from __future__ import annotations

import lives
import pytest
from expect import refused
from harness import EPOCH


def listed(board, *words) -> list[str]:
    """The ids that LIST gives, and that COUNT gives as many."""
    cursor, ids = board.call("LIST", *words, "JUSTID")
    assert cursor in (b"0", "0")
    assert board.call("COUNT", *(word for word in words if word != "REV")) == len(ids)
    return ids


def failed(board, id: str, message: str, kind: str = "IOError", **options) -> None:
    board.post("payload of " + id, id=id, retain=-1, retries=0, **options)
    board.claim(id=id)
    board.fail("w1", id, kind, message)


def test_jobs_are_found_by_what_they_contain(clocked_board):
    board = clocked_board
    board.post('{"to": "ann"}', id="a")
    board.post('{"to": "bob"}', id="b")
    board.post(b"\x00\xffann\x00", id="c")
    assert listed(board, "CONTAINS", "ann") == ["a", "c"]
    assert listed(board, "CONTAINS", b"\xffan") == ["c"]
    assert listed(board, "CONTAINS", "ANN") == []
    assert listed(board, "CONTAINS", "ann", "CONTAINS", "bob") == ["a", "b", "c"]
    assert listed(board, "NOT", "CONTAINS", "ann") == ["b"]


def test_jobs_are_found_by_message_and_stage(clocked_board):
    board = clocked_board
    failed(board, "a", "disk full on /var")
    failed(board, "b", "time is over")
    board.post("", id="c")
    board.claim(id="c")
    board.heartbeat("w1", "c", stage="resizing 3 of 7")
    assert listed(board, "MESSAGE", "disk") == ["a"]
    assert listed(board, "MESSAGE", "is", "KIND", "IOError") == ["a", "b"]
    assert listed(board, "STAGE", "resizing") == ["c"]
    assert listed(board, "STAGE", "absent") == []


def test_fields_of_meta_are_a_kind_of_filter_each(clocked_board):
    board = clocked_board
    for id, plan, region in [
        ("a", "pro", "eu"),
        ("b", "team", "eu"),
        ("c", "pro", "us"),
        ("d", "free", "eu"),
    ]:
        board.post("", id=id, meta={"plan": plan, "region": region})
    assert listed(board, "META", "plan", "pro") == ["a", "c"]
    assert listed(board, "META", "plan", "pro", "META", "plan", "team", "META", "region", "eu") == ["a", "b"]
    assert listed(board, "META", "plan", "pr") == listed(board, "META", "absent", "pro") == []
    assert listed(board, "META", "region", "eu", "NOT", "META", "plan", "free") == ["a", "b"]


def test_jobs_are_found_by_how_their_ids_begin(clocked_board):
    board = clocked_board
    for id in ("order-1", "order-2", "order", "mail-1"):
        board.post("", id=id)
    made = board.post("")
    assert listed(board, "ID", "order-*") == ["order-1", "order-2"]
    assert listed(board, "ID", "order*", "NOT", "ID", "order-1*") == ["order-2", "order"]
    assert listed(board, "ID", made[:20] + "*") == [made]
    assert len(listed(board, "ID", "*")) == 5


def test_times_are_bounds_that_belong_to_them(clock, clocked_board):
    board = clocked_board
    for n in range(4):
        board.post("", id=f"j{n}")
        clock.advance(1_000)
    assert listed(board, "POSTED", EPOCH + 1_000, EPOCH + 2_000) == ["j1", "j2"]
    assert listed(board, "POSTED", "-", EPOCH) == ["j0"]
    assert listed(board, "POSTED", EPOCH + 3_000, "+") == ["j3"]
    assert listed(board, "POSTED", "-2s", "+") == ["j2", "j3"]
    assert listed(board, "POSTED", "-3500ms", "-1s") == ["j1", "j2", "j3"]
    assert listed(board, "NOT", "POSTED", "-2s", "+") == ["j0", "j1"]


def test_jobs_are_listed_by_their_end_whatever_else_is_asked_for(clock, clocked_board):
    """With a kind alone they come in the order of their posts."""
    board = clocked_board
    for id in ("a", "b", "c", "d"):
        board.post("", id=id, retain=-1, retries=0)
    for id in ("d", "b", "a", "c"):
        board.claim(id=id)
        board.fail("w1", id, "IOError" if id != "a" else "Other", "x")
        clock.advance(1_000)
    assert listed(board, "STATE", "failed", "KIND", "IOError") == ["b", "c", "d"]
    assert listed(board, "KIND", "IOError", "ENDED", "-", "+") == ["d", "b", "c"]
    assert listed(board, "KIND", "IOError", "ENDED", "-", "+", "REV") == ["c", "b", "d"]
    assert listed(board, "ENDED", "-3s", "+") == ["b", "a", "c"]
    assert listed(board, "ENDED", "-3s", "-2s", "REV") == ["a", "b"]
    cursor, found = "0", []
    for _ in range(3):
        words = ("KIND", "IOError", "ENDED", "-", "+", "REV", "COUNT", 1, "JUSTID", "CURSOR", cursor)
        cursor, page = board.call("LIST", *words)
        found += page
    assert found == ["c", "b", "d"] and cursor == "0"
    assert listed(board, "STATE", "ready", "ENDED", "-", "+") == []


def test_relatives_are_found_by_the_job_that_they_belong_to(clocked_board):
    board = clocked_board
    board.post("", id="p")
    for id in ("a", "b", "c"):
        board.post("", id=id, parent="p")
    board.post("", id="x", after=["a"])
    board.post("", id="y", after=["a", "b"])
    assert listed(board, "PARENT", "p") == ["a", "b", "c"]
    assert listed(board, "PARENT", "p", "REV") == ["c", "b", "a"]
    assert listed(board, "AFTER", "a") == listed(board, "AFTER", "a", "AFTER", "b") == ["x", "y"]
    assert listed(board, "AFTER", "b", "REV") == ["y"]
    assert listed(board, "PARENT", "absent") == listed(board, "AFTER", "x") == []
    assert board.list_all(parent="p", count=1, justid=True, rev=True) == ["c", "b", "a"]


def test_what_failed_since_then_with_this_text_goes_back_with_one_command(clock, clocked_board):
    board = clocked_board
    failed(board, "old", "disk full")
    clock.advance(3_600_000)
    failed(board, "a", "disk full on /var")
    failed(board, "b", "time is over")
    failed(board, "c", "disk full on /tmp")
    words = ("WHERE", "STATE", "failed", "ENDED", "-30m", "+", "MESSAGE", "disk full")
    assert board.call("REQUEUE", *words, "DRYRUN")[0] == 2
    assert board.count(state="failed") == 4
    assert board.call("REQUEUE", *words)[0] == 2
    assert sorted(board.list_all(state="ready", justid=True)) == ["a", "c"]


def test_a_page_ends_after_so_many_bytes_of_text(clocked_board):
    """10,000 looks of 512 bytes each: not the third payload of 4 MB."""
    board = clocked_board
    for n in range(5):
        board.post("x" * (4 << 20), id=f"j{n}")
    cursor, found = board.list(contains="y", justid=True)
    assert cursor != "0" and found == []
    assert board.list_all(contains="x", justid=True) == [f"j{n}" for n in range(5)]


def test_each_text_that_is_sought_counts(clocked_board):
    """A text counts as four looks, and a call of LIST takes 10,000 of them."""
    clocked_board.mpost(["payload"] * 70)
    texts = [word for n in range(99) for word in ("CONTAINS", f"absent {n}")]
    cursors = ["0"]
    while len(cursors) == 1 or cursors[-1] != "0":
        cursor, count = clocked_board.call("COUNT", *texts, "CURSOR", cursors[-1])
        cursors.append(cursor)
        assert count == 0
    assert len(cursors) == 4, "26 jobs a call"
    assert clocked_board.call("COUNT", *texts[:2], "CURSOR", "0") == ["0", 0]
    with refused(
        "ERR the count searches too much text for one call: give CURSOR 0, then the returned cursor",
        clocked_board,
    ):
        clocked_board.call("COUNT", *texts)


def test_a_larger_page_searches_no_more(clocked_board):
    """2,500 short texts a call, so that it keeps no other client waiting."""
    clocked_board.mpost(["payload"] * 2600)
    for verb in (["LIST", "CONTAINS", "absent"], ["UPDATE", "WHERE", "CONTAINS", "absent"]):
        more = ["SET", "PRIORITY", "1"] if verb[0] == "UPDATE" else []
        for count in (1, 1000):
            reply = clocked_board.call(*verb, "COUNT", count, *more)
            assert "0" not in reply[:2] and 0 in (reply[0], len(reply[1])), reply


@pytest.mark.parametrize("filter", ["POSTED", "ENDED"])
@pytest.mark.parametrize("times", ["1 x", "x 1", "-1 2", "2 -2x", "+ -", "1.5 2", f"1 {1 << 60}"])
def test_a_time_that_is_none_is_refused(clocked_board, filter, times):
    lives.ready(clocked_board)
    error = (
        f"ERR {filter} must be followed by two times: Unix milliseconds, -2h for two hours ago,"
        " - and + for no bound"
    )
    with refused(error, clocked_board):
        clocked_board.call("LIST", filter, *times.split())


def test_times_stand_in_their_order(clocked_board):
    lives.ready(clocked_board)
    with refused("ERR POSTED must name the earlier time first", clocked_board):
        clocked_board.call("COUNT", "POSTED", 5, 4)
    with refused("ERR ENDED needs a value", clocked_board):
        clocked_board.call("COUNT", "ENDED", 5)


def test_an_id_in_full_is_no_filter(clocked_board):
    lives.ready(clocked_board)
    error = "ERR ID must be how an id begins, with '*' behind it: JOB.MGET reads whole ids"
    with refused(error, clocked_board):
        clocked_board.call("LIST", "ID", "j")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["NOT"], "ERR NOT must be followed by a filter, as in NOT STATE ready"),
        (["NOT", "REV"], "ERR NOT must be followed by a filter, as in NOT STATE ready"),
        (["META", "plan"], "ERR META must be followed by a field and its value, as in META plan pro"),
        (["NOT", "META", "plan"], "ERR META must be followed by a field and its value, as in META plan pro"),
        (["META"], "ERR META needs a value"),
    ],
    ids=str,
)
def test_half_a_filter_is_refused(clocked_board, words, error):
    lives.ready(clocked_board)
    with refused(error, clocked_board):
        clocked_board.call("LIST", *words)


@pytest.mark.parametrize("filter", ["CONTAINS", "MESSAGE", "STAGE", "PARENT", "AFTER", "META"])
@pytest.mark.parametrize("value", ["", "x" * 256])
def test_a_text_to_look_for_has_1_to_255_bytes(clocked_board, filter, value):
    lives.ready(clocked_board)
    with refused(f"ERR {filter} must be 1 to 255 bytes long", clocked_board):
        clocked_board.call("LIST", filter, value, *["v"] * (filter == "META"))
