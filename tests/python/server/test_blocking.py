"""JOB.CLAIM with BLOCK: who is woken, by what, in which order; and that nothing is lost on the way."""

from __future__ import annotations

import socket
import time

import lives
import pytest
import redis
from expect import drain, ids, refused_like
from harness import Board, Clock, now, past, wait_until
from lives import LONG
from waiters import Waiter, blocked_clients, error_of

# What wakes a waiter


def test_a_waiter_is_woken_by_a_post(server):
    waiter = Waiter(server, "w1")
    server.board().post("hello", id="j")
    [job] = waiter.reply()
    assert (job["id"], job["payload"], job["attempt"]) == ("j", "hello", 1)
    assert server.board().get("j")["worker"] == "w1"


def test_a_claim_that_finds_a_job_does_not_wait(board):
    lives.ready(board)
    assert board.claim_one(block=0)["id"] == "j"


def test_a_waiter_is_woken_by_a_batch_and_takes_what_it_asked_for(server):
    waiter = Waiter(server, count=3)
    posted = server.board().mpost("abcde")
    assert ids(waiter.reply()) == posted[:3]


def test_a_waiter_for_many_queues_gets_no_more_than_a_claim_gives_at_once(server):
    waiter = Waiter(server, queues=[f"q{n}" for n in range(1000)], count=30)
    posted = server.board().mpost(["p"] * 30, queue="q7")
    assert ids(waiter.reply()) == posted[:20]


def test_a_waiter_is_woken_by_an_abandoned_job(server):
    board = server.board()
    lives.claimed(board)
    waiter = Waiter(server, "w2")
    board.abandon("w1", "j")
    assert waiter.job() == "j"


def test_a_waiter_is_woken_by_a_batch_of_abandoned_jobs(server):
    board = server.board()
    for id in "ab":
        lives.claimed(board, id)
    first, second = Waiter(server, "w2"), Waiter(server, "w3")
    board.mabandon("w1", "ALL")
    assert sorted([first.job(), second.job()]) == ["a", "b"]


def test_a_waiter_is_woken_by_a_released_job(server):
    board = server.board()
    lives.claimed(board)
    waiter = Waiter(server, "w2")
    board.release("j")
    assert waiter.job() == "j"


def test_a_waiter_is_woken_by_a_requeued_job(server):
    board = server.board()
    lives.failed(board)
    waiter = Waiter(server, "w2")
    board.requeue("j")
    assert waiter.job() == "j"


def test_a_waiter_is_woken_by_a_replaced_job(server):
    board = server.board()
    lives.complete(board)
    waiter = Waiter(server, "w2")
    board.post("again", id="j", replace=True)
    assert waiter.job() == "j"


def test_a_waiter_is_woken_by_a_job_moved_into_its_queue(server):
    board = server.board()
    board.post(id="j", queue="other")
    waiter = Waiter(server)
    board.update("j", queue="default")
    assert waiter.job() == "j"


def test_a_waiter_is_woken_by_a_job_made_due(server):
    board = server.board()
    lives.scheduled(board)
    waiter = Waiter(server)
    board.update("j", delay=0)
    assert waiter.job() == "j"


def test_a_waiter_is_woken_by_a_failure_to_be_tried_at_once(server):
    board = server.board()
    lives.claimed(board)
    waiter = Waiter(server, "w2")
    board.fail("w1", "j", retry=0)
    assert waiter.job() == "j"


def test_a_waiter_is_woken_when_a_retry_is_due(server):
    board = server.board()
    lives.claimed(board)
    waiter = Waiter(server, "w2")
    board.fail("w1", "j", retry=30)
    assert waiter.job() == "j"


def test_a_waiter_is_woken_when_a_lease_ends(server):
    board = server.board()
    lives.claimed(board, lease=30)
    [job] = Waiter(server, "w2", await_block=False).reply()
    assert (job["id"], job["attempt"]) == ("j", 2)


def test_a_waiter_is_woken_when_a_delayed_job_is_due(server):
    waiter = Waiter(server)
    server.board().post(id="j", delay=30)
    assert waiter.job() == "j"


