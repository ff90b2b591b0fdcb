"""WHERE: operators' verbs on selections by filter, slice by slice; and RETURN of JOB.DELETE."""

from __future__ import annotations

import lives
import pytest
from expect import check_consistent, drain, ids, refused
from waiters import Waiter

STATES = ["scheduled", "ready", "claimed", "complete", "failed", "cancelled", "trashed"]
TAKES = {
    "cancel": ["scheduled", "ready", "claimed"],
    "release": ["claimed"],
    "requeue": ["failed", "cancelled", "trashed"],
    "delete": STATES,
    "update": ["scheduled", "ready", "claimed"],
}


def put_each(board):
    """A job in each state, named after it."""
    for state in STATES:
        lives.LIVES[state](board, state)


def change(verb):
    return {"set_": {"priority": 3}} if verb == "update" else {}


@pytest.mark.parametrize("verb", TAKES)
def test_a_verb_takes_the_jobs_of_its_states_and_passes_over_the_others(clocked_board, verb):
    put_each(clocked_board)
    before = clocked_board.digest()
    for state in STATES:
        dry = clocked_board.where(verb, state=state, dryrun=True, **change(verb))
        assert dry == (int(state in TAKES[verb]), "0", [])
    assert clocked_board.digest() == before
    done = clocked_board.where(verb, not_state="blocked", **change(verb))
    assert done == (len(TAKES[verb]), "0", [])
    check_consistent(clocked_board)


@pytest.mark.parametrize("verb", TAKES)
def test_an_absent_board_has_nothing_to_select(board, verb):
    assert board.where(verb, state="ready", **change(verb)) == (0, "0", [])
    assert not board.client.exists("board")


@pytest.mark.parametrize("verb", TAKES)
def test_a_selection_without_a_filter_is_refused(board, verb):
    lives.ready(board)
    with refused("ERR WHERE needs a filter", board):
        board.where(verb, count=5, **change(verb))


STATE_NAMES = "scheduled, blocked, ready, claimed, complete, failed, cancelled, trashed"


@pytest.mark.parametrize("verb", TAKES)
def test_bad_input_is_refused_and_named(board, verb):
    lives.ready(board)
    tail = ["SET", "PRIORITY", "1"] if verb == "update" else []
    for words, error in [
        (["STATE", "lost"], f"ERR unknown state 'lost': it must be one of {STATE_NAMES}"),
        (["STATE", "ready", "COUNT", "0"], "ERR COUNT must be an integer from 1 to 10000"),
        (["STATE", "ready", "COUNT", "10001"], "ERR COUNT must be an integer from 1 to 10000"),
        (["STATE", "ready", "CURSOR", "x"], "ERR CURSOR must be 0 or the cursor that the last call returned"),
        (
            ["STATE", "ready", "CURSOR", "2.0.0.0"],
            "ERR CURSOR must be 0 or the cursor that the last call returned",
        ),
        (["STATE", "ready", "CURSOR", "0", "CURSOR", "0"], "ERR CURSOR is given twice"),
        (["STATE", "ready", "DRYRUN", "DRYRUN"], "ERR DRYRUN is given twice"),
        (["STATE", "ready", "REV"], "ERR syntax error near 'REV'"),
        (["STATE", "ready", "NOT", "COUNT"], "ERR NOT must be followed by a filter, as in NOT STATE ready"),
    ]:
        with refused(error, board):
            board.call(verb, "WHERE", *words, *tail)
    with refused("ERR syntax error near 'COUNT'", board):
        board.call(verb, 1, "j", "COUNT", 1, *tail)


def test_queue_is_a_filter_and_to_the_destination(clocked_board):
    lives.failed(clocked_board, "a", queue="mail")
    lives.failed(clocked_board, "b")
    with refused("ERR syntax error near 'TO'", clocked_board):
        clocked_board.call("REQUEUE", 1, "a", "TO", "slow")
    assert clocked_board.where("requeue", queue="mail", to="slow") == (1, "0", [])
    assert clocked_board.get("a")["queue"] == "slow"
    assert (clocked_board.state("b"), clocked_board.kinds()) == ("failed", {"boom": 1})


def test_a_requeue_goes_by_the_end_oldest_first_over_all_three_states(clocked_board, clock):
    for n, life in enumerate(["failed", "trashed", "cancelled", "failed", "trashed"]):
        lives.LIVES[life](clocked_board, f"j{n}")
        clock.advance(1)
    done = clocked_board.where("requeue", not_state="complete", count=2)
    assert (done.count, sorted(drain(clocked_board))) == (2, ["j0", "j1"])
    done = clocked_board.where("requeue", not_state="complete", count=2, cursor=done.cursor)
    assert (done.count, sorted(drain(clocked_board))) == (2, ["j2", "j3"])
    done = clocked_board.where("requeue", not_state="complete", count=2, cursor=done.cursor)
    assert (done.count, done.cursor, drain(clocked_board)) == (1, "0", ["j4"])


