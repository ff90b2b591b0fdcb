"""What users of qless rely on: jobs that move through queues under one id, leased, ordered, counted.

A qless client is a board, jid is the id, klass the name, data the payload. `pop` is JOB.CLAIM, `peek`
JOB.LIST, `complete … next` JOB.CONSUME … NEXT, `recur` JOB.SCHEDULE. `running`, `stalled` and `depends` are
claimed, lapsed and blocked.
"""

from __future__ import annotations

import json

import lives
import pytest
import redis
from expect import check_consistent, ids, refused
from harness import Board
from lives import LONG

HEARTBEAT = 60_000


@pytest.fixture
def board(clocked_board) -> Board:
    clocked_board.set(lease=HEARTBEAT, retries=5, lapses=5, retain_complete=7 * 86_400_000)
    return clocked_board


def put(board: Board, id: str = "j", queue: str = "q", **options):
    return board.post(json.dumps({"jid": id}), id=id, queue=queue, name="Klass", **options)


def pop(board: Board, worker: str = "w1", queue: str = "q", **options):
    return board.claim(worker, queues=[queue], **options)


def pop_one(board: Board, worker: str = "w1", queue: str = "q") -> dict:
    return board.claim_one(worker, queues=[queue])


# Putting


def test_a_put_job_has_all_its_attributes(board, clock):
    put(board, priority=3, retries=2)
    job = board.get("j")
    assert (job["name"], job["queue"], job["state"]) == ("Klass", "q", "ready")
    assert (job["priority"], job["left"], job["posted"]) == (3, 2, clock.now())


def test_data_comes_back_byte_by_byte(board):
    data = '{"a": [], "b": {}, "c": 12345678901234567890, "d": 1e3}'
    board.post(data, id="j", queue="q")
    assert pop_one(board)["payload"] == data


def test_a_put_of_a_job_that_is_there_moves_it(board):
    put(board, queue="q")
    put(board, queue="other", replace=True)
    assert pop(board) == [] and pop_one(board, queue="other")["id"] == "j"
    assert board.count() == 1


def test_a_move_keeps_what_is_not_named(board):
    put(board, priority=7, retries=3)
    board.post("new", id="j", queue="other", replace=True)
    job = board.get("j")
    assert (job["priority"], job["left"], job["name"], job["payload"]) == (7, 3, "Klass", "new")


def test_a_move_takes_the_job_from_its_worker(board):
    put(board)
    token = pop_one(board)["token"]
    put(board, queue="other", replace=True)
    with refused("NOTCLAIMED ready", board):
        board.heartbeat("w1", "j", token=token)
    with refused("NOTCLAIMED ready", board):
        board.consume("w1", "j", token=token)
    assert board.queues()["other"]["ready"] == 1


def test_a_delayed_job_is_scheduled(board, clock):
    put(board, delay=10_000)
    assert pop(board) == [] and board.list(state="scheduled", queue="q", justid=True)[1] == ["j"]
    clock.advance(10_000)
    assert pop_one(board)["id"] == "j"


def test_scheduled_jobs_come_before_later_ones_when_they_are_due(board, clock):
    put(board, "late", delay=1000)
    clock.advance(2000)
    put(board, "young")
    assert ids(pop(board, count=2)) == ["late", "young"]


def test_due_jobs_keep_their_order(board, clock):
    [put(board, f"j{n}", delay=1000) for n in range(10)]
    clock.advance(1000)
    assert ids(pop(board, count=10)) == [f"j{n}" for n in range(10)]


def test_a_high_priority_due_job_is_not_missed_by_a_small_pop(board, clock):
    [put(board, f"j{n}") for n in range(20)]
    put(board, "urgent", priority=10, delay=1000)
    clock.advance(1000)
    assert pop_one(board)["id"] == "urgent"


# Popping and peeking


def test_pop_takes_the_highest_priority_first(board):
    for n in range(10):
        put(board, f"j{n}", priority=n)
    assert ids(pop(board, count=10)) == [f"j{n}" for n in reversed(range(10))]


