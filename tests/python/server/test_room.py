"""JOB.POST and JOB.MPOST with BLOCK: who waits for room, what wakes them, in which order; how a wait ends."""

from __future__ import annotations

import pytest
from expect import refused, refused_like
from harness import Board, Server, wait_until
from harness.board import from_pairs
from lives import LONG
from waiters import Parked, Poster, Waiter, blocked_clients, error_of


def full(server: Server, **limits: int) -> Board:
    """A board that has one job, "old", and room for no more."""
    board = server.board()
    board.set(**(limits or {"max_jobs": 1}))
    board.post(id="old")
    return board


def section(server: Server) -> dict:
    return from_pairs(server.info("jobboard"))


def waiting(server: Server) -> int:
    return section(server)["jobboard_blocked_posts"]


# What wakes a post


def end(board: Board, how: str) -> None:
    if how in ("consume", "fail", "trash", "dead"):
        board.claim_one("w1")
    match how:
        case "consume":
            board.consume("w1", "old")
        case "fail":
            board.fail("w1", "old", noretry=True)
        case "dead":
            board.fail("w1", "old", noretry=True)
        case "trash":
            board.trash("w1", "old")
        case "cancel":
            board.cancel("old")
        case "delete":
            board.delete("old")
        case "update":
            board.update("old", queue="other")
        case "raise":
            board.set(queue="default", max_jobs=2)
        case "reset":
            board.reset("max-jobs", queue="default")
        case "del":
            board.client.delete("board")
        case "flushall":
            board.client.flushall()
        case "rename":
            board.client.rename("board", "elsewhere")


ENDS = [
    "consume", "fail", "dead", "trash", "cancel", "delete", "update", "raise", "reset", "del", "flushall",
    "rename",
]  # fmt: skip


@pytest.mark.parametrize("how", ENDS)
def test_a_post_waits_until_there_is_room(server, how):
    board = server.board()
    board.set(queue="default", max_jobs=1)
    if how == "dead":
        board.set(queue="default", dead_queue="unsent")
    board.post(id="old")
    poster = Poster(server, "hello", id="new")
    assert poster.still_waits()
    assert board.state("new") is None
    end(board, how)
    assert poster.answer() == "new"
    assert (board.get("new")["payload"], board.state("new")) == ("hello", "ready")


def test_a_post_that_finds_room_does_not_wait(board):
    board.set(max_jobs=1)
    assert board.post(id="j", block=0) == "j"


def test_a_post_to_a_board_without_limits_does_not_wait(board):
    assert board.post(id="j", block=0) == "j"


def test_a_post_is_woken_when_a_job_expires(clocked, clock):
    board = clocked.board()
    board.set(max_jobs=1)
    board.post(expire=500)
    poster = Poster(clocked, id="new")
    clock.advance(499)
    assert poster.still_waits()
    clock.advance(1)
    assert poster.answer() == "new"


def test_a_post_is_woken_when_a_record_is_dropped(clocked, clock):
    board = clocked.board()
    board.post("x" * 1000, id="old", retain=500)
    board.set(max_bytes=board.info()["record-bytes"] + 500)
    board.claim_one("w1")
    board.consume("w1", "old")
    poster = Poster(clocked, "x" * 900, id="new")
    clock.advance(500)
    assert poster.answer() == "new"


def test_a_post_is_woken_when_a_payload_shrinks(server):
    board = server.board()
    board.post("x" * 1000, id="old")
    board.set(max_bytes=board.info()["record-bytes"] + 500)
    poster = Poster(server, "x" * 900, id="new")
    board.update("old", payload="x")
    assert poster.answer() == "new"


def test_the_end_of_a_transaction_makes_room(server):
    board = full(server)
    poster = Poster(server, id="new")
    pipe = board.client.pipeline(transaction=True)
    pipe.execute_command("JOB.DELETE", "board", 1, "old")
    pipe.execute_command("JOB.COUNT", "board")
    assert pipe.execute()[1] == 0
    assert poster.answer() == "new"


