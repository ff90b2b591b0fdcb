"""What users of blueque rely on: queues for very long tasks, listeners on nodes, a record of each task.

A blueque queue is a queue of a board, a listener `host_pid` is a registered worker, `reserved` and `started`
are both `claimed` (the stage says which), parameters are the payload, an error is FAIL's message.
Tasks that run for days hold their lease by heartbeats, not by the absence of any check.
"""

from __future__ import annotations

import json
import threading

import lives
import pytest
from expect import check_consistent, ids, refused
from harness import Board
from harness.board import records
from lives import LONG
from waiters import Waiter

DAY = 86_400_000
NODE = "host-1_4711"


@pytest.fixture
def board(clocked_board) -> Board:
    clocked_board.set(retain_complete=-1, retain_failed=-1, retries=0)
    return clocked_board


def enqueue(board: Board, id: str = "t", queue: str = "encode", **options) -> str:
    return board.post(json.dumps({"task": id}), id=id, queue=queue, **options)


def dequeue(board: Board, node: str = NODE, queue: str = "encode") -> dict:
    return board.claim_one(node, queues=[queue])


def worker(board: Board, verb: str, *words):
    return board.client.execute_command("JOB.WORKER", verb, board.key, *words)


def listeners(board: Board) -> list:
    reply = worker(board, "LIST")
    rows = reply[1] if len(reply) == 2 and not isinstance(reply[0], dict) else reply
    return sorted(row["worker"] for row in records(rows))


# Queue


def test_enqueue_answers_with_the_id_of_the_task(board):
    id = board.post("{}", queue="encode")
    assert board.state(id) == "ready"


def test_parameters_come_back_as_they_were_given(board):
    parameters = '{"empty": [], "nested": {"a": [1, 2.50, null]}}'
    board.post(parameters, queue="encode")
    assert dequeue(board)["payload"] == parameters


def test_a_task_knows_queue_state_and_times(board, clock):
    enqueue(board)
    posted = clock.now()
    clock.advance(5)
    task = board.get("t")
    assert (task["queue"], task["state"], task["posted"]) == ("encode", "ready", posted)


def test_first_in_first_out(board):
    for n in range(10):
        enqueue(board, f"t{n}")
    assert [dequeue(board)["id"] for _ in range(10)] == [f"t{n}" for n in range(10)]


def test_queues_do_not_mix(board):
    enqueue(board, "a", queue="encode")
    enqueue(board, "b", queue="thumbnail")
    assert dequeue(board, queue="thumbnail")["id"] == "b"
    assert board.claim(NODE, queues=["thumbnail"]) == []


def test_all_queues_can_be_listed_with_their_tasks(board):
    enqueue(board, "a", queue="encode")
    enqueue(board, "b", queue="thumbnail")
    rows = board.queues()
    assert {name: row["ready"] for name, row in rows.items()} == {"encode": 1, "thumbnail": 1}


def test_a_task_is_reserved_by_one_node_in_one_step(board):
    enqueue(board)
    dequeue(board)
    task = board.get("t")
    assert (task["state"], task["worker"]) == ("claimed", NODE)
    assert board.claim("host-2_1", queues=["encode"]) == []


def test_the_tasks_of_a_node_can_be_listed(board):
    for n in range(4):
        enqueue(board, f"t{n}")
    [dequeue(board), dequeue(board), dequeue(board, "host-2_1")]
    assert board.list(worker=NODE, justid=True)[1] == ["t0", "t1"]
    assert board.list(worker="host-2_1", justid=True)[1] == ["t2"]


def test_a_listener_waits_without_polling(server):
    waiter = Waiter(server, NODE, queues=["encode"], block=0)
    server.board().post("x", id="t", queue="encode")
    assert waiter.job() == "t"


