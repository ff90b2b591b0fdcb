"""JOB.STATS: what is counted on which day, how long things took, and that all copies agree."""

from __future__ import annotations

import lives
import pytest
from expect import refused
from harness import EPOCH
from harness.board import from_pairs, text
from lives import LONG
from waiters import Waiter

DAY = 86_400_000
TODAY = "2023-11-14"
"""The date of EPOCH, where manual clocks begin."""
TIMES = ["wait", "run", "await", "lateness", "lease-lateness", "due-lateness", "fire-lateness"]


def stats(board, **options):
    """The reply of JOB.STATS: numbers, and a dict for each distribution."""
    reply = from_pairs(board.call("STATS", **options))
    for name in TIMES:
        reply[name] = from_pairs(reply[name])
        for key in ["mean", "deviation"]:
            reply[name][key] = float(reply[name][key])
    reply["day"] = text(reply["day"])
    return reply


def counts(board, **options):
    """What is not 0, without the distributions and the sums of costs."""
    told = stats(board, **options)
    return {name: n for name, n in told.items() if name not in [*TIMES, "day", "cost", "costs"] and n}


def test_a_day_without_events_is_all_zeros(clocked_board):
    told = stats(clocked_board)
    assert told["day"] == TODAY and counts(clocked_board) == {}
    nothing = {"count": 0, "sum": 0, "min": 0, "max": 0, "p50": 0, "p95": 0, "p99": 0, "mean": 0.0}
    for name in TIMES:
        assert told[name] == {**nothing, "deviation": 0.0, "histogram": []}
    assert not clocked_board.client.exists("board")


def test_wait_and_run_are_measured_from_ready_to_claim_to_end(clocked_board, clock):
    board = clocked_board
    for wait, run in [(0, 100), (30, 101), (59_999, 7)]:
        board.post(id="j")
        clock.advance(wait)
        token = lives.claim(board)
        clock.advance(run)
        board.consume("w1", "j", token=token)
        clock.advance(60_000)
    told = stats(board, queue="default")
    assert counts(board) == {"posted": 3, "claimed": 3, "completed": 3}
    wait, run = told["wait"], told["run"]
    assert wait["histogram"] == [[0, 0, 1], [30, 30, 1], [59_001, 60_000, 1]]
    assert (wait["count"], wait["sum"], wait["min"], wait["max"]) == (3, 60_029, 0, 59_999)
    assert (wait["p50"], abs(wait["p99"] - 59_999) < 3_000) == (30, True)
    assert run["histogram"] == [[7, 7, 1], [100, 100, 1], [101, 110, 1]]
    assert run["mean"] == pytest.approx(208 / 3)
    assert run["deviation"] == pytest.approx(53.98, abs=0.01)


def test_a_retried_job_waits_anew_and_a_delay_is_no_wait(clocked_board, clock):
    board = clocked_board
    board.post(id="j", delay=5000)
    clock.advance(5000)
    token = lives.claim(board)
    board.fail("w1", "j", token=token, retry=1000)
    clock.advance(1000)
    clock.advance(40)
    lives.claim(board)
    told = stats(board)
    assert told["wait"]["histogram"] == [[0, 0, 1], [40, 40, 1]]
    assert (told["retried"], told["failed"], told["claimed"]) == (1, 0, 2)
    assert told["due-lateness"]["histogram"] == [[0, 0, 2]]


def test_every_end_is_counted_once(clocked_board):
    board = clocked_board
    lives.complete(board, "a", retain=LONG)
    lives.failed(board, "b")
    lives.cancelled(board, "c")
    lives.cancelled_by_force(board, "d")
    lives.trashed(board, "e")
    lives.abandoned(board, "f")
    lives.released(board, "g")
    board.requeue("b", "e")
    board.post(id="c", replace=True)
    board.delete("g", "a")
    assert counts(board) == {
        "posted": 7,
        "replaced": 1,
        "claimed": 6,
        "completed": 1,
        "failed": 1,
        "cancelled": 2,
        "trashed": 1,
        "abandoned": 1,
        "released": 1,
        "requeued": 2,
        "deleted": 2,
    }
    assert stats(board)["run"]["count"] == 4