@pytest.mark.parametrize("command", ["restore", "rename", "swapdb"])
def test_a_post_is_decided_anew_on_a_board_that_comes(server, command):
    full(server)
    poster = Poster(server, id="new")
    raw = server.raw_client()
    empty = server.board("board", db=4) if command == "swapdb" else server.board("source")
    empty.set(lease=5000)
    match command:
        case "restore":
            raw.restore("board", 0, raw.dump("source"), replace=True)
        case "rename":
            raw.rename("source", "board")
        case "swapdb":
            raw.swapdb(0, 4)
    assert poster.answer() == "new"
    board = server.board()
    assert (board.settings("lease")["lease"][0], board.state("new")) == (5000, "ready")


def test_a_worker_that_waits_gets_the_job_of_a_post_that_waited(server):
    board = full(server)
    token = board.claim_one("w1")["token"]
    poster = Poster(server, id="new")
    sent = ("JOB.CONSUME", "board", "w1", "old", "TOKEN", token, "CLAIM", "BLOCK", 0, "FIELDS", 1, "id")
    worker = Parked(server, sent, await_block=False)
    assert poster.answer() == "new"
    end, [job] = worker.answer()
    assert (end, from_pairs(job)["id"]) == ("complete", "new")


def test_other_waiting_workers_get_it_as_well(server):
    board = full(server)
    poster, worker = Poster(server, id="new", queue="q"), Waiter(server, queues=["q"])
    board.delete("old")
    assert (poster.answer(), worker.job()) == ("new", "new")


# The order


def test_ten_producers_are_served_in_the_order_in_which_they_came(server):
    board = server.board()
    board.set(max_jobs=100)
    board.post_many(100)
    posters = [Poster(server, id=f"p{n}") for n in range(10)]
    assert waiting(server) == 10
    for n, poster in enumerate(posters):
        board.consume("w1", board.claim_one("w1")["id"])
        assert poster.answer() == f"p{n}"
        assert not any(later.answered() for later in posters[n + 1 :])
    assert waiting(server) == 0
    posted = [job["id"] for job in board.list_all(state="ready")]
    assert posted[-10:] == [f"p{n}" for n in range(10)]


def test_one_command_makes_room_for_several_in_their_order(server):
    board = server.board()
    board.set(max_jobs=3)
    board.mpost("abc")
    posters = [Poster(server, id=f"p{n}") for n in range(5)]
    board.claim("w1", count=3)
    board.mconsume("w1", "ALL")
    assert [poster.answer() for poster in posters[:3]] == ["p0", "p1", "p2"]
    assert all(poster.still_waits() for poster in posters[3:])


def test_more_than_one_turn_serves_is_served_all_the_same(server):
    board = full(server)
    posters = [Poster(server, id=f"p{n}", await_block=False) for n in range(150)]
    wait_until(lambda: waiting(server) == 150)
    board.reset("max-jobs")
    assert [poster.answer() for poster in posters] == [f"p{n}" for n in range(150)]
    assert board.info()["ready"] == 151


def test_a_new_post_with_block_stands_behind_those_that_wait(server):
    board = server.board()
    board.set(max_bytes=1000)
    board.post("x" * 500, id="old")
    large, small = Poster(server, "x" * 600, id="large"), Poster(server, "x", id="small")
    assert large.still_waits() and small.still_waits()
    # One that does not wait does not stand in line.
    board.post("x", id="other")
    board.delete("old")
    assert (large.answer(), small.answer()) == ("large", "small")


def test_the_end_of_a_wait_lets_those_behind_it_in(server):
    board = server.board()
    board.set(max_bytes=1000)
    board.post("x" * 500)
    large = Poster(server, "x" * 600, id="large")
    small = [Poster(server, "x", id=f"s{n}") for n in range(3)]
    server.client().execute_command("CLIENT", "UNBLOCK", large.id)
    assert error_of(large) == "LIMIT max-bytes"
    assert [poster.answer() for poster in small] == ["s0", "s1", "s2"]


@pytest.mark.parametrize("how", ["kill", "close"])
def test_the_next_is_served_when_a_producer_dies(server, how):
    board = full(server)
    first, second = Poster(server, id="first"), Poster(server, id="second")
    if how == "kill":
        server.client().execute_command("CLIENT", "KILL", "ID", first.id)
    else:
        first.close()
        wait_until(lambda: waiting(server) == 1)
    board.delete("old")
    assert second.answer() == "second"
    assert board.state("first") is None
    assert section(server)["jobboard_blocked_post_bytes"] == 0


