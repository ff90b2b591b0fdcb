"""JOB.CLAIM with MIN and LINGER: who waits for several jobs at once gets them together, or in time."""

from __future__ import annotations

import pytest
from expect import ids
from harness import wait_until
from harness.board import from_pairs
from waiters import Waiter, blocked_clients, error_of


def batch(server, worker="w1", least=3, linger=None, count=10, **how):
    return Waiter(server, worker, count=count, min=least, linger=linger, **how)


# The minimum


def test_a_batch_is_given_out_when_it_is_complete(server):
    board = server.board()
    waiter = batch(server)
    posted = board.mpost("ab")
    assert waiter.still_waits()
    assert board.count(state="ready") == 2
    posted.append(board.post())
    assert ids(waiter.reply()) == posted


def test_a_complete_batch_is_given_out_at_once(board):
    posted = board.mpost("abcde")
    assert ids(board.claim(count=4, min=3, block=0)) == posted[:4]


def test_a_batch_takes_the_jobs_of_all_its_queues(server):
    waiter = batch(server, queues=["a", "b", "a"])
    board = server.board()
    first = board.post(queue="a")
    board.mpost("xyz", queue="c")
    second = board.post(queue="b")
    assert waiter.still_waits()
    board.post(id="last", queue="b")
    assert sorted(ids(waiter.reply())) == sorted([first, second, "last"])


def test_a_batch_of_every_queue(server):
    waiter = batch(server, queues=[])
    board = server.board()
    posted = [board.post(queue=queue) for queue in "ab"]
    assert waiter.still_waits()
    posted.append(board.post(queue="c"))
    assert sorted(ids(waiter.reply())) == sorted(posted)


def test_jobs_of_a_paused_queue_do_not_count(server):
    board = server.board()
    waiter = batch(server)
    board.pause(queue="default")
    board.mpost("abc")
    assert waiter.still_waits()
    board.resume(queue="default")
    assert len(waiter.reply()) == 3


def test_no_more_jobs_count_than_may_run(server):
    board = server.board()
    board.client.execute_command("JOB.SETTINGS", "SET", "board", "concurrency", 3)
    board.post(id="first")
    board.claim_one("w2")
    waiter = batch(server)
    posted = board.mpost("abcd")
    assert waiter.still_waits()
    board.consume("w2", "first")
    assert ids(waiter.reply()) == posted[:3]


def test_without_block_a_batch_takes_what_there_is(board):
    posted = board.mpost("ab")
    assert ids(board.claim(count=9, min=5)) == posted
    assert board.claim(count=9, min=5) == []


def test_in_a_transaction_a_batch_takes_what_there_is(server):
    board = server.board()
    posted = board.mpost("ab")
    with board.client.pipeline(transaction=True) as pipe:
        pipe.execute_command("JOB.CLAIM", "board", "w1", "COUNT", 9, "MIN", 5, "BLOCK", 0, "FIELDS", 1, "id")
        [found] = pipe.execute()
    assert ids(map(dict, found)) == posted


def test_a_batch_is_completed_in_a_transaction(server):
    waiter = batch(server)
    with server.client().pipeline(transaction=True) as pipe:
        for id in "abc":
            pipe.execute_command("JOB.POST", "board", "x", "ID", id)
        pipe.execute()
    assert ids(waiter.reply()) == list("abc")


def test_the_claims_of_before_come_at_once(board):
    board.post(id="mine")
    token = board.claim_one()["token"]
    board.post(id="more")
    assert ids(board.claim(count=9, min=5, seen=token - 1, block=0)) == ["mine", "more"]


# The time


def test_a_batch_takes_what_there_is_when_it_has_lingered_long_enough(clocked, clock):
    board = clocked.board()
    waiter = batch(clocked, linger=50)
    clock.advance(1000)
    assert waiter.still_waits()
    posted = [board.post()]
    clock.advance(30)
    posted.append(board.post())
    clock.advance(19)
    assert waiter.still_waits()
    clock.advance(1)
    assert ids(waiter.reply()) == posted


def test_jobs_that_are_there_already_have_been_seen(clocked, clock):
    posted = clocked.board().mpost("ab")
    clock.advance(1000)
    waiter = batch(clocked, linger=50)
    clock.advance(49)
    assert waiter.still_waits()
    clock.advance(1)
    assert ids(waiter.reply()) == posted


def test_a_complete_batch_does_not_linger(clocked, clock):
    waiter = batch(clocked, linger=50)
    posted = clocked.board().mpost("ab")
    clock.advance(10)
    posted.append(clocked.board().post())
    assert ids(waiter.reply()) == posted