def test_a_waiter_is_woken_when_a_run_times_out(server):
    board = server.board()
    lives.claimed(board, timeout=30, backoff=("FIXED", 0))
    assert Waiter(server, "w2", await_block=False).job() == "j"


def test_a_waiter_is_woken_when_the_clock_is_moved(clocked, clock):
    waiter = Waiter(clocked)
    clocked.board().post(id="j", delay=500)
    clock.advance(499)
    assert waiter.still_waits()
    clock.advance(1)
    assert waiter.job() == "j"


def test_waiters_wake_on_a_board_of_another_database(server):
    waiter = Waiter(server, db=3)
    server.board().post(id="here")
    assert waiter.still_waits()
    server.board(db=3).post(id="there")
    assert waiter.job() == "there"


# A key that appears


def other_board(server, key="source", db=0) -> Board:
    board = server.board(key, db=db)
    board.post(id="j")
    return board


def test_a_waiter_is_woken_by_a_restored_board(server):
    other_board(server)
    raw = server.raw_client()
    waiter = Waiter(server)
    raw.restore("board", 0, raw.dump("source"))
    assert waiter.job() == "j"


def test_a_waiter_is_woken_by_a_board_restored_over_the_old_one(server):
    server.board().set(lease=5000)
    other_board(server)
    raw = server.raw_client()
    waiter = Waiter(server)
    raw.restore("board", 0, raw.dump("source"), replace=True)
    assert waiter.job() == "j"


def test_a_waiter_is_woken_by_a_renamed_board(server):
    waiter = Waiter(server)
    other_board(server).client.rename("source", "board")
    assert waiter.job() == "j"


def test_a_waiter_is_woken_by_a_board_renamed_over_the_old_one(server):
    server.board().set(lease=5000)
    waiter = Waiter(server)
    other_board(server).client.rename("source", "board")
    assert waiter.job() == "j"


def test_a_waiter_is_woken_by_a_copied_board(server):
    waiter = Waiter(server)
    board = other_board(server)
    board.client.copy("source", "board")
    assert waiter.job() == "j"
    assert board.state("j") == "ready"


def test_a_waiter_is_woken_by_a_board_moved_here(server):
    waiter = Waiter(server)
    other_board(server, "board", db=4).client.move("board", 0)
    assert waiter.job() == "j"


def test_a_waiter_is_woken_by_swapped_databases(server):
    waiter = Waiter(server)
    other_board(server, "board", db=4).client.swapdb(0, 4)
    assert waiter.job() == "j"


def test_a_restored_board_serves_later_posts_as_well(server):
    board = server.board()
    raw = server.raw_client()
    board.set(lease=5000)
    payload = raw.dump("board")
    raw.delete("board")
    waiter = Waiter(server)
    raw.restore("board", 0, payload)
    assert waiter.still_waits()
    board.post(id="j")
    assert waiter.job() == "j"


# Who is woken


def test_waiters_are_served_in_the_order_in_which_they_came(server):
    waiters = [Waiter(server, f"w{n}") for n in range(5)]
    board = server.board()
    for n in range(5):
        board.post(id=f"j{n}")
    assert [waiter.job() for waiter in waiters] == [f"j{n}" for n in range(5)]


def test_one_batch_serves_waiters_in_the_order_in_which_they_came(server):
    waiters = [Waiter(server, f"w{n}") for n in range(5)]
    posted = server.board().mpost("abcde")
    assert [waiter.job() for waiter in waiters] == posted


def test_one_job_wakes_one_waiter(server):
    first, second = Waiter(server, "w1"), Waiter(server, "w2")
    server.board().post(id="j")
    assert first.job() == "j"
    assert second.still_waits()


def test_a_waiter_that_waits_again_is_the_last(server):
    first, second = Waiter(server, "w1"), Waiter(server, "w2")
    board = server.board()
    board.post(id="a")
    assert first.job() == "a"
    first.send("JOB.CLAIM", "board", "w1", "BLOCK", 0)
    wait_until(first.is_blocked)
    board.post(id="b")
    assert second.job() == "b"
    assert first.still_waits()


