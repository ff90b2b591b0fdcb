"""Replicas follow, byte by byte of state; a promoted one goes on where its primary stopped."""

from __future__ import annotations

import signal
import time

import lives
import pytest
import redis
from expect import check_consistent, drain, ids, refused, refused_like
from harness import EPOCH, SOON, Server, now, past, wait_until
from lives import LONG
from waiters import Waiter, error_of

STREAMED = ["repl-diskless-sync yes", "repl-diskless-load on-empty-db"]
ON_DISK = ["repl-diskless-sync no", "repl-diskless-load disabled"]


@pytest.fixture
def pair_with(fresh_server):
    """A factory: a primary and a replica, both with these load arguments, between which writes flow."""

    def start(*module_args) -> tuple:
        primary = fresh_server(*module_args)
        replica = fresh_server(*module_args, replicaof=primary)
        primary.client().set("first", "write")
        replica.wait_synced(primary)
        return primary, replica

    return start


@pytest.fixture
def pair(pair_with):
    return pair_with()


def same(replica: Server, primary: Server, key: str = "board", db: int = 0) -> None:
    replica.wait_synced(primary)
    assert replica.board(key, db=db).digest() == primary.board(key, db=db).digest() is not None
    assert not replica.board(key, db=db).info()["broken"]


def promote(server: Server) -> None:
    server.client().replicaof("NO", "ONE")


# Following


def test_a_replica_follows_every_command(pair):
    primary, replica = pair
    lives.busy(primary.board())
    lives.busy(primary.board("elsewhere", db=5))
    same(replica, primary)
    same(replica, primary, "elsewhere", 5)
    check_consistent(replica.board())


@pytest.mark.parametrize("config", [STREAMED, ON_DISK], ids=["streamed", "on disk"])
def test_a_replica_that_comes_later_gets_the_whole_and_then_follows(fresh_server, config):
    primary = fresh_server(config=config)
    board = primary.board()
    lives.busy(board)
    posted = board.post_many(100, queue="holes")
    board.delete(*posted[10:90])
    replica = fresh_server(replicaof=primary, config=config)
    same(replica, primary)
    board.post_many(200, queue="after")
    board.claim("w7", queues=["after", "holes"], count=150, lease=LONG)
    board.mconsume("w7", posted[:10])
    board.mabandon("w7", "ALL")
    same(replica, primary)


def test_a_replica_goes_on_after_a_broken_link(pair):
    primary, replica = pair
    board = primary.board()
    lives.busy(board)
    same(replica, primary)
    before = primary.info("stats")["sync_partial_ok"]
    primary.client().execute_command("CLIENT", "KILL", "TYPE", "replica")
    board.post_many(100, queue="meanwhile")
    board.claim("w8", queues=["meanwhile"], count=50, lease=LONG)
    same(replica, primary)
    assert primary.info("stats")["sync_partial_ok"] > before


def test_a_replica_that_missed_too_much_gets_the_whole_again(fresh_server):
    primary = fresh_server(config=["repl-backlog-size 16kb"])
    replica = fresh_server(replicaof=primary)
    board = primary.board()
    lives.busy(board)
    same(replica, primary)
    before = primary.info("stats")["sync_full"]
    replica.process.send_signal(signal.SIGSTOP)
    primary.client().execute_command("CLIENT", "KILL", "TYPE", "replica")
    board.post_many(100, "x" * 1000)
    replica.process.send_signal(signal.SIGCONT)
    same(replica, primary)
    assert primary.info("stats")["sync_full"] > before


def test_a_replica_of_a_replica_follows(fresh_server):
    primary = fresh_server()
    lives.busy(primary.board("early"))
    middle = fresh_server(replicaof=primary)
    middle.wait_synced(primary)
    last = fresh_server(replicaof=middle)
    lives.busy(primary.board())
    middle.wait_synced(primary)
    for key in ["early", "board"]:
        same(middle, primary, key)
        same(last, middle, key)