def lingers_from_now(waiter, clock, posted: str) -> None:
    """The waiter, whose LINGER is 50 ms, takes the job when that has passed from now on."""
    clock.advance(49)
    assert waiter.still_waits()
    clock.advance(1)
    assert ids(waiter.reply()) == [posted]


def test_when_others_took_the_jobs_the_time_starts_again(clocked, clock):
    board = clocked.board()
    waiter = batch(clocked, linger=50)
    board.post()
    clock.advance(40)
    board.claim_one("w2")
    clock.advance(10)
    assert waiter.still_waits()
    posted = board.post()
    lingers_from_now(waiter, clock, posted)


@pytest.mark.parametrize("how", ["claim", "delete", "transaction", "two queues"])
def test_the_time_starts_again_also_with_a_job_that_comes_before_its_end(clocked, clock, how):
    board = clocked.board()
    waiter = batch(clocked, linger=50, queues=["a", "b"])
    id = board.post(queue="a")
    clock.advance(20)
    if how == "delete":
        board.delete(id)
    elif how == "transaction":
        with board.client.pipeline(transaction=True) as pipe:
            pipe.execute_command("JOB.CLAIM", "board", "w2", "QUEUE", "a")
            pipe.execute_command("JOB.POST", "board", "x", "QUEUE", "c")
            pipe.execute()
    else:
        other = board.post(queue="b") if how == "two queues" else None
        board.claim_one("w2", queues=["a"])
        clock.advance(5)
        if other:
            board.claim_one("w2", queues=["b"])
    clock.advance(20)
    posted = board.post(queue="b")
    lingers_from_now(waiter, clock, posted)


def test_a_job_that_is_left_keeps_the_time_running(clocked, clock):
    board = clocked.board()
    waiter = batch(clocked, linger=50, queues=["a", "b"])
    board.post(queue="a")
    clock.advance(10)
    left = board.post(queue="b")
    board.claim_one("w2", queues=["a"])
    clock.advance(39)
    assert waiter.still_waits()
    clock.advance(1)
    assert ids(waiter.reply()) == [left]


def test_a_job_that_becomes_due_is_seen_then(clocked, clock):
    waiter = batch(clocked, linger=50)
    posted = clocked.board().post(delay=200)
    clock.advance(200)
    lingers_from_now(waiter, clock, posted)


def test_a_board_that_is_made_anew_has_shown_nothing(clocked, clock):
    board = clocked.board()
    waiter = batch(clocked, linger=50)
    board.post()
    clock.advance(40)
    board.client.delete("board")
    posted = board.post()
    lingers_from_now(waiter, clock, posted)


def test_a_job_that_comes_under_another_name_is_seen(clocked, clock):
    waiter = batch(clocked, linger=50)
    posted = clocked.board("other").post()
    clocked.client().rename("other", "board")
    lingers_from_now(waiter, clock, posted)


def test_at_the_end_of_the_wait_a_batch_takes_what_there_is(server):
    posted = server.board().mpost("ab")
    assert ids(batch(server, block=30, await_block=False).reply()) == posted
    assert batch(server, block=30, await_block=False).reply() is None
    assert server.board().count(state="claimed") == 2


def test_a_batch_that_is_unblocked_gets_nothing(server):
    board = server.board()
    board.mpost("ab")
    waiter = batch(server)
    server.client().client_unblock(waiter.id)
    assert waiter.reply() is None
    assert board.count(state="ready") == 2


def test_the_end_of_work_is_answered_with_the_batch(server):
    board = server.board()
    board.post(id="j")
    board.claim_one()
    words = ("JOB.CONSUME", "board", "w1", "j", "CLAIM", "COUNT", 9, "MIN", 2, "BLOCK", 0, "FIELDS", 1, "id")
    waiter = Waiter(server, await_block=False)
    board.post(id="other")
    assert waiter.job() == "other"
    waiter.send(*words)
    wait_until(waiter.is_blocked, what="the batch is waited for")
    posted = board.mpost("ab")
    state, found = waiter.answer()
    assert (state, [one["id"] for one in found]) == ("complete", posted)


# Beside others


def test_who_waits_for_any_job_comes_before_who_waits_for_many(server):
    board = server.board()
    waiter = batch(server, least=2)
    plain = Waiter(server, "w2")
    first = board.post()
    assert plain.job() == first
    second = board.post()
    assert waiter.still_waits()
    other = Waiter(server, "w3", await_block=False)
    assert other.job() == second
    posted = board.mpost("ab")
    assert ids(waiter.reply()) == posted


def test_nothing_is_reserved_for_a_batch(server):
    board = server.board()
    waiter = batch(server)
    board.mpost("ab")
    assert len(board.claim("w2", count=2)) == 2
    board.post()
    assert waiter.still_waits()