def test_each_waiter_waits_for_its_own_queues(server):
    mail, sms, both = (
        Waiter(server, "w1", queues=["mail"]),
        Waiter(server, "w2", queues=["sms"]),
        Waiter(server, "w3", queues=["sms", "mail"]),
    )
    board = server.board()
    board.post(id="s1", queue="sms")
    board.post(id="s2", queue="sms")
    board.post(id="other", queue="other")
    assert (sms.job(), both.job()) == ("s1", "s2")
    assert mail.still_waits()
    board.post(id="m", queue="mail")
    assert mail.job() == "m"


def test_a_waiter_without_queues_waits_for_the_default_one(server):
    waiter = Waiter(server)
    server.board().post(queue="other")
    assert waiter.still_waits()


def test_a_waiter_may_wait_for_every_queue(server):
    waiter = Waiter(server, queues=[])
    server.board().post(id="j", queue="never seen before")
    assert waiter.job() == "j"


def test_a_waiter_for_every_queue_takes_its_turn_among_others(server):
    every, mail = Waiter(server, "w1", queues=[]), Waiter(server, "w2", queues=["mail"])
    board = server.board()
    board.post(id="a", queue="mail")
    board.post(id="b", queue="mail")
    assert (every.job(), mail.job()) == ("a", "b")


def test_the_best_job_of_a_batch_goes_to_the_first_waiter(server):
    first = Waiter(server, "w1", queues=["a", "b"])
    second = Waiter(server, "w2", queues=["a", "b"])
    board = server.board()
    pipe = board.client.pipeline()
    pipe.execute_command("JOB.POST", "board", "x", "ID", "low", "QUEUE", "a")
    pipe.execute_command("JOB.POST", "board", "x", "ID", "high", "QUEUE", "b", "PRIORITY", 5)
    pipe.execute()
    assert (first.job(), second.job()) == ("high", "low")


def test_a_waiter_gets_the_lease_and_the_fields_it_asked_for(server):
    waiter = Waiter(server, lease=LONG, fields=["id", "payload"])
    board = server.board()
    board.post("hello", id="j")
    assert waiter.reply() == [{"id": "j", "payload": "hello"}]
    assert board.get("j")["deadline"] > time.time() * 1000 + LONG / 2


def test_a_waiter_of_an_older_protocol_is_served(server):
    waiter = Waiter(server, protocol=2)
    server.board().post(id="j")
    assert waiter.job() == "j"


def test_a_claim_with_seen_does_not_wait_when_something_is_handed_back(server):
    board = server.board()
    lives.claimed(board)
    assert ids(board.claim("w1", seen=0, block=0)) == ["j"]


def test_a_claim_with_seen_waits_when_nothing_was_missed(server):
    board = server.board()
    token = lives.claimed(board)
    waiter = Waiter(server, "w1", seen=token)
    board.post(id="new")
    assert waiter.job() == "new"


# How a wait ends without a job


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_wait_ends_with_a_null_after_its_time(server, protocol):
    started = time.monotonic()
    waiter = Waiter(server, block=100, protocol=protocol, await_block=False)
    assert waiter.reply() is None
    assert 0.09 < time.monotonic() - started


def test_a_wait_with_a_manual_clock_ends_by_the_time_of_the_server(clocked):
    waiter = Waiter(clocked, block=50, await_block=False)
    assert waiter.reply() is None


def test_a_waiter_whose_time_has_passed_gets_no_job(server):
    waiter = Waiter(server, block=20, await_block=False)
    assert waiter.reply() is None
    board = server.board()
    board.post(id="j")
    assert board.state("j") == "ready"


@pytest.mark.parametrize("reason", [[], ["TIMEOUT"]])
def test_client_unblock_ends_the_wait_with_a_null(server, reason):
    waiter = Waiter(server)
    assert server.client().execute_command("CLIENT", "UNBLOCK", waiter.id, *reason) == 1
    assert waiter.reply() is None
    assert waiter._ask("PING") in ("PONG", True)


