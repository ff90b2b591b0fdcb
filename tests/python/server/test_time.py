"""What happens by itself when its time has come, with no client alive. The clock is moved by hand."""

from __future__ import annotations

import time

import lives
import pytest
from expect import check_consistent, drain, ids, refused_like
from harness import EPOCH, now, past, record, wait_until
from lives import LONG


def lapse(board, clock, id="j", lease=10) -> None:
    """Claims the job and lets the lease end."""
    lives.claim(board, id, lease=lease)
    clock.advance(lease)


# The clock


def test_the_clock_stands_still_until_it_is_moved(clocked, clock):
    before = clock.now()
    time.sleep(0.02)
    assert clock.now() == before == EPOCH
    assert clock.advance(5) == EPOCH + 5
    clock.set(EPOCH + 100)
    assert clock.now() == EPOCH + 100
    clock.set(EPOCH - 50)
    assert clock.now() == EPOCH - 50


@pytest.mark.parametrize("words", ["SET x", "SET -1", "SET 99999999999999999999", "ADVANCE x", "ADVANCE 1.5"])
def test_a_strange_time_is_refused(clocked, clock, words):
    with refused_like("ERR .+"):
        clocked.client().execute_command("JOB.CLOCK", *words.split())
    assert clock.now() == EPOCH


def test_everything_due_is_done_before_the_clock_answers(clocked_board, clock):
    clocked_board.post_many(5000, delay=10)
    clocked_board.post_many(5000, queue="q")
    clocked_board.claim(queues=["q"], count=5000, lease=10)
    clock.advance(10)
    info = clocked_board.info()
    assert (info["ready"], info["scheduled"], info["claimed"], bool(info["overdue"])) == (10_000, 0, 0, False)
    check_consistent(clocked_board)


# Leases


def test_a_lease_ends_at_its_exact_moment(clocked_board, clock):
    lives.claimed(clocked_board, lease=1000)
    clock.advance(999)
    assert clocked_board.state("j") == "claimed"
    assert clocked_board.claim("w2") == []
    clock.advance(1)
    assert clocked_board.state("j") == "ready"
    assert clocked_board.claim_one("w2")["attempt"] == 2


def test_a_lapse_is_told_at_its_own_time_not_at_that_of_the_timer(clocked_board, clock):
    lives.claimed(clocked_board, lease=1000)
    clock.advance(5000)
    lapsed = clocked_board.history("j")[-1]
    assert (lapsed["event"], lapsed["worker"]) == ("lapsed", "w1")
    assert EPOCH + 1000 <= lapsed["at"] <= EPOCH + 5000


def test_lost_leases_have_a_count_of_their_own(clocked_board, clock):
    lives.ready(clocked_board, lapses=2, retries=7)
    lapse(clocked_board, clock)
    lapse(clocked_board, clock)
    assert clocked_board.state("j") == "ready"
    lapse(clocked_board, clock)
    job = clocked_board.get("j")
    assert (job["state"], job["kind"], job["left"]) == ("failed", "lapsed", 7)


def test_the_default_is_five_lost_leases(clocked_board, clock):
    lives.ready(clocked_board)
    for _ in range(5):
        lapse(clocked_board, clock)
    assert clocked_board.state("j") == "ready"
    lapse(clocked_board, clock)
    assert clocked_board.state("j") == "failed"


def test_lost_leases_without_end_never_fail_the_job(clocked_board, clock):
    lives.ready(clocked_board, lapses=-1)
    for _ in range(50):
        lapse(clocked_board, clock)
    assert clocked_board.state("j") == "ready"


def test_a_late_heartbeat_takes_back_the_charge_or_leaves_it(clocked_board, clock):
    """Either way the job does not fail while its worker is alive."""
    lives.ready(clocked_board, lapses=1)
    token = lives.claim(clocked_board, lease=10)
    clock.advance(10)
    clocked_board.heartbeat("w1", "j", token=token, lease=10)
    assert clocked_board.state("j") == "claimed"


def test_leases_end_in_the_order_of_their_ends(clocked_board, clock):
    for id, lease in [("c", 30), ("a", 10), ("b", 20)]:
        lives.claimed(clocked_board, id, lease=lease)
    for id, time_ in [("a", 10), ("b", 20), ("c", 30)]:
        clock.set(EPOCH + time_)
        assert clocked_board.state(id) == "ready"
    assert clocked_board.info()["next"] == -1


# Run timeouts


def test_a_run_that_takes_too_long_is_a_failure(clocked_board, clock):
    lives.claimed(clocked_board, timeout=1000, retries=3, backoff=("FIXED", 50), jitter=0)
    clock.advance(1000)
    job = clocked_board.get("j")
    assert (job["state"], job["kind"], job["left"], job["due"]) == ("scheduled", "timeout", 2, EPOCH + 1050)
    assert clocked_board.events("j")[-1] == "timeout"
    clock.advance(50)
    assert clocked_board.claim_one("w2")["attempt"] == 2