def test_equal_priorities_are_first_in_first_out(board):
    for n in range(100):
        put(board, f"j{n}", priority=2_000_000_000)
    assert ids(pop(board, count=100)) == [f"j{n}" for n in range(100)]


def test_peek_shows_what_a_pop_would_give_and_takes_nothing(board):
    for n in range(5):
        put(board, f"j{n}", priority=n % 2)
    peeked = board.list(state="ready", queue="q", count=3, justid=True)[1]
    assert ids(pop(board, count=3)) == peeked


def test_a_pop_of_many_gives_each_once(board):
    [put(board, f"j{n}") for n in range(50)]
    first, second = pop(board, count=30), pop(board, "w2", count=30)
    assert (len(first), len(second)) == (30, 20) and not set(ids(first)) & set(ids(second))


def test_pop_over_queues_in_their_order(board):
    put(board, "b", queue="second", priority=9)
    put(board, "a", queue="first")
    order = [board.claim_one(queues=["first", "second"], order="listed")["id"] for _ in range(2)]
    assert order == ["a", "b"]


def test_pop_round_robin_over_queues(board):
    for n in range(4):
        put(board, f"a{n}", queue="one")
        put(board, f"b{n}", queue="two")
    got = [board.claim_one(queues=["one", "two"], order="rotate")["queue"] for _ in range(4)]
    assert sorted(got) == ["one", "one", "two", "two"]


def test_the_length_of_a_queue_counts_all_that_has_not_ended(board):
    put(board, "a")
    put(board, "b", delay=LONG)
    put(board, "c", after=["a"])
    put(board, "d", priority=1)
    pop_one(board)
    row = board.queues()["q"]
    assert (row["ready"], row["scheduled"], row["blocked"], row["claimed"]) == (1, 1, 1, 1)


# Leases


def test_a_heartbeat_prolongs_and_may_bring_new_data(board, clock):
    put(board)
    token = pop_one(board)["token"]
    clock.advance(HEARTBEAT - 1)
    board.heartbeat("w1", "j", token=token, payload="half done")
    clock.advance(HEARTBEAT - 1)
    assert board.get("j")["payload"] == "half done" and board.state("j") == "claimed"


def test_a_heartbeat_of_another_worker_is_refused(board):
    put(board)
    pop_one(board)
    with refused("NOTOWNER w1", board):
        board.heartbeat("w2", "j")


def test_a_stalled_job_goes_to_the_next_pop_before_others(board, clock):
    put(board, "stalled")
    pop_one(board)
    put(board, "young")
    clock.advance(HEARTBEAT)
    assert board.list(lapsed=True, state="ready", justid=True)[1] == ["stalled"]
    assert pop_one(board, "w2")["id"] == "stalled"


def test_the_worker_that_stalled_cannot_complete_after_another_popped(board, clock):
    put(board)
    token = pop_one(board)["token"]
    clock.advance(HEARTBEAT)
    pop_one(board, "w2")
    with refused("NOTOWNER w2", board):
        board.consume("w1", "j", token=token)


def test_grace_tells_the_holder_before_it_loses_the_job(board, clock):
    board.set(grace=10_000)
    put(board)
    token = pop_one(board)["token"]
    clock.advance(HEARTBEAT + 5_000)
    assert pop(board, "w2") == []
    board.heartbeat("w1", "j", token=token)
    clock.advance(HEARTBEAT + 10_000)
    assert pop_one(board, "w2")["id"] == "j"


def test_a_job_that_stalls_too_often_fails(board, clock):
    put(board, lapses=2)
    for _ in range(3):
        pop_one(board)
        clock.advance(HEARTBEAT)
    job = board.get("j")
    assert (job["state"], job["kind"], job["attempt"]) == ("failed", "lapsed", 3)


def test_a_timeout_by_an_operator_gives_the_job_to_others(board):
    put(board)
    token = pop_one(board)["token"]
    assert board.release("j").count == 1
    assert pop_one(board, "w2")["id"] == "j"
    with refused("NOTOWNER w2", board):
        board.consume("w1", "j", token=token)


