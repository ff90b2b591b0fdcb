"""JOB.FAIL: a run has failed; it is tried again, or not."""

from __future__ import annotations

import lives
import pytest
from expect import refused, refused_like
from harness import EPOCH, from_pairs
from lives import LONG


def fail_again(board, clock, **options) -> dict:
    """Waits for the next try, claims the job and fails it."""
    due = board.get("j").get("due")
    if board.state("j") == "scheduled":
        clock.set(due)
    token = lives.claim(board)
    return board.fail("w1", "j", token=token, **options)


def test_a_failure_is_followed_by_another_try(clocked_board, clock):
    token = lives.claimed(clocked_board, retries=2, backoff=("FIXED", 500), jitter=0)
    assert clocked_board.fail("w1", "j", "net", "no route", token=token) == {
        "state": "scheduled",
        "due": EPOCH + 500,
        "left": 1,
    }
    job = clocked_board.get("j")
    assert (job["state"], job["kind"], job["message"], job["left"]) == ("scheduled", "net", "no route", 1)
    clock.advance(500)
    assert clocked_board.claim_one("w2")["attempt"] == 2


def test_after_the_last_retry_a_failure_is_final(clocked_board, clock):
    lives.ready(clocked_board, retries=2, backoff=("FIXED", 0))
    assert fail_again(clocked_board, clock)["left"] == 1
    assert fail_again(clocked_board, clock)["left"] == 0
    last = fail_again(clocked_board, clock, kind="boom", message="at last")
    assert last == {"state": "failed", "left": 0}
    job = clocked_board.get("j")
    assert (job["state"], job["kind"], job["message"], job["attempt"]) == ("failed", "boom", "at last", 3)
    assert job["ended"] == EPOCH


def test_retries_0_means_no_second_try(clocked_board):
    lives.claimed(clocked_board, retries=0)
    assert clocked_board.fail("w1", "j") == {"state": "failed", "left": 0}


def test_retries_without_end_never_end(clocked_board, clock):
    lives.ready(clocked_board, retries=-1, backoff=("FIXED", 0))
    for _ in range(30):
        assert fail_again(clocked_board, clock) == {"state": "ready", "left": -1}


def test_the_pause_doubles_up_to_its_limit(clocked_board, clock):
    lives.ready(clocked_board, backoff=("EXPONENTIAL", 1000, 6000), jitter=0)
    pauses = []
    for _ in range(6):
        reply = fail_again(clocked_board, clock)
        pauses.append(reply["due"] - clock.now())
    assert pauses == [1000, 2000, 4000, 6000, 6000, 6000]


def test_the_default_pause_begins_at_5_seconds_and_varies_by_10_per_cent(clocked_board):
    pauses = set()
    for n in range(100):
        lives.claimed(clocked_board, f"j{n}")
        pauses.add(clocked_board.fail("w1", f"j{n}")["due"] - EPOCH)
    assert 4500 <= min(pauses) < 5000 < max(pauses) <= 5500
    assert len(pauses) > 20


def test_jitter_varies_the_pause_by_so_many_per_cent(clocked_board):
    pauses = set()
    for n in range(100):
        lives.claimed(clocked_board, f"j{n}", backoff=("FIXED", 1000), jitter=100)
        # A pause of 0 makes the job ready at once.
        pauses.add(clocked_board.fail("w1", f"j{n}").get("due", EPOCH) - EPOCH)
    assert 0 <= min(pauses) < 500
    assert 1500 < max(pauses) <= 2000


def test_a_worker_may_say_when_to_try_again(clocked_board):
    lives.claimed(clocked_board, backoff=("FIXED", 500))
    assert clocked_board.fail("w1", "j", retry=70)["due"] == EPOCH + 70


def test_a_retry_of_0_ms_is_ready_at_once(clocked_board):
    lives.claimed(clocked_board)
    clocked_board.fail("w1", "j", retry=0)
    assert clocked_board.claim_one("w2")["id"] == "j"


def test_a_named_retry_costs_a_retry_as_well(clocked_board):
    lives.claimed(clocked_board, retries=0)
    assert clocked_board.fail("w1", "j", retry=0) == {"state": "failed", "left": 0}


def test_a_worker_may_say_that_there_is_no_sense_in_trying_again(clocked_board):
    lives.claimed(clocked_board, retries=5)
    reply = clocked_board.fail("w1", "j", "bad input", "not a number", noretry=True)
    assert reply["state"] == "failed"
    assert "due" not in reply
    assert clocked_board.get("j")["kind"] == "bad input"