def test_heartbeats_do_not_put_a_timeout_off(clocked_board, clock):
    token = lives.claimed(clocked_board, lease=400, timeout=1000, retries=0)
    for _ in range(3):
        clock.advance(300)
        clocked_board.heartbeat("w1", "j", token=token)
    clock.advance(100)
    assert clocked_board.get("j")["kind"] == "timeout"
    assert clocked_board.state("j") == "failed"


def test_a_timeout_begins_anew_with_each_run(clocked_board, clock):
    lives.ready(clocked_board, timeout=1000)
    token = lives.claim(clocked_board)
    clock.advance(900)
    clocked_board.abandon("w1", "j", token=token)
    lives.claim(clocked_board)
    clock.advance(900)
    assert clocked_board.state("j") == "claimed"
    clock.advance(100)
    assert clocked_board.state("j") == "scheduled"


def test_a_run_taken_back_late_keeps_its_timeout(clocked_board, clock):
    token = lives.claimed(clocked_board, lease=400, timeout=1000)
    clock.advance(400)
    assert clocked_board.heartbeat("w1", "j", token=token, lease=LONG)["deadline"] == EPOCH + 1000
    clock.advance(600)
    assert clocked_board.get("j")["kind"] == "timeout"


def test_the_last_timeout_fails_the_job(clocked_board, clock):
    lives.ready(clocked_board, timeout=10, retries=1, backoff=("FIXED", 0))
    for state in ["ready", "failed"]:
        lives.claim(clocked_board)
        clock.advance(10)
        assert clocked_board.state("j") == state
    assert clocked_board.kinds() == {"timeout": 1}


# Delays


def test_a_delayed_job_is_ready_at_its_exact_moment(clocked_board, clock):
    clocked_board.post(id="j", delay=1000)
    clock.advance(999)
    assert (clocked_board.state("j"), clocked_board.claim()) == ("scheduled", [])
    clock.advance(1)
    assert clocked_board.state("j") == "ready"


def test_jobs_due_at_once_run_by_due_time_then_by_post(clocked_board, clock):
    for id, delay in [("c", 20), ("a", 10), ("d", 20), ("b", 10)]:
        clocked_board.post(id=id, delay=delay)
    clock.advance(100)
    assert drain(clocked_board) == ["a", "b", "c", "d"]


# Expiry


def test_a_job_that_nobody_claims_in_time_expires(clocked_board, clock):
    clocked_board.post(id="j", expire=1000)
    clock.advance(999)
    assert clocked_board.state("j") == "ready"
    clock.advance(1)
    job = clocked_board.get("j")
    assert (job["state"], job["kind"], job["ended"]) == ("failed", "expired", EPOCH + 1000)
    assert clocked_board.events("j")[-1] == "expired"
    assert clocked_board.claim() == []


def test_expiry_counts_from_when_the_job_could_first_run(clocked_board, clock):
    clocked_board.post(id="j", delay=5000, expire=1000)
    clock.advance(5999)
    assert clocked_board.state("j") == "ready"
    clock.advance(1)
    assert clocked_board.state("j") == "failed"


def test_a_claimed_job_does_not_expire(clocked_board, clock):
    lives.claimed(clocked_board, expire=1000)
    clock.advance(5000)
    assert clocked_board.state("j") == "claimed"


def test_back_off_does_not_count_towards_expiry(clocked_board, clock):
    lives.claimed(clocked_board, expire=1000)
    clocked_board.fail("w1", "j", retry=5000)
    clock.advance(5000)
    assert clocked_board.state("j") == "ready"
    clock.advance(999)
    assert clocked_board.state("j") == "ready"
    clock.advance(1)
    assert clocked_board.get("j")["kind"] == "expired"


# Retention


def test_many_ended_jobs_are_dropped(clocked_board, clock):
    clocked_board.set(retain_cancelled=1000)
    posted = clocked_board.post_many(3000)
    for start in range(0, 3000, 1000):
        clocked_board.cancel(*posted[start : start + 1000])
    clock.advance(1000)
    assert clocked_board.info()["jobs"] == 0
    check_consistent(clocked_board)


def test_a_dropped_job_leaves_a_tombstone_for_a_minute(clocked_board, clock):
    clocked_board.set(retain_cancelled=10)
    lives.cancelled(clocked_board)
    clock.advance(10)
    assert clocked_board.get("j") is None
    assert clocked_board.info()["tombstones"] in (0, 1)


# The clock goes back