# Completing and advancing


def test_a_complete_job_stays_readable_for_a_while(board, clock):
    put(board)
    pop_one(board)
    assert board.consume("w1", "j", payload="changed") == "complete"
    assert board.get("j")["payload"] == "changed"
    clock.advance(7 * 86_400_000)
    assert board.get("j") is None


def test_completing_what_one_does_not_hold_is_refused(board):
    put(board)
    with refused("NOTCLAIMED ready", board):
        board.consume("w1", "j")
    with refused("NOJOB no such job", board):
        board.consume("w1", "unknown")


def test_retries_are_counted_and_end_in_failure(board, clock):
    put(board, retries=2, backoff=("FIXED", 1000), jitter=0)
    for left in (1, 0):
        assert board.fail("w1", pop_one(board)["id"], "boom", "it broke")["left"] == left
        clock.advance(1000)
    assert board.fail("w1", pop_one(board)["id"], "boom", "it broke")["state"] == "failed"


def test_a_retry_can_be_delayed_by_the_worker(board, clock):
    put(board)
    pop_one(board)
    reply = board.fail("w1", "j", "boom", "later", retry=5000)
    assert (reply["state"], reply["due"]) == ("scheduled", clock.now() + 5000)
    clock.advance(5000)
    assert pop_one(board)["attempt"] == 2


def test_a_completed_job_can_be_put_again(board):
    put(board)
    pop_one(board)
    board.consume("w1", "j")
    put(board, replace=True)
    assert pop_one(board)["attempt"] == 1


# Failures


def test_failed_jobs_are_grouped_and_counted(board):
    for n in range(5):
        lives.failed(board, f"j{n}", kind="disk" if n % 2 else "net", queue="q")
    assert board.kinds() == {"disk": 2, "net": 3}


def test_a_failed_job_tells_group_message_time_and_worker(board, clock):
    lives.failed(board, "j", kind="disk", queue="q")
    job = board.get("j")
    assert (job["kind"], job["message"], job["previous"], job["ended"]) == (
        "disk",
        "it broke",
        "w1",
        clock.now(),
    )


def test_failed_jobs_are_not_popped_and_can_be_requeued(board):
    lives.failed(board, "j", queue="q")
    assert pop(board) == []
    assert board.requeue("j", queue="other").count == 1
    assert pop_one(board, queue="other")["attempt"] == 1 and board.kinds() == {}


def test_unfail_brings_back_the_oldest_of_a_group(board, clock):
    for n in range(6):
        lives.failed(board, f"j{n}", kind="net" if n < 4 else "disk", queue="q")
        clock.advance(1)
    reply = board.call("REQUEUE", "WHERE", "STATE", "failed", "KIND", "net", "COUNT", 3)
    assert reply[0] == 3
    assert ids(pop(board, count=9)) == ["j0", "j1", "j2"]
    assert board.kinds() == {"net": 1, "disk": 2}


def test_a_worker_that_does_not_hold_the_job_cannot_fail_it(board):
    put(board)
    with refused("NOTCLAIMED ready", board):
        board.fail("w1", "j", "boom", "x")


# Cancelling


def test_cancel_removes_a_job_from_any_queue(board):
    put(board, "ready")
    put(board, "scheduled", delay=LONG)
    assert board.cancel("ready", "scheduled") == ["cancelled", "cancelled"]
    assert pop(board) == [] and board.count() == 0


def test_the_worker_of_a_cancelled_job_finds_out(board):
    put(board)
    token = pop_one(board)["token"]
    board.cancel("j")
    assert board.heartbeat("w1", "j", token=token)["cancel"] == 1
    with refused("CANCELLED cancel was requested", board):
        board.consume("w1", "j", token=token)


def test_cancelling_what_others_depend_on_is_refused(board):
    put(board, "a")
    put(board, "b", after=["a"])
    with refused("DEPENDED b a", board):
        board.cancel("a")
    assert board.cancel("a", "b") == ["cancelled", "cancelled"]