@pytest.mark.parametrize("verb", TAKES)
def test_a_loop_takes_each_of_many_once(clocked_board, verb):
    clocked_board.post_many(3000, queue="mail")
    if verb == "release":
        clocked_board.claim("w1", count=3000, queues=["mail"], lease=lives.LONG)
    if verb == "requeue":
        assert clocked_board.where_all("cancel", queue="mail") == 3000
    keywords = {"set_": {"priority": -1, "log": "seen"}} if verb == "update" else {}
    assert clocked_board.where_all(verb, queue="mail", count=700, **keywords) == 3000
    again = {"cancel": 0, "delete": 0, "release": 0, "requeue": 0, "update": 3000}
    assert clocked_board.where_all(verb, queue="mail", **keywords) == again[verb]
    check_consistent(clocked_board)
    if verb == "update":
        [job] = clocked_board.list(queue="mail", count=1)[1]
        assert clocked_board.events(job["id"]).count("log") == 2


def test_a_loop_ends_although_workers_claim_and_fail_again_at_once(clocked_board, clock):
    for n in range(20):
        lives.failed(clocked_board, f"j{n}")
    done = clocked_board.where("requeue", state="failed", count=3)
    total = done.count
    while done.cursor != "0":
        clock.advance(1)
        for job in clocked_board.claim("w2", count=10):
            clocked_board.fail("w2", job["id"], token=job["token"], noretry=True)
        done = clocked_board.where("requeue", state="failed", count=3, cursor=done.cursor)
        total += done.count
    assert total == 20
    done = clocked_board.where("release", state="claimed", count=3)
    lives.ready(clocked_board, "fresh")
    clocked_board.claim("w1", count=3)
    while done.cursor != "0":
        done = clocked_board.where("release", state="claimed", count=3, cursor=done.cursor)
        clocked_board.claim("w1", count=3)
    check_consistent(clocked_board)


def test_a_cancel_asks_the_workers_and_with_force_takes(clocked_board):
    token = lives.claimed(clocked_board, "a")
    lives.ready(clocked_board, "b")
    assert clocked_board.where("cancel", queue="default") == (2, "0", [])
    assert clocked_board.heartbeat("w1", "a", token=token)["cancel"] == 1
    assert clocked_board.where("cancel", queue="default") == (0, "0", [])
    assert clocked_board.where("cancel", "FORCE", queue="default") == (1, "0", [])
    assert clocked_board.state("a") == clocked_board.state("b") == "cancelled"


def test_what_a_worker_holds_is_released(clocked_board):
    clocked_board.mpost(list("abcd"), ids=list("abcd"))
    clocked_board.claim("w1", count=3)
    clocked_board.claim("w2")
    assert clocked_board.where("release", worker="w1", count=2).count == 2
    assert clocked_board.where_all("release", worker="w1", count=2) == 1
    assert (clocked_board.state("d"), clocked_board.count(state="ready")) == ("claimed", 3)


def test_a_released_job_wakes_a_worker_that_waits(server):
    board = server.board()
    lives.claimed(board)
    waiter = Waiter(server, "w2")
    board.where("release", worker="w1")
    assert waiter.job() == "j"
    waiter.close()


@pytest.mark.parametrize("verb", ["cancel", "delete"])
def test_what_others_wait_for_goes_after_them_or_is_held_back(clocked_board, verb):
    clocked_board.post(id_="a")
    clocked_board.post(id_="b", after=["a"])
    clocked_board.post(id_="c", after=["b"], queue="other")
    for options in [{"dryrun": True}, {}]:
        done = clocked_board.where(verb, queue="default", **options)
        assert (done.count, sorted(done.unknown)) == (0, ["a", "b"])
    assert clocked_board.where_all(verb, state=["ready", "blocked"], count=1) == 3
    check_consistent(clocked_board)


def test_an_update_skips_claimed_jobs_for_a_due_time_and_full_queues(clocked_board):
    lives.claimed(clocked_board, "a")
    lives.claimed(clocked_board, "b")
    lives.ready(clocked_board, "c")
    assert clocked_board.where("update", queue="default", set_={"delay": 1000}) == (1, "0", [])
    assert clocked_board.state("c") == "scheduled"
    clocked_board.set(queue="few", concurrency=1)
    assert clocked_board.where("update", queue="default", set_={"queue": "few"}) == (2, "0", ["b"])


# RETURN


def test_deleted_records_are_handed_back_in_place(clocked_board):
    clocked_board.post("work", id_="a", meta={"file": "/tmp/a"})
    lives.failed(clocked_board, "b")
    records = {id: clocked_board.get(id) for id in "ab"}
    done = clocked_board.delete("b", "unknown", "a", return_=True)
    assert done == (2, "0", ["unknown"], [records["b"], None, records["a"]])
    assert clocked_board.get("a") is None
    assert clocked_board.delete("a", return_=True) == (0, "0", ["a"], [None])


