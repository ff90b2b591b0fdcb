"""What users of redis-work-queue rely on: items are leased, come back, and are completed once.

An item is a job, its id chosen or made; the lease is the claim's; `complete` says true to exactly one caller.
An ownerless board (`ownerless 1`) takes `*` where that system has no worker's name.
"""

from __future__ import annotations

import json
import threading

import lives
import pytest
from expect import check_consistent, ids, refused
from harness import Board, wait_until
from lives import LONG
from waiters import Waiter


@pytest.fixture
def queue(clocked_board) -> Board:
    clocked_board.set(ownerless=1)
    return clocked_board


def lease(board: Board, ms: int = 1000, worker: str = "w1"):
    """The next item, or None."""
    return next(iter(board.claim(worker, lease=ms)), None)


def completed(board: Board, id: str) -> bool:
    """Whether this call was the one that completed it."""
    reply = board.mconsume("*", [id])
    assert reply[0] == "complete" or reply[0][0] in ("ENDED", "NOJOB"), reply
    return reply == ["complete"]


# Adding items


def test_an_item_is_an_id_and_bytes(clocked):
    queue = clocked.board(decode_responses=False)
    data = bytes(range(256))
    queue.post(data, id="item")
    assert lease(queue)["payload"] == data


def test_json_data_is_not_touched(queue):
    for number, data in enumerate(['{"list": []}', '{"n": 12345678901234567890}', '[1.0, 1e400, "ü"]']):
        queue.post(data, id=f"j{number}")
        assert lease(queue)["payload"] == data
        json.loads(data)


def test_an_item_without_an_id_gets_one(queue):
    made = queue.post("data")
    assert len(made) == 36 and lease(queue)["id"] == made


def test_add_new_item_adds_only_one_that_is_not_there(queue):
    assert queue.post("first", id="a", nx=True) == "a"
    assert queue.post("second", id="a", nx=True) is None
    assert queue.count() == 1 and lease(queue)["payload"] == "first"


def test_add_new_item_sees_items_that_are_being_processed(queue):
    queue.post("first", id="a")
    lease(queue)
    assert queue.post("second", id="a", nx=True) is None


def test_the_same_id_may_be_added_again_when_it_is_complete(queue):
    queue.set(tombstones=0)
    queue.post("first", id="a")
    assert completed(queue, "a")
    assert queue.post("second", id="a", nx=True) == "a"
    assert lease(queue)["payload"] == "second"


