"""JOB.WORKER: registrations, what ends with them, quiet workers, and that all copies agree."""

from __future__ import annotations

import lives
import pytest
from expect import MS, ids, refused
from harness import wait_until
from lives import LONG
from waiters import Waiter


def test_a_worker_registers_and_is_listed(clocked_board, clock):
    board = clocked_board
    assert board.worker("REGISTER", "w1", role="mailer", meta={"host": "a", "pid": 1}, for_=1000) == {
        "expires": clock.now() + 1000,
        "quiet": 0,
    }
    assert board.worker("REGISTER", "w2") == {"expires": -1, "quiet": 0}
    lives.claimed(board)
    begin = clock.now()
    clock.advance(10)
    assert board.registered() == {
        "w1": {
            "role": "mailer",
            "meta": {"host": "a", "pid": "1"},
            "registered": begin,
            "expires": begin + 1000,
            "session": 0,
            "quiet": 0,
            "active": 10,
            "claimed": 1,
            "lapsed": 0,
        },
        "w2": {
            "registered": begin,
            "expires": -1,
            "session": 0,
            "quiet": 0,
            "active": 10,
            "claimed": 0,
            "lapsed": 0,
        },
    }
    assert list(board.workers()) == ["w1"]


def test_what_a_worker_holds_lapses_when_it_registers_anew(board):
    board.worker("REGISTER", "w1", for_=60_000)
    board.mpost(range(70), ids=[f"j{number}" for number in range(70)])
    held = {job["id"]: job["token"] for job in board.claim("w1", count=70)}
    board.post("", id="of another")
    board.claim("w2")
    assert board.worker("REGISTER", "w1", anew=True)["quiet"] == 0
    wait_until(lambda: board.registered()["w1"]["claimed"] == 0)
    again = board.claim("w1", count=70, fields=["id", "token", "attempt", "lapses"])
    assert len(again) == 70
    assert {(job["attempt"], job["lapses"]) for job in again} == {(2, 1)}
    assert all(job["token"] > max(held.values()) for job in again)
    assert board.worker("REGISTER", "w3", anew=True) == {"expires": -1, "quiet": 0}
    assert board.get("of another", fields=["worker"]) == {"worker": "w2"}


def test_a_list_is_paged_by_name_and_filtered_by_role(board):
    for number in range(25):
        board.worker("REGISTER", f"w{number:02}", role="odd" if number % 2 else "even")
    names, cursor = [], "0"
    while True:
        cursor, page = board.worker_page(cursor=cursor, count=7)
        names += page
        if cursor == "0":
            break
    assert names == [f"w{number:02}" for number in range(25)]
    assert list(board.registered(role="odd")) == [f"w{number:02}" for number in range(1, 25, 2)]
    cursor, page = board.worker_page(role="odd", count=12)
    assert (cursor, len(page)) == (">w23", 12)
    assert board.worker_page(role="odd", cursor=cursor) == ("0", {})
    assert board.registered(role="none") == {}


@pytest.mark.parametrize("absent", ["absent", "present"])
def test_reads_and_refusals(board, absent):
    if absent == "present":
        board.post(id="j")
    assert board.worker_page() == ("0", {})
    assert board.worker("DEREGISTER", "w1") == 0
    for verb in ["QUIET", "RESUME"]:
        with refused("NOWORKER no such worker is registered", board):
            board.worker(verb, "w1")
    assert bool(board.client.exists("board")) == (absent == "present")


def test_bad_arguments_are_named(board):
    cases = {
        ("REGISTER", "*"): "ERR worker must not be '*'",
        ("REGISTER", ""): "ERR worker must be 1 to 255 bytes long",
        ("REGISTER", "w", "FOR", 0): f"ERR FOR must be an integer from 1 to 1099511627776{MS}",
        ("REGISTER", "w", "FOR"): "ERR FOR needs a value",
        ("REGISTER", "w", "FOR", 1, "FOR", 2): "ERR FOR is given twice",
        ("REGISTER", "w", "FOR", 1, "SESSION"): "ERR FOR and SESSION exclude each other",
        ("REGISTER", "w", "SESSION", "SESSION"): "ERR SESSION is given twice",
        ("REGISTER", "w", "ROLE", ""): "ERR ROLE must be 1 to 255 bytes long",
        ("REGISTER", "w", "META", 1, "f"): "ERR META names 1 pairs but fewer follow",
        ("REGISTER", "w", "COLOUR", "x"): "ERR syntax error near 'COLOUR'",
        ("DEREGISTER", "*"): "ERR worker must not be '*'",
        ("QUIET", "*"): "ERR worker must not be '*'",
        ("RESUME", "*"): "ERR worker must not be '*'",
        ("LIST", "CURSOR", "x"): "ERR CURSOR must be 0 or the cursor that the last call returned",
        ("LIST", "COUNT", 0): "ERR COUNT must be an integer from 1 to 10000",
        ("LIST", "NAME", "x"): "ERR syntax error near 'NAME'",
    }
    for (verb, *words), error in cases.items():
        with refused(error, board):
            board.client.execute_command("JOB.WORKER", verb, "board", *words)