def test_client_unblock_with_error_ends_the_wait_with_an_error(server):
    waiter = Waiter(server)
    assert server.client().execute_command("CLIENT", "UNBLOCK", waiter.id, "ERROR") == 1
    assert error_of(waiter).startswith("UNBLOCKED")
    assert waiter._ask("PING") in ("PONG", True)


@pytest.mark.parametrize("how", ["unblock", "unblock with error", "timeout"])
def test_a_waiter_that_has_gone_on_is_not_served(server, how):
    waiter = Waiter(server, block=30 if how == "timeout" else 0, await_block=how != "timeout")
    if how != "timeout":
        reason = ["ERROR"] if how.endswith("error") else []
        server.client().execute_command("CLIENT", "UNBLOCK", waiter.id, *reason)
    try:
        assert waiter.reply() is None
    except redis.ResponseError:
        assert how == "unblock with error"
    board = server.board()
    board.post(id="j")
    assert board.state("j") == "ready"
    assert not waiter.answered(0.02)


def test_a_wait_outlives_the_deletion_of_the_board(server):
    board = server.board()
    board.set(lease=5000)
    waiter = Waiter(server)
    board.client.delete("board")
    assert waiter.still_waits()
    board.post(id="j")
    assert waiter.job() == "j"


@pytest.mark.parametrize("flush", ["FLUSHALL", "FLUSHDB", "FLUSHALL ASYNC"])
def test_a_wait_outlives_a_flush(server, flush):
    board = server.board()
    board.set(lease=5000)
    waiter = Waiter(server)
    board.client.execute_command(*flush.split())
    assert waiter.still_waits()
    board.post(id="j")
    assert waiter.job() == "j"


def test_a_wait_outlives_a_key_of_another_type(server):
    waiter = Waiter(server)
    board = server.board()
    board.client.set("board", "text")
    assert waiter.still_waits()
    board.client.delete("board")
    board.post(id="j")
    assert waiter.job() == "j"


def test_a_wait_outlives_the_renaming_of_the_board_away(server):
    board = server.board()
    board.set(lease=5000)
    waiter = Waiter(server)
    board.client.rename("board", "elsewhere")
    server.board("elsewhere").post(id="elsewhere")
    assert waiter.still_waits()
    board.post(id="here")
    assert waiter.job() == "here"


def test_a_demotion_ends_the_wait_with_an_error(fresh_server):
    primary, server = fresh_server(), fresh_server()
    waiter = Waiter(server)
    server.client().replicaof("127.0.0.1", primary.port)
    assert error_of(waiter).startswith("UNBLOCKED")


def test_waiters_are_served_after_a_promotion(fresh_server):
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    primary.board().set(lease=5000)
    replica.wait_synced(primary)
    with refused_like("READONLY .+"):
        replica.board().claim(block=0)
    replica.client().replicaof("NO", "ONE")
    waiter = Waiter(replica)
    replica.board().post(id="j")
    assert waiter.job() == "j"


def test_a_wait_goes_on_after_a_reload(fresh_server):
    server = fresh_server()
    board = server.board()
    board.set(lease=5000)
    waiter = Waiter(server)
    board.client.execute_command("DEBUG", "RELOAD")
    assert waiter.still_waits()
    board.post(id="j")
    assert waiter.job() == "j"


# Pauses


def unpause(client: redis.Redis) -> None:
    client.execute_command("CLIENT", "UNPAUSE")


def end_lease_in_a_pause(board: Board, ms: int, mode: str) -> None:
    """The server pauses for so long, and the lease of j ends then. In one packet: no timer runs between."""
    with board.client.pipeline(transaction=False) as pipe:
        pipe.execute_command("JOB.HEARTBEAT", "board", "w1", "j", "LEASE", 100)
        pipe.execute_command("CLIENT", "PAUSE", ms, mode)
        pipe.execute()


@pytest.mark.parametrize("mode", ["WRITE", "ALL"])
def test_no_lease_ends_and_nobody_is_served_during_a_pause(server, mode):
    board = server.board()
    lives.claimed(board)
    waiter = Waiter(server, "w2")
    end = now() + 600
    end_lease_in_a_pause(board, 600, mode)
    assert waiter.job() == "j"
    assert now() >= end and board.history("j")[2]["at"] >= end