def test_cancelling_an_unknown_job_harms_nothing(board):
    assert board.cancel("unknown") == [None]


# Dependencies


def test_a_job_waits_for_all_it_depends_on(board):
    put(board, "a", queue="other")
    put(board, "b", queue="other")
    put(board, "c", after=["a", "b"])
    assert board.state("c") == "blocked" and pop(board) == []
    for id in "ab":
        pop_one(board, queue="other")
        board.consume("w1", id)
    assert pop_one(board)["id"] == "c"


def test_depending_on_a_complete_job_is_no_wait(board):
    lives.complete(board, "a")
    put(board, "b", after=["a"])
    assert board.state("b") == "ready"


def test_dependencies_can_be_added_and_removed_later(board):
    put(board, "a", queue="other")
    put(board, "b", queue="other")
    put(board, "c", after=["a"])
    assert board.depend("ADD", "c", ["b"]) == "blocked"
    assert sorted(board.get("c")["after"]) == ["a", "b"]
    assert board.depend("REMOVE", "c", ["a"]) == "blocked"
    assert board.depend("CLEAR", "c") == "ready"


# Recurring


def schedule(board: Board, verb: str, *words):
    return board.client.execute_command("JOB.SCHEDULE", verb, board.key, *words)


def test_a_recurring_job_makes_a_child_each_interval(board, clock):
    schedule(board, "SET", "r", "data", "EVERY", 1000, "QUEUE", "q", "NAME", "Klass")
    found: list = []
    for _ in range(3):
        clock.advance(1000)
        found += ids(pop(board, count=10))
    assert found == ["@r@1", "@r@2", "@r@3"]


def test_a_changed_recurrence_goes_on_counting(board, clock):
    schedule(board, "SET", "r", "data", "EVERY", 1000, "QUEUE", "q")
    clock.advance(1000)
    schedule(board, "SET", "r", "more", "EVERY", 500, "QUEUE", "q")
    clock.advance(2000)
    found = ids(pop(board, count=10))
    assert found[0] == "@r@1" and len(found) == len(set(found)) and "@r@2" in found


def test_an_ended_recurrence_makes_no_more(board, clock):
    schedule(board, "SET", "r", "data", "EVERY", 1000, "QUEUE", "q")
    schedule(board, "DEL", "r")
    clock.advance(10_000)
    assert pop(board, count=10) == []


# Queues, workers, settings


def test_a_paused_queue_gives_nothing_and_goes_on_after(board):
    put(board, "a")
    put(board, "b")
    held = pop_one(board)
    board.pause(queue="q")
    assert pop(board) == []
    assert board.consume("w1", held["id"], token=held["token"]) == "complete"
    board.resume(queue="q")
    assert pop_one(board)["id"] == "b"


def test_workers_are_listed_with_what_they_hold(board):
    [put(board, f"j{n}") for n in range(3)]
    pop(board, "w1", count=2)
    pop(board, "w2")
    assert {name: row["claimed"] for name, row in board.workers().items()} == {"w1": 2, "w2": 1}
    assert board.list(worker="w1", justid=True)[1] == ["j0", "j1"]


def test_concurrency_of_a_queue_is_kept(board):
    board.set(queue="q", concurrency=2)
    [put(board, f"j{n}") for n in range(5)]
    assert len(pop(board, count=5)) == 2 and pop(board, "w2") == []
    board.consume("w1", "j0")
    assert len(pop(board, "w2", count=5)) == 1


def test_priority_can_be_changed_while_it_waits(board):
    [put(board, id) for id in "abc"]
    board.update("c", priority=5)
    assert ids(pop(board, count=3)) == ["c", "a", "b"]


def test_settings_can_be_read_set_and_reset(board):
    board.set(lease=1234)
    assert board.settings("lease")["lease"] == [1234, "board"]
    board.reset("lease")
    assert board.settings("lease")["lease"] == [30_000, "default"]


