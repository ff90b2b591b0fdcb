"""JOB.PAUSE and JOB.RESUME: what is not claimed, what goes on, who is woken, and that all copies agree."""

from __future__ import annotations

import lives
import pytest
from expect import ids, refused
from harness import wait_until
from lives import LONG
from waiters import Waiter

FOREVER = -1


def test_nothing_is_claimed_from_a_paused_queue(board):
    board.post(id="mail", queue="mail")
    board.post(id="plain")
    assert board.pause(queue="mail") == "OK"
    assert ids(board.claim(queues=[], count=9)) == ["plain"]
    with refused("NOTREADY paused", board):
        board.claim(id="mail")
    assert board.resume(queue="mail") == "OK"
    assert ids(board.claim(queues=[], count=9)) == ["mail"]


def test_nothing_is_claimed_from_a_paused_board(board):
    board.post(id="j")
    board.pause()
    assert board.claim() == []
    board.resume(queue="default")
    assert board.claim() == []
    board.resume()
    assert ids(board.claim()) == ["j"]


def test_workers_go_on_through_a_pause(clocked_board, clock):
    board = clocked_board
    token = lives.claimed(board, lease=1000)
    board.pause()
    assert board.heartbeat("w1", "j", token=token)["cancel"] == 0
    assert ids(board.claim(seen=0)) == ["j"]
    clock.advance(1000)
    assert board.state("j") == "ready"
    assert board.claim("w2") == []
    board.heartbeat("w1", "j", token=token)
    assert board.consume("w1", "j", token=token) == "complete"


def test_a_waiter_is_woken_by_a_resume(server):
    board = server.board()
    board.pause()
    board.pause(queue="mail")
    first, second = Waiter(server, "w1"), Waiter(server, "w2", queues=["mail"])
    board.post(id="plain")
    board.post(id="letter", queue="mail")
    assert first.still_waits() and second.still_waits()
    board.resume()
    assert first.job() == "plain"
    assert second.still_waits()
    board.resume(queue="mail")
    assert second.job() == "letter"


@pytest.mark.parametrize("queue", [None, "default"], ids=["board", "queue"])
def test_a_waiter_is_woken_when_a_pause_has_lasted_its_time(server, queue):
    board = server.board()
    board.post(id="j")
    board.pause(queue=queue, for_=60)
    assert Waiter(server, await_block=False).job() == "j"


def test_a_pause_ends_by_the_clock(clocked_board, clock):
    board = clocked_board
    board.post(id="j")
    board.pause(queue="default", for_=1000)
    assert board.queues()["default"]["paused"] == clock.now() + 1000
    assert board.info()["next"] == 1000
    clock.advance(999)
    assert board.claim() == []
    clock.advance(1)
    assert board.queues()["default"]["paused"] == 0
    assert ids(board.claim()) == ["j"]


def test_a_pause_is_told(board):
    board.pause(queue="mail")
    assert board.queues()["mail"]["paused"] == FOREVER
    assert board.info()["paused"] == 0
    board.post()
    board.pause(for_=LONG)
    assert board.info()["paused"] == board.queues()["default"]["paused"] > 0
    assert board.queues()["mail"]["paused"] == FOREVER
    board.resume()
    board.resume(queue="mail")
    assert "mail" not in board.queues()


def test_a_pause_takes_running_jobs_back(server):
    board = server.board()
    board.post_many(500, queue="mail")
    board.post_many(10)
    board.claim("w1", queues=[], count=510, lease=LONG)
    waiter = Waiter(server, "w2", queues=[])
    board.pause(queue="mail", release=True)
    wait_until(lambda: board.queues()["mail"]["claimed"] == 0)
    assert board.queues()["mail"]["ready"] == 500
    assert board.queues()["default"]["claimed"] == 10
    assert waiter.still_waits()
    board.resume(queue="mail")
    assert waiter.reply()[0]["attempt"] == 2


def test_a_pause_inside_a_transaction(board):
    board.post(id="j")
    with board.client.pipeline() as pipe:
        pipe.execute_command("JOB.PAUSE", "board")
        pipe.execute_command("JOB.CLAIM", "board", "w1")
        pipe.execute_command("JOB.RESUME", "board")
        pipe.execute_command("JOB.CLAIM", "board", "w1")
        replies = pipe.execute()
    assert replies[1] is None and len(replies[3]) == 1


def test_pauses_outlive_restart_reload_and_copy(fresh_server):
    server = fresh_server(appendonly=True)
    board = server.board()
    board.post_many(300, queue="mail")
    board.claim("w1", queues=["mail"], count=300, lease=LONG)
    board.pause(queue="mail", for_=LONG, release=True)
    board.pause(queue="shut")
    wait_until(lambda: board.queues()["mail"]["claimed"] == 0)
    before, digest = board.counts(), board.digest()
    board.client.execute_command("DEBUG", "RELOAD")
    assert (board.counts(), board.digest()) == (before, digest)
    server.restart()
    board = server.board()
    assert (board.counts(), board.digest()) == (before, digest)
    board.client.copy("board", "copy")
    copy = server.board("copy")
    assert copy.claim(queues=[]) == []
    copy.resume(queue="mail")
    assert len(copy.claim(queues=[])) == 1


def test_pauses_travel_to_a_replica(fresh_server):
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    board = primary.board()
    board.post_many(200)
    board.claim("w1", count=200, lease=LONG)
    board.pause(for_=100, release=True)
    board.pause(queue="mail")
    wait_until(lambda: board.info()["claimed"] == 0 or board.info()["paused"] == 0)
    wait_until(lambda: board.info()["paused"] == 0)
    replica.wait_synced(primary)
    copy = replica.board()
    assert copy.digest() == board.digest()
    assert copy.queues()["mail"]["paused"] == FOREVER
    replica.client().replicaof("NO", "ONE")
    assert copy.claim(queues=["mail"]) == []
    copy.resume(queue="mail")
    copy.post(id="after", queue="mail")
    assert ids(copy.claim(queues=["mail"])) == ["after"]