def test_time_passes_on_a_replica_as_its_primary_says(pair):
    primary, replica = pair
    board = primary.board()
    lives.claimed(board, "lapses", lease=50)
    lives.claimed(board, "times out", timeout=50, backoff=("FIXED", LONG))
    board.post(id="due", delay=50)
    board.post(id="expires", expire=50, queue="q")
    lives.claimed(board, "dropped", retain=50)
    board.consume("w1", "dropped")
    wait_until(
        lambda: board.state("lapses") == board.state("due") == "ready" and board.get("dropped") is None
    )
    wait_until(lambda: board.state("expires") == "failed" and board.state("times out") == "scheduled")
    same(replica, primary)


def test_served_waiters_travel(pair):
    primary, replica = pair
    waiters = [Waiter(primary, f"w{n}", lease=LONG) for n in range(5)]
    primary.board().mpost("abcde")
    assert [waiter.job() for waiter in waiters]
    same(replica, primary)
    assert replica.board().info()["claimed"] == 5


def test_a_copy_of_a_board_follows_as_well(pair):
    primary, replica = pair
    board = primary.board()
    lives.busy(board)
    board.client.copy("board", "copy")
    board.client.rename("board", "renamed")
    for key in ["copy", "renamed"]:
        primary.board(key).post_many(10)
        primary.board(key).claim("w9", count=5, lease=LONG)
        same(replica, primary, key)


def test_a_restored_board_follows_as_well(pair):
    primary, replica = pair
    lives.busy(primary.board("source"))
    raw = primary.raw_client()
    raw.restore("board", 0, raw.dump("source"))
    primary.board().post_many(10)
    same(replica, primary)


def test_a_board_deleted_and_made_anew_follows(pair):
    primary, replica = pair
    board = primary.board()
    for _ in range(5):
        lives.ready(board)
        board.claim("w1", lease=LONG)
        board.client.delete("board")
    lives.ready(board)
    same(replica, primary)


def test_a_primary_that_restarts_is_followed(fresh_server):
    primary = fresh_server(appendonly=True)
    replica = fresh_server(replicaof=primary)
    lives.busy(primary.board())
    same(replica, primary)
    primary.restart()
    primary.board().post_many(20)
    primary.board().claim("w9", count=20, lease=LONG)
    same(replica, primary)


def test_acknowledged_by_wait_is_on_the_replica(pair):
    primary, replica = pair
    board = primary.board()
    for n in range(20):
        board.post(id=f"j{n}")
        assert board.client.wait(1, 30_000) == 1
        assert replica.board().state(f"j{n}") == "ready"


# What a replica does not do


def test_a_replica_answers_reads_and_refuses_writes(pair):
    primary, replica = pair
    lives.busy(primary.board())
    same(replica, primary)
    copy = replica.board()
    assert copy.get("ready")["state"] == "ready"
    assert copy.list_all(justid=True) == primary.board().list_all(justid=True)
    assert copy.count() == primary.board().count()
    assert copy.counts() == primary.board().counts()
    assert copy.kinds() == primary.board().kinds()
    assert copy.history("claimed") == primary.board().history("claimed")
    assert copy.settings() == primary.board().settings()
    for write in [
        lambda: copy.post(),
        lambda: copy.claim(),
        lambda: copy.claim(block=0),
        lambda: copy.consume("w1", "claimed"),
        lambda: copy.cancel("ready"),
        lambda: copy.set(lease=1),
    ]:
        with refused_like("READONLY .+", copy):
            write()


def test_a_replica_ends_no_lease_while_its_primary_is_silent(pair):
    primary, replica = pair
    board = primary.board()
    pipe = board.client.pipeline()
    pipe.execute_command("JOB.POST", "board", "x", "ID", "j")
    pipe.execute_command("JOB.CLAIM", "board", "w1", "LEASE", 100)
    pipe.execute_command("JOB.POST", "board", "x", "ID", "due", "DELAY", 100)
    # The primary is to end nothing before it is silent.
    pipe.execute_command("CONFIG", "SET", "min-replicas-to-write", 99)
    pipe.execute()
    replica.wait_synced(primary)
    primary.process.send_signal(signal.SIGSTOP)
    try:
        past(now() + 300)
        copy = replica.board()
        assert (copy.state("j"), copy.state("due")) == ("claimed", "scheduled")
        assert copy.info()["overdue"] == 1
    finally:
        primary.process.send_signal(signal.SIGCONT)
    board.client.config_set("min-replicas-to-write", 0)
    wait_until(lambda: board.state("j") == "ready")
    same(replica, primary)


