"""SESSION claims: they end with the connection that carries them, whatever their lease."""

from __future__ import annotations

import time

import lives
import pytest
import redis
from expect import ids, refused
from harness import Board, Server, wait_until
from lives import LONG
from waiters import Waiter


def connect(server: Server, **keywords: object) -> Board:
    """A board over one connection of its own."""
    return Board(
        redis.Redis(port=server.port, single_connection_client=True, decode_responses=True, **keywords)
    )


def close(board: Board) -> None:
    board.client.connection.disconnect()


def test_a_session_claim_ends_with_its_connection_and_wakes_who_waits(server):
    board, worker = server.board(), connect(server)
    board.post(id="j")
    assert ids(worker.claim("w1", session=True, lease=LONG)) == ["j"]
    assert board.get("j")["session"] == 1
    waiter = Waiter(server, "w2")
    close(worker)
    assert waiter.job() == "j"
    assert board.events("j")[1:3] == ["claimed", "lapsed"]
    assert "session" not in board.get("j")


def test_other_claims_of_the_same_connection_and_sessions_of_others_stay(server):
    board, one, two = server.board(), connect(server), connect(server)
    board.mpost(["x"] * 3, ids=["a", "b", "c"])
    one.claim("w1", id="a", session=True, lease=LONG)
    one.claim("w1", id="b", lease=LONG)
    two.claim("w1", id="c", session=True, lease=LONG)
    close(one)
    wait_until(lambda: board.state("a") == "ready")
    assert board.state("b") == board.state("c") == "claimed"
    close(two)
    wait_until(lambda: board.state("c") == "ready")
    assert board.state("b") == "claimed"


@pytest.mark.parametrize("how", ["kill", "quit", "reset"])
def test_every_end_of_a_connection_counts_and_a_reset_does_not(server, how):
    board, worker = server.board(), connect(server)
    board.post(id="j")
    worker.claim("w1", session=True, lease=LONG)
    if how == "kill":
        board.client.client_kill_filter(_id=worker.client.client_id())
    elif how == "quit":
        worker.client.execute_command("QUIT")
    else:
        worker.client.execute_command("RESET")
        assert board.state("j") == "claimed"
        close(worker)
    wait_until(lambda: board.state("j") == "ready")


def test_ends_of_a_claim_leave_nothing_behind(server):
    board, worker = server.board(), connect(server)
    board.post_many(5)
    jobs = worker.claim("w1", session=True, count=5, lease=LONG)
    a, b, c, d, e = [(job["id"], job["token"]) for job in jobs]
    worker.consume("w1", a[0], token=a[1])
    worker.fail("w1", b[0], token=b[1], retry=LONG)
    worker.abandon("w1", c[0], token=c[1])
    board.claim("w2", id=c[0], lease=LONG)
    board.cancel(d[0])
    close(worker)
    wait_until(lambda: board.state(d[0]) == "cancelled")
    wait_until(lambda: board.state(e[0]) == "ready")
    assert board.state(b[0]) == "scheduled" and board.get(c[0])["worker"] == "w2"