def test_nothing_ends_early_when_the_clock_goes_back(clocked_board, clock):
    lives.claimed(clocked_board, "held", lease=1000)
    clocked_board.post(id="waits", delay=1000)
    clock.set(EPOCH - 1_000_000)
    assert clocked_board.state("held") == "claimed"
    assert clocked_board.state("waits") == "scheduled"
    clock.set(EPOCH + 999)
    assert clocked_board.state("held") == "claimed"
    clock.set(EPOCH + 1000)
    assert clocked_board.state("held") == clocked_board.state("waits") == "ready"


def test_work_goes_on_when_the_clock_goes_back(clocked_board, clock):
    lives.claimed(clocked_board, "before")
    clock.set(EPOCH - 1_000_000)
    token = lives.claimed(clocked_board, "after", lease=500)
    assert clocked_board.get("after")["deadline"] == EPOCH - 1_000_000 + 500
    assert clocked_board.consume("w1", "after", token=token) == "complete"
    assert clocked_board.heartbeat("w1", "before", lease=500)["deadline"] == EPOCH - 1_000_000 + 500
    clock.advance(500)
    assert clocked_board.state("before") == "ready"
    check_consistent(clocked_board)


def test_a_clock_that_jumps_far_ahead_does_what_is_due_and_no_more(clocked_board, clock):
    lives.claimed(clocked_board, lapses=1, lease=1000)
    clock.advance(30 * 365 * 86_400_000)
    assert clocked_board.state("j") == "ready"
    clock.set(EPOCH)
    assert clocked_board.state("j") == "ready"
    assert clocked_board.claim_one()["id"] == "j"


# Several boards


def test_boards_of_all_databases_are_served(clocked, clock):
    boards = [clocked.board(f"board-{n}", db=n % 16) for n in range(32)]
    for n, board in enumerate(boards):
        board.post(id="j", delay=10 + n % 3)
    clock.advance(10)
    assert [board.state("j") for board in boards] == [
        "ready" if n % 3 == 0 else "scheduled" for n in range(32)
    ]
    clock.advance(2)
    assert {board.state("j") for board in boards} == {"ready"}


def test_a_board_that_has_moved_is_served_where_it_is(clocked, clock):
    board = clocked.board("a")
    for name in ["a", "b", "c"]:
        clocked.board(name).post(id="j", delay=10)
    board.client.rename("a", "renamed")
    board.client.move("b", 5)
    board.client.copy("c", "copy")
    board.client.delete("c")
    clock.advance(10)
    for name, db in [("renamed", 0), ("b", 5), ("copy", 0)]:
        assert clocked.board(name, db=db).state("j") == "ready", name
    board.client.swapdb(0, 7)
    clocked.board("renamed", db=7).post(id="k", delay=10)
    clock.advance(10)
    assert clocked.board("renamed", db=7).state("k") == "ready"


def test_a_board_restored_from_a_dump_is_served(clocked, clock):
    board = clocked.board("a")
    board.post(id="j", delay=10)
    raw = clocked.raw_client()
    payload = raw.dump("a")
    raw.delete("a")
    clock.advance(5)
    raw.restore("b", 0, payload)
    assert clocked.board("b").state("j") == "scheduled"
    clock.advance(5)
    assert clocked.board("b").state("j") == "ready"


def test_a_board_restored_long_after_its_times_does_what_is_due(clocked, clock):
    board = clocked.board("a")
    board.post(id="due", delay=10)
    lives.claimed(board, "held", lease=10)
    raw = clocked.raw_client()
    payload = raw.dump("a")
    raw.delete("a")
    clock.advance(1_000_000)
    raw.restore("b", 0, payload)
    clock.advance(10_000)
    assert sorted(drain(clocked.board("b"))) == ["due", "held"]


# The system clock: the timer itself


def test_the_timer_makes_a_job_ready_with_no_client(server):
    board = server.board()
    board.post(id="j", delay=50)
    wait_until(lambda: board.state("j") == "ready")
    assert board.events("j") == ["posted"]


def test_the_timer_ends_a_lease_with_no_client(server):
    board = server.board()
    lives.claimed(board, lease=30)
    wait_until(lambda: board.state("j") == "ready")
    assert board.events("j")[-1] == "lapsed"


def test_the_timer_runs_in_every_database(server):
    board = server.board("elsewhere", db=9)
    board.post(id="j", delay=20)
    wait_until(lambda: board.state("j") == "ready")


