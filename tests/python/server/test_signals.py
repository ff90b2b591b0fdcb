"""Jobs that wait for signals outlive what happens to servers."""

from __future__ import annotations

import json

import lives
import pytest
import redis
from harness import wait_until
from lives import LONG
from waiters import Parked


def waiting(board) -> None:
    """One that a worker gave up, one that a post holds back, and one that was signalled early."""
    lives.claimed(board, "run")
    board.wait_for("w1", "run", ["approved"], within=LONG)
    board.post(id="gated", **{"await": ["approved", "paid"]})
    board.signal("paid", "gated", value="42", sender="eve")
    lives.ready(board, "early")
    board.signal("approved", "early")


def is_whole(board) -> None:
    assert [job["id"] for job in board.list_all(awaits="approved")] == ["run", "gated"]
    assert board.get("gated", fields=["signals"])["signals"]["paid"]["sender"] == "eve"
    assert board.signal("approved", "run", "gated", "early") == ["woken", "woken", "already"]
    for id in ("run", "gated", "early"):
        token = lives.claim(board, id)
        assert list(board.wait_for("w1", id, ["approved"], token=token)["signals"]) == ["approved"]


def test_a_server_that_is_killed_loses_no_signal(fresh_server):
    server = fresh_server(config=["appendonly yes", "appendfsync always"])
    waiting(server.board())
    server.restart(kill=True)
    client = server.client()
    client.bgrewriteaof()
    wait_until(lambda: not client.info("persistence")["aof_rewrite_in_progress"], what="the rewrite")
    server.restart(kill=True)
    is_whole(server.board())


def test_a_promoted_replica_goes_on(fresh_server):
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    primary.client().set("first", "write")
    replica.wait_synced(primary)
    waiting(primary.board())
    replica.wait_synced(primary)
    assert replica.board().digest() == primary.board().digest()
    primary.kill()
    replica.client().replicaof("NO", "ONE")
    is_whole(replica.board())


def test_a_wait_ends_on_a_promoted_replica_after_the_recovery(fresh_server):
    primary = fresh_server()
    replica = fresh_server(replicaof=primary, config=["jobboard.recovery-grace 300"])
    primary.board().post(id="j", within=1, ontimeout="fail", **{"await": ["approved"]})
    primary.client().client_pause(LONG, all=False)
    replica.wait_synced(primary)
    primary.kill()
    replica.client().replicaof("NO", "ONE")
    board = replica.board()
    wait_until(lambda: board.state("j") == "failed", what="the end of the wait")
    assert board.get("j")["kind"] == "signal"


def test_the_timer_ends_waits_without_a_client(server):
    board = server.board()
    for n in range(200):
        board.post(id=f"j{n}", within=20, ontimeout=("run", "fail")[n % 2], **{"await": ["approved"]})
    wait_until(lambda: board.call("COUNT", "STATE", "blocked") == 0, what="the end of all waits")
    assert board.call("COUNT", "STATE", "ready") == 100
    assert board.call("COUNT", "KIND", "signal") == 100


def test_a_dump_and_a_copy_have_waits_and_signals(server):
    waiting(server.board())
    client = server.client(decode_responses=False)
    client.restore("other", 0, client.dump("board"))
    client.copy("board", "third")
    is_whole(server.board("other"))
    is_whole(server.board("third"))


def test_a_signal_serves_a_client_that_waits(server):
    board = server.board()
    board.post(id="j", **{"await": ["approved"]})
    waiting = Parked(server, ("JOB.CLAIM", "board", "w1", "BLOCK", 0, "FIELDS", 1, "id"))
    board.signal("approved", "j")
    assert waiting.reply() == [{"id": "j"}]


def test_a_full_server_refuses_signals_and_lets_workers_wait(server):
    board = server.board()
    lives.claimed(board)
    with server.configured(maxmemory=1):
        with pytest.raises(redis.exceptions.OutOfMemoryError):
            board.signal("approved", "j")
        assert board.wait_for("w1", "j", ["approved"]) == {"state": "blocked"}


def test_a_transaction_waits_and_signals(server):
    board = server.board()
    lives.claimed(board)
    pipe = board.client.pipeline(transaction=True)
    pipe.execute_command("JOB.AWAIT", "board", "w1", "j", "SIGNALS", 1, "s", "CLAIM", "BLOCK", 1000)
    pipe.execute_command("JOB.SIGNAL", "board", "s", 1, "j")
    [_, woken] = pipe.execute()
    assert (woken, board.state("j")) == (["woken"], "ready")


def test_waits_and_signals_are_published(server):
    board = server.board()
    server.client().execute_command("JOB.SETTINGS", "SET", "board", "events", "awaiting,signalled")
    pubsub = server.client().pubsub(ignore_subscribe_messages=True)
    pubsub.subscribe("job.events:board")
    assert pubsub.get_message(timeout=30) is None
    board.post(id="j", within=LONG, **{"await": ["approved", "paid"]})
    board.signal("approved", "j", sender="eve")
    messages = [json.loads(pubsub.get_message(timeout=30)["data"]) for _ in range(2)]
    assert [message["event"] for message in messages] == ["awaiting", "signalled"]
    assert (messages[0]["signal"], messages[0]["signals"]) == ("approved", 2)
    assert messages[0]["until"] == messages[0]["at"] + LONG
    assert (messages[1]["signal"], messages[1]["sender"]) == ("approved", "eve")