def test_retry_and_noretry_exclude_each_other(clocked_board):
    lives.claimed(clocked_board)
    with refused_like("ERR .+", clocked_board):
        clocked_board.fail("w1", "j", retry=5, noretry=True)


def test_a_failure_may_leave_another_payload(clocked_board):
    lives.claimed(clocked_board)
    clocked_board.fail("w1", "j", payload="from line 7")
    assert clocked_board.get("j")["payload"] == "from line 7"


def test_the_last_failure_is_told_and_earlier_ones_stand_in_the_history(clocked_board, clock):
    lives.ready(clocked_board, backoff=("FIXED", 5), jitter=0)
    fail_again(clocked_board, clock, kind="one", message="first")
    fail_again(clocked_board, clock, kind="two", message="second")
    job = clocked_board.get("j")
    assert (job["kind"], job["message"]) == ("two", "second")
    failures = [entry for entry in clocked_board.history("j") if entry["event"] == "failed"]
    assert ["first" in entry["message"] for entry in failures] == [True, False]
    assert all(entry["worker"] == "w1" for entry in failures)


@pytest.mark.parametrize("kind", ["", "x" * 256])
def test_a_kind_has_1_to_255_bytes(clocked_board, kind):
    lives.claimed(clocked_board)
    with refused_like("ERR kind .+", clocked_board):
        clocked_board.fail("w1", "j", kind)


def test_a_message_may_be_empty(clocked_board):
    lives.claimed(clocked_board)
    clocked_board.fail("w1", "j", "k", "")
    assert clocked_board.get("j")["kind"] == "k"


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        ("x" * 4096, 4096),
        ("x" * 4097, 4096),
        ("x" * 100_000, 4096),
        ("x" * 4095 + "é", 4095),
        ("x" * 4093 + "€" * 9, 4096),
        ("x" * 4094 + "\U0001f600", 4094),
        (b"\x80" * 5000, 4096),
    ],
)
def test_a_message_that_is_too_long_is_cut_at_a_character(server, message, kept):
    board = server.board(decode_responses=False)
    lives.claimed(board, retries=0)
    data = message if isinstance(message, bytes) else message.encode()
    reply = board.fail("w1", "j", "k", message)
    assert reply.get("cut", 0) == len(data) - kept
    assert board.get("j")["message"] == data[:kept]
    lives.claimed(board, "many")
    [answer] = board.mfail("w1", ["many"], "k", message)
    assert from_pairs(answer).get("cut", 0) == len(data) - kept


def test_a_cut_message_is_that_of_the_setting_and_the_same_when_sent_again(server):
    board = server.board()
    with server.configured(**{"jobboard.max-text": 10}):
        token = lives.claimed(board, retries=0)
        wanted = {"state": "failed", "left": 0, "cut": 5}
        assert board.fail("w1", "j", "k", "0123456789abcde", token=token) == wanted
        assert board.fail("w1", "j", "k", "0123456789abcde", token=token) == wanted
        assert board.get("j")["message"] == "0123456789"


@pytest.mark.parametrize("kind", ["lapsed", "timeout", "expired", "dependency", "signal"])
def test_the_kinds_of_the_server_are_its_own(clocked_board, kind):
    lives.claimed(clocked_board)
    own = "ERR kind must not be one of the server's own: lapsed, timeout, expired, dependency, signal"
    with refused(own, clocked_board):
        clocked_board.fail("w1", "j", kind)
    with refused(own, clocked_board):
        clocked_board.mfail("w1", ["j"], kind)
    clocked_board.fail("w1", "j", kind.upper())
    assert clocked_board.get("j")["kind"] == kind.upper()


def test_a_failure_brings_fields_and_a_line(clocked_board):
    lives.claimed(clocked_board, meta={"a": "1"})
    clocked_board.fail("w1", "j", "net", "no route", meta={"b": "2"}, log="the trace")
    assert clocked_board.get("j")["meta"] == {"a": "1", "b": "2"}
    entries = [(one["event"], one.get("kind"), one["message"]) for one in clocked_board.history("j")[2:]]
    assert entries == [("log", None, "the trace"), ("failed", "net", "no route")]