def test_a_verb_after_the_deadline_sees_it_before_the_timer_has_run(server):
    """DEBUG SLEEP and the verb come in one packet, so that no timer runs between them."""
    board = server.board()
    lives.claimed(board, lease=50)
    pipe = board.client.pipeline(transaction=False)
    pipe.execute_command("DEBUG", "SLEEP", 0.1)
    pipe.execute_command("JOB.CLAIM", "board", "w2", "ID", "j")
    _, claimed = pipe.execute()
    assert ids(claimed) == ["j"]
    assert board.events("j") == ["posted", "claimed", "lapsed", "claimed"]


def test_a_claim_settles_what_is_due_before_the_timer_has_run(server):
    board = server.board()
    board.post(id="plain")
    board.post(id="better", delay=50, priority=5)
    pipe = board.client.pipeline(transaction=False)
    pipe.execute_command("DEBUG", "SLEEP", 0.1)
    pipe.execute_command("JOB.CLAIM", "board", "w1", "COUNT", 5)
    _, claimed = pipe.execute()
    assert ids(claimed) == ["better", "plain"]


def test_a_late_heartbeat_before_the_timer_has_run_keeps_the_job(server):
    board = server.board()
    lives.ready(board)
    pipe = board.client.pipeline(transaction=False)
    pipe.execute_command("JOB.CLAIM", "board", "w1", "LEASE", 50)
    pipe.execute_command("DEBUG", "SLEEP", 0.1)
    pipe.execute_command("JOB.HEARTBEAT", "board", "w1", "j", "LEASE", LONG)
    [claim], _, _ = pipe.execute()
    assert (board.state("j"), board.get("j")["token"]) == ("claimed", record(claim)["token"])


def test_many_jobs_due_at_once_do_not_stop_the_server(server):
    """Many jobs due at once become ready while commands are answered in between."""
    board = server.board()
    at = int(time.time() * 1000) + 300
    board.mpost(["x"] * 10_000, at=at)
    wait_until(lambda: board.info()["ready"] == 10_000)
    assert len(drain(board)) == 10_000


# After a restart


def test_no_lease_ends_for_a_grace_after_a_restart(fresh_server):
    server = fresh_server("recovery-grace", LONG, appendonly=True)
    lives.held(server.board())
    server.restart()
    board = server.board()
    past(board.get("j")["deadline"])
    assert board.claim("w2") == []
    assert board.state("j") == "claimed"


def test_a_lease_ends_when_the_grace_after_a_restart_has_passed(fresh_server):
    server = fresh_server("recovery-grace", 1500, appendonly=True)
    lives.held(server.board())
    past(server.board().get("j")["deadline"])
    restarted = now()
    server.restart()
    board = server.board()
    wait_until(lambda: board.state("j") == "ready")
    assert board.history("j")[-1]["at"] >= restarted + 1500


def test_a_worker_that_lives_through_a_restart_keeps_its_job(fresh_server):
    server = fresh_server("recovery-grace", LONG, appendonly=True)
    token = lives.held(server.board())
    server.restart()
    board = server.board()
    past(board.get("j")["deadline"])
    assert board.claim("w2") == []
    assert board.heartbeat("w1", "j", token=token, lease=LONG)["cancel"] == 0
    assert board.events("j") == ["posted", "claimed"]
    assert board.consume("w1", "j", token=token) == "complete"


def test_delayed_jobs_need_no_grace(fresh_server):
    server = fresh_server("recovery-grace", 60_000, appendonly=True)
    server.board().post(id="j", delay=100)
    server.restart()
    board = server.board()
    wait_until(lambda: board.state("j") == "ready")


def test_tokens_rise_over_a_restart(fresh_server):
    server = fresh_server(appendonly=True)
    first = lives.claimed(server.board(), "a")
    server.restart()
    assert lives.claimed(server.board(), "b") > first


def test_tokens_rise_over_a_restart_with_nothing_saved(fresh_server):
    server = fresh_server()
    first = lives.claimed(server.board(), "a")
    server.restart(kill=True)
    assert lives.claimed(server.board(), "a") > first


def test_boards_that_have_gone_leave_nothing_to_the_timer(clocked):
    client = clocked.client()
    before = int(client.info("jobboard")["jobboard_timer_boards"])
    for n in range(300):
        client.execute_command("JOB.POST", f"gone{n}", "x", "DELAY", LONG)
        client.delete(f"gone{n}")
    wait_until(lambda: int(client.info("jobboard")["jobboard_timer_boards"]) <= before + 100)


# The system clock


def test_a_server_with_nothing_to_do_for_a_month_sleeps(board, server):
    board.post("far", delay=30 * 86_400_000)
    board.post("near", delay=1)
    wait_until(lambda: board.count(state="ready") == 1, what="the timer has had its turn")
    before, begin = server.cpu(), time.monotonic()
    time.sleep(1)
    took = server.cpu() - before
    assert took < 0.05 + 0.05 * (time.monotonic() - begin)
