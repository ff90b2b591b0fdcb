"""Steps outlive what happens to servers."""

from __future__ import annotations

import lives
from harness import wait_until
from lives import LONG


def stored(board) -> dict:
    return {name: step["value"] for name, step in board.get("j", fields=["steps"])["steps"].items()}


def work(board) -> int:
    token = lives.claimed(board)
    board.step("w1", "j", "fetch", "7 pages", token=token)
    board.step("w1", "j", "row", "1", token=token)
    board.step("w1", "j", "row", "2", token=token, replace=True)
    return token


DONE = {"fetch": "7 pages", "row": "2"}


def test_a_server_that_is_killed_comes_back_with_all_steps(fresh_server):
    server = fresh_server(config=["appendonly yes", "appendfsync always"])
    token = work(server.board())
    server.restart(kill=True)
    board = server.board()
    assert stored(board) == DONE
    assert board.step("w1", "j", "fetch", "8 pages", token=token)["value"] == "7 pages"
    server.client().bgrewriteaof()
    wait_until(lambda: not server.client().info("persistence")["aof_rewrite_in_progress"], what="the rewrite")
    server.restart(kill=True)
    assert stored(server.board()) == DONE


def test_a_promoted_replica_answers_from_the_store(fresh_server):
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    primary.client().set("first", "write")
    replica.wait_synced(primary)
    work(primary.board())
    replica.wait_synced(primary)
    assert stored(replica.board()) == DONE
    assert replica.board().digest() == primary.board().digest()
    primary.kill()
    replica.client().replicaof("NO", "ONE")
    board = replica.board()
    board.release("j")
    [job] = board.claim("w2", lease=LONG, fields=["token", "steps"])
    assert {name: step["value"] for name, step in job["steps"].items()} == DONE
    assert board.step("w2", "j", "fetch", "9 pages", token=job["token"])["value"] == "7 pages"


def test_a_dump_and_a_copy_have_the_steps(server):
    board = server.board()
    work(board)
    client = server.client(decode_responses=False)
    client.restore("other", 0, client.dump("board"))
    client.copy("board", "third")
    assert stored(server.board("other")) == stored(server.board("third")) == DONE


def test_a_transaction_stores_all_its_steps(server):
    board = server.board()
    lives.claimed(board)
    pipe = board.client.pipeline(transaction=True)
    for n in range(3):
        pipe.execute_command("JOB.STEP", "board", "w1", "j", f"s{n}", "v")
    pipe.execute()
    assert list(stored(board)) == ["s0", "s1", "s2"]


def test_a_full_server_still_stores_steps(server):
    board = server.board()
    lives.claimed(board)
    with server.configured(maxmemory=1):
        assert board.step("w1", "j", "charge", "receipt")["deadline"]
    assert stored(board) == {"charge": "receipt"}


def test_a_client_that_waits_for_a_change_hears_of_a_step(server):
    board = server.board()
    lives.claimed(board)
    version = board.get("j")["version"]
    board.step("w1", "j", "a")
    changed = board.call("WAIT", 1000, "JOBS", 1, "j", "CHANGED", version, "FIELDS", 1, "version")
    assert changed