def test_what_time_ends_is_counted_with_its_lateness(clocked_board, clock):
    board = clocked_board
    lives.lapsed(board, "a")
    lives.lapsed_and_taken(board, "b")
    lives.claimed(board, "c", timeout=500)
    clock.advance(500)
    board.post(id="d", expire=10)
    clock.advance(10)
    told = stats(board)
    assert (told["lapsed"], told["timeouts"], told["retried"], told["expired"]) == (2, 1, 1, 1)
    assert told["lease-lateness"]["count"] == 3 and told["lateness"]["count"] >= 3
    assert told["run"]["count"] == 0


def test_a_late_verb_ends_a_run_that_lapsed(clocked_board, clock):
    board = clocked_board
    token = lives.lapsed(board)
    clock.advance(500)
    board.heartbeat("w1", "j", token=token)
    clock.advance(900)
    board.consume("w1", "j", token=token)
    told = stats(board)
    assert (told["claimed"], told["lapsed"], told["revived"], told["completed"]) == (1, 1, 1, 1)
    assert told["run"]["histogram"] == [[2301, 2400, 1]] and told["run"]["max"] == 2400


def test_schedules_count_what_they_fire(clocked_board, clock):
    board = clocked_board
    board.client.execute_command("JOB.SCHEDULE", "SET", "board", "tick", "x", "EVERY", 1000)
    clock.advance(3000)
    board.client.execute_command("JOB.SCHEDULE", "RUN", "board", "tick")
    told = stats(board)
    assert told["posted"] == told["fired"] >= 2
    assert told["fire-lateness"]["count"] == told["fired"] - 1


def test_each_queue_has_its_own_and_the_board_the_sum(clocked_board, clock):
    board = clocked_board
    for queue, wait in [("mail", 5), ("mail", 10), ("sms", 20)]:
        board.post(queue=queue)
        clock.advance(wait)
        job = board.claim_one(queues=[])
        board.consume("w1", job["id"], token=job["token"])
    assert stats(board, queue="mail")["wait"]["histogram"] == [[5, 5, 1], [10, 10, 1]]
    assert counts(board, queue="sms") == {"posted": 1, "claimed": 1, "completed": 1}
    assert counts(board, queue="other") == {}
    assert stats(board)["wait"]["sum"] == 35
    board.post(id="moved", queue="mail")
    board.update("moved", queue="sms")
    board.claim(id="moved")
    assert (counts(board, queue="mail")["posted"], counts(board, queue="sms")["claimed"]) == (3, 2)


def test_days_are_those_of_utc_and_named_by_date_or_by_how_far_back(clocked_board, clock):
    board = clocked_board
    board.post()
    clock.advance(DAY - EPOCH % DAY - 1)
    board.post()
    clock.advance(1)
    board.post()
    assert [counts(board, day=day) for day in ["0", "1", "2"]] == [{"posted": 1}, {"posted": 2}, {}]
    assert stats(board)["day"] == "2023-11-15"
    assert counts(board, day=TODAY) == {"posted": 2} == counts(board, day=TODAY, queue="default")
    assert counts(board, day="2023-11-16") == {}


def test_days_are_dropped_by_time_alone(clocked_board, clock):
    board = clocked_board
    board.set(stats_days=2)
    board.post(id="j")
    clock.advance(DAY)
    board.post(id="k")
    assert counts(board, day=TODAY) == {"posted": 1}
    before = board.info()["revision"]
    clock.advance(DAY)
    assert counts(board, day=TODAY) == {} and counts(board, day="1") == {"posted": 1}
    assert board.info()["revision"] > before


def test_without_days_nothing_is_kept(clocked_board, clock):
    board = clocked_board
    board.post()
    board.set(stats_days=0)
    clock.advance(1)
    assert counts(board) == {}
    board.post()
    assert counts(board) == {}
    board.reset("stats-days")
    board.post()
    assert counts(board) == {"posted": 1}