def test_a_full_queue_keeps_back_no_post_to_another(server):
    board = server.board()
    board.set(queue="full", max_jobs=1)
    board.set(max_jobs=10)
    board.post(id="old", queue="full")
    poster = Poster(server, id="new", queue="full")
    assert board.post(id="other", queue="free", block=0) == "other"
    assert poster.still_waits()
    board.delete("other")
    assert poster.still_waits()
    board.delete("old")
    assert poster.answer() == "new"


def test_a_full_group_keeps_back_no_post_to_another(server):
    board = server.board()
    board.set(queue="q", group="*", max_jobs=1)
    board.set(queue="q", max_jobs=3)
    board.post(id="old", queue="q", group="a")
    first = Poster(server, id="first", queue="q", group="a")
    assert board.post(id="other", queue="q", group="b", block=0) == "other"
    second = Poster(server, id="second", queue="q", group="b")
    board.delete("other")
    assert second.answer() == "second"
    assert first.still_waits()
    board.set(queue="q", group="a", max_jobs=2)
    assert first.answer() == "first"


def test_what_lacks_room_on_the_board_keeps_its_place_before_later_posts(server):
    board = server.board()
    board.set(max_jobs=2)
    board.set(queue="a", max_jobs=1)
    board.post(id="a1", queue="a")
    board.post(id="b1", queue="b")
    a, b = Poster(server, id="a2", queue="a"), Poster(server, id="b2", queue="b")
    # There is room on the board, none in the queue of the first.
    board.delete("b1")
    assert b.answer() == "b2"
    assert a.still_waits()
    board.delete("a1")
    assert a.answer() == "a2"


# What is decided when it is posted


def test_an_id_that_was_taken_meanwhile_refuses_the_post(server):
    board = full(server)
    first, second = Poster(server, id="same"), Poster(server, id="same")
    third = Poster(server, id="same", nx=True)
    board.set(max_jobs=5)
    assert first.answer() == "same"
    assert error_of(second) == "EXISTS same"
    assert third.answer() is None


def test_a_key_that_is_held_by_then_answers_its_holder(server):
    board = full(server)
    first = Poster(server, id="first", unique="key")
    second = Poster(server, id="second", unique="key", onconflict="return")
    board.set(max_jobs=5)
    assert (first.answer(), second.answer()) == ("first", "first")


def test_a_parent_that_has_ended_refuses_the_post(server):
    board = full(server)
    poster = Poster(server, id="child", parent="old")
    board.claim_one("w1")
    board.consume("w1", "old", retain=LONG)
    assert error_of(poster) == "ENDED complete old"


def test_a_delay_counts_from_the_post(clocked, clock):
    board = clocked.board()
    board.set(max_jobs=1)
    board.post(id="old")
    poster = Poster(clocked, id="new", delay=1000)
    clock.advance(5000)
    board.delete("old")
    assert poster.answer() == "new"
    assert board.get("new")["due"] == clock.now() + 1000


def test_a_post_that_waited_takes_its_costs(clocked, clock):
    board = clocked.board()
    board.set(limit="tokens", rate=100, rate_period=1000, burst=100)
    board.set(queue="default", limits=["tokens"], max_jobs=1)
    board.post(id="old", costs=(1, "tokens", 60))
    poster = Poster(clocked, id="new", costs=(1, "tokens", 60))
    board.claim_one("w1")
    board.consume("w1", "old")
    assert poster.answer() == "new"
    assert board.get("new")["costs"] == {"tokens": 60}
    # 40 permits are left.
    clock.advance(199)
    assert board.claim("w1") == []
    clock.advance(1)
    assert board.claim_one("w1")["id"] == "new"


def test_costs_are_checked_anew_when_there_is_room(server):
    board = server.board()
    board.set(limit="tokens", rate=100, burst=100)
    board.set(queue="default", limits=["tokens"], max_jobs=1)
    board.post(id="old")
    poster = Poster(server, id="new", costs=(1, "tokens", 60))
    board.set(queue="default", limits=[])
    board.call("SETTINGS RESET", "LIMIT", "tokens", "rate", "burst")
    board.delete("old")
    assert error_of(poster).startswith("ERR COSTS names 'tokens', and there is no such limit")
    assert (board.state("new"), waiting(server)) == (None, 0)


