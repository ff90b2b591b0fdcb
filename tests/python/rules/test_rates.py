"""Rates: tokens of boards, queues and groups are taken by claims, and wake who waits when they are there."""

from __future__ import annotations

import time

import pytest
from expect import ids, refused
from harness import Board, wait_until
from lives import LONG
from waiters import Waiter

Q = {"queue": "default"}


def jobs(board: Board, count: int, **words) -> None:
    """Jobs j0, j1 and so on."""
    board.mpost(["x"] * count, ids=[f"{words.get('group', 'j')}{n}" for n in range(count)], **words)


def taken(board: Board, count: int = 99, **words) -> list:
    return ids(board.claim(count=count, **words))


def test_a_burst_and_then_one_for_each_token(clocked_board, clock):
    board = clocked_board
    jobs(board, 9)
    board.set(**Q, rate=4, burst=2)
    assert taken(board) == ["j0", "j1"]
    clock.advance(249)
    assert taken(board) == []
    clock.advance(1)
    assert taken(board) == ["j2"]
    clock.advance(1000)
    assert taken(board) == ["j3", "j4"]


def test_a_rate_by_the_minute_and_a_cost(clocked_board, clock):
    board = clocked_board
    board.post(id="a", cost=3)
    board.post(id="b", cost=2)
    board.post(id="c")
    board.set(**Q, rate=6, rate_period=60_000, burst=3)
    assert board.get("a")["cost"] == 3
    assert "cost" not in board.get("c")
    assert taken(board) == ["a"]
    clock.advance(19_999)
    assert taken(board) == []
    clock.advance(1)
    assert taken(board) == ["b"]


def test_a_claim_by_id_keeps_to_the_rate(clocked_board, clock):
    jobs(clocked_board, 2)
    clocked_board.set(**Q, rate=1)
    clocked_board.claim(id="j1")
    with refused("LIMIT rate", clocked_board):
        clocked_board.claim(id="j0")
    clock.advance(1000)
    assert len(clocked_board.claim(id="j0")) == 1


def test_the_rate_of_the_board_is_that_of_all_queues_together(clocked_board, clock):
    board = clocked_board
    jobs(board, 3)
    board.mpost(["x"] * 3, queue="mail")
    board.set(rate=1, burst=2)
    assert board.settings("rate", "burst", queue="mail") == {"rate": [-1, "default"], "burst": [1, "default"]}
    assert len(board.claim(queues=[], count=9)) == 2
    clock.advance(1000)
    assert len(board.claim(queues=["mail"], count=9)) == 1


def test_a_group_has_its_own_rate_and_the_others_go_on(clocked_board, clock):
    board = clocked_board
    jobs(board, 3, group="a")
    jobs(board, 3, group="b")
    board.set(**Q, group="*", rate=1)
    board.set(**Q, group="b", rate=-1)
    assert taken(board) == ["a0", "b0", "b1", "b2"]
    assert board.groups()["default", "a"]["rate"] == 1
    clock.advance(1000)
    assert taken(board) == ["a1"]


@pytest.mark.parametrize("scope", [{}, Q, {**Q, "group": "g"}], ids=["board", "queue", "group"])
def test_a_waiter_is_woken_when_the_token_is_there(server, scope):
    board = server.board()
    jobs(board, 3, group="g")
    board.set(**scope, rate=5)
    begin = time.monotonic()
    assert taken(board) == ["g0"]
    waiters = [Waiter(server, "w2", await_block=False), Waiter(server, "w3", await_block=False)]
    got = {waiter.job() for waiter in waiters}
    assert got == {"g1", "g2"}
    assert time.monotonic() - begin >= 0.35


def test_nobody_is_woken_before_the_token_is_there(server):
    board = server.board()
    jobs(board, 2)
    board.set(**Q, rate=1, rate_period=LONG // 2)
    assert taken(board) == ["j0"]
    waiter = Waiter(server, "w2")
    board.post_many(3)
    assert waiter.still_waits()
    board.set(**Q, rate=1000, rate_period=1000)
    assert waiter.job() == "j1"


def test_workers_together_keep_to_the_rate(server):
    board = server.board()
    board.post_many(200)
    board.set(**Q, rate=100, burst=5)
    begin, got = time.monotonic(), 0
    while got < 60:
        got += len(board.claim(count=10, block=30_000))
    assert got <= 5 + 100 * (time.monotonic() - begin) + 1


@pytest.mark.parametrize(
    ("name", "value", "bounds"), [("rate", -2, "-1 to 2147483647"), ("rate-period", 0, "1 to 2147483647")]
)
def test_bad_values_are_refused(board, name, value, bounds):
    with refused(f"ERR {name} must be an integer from {bounds}", board):
        board.set(**Q, **{name: value})
    with refused("ERR COST must be an integer from 1 to 2147483647", board):
        board.post(cost=0)


def test_tokens_outlive_reload_restart_and_promotion(fresh_server):
    primary = fresh_server(appendonly=True)
    board = primary.board()
    jobs(board, 4)
    jobs(board, 4, group="g")
    board.set(rate=1, rate_period=LONG, burst=4)
    board.set(**Q, rate=1, rate_period=LONG, burst=3)
    board.set(**Q, group="g", rate=1, rate_period=LONG)
    assert taken(board, lease=LONG, count=2) == ["j0", "g0"]
    board.client.execute_command("DEBUG", "RELOAD")
    assert taken(board, lease=LONG) == ["j1"]
    primary.restart()
    board = primary.board()
    assert taken(board) == []
    replica = fresh_server(replicaof=primary)
    board.set(**Q, burst=4)
    replica.wait_synced(primary)
    copy = replica.board()
    wait_until(lambda: copy.digest() == board.digest())
    replica.client().replicaof("NO", "ONE")
    assert taken(copy) == []
