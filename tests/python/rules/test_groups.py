"""Groups: they take turns within a queue, come and go with their jobs, and all copies agree on the turns."""

from __future__ import annotations

from collections import Counter

import lives
import pytest
from expect import ids, refused
from harness import Board, wait_until
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
    assert taken(board) == ["high", "a0", "b0", "a1", "b1"]


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
        with refused("ERR CURSOR must be 0 or the cursor that the last call returned", board):
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


# --- settings and pauses of groups ---

Q = {"queue": "default"}


def test_settings_of_a_group_win_over_those_of_all_groups(board):
    board.set(**Q, group="*", concurrency=2, weight=3)
    board.set(**Q, group="vip", weight=9)
    assert board.settings("weight", "concurrency", "ordered", **Q, group="vip") == {
        "weight": [9, "group"],
        "concurrency": [2, "groups"],
        "ordered": [0, "default"],
    }
    assert {"weight", "concurrency", "ordered"} <= set(board.settings(**Q, group="*"))
    board.reset(**Q, group="vip")
    assert board.settings("weight", **Q, group="vip") == {"weight": [3, "groups"]}
    assert board.settings("concurrency", **Q) == {"concurrency": [-1, "default"]}


def test_bad_settings_of_groups_are_refused(board):
    with refused("ERR 'lease' is not a setting of groups", board):
        board.set(**Q, group="g", lease=1)
    with refused("ERR 'weight' is a setting of groups", board):
        board.set(**Q, weight=1)
    with refused("ERR 'ordered' is a setting of groups", board):
        board.set(ordered=1)
    with refused("ERR weight must be an integer from 1 to 1000", board):
        board.set(**Q, group="g", weight=0)
    with refused("ERR ordered must be an integer from 0 to 1", board):
        board.set(**Q, group="*", ordered=2)
    with refused("ERR GROUP needs QUEUE before it", board):
        board.set(group="g", weight=1)
    with refused("ERR GROUP needs QUEUE", board):
        board.pause(group="g")


def test_weights_share_the_turns(board):
    for group in "ab":
        board.post_many(40, group=group)
    board.set(**Q, group="a", weight=3)
    got = Counter(board.claim_one(fields=["group"])["group"] for _ in range(40))
    assert 29 <= got["a"] <= 31
    assert board.groups()["default", "a"]["weight"] == 3


def test_a_group_runs_as_many_jobs_as_it_may_and_wakes_who_waits(server):
    board = server.board()
    share(board, a=4, b=1)
    board.set(**Q, group="*", concurrency=2)
    assert taken(board, lease=LONG) == ["a0", "b0", "a1"]
    waiter = Waiter(server, "w2")
    assert waiter.still_waits()
    board.consume("w1", "a0")
    assert waiter.job() == "a2"
    waiter = Waiter(server, "w3")
    assert waiter.still_waits()
    board.set(**Q, group="a", concurrency=3)
    assert waiter.job() == "a3"
    assert board.groups()["default", "a"]["concurrency"] == 3


def test_an_ordered_group_waits_for_its_retry(clocked_board, clock):
    board = clocked_board
    share(board, a=3, b=1)
    board.set(**Q, group="a", ordered=1)
    assert taken(board) == ["a0", "b0"]
    board.fail("w1", "a0", retry=1000)
    assert taken(board) == []
    with refused("NOTREADY ordered", board):
        board.claim(id="a1")
    clock.advance(1000)
    assert taken(board, worker="w2") == ["a0"]
    board.consume("w2", "a0")
    assert taken(board) == ["a1"]


def test_a_waiter_is_woken_when_the_last_job_of_an_ordered_group_ends(server):
    board = server.board()
    share(board, a=3)
    board.set(**Q, group="*", ordered=1)
    assert taken(board, lease=LONG) == ["a0"]
    waiters = [Waiter(server, "w2"), Waiter(server, "w3")]
    board.fail("w1", "a0", retry=60)
    assert waiters[0].job() == "a0"
    assert waiters[1].still_waits()
    board.consume("w2", "a0")
    assert waiters[1].job() == "a1"


def test_a_paused_group_gives_nothing_until_it_is_resumed(server):
    board = server.board()
    share(board, a=2, b=1)
    board.pause(**Q, group="a")
    assert board.groups()["default", "a"]["paused"] == -1
    assert taken(board) == ["b0"]
    with refused("NOTREADY paused", board):
        board.claim(id="a0")
    waiter = Waiter(server, "w2")
    board.resume(**Q, group="b")
    assert waiter.still_waits()
    board.resume(**Q, group="a")
    assert waiter.job() == "a0"


def test_the_pause_of_a_group_ends_by_itself_and_takes_its_jobs_back(server):
    board = server.board()
    share(board, a=200, b=2)
    taken(board, count=202, lease=LONG)
    waiter = Waiter(server, "w2")
    board.pause(**Q, group="a", for_=400, release=True)
    wait_until(lambda: board.groups()["default", "a"]["claimed"] == 0)
    assert board.groups()["default", "b"]["claimed"] == 2
    assert waiter.job() == "a0"
    assert board.groups()["default", "a"]["paused"] == 0


def test_a_change_for_all_groups_reaches_every_one(server):
    board = server.board()
    pipe = board.client.pipeline(transaction=False)
    for n in range(600):
        pipe.execute_command("JOB.MPOST", "board", 2, "x", "y", "GROUP", f"g{n}")
    pipe.execute()
    board.set(**Q, group="*", concurrency=1)
    assert len(board.claim(count=2000, lease=LONG)) == 600
    board.set(**Q, group="*", concurrency=0)
    board.set(**Q, group="*", concurrency=2)
    got = []
    wait_until(lambda: got.extend(board.claim(count=2000, lease=LONG)) or len(got) == 600)


def test_settings_of_groups_outlive_reload_restart_and_replication(fresh_server):
    primary = fresh_server(appendonly=True)
    board = primary.board()
    share(board, a=4, b=4, c=2)
    board.set(**Q, group="*", concurrency=1)
    board.set(**Q, group="a", weight=2, ordered=1, concurrency=5)
    board.pause(**Q, group="c", for_=LONG)
    assert taken(board, lease=LONG) == ["a0", "b0"]
    before = board.groups()
    board.client.execute_command("DEBUG", "RELOAD")
    assert (board.groups(), taken(board)) == (before, [])
    primary.restart()
    board = primary.board()
    assert (board.groups(), taken(board)) == (before, [])
    replica = fresh_server(replicaof=primary)
    board.fail("w1", "a0", retry=LONG)
    board.consume("w1", "b0")
    replica.wait_synced(primary)
    copy = replica.board()
    assert copy.digest() == board.digest()
    replica.client().replicaof("NO", "ONE")
    assert taken(copy) == ["b1"]