def test_deleted_records_of_a_selection_are_handed_back(clocked_board):
    clocked_board.post_many(5, queue="mail")
    records = clocked_board.list(queue="mail")[1]
    done = clocked_board.where("delete", "RETURN", queue="mail", count=3)
    assert (done.count, done.records) == (3, records[:3])
    done = clocked_board.where("delete", "RETURN", "FIELDS", 1, "id", queue="mail", cursor=done.cursor)
    assert (done.count, done.cursor, ids(done.records)) == (2, "0", ids(records[3:]))
    assert clocked_board.info()["jobs"] == 0


def test_a_dry_run_hands_records_back_and_keeps_them(clocked_board):
    lives.ready(clocked_board)
    done = clocked_board.where("delete", "RETURN", "DRYRUN", state="ready")
    assert (done.count, ids(done.records), clocked_board.state("j")) == (1, ["j"], "ready")


def test_records_of_many_bytes_come_in_several_slices(board):
    board.post_many(20, payload=b"x" * (1 << 20))
    done = board.where("delete", "RETURN", "FIELDS", 1, "payload", state="ready")
    assert (done.count, len(done.records)) == (16, 16)
    done = board.where("delete", "RETURN", state="ready", cursor=done.cursor)
    assert (done.count, done.cursor) == (4, "0")


def test_named_records_of_too_many_bytes_are_not_handed_back(board):
    made = board.post_many(18, payload=b"x" * (1 << 20))
    with refused("LIMIT return", board):
        board.delete(*made, return_=True)
    assert board.delete(*made).count == 18


def test_fields_need_return(board):
    lives.ready(board)
    with refused("ERR FIELDS needs RETURN", board):
        board.delete("j", fields=["id"])


@pytest.mark.parametrize("first", ["a", "b"])
def test_a_record_that_was_kept_for_a_deleted_one_goes_with_it(clocked_board, first):
    """Whichever of the two stands before the other on the board."""
    clocked_board.set(retain_failed=0)
    clocked_board.post(id_=first)
    clocked_board.post(id_="a" if first == "b" else "b")
    clocked_board.depend("ADD", "b", ["a"])
    token = clocked_board.claim_one(id_="a")["token"]
    clocked_board.fail("w1", "a", token=token, noretry=True)
    assert clocked_board.state("a") == "failed"
    assert clocked_board.delete("a", "b", return_=True).count == 2
    assert clocked_board.info()["jobs"] == 0
    assert clocked_board.post(id_="a") == "a"


# Copies


@pytest.mark.parametrize("verb", TAKES)
def test_a_replica_follows_each_slice(fresh_server, verb):
    primary = fresh_server("clock", "manual")
    replica = fresh_server("clock", "manual", replicaof=primary)
    board = primary.board()
    board.post_many(60, queue="mail")
    board.claim("w1", count=20, queues=["mail"])
    board.where("cancel", queue="mail", count=30)
    board.post(id_="last", after=["first", board.list(queue="mail", state="ready")[1][0]["id"]])
    assert board.where_all(verb, not_state="complete", count=7, **change(verb)) > 10
    replica.wait_synced(primary)
    assert replica.board().digest() == board.digest() is not None
    check_consistent(replica.board())


def test_an_update_of_many_tells_what_it_writes_once(fresh_server):
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    board = primary.board()
    board.post_many(500)
    replica.wait_synced(primary)
    before = primary.info("replication")["master_repl_offset"]
    assert board.where("update", state="ready", set_={"payload": "x" * 100_000}).count == 168
    assert board.where_all("update", state="ready", set_={"payload": "x" * 1000}) == 500
    assert 100_000 < primary.info("replication")["master_repl_offset"] - before < 200_000
    replica.wait_synced(primary)
    assert replica.board().digest() == board.digest()


def test_a_reload_keeps_the_place_of_a_loop(fresh_server):
    server = fresh_server("clock", "manual")
    board = server.board()
    board.post_many(100)
    done = board.where("update", state="ready", count=30, set_={"priority": -3})
    board.client.execute_command("DEBUG", "RELOAD")
    total = done.count
    while done.cursor != "0":
        done = board.where("update", state="ready", count=30, cursor=done.cursor, set_={"priority": -3})
        total += done.count
    assert total == 100
    check_consistent(board)


def test_a_record_that_is_named_often_counts_as_often(board):
    board.post(b"x" * (1 << 20), id_="j")
    with refused("LIMIT return", board):
        board.call("DELETE", 18, *["j"] * 18, "RETURN")
    assert board.delete("j", "j", return_=True).count == 1
