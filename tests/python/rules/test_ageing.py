"""The setting `ageing`: waiting is worth priority, so that low priorities do not starve."""

from __future__ import annotations

import pytest
from expect import ids, refused


def test_each_time_waited_is_worth_one_step_of_priority(clocked_board, clock):
    board = clocked_board
    board.set(queue="default", ageing=100)
    board.post(id="low")
    clock.advance(99)
    board.post(id="one", priority=1)
    clock.advance(102)
    board.post(id="two", priority=2)
    board.post(id="three", priority=3)
    assert ids(board.list(state="ready", fields=["id"])[1]) == ["three", "one", "low", "two"]
    assert ids(board.claim(count=9)) == ["three", "one", "low", "two"]


def test_it_is_off_by_default(clocked_board, clock):
    clocked_board.post(id="low")
    clock.advance(10**9)
    clocked_board.post(id="high", priority=1)
    assert ids(clocked_board.claim(count=9)) == ["high", "low"]
    assert clocked_board.settings("ageing") == {"ageing": [0, "default"]}


def test_the_value_of_the_board_counts_for_queues_without_their_own(clocked_board, clock):
    board = clocked_board
    board.set(ageing=10)
    board.set(queue="strict", ageing=0)
    for queue in ["default", "strict"]:
        board.post(id=f"{queue} low", queue=queue)
    clock.advance(11)
    for queue in ["default", "strict"]:
        board.post(id=f"{queue} high", queue=queue, priority=1)
    assert ids(board.claim(count=9)) == ["default low", "default high"]
    assert ids(board.claim(count=9, queues=["strict"])) == ["strict high", "strict low"]


def test_a_change_counts_for_jobs_to_come(clocked_board, clock):
    board = clocked_board
    board.post(id="before", priority=-1)
    board.set(ageing=10)
    board.post(id="after", priority=-1)
    clock.advance(11)
    board.post(id="plain")
    assert ids(board.claim(count=9)) == ["after", "plain", "before"]


@pytest.mark.parametrize("value", [-1, 2**31, "x"])
def test_a_bad_value_is_refused(board, value):
    with refused("ERR ageing must be an integer from 0 to 2147483647", board):
        board.set(ageing=value)


def test_it_outlives_reload_and_replication(fresh_server):
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    board = primary.board()
    board.set(ageing=60_000)
    board.mpost(["x"] * 3, ids=["a", "b", "c"], priority=-1)
    board.post(id="high", priority=1)
    board.client.execute_command("DEBUG", "RELOAD")
    board.set(ageing=0)
    assert ids(board.claim(count=2)) == ["high", "a"]
    replica.wait_synced(primary)
    copy = replica.board()
    assert copy.digest() == board.digest()
    replica.client().replicaof("NO", "ONE")
    assert ids(copy.claim(count=9)) == ["b", "c"]
