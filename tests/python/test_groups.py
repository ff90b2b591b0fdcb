"""Groups: they take turns within a queue, come and go with their jobs, and all copies agree on the turns."""

from __future__ import annotations

from collections import Counter

import lives
import pytest
from expect import ids, refused
from harness import Board
from lives import LONG
from waiters import Waiter


def share(board: Board, **groups: int) -> None:
    """Jobs a0, a1 and so on of group a; those of `plain` have none."""
    for group, count in groups.items():
        words = {} if group == "plain" else {"group": group}
        board.mpost(["x"] * count, ids=[f"{group}{n}" for n in range(count)], **words)


def taken(board: Board, count: int = 99, **words) -> list:
    return ids(board.claim(count=count, **words))


def test_groups_take_turns(board):
    share(board, a=3, b=2, c=1, plain=2)
    assert taken(board) == ["a0", "b0", "c0", "plain0", "a1", "b1", "plain1", "a2"]


def test_a_single_job_waits_for_one_round_at_most(board):
    board.post_many(3000, group="big")
    board.post_many(10, group="other")
    board.claim(count=5)
    board.post(id="alone", group="small")
    assert "alone" in taken(board, count=3)


def test_each_group_gets_its_share_of_one_claim_after_another(board):
    for group in "abcd":
        board.post_many(20, group=group)
    got = Counter(board.claim_one(fields=["group"])["group"] for _ in range(40))
    assert got == {group: 10 for group in "abcd"}


def test_a_higher_priority_of_any_group_goes_first(board):
    share(board, a=2, b=2)
    board.post(id="high", group="a", priority=1)
    assert taken(board) == ["high", "b0", "a0", "b1", "a1"]


def test_a_record_tells_its_group(board):
    board.post(id="a", group="g\n1")
    board.post(id="b")
    assert board.get("a")["group"] == "g\n1"
    assert "group" not in board.get("b")
    assert board.claim_one(fields=["id", "group"])["group"] == "g\n1"


def test_a_replacing_post_changes_the_group_or_keeps_it(board):
    board.post(id="a", group="g")
    board.post(id="a", replace=True)
    assert board.get("a")["group"] == "g"
    board.post(id="a", xx=True, group="h")
    assert board.get("a")["group"] == "h"
    assert list(board.groups()) == [("default", "h")]


def test_children_of_a_schedule_have_its_group(board):
    board.client.execute_command("JOB.SCHEDULE", "SET", "board", "tick", "x", "EVERY", 60_000, "GROUP", "g")
    board.client.execute_command("JOB.SCHEDULE", "RUN", "board", "tick")
    assert board.get("@tick@1")["group"] == "g"


def test_groups_are_counted_and_listed(board):
    share(board, a=3, b=2, plain=1)
    board.post(id="mail", queue="mail", group="a")
    board.claim(count=3, lease=LONG)
    groups = board.groups(count=1)
    assert list(groups) == [("default", "a"), ("default", "b"), ("mail", "a")]
    assert (groups["default", "a"]["ready"], groups["default", "a"]["claimed"]) == (2, 1)
    assert list(board.groups(queue="mail")) == [("mail", "a")]
    assert board.count(group="a") == 4
    assert board.count(group="a", state="ready") == 3
    assert board.count(group="a", queue="mail") == 1
    assert ids(board.list(group="b", state="ready", fields=["id"])[1]) == ["b1"]
    assert ids(board.list(not_group="a", state="ready", fields=["id"])[1]) == ["b1"]


def test_groups_go_with_their_jobs(board):
    board.post(id="j", group="g")
    lives.claim(board, "j")
    assert list(board.groups()) == [("default", "g")]
    board.consume("w1", "j")
    assert board.groups() == {}


@pytest.mark.parametrize("group", ["*", "", "g" * 256])
def test_a_bad_name_of_a_group_is_refused(board, group):
    with refused(
        "ERR GROUP must not be '*'" if group == "*" else "ERR GROUP must be 1 to 255 bytes long", board
    ):
        board.post(group=group)


def test_a_bad_cursor_of_groups_is_refused(board):
    for cursor in ["x", "1", ">", ">1", ">x.q", "1.q"]:
        with refused("ERR CURSOR must be 0 or one that the last call gave", board):
            board.call("GROUPS", "CURSOR", cursor)


def test_blocked_claims_take_turns_too(server):
    board = server.board()
    board.pause()
    share(board, a=3, b=2)
    waiters = [Waiter(server, f"w{n}") for n in range(3)]
    board.resume()
    assert [waiter.job() for waiter in waiters] == ["a0", "b0", "a1"]


def test_rounds_go_on_over_reload_restart_and_promotion(fresh_server):
    primary = fresh_server(appendonly=True)
    board = primary.board()
    share(board, a=5, b=5, plain=5)
    got = taken(board, count=4)
    board.client.execute_command("DEBUG", "RELOAD")
    got += taken(board, count=1)
    primary.restart()
    board = primary.board()
    got += taken(board, count=3)
    replica = fresh_server(replicaof=primary)
    got += taken(board, count=1)
    replica.wait_synced(primary)
    copy = replica.board()
    assert copy.digest() == board.digest()
    assert copy.groups() == board.groups()
    replica.client().replicaof("NO", "ONE")
    got += taken(copy)
    expected = [f"{group}{n}" for n in range(5) for group in ["a", "b", "plain"]]
    assert got == expected


def test_a_copy_and_a_dump_take_the_same_turns(board):
    share(board, a=4, b=4)
    board.claim(count=3)
    board.client.copy("board", "copy")
    board.client.restore("restored", 0, board.client.dump("board"))
    orders = [taken(Board(board.client, key)) for key in ["board", "copy", "restored"]]
    assert orders[0] == orders[1] == orders[2] == ["b1", "a2", "b2", "a3", "b3"]