def test_reading_from_a_replica_changes_nothing(pair):
    primary, replica = pair
    board = primary.board()
    lives.claimed(board, lease=LONG)
    same(replica, primary)
    before = replica.board().digest()
    replica.board().list_all(), replica.board().get("j"), replica.board().workers()
    assert replica.board().digest() == before


# A replica's own append-only file


def test_a_replica_writes_its_own_append_only_file(fresh_server):
    primary = fresh_server()
    lives.busy(primary.board("early"))
    replica = fresh_server(replicaof=primary, appendonly=True)
    replica.wait_synced(primary)
    lives.busy(primary.board())
    primary.board().mabandon("w3", "ALL")
    same(replica, primary)
    before = {key: primary.board(key).digest() for key in ["early", "board"]}
    primary.kill()
    replica.restart(config=["appendonly yes"])
    for key, digest in before.items():
        assert replica.board(key).digest() == digest
        check_consistent(replica.board(key))
    assert replica.info("replication")["role"] == "master"


# Promotion


def test_a_promoted_replica_goes_on(pair):
    primary, replica = pair
    board = primary.board()
    lives.busy(board)
    held = board.get("claimed")
    same(replica, primary)
    primary.kill()
    promote(replica)
    board = replica.board()
    assert board.consume("w1", "claimed", token=held["token"]) == "complete"
    waiting = board.count(state="ready")
    assert len(drain(board)) == waiting
    check_consistent(board)


def test_tokens_rise_over_a_promotion(pair):
    primary, replica = pair
    board = primary.board()
    board.post_many(50)
    last = max(job["token"] for job in board.claim("w1", count=50, lease=LONG))
    replica.wait_synced(primary)
    primary.kill()
    promote(replica)
    assert lives.claimed(replica.board(), "new") > last
    assert lives.claimed(replica.board("another"), "new") > last


def test_tokens_rise_over_a_promotion_even_when_the_last_claims_were_lost(pair):
    """The replica has not seen the last claims; the clock makes its tokens higher all the same."""
    primary, replica = pair
    board = primary.board()
    board.post_many(200)
    replica.wait_synced(primary)
    replica.process.send_signal(signal.SIGSTOP)
    primary.client().execute_command("CLIENT", "KILL", "TYPE", "replica")
    lost = max(job["token"] for job in board.claim("w1", count=200, lease=LONG))
    primary.kill()
    time.sleep(0.1)
    replica.process.send_signal(signal.SIGCONT)
    promote(replica)
    board = replica.board()
    assert board.info()["claimed"] == 0
    assert min(job["token"] for job in board.claim("w2", count=200, lease=LONG)) > lost


def test_parted_primaries_never_give_equal_tokens(pair_with):
    """Both claim the same jobs, at the same times by their clocks."""
    primary, replica = pair_with("clock", "manual")
    board = primary.board()
    primary.clock.set(EPOCH)
    board.post_many(300)
    board.claim("w1", count=10, lease=LONG)
    replica.wait_synced(primary)
    promote(replica)
    given: dict = {primary: [], replica: []}
    for at in [EPOCH, EPOCH + 1, EPOCH + 60_000, EPOCH + 120_000, EPOCH + 120_001]:
        for server, tokens in given.items():
            server.clock.set(at)
            claims = server.board().claim("w2", count=20, lease=LONG)
            tokens.extend(job["token"] for job in claims)
        if at < EPOCH + 60_000:
            assert min(given[replica]) > max(given[primary]), "for a minute the new one is ahead"
    assert len(given[primary]) == len(given[replica]) == 100
    assert not set(given[primary]) & set(given[replica])
    tokens = given[replica]
    assert tokens == sorted(set(tokens)) and given[primary] == sorted(set(given[primary]))