def test_a_connection_that_lives_long_does_not_remember_every_board(fresh_server):
    server = fresh_server()
    client = server.client(single_connection_client=True)
    kept = [Board(client, f"kept {n}") for n in range(3)]
    before = server.info("memory")["used_memory"]
    for n in range(1_000):
        board = Board(client, f"{n} " + "x" * 10_000)
        board.post("x")
        board.claim("w1", session=True, lease=LONG)
        client.delete(board.key)
        if n % 400 == 0:
            one = kept[n // 400]
            one.post("x")
            one.claim("w1", session=True, lease=LONG)
    assert server.info("memory")["used_memory"] < before + 5_000_000
    client.close()
    for one in kept:
        there = server.board(one.key)
        wait_until(lambda there=there: there.info()["ready"] == 1, what="its claim has lapsed")


def test_a_worker_comes_back_within_the_grace_by_seen_or_heartbeat(server):
    board = server.board()
    board.set(session_grace=LONG)
    for back in ["seen", "heartbeat"]:
        worker, again = connect(server), connect(server)
        board.post(id=back)
        [job] = worker.claim("w1", session=True, lease=LONG)
        close(worker)
        time.sleep(0.05)
        assert board.state(back) == "claimed"
        if back == "seen":
            assert ids(again.claim("w1", seen=job["token"] - 1)) == [back]
        else:
            again.heartbeat("w1", back, token=job["token"])
        board.set(session_grace=0)
        assert board.state(back) == "claimed"
        close(again)
        wait_until(lambda: board.state(back) == "ready")  # noqa: B023
        board.set(session_grace=LONG)
        board.delete(back)


def test_the_grace_ends_by_the_clock(clocked, clock):
    board, worker = clocked.board(), connect(clocked)
    board.set(session_grace=500, grace=LONG)
    board.post(id="j")
    worker.claim("w1", session=True, lease=LONG)
    close(worker)
    wait_until(lambda: board.info()["next"] == 500)
    clock.advance(499)
    assert board.state("j") == "claimed"
    clock.advance(1)
    assert board.state("j") == "ready"


def test_a_heartbeat_from_another_connection_carries_the_claim(server):
    board, worker, beater = server.board(), connect(server), connect(server)
    board.post(id="j")
    [job] = worker.claim("w1", session=True, lease=LONG)
    beater.heartbeat("w1", "j", token=job["token"])
    close(worker)
    time.sleep(0.05)
    assert board.state("j") == "claimed"
    close(beater)
    wait_until(lambda: board.state("j") == "ready")


def test_a_blocked_claim_with_session(server):
    board = server.board()
    waiter = Waiter(server, "w1", session=True, lease=LONG)
    board.post(id="j")
    assert waiter.job() == "j"
    assert board.get("j")["session"] == 1
    waiter.close()
    wait_until(lambda: board.state("j") == "ready")
    board.delete("j")
    gone = Waiter(server, "w1", session=True)
    gone.close()
    board.post(id="k")
    wait_until(lambda: board.state("k") == "ready")


def test_a_session_in_a_transaction_is_that_of_its_client(server):
    board, worker = server.board(), connect(server)
    board.post(id="j")
    for end in ["DISCARD", "EXEC"]:
        worker.client.execute_command("MULTI")
        worker.client.execute_command("JOB.CLAIM", "board", "w1", "SESSION", "LEASE", LONG)
        worker.client.execute_command(end)
        assert board.state("j") == ("claimed" if end == "EXEC" else "ready")
    close(worker)
    wait_until(lambda: board.state("j") == "ready")


def test_a_script_has_no_session(board):
    board.post(id="j")
    script = "return redis.call('JOB.CLAIM', KEYS[1], 'w1', 'SESSION')"
    with pytest.raises(redis.ResponseError, match="SESSION needs a connection of its own"):
        board.client.eval(script, 1, "board")
    assert board.state("j") == "ready"
    with refused("ERR SESSION is given twice", board):
        board.call("CLAIM", "w1", "SESSION", "SESSION")


@pytest.mark.parametrize("mode", ["WRITE", "ALL"])
def test_a_connection_that_closes_during_a_pause_counts_after_it(fresh_server, mode):
    server = fresh_server(appendonly=True)
    board, worker = server.board(), connect(server)
    board.post(id="j")
    worker.claim("w1", session=True, lease=LONG)
    board.client.execute_command("CLIENT", "PAUSE", 400, mode)
    close(worker)
    wait_until(lambda: board.state("j") == "ready")


@pytest.mark.parametrize("move", ["rename", "swapdb", "move"])
def test_a_session_goes_with_the_board_to_another_place(server, move):
    board, worker = server.board(), connect(server)
    board.post(id="j")
    worker.claim("w1", session=True, lease=LONG)
    if move == "rename":
        board.client.rename("board", "other")
        there = server.board("other")
    elif move == "move":
        board.client.move("board", 1)
        there = Board(server.client(db=1))
    else:
        board.client.swapdb(0, 1)
        there = Board(server.client(db=1))
    assert there.state("j") == "claimed"
    close(worker)
    wait_until(lambda: there.state("j") == "ready")


def test_many_claims_of_one_connection_end_in_slices(server):
    board, worker = server.board(), connect(server)
    board.post_many(20_000)
    for _ in range(20):
        worker.claim("w1", session=True, count=1000, lease=LONG)
    close(worker)
    wait_until(lambda: board.info()["claimed"] == 0)
    assert board.info()["ready"] == 20_000


def test_after_a_restart_such_claims_live_by_their_lease_until_their_worker_speaks(fresh_server):
    server = fresh_server(appendonly=True)
    board, worker = server.board(), connect(server)
    board.post(id="j")
    [job] = worker.claim("w1", session=True, lease=LONG)
    digest = board.digest()
    server.restart()
    board, worker = server.board(), connect(server)
    assert (board.digest(), board.state("j"), board.get("j")["session"]) == (digest, "claimed", 1)
    worker.heartbeat("w1", "j", token=job["token"])
    close(worker)
    wait_until(lambda: board.state("j") == "ready")


def test_sessions_travel_to_a_replica(fresh_server):
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    board, worker, stays = primary.board(), connect(primary), connect(primary)
    board.post_many(300)
    worker.claim("w1", session=True, count=200, lease=LONG)
    stays.claim("w2", session=True, count=100, lease=LONG)
    close(worker)
    wait_until(lambda: board.info()["claimed"] == 100)
    replica.wait_synced(primary)
    copy = replica.board()
    assert copy.digest() == board.digest()
    replica.client().replicaof("NO", "ONE")
    close(stays)
    time.sleep(0.05)
    assert copy.info()["claimed"] == 100
    lives.claimed(copy, "k")


def test_a_registration_ends_with_its_connection_and_the_leases_of_its_worker_with_it(server):
    board, worker = server.board(), connect(server)
    assert worker.worker("REGISTER", "w1", session=True) == {"expires": -1, "quiet": 0}
    assert board.registered()["w1"]["session"] == 1
    # Its claims need not be sessions, nor be made over this connection.
    lives.claimed(board, lease=LONG)
    waiter = Waiter(server, "w2")
    close(worker)
    assert waiter.job() == "j"
    assert board.events("j")[1:3] == ["claimed", "lapsed"]
    assert board.registered() == {}


def test_a_registration_goes_to_the_connection_that_registers_again(server):
    board, one, two = server.board(), connect(server), connect(server)
    one.worker("REGISTER", "w1", session=True)
    two.worker("REGISTER", "w1", role="mailer")
    close(one)
    time.sleep(0.05)
    assert board.registered()["w1"]["session"] == 1
    two.worker("REGISTER", "w1", for_=LONG)
    close(two)
    time.sleep(0.05)
    assert board.registered()["w1"]["session"] == 0


def test_the_grace_of_a_registration_ends_by_the_clock(clocked, clock):
    board, worker = clocked.board(), connect(clocked)
    board.set(session_grace=500)
    worker.worker("REGISTER", "w1", session=True)
    lives.claimed(board, lease=LONG)
    close(worker)
    wait_until(lambda: board.info()["next"] == 500)
    clock.advance(499)
    assert board.state("j") == "claimed"
    clock.advance(1)
    assert (board.state("j"), board.registered()) == ("ready", {})


def test_a_script_registers_no_session(board):
    script = "return redis.call('JOB.WORKER', 'REGISTER', KEYS[1], 'w1', 'SESSION')"
    with pytest.raises(redis.ResponseError, match="SESSION needs a connection of its own"):
        board.client.eval(script, 1, "board")
    assert board.client.exists("board") == 0


def test_a_registration_goes_with_the_board_to_another_name(server):
    board, worker = server.board(), connect(server)
    worker.worker("REGISTER", "w1", session=True)
    board.client.rename("board", "other")
    there = server.board("other")
    close(worker)
    wait_until(lambda: there.registered() == {})


@pytest.mark.parametrize("comes", [True, False])
def test_after_a_restart_a_registration_waits_for_its_worker(fresh_server, comes):
    server = fresh_server("clock", "manual", "recovery-grace", 1000, appendonly=True)
    worker = connect(server)
    worker.worker("REGISTER", "w1", session=True)
    lives.claimed(server.board(), lease=LONG)
    server.restart()
    board, worker = server.board(), connect(server)
    assert list(board.registered()) == ["w1"]
    server.clock.advance(999)
    if comes:
        worker.worker("REGISTER", "w1", session=True)
        server.clock.advance(1000)
    assert board.state("j") == "claimed"
    if comes:
        close(worker)
    else:
        server.clock.advance(1)
    wait_until(lambda: board.state("j") == "ready")
    assert board.registered() == {}


def test_registrations_of_sessions_travel_to_a_replica(fresh_server):
    primary = fresh_server("recovery-grace", 300)
    replica = fresh_server("recovery-grace", 300, replicaof=primary)
    board, worker, stays = primary.board(), connect(primary), connect(primary)
    worker.worker("REGISTER", "w1", session=True)
    stays.worker("REGISTER", "w2", session=True)
    close(worker)
    wait_until(lambda: list(board.registered()) == ["w2"])
    replica.wait_synced(primary)
    copy = replica.board()
    assert (list(copy.registered()), copy.digest()) == (["w2"], board.digest())
    # Nothing waits there: the connection is the primary's.
    assert copy.info()["overdue"] == 0
    replica.client().replicaof("NO", "ONE")
    wait_until(lambda: copy.registered() == {})