def test_a_clock_that_goes_back_counts_where_it_is(clocked_board, clock):
    board = clocked_board
    board.post()
    clock.advance(DAY)
    board.post()
    clock.set(EPOCH)
    board.post()
    assert counts(board) == {"posted": 2}
    clock.advance(DAY)
    assert counts(board) == {"posted": 1}


@pytest.mark.parametrize("day", ["x", "-1", "2023-11-31", "3651", "1.5", "1700000000000", ""])
def test_other_days_are_refused(clocked_board, day):
    with refused("ERR DAY must be a date like 1970-01-01 or a number of days from 0 to 3650"):
        clocked_board.call("STATS", "DAY", day)


def test_bulk_verbs_count_each_job(clocked_board):
    board = clocked_board
    board.mpost(["x"] * 5)
    claimed = board.claim("w1", count=9)
    board.mconsume("w1", [job["id"] for job in claimed[:3]])
    board.mabandon("w1", "ALL")
    assert counts(board) == {"posted": 5, "claimed": 5, "completed": 3, "abandoned": 2}
    assert stats(board)["run"]["count"] == 5


def test_a_transaction_and_a_blocked_claim_count_like_others(server):
    board = server.board()
    waiter = Waiter(server, "w1")
    with board.client.pipeline() as transaction:
        transaction.execute_command("JOB.POST", "board", "x", "ID", "j")
        transaction.execute_command("JOB.POST", "board", "x", "ID", "k")
        transaction.execute()
    waiter.job()
    told = stats(board)
    assert (told["posted"], told["claimed"], told["wait"]["count"]) == (2, 1, 1)


def test_statistics_outlive_reload_and_restart(fresh_server):
    server = fresh_server()
    board = server.board()
    lives.busy(board)
    before, digest = board.call("STATS"), board.digest()
    assert counts(board)["claimed"] > 20
    server.client().execute_command("DEBUG", "RELOAD")
    assert (board.call("STATS"), board.digest()) == (before, digest)
    assert board.client.copy("board", "copy")
    assert server.board("copy").call("STATS") == before


def test_replicas_count_the_same(fresh_server):
    primary = fresh_server()
    lives.busy(primary.board("early"))
    replica = fresh_server(replicaof=primary)
    lives.busy(primary.board())
    replica.wait_synced(primary)
    for key in ["early", "board"]:
        assert replica.board(key).digest() == primary.board(key).digest()
        assert replica.board(key).call("STATS") == primary.board(key).call("STATS")


SIGNAL = ["SIGNALS", 1, "s"]
WAITS = {
    "a post": lambda board: board.post(id="j", **{"await": ["s"]}),
    "a run": lambda board: (board.post(id="j"), lives.claim(board), board.call("AWAIT", "w1", "j", *SIGNAL)),
    "children": lambda board: (
        board.post(id="j"),
        lives.claim(board),
        board.post(id="child", parent="j", delay=LONG),
        board.call("AWAIT", "w1", "j", "CHILDREN", *SIGNAL),
    ),
}
ENDS = {
    "signal": lambda board: board.signal("s", "j"),
    "cancel": lambda board: board.cancel("j"),
    "delete": lambda board: board.delete("j", "child"),
    "replace": lambda board: board.post(id="j", replace=True),
    "replace after": lambda board: board.post(id="j", replace=True, after=[]),
    "clear": lambda board: board.depend("CLEAR", "j"),
}


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("end", ENDS)
def test_a_wait_that_began_counts_once_when_it_is_over(board, wait, end):
    """However it ends. A replaced job may begin to wait anew."""
    WAITS[wait](board)
    assert stats(board)["await"]["count"] == 0
    ENDS[end](board)
    job = board.get("j", fields=["awaits"])
    waits = (job or {}).get("awaits", {})
    open_waits = ("signals" in waits) + ("children" in waits)
    told = stats(board)
    assert told["awaited"] - told["await"]["count"] == open_waits
    assert told["await"]["count"] >= 1