def test_a_primary_that_was_none_for_a_while_goes_on_above_both(pair):
    primary, replica = pair
    board = primary.board()
    board.post_many(50)
    board.claim("w1", count=10, lease=LONG)
    replica.wait_synced(primary)
    promote(replica)
    primary.client().replicaof("127.0.0.1", replica.port)
    replica.board().post("x")
    primary.wait_synced(replica)
    last = max(job["token"] for job in replica.board().claim("w2", count=10, lease=LONG))
    primary.wait_synced(replica)
    promote(primary)
    assert min(job["token"] for job in board.claim("w3", count=10, lease=LONG)) > last


def test_no_lease_ends_for_a_grace_after_a_promotion(pair_with):
    primary, replica = pair_with("recovery-grace", LONG)
    token = lives.held(primary.board())
    replica.wait_synced(primary)
    primary.kill()
    promote(replica)
    board = replica.board()
    past(board.get("j")["deadline"])
    assert board.claim("w2") == []
    assert (board.state("j"), board.get("j")["token"]) == ("claimed", token)


def test_a_lease_ends_when_the_grace_after_a_promotion_has_passed(pair_with):
    primary, replica = pair_with("recovery-grace", 1500)
    lives.held(primary.board())
    replica.wait_synced(primary)
    past(primary.board().get("j")["deadline"])
    primary.kill()
    promoted = now()
    promote(replica)
    board = replica.board()
    wait_until(lambda: board.state("j") == "ready")
    assert board.history("j")[-1]["at"] >= promoted + 1500


def test_a_worker_keeps_its_job_over_a_promotion(pair_with):
    primary, replica = pair_with("recovery-grace", LONG)
    token = lives.held(primary.board())
    replica.wait_synced(primary)
    primary.kill()
    promote(replica)
    board = replica.board()
    past(board.get("j")["deadline"])
    assert board.claim("w2") == []
    assert board.heartbeat("w1", "j", token=token, lease=LONG)["cancel"] == 0
    assert board.events("j") == ["posted", "claimed"]


def test_due_jobs_run_at_once_after_a_promotion(pair):
    primary, replica = pair
    primary.board().post(id="j", delay=SOON)
    end = now() + SOON
    replica.wait_synced(primary)
    primary.kill()
    past(end)
    promote(replica)
    wait_until(lambda: replica.board().state("j") == "ready")


def test_the_old_primary_follows_the_new_one(pair):
    primary, replica = pair
    lives.busy(primary.board())
    same(replica, primary)
    promote(replica)
    lives.ready(primary.board(), "only on the old one")
    lives.ready(replica.board(), "only on the new one")
    primary.client().replicaof("127.0.0.1", replica.port)
    same(primary, replica)
    assert primary.board().get("only on the old one") is None
    replica.board().claim("w9", queues=[], count=10, lease=LONG)
    same(primary, replica)


def test_a_demoted_primary_stops_its_clock(pair):
    primary, replica = pair
    board = primary.board()
    lives.held(board)
    replica.wait_synced(primary)
    pipe = replica.client().pipeline()
    pipe.execute_command("REPLICAOF", "NO", "ONE")
    pipe.execute_command("CLIENT", "PAUSE", LONG, "WRITE")
    pipe.execute()
    primary.client().replicaof("127.0.0.1", replica.port)
    primary.wait_synced(replica)
    primary.client().config_set("min-replicas-to-write", 0)
    past(now() + 500)
    assert primary.board().state("j") == "claimed"
    replica.client().execute_command("CLIENT", "UNPAUSE")


def test_a_coordinated_failover_loses_nothing(pair):
    primary, replica = pair
    board = primary.board()
    lives.busy(board)
    lives.claimed(board, "lapses in between", lease=30)
    waiter = Waiter(primary, "waits", queues=["nothing comes"])
    before = {id: board.state(id) for id in lives.LIVES if " " not in id}
    primary.fail_over_to(replica)
    wait_until(lambda: replica.info("replication")["role"] == "master")
    assert error_of(waiter).startswith("UNBLOCKED")
    board = replica.board()
    assert {id: board.state(id) for id in before} == before
    wait_until(lambda: primary.info("replication").get("master_link_status") == "up")
    lives.ready(board, "after")
    same(primary, replica)