def test_the_history_tells_the_life_of_a_job(board, clock):
    put(board)
    pop_one(board)
    clock.advance(HEARTBEAT)
    pop_one(board, "w2")
    board.heartbeat("w2", "j", log="a line of mine")
    board.consume("w2", "j")
    assert board.events("j") == ["posted", "claimed", "lapsed", "claimed", "log", "complete"]
    assert any(entry.get("message") == "a line of mine" for entry in board.history("j"))


def test_counts_do_not_drift_over_all_these_paths(board, clock):
    for n in range(40):
        put(board, f"j{n}", delay=n % 3, priority=n % 4)
    clock.advance(10)
    for n, job in enumerate(pop(board, count=30)):
        id = job["id"]
        [
            lambda id: board.consume("w1", id),
            lambda id: board.fail("w1", id, "boom", "x"),
            lambda id: board.fail("w1", id, "boom", "x", noretry=True),
            lambda id: board.abandon("w1", id),
            lambda id: put(board, id, queue="other", replace=True),
            lambda id: board.release(id),
        ][n % 6](id)
    clock.advance(HEARTBEAT)
    check_consistent(board)


# What differs, as docs/guides/migrate/qless.md says


def test_grace_begins_when_the_lease_ends(board, clock):
    board.set(grace=10_000)
    put(board)
    pop_one(board)
    clock.advance(HEARTBEAT + 9_999)
    assert board.state("j") == "claimed" and board.list(lapsed=True, justid=True)[1] == []
    clock.advance(1)
    assert pop_one(board, "w2")["id"] == "j"


def test_a_worker_that_lost_a_job_needs_the_token_of_its_new_claim(board, clock):
    put(board)
    pop_one(board)
    clock.advance(HEARTBEAT)
    token = pop_one(board)["token"]
    with refused("STALE an earlier claim of yours lapsed: give the token", board):
        board.consume("w1", "j")
    assert board.consume("w1", "j", token=token) == "complete"


def test_a_put_forgets_the_failure_and_a_requeue_keeps_it(board):
    for id in "ab":
        lives.failed(board, id, kind="disk", queue="q")
    put(board, "a", replace=True)
    board.requeue("b")
    assert "kind" not in board.get("a") and board.get("b")["kind"] == "disk"
    board.consume("w1", "b", token=board.claim_one(id="b", worker="w1")["token"])
    job = board.get("b")
    assert (job["kind"], job["queue"]) == ("disk", "q")


def test_a_failed_job_is_deleted_not_cancelled(board):
    lives.failed(board, "j", queue="q")
    with refused("ENDED failed j", board):
        board.cancel("j")
    board.delete("j")
    assert board.get("j") is None


def test_waiting_and_scheduled_jobs_can_be_made_to_depend(board):
    put(board, "a", queue="other")
    put(board, "ready")
    put(board, "late", delay=LONG)
    for id in ("ready", "late"):
        assert board.depend("ADD", id, ["a"]) == "blocked"


def test_lists_have_what_there_is_now(board):
    """Queues with jobs, workers with jobs, also after they were to be forgotten, tags of one job as well."""
    put(board, tags=["new"])
    assert board.call("TAGS")[1] == [{"tag": "new", "jobs": 1}]
    token = pop_one(board)["token"]
    board.client.execute_command("JOB.WORKER", "DEREGISTER", board.key, "w1")
    assert list(board.workers()) == ["w1"]
    board.consume("w1", "j", token=token, next="other")
    assert board.workers() == {} and list(board.queues()) == ["other"]


def test_failures_of_a_day_stay_counted(board):
    lives.failed(board, "j", queue="q")
    board.requeue("j")
    assert board.call("STATS", "QUEUE", "q")["failed"] == 1
    assert board.count(state="failed", queue="q") == 0


def test_unknown_settings_are_refused(board):
    with pytest.raises(redis.ResponseError, match="unknown setting 'foo'"):
        board.set(foo=1)