def test_a_final_failure_says_how_long_its_record_is_kept(clocked_board, clock):
    lives.claimed(clocked_board, retries=1, backoff=("FIXED", 0))
    clocked_board.fail("w1", "j", retain=5)
    clock.advance(5)
    assert clocked_board.state("j") == "ready"
    lives.claim(clocked_board)
    clocked_board.fail("w1", "j", retain=5)
    clock.advance(4)
    assert clocked_board.state("j") == "failed"
    clock.advance(1)
    assert clocked_board.get("j") is None


def test_many_failures_share_fields_line_and_retention(clocked_board, clock):
    for id in "ab":
        lives.claimed(clocked_board, id, retries=0)
    clocked_board.mfail("w1", "ALL", meta={"host": "web-1"}, log="down", retain=9)
    assert [clocked_board.get(id)["meta"] for id in "ab"] == [{"host": "web-1"}] * 2
    assert [clocked_board.events(id)[-2:] for id in "ab"] == [["log", "failed"]] * 2
    clock.advance(9)
    assert clocked_board.get("a") is None


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["META", 65], "META must be an integer from 1 to 64"),
        (["META", 2, "f", "v"], "META names 2 pairs but fewer follow"),
        (["META", 1, "", "v"], "META field must be 1 to 255 bytes long"),
        (["META", 1, "f", "x" * 4097], "META value is longer than 4096 bytes"),
        (["META", 1, "f", "v", "META", 1, "f", "v"], "META is given twice"),
        (["LOG", "x" * 4097], "LOG is longer than 4096 bytes"),
        (["RETAIN", -2], "RETAIN must be an integer from -1 to 1099511627776 milliseconds"),
    ],
)
def test_what_a_failure_brings_has_bounds(clocked_board, words, error):
    lives.claimed(clocked_board)
    with refused_like(f"ERR {error}.*", clocked_board):
        clocked_board.call("FAIL", "w1", "j", "k", "m", *words)
    with refused_like(f"ERR {error}.*", clocked_board):
        clocked_board.call("MFAIL", "w1", "k", "m", 1, "j", *words)


def test_a_job_takes_no_more_fields_with_its_end_than_64(clocked_board):
    lives.claimed(clocked_board, meta={str(n): "x" for n in range(64)})
    for words in (
        ["FAIL", "w1", "j", "k", "m"],
        ["ABANDON", "w1", "j"],
        ["TRASH", "w1", "j"],
        ["CONSUME", "w1", "j"],
    ):
        with refused("LIMIT meta fields", clocked_board):
            clocked_board.call(*words, "META", 1, "another", "x")


def test_a_late_failure_is_accepted_until_somebody_else_claims(clocked_board):
    token = lives.lapsed(clocked_board)
    assert clocked_board.fail("w1", "j", token=token)["state"] == "scheduled"
    assert clocked_board.claim("w2") == []


def test_a_late_failure_after_somebody_else_has_claimed_is_refused(clocked_board):
    token = lives.lapsed_and_taken(clocked_board)
    with refused("NOTOWNER w2", clocked_board):
        clocked_board.fail("w1", "j", token=token)


def test_a_failure_of_a_job_that_is_to_be_cancelled_cancels_it(clocked_board):
    token = lives.cancel_requested(clocked_board)
    assert clocked_board.fail("w1", "j", token=token)["state"] == "cancelled"
    assert clocked_board.state("j") == "cancelled"


def test_a_failed_job_is_kept_for_30_days(clocked_board, clock):
    lives.failed(clocked_board)
    clock.advance(30 * 86_400_000 - 1)
    assert clocked_board.state("j") == "failed"
    clock.advance(1)
    assert clocked_board.get("j") is None


def test_only_so_many_failed_jobs_are_kept(clocked_board, clock):
    clocked_board.set(keep_failed=2)
    for id in "abc":
        lives.failed(clocked_board, id)
        clock.advance(1)
    assert [id for id in "abc" if clocked_board.get(id)] == ["b", "c"]


def test_failures_and_lost_leases_are_counted_apart(clocked_board, clock):
    lives.ready(clocked_board, retries=1, lapses=1, backoff=("FIXED", 0))
    lives.claim(clocked_board, lease=10)
    clock.advance(10)
    assert clocked_board.get("j")["left"] == 1
    assert fail_again(clocked_board, clock)["state"] == "ready"
    lives.claim(clocked_board, lease=LONG)
    assert clocked_board.fail("w1", "j", token=clocked_board.get("j")["token"])["state"] == "failed"
