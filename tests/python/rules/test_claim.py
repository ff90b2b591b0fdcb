"""JOB.CLAIM: which job a worker gets, and what it is told about it. Waiting is in test_blocking.py."""

from __future__ import annotations

import lives
import pytest
from expect import drain, ids, refused, refused_like
from harness import EPOCH
from lives import LONG

# The record


def test_a_claim_gives_what_a_worker_needs(clocked_board):
    clocked_board.post("hello", id="j", name="greet", queue="mail", lease=7000)
    job = clocked_board.claim_one(queues=["mail"])
    token = job.pop("token")
    assert job == {
        "id": "j",
        "attempt": 1,
        "deadline": EPOCH + 7000,
        "name": "greet",
        "queue": "mail",
        "payload": "hello",
    }
    assert EPOCH << 11 <= token < 2**53


def test_the_fields_of_the_record_can_be_chosen(clocked_board):
    clocked_board.post("hello", id="j", meta={"to": "ann"})
    assert clocked_board.claim_one(fields=["payload", "id"]) == {"payload": "hello", "id": "j"}
    clocked_board.post("hello", id="k", meta={"to": "ann"})
    job = clocked_board.claim_one(fields=["state", "worker", "meta", "left", "result"])
    assert job == {"state": "claimed", "worker": "w1", "meta": {"to": "ann"}, "left": 10}


def test_an_unknown_field_is_refused(clocked_board):
    lives.ready(clocked_board)
    with refused_like("ERR .*'bogus'.*", clocked_board):
        clocked_board.claim(fields=["id", "bogus"])


def test_a_claimed_job_names_its_worker_token_and_deadline(clocked_board):
    clocked_board.post(id="j")
    claim = clocked_board.claim_one("w1")
    job = clocked_board.get("j")
    assert (job["state"], job["worker"], job["claimed"]) == ("claimed", "w1", EPOCH)
    assert (job["token"], job["deadline"], job["attempt"]) == (claim["token"], claim["deadline"], 1)


def test_there_may_be_nothing_to_claim(clocked_board):
    assert clocked_board.call("CLAIM", "w1") is None
    assert not clocked_board.client.exists("board")
    lives.claimed(clocked_board)
    before = clocked_board.digest()
    assert clocked_board.call("CLAIM", "w2") is None
    assert clocked_board.digest() == before


def test_a_job_is_claimed_once(clocked_board):
    clocked_board.post()
    assert len(clocked_board.claim("w1")) == 1
    assert clocked_board.claim("w2") == []
    assert clocked_board.claim("w1") == []


# Order


def test_what_was_posted_first_is_claimed_first(clocked_board):
    posted = [clocked_board.post(id=f"j{n}") for n in range(20)]
    assert drain(clocked_board) == posted


def test_a_higher_priority_is_claimed_first(clocked_board):
    for priority in [0, -2147483648, 5, 2147483647, -1, 5]:
        clocked_board.post(id=f"{priority}/{clocked_board.count()}", priority=priority)
    claimed = drain(clocked_board)
    assert claimed == ["2147483647/3", "5/2", "5/5", "0/0", "-1/4", "-2147483648/1"]


def test_a_delayed_job_stands_by_the_time_it_became_due(clocked_board, clock):
    clocked_board.post(id="early")
    clocked_board.post(id="due-later", delay=100)
    clocked_board.post(id="due-sooner", delay=50)
    clock.advance(75)
    clocked_board.post(id="between")
    clock.advance(25)
    clocked_board.post(id="late")
    assert drain(clocked_board) == ["early", "due-sooner", "between", "due-later", "late"]


@pytest.mark.parametrize("back", ["abandon", "release", "lapse"])
def test_a_job_that_comes_back_keeps_its_place(clocked_board, clock, back):
    for id in ["first", "second"]:
        clocked_board.post(id=id)
        clock.advance(10)
    token = clocked_board.claim_one("w1", lease=1000)["token"]
    clocked_board.post(id="third")
    if back == "abandon":
        clocked_board.abandon("w1", "first", token=token)
    elif back == "release":
        clocked_board.release("first")
    else:
        clock.advance(1000)
    assert drain(clocked_board) == ["first", "second", "third"]