def test_reads_are_answered_during_a_pause_of_writes(server):
    board, control = server.board(), server.client()
    lives.claimed(board)
    end_lease_in_a_pause(board, LONG, "WRITE")
    past(board.get("j")["deadline"])
    revision = board.info()["revision"]
    assert board.state("j") == "claimed"
    assert board.info()["revision"] == revision
    unpause(control)
    wait_until(lambda: board.state("j") == "ready")


@pytest.mark.parametrize("mode", ["WRITE", "ALL"])
def test_a_pause_with_an_append_only_file_does_not_harm_the_server(fresh_server, mode):
    """A write outside a command during a pause ends in an assertion of the server."""
    server = fresh_server(appendonly=True)
    board, control = server.board(), server.client()
    lives.claimed(board, "lapses", lease=30)
    board.post(id="due", delay=30)
    waiters = [Waiter(server, f"w{n}", queues=["q"]) for n in range(3)]
    control.execute_command("CLIENT", "PAUSE", 300, mode)
    waiters[0].close()
    time.sleep(0.4)
    wait_until(lambda: board.info()["ready"] == 2)
    board.mpost("ab", queue="q")
    assert waiters[1].job() and waiters[2].job()
    server.check_health()


def test_a_wait_may_begin_during_a_pause(server):
    control = server.client()
    control.execute_command("CLIENT", "PAUSE", 5000, "WRITE")
    waiter = Waiter(server, await_block=False)
    assert not waiter.answered(0.05)
    unpause(control)
    wait_until(waiter.is_blocked)
    server.board().post(id="j")
    assert waiter.job() == "j"


def test_a_waiter_killed_during_a_pause_leaves_no_trace(server):
    control = server.client()
    first, second = Waiter(server, "w1"), Waiter(server, "w2")
    control.execute_command("CLIENT", "PAUSE", 5000, "WRITE")
    control.execute_command("CLIENT", "KILL", "ID", first.id)
    unpause(control)
    server.board().post(id="j")
    assert second.job() == "j"


# Clients that go away


def test_the_job_goes_to_the_next_when_a_waiter_has_closed(server):
    first, second = Waiter(server, "w1"), Waiter(server, "w2")
    first.close()
    wait_until(lambda: blocked_clients(server) == 1)
    server.board().post(id="j")
    assert second.job() == "j"


def test_a_killed_waiter_loses_no_job(server):
    first, second = Waiter(server, "w1"), Waiter(server, "w2")
    server.client().execute_command("CLIENT", "KILL", "ID", first.id)
    board = server.board()
    board.post(id="j")
    assert second.job() == "j"
    assert board.workers().keys() == {"w2"}


def together(server, *commands, transaction: bool) -> None:
    """Sends commands in one packet, so that they run in one turn of the event loop."""
    pipe = server.client().pipeline(transaction=transaction)
    for command in commands:
        pipe.execute_command(*command)
    pipe.execute()


@pytest.mark.parametrize("transaction", [False, True])
def test_a_waiter_killed_just_before_the_post_gets_no_job(server, transaction):
    board = server.board()
    for n in range(20):
        waiter = Waiter(server, "gone", queues=[f"q{n}"])
        post = ("JOB.POST", "board", "x", "QUEUE", f"q{n}")
        together(server, ("CLIENT", "KILL", "ID", waiter.id), post, transaction=transaction)
    wait_until(lambda: board.info()["ready"] == 20)
    assert board.info()["claimed"] == 0


@pytest.mark.parametrize("transaction", [False, True])
def test_a_waiter_killed_just_after_the_post_loses_no_job(server, transaction):
    """The reply may be on its way already: then the job comes back when its lease ends."""
    board = server.board()
    for n in range(20):
        waiter = Waiter(server, "gone", queues=[f"q{n}"], lease=20)
        post = ("JOB.POST", "board", "x", "QUEUE", f"q{n}", "LAPSES", -1)
        together(server, post, ("CLIENT", "KILL", "ID", waiter.id), transaction=transaction)
    wait_until(lambda: board.info()["ready"] == 20)


