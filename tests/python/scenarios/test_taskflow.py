"""What users of TaskFlow's job boards rely on: one owner at a time, and postings that outlive it.

A TaskFlow job is a job, its book and details the payload, its uuid the id; `who` is the worker.
Iteration is JOB.LIST, `wait` is JOB.WAIT FOR claimable, notifications are events, entities are workers.
"""

from __future__ import annotations

import json
import threading

import lives
import pytest
from expect import ids, refused
from harness import Board, wait_until
from harness.board import text
from lives import LONG


@pytest.fixture
def board(clocked_board) -> Board:
    return clocked_board


def wait_for(board: Board, ms: int, *what):
    return board.client.execute_command("JOB.WAIT", board.key, ms, "FOR", *(what or ["claimable"]))


def posting(board: Board, id: str = "j", **options) -> str:
    details = json.dumps({"store": {"a": [], "b": 1}})
    return board.post(details, id=id, name="flow", **options)


# Posting


def test_a_posting_has_name_uuid_details_and_times(board, clock):
    id = board.post('{"store": {}}', name="flow")
    job = board.get(id)
    assert len(id) == 36 and job["name"] == "flow" and job["payload"] == '{"store": {}}'
    assert job["posted"] == clock.now() and job["state"] == "ready"


def test_a_posting_is_whole_or_not_there(board):
    with refused("ERR PRIORITY must be an integer from -2147483648 to 2147483647", board):
        board.post("x", id="j", priority="urgent")
    assert board.count() == 0


def test_a_posting_stays_until_it_is_consumed(board, clock):
    posting(board)
    clock.advance(365 * 86_400_000)
    assert board.state("j") == "ready"


def test_postings_keep_their_sequence(board):
    [posting(board, id) for id in "cab"]
    numbers = [board.get(id)["seq"] for id in "cab"]
    assert numbers == sorted(set(numbers))


def test_the_count_is_that_of_all_that_have_not_ended(board):
    [posting(board, id) for id in "abc"]
    lives.claim(board, "a")
    assert board.count() == 3
    board.consume("w1", "a")
    assert board.count() == 2


@pytest.mark.parametrize(
    ("priorities", "order"),
    [([0, 10, -10], ["b", "a", "c"]), ([5, 5, 5], ["a", "b", "c"]), ([-1, 0, 1], ["c", "b", "a"])],
)
def test_priorities_come_first_then_the_order_of_posting(board, priorities, order):
    for id, priority in zip("abc", priorities):
        posting(board, id, priority=priority)
    assert board.list(state="ready", justid=True)[1] == order


# Iterating


def test_iteration_is_in_the_order_of_posting(board):
    [posting(board, f"j{n}") for n in range(20)]
    assert board.list(justid=True)[1] == [f"j{n}" for n in range(20)]


def test_iteration_over_unclaimed_ones_only(board):
    [posting(board, id) for id in "abc"]
    lives.claim(board, "b")
    assert board.list(state="ready", justid=True)[1] == ["a", "c"]
    assert sorted(board.list(justid=True)[1]) == ["a", "b", "c"]


def test_iteration_goes_on_while_jobs_come_and_go(board):
    [posting(board, f"j{n:02}") for n in range(30)]
    cursor, seen = board.list(justid=True, count=10)
    lives.claim(board, "j15")
    board.consume("w1", "j15")
    posting(board, "new")
    while cursor != "0":
        cursor, more = board.list(justid=True, count=10, cursor=cursor)
        seen += more
    assert set(seen) >= {f"j{n:02}" for n in range(30)} - {"j15"} and len(seen) == len(set(seen))


def test_backwards(board):
    [posting(board, id) for id in "abc"]
    assert board.list(justid=True, rev=True)[1] == ["c", "b", "a"]


# Claiming


def test_a_claim_by_id_is_the_claimers_alone(board):
    posting(board)
    lives.claim(board, "j", "anna")
    with refused("CLAIMED anna", board):
        board.claim("otto", id="j")
    with refused("CLAIMED you", board):
        board.claim("anna", id="j")


def test_claiming_what_is_not_there_is_not_found(board):
    with refused("NOJOB no such job", board):
        board.claim("anna", id="j")


def test_claiming_what_has_been_consumed_is_refused(board):
    lives.complete(board, "j")
    with refused("ENDED complete", board):
        board.claim("anna", id="j")


def test_the_owner_can_be_found(board):
    posting(board)
    assert "worker" not in board.get("j")
    lives.claim(board, "j", "anna")
    assert board.get("j")["worker"] == "anna"


def test_a_claim_may_be_for_a_time_and_be_prolonged(board, clock):
    posting(board)
    token = lives.claim(board, "j", "anna", lease=1000)
    clock.advance(999)
    assert board.heartbeat("anna", "j", token=token, lease=5000)["deadline"] == clock.now() + 5000
    clock.advance(4999)
    assert board.get("j")["worker"] == "anna"
    clock.advance(1)
    assert board.state("j") == "ready"


def test_how_long_a_claim_still_holds_is_told(board, clock):
    posting(board)
    lives.claim(board, "j", "anna", lease=1234)
    assert board.get("j")["deadline"] - clock.now() == 1234