def test_a_registration_that_lapses_ends_its_workers_leases_and_wakes_who_waits(server):
    board = server.board()
    lives.claimed(board, lease=LONG)
    waiter = Waiter(server, "w2")
    board.worker("REGISTER", "w1", for_=50)
    assert waiter.job() == "j"
    assert board.events("j")[1:3] == ["claimed", "lapsed"]
    assert board.registered() == {}


def test_a_registration_is_exact_by_the_clock_and_is_refreshed_only_by_itself(clocked_board, clock):
    board = clocked_board
    board.worker("REGISTER", "w1", for_=1000)
    token = lives.claimed(board)
    clock.advance(600)
    board.heartbeat("w1", "j", token=token)
    assert board.info()["next"] == 400
    board.worker("REGISTER", "w1")
    clock.advance(999)
    assert board.state("j") == "claimed"
    clock.advance(1)
    assert board.state("j") == "ready"
    assert board.consume("w1", "j", token=token) == "complete"


def test_deregistering_gives_many_jobs_back_in_slices(server):
    board = server.board()
    board.worker("REGISTER", "w1")
    board.post_many(3000)
    for _ in range(3):
        board.claim("w1", count=1000, lease=LONG)
    assert board.registered()["w1"]["claimed"] == 3000
    assert board.worker("DEREGISTER", "w1") == 1
    # Its new claims stay.
    claimed = ids(board.claim("w1", count=10, lease=LONG))
    wait_until(lambda: board.info()["claimed"] == len(claimed))
    assert board.info()["ready"] == 3000 - len(claimed)
    assert board.worker("DEREGISTER", "w1") == 0


def test_leases_lost_are_counted(clocked_board, clock):
    board = clocked_board
    board.worker("REGISTER", "w1")
    lives.lapsed(board)
    lives.lapsed(board, "k")
    assert board.registered()["w1"]["lapsed"] == 2


def test_nothing_is_handed_to_a_quiet_worker(board):
    board.worker("REGISTER", "w1", for_=LONG)
    token = lives.claimed(board)
    board.post(id="k")
    assert board.worker("QUIET", "w1") == board.worker("QUIET", "w1") == "OK"
    assert board.claim("w1") == []
    with refused("NOTREADY quiet", board):
        board.claim("w1", id="k")
    assert ids(board.claim("w1", seen=0)) == ["j"]
    assert board.consume("w1", "j", token=token) == "complete"
    assert board.worker("REGISTER", "w1")["quiet"] == 1
    assert board.worker("RESUME", "w1") == "OK"
    assert ids(board.claim("w1")) == ["k"]


def test_blocked_claims_of_a_quiet_worker_wait_aside_and_come_back_to_their_places(server):
    board = server.board()
    board.worker("REGISTER", "w1")
    first, second = Waiter(server, "w1"), Waiter(server, "w2")
    third = Waiter(server, "w1", queues=[])
    board.worker("QUIET", "w1")
    board.post(id="a")
    assert second.job() == "a"
    board.post(id="b")
    assert first.still_waits() and third.still_waits()
    board.worker("RESUME", "w1")
    assert first.job() == "b"
    fourth = Waiter(server, "w2")
    board.post(id="c")
    assert third.job() == "c" and fourth.still_waits()