def test_the_error_of_something_else_is_answered_at_once(server):
    board = full(server)
    with refused("EXISTS old"):
        board.post(id="old", block=0)
    poster = Poster(server, id="new")
    with refused("EXISTS old"):
        board.post(id="old", block=0)
    with refused("NOJOB no such job nobody"):
        board.post(id="j", parent="nobody", block=0)
    assert board.post(id="old", nx=True, block=0) is None
    assert poster.still_waits()


def test_a_replacement_needs_no_room(server):
    board = full(server)
    poster = Poster(server, id="new")
    assert board.post("other", id="old", replace=True, block=0) == "old"
    assert poster.still_waits()


# How a wait ends without a post


@pytest.mark.parametrize("protocol", [2, 3])
def test_the_end_of_the_time_answers_what_a_post_without_block_answers(server, protocol):
    board = full(server)
    poster = Poster(server, id="new", block=50, protocol=protocol, await_block=False)
    assert error_of(poster) == "LIMIT max-jobs"
    with refused("LIMIT max-jobs"):
        board.post()
    board.delete("old")
    assert board.state("new") is None
    assert poster._ask("PING") in ("PONG", True)


@pytest.mark.parametrize("reason", [[], ["TIMEOUT"]])
def test_client_unblock_ends_the_wait_with_the_error(server, reason):
    full(server)
    poster = Poster(server, id="new")
    assert server.client().execute_command("CLIENT", "UNBLOCK", poster.id, *reason) == 1
    assert error_of(poster) == "LIMIT max-jobs"
    assert waiting(server) == 0


def test_client_unblock_with_error_ends_the_wait_with_an_error(server):
    board = full(server)
    poster = Poster(server, id="new")
    server.client().execute_command("CLIENT", "UNBLOCK", poster.id, "ERROR")
    assert error_of(poster).startswith("UNBLOCKED")
    board.delete("old")
    assert board.state("new") is None


@pytest.mark.parametrize(
    "limits, words",
    [
        ({"max_jobs": 0}, ["x"]),
        ({"max_bytes": 100}, ["x" * 100]),
        ({"max_bytes": 100, "queue": "default"}, ["x" * 100]),
        ({"max_jobs": 0, "queue": "default", "group": "*"}, ["x", "GROUP", "g"]),
    ],
)
def test_a_post_that_can_never_fit_is_refused_at_once(board, limits, words):
    board.set(**limits)
    with refused_like("LIMIT max-(jobs|bytes)"):
        board.call("POST", *words, "BLOCK", 0)


def test_a_post_that_can_no_longer_fit_is_refused_then(server):
    board = full(server)
    poster = Poster(server, id="new")
    board.set(max_jobs=0)
    assert error_of(poster) == "LIMIT max-jobs"


def test_nothing_waits_in_a_transaction_or_a_script(server):
    board = full(server)
    pipe = board.client.pipeline(transaction=True)
    pipe.execute_command("JOB.POST", "board", "x", "BLOCK", 0)
    [error] = pipe.execute(raise_on_error=False)
    assert str(error).endswith("max-jobs")
    with refused_like(".*LIMIT max-jobs.*"):
        board.client.eval("return redis.call('JOB.POST', KEYS[1], 'x', 'BLOCK', 0)", 1, "board")


def test_another_type_under_the_key_ends_the_wait(server):
    board = full(server)
    poster = Poster(server, id="new")
    board.client.set("board", "text")
    assert error_of(poster).startswith("WRONGTYPE")
    assert board.client.get("board") == "text"


def test_a_right_that_was_taken_away_ends_the_wait(server):
    board = full(server)
    control = server.client()
    control.execute_command("ACL", "SETUSER", "ann", "reset", "on", ">secret", "~*", "&*", "+@all")
    login = {"username": "ann", "password": "secret"}
    first, second = Poster(server, id="first", login=login), Poster(server, id="second")
    control.execute_command("ACL", "SETUSER", "ann", "-job.post")
    board.delete("old")
    assert second.answer() == "second"
    with refused_like("NOPERM .*while the client waited"):
        raise AssertionError(first.answer())
    assert board.state("first") is None
    control.execute_command("ACL", "DELUSER", "ann")


# Several jobs