def test_a_waiter_that_closes_just_then_loses_no_job(server):
    """With the reply lost on the way the job is held until its lease ends; nothing else is lost."""
    board = server.board()
    for n in range(30):
        waiter = Waiter(server, "gone", queues=[f"q{n}"], lease=20)
        board.post(queue=f"q{n}", lapses=-1)
        waiter.close()
    wait_until(lambda: board.info()["ready"] == 30)


@pytest.mark.parametrize("transaction", [False, True])
@pytest.mark.parametrize("first", ["post", "unblock"])
@pytest.mark.parametrize("reason", ["TIMEOUT", "ERROR"])
def test_unblocking_and_posting_at_once_loses_no_job_and_no_reply(server, transaction, first, reason):
    board = server.board()
    taken = 0
    for n in range(10):
        waiter = Waiter(server, "w1", queues=[f"q{n}"])
        commands = [
            ("JOB.POST", "board", "x", "QUEUE", f"q{n}"),
            ("CLIENT", "UNBLOCK", waiter.id, reason),
        ]
        together(server, *(commands if first == "post" else commands[::-1]), transaction=transaction)
        try:
            taken += len(waiter.reply() or [])
        except redis.ResponseError as error:
            assert str(error).startswith("UNBLOCKED")
        waiter.send("ECHO", "next")
        assert waiter.connection.read_response() == "next", "two replies to one command"
    info = board.info()
    assert (info["jobs"], info["claimed"], info["ready"]) == (10, taken, 10 - taken)


TAKEN_AWAY = {
    "delete": [("JOB.DELETE", "board", 1, "j")],
    "cancel": [("JOB.CANCEL", "board", 1, "j", "FORCE")],
    "del": [("DEL", "board")],
    "flush": [("FLUSHALL",)],
    "overwrite": [("SET", "board", "text"), ("DEL", "board")],
    "rename": [("RENAME", "board", "elsewhere")],
    "move": [("MOVE", "board", 5)],
    "swap": [("SWAPDB", 0, 5)],
    "expire": [("PEXPIRE", "board", 1), ("DEBUG", "SLEEP", 0.005)],
}
GIVEN_BACK = {
    "release": [("JOB.RELEASE", "board", 1, "j")],
    "replace": [("JOB.POST", "board", "x", "ID", "j", "REPLACE")],
}


@pytest.mark.parametrize("how", TAKEN_AWAY)
def test_a_waiter_whose_job_is_taken_away_in_the_same_turn_waits_on(server, how):
    first, second = Waiter(server, "w1"), Waiter(server, "w2")
    together(server, ("JOB.POST", "board", "x", "ID", "j"), *TAKEN_AWAY[how], transaction=False)
    assert first.still_waits() and second.still_waits()
    board = server.board()
    for id in ["a", "b"]:
        board.post(id=id)
    assert (first.job(), second.job()) == ("a", "b")


@pytest.mark.parametrize("how", GIVEN_BACK)
def test_a_waiter_whose_job_is_given_back_in_the_same_turn_gets_it_all_the_same(server, how):
    first, second = Waiter(server, "w1"), Waiter(server, "w2")
    together(server, ("JOB.POST", "board", "x", "ID", "j"), *GIVEN_BACK[how], transaction=False)
    assert first.job() == "j"
    assert second.still_waits()
    assert server.board().get("j")["worker"] == "w1"


UNHARMED = {
    "request to cancel": [("JOB.CANCEL", "board", 1, "j")],
    "update": [("JOB.UPDATE", "board", 1, "j", "SET", "PRIORITY", 3)],
    "copy": [("COPY", "board", "copy")],
    "pause of writes": [("CLIENT", "PAUSE", 100, "WRITE")],
    "pause of all": [("CLIENT", "PAUSE", 100, "ALL")],
    "sleep": [("DEBUG", "SLEEP", 0.02)],
}


@pytest.mark.parametrize("how", UNHARMED)
def test_a_waiter_is_told_of_its_job_whatever_else_happens_in_the_same_turn(server, how):
    first, second = Waiter(server, "w1"), Waiter(server, "w2")
    together(server, ("JOB.POST", "board", "x", "ID", "j"), *UNHARMED[how], transaction=False)
    assert first.job() == "j"
    assert second.still_waits()
    first.send("ECHO", "next")
    assert first.connection.read_response() == "next", "two replies to one command"