def test_a_job_that_is_tried_again_keeps_its_place(clocked_board, clock):
    clocked_board.post(id="first")
    clock.advance(10)
    clocked_board.post(id="second")
    token = lives.claim(clocked_board, "first")
    clocked_board.fail("w1", "first", token=token, retry=100)
    clock.advance(100)
    assert drain(clocked_board) == ["first", "second"]


# Queues


def test_without_queues_the_default_one_is_meant(clocked_board):
    clocked_board.post(id="mail", queue="mail")
    clocked_board.post(id="plain")
    assert ids(clocked_board.claim(count=10)) == ["plain"]


def test_only_the_queues_named_are_looked_at(clocked_board):
    for queue in "abc":
        clocked_board.post(id=queue, queue=queue)
    assert ids(clocked_board.claim(queues=["c", "a"], count=10)) == ["a", "c"]
    assert clocked_board.claim(queues=["nowhere"]) == []


def test_queues_0_means_every_queue(clocked_board):
    for queue in "abc":
        clocked_board.post(id=queue, queue=queue)
    clocked_board.post(id="plain")
    assert ids(clocked_board.claim(queues=[], count=10)) == ["a", "b", "c", "plain"]


@pytest.mark.parametrize("order", [{}, {"order": "best"}, {"order": "BEST"}])
def test_the_best_job_over_all_queues_is_claimed_first(clocked_board, order):
    clocked_board.post(id="a1", queue="a")
    clocked_board.post(id="b9", queue="b", priority=9)
    clocked_board.post(id="b1", queue="b")
    clocked_board.post(id="a5", queue="a", priority=5)
    assert ids(clocked_board.claim(queues=["a", "b"], count=10, **order)) == ["b9", "a5", "a1", "b1"]


def test_queues_may_be_served_in_the_order_in_which_they_are_listed(clocked_board):
    clocked_board.post(id="a1", queue="a")
    clocked_board.post(id="b9", queue="b", priority=9)
    clocked_board.post(id="b1", queue="b")
    claimed = clocked_board.claim(queues=["b", "a"], order="listed", count=2)
    assert ids(claimed) == ["b9", "b1"]
    clocked_board.post(id="b2", queue="b")
    assert ids(clocked_board.claim(queues=["a", "b"], order="listed", count=10)) == ["a1", "b2"]


def test_queues_may_be_served_in_turn(clocked_board):
    for queue in "abc":
        clocked_board.post_many(4, queue=queue, priority=ord(queue))
    served = [clocked_board.claim_one(queues=["a", "b", "c"], order="rotate")["queue"] for _ in range(12)]
    assert all(set(served[n : n + 3]) == {"a", "b", "c"} for n in range(0, 12, 3)), served


def test_one_claim_of_many_serves_queues_in_turn(clocked_board):
    for queue in "abc":
        clocked_board.post_many(10, queue=queue, priority=ord(queue))
    queues = [job["queue"] for job in clocked_board.claim(queues=["a", "b", "c"], order="rotate", count=9)]
    assert sorted(queues) == list("aaabbbccc")


def test_an_empty_queue_is_passed_over_in_turn(clocked_board):
    clocked_board.post_many(3, queue="b")
    assert len(clocked_board.claim(queues=["a", "b", "c"], order="rotate", count=9)) == 3


@pytest.mark.parametrize("order", ["listed", "rotate"])
def test_every_queue_may_be_served_in_any_order(clocked_board, order):
    for queue in "abc":
        clocked_board.post(id=queue, queue=queue)
    assert sorted(ids(clocked_board.claim(queues=[], order=order, count=10))) == ["a", "b", "c"]


def test_an_unknown_order_is_refused(clocked_board):
    lives.ready(clocked_board)
    with refused_like("ERR .*ORDER.*|ERR syntax error near 'bogus'", clocked_board):
        clocked_board.claim(order="bogus")


@pytest.mark.parametrize("queue", ["", "x" * 256])
def test_a_queue_has_1_to_255_bytes(clocked_board, queue):
    lives.ready(clocked_board)
    with refused_like("ERR .+", clocked_board):
        clocked_board.claim(queues=[queue])


def test_a_queue_may_be_named_twice(clocked_board):
    clocked_board.post(id="j", queue="a")
    assert ids(clocked_board.claim(queues=["a", "a"], count=10)) == ["j"]


# How many, how long


