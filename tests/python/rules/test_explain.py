"""JOB.EXPLAIN: why a job is not running, and what would change that."""

from __future__ import annotations

import lives
import pytest
from expect import refused_like
from harness import wait_until
from harness.board import from_pairs, text
from lives import LONG
from waiters import Waiter


def plain(value):
    """Maps as dicts and bytes as text, at any depth; reasons and rows are maps."""
    if isinstance(value, list) and value and not isinstance(value[0], (list, dict)):
        value = from_pairs(value)
    if isinstance(value, dict):
        return {text(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else text(value)


def explain(board, id):
    return plain(board.call("EXPLAIN", id))


def codes(board, id):
    return [reason["reason"] for reason in explain(board, id)["reasons"]]


def reason(board, id, code):
    return next(reason for reason in explain(board, id)["reasons"] if reason["reason"] == code)


def test_a_ready_job_is_told_its_place(board):
    board.post_many(1000)
    board.post(id="last", priority=-1)
    board.post(id="first", priority=1)
    for id, ahead, order in [("last", 1001, ["line", "unclaimed"]), ("first", 0, ["unclaimed", "line"])]:
        told = explain(board, id)
        assert (told["id"], told["state"], told["queue"], told["claimable"]) == (id, "ready", "default", 1)
        assert [reason["reason"] for reason in told["reasons"]] == order
        assert reason(board, id, "line")["ahead"] == ahead
        assert "since" not in reason(board, id, "unclaimed")
    lives.claimed(board, "j")
    assert reason(board, "last", "unclaimed")["since"] > 1_600_000_000_000


def test_what_has_to_come_first_is_told(board):
    board.post(id="late", delay=LONG)
    assert (codes(board, "late"), explain(board, "late")["claimable"]) == (["delayed"], 0)
    assert reason(board, "late", "delayed")["due"] == board.get("late")["due"]
    board.post(id="a")
    board.call("POST", "x", "ID", "b", "AFTER", 2, "a", "late", "ONFAILURE", "cancel")
    waits = reason(board, "b", "dependencies")
    assert (codes(board, "b"), waits["count"]) == (["dependencies"], 2)
    assert waits["jobs"][0] == {"id": "late", "state": "scheduled", "onfailure": "cancel"}
    board.claim_one("w1", id="a")
    board.fail("w1", "a", "io", "gone", retry=LONG)
    retry = reason(board, "a", "retry")
    assert (retry["kind"], retry["message"], retry["failures"], retry["worker"]) == ("io", "gone", 1, "w1")


def test_pauses_and_limits_are_told(board):
    board.mpost(["1", "2"], ids=["a", "b"])
    board.set(queue="default", concurrency=1)
    board.claim_one("w1", id="a", lease=LONG)
    board.call("PAUSE")
    board.call("PAUSE", "QUEUE", "default", "FOR", LONG)
    assert codes(board, "b") == ["paused", "paused", "concurrency", "line"]
    whole, queue, room, _ = explain(board, "b")["reasons"]
    assert (whole["level"], whole["until"], queue["level"]) == ("board", -1, "queue")
    assert (room["level"], room["limit"], room["running"]) == ("queue", 1, 1)
    assert [(held["worker"], held["id"]) for held in room["holders"]] == [("w1", "a")]
    board.call("RESUME")
    board.call("RESUME", "QUEUE", "default")
    board.consume("w1", "a")
    assert codes(board, "b") == ["unclaimed", "line"]


def test_the_order_and_the_turns_of_groups_are_told(board):
    board.mpost(["1", "2"], ids=["a", "b"], group="g")
    board.post(id="c", group="h")
    assert explain(board, "c")["group"] == "h"
    line = reason(board, "c", "line")
    assert (line["ahead"], line["groups"], line["turn"]) == (0, 2, 1)
    board.call("SETTINGS SET", "QUEUE", "default", "GROUP", "g", "ordered", 1)
    board.claim_one("w1", id="a", lease=LONG)
    ordered = reason(board, "b", "ordered")
    assert (ordered["id"], ordered["state"], explain(board, "b")["claimable"]) == ("a", "claimed", 0)
    board.fail("w1", "a", "io", "", retry=LONG)
    ordered = reason(board, "b", "ordered")
    assert (ordered["id"], ordered["state"]) == ("a", "scheduled")


def test_the_next_token_is_told_and_comes_then(clocked_board, clock):
    board = clocked_board
    board.mpost(["1", "2"], ids=["a", "b"])
    board.set(queue="default", rate=2)
    board.claim_one("w1", id="a")
    rate = reason(board, "b", "rate")
    now = clock.now()
    assert (rate["level"], rate["at"], rate["cost"], rate["rate"]) == ("queue", now + 500, 1, 2)
    clock.advance(499)
    assert (codes(board, "b"), board.claim("w2")) == (["rate", "line"], [])
    clock.advance(1)
    assert (codes(board, "b"), explain(board, "b")["claimable"]) == (["unclaimed", "line"], 1)


def test_why_a_job_was_ended_does_not_hide_the_code_of_the_reason(board):
    board.post(id="a")
    board.claim_one("w1", id="a")
    board.call("TRASH", "w1", "a", "REASON", "rubbish")
    assert reason(board, "a", "ended")["why"] == "rubbish"


def test_held_ended_and_gone_jobs_are_told(board):
    board.mpost(["1", "2"], ids=["a", "b"])
    board.claim_one("w1", id="a", lease=LONG)
    board.cancel("a")
    assert (explain(board, "a")["state"], codes(board, "a")) == ("claimed", ["claimed", "cancel"])
    held = reason(board, "a", "claimed")
    assert (held["worker"], held["until"], held["session"]) == ("w1", board.get("a")["deadline"], 0)
    assert "waiting" not in explain(board, "a")
    board.cancel("b")
    assert (codes(board, "b"), reason(board, "b", "ended")["kept"]) == (
        ["ended"],
        board.get("b")["ended"] + 86_400_000,
    )
    board.consume("w1", "a", force=True)
    assert (explain(board, "a")["state"], codes(board, "a")) == ("complete", ["gone"])
    assert board.call("EXPLAIN", "nobody") is None


def test_who_waits_for_the_queue_is_counted(server):
    board = server.board()
    board.post(id="a", delay=LONG)
    waiters = [Waiter(server, name) for name in ["w1", "w2"]]
    wait_until(lambda: explain(board, "a")["waiting"] == 2)
    board.post(id="b", queue="other")
    assert explain(board, "b")["waiting"] == 0
    board.call("UPDATE", 1, "a", "SET", "DELAY", 0)
    wait_until(lambda: explain(board, "a")["state"] == "claimed")
    board.post(id="c")
    assert {waiter.job() for waiter in waiters} == {"a", "c"}


def test_a_quiet_worker_is_counted(board):
    board.post(id="a")
    board.worker("REGISTER", "w1")
    board.worker("QUIET", "w1")
    assert reason(board, "a", "unclaimed")["quiet"] == 1
    assert explain(board, "a")["claimable"] == 1


def test_it_changes_nothing_and_a_replica_says_the_same(fresh_server):
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    board = primary.board()
    board.mpost(["1", "2", "3"], ids=["a", "b", "c"], group="g")
    board.post(id="late", delay=LONG)
    board.claim_one("w1", id="a", lease=LONG)
    board.set(queue="default", concurrency=1)
    replica.wait_synced(primary)
    copy = replica.board()
    before = board.digest()
    for id in ["a", "b", "c", "late"]:
        assert explain(copy, id) == explain(board, id)
    assert (board.digest(), copy.digest()) == (before, before)


def test_a_reload_keeps_all_but_what_only_this_server_saw(fresh_server):
    server = fresh_server()
    board = server.board()
    board.mpost(["1", "2"], ids=["a", "b"])
    board.claim_one("w1", id="a", lease=LONG)
    assert reason(board, "b", "unclaimed")["since"] > 0
    server.client().execute_command("DEBUG", "RELOAD")
    assert (codes(board, "b"), reason(board, "b", "line")["ahead"]) == (["unclaimed", "line"], 0)
    assert "since" not in reason(board, "b", "unclaimed")


@pytest.mark.parametrize("id", ["a", "b", "c", "d", "e"])
def test_each_reason_has_a_sentence(board, id):
    board.post(id="a", expire=LONG)
    board.post(id="b", after=["a"])
    board.post(id="c", delay=LONG)
    board.post(id="d", priority=9)
    board.post(id="e")
    board.claim_one("w1", id="d")
    board.cancel("e")
    for told in explain(board, id)["reasons"]:
        assert told["text"].endswith(".") and next(iter(told)) == "reason"


def test_strange_names_are_shown_whole_and_in_texts_cleaned(board):
    board.post(id="a\r\nb", queue="q\0\r")
    board.call("POST", "x", "ID", "c", "AFTER", 1, "a\r\nb")
    waits = reason(board, "c", "dependencies")
    assert waits["jobs"][0]["id"] == "a\r\nb"
    assert explain(board, "a\r\nb")["queue"] == "q\0\r"
    assert "\r" not in reason(board, "a\r\nb", "unclaimed")["text"]


def test_it_reads_in_transactions_scripts_and_of_absent_boards(board):
    assert board.call("EXPLAIN", "a") is None
    board.post(id="a")
    with board.client.pipeline(transaction=True) as pipe:
        pipe.execute_command("JOB.EXPLAIN", board.key, "a")
        [told] = pipe.execute()
    assert plain(told)["claimable"] == 1
    script = "return redis.call('JOB.EXPLAIN', KEYS[1], 'a')"
    assert plain(board.client.eval(script, 1, board.key))["state"] == "ready"
    board.client.set("text", "x")
    with pytest.raises(Exception, match="WRONGTYPE"):
        board.client.execute_command("JOB.EXPLAIN", "text", "a")


def test_words_too_few_or_too_many_are_refused(board):
    for words in [[], ["a", "b"]]:
        with refused_like("ERR wrong number of arguments .+", board):
            board.call("EXPLAIN", *words)