def test_a_primary_short_of_replicas_ends_no_lease(fresh_server):
    """Nothing is decided that clients could not have written either."""
    server = fresh_server()
    board = server.board()
    lives.held(board)
    with refused_like("NOREPLICAS .+", board):
        board.post()
    past(board.get("j")["deadline"] + 100)
    assert board.state("j") == "claimed"
    board.client.config_set("min-replicas-to-write", 0)
    wait_until(lambda: board.state("j") == "ready")


def overdue(server) -> int:
    return server.info("jobboard")["jobboard_timer_overdue_ms"]


def test_the_timer_says_that_it_is_late_while_it_may_not_write(fresh_server):
    """It asks again and again: how late it is counts from the deadline, not from the last answer."""
    server = fresh_server()
    board = server.board()
    server.board("idle").post("x", delay=LONG)
    lives.held(board)
    wait_until(lambda: overdue(server) > 1_000)
    assert overdue(server) <= now() - board.get("j")["deadline"]
    assert board.state("j") == "claimed"
    board.client.config_set("min-replicas-to-write", 0)
    wait_until(lambda: board.state("j") == "ready" and overdue(server) == 0)


def test_the_timer_of_a_replica_is_not_late(fresh_server):
    """Its primary handles the deadlines. The board comes by effects, so the replica has noted its times."""
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    replica.wait_synced(primary)
    board = primary.board()
    board.post("x", id="j", delay=SOON)
    wait_until(lambda: board.state("j") == "ready" and replica.board().state("j") == "ready")
    past(now() + 1_000)
    assert (overdue(primary), overdue(replica)) == (0, 0)
    replica.client().execute_command("REPLICAOF", "NO", "ONE")
    own = replica.board()
    own.post("x", id="own", delay=SOON)
    wait_until(lambda: own.state("own") == "ready" and overdue(replica) == 0)


def test_effects_are_refused_from_clients_of_a_replica(pair):
    primary, replica = pair
    lives.ready(primary.board())
    same(replica, primary)
    with refused_like("(ERR internal command|READONLY) ?.*", replica.board()):
        replica.client().execute_command("JOB.APPLY", "board", b"x")


def test_many_workers_and_a_replica_stay_in_step(pair):
    primary, replica = pair
    clients = [primary.board() for _ in range(8)]
    for turn in range(30):
        for n, board in enumerate(clients):
            board.mpost(["x"] * 5, queue=f"q{turn % 3}", priority=n)
            held = board.claim(f"w{n}", queues=[], count=4, lease=LONG if turn % 2 else 5)
            for job in held[:2]:
                try:
                    board.consume(f"w{n}", job["id"], token=job["token"])
                except redis.ResponseError as error:
                    assert str(error).startswith("NOTOWNER")
            for job in held[2:3]:
                try:
                    # None of them is due before the copies have been compared.
                    board.fail(f"w{n}", job["id"], "k", "m", token=job["token"], retry=LONG)
                except redis.ResponseError as error:
                    assert str(error).startswith("NOTOWNER")
    wait_until(
        lambda: all(job["deadline"] > now() + LONG // 2 for job in clients[0].list_all(state="claimed"))
    )
    same(replica, primary)
    check_consistent(replica.board())


def test_the_same_id_on_both_sides_of_a_split_is_settled_by_the_new_primary(pair):
    primary, replica = pair
    lives.ready(primary.board())
    replica.wait_synced(primary)
    promote(replica)
    old = lives.claim(primary.board(), "j", "w1")
    new = lives.claim(replica.board(), "j", "w2")
    primary.client().replicaof("127.0.0.1", replica.port)
    same(primary, replica)
    with refused("NOTOWNER w2", replica.board()):
        replica.board().consume("w1", "j", token=old)
    assert replica.board().consume("w2", "j", token=new) == "complete"
    assert ids(replica.board().claim("w1")) == []