def test_a_claim_takes_one_job_unless_told_otherwise(clocked_board):
    clocked_board.post_many(5)
    assert len(clocked_board.claim()) == 1
    assert len(clocked_board.claim(count=3)) == 3
    assert len(clocked_board.claim(count=3)) == 1


def test_each_of_many_claimed_jobs_has_a_token_of_its_own(clocked_board):
    clocked_board.post_many(100)
    tokens = [job["token"] for job in clocked_board.claim(count=100)]
    assert tokens == sorted(set(tokens))


def test_a_claim_may_ask_for_a_lease(clocked_board):
    clocked_board.post(lease=7000)
    assert clocked_board.claim_one(lease=100)["deadline"] == EPOCH + 100


def test_the_deadline_of_a_run_with_a_timeout_is_no_later_than_it(clocked_board):
    clocked_board.post(lease=LONG, timeout=5000)
    assert clocked_board.claim_one()["deadline"] == EPOCH + 5000


# Tokens and attempts


def test_tokens_rise_with_every_claim(clocked_board):
    tokens = []
    clocked_board.post(id="j")
    for worker in ["w1", "w2", "w1"]:
        tokens.append(lives.claim(clocked_board, "j", worker))
        clocked_board.release("j")
    assert tokens == sorted(set(tokens))


def test_tokens_rise_over_delete_and_re_creation_of_the_board(clocked_board):
    first = lives.claimed(clocked_board)
    clocked_board.client.delete("board")
    assert lives.claimed(clocked_board) > first


def test_tokens_rise_when_the_clock_goes_back(clocked_board, clock):
    first = lives.claimed(clocked_board, "a")
    clock.set(EPOCH - 1_000_000)
    assert lives.claimed(clocked_board, "b") > first


def test_tokens_of_different_boards_do_not_meet(clocked):
    """A job that is moved to a board of another name under the same id cannot be taken for the old one."""
    tokens = [lives.claimed(clocked.board(f"board-{n}")) for n in range(5)]
    assert tokens == sorted(set(tokens))


def test_attempts_count_the_claims(clocked_board, clock):
    clocked_board.post(id="j")
    attempts = []
    for _ in range(3):
        attempts.append(clocked_board.claim_one(lease=10)["attempt"])
        clock.advance(10)
    assert attempts == [1, 2, 3]


# By id


def test_a_job_is_claimed_by_its_id(clocked_board):
    clocked_board.post(id="first")
    clocked_board.post("hello", id="second", queue="mail", priority=-5)
    job = clocked_board.claim_one("w1", id="second")
    assert (job["id"], job["payload"], job["attempt"]) == ("second", "hello", 1)
    assert clocked_board.state("first") == "ready"


def test_a_claim_by_id_takes_a_lease_and_fields(clocked_board):
    clocked_board.post(id="j")
    assert clocked_board.claim_one(id="j", lease=5, fields=["deadline"]) == {"deadline": EPOCH + 5}


@pytest.mark.parametrize(
    ("life", "error"),
    [
        ("scheduled", "NOTREADY scheduled"),
        ("retrying", "NOTREADY scheduled"),
        ("claimed", "CLAIMED you"),
        ("cancel requested", "CLAIMED you"),
        ("complete", "ENDED complete"),
        ("failed", "ENDED failed"),
        ("cancelled", "ENDED cancelled"),
        ("trashed", "ENDED trashed"),
    ],
)
def test_a_job_that_is_not_ready_cannot_be_claimed_by_id(clocked_board, life, error):
    lives.LIVES[life](clocked_board)
    with refused(error, clocked_board):
        clocked_board.claim("w1", id="j")


def test_a_job_that_another_holds_cannot_be_claimed_by_id(clocked_board):
    lives.claimed_by_another(clocked_board)
    with refused("CLAIMED w2", clocked_board):
        clocked_board.claim("w1", id="j")


@pytest.mark.parametrize("board_exists", [True, False])
def test_an_unknown_job_cannot_be_claimed_by_id(clocked_board, board_exists):
    if board_exists:
        lives.ready(clocked_board, "other")
    with refused("NOJOB no such job", clocked_board):
        clocked_board.claim("w1", id="j")


def test_a_job_that_was_dropped_cannot_be_claimed_by_id(clocked_board):
    lives.gone(clocked_board)
    with refused("NOJOB no such job", clocked_board):
        clocked_board.claim("w1", id="j")