def test_a_timeout_and_a_post_at_once_lose_no_job_and_no_reply(server):
    board = server.board()
    taken = 0
    for n in range(20):
        waiter = Waiter(server, "w1", queues=[f"q{n}"], block=15, await_block=False)
        board.client.execute_command("DEBUG", "SLEEP", 0.012)
        board.post(queue=f"q{n}")
        taken += len(waiter.reply() or [])
        waiter.close()
    info = board.info()
    assert (info["jobs"], info["claimed"], info["ready"]) == (20, taken, 20 - taken)


def test_a_client_may_send_more_while_it_waits(server):
    """The commands behind a blocking claim are answered after it."""
    waiter = Waiter(server)
    waiter.send("PING")
    waiter.send("JOB.COUNT", "board")
    server.board().post(id="j")
    assert waiter.job() == "j"
    assert waiter.connection.read_response() in ("PONG", True)
    assert waiter.connection.read_response() == 1


def test_who_waits_comes_before_a_new_claim_that_finds_work_due(server):
    """The job is due before the claim comes, and the timer had no turn yet."""
    waiter = Waiter(server, "w1")
    board = server.board()
    board.post(id="j", delay=10)
    pipe = server.client().pipeline(transaction=False)
    pipe.execute_command("DEBUG", "SLEEP", 0.03)
    pipe.execute_command("JOB.CLAIM", "board", "w2")
    assert pipe.execute()[1] is None
    assert waiter.job() == "j"


# MULTI, Lua


def test_a_post_in_a_transaction_wakes_waiters(server):
    waiters = [Waiter(server, f"w{n}") for n in range(3)]
    pipe = server.board().client.pipeline()
    for id in "abc":
        pipe.execute_command("JOB.POST", "board", "x", "ID", id)
    pipe.execute()
    assert [waiter.job() for waiter in waiters] == ["a", "b", "c"]


def test_a_post_in_a_script_wakes_waiters(server):
    waiters = [Waiter(server, f"w{n}") for n in range(3)]
    script = "for n = 1, 3 do redis.call('JOB.POST', KEYS[1], 'x', 'ID', 'j' .. n) end"
    server.client().eval(script, 1, "board")
    assert [waiter.job() for waiter in waiters] == ["j1", "j2", "j3"]


def test_a_post_and_a_cancel_in_one_transaction_leave_nothing_to_claim(server):
    waiter = Waiter(server)
    board = server.board()
    pipe = board.client.pipeline()
    pipe.execute_command("JOB.POST", "board", "x", "ID", "j")
    pipe.execute_command("JOB.CANCEL", "board", 1, "j")
    assert pipe.execute() == ["j", ["cancelled"]]
    assert waiter.still_waits()
    assert board.state("j") == "cancelled"


def test_a_post_and_a_cancel_in_one_script_leave_nothing_to_claim(server):
    waiter = Waiter(server)
    script = "redis.call('JOB.POST', KEYS[1], 'x', 'ID', 'j'); redis.call('JOB.CANCEL', KEYS[1], 1, 'j')"
    server.client().eval(script, 1, "board")
    assert waiter.still_waits()


def test_a_post_and_a_claim_in_one_transaction_leave_nothing_for_waiters(server):
    waiter = Waiter(server, "waits")
    board = server.board()
    pipe = board.client.pipeline()
    pipe.execute_command("JOB.POST", "board", "x", "ID", "j")
    pipe.execute_command("JOB.CLAIM", "board", "inside")
    _, claimed = pipe.execute()
    assert ids(claimed) == ["j"]
    assert waiter.still_waits()


def test_a_board_deleted_in_the_same_transaction_leaves_nothing_to_claim(server):
    waiter = Waiter(server)
    pipe = server.board().client.pipeline()
    pipe.execute_command("JOB.POST", "board", "x")
    pipe.execute_command("DEL", "board")
    pipe.execute()
    assert waiter.still_waits()
    server.board().post(id="j")
    assert waiter.job() == "j"