def test_several_jobs_wait_for_room_for_all(server):
    board = server.board()
    board.set(max_jobs=3)
    board.mpost("ab", ids=["a", "b"])
    poster = Parked(server, ("JOB.MPOST", "board", 3, "x", "y", "z", "IDS", 3, "x", "y", "z", "BLOCK", 0))
    board.delete("a")
    assert poster.still_waits()
    board.delete("b")
    assert poster.answer() == ["x", "y", "z"]
    with refused("LIMIT max-jobs"):
        board.call("MPOST", 4, "a", "b", "c", "d", "BLOCK", 0)


def test_a_flow_does_not_wait(board):
    with refused_like("ERR syntax error near 'BLOCK'.*"):
        board.call("FLOW", 1, "NODE", "a", "x", "BLOCK", 0)


# What is bounded and shown


def test_how_many_posts_wait_is_bounded(server):
    board = full(server)
    with server.configured(**{"jobboard.max-blocked-posts": 1}):
        poster = Poster(server, id="new")
        with refused("LIMIT max-blocked-posts"):
            board.post(block=0)
        board.delete("old")
        assert poster.answer() == "new"


def test_how_large_they_are_together_is_bounded(server):
    board = full(server)
    with server.configured(**{"jobboard.max-blocked-bytes": 5000}):
        poster = Poster(server, "x" * 3000, id="new")
        with refused("LIMIT max-blocked-bytes"):
            board.post("x" * 3000, block=0)
        assert error_of(Poster(server, block=10, await_block=False)) == "LIMIT max-jobs"
        assert poster.still_waits()


def test_info_counts_what_waits(server):
    board = full(server)
    for key in ("board", "other"):
        server.board(key).set(max_jobs=1)
    server.board("other").post()
    posters = [Poster(server, "x" * 1000, key=key) for key in ("board", "board", "other")]
    shown = section(server)
    assert (shown["jobboard_blocked_posts"], blocked_clients(server)) == (3, 3)
    assert 3000 < shown["jobboard_blocked_post_bytes"] < 6000
    info = board.info()
    assert info["blocked-posts"] == 2
    assert 2000 < info["blocked-post-bytes"] < 4000
    text = board.client.execute_command("JOB.METRICS")
    assert "\njobboard_blocked_posts 3\n" in text
    for poster in posters:
        poster.close()
    wait_until(lambda: waiting(server) == 0)
    assert board.info()["blocked-post-bytes"] == 0


# Copies, restarts and failures


def test_copies_and_logs_have_what_was_posted(fresh_server):
    primary = fresh_server(appendonly=True)
    replica = fresh_server(replicaof=primary)
    board = full(primary)
    posters = [Poster(primary, id=f"p{n}", meta={"n": str(n)}) for n in range(3)]
    board.delete("old")
    board.set(max_jobs=2)
    assert [poster.answer() for poster in posters[:2]] == ["p0", "p1"]
    replica.wait_synced(primary)
    assert replica.board().digest() == board.digest()
    digest = board.digest()
    primary.restart()
    assert primary.board().digest() == digest
    assert primary.board().state("p2") is None


def test_a_demotion_ends_the_wait_with_an_error_and_posts_nothing(fresh_server):
    primary, server = fresh_server(), fresh_server()
    full(server)
    poster = Poster(server, id="new")
    server.client().replicaof("127.0.0.1", primary.port)
    assert error_of(poster).startswith("UNBLOCKED")
    server.client().replicaof("NO", "ONE")
    assert waiting(server) == 0
    assert server.board().state("new") is None


def test_a_wait_goes_on_after_a_reload(fresh_server):
    server = fresh_server()
    board = full(server)
    poster = Poster(server, id="new")
    board.client.execute_command("DEBUG", "RELOAD")
    assert poster.still_waits()
    board.delete("old")
    assert poster.answer() == "new"


def test_a_full_server_takes_no_post_that_waits(fresh_server):
    server = fresh_server()
    board = full(server)
    poster = Poster(server, id="new")
    control = server.client()
    control.config_set("maxmemory", 1)
    board.delete("old")
    assert poster.still_waits()
    control.config_set("maxmemory", 0)
    assert poster.answer() == "new"


@pytest.mark.parametrize("mode", ["WRITE", "ALL"])
def test_nothing_is_posted_during_a_pause(server, mode):
    board, control = full(server), server.client()
    first, second = Poster(server, id="first"), Poster(server, id="second")
    control.execute_command("CLIENT", "PAUSE", 300, mode)
    # What is behind it is looked at outside of a command.
    first.close()
    board.delete("old")
    assert second.answer() == "second"