@pytest.mark.parametrize(
    "option", [{"queues": ["q"]}, {"order": "best"}, {"count": 2}, {"block": 1}, {"seen": 0}], ids=str
)
def test_a_claim_by_id_takes_no_other_options(clocked_board, option):
    lives.ready(clocked_board)
    with refused_like("ERR .+", clocked_board):
        clocked_board.claim("w1", id="j", **option)


# The worker


def test_no_worker_is_called_star(clocked_board):
    lives.ready(clocked_board)
    with refused("ERR worker must not be '*'", clocked_board):
        clocked_board.claim("*")
    with refused("ERR worker must not be '*'", clocked_board):
        clocked_board.claim("*", id="j")


def test_a_worker_has_1_to_255_bytes(clocked_board):
    lives.ready(clocked_board)
    for wrong in ["", "x" * 256]:
        with refused_like("ERR worker .+", clocked_board):
            clocked_board.claim(wrong)
    assert clocked_board.claim_one("x" * 255)["id"] == "j"


# SEEN: a worker asks for what it may have missed. More in test_resend.py.


def test_seen_hands_back_what_the_worker_holds_and_fills_up_with_new_jobs(clocked_board, clock):
    clocked_board.post_many(5)
    held = clocked_board.claim("w1", count=3, lease=5000)
    clock.advance(1000)
    found = clocked_board.claim("w1", seen=held[0]["token"], count=3, lease=5000)
    assert [job["token"] for job in found[:2]] == [held[1]["token"], held[2]["token"]]
    assert [job["attempt"] for job in found] == [1, 1, 1]
    assert [job["deadline"] for job in found] == [EPOCH + 6000] * 3
    assert found[2]["token"] > held[2]["token"]


def test_seen_with_nothing_missed_is_a_plain_claim(clocked_board):
    clocked_board.post(id="a")
    token = clocked_board.claim_one("w1")["token"]
    assert clocked_board.claim("w1", seen=token) == []
    clocked_board.post(id="b")
    assert clocked_board.claim_one("w1", seen=token)["id"] == "b"


def test_seen_hands_back_no_more_than_count(clocked_board):
    clocked_board.post_many(5)
    held = clocked_board.claim("w1", count=5)
    found = clocked_board.claim("w1", seen=0, count=2)
    assert [job["token"] for job in found] == [job["token"] for job in held[:2]]


def test_seen_hands_back_nobody_elses_jobs(clocked_board):
    clocked_board.post_many(2)
    clocked_board.claim_one("w2")
    own = clocked_board.claim_one("w1")
    assert ids(clocked_board.claim("w1", seen=0, count=10)) == [own["id"]]


def test_a_claim_from_many_queues_gives_no_more_than_it_can_at_once(clocked_board):
    """Each job costs a look at each queue: 20,000 of them are about a millisecond."""
    clocked_board.post_many(300, queue="q0")
    names = [f"q{n}" for n in range(201)]
    assert len(clocked_board.claim(queues=names, count=300)) == 100
    assert len(clocked_board.claim(queues=names[:3], count=300)) == 200


def test_a_claim_from_every_queue_gives_as_many_as_it_asks_for(clocked_board):
    """It looks at few queues for each job."""
    posted = [clocked_board.post("p", queue=f"q{n}") for n in range(501)]
    assert ids(clocked_board.claim(queues=[], count=300)) == posted[:300]


# Batches; waiting for them is in server/test_batches.py


def test_a_batch_is_not_larger_than_the_claim(clocked_board):
    for options in ({"count": 2, "min": 3}, {"min": 2}):
        with refused("ERR MIN must not be above COUNT", clocked_board):
            clocked_board.claim(**options)


def test_linger_goes_with_a_minimum(clocked_board):
    with refused("ERR LINGER needs MIN", clocked_board):
        clocked_board.claim(count=2, linger=5)


@pytest.mark.parametrize("options", [{"count": 2, "min": 2}, {"min": 1}, {"min": 1, "linger": 5}])
def test_a_claim_by_id_is_no_batch(clocked_board, options):
    lives.ready(clocked_board)
    with refused_like("ERR ID excludes .*, MIN, LINGER, .*", clocked_board):
        clocked_board.claim(id="j", **options)


def test_a_minimum_of_one_is_a_plain_claim(clocked_board):
    lives.ready(clocked_board)
    assert clocked_board.claim_one(min=1, linger=5, block=0)["id"] == "j"