def test_a_transaction_over_two_boards_wakes_both(server):
    first, second = Waiter(server, key="a"), Waiter(server, key="b")
    pipe = server.client().pipeline()
    pipe.execute_command("JOB.POST", "a", "x", "ID", "ja")
    pipe.execute_command("JOB.POST", "b", "x", "ID", "jb")
    pipe.execute()
    assert (first.job(), second.job()) == ("ja", "jb")


def test_a_claim_inside_a_transaction_answers_at_once(board):
    pipe = board.client.pipeline()
    pipe.execute_command("JOB.CLAIM", "board", "w1", "BLOCK", 0)
    pipe.ping()
    assert pipe.execute() == [None, True]


def test_a_claim_inside_a_script_answers_at_once(board):
    script = "return redis.call('JOB.CLAIM', KEYS[1], 'w1', 'BLOCK', 0)"
    assert board.client.eval(script, 1, "board") is None
    lives.ready(board)
    assert board.client.eval(script, 1, "board")


# Many


def connect_many(server, count: int, options: str = "") -> list:
    """Plain sockets that have each sent a blocking claim; all of them wait in the server."""
    sockets = []
    for n in range(count):
        one = server.socket()
        one.sendall(f"JOB.CLAIM board w{n} {options} LEASE {LONG} BLOCK 0 FIELDS 1 id\r\n".encode())
        sockets.append(one)
    wait_until(lambda: blocked_clients(server) == count)
    return sockets


def read_id(one: socket.socket) -> str:
    """The id out of the reply `*1 *2 $2 id $n <id>`."""
    data = b""
    while data.count(b"\r\n") < 6:
        data += one.recv(4096)
    return data.split(b"\r\n")[5].decode()


def test_a_thousand_waiters_each_get_exactly_one_job(server):
    count = 1200
    sockets = connect_many(server, count)
    board = server.board()
    posted = []
    for start in range(0, count, 100):
        posted += (
            board.mpost([str(n) for n in range(100)]) if start % 200 else [board.post() for _ in range(100)]
        )
    got = [read_id(one) for one in sockets]
    assert sorted(got) == sorted(posted)
    assert got == posted, "not in the order in which they came"
    assert blocked_clients(server) == 0
    info = board.info()
    assert (info["claimed"], info["ready"], info["workers"]) == (count, 0, count)
    for one in sockets:
        one.close()


@pytest.mark.parametrize(("count", "named"), [(250, True), (800, False)])
def test_many_waiters_for_many_queues_are_served_in_several_turns_in_their_order(server, count, named):
    queues = [f"q{n}" for n in range(101)]
    board = server.board()
    board.pause()
    sockets = connect_many(server, count, f"QUEUES 101 {' '.join(queues)}" if named else "QUEUES 0")
    posted = [board.post(queue=queues[n % len(queues)]) for n in range(count)]
    pipe = board.client.pipeline(transaction=False)
    pipe.execute_command("JOB.RESUME", "board")
    pipe.execute_command("JOB.COUNT", "board", "STATE", "claimed")
    _, at_once = pipe.execute()
    assert 0 < at_once < count, "each takes a few looks, or one at each queue that it names"
    assert [read_id(one) for one in sockets] == posted
    for one in sockets:
        one.close()


def test_half_of_many_waiters_go_away_and_the_others_get_every_job(server):
    sockets = connect_many(server, 600)
    for one in sockets[::2]:
        one.close()
    wait_until(lambda: blocked_clients(server) == 300)
    board = server.board()
    posted = board.mpost(["x"] * 300)
    assert [read_id(one) for one in sockets[1::2]] == posted
    for one in sockets[1::2]:
        one.close()


def test_waiters_and_pollers_together_take_each_job_once(clocked, clock):
    waiters = [Waiter(clocked, f"w{n}") for n in range(10)]
    board = clocked.board()
    board.post_many(30, delay=10)
    assert Clock(board.client).advance(10)
    got = [waiter.job() for waiter in waiters] + drain(board)
    assert len(got) == len(set(got)) == 30
