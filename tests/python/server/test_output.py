"""JOB.OUTPUT with BLOCK: who is woken; and that output outlives restarts and failovers."""

from __future__ import annotations

import lives
from harness import wait_until
from harness.board import from_pairs
from waiters import Parked, blocked_clients, error_of


class Reader(Parked):
    """One blocked reader: `Reader(server, since=2)`."""

    def __init__(self, server, id="j", since=0, block=0, **how):
        words = ("JOB.OUTPUT", "board", id, "SINCE", since, "BLOCK", block)
        super().__init__(server, words, **how)

    def told(self):
        return from_pairs(self.answer())


def write(board, number, text="x", verb="HEARTBEAT"):
    return board.call(verb, "w1", "j", "OUTPUT", number, text)


def test_a_reader_is_woken_by_the_next_chunk(server):
    board = server.board()
    lives.claimed(board)
    reader = Reader(server)
    board.heartbeat("w1", "j")
    assert reader.still_waits()
    write(board, 1, "a")
    told = reader.told()
    assert (told["chunks"], told["next"]) == (["a"], 1)
    reader = Reader(server, since=1)
    write(board, 1, "again")
    assert reader.still_waits()
    write(board, 2, "b")
    assert reader.told()["chunks"] == ["b"]


def test_a_reader_that_is_behind_does_not_wait(server):
    board = server.board()
    lives.claimed(board)
    write(board, 1)
    assert Reader(server, await_block=False).told()["chunks"] == ["x"]
    assert Reader(server, since=5, await_block=False).told()["next"] == 1


def test_a_reader_is_told_of_the_end(server):
    board = server.board()
    lives.claimed(board)
    reader, other = Reader(server), Reader(server)
    write(board, 1, "end", verb="CONSUME")
    told = reader.told()
    assert (told["state"], told["chunks"]) == ("complete", ["end"])
    assert other.told() == told
    assert Reader(server, since=1, await_block=False).told()["chunks"] == []


def test_a_reader_waits_over_a_failure_and_is_told_of_the_new_run(server):
    board = server.board()
    lives.claimed(board)
    write(board, 1, "first")
    reader = Reader(server, since=1)
    board.fail("w1", "j", retry=0)
    board.claim_one("w1")
    assert reader.still_waits()
    write(board, 1, "second")
    told = reader.told()
    assert (told["anew"], told["chunks"]) == (1, ["second"])


def test_a_reader_is_told_when_the_job_goes(server):
    board = server.board()
    lives.claimed(board)
    reader, other = Reader(server), Reader(server, id="k", await_block=False)
    assert other.answer() is None
    board.delete("j")
    assert reader.answer() is None


def test_at_the_end_of_its_time_a_reader_learns_the_state(server):
    lives.claimed(server.board())
    told = Reader(server, block=30, await_block=False).told()
    assert (told["state"], told["chunks"], told["next"]) == ("claimed", [], 0)


def test_in_a_transaction_nothing_waits(server):
    board = server.board()
    lives.claimed(board)
    with board.client.pipeline(transaction=True) as pipe:
        pipe.execute_command("JOB.OUTPUT", "board", "j", "BLOCK", 0)
        [told] = pipe.execute()
    assert from_pairs(told)["chunks"] == []


def test_a_chunk_wakes_all_its_readers_and_no_other(server):
    board = server.board()
    lives.claimed(board)
    board.post(id="k")
    readers = [Reader(server, await_block=False) for _ in range(20)]
    others = [Reader(server, id="k", await_block=False) for _ in range(20)]
    wait_until(lambda: blocked_clients(server) == 40, what="all readers wait")
    write(board, 1)
    assert all(reader.told()["chunks"] == ["x"] for reader in readers)
    assert blocked_clients(server) == 20
    board.delete("k")
    assert all(other.answer() is None for other in others)


def test_a_reader_that_loses_its_right_is_refused(fresh_server):
    server = fresh_server()
    admin = server.client()
    admin.acl_setuser("eve", enabled=True, nopass=True, keys=["*"], commands=["+@all"])
    board = server.board()
    lives.claimed(board)
    reader = Reader(server, login={"username": "eve", "password": "x"})
    admin.acl_setuser("eve", commands=["-job.output"])
    write(board, 1)
    assert error_of(reader).startswith("NOPERM")


def test_output_is_read_on_a_replica(fresh_server):
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    board = primary.board()
    lives.claimed(board)
    wait_until(lambda: replica.board().state("j") == "claimed", what="the job arrives")
    reader = Reader(replica)
    write(board, 1, "a")
    assert reader.told()["chunks"] == ["a"]


def test_output_outlives_a_failover(fresh_server):
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    board = primary.board()
    lives.claimed(board)
    board.client.execute_command("JOB.SETTINGS", "SET", "board", "output-bytes", 3)
    for number in range(1, 6):
        write(board, number, str(number))
    told = board.output("j", since=1)
    wait_until(lambda: (replica.board().output("j") or {}).get("next") == 5, what="the output arrives")
    replica.client().execute_command("REPLICAOF", "NO", "ONE")
    assert replica.board().output("j", since=1) == told
    write(replica.board(), 5, "no")
    write(replica.board(), 6, "6")
    assert replica.board().output("j", since=5)["chunks"] == ["6"]


def test_output_outlives_a_restart(fresh_server):
    for options in ({"appendonly": True}, {}):
        server = fresh_server(**options)
        board = server.board()
        lives.claimed(board)
        for number in range(1, 4):
            write(board, number, str(number))
        told = board.output("j", since=1)
        board.client.execute_command("DEBUG", "RELOAD") if not options else server.restart()
        assert server.board().output("j", since=1) == told
        write(server.board(), 4, "4")
        assert server.board().output("j", since=3)["chunks"] == ["4"]