@pytest.mark.parametrize(
    "end", ["deregister", "lapse", "delete", "renew", "renewal", "transaction", "timeout"]
)
def test_a_waiter_of_a_quiet_worker_is_not_forgotten(server, end):
    board = server.board()
    board.worker("REGISTER", "w1", for_=LONG)
    board.worker("QUIET", "w1")
    waiter = Waiter(server, "w1", block=500 if end == "timeout" else 0)
    board.post(id="a")
    if end == "timeout":
        assert waiter.reply() is None
        return
    assert waiter.still_waits()
    if end == "lapse":
        board.worker("REGISTER", "w1", for_=50)
    if end == "deregister":
        board.worker("DEREGISTER", "w1")
    if end == "delete":
        board.client.delete("board")
        board.post(id="a")
    if end == "renew":
        # The new board begins without a job.
        board.client.delete("board")
        board.set(lease=LONG)
        board.post(id="a")
    if end == "renewal":
        with board.client.pipeline() as pipe:
            pipe.delete("board")
            pipe.execute_command("JOB.POST", "board", "later", "DELAY", LONG)
            pipe.execute()
        board.post(id="a")
    if end == "transaction":
        with board.client.pipeline() as pipe:
            pipe.execute_command("JOB.WORKER", "RESUME", "board", "w1")
            pipe.execute()
    assert waiter.job() == "a"


def test_registrations_outlive_restart_reload_and_copy(fresh_server):
    server = fresh_server(appendonly=True)
    board = server.board()
    board.worker("REGISTER", "w1", role="mailer", meta={"host": "a"}, for_=LONG)
    board.worker("REGISTER", "w2")
    board.worker("QUIET", "w2")
    lives.claimed(board)

    def state(board):
        rows = board.registered()
        return {name: {k: v for k, v in row.items() if k != "active"} for name, row in rows.items()}

    before, digest = state(board), board.digest()
    board.client.execute_command("DEBUG", "RELOAD")
    assert (state(board), board.digest()) == (before, digest)
    server.restart()
    board = server.board()
    assert (state(board), board.digest()) == (before, digest)
    board.client.copy("board", "copy")
    assert state(server.board("copy")) == before
    board.post(id="k")
    assert board.claim("w2") == []


def test_a_worker_that_came_from_a_file_was_active_when_it_registered(clocked):
    board, clock = clocked.board(), clocked.clock
    board.worker("REGISTER", "w1")
    clock.advance(10)
    clocked.client().execute_command("DEBUG", "RELOAD")
    clocked.spoil()
    assert board.registered()["w1"]["active"] == 10


def test_registrations_travel_to_a_replica(fresh_server):
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    board = primary.board()
    board.worker("REGISTER", "w2", role="mailer")
    board.worker("QUIET", "w2")
    board.post_many(500)
    board.claim("w1", count=250, lease=LONG)
    board.claim("w3", count=250, lease=LONG)
    board.worker("REGISTER", "w1", for_=50)
    wait_until(lambda: board.info()["claimed"] == 250)
    board.worker("REGISTER", "w3")
    board.worker("DEREGISTER", "w3")
    wait_until(lambda: board.info()["claimed"] == 0)
    replica.wait_synced(primary)
    copy = replica.board()
    assert copy.digest() == board.digest()
    assert list(copy.registered()) == ["w2"]
    replica.client().replicaof("NO", "ONE")
    assert copy.claim("w2", queues=[]) == []
    copy.worker("RESUME", "w2")
    assert len(copy.claim("w2", queues=[])) == 1


def test_jobs_of_a_worker_that_was_cut_off_go_to_others_before_its_own_waits(server, board):
    registrar = server.client()
    board.post(id_="j")
    registrar.execute_command("JOB.WORKER", "REGISTER", "board", "w", "SESSION")
    board.claim("w", lease=LONG)
    # The connection on which it waits came first, and may be dead: the server has not heard yet.
    own, other = Waiter(server, "w"), Waiter(server, "x")
    registrar.connection_pool.disconnect()
    assert ids(other.reply()) == ["j"]
    assert own.still_waits()
    board.post(id_="k")
    assert ids(own.reply()) == ["k"]


def test_the_wait_of_a_worker_that_was_cut_off_goes_on(server, board):
    registrar = server.client()
    board.post(id_="j")
    registrar.execute_command("JOB.WORKER", "REGISTER", "board", "w", "SESSION")
    board.claim("w", lease=LONG)
    own = Waiter(server, "w")
    registrar.connection_pool.disconnect()
    assert ids(own.reply()) == ["j"]
