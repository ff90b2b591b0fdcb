"""Active defragmentation: Redis with its own jemalloc moves what the jobs of a board hold."""

from __future__ import annotations

import random

import lives
import pytest
import redis
from expect import check_consistent
from harness import wait_until

pytestmark = pytest.mark.long

EAGER = {
    "active-defrag-ignore-bytes": 1,
    "active-defrag-threshold-lower": 1,
    "active-defrag-threshold-upper": 2,
    "active-defrag-cycle-min": 25,
    "active-defrag-cycle-max": 50,
    "jemalloc-bg-thread": "no",
}


@pytest.fixture
def defragmenting(fresh_server):
    """A server that moves all that it can, as soon as it is told to."""
    server = fresh_server()
    client = server.client()
    try:
        client.config_set("activedefrag", "yes")
    except redis.ResponseError:
        pytest.skip("this server is built without active defragmentation")
    client.config_set("activedefrag", "no")
    for name, value in EAGER.items():
        client.config_set(name, value)
    return server


def ratio(server) -> float:
    info = server.info("memory")
    return info["allocator_active"] / info["allocator_allocated"]


def thin_out(board, ids: list) -> None:
    """Deletes four of five jobs, here and there: their pages stay in use by the fifth."""
    gone = [id for number, id in enumerate(ids) if number % 5]
    for start in range(0, len(gone), 1000):
        board.delete(*gone[start : start + 1000])


def test_what_deleted_jobs_leave_behind_is_given_back(defragmenting):
    server, board = defragmenting, defragmenting.board()
    draw = random.Random(1)
    ids: list = []
    for _ in range(40):
        ids += board.mpost(["x" * draw.randrange(20, 400) for _ in range(1000)])
        draw.shuffle(ids)
    thin_out(board, ids)
    wait_until(lambda: ratio(server) > 2, what="the server has seen the gaps: it looks ten times a second")
    digest = board.digest()
    board.client.config_set("activedefrag", "yes")
    wait_until(lambda: ratio(server) < 1.6, what="half of the gaps are gone")
    assert server.info("stats")["active_defrag_key_hits"] > 0
    board.client.config_set("activedefrag", "no")
    assert board.digest() == digest
    check_consistent(board)


def test_boards_are_worked_on_while_their_memory_moves(defragmenting):
    server, board = defragmenting, defragmenting.board()
    board.set(retain_failed=-1, retain_result=-1)
    board.client.config_set("activedefrag", "yes")
    number = 0
    while number < 200 or not server.info("stats")["active_defrag_hits"]:
        assert number < 2000, "nothing moves"
        number += 1
        ids = board.mpost(["x" * (number * 7 % 500)] * 200, meta={"a": "b" * (number % 90)}, tags=["t"])
        board.delete(*ids[:150])
        for job in board.claim("w1", count=20):
            board.heartbeat("w1", job["id"], token=job["token"], log="so far", stage="s" * (number % 60))
            board.consume("w1", job["id"], token=job["token"], result="r" * (number % 200))
        for job in board.claim("w1", count=5):
            board.fail("w1", job["id"], "kind", "message", token=job["token"], noretry=True)
        board.delete(*board.list(state="complete", count=10, justid=True)[1])
    board.client.config_set("activedefrag", "no")
    check_consistent(board)
    digest = board.digest()
    board.client.execute_command("DEBUG", "RELOAD")
    assert board.digest() == digest


def test_a_small_board_and_all_states_stay_as_they_were(defragmenting):
    boards = [defragmenting.board(f"board-{number}") for number in range(3)]
    for board in boards:
        lives.busy(board)
    digests = [board.digest() for board in boards]
    client = defragmenting.client()
    client.config_set("activedefrag", "yes")
    seen = defragmenting.info("stats")["active_defrag_misses"]
    wait_until(lambda: defragmenting.info("stats")["active_defrag_misses"] > seen + 1000)
    client.config_set("activedefrag", "no")
    for board in boards:
        check_consistent(board)
    assert [board.digest() for board in boards] == digests