def test_the_first_that_has_enough_comes_first(server):
    board = server.board()
    large = batch(server, "large", least=5)
    small = batch(server, "small", least=2, count=2)
    next_ = batch(server, "next", least=2, count=2)
    posted = board.mpost("abcde")
    assert ids(large.reply()) == posted
    posted = board.mpost("abcd")
    assert ids(small.reply()) == posted[:2]
    assert ids(next_.reply()) == posted[2:]


def test_a_large_batch_does_not_keep_a_small_one_waiting(server):
    board = server.board()
    large = batch(server, "large", least=5)
    small = batch(server, "small", least=2, count=2)
    posted = board.mpost("ab")
    assert ids(small.reply()) == posted
    assert large.still_waits()


@pytest.mark.parametrize("linger", [None, 50])
def test_a_hundred_wait_for_batches_beside_others_on_the_same_queues(clocked, clock, linger):
    board = clocked.board()
    queues = [["a"], ["b"], ["a", "b"], []]
    waiters = [
        batch(clocked, f"batch{n}", linger=linger, queues=queues[n % 4], count=3, await_block=False)
        for n in range(100)
    ]
    plain = [Waiter(clocked, f"plain{n}", queues=["a", "b"], await_block=False) for n in range(10)]
    wait_until(lambda: blocked_clients(clocked) == 110, what="all of them wait")
    posted = [board.post(queue="ab"[n % 2]) for n in range(10)]
    assert [one.job() for one in plain] == posted
    posted = []
    while blocked_clients(clocked):
        posted += [board.post(queue="a"), board.post(queue="b")]
    found = [one.reply() for one in waiters]
    assert all(len(jobs) == 3 for jobs in found)
    claimed = [id for jobs in found for id in ids(jobs)]
    assert len(set(claimed)) == 300 and set(claimed) <= set(posted)
    assert board.count(state="ready") == len(posted) - 300
    for n, jobs in enumerate(found):
        assert {job.get("queue") for job in jobs} <= set(queues[n % 4] or "ab")


def test_many_claims_that_ask_for_different_things_are_all_served(server):
    """There are more claims than one post looks at: the timer looks at the rest."""
    board = server.board()
    queues = [f"q{n}" for n in range(10)]
    waiters = [
        batch(
            server,
            f"w{n}",
            least=2 + n % 40,
            count=2 + n % 40,
            queues=queues[: 1 + n % 10],
            await_block=False,
        )
        for n in range(120)
    ]
    wait_until(lambda: blocked_clients(server) == 120, what="all of them wait")
    wanted = sum(2 + n % 40 for n in range(120))
    posted = [id for _ in range(0, wanted, 100) for id in board.mpost(["x"] * 100, queue="q0")]
    claimed = [id for one in waiters for id in ids(one.reply())]
    assert len(set(claimed)) == wanted and set(claimed) <= set(posted)
    assert blocked_clients(server) == 0


def test_a_hundred_share_one_job_in_time(clocked, clock):
    board = clocked.board()
    waiters = [batch(clocked, f"w{n}", linger=50, await_block=False) for n in range(100)]
    wait_until(lambda: blocked_clients(clocked) == 100, what="all of them wait")
    posted = board.post()
    clock.advance(50)
    assert ids(waiters[0].reply()) == [posted]
    assert blocked_clients(clocked) == 99
    more = board.post()
    clock.advance(49)
    assert not waiters[1].answered()
    clock.advance(1)
    assert ids(waiters[1].reply()) == [more]


# Those that leave


def test_a_batch_of_a_client_that_is_gone_goes_to_the_next(server):
    board = server.board()
    first, second = batch(server), batch(server, "w2")
    first.close()
    wait_until(lambda: blocked_clients(server) == 1, what="the first has gone")
    posted = board.mpost("abc")
    assert ids(second.reply()) == posted


def test_a_quiet_worker_gets_no_batch(server):
    board = server.board()
    board.worker("REGISTER", "w1")
    board.worker("QUIET", "w1")
    waiter, other = batch(server), batch(server, "w2")
    posted = board.mpost("abc")
    assert ids(other.reply()) == posted
    posted = board.mpost("abc")
    assert waiter.still_waits()
    board.worker("RESUME", "w1")
    assert ids(waiter.reply()) == posted


def test_a_batch_ends_with_the_role(fresh_server):
    server = fresh_server()
    waiter = batch(server, linger=60_000)
    server.board().post()
    server.client().execute_command("REPLICAOF", "127.0.0.1", 1)
    assert error_of(waiter).startswith("UNBLOCKED")


def test_explain_counts_who_waits_for_a_batch(server):
    board = server.board()
    batch(server, least=2), batch(server, "w2", least=2, queues=[]), batch(server, "w3", queues=["other"])
    board.post(id="j")
    assert from_pairs(board.call("EXPLAIN", "j"))["waiting"] == 2
