"""The setting `concurrency`: no more jobs of a queue run than it says; a free slot wakes who waits."""

from __future__ import annotations

import threading

import lives
import pytest
from expect import ids, refused
from harness import Board, wait_until
from lives import LONG
from waiters import Waiter


def limited(board: Board, jobs: int = 2, most: int = 1) -> None:
    """Jobs a, b and so on in the default queue, of which so many may run."""
    board.mpost(["x"] * jobs, ids=[chr(ord("a") + n) for n in range(jobs)])
    board.set(concurrency=most, queue="default")


def test_no_more_jobs_run_than_the_setting_says(board):
    limited(board, jobs=5, most=2)
    board.post(id="other", queue="other")
    assert ids(board.claim(queues=[], count=9)) == ["a", "b", "other"]
    assert board.claim("w2") == []
    assert board.queues()["default"]["concurrency"] == 2
    assert board.queues()["other"]["concurrency"] == -1
    with refused("LIMIT concurrency", board):
        board.claim(id="c")


def test_a_late_heartbeat_does_not_exceed_the_limit(clocked_board, clock):
    board = clocked_board
    limited(board)
    token = lives.claim(board, "a", lease=1000)
    clock.advance(1000)
    lives.claim(board, "b", "w2")
    with refused("LIMIT concurrency", board):
        board.heartbeat("w1", "a", token=token)
    assert board.mheartbeat("w1", ["a"], tokens=[token]) == [["LIMIT", "concurrency"]]
    assert board.consume("w1", "a", token=token) == "complete"


def test_running_jobs_are_not_moved_into_a_full_queue(board):
    board.set(concurrency=1, queue="default")
    for id in "ab":
        lives.claimed(board, id, queue="other")
    with refused("LIMIT concurrency", board):
        board.update("a", "b", queue="default")
    assert board.update("a", queue="default").count == 1
    with refused("LIMIT concurrency b", board):
        board.update("a", "b", queue="default")


FREED = {
    "consume": lambda board: board.consume("w1", "a"),
    "fail": lambda board: board.fail("w1", "a"),
    "abandon": lambda board: board.abandon("w1", "a", delay=LONG),
    "trash": lambda board: board.trash("w1", "a"),
    "cancel": lambda board: board.cancel("a", force=True),
    "delete": lambda board: board.delete("a"),
    "replace": lambda board: board.post(id="a", replace=True, delay=LONG),
    "update": lambda board: board.update("a", queue="other"),
    "raise": lambda board: board.set(concurrency=2, queue="default"),
    "reset": lambda board: board.reset("concurrency", queue="default"),
}


@pytest.mark.parametrize("what", FREED)
def test_a_waiter_is_woken_when_a_slot_gets_free(server, what):
    board = server.board()
    limited(board)
    lives.claim(board, "a")
    waiter = Waiter(server, "w2")
    assert waiter.still_waits()
    FREED[what](board)
    assert waiter.job() == "b"


def test_a_waiter_is_woken_by_a_release_and_gets_the_best(server):
    board = server.board()
    limited(board)
    lives.claim(board, "a")
    waiter = Waiter(server, "w2")
    board.release("a")
    assert waiter.job() == "a"
    assert board.queues()["default"]["claimed"] == 1


def test_a_waiter_is_woken_when_a_lease_ends(server):
    board = server.board()
    limited(board)
    lives.claim(board, "b", lease=40)
    assert Waiter(server, "w2", await_block=False).job() == "a"
    assert board.queues()["default"]["claimed"] == 1


def test_a_post_into_a_full_queue_wakes_nobody(server):
    board = server.board()
    limited(board, jobs=1)
    lives.claim(board, "a")
    waiters = [Waiter(server, f"w{n}") for n in (2, 3)]
    board.post_many(5)
    assert all(waiter.still_waits() for waiter in waiters)
    board.set(concurrency=2, queue="default")
    assert waiters[0].reply()
    assert waiters[1].still_waits()


def test_the_limit_of_the_board_is_that_of_each_queue_without_its_own(server):
    board = server.board()
    board.set(concurrency=1)
    board.set(concurrency=2, queue="mail")
    board.post_many(4, queue="mail")
    board.post_many(4)
    assert len(board.claim(queues=[], count=9)) == 3
    waiter = Waiter(server, "w2", queues=["default"])
    board.set(concurrency=2)
    assert waiter.reply()


def test_lowering_does_no_harm(board):
    limited(board, jobs=4, most=3)
    claimed = board.claim(count=3, lease=LONG)
    board.set(concurrency=1, queue="default")
    for job in claimed[:2]:
        board.heartbeat("w1", job["id"], token=job["token"])
        assert board.consume("w1", job["id"], token=job["token"]) == "complete"
        assert board.claim("w2") == []
    board.consume("w1", claimed[2]["id"])
    assert ids(board.claim("w2")) == ["d"]


def test_many_workers_never_exceed_the_limit(server):
    board = server.board()
    board.set(concurrency=3, queue="default")
    board.post_many(120)
    over, lock, running = [], threading.Lock(), [0]

    def work(name: str) -> None:
        mine = server.board()
        while found := mine.claim(name, block=500):
            with lock:
                running[0] += 1
                if running[0] > 3:
                    over.append(running[0])
            with lock:
                running[0] -= 1
            mine.consume(name, found[0]["id"], token=found[0]["token"])

    threads = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not over and board.count() == 0


def test_the_limit_outlives_restart_reload_and_replication(fresh_server):
    primary = fresh_server(appendonly=True)
    board = primary.board()
    limited(board, jobs=4, most=2)
    board.claim(count=4, lease=LONG)
    board.set(concurrency=1, queue="default")
    board.client.execute_command("DEBUG", "RELOAD")
    assert board.claim("w2") == []
    primary.restart()
    board = primary.board()
    replica = fresh_server(replicaof=primary)
    board.consume("w1", "a")
    assert board.claim("w2") == []
    replica.wait_synced(primary)
    copy = replica.board()
    assert copy.digest() == board.digest()
    replica.client().replicaof("NO", "ONE")
    assert copy.claim("w2") == []
    copy.consume("w1", "b")
    wait_until(lambda: ids(copy.claim("w2")) == ["c"])