def test_many_claimers_of_one_job_and_one_gets_it(server):
    server.board().post("x", id="j")
    answers: list = []

    def claim(who: str) -> None:
        try:
            answers.append(server.board().claim(who, id="j", lease=LONG) and "mine")
        except Exception as error:
            answers.append(type(error).__name__)

    threads = [threading.Thread(target=claim, args=(f"w{n}",)) for n in range(12)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert answers.count("mine") == 1


def test_all_unclaimed_ones_can_be_claimed_at_once(board):
    [posting(board, id) for id in "abc"]
    lives.claim(board, "b", "otto")
    assert ids(board.claim("anna", count=10)) == ["a", "c"]


# Consuming, abandoning, trashing


def test_only_the_owner_consumes(board):
    posting(board)
    lives.claim(board, "j", "anna")
    with refused("NOTOWNER anna", board):
        board.consume("otto", "j")
    assert board.consume("anna", "j") == "complete"


def test_an_unclaimed_job_cannot_be_consumed(board):
    posting(board)
    with refused("NOTCLAIMED ready", board):
        board.consume("anna", "j")


def test_an_abandoned_job_can_be_claimed_by_another(board):
    posting(board)
    lives.claim(board, "j", "anna")
    board.abandon("anna", "j", reason="shutting down")
    assert board.claim_one("otto", id="j")["attempt"] == 2


@pytest.mark.parametrize("verb", ["abandon", "trash"])
def test_only_the_owner_abandons_and_trashes(board, verb):
    posting(board)
    with refused("NOTCLAIMED ready", board):
        getattr(board, verb)("anna", "j")
    lives.claim(board, "j", "anna")
    with refused("NOTOWNER anna", board):
        getattr(board, verb)("otto", "j")


def test_a_trashed_job_is_kept_and_not_claimed_again(board):
    posting(board)
    lives.claim(board, "j", "anna")
    board.trash("anna", "j", reason="broken book")
    assert board.claim("otto") == []
    [job] = board.list(state="trashed")[1]
    assert (job["id"], job["reason"], job["previous"]) == ("j", "broken book", "anna")


def test_trash_can_be_brought_back(board):
    lives.trashed(board, "j")
    assert board.requeue("j").count == 1
    assert board.claim_one("otto")["id"] == "j"


def test_an_abandoned_job_goes_before_younger_ones(board):
    [posting(board, id) for id in "ab"]
    lives.claim(board, "a", "anna")
    board.abandon("anna", "a")
    assert ids(board.claim("otto", count=2)) == ["a", "b"]


# Owners that die


def test_the_job_of_a_dead_conductor_is_resumed_by_another(board, clock):
    posting(board)
    old = lives.claim(board, "j", "dead", lease=1000)
    clock.advance(1000)
    new = board.claim_one("alive")["token"]
    assert new > old
    with refused("NOTOWNER alive", board):
        board.consume("dead", "j", token=old)
    assert board.consume("alive", "j", token=new) == "complete"


def test_a_worker_of_the_same_name_is_not_the_same_claim(board):
    old = lives.lapsed_and_taken_again(board, "j")
    with refused(f"STALE token {old} is not the current one", board):
        board.consume("w1", "j", token=old)


def test_progress_and_details_written_by_the_dead_are_there_for_the_next(board, clock):
    posting(board)
    token = lives.claim(board, "j", "dead", lease=1000)
    board.heartbeat("dead", "j", token=token, progress=40, stage="task 2 of 5", meta={"book": "b-1"})
    clock.advance(1000)
    board.claim("alive")
    job = board.get("j")
    assert (job["progress"], job["stage"], job["meta"]) == (40.0, "task 2 of 5", {"book": "b-1"})


def test_claims_outlive_a_restart_of_the_server(fresh_server):
    server = fresh_server(appendonly=True, config=["appendfsync always"])
    token = lives.claimed(server.board(), "j", "anna")
    server.restart(kill=True)
    assert server.board().consume("anna", "j", token=token) == "complete"


def test_a_session_claim_ends_with_its_connection(server):
    board = server.board()
    board.post("x", id="j")
    client = server.connect()
    Board(client).claim("anna", id="j", lease=LONG, session=True)
    assert board.state("j") == "claimed"
    client.close()
    wait_until(lambda: board.state("j") == "ready", what="the session's end")


# Waiting and being told


def test_wait_answers_at_once_when_there_is_something(board):
    posting(board)
    assert text(wait_for(board, 0)) == "OK"


def test_wait_ends_with_its_timeout(server):
    assert wait_for(server.board(), 20) is None


def test_wait_is_woken_by_a_posting(server):
    answers: list = []
    board = server.board()
    board.set(lease=1000)  # the board is there, and empty

    def wait() -> None:
        answers.append(text(wait_for(server.board(), 60_000)))

    thread = threading.Thread(target=wait)
    thread.start()
    wait_until(lambda: server.info("clients")["blocked_clients"] == 1, what="it waits")
    board.post("x")
    thread.join(120)
    assert answers == ["OK"]


def test_posting_and_removal_are_published(server):
    board = server.board()
    client = server.client()
    client.config_set("notify-keyspace-events", "")
    server.spoil()
    board.set(events=32767)
    listener = server.client().pubsub(ignore_subscribe_messages=True)
    listener.subscribe("job.events:board")
    wait_until(lambda: client.pubsub_numsub("job.events:board")[0][1] == 1, what="subscribed")
    lives.gone(board, "j")
    told: list = []

    def enough() -> bool:
        message = listener.get_message(timeout=0.1)
        if message:
            told.append(json.loads(message["data"]))
        return any(one["event"] == "completed" for one in told)

    wait_until(enough, what="completed is told")
    assert [one["event"] for one in told][0] == "posted" and {one["id"] for one in told} == {"j"}


# Entities


def test_entities_register_with_what_they_are(board):
    call = board.client.execute_command
    call("JOB.WORKER", "REGISTER", board.key, "c1", "ROLE", "conductor", "META", 1, "engine", "serial")
    reply = call("JOB.WORKER", "LIST", board.key)
    assert "c1" in str(reply) and "conductor" in str(reply) and "serial" in str(reply)
    call("JOB.WORKER", "DEREGISTER", board.key, "c1")
    assert "c1" not in str(call("JOB.WORKER", "LIST", board.key))