def test_two_listeners_on_one_node_share_no_task(server):
    board = server.board()
    board.mpost(["x"] * 100, queue="encode")
    got: list = []

    def listen(pid: int) -> None:
        mine = server.board()
        while found := mine.claim(f"host-1_{pid}", queues=["encode"], lease=LONG):
            got.extend(ids(found))

    threads = [threading.Thread(target=listen, args=(pid,)) for pid in range(3)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(set(got)) == len(got) == 100


# Scheduled tasks


def test_a_scheduled_task_becomes_pending_by_itself(board, clock):
    enqueue(board, at=clock.now() + DAY)
    assert board.state("t") == "scheduled" and board.claim(NODE, queues=["encode"]) == []
    clock.advance(DAY)
    assert dequeue(board)["id"] == "t"


def test_a_time_that_has_passed_means_now(board, clock):
    enqueue(board, at=clock.now() - 1)
    assert board.state("t") == "ready"


def test_the_time_of_a_scheduled_task_stands_in_its_record(board, clock):
    eta = clock.now() + 5000
    enqueue(board, at=eta)
    assert board.get("t")["due"] == eta


def test_due_tasks_keep_the_order_of_their_times(board, clock):
    for n in (3, 1, 2):
        enqueue(board, f"t{n}", delay=n * 1000)
    clock.advance(10_000)
    assert [dequeue(board)["id"] for _ in range(3)] == ["t1", "t2", "t3"]


# Processing


def test_starting_a_task_notes_the_process(board):
    enqueue(board)
    token = dequeue(board)["token"]
    board.heartbeat(NODE, "t", token=token, stage="started", meta={"pid": 4712})
    task = board.get("t")
    assert (task["stage"], task["meta"]) == ("started", {"pid": "4712"})


def test_a_result_is_kept_with_the_complete_task(board):
    enqueue(board)
    token = dequeue(board)["token"]
    assert board.consume(NODE, "t", token=token, result='{"url": "x"}') == "complete"
    task = board.get("t")
    assert (task["state"], task["result"], task["previous"]) == ("complete", '{"url": "x"}', NODE)


def test_an_error_is_kept_with_the_failed_task(board):
    enqueue(board)
    token = dequeue(board)["token"]
    assert board.fail(NODE, "t", "error", "no such codec", token=token)["state"] == "failed"
    task = board.get("t")
    assert (task["state"], task["message"]) == ("failed", "no such codec")


def test_a_failed_task_is_not_tried_again_where_there_are_no_retries(board, clock):
    enqueue(board)
    board.fail(NODE, "t", "error", "x", token=dequeue(board)["token"])
    clock.advance(DAY)
    assert board.state("t") == "failed" and board.claim(NODE, queues=["encode"]) == []


def test_complete_and_failed_tasks_can_be_listed(board):
    for n in range(4):
        enqueue(board, f"t{n}")
        task = dequeue(board)
        if n % 2:
            board.fail(NODE, task["id"], "error", "x", token=task["token"])
        else:
            board.consume(NODE, task["id"], token=task["token"])
    assert board.list(state="complete", queue="encode", justid=True)[1] == ["t0", "t2"]
    assert board.list(state="failed", queue="encode", justid=True)[1] == ["t1", "t3"]


def test_another_process_cannot_complete_a_task(board):
    enqueue(board)
    dequeue(board)
    with refused(f"NOTOWNER {NODE}", board):
        board.consume("host-2_1", "t")


def test_a_task_is_completed_once(board):
    enqueue(board)
    token = dequeue(board)["token"]
    board.consume(NODE, "t", token=token)
    with refused("ENDED complete", board):
        board.fail(NODE, "t", "error", "x", token=token)


def test_every_change_moves_the_time_of_change(board, clock):
    enqueue(board)
    token = dequeue(board)["token"]
    clock.advance(77)
    board.heartbeat(NODE, "t", token=token, stage="started")
    assert board.get("t")["modified"] == clock.now()


def test_a_task_runs_for_days_with_heartbeats(board, clock):
    enqueue(board)
    token = dequeue(board)["token"]
    for _ in range(2 * 24 * 60):
        clock.advance(20_000)
        board.heartbeat(NODE, "t", token=token)
    assert board.consume(NODE, "t", token=token) == "complete"


def test_the_task_of_a_process_that_died_does_not_stay_started_for_ever(board, clock):
    enqueue(board)
    dequeue(board)
    clock.advance(30_000)
    assert dequeue(board, "host-2_1")["id"] == "t"
    assert "lapsed" in board.events("t")


def test_a_task_can_be_bound_to_one_attempt(board, clock):
    enqueue(board, lapses=0)
    dequeue(board)
    clock.advance(30_000)
    task = board.get("t")
    assert (task["state"], task["kind"]) == ("failed", "lapsed")


# Deleting


@pytest.mark.parametrize("how", ["complete", "failed"])
def test_finished_tasks_can_be_deleted(board, how):
    getattr(lives, how)(board, "t", queue="encode")
    assert board.delete("t").count == 1
    assert board.get("t") is None
    check_consistent(board)


def test_deleting_twice_tells_that_it_is_unknown(board):
    lives.failed(board, "t")
    board.delete("t")
    assert board.delete("t").unknown == ["t"]


# Listeners


def test_listeners_register_and_leave(board):
    worker(board, "REGISTER", "host-1_1", "ROLE", "listener", "META", 1, "queue", "encode")
    worker(board, "REGISTER", "host-2_1", "ROLE", "listener")
    assert listeners(board) == ["host-1_1", "host-2_1"]
    worker(board, "DEREGISTER", "host-1_1")
    assert listeners(board) == ["host-2_1"]


def test_registering_again_is_no_second_listener(board):
    [worker(board, "REGISTER", "host-1_1") for _ in range(3)]
    assert listeners(board) == ["host-1_1"]


def test_a_listener_that_vanished_leaves_the_list_by_itself(board, clock):
    worker(board, "REGISTER", "host-1_1", "FOR", 60_000)
    clock.advance(60_000)
    assert listeners(board) == []


def test_the_tasks_of_a_listener_that_vanished_go_back(board, clock):
    worker(board, "REGISTER", NODE, "FOR", 1000)
    enqueue(board)
    board.claim_one(NODE, queues=["encode"], lease=LONG)
    clock.advance(1000)
    assert dequeue(board, "host-2_1")["id"] == "t"