def test_many_adders_of_one_id_add_it_once(server):
    answers: list = []

    def add() -> None:
        board = server.board()
        answers.append(board.post("x", id="a", nx=True))

    threads = [threading.Thread(target=add) for _ in range(16)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(answers, key=str) == [None] * 15 + ["a"]


def test_items_can_be_added_in_a_pipeline_and_a_transaction(queue):
    with queue.client.pipeline(transaction=True) as pipe:
        for id in "abc":
            pipe.execute_command("JOB.POST", queue.key, "x", "ID", id)
        pipe.execute()
    assert queue.list(justid=True)[1] == ["a", "b", "c"]


# Leasing


def test_items_are_leased_in_the_order_in_which_they_were_added(queue):
    [queue.post("x", id=f"i{n}") for n in range(20)]
    assert [lease(queue)["id"] for _ in range(20)] == [f"i{n}" for n in range(20)]


def test_a_lease_without_blocking_answers_nothing_at_once(queue):
    assert lease(queue) is None


def test_a_blocked_lease_ends_with_its_timeout(server):
    waiter = Waiter(server, block=30, await_block=False)
    assert waiter.reply() is None


def test_a_blocked_lease_gets_an_item_that_is_added(server):
    waiter = Waiter(server, block=0)
    server.board().post("x", id="late")
    assert waiter.job() == "late"


def test_each_item_goes_to_one_worker_only(server):
    board = server.board()
    board.mpost(["x"] * 500)
    got: list = []

    def work(worker: str) -> None:
        mine = server.board()
        while found := mine.claim(worker, count=3, lease=LONG):
            got.extend(ids(found))

    threads = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(got) == len(set(got)) == 500


def test_an_item_whose_lease_ended_comes_back_without_any_cleaner(queue, clock):
    queue.post("x", id="a")
    lease(queue, 1000)
    clock.advance(999)
    assert lease(queue, worker="w2") is None
    clock.advance(1)
    assert lease(queue, worker="w2")["id"] == "a"


def test_an_item_that_comes_back_is_before_younger_ones(queue, clock):
    queue.post("x", id="old")
    lease(queue, 1000)
    queue.post("x", id="young")
    clock.advance(1000)
    assert [lease(queue)["id"], lease(queue)["id"]] == ["old", "young"]


def test_a_blocked_worker_gets_the_item_of_one_that_died(server):
    board = server.board()
    board.post("x", id="a")
    board.claim("dead", lease=20)
    waiter = Waiter(server, "alive", block=0, await_block=False)
    assert waiter.job() == "a"


def test_a_worker_that_ignores_an_item_leases_the_next(queue, clock):
    queue.post("x", id="later")
    queue.post("x", id="next")
    assert lease(queue, 5000)["id"] == "later"
    assert lease(queue, 5000)["id"] == "next"
    assert completed(queue, "next")
    clock.advance(5000)
    assert lease(queue)["id"] == "later"


def test_an_item_is_never_given_up_when_lapses_are_without_end(queue, clock):
    queue.set(lapses=-1)
    queue.post("x", id="a")
    for _ in range(50):
        assert lease(queue)["id"] == "a"
        clock.advance(1000)
    assert queue.state("a") == "ready"


def test_a_worker_may_prolong_its_lease(queue, clock):
    queue.post("x", id="a")
    token = lease(queue, 1000)["token"]
    clock.advance(900)
    queue.heartbeat("w1", "a", token=token, lease=1000)
    clock.advance(900)
    assert lease(queue, worker="w2") is None


# Completing


def test_complete_says_true_once(queue):
    queue.post("x", id="a")
    lease(queue)
    assert [completed(queue, "a") for _ in range(3)] == [True, False, False]


def test_of_two_workers_on_one_item_one_is_told_that_it_was_the_first(queue, clock):
    queue.post("x", id="a")
    lease(queue, 1000, "slow")
    clock.advance(1000)
    lease(queue, 1000, "quick")
    assert completed(queue, "a")
    assert not completed(queue, "a")
    assert lease(queue) is None


def test_an_item_that_went_back_to_the_queue_can_still_be_completed(queue, clock):
    queue.post("x", id="a")
    lease(queue, 1000)
    clock.advance(1000)
    assert completed(queue, "a")
    assert lease(queue) is None and queue.count() == 0


def test_many_completers_and_one_is_the_first(server):
    board = server.board()
    board.set(ownerless=1)
    for round in range(20):
        id = f"item-{round}"
        board.post("x", id=id)
        answers: list = []
        clients = [server.board() for _ in range(6)]

        def finish(mine: Board, id: str = id, answers: list = answers) -> None:
            answers.append(completed(mine, id))

        threads = [threading.Thread(target=finish, args=(mine,)) for mine in clients]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert sorted(answers) == [False] * 5 + [True]


def test_run_at_most_once_completes_right_after_the_lease(queue, clock):
    queue.post("x", id="a")
    lease(queue, 1000)
    assert completed(queue, "a")
    clock.advance(10_000)
    assert lease(queue, worker="w2") is None


def test_completing_what_was_never_added_is_not_true(queue):
    assert not completed(queue, "unknown")


def test_a_board_with_owners_does_not_take_the_star(clocked_board):
    token = lives.claimed(clocked_board, "a")
    with pytest.raises(Exception, match="ownerless"):
        clocked_board.consume("*", "a")
    assert clocked_board.consume("w1", "a", token=token) == "complete"


def test_the_token_keeps_a_late_worker_from_completing(clocked_board, clock):
    old = lives.lapsed_and_taken(clocked_board, "a")
    with refused("NOTOWNER w2", clocked_board):
        clocked_board.consume("w1", "a", token=old)


# Lengths and cleaning


def test_lengths_of_queue_and_processing_in_one_reply(queue):
    [queue.post("x") for _ in range(5)]
    lease(queue)
    lease(queue)
    info = queue.info()
    assert (info["ready"], info["claimed"]) == (3, 2)
    assert (queue.count(state="ready"), queue.count(state="claimed")) == (3, 2)


def test_abandoned_items_count_as_processing_until_their_lease_ends(queue, clock):
    queue.post("x")
    lease(queue, 1000)
    assert queue.count(state="claimed") == 1
    clock.advance(1000)
    assert (queue.count(state="claimed"), queue.count(state="ready")) == (0, 1)


def test_nothing_is_left_behind_by_completed_items(queue):
    queue.set(tombstones=0)
    for n in range(100):
        queue.post("x", id=f"i{n}")
        lease(queue)
        assert completed(queue, f"i{n}")
    info = queue.info()
    assert info["jobs"] == info["tombstones"] == 0
    check_consistent(queue)


def test_items_survive_a_kill_of_the_server(fresh_server):
    server = fresh_server(appendonly=True, config=["appendfsync always"])
    board = server.board()
    board.set(ownerless=1, lapses=-1)
    [board.post("x", id=f"i{n}") for n in range(10)]
    board.claim("w1", count=4, lease=LONG)
    assert completed(board, "i9")
    server.restart(kill=True)
    board = server.board()
    assert (board.count(state="ready"), board.count(state="claimed")) == (5, 4)
    assert not completed(board, "i9")
    assert completed(board, "i0")


def test_a_killed_workers_items_are_all_done_by_others(server):
    board = server.board()
    board.set(ownerless=1, lapses=-1)
    board.mpost(["x"] * 30)
    board.claim("killed", count=10, lease=30)
    done: set = set()

    def all_done() -> bool:
        for job in board.claim("alive", count=5, lease=LONG):
            assert completed(board, job["id"])
            done.add(job["id"])
        return len(done) == 30

    wait_until(all_done, what="all items are done")
