"""JOB.WAIT: waiting for jobs to end or to change, and for a board to have work, jobs, or none."""

from __future__ import annotations

import signal
import threading
import time

import lives
import pytest
import redis
from expect import MS, ids, refused
from harness import SOON, Server, wait_until
from lives import LONG
from waiters import Waiter, Watcher, blocked_clients, error_of


def states(reply: list) -> list:
    return [job and job["state"] for job in reply]


def wait(board, *words, ms: int = 1):
    return board.call("WAIT", ms, *words)


# What is so already is answered at once


def test_unknown_jobs_have_ended(board):
    lives.ready(board)
    assert wait(board, "JOBS", 2, "nobody", "nothing", ms=0) == [None, None]
    found = wait(board, "JOBS", 2, "j", "nobody", "ANY", "FIELDS", 1, "id", ms=0)
    assert found == [{"id": "j"}, None]


def test_an_absent_board_is_an_empty_one(server):
    board = server.board("absent")
    assert wait(board, "JOBS", 1, "j", ms=0) == [None]
    assert wait(board, "FOR", "empty", ms=0) == "OK"
    assert wait(board, "FOR", "present") is None
    assert wait(board, "FOR", "claimable", "QUEUES", 0) is None


def test_a_wait_ends_with_null_when_its_time_has_passed(server, protocol):
    board = server.board(protocol=protocol)
    lives.ready(board)
    begin = time.monotonic()
    assert wait(board, "JOBS", 1, "j", ms=50) is None
    assert 0.04 < time.monotonic() - begin
    assert wait(board, "FOR", "empty", ms=20) is None


def test_a_version_above_is_a_change(board):
    lives.ready(board)
    version = board.get("j")["version"]
    [job] = wait(board, "JOBS", 1, "j", "CHANGED", version - 1, ms=0)
    assert job["version"] == version
    assert wait(board, "JOBS", 1, "j", "CHANGED", version) is None


# Ends


def test_all_have_to_end(server):
    board = server.board()
    for id in "ab":
        lives.claimed(board, id)
    watcher = Watcher(server, "JOBS", 2, "a", "b", "FIELDS", 2, "id", "state")
    board.consume("w1", "a", retain=LONG)
    assert watcher.still_waits()
    board.fail("w1", "b", noretry=True)
    assert watcher.reply() == [{"id": "a", "state": "complete"}, {"id": "b", "state": "failed"}]


def test_any_may_end(server):
    board = server.board()
    for id in "ab":
        lives.claimed(board, id)
    watcher = Watcher(server, "JOBS", 2, "a", "b", "ANY")
    board.trash("w1", "b")
    assert states(watcher.reply()) == ["claimed", "trashed"]


@pytest.mark.parametrize("end", ["consume", "cancel", "delete", "fail", "trash"])
def test_a_job_whose_record_goes_at_once_wakes_its_waiters(server, end):
    board = server.board()
    board.client.execute_command(
        "JOB.SETTINGS", "SET", "board", "retain-failed", 0, "retain-trashed", 0, "retain-cancelled", 0
    )
    lives.claimed(board)
    watchers = [Watcher(server, "JOBS", 1, "j", *how) for how in [(), ("ANY",), ("CHANGED", 2**48 - 1)]]
    ends = {
        "consume": lambda: board.consume("w1", "j"),
        "trash": lambda: board.trash("w1", "j"),
        "fail": lambda: board.fail("w1", "j", noretry=True),
        "cancel": lambda: board.cancel("j", force=True),
        "delete": lambda: board.delete("j"),
    }
    ends[end]()
    assert [watcher.reply() for watcher in watchers] == [[None]] * 3


def test_the_reply_is_in_place_also_for_an_id_named_twice(server):
    board = server.board()
    lives.claimed(board)
    watcher = Watcher(server, "JOBS", 3, "j", "gone", "j", "FIELDS", 1, "id")
    board.consume("w1", "j", retain=LONG)
    assert watcher.reply() == [{"id": "j"}, None, {"id": "j"}]


def test_a_requeued_job_has_not_ended_any_more(server):
    board = server.board()
    for id in "ab":
        lives.claimed(board, id)
    watcher = Watcher(server, "JOBS", 2, "a", "b")
    board.fail("w1", "a", noretry=True)
    board.requeue("a")
    board.consume("w1", "b")
    assert watcher.still_waits()
    board.cancel("a")
    assert states(watcher.reply()) == ["cancelled", None]


def test_an_end_by_time_wakes(server):
    board = server.board()
    lives.claimed(board, lease=30, lapses=0)
    [job] = Watcher(server, "JOBS", 1, "j", await_block=False).reply()
    assert (job["state"], job["kind"]) == ("failed", "lapsed")


def test_the_end_of_a_dependency_wakes_who_waits_for_the_dependant(server):
    board = server.board()
    lives.ready(board, "first")
    board.post(id="second", after=["first"], onfailure="cancel")
    watcher = Watcher(server, "JOBS", 1, "second")
    lives.claim(board, "first")
    board.trash("w1", "first")
    assert states(watcher.reply()) == ["cancelled"]


# Changes


def test_each_kind_of_change_wakes(server):
    board = server.board()
    lives.ready(board)
    changes = [
        lambda: board.update("j", priority=3),
        lambda: lives.claim(board),
        lambda: board.heartbeat("w1", "j", progress=50),
        lambda: board.cancel("j"),
        lambda: board.abandon("w1", "j"),
        lambda: board.requeue("j"),
        lambda: board.post(id="j", replace=True, delay=LONG),
    ]
    for change in changes:
        watcher = Watcher(server, "JOBS", 1, "j", "CHANGED", board.get("j")["version"])
        assert watcher.still_waits()
        change()
        assert watcher.reply() == [board.get("j")]


def test_a_change_of_another_job_does_not_wake(server):
    board = server.board()
    lives.ready(board)
    lives.ready(board, "other")
    watcher = Watcher(server, "JOBS", 1, "j", "CHANGED", board.get("j")["version"])
    board.cancel("other")
    assert watcher.still_waits()


def test_one_fewer_to_wait_for_is_a_change(server):
    board = server.board()
    for id in "ab":
        lives.ready(board, id)
    board.post(id="j", after=["a", "b"])
    watcher = Watcher(server, "JOBS", 1, "j", "CHANGED", board.get("j")["version"])
    lives.claim(board, "a")
    board.consume("w1", "a")
    [job] = watcher.reply()
    assert (job["state"], job["after"]) == ("blocked", ["b"])


# A board as a whole


def test_claimable_is_told_to_all_who_wait_for_it(server):
    board = server.board()
    here = [
        Watcher(server, "FOR", "claimable", "QUEUES", *names) for names in [(1, "q"), (2, "p", "q"), (0,)]
    ]
    elsewhere = Watcher(server, "FOR", "claimable")
    board.post(id="j", queue="q")
    assert [watcher.answer() for watcher in here] == ["OK"] * 3
    assert elsewhere.still_waits()
    assert board.state("j") == "ready"


def test_what_a_blocked_claim_takes_is_not_claimable(server):
    board = server.board()
    claimer = Waiter(server)
    watcher = Watcher(server, "FOR", "claimable")
    board.post(id="j")
    assert claimer.job() == "j"
    assert watcher.still_waits()
    board.mpost("ab")
    assert watcher.answer() == "OK"


def test_a_paused_or_full_queue_is_not_claimable(server):
    board = server.board()
    board.pause()
    watcher = Watcher(server, "FOR", "claimable")
    board.post(id="j")
    assert watcher.still_waits()
    board.resume()
    assert watcher.answer() == "OK"
    board.client.execute_command("JOB.SETTINGS", "SET", "board", "QUEUE", "default", "concurrency", 1)
    lives.claim(board)
    board.post(id="k")
    watcher = Watcher(server, "FOR", "claimable")
    board.consume("w1", "j")
    assert watcher.answer() == "OK"


def test_a_due_job_is_claimable(server):
    server.board().post(id="j", delay=30)
    assert Watcher(server, "FOR", "claimable", await_block=False).answer() == "OK"


def test_present_and_empty_follow_the_jobs_that_have_not_ended(server):
    board = server.board()
    board.post(id="first")
    board.cancel("first")
    present = Watcher(server, "FOR", "present")
    board.post(id="j", delay=LONG)
    assert present.answer() == "OK"
    empty = Watcher(server, "FOR", "empty")
    board.post(id="k")
    board.cancel("k")
    assert empty.still_waits()
    board.cancel("j")
    assert empty.answer() == "OK"


# Transactions


def test_nothing_waits_in_a_transaction_or_a_script(server):
    board = server.board()
    lives.ready(board)
    pipe = board.client.pipeline()
    pipe.execute_command("JOB.WAIT", "board", 0, "JOBS", 1, "j")
    pipe.execute_command("JOB.WAIT", "board", 0, "JOBS", 1, "gone")
    pipe.execute_command("JOB.WAIT", "board", 0, "FOR", "empty")
    pipe.execute_command("JOB.WAIT", "board", 0, "FOR", "present")
    assert pipe.execute() == [None, [None], None, "OK"]
    script = "return redis.call('JOB.WAIT', KEYS[1], 0, 'FOR', 'empty') or 'nothing'"
    assert board.client.eval(script, 1, "board") == "nothing"


def test_a_transaction_wakes_at_its_end(server):
    board = server.board()
    work, empty = Watcher(server, "FOR", "claimable"), None
    pipe = board.client.pipeline()
    pipe.execute_command("JOB.POST", "board", "x", "ID", "j")
    pipe.execute_command("JOB.CANCEL", "board", 1, "j")
    pipe.execute()
    assert work.still_waits()
    pipe.execute_command("JOB.POST", "board", "x", "ID", "k")
    pipe.execute()
    assert work.answer() == "OK"
    ended, empty = Watcher(server, "JOBS", 1, "k"), Watcher(server, "FOR", "empty")
    board.client.eval("return redis.call('JOB.DELETE', KEYS[1], 1, 'k')", 1, "board")
    assert (ended.reply(), empty.answer()) == ([None], "OK")


# Keys that go, come and change places


@pytest.mark.parametrize(
    "words",
    [
        ("DEL", "board"),
        ("UNLINK", "board"),
        ("RENAME", "board", "away"),
        ("MOVE", "board", 7),
        ("SET", "board", "text"),
        ("FLUSHDB",),
        ("FLUSHALL", "ASYNC"),
        ("PEXPIRE", "board", 1),
        ("SWAPDB", 0, 9),
    ],
    ids=lambda words: words[0],
)
def test_a_board_that_goes_takes_its_jobs_along(server, words):
    board = server.board()
    lives.ready(board)
    watchers = [Watcher(server, "JOBS", 1, "j"), Watcher(server, "JOBS", 1, "j", "CHANGED", 2**48 - 1)]
    empty = Watcher(server, "FOR", "empty")
    board.client.execute_command(*words)
    assert [watcher.reply() for watcher in watchers] == [[None], [None]]
    assert empty.answer() == "OK"


@pytest.mark.parametrize("way", ["rename", "copy", "move", "restore", "swapdb"])
def test_a_board_that_comes_is_looked_at(server, way):
    source = server.board("source", db=9 if way in ("move", "swapdb") else 0)
    key = "source" if way in ("move", "swapdb") else "board"
    lives.ready(source)
    work, present = (Watcher(server, "FOR", what, key=key) for what in ("claimable", "present"))
    ways = {
        "rename": lambda: source.client.rename("source", "board"),
        "copy": lambda: source.client.copy("source", "board"),
        "move": lambda: source.client.move("source", 0),
        "restore": lambda: source.client.execute_command("RESTORE", "board", 0, dump()),
        "swapdb": lambda: source.client.execute_command("SWAPDB", 0, 9),
    }

    def dump() -> bytes:
        return server.raw_client().execute_command("DUMP", "source")

    ways[way]()
    assert (work.answer(), present.answer()) == ("OK", "OK")


def test_a_board_in_place_of_another_is_compared(server):
    board = server.board()
    lives.ready(board)
    other = server.board("other")
    lives.ready(other)
    other.cancel("j")
    watcher = Watcher(server, "JOBS", 1, "j")
    board.client.rename("other", "board")
    assert states(watcher.reply()) == ["cancelled"]


@pytest.mark.parametrize("more", [[], ["ANY"]], ids=["all", "any"])
def test_who_comes_in_the_turn_in_which_a_board_goes_hides_that_from_none(server, more):
    board = server.board()
    for id in "xz":
        lives.claimed(board, id)
    first = Watcher(server, "JOBS", 1, "x", *more)
    words = [
        ("DEL", "board"),
        ("JOB.POST", "board", "p", "ID", "y"),
        ("JOB.WAIT", "board", 0, "JOBS", 2, "x", "y"),
    ]
    client = server.client()
    connection = client.connection_pool.get_connection()
    connection.send_packed_command(connection.pack_commands(words))
    assert (connection.read_response(), connection.read_response()) == (1, "y")
    assert first.reply() == [None]
    board.cancel("y")
    assert connection.read_response()[0] is None


def test_who_comes_in_the_turn_in_which_a_job_lives_again_waits_for_it(server):
    board, other = server.board(), server.board("other")
    for one in (board, other):
        lives.claimed(one, "x")
    board.consume("w1", "x", retain=LONG)
    lives.claimed(board, "z")
    first = Watcher(server, "JOBS", 2, "x", "z")
    words = [
        ("RENAME", "other", "board"),
        ("JOB.POST", "board", "p", "ID", "z"),
        ("JOB.WAIT", "board", 0, "JOBS", 1, "x"),
    ]
    connection = server.client().connection_pool.get_connection()
    connection.send_packed_command(connection.pack_commands(words))
    assert (connection.read_response(), connection.read_response()) == ("OK", "z")
    board.cancel("z")
    assert first.still_waits()
    board.fail("w1", "x", noretry=True)
    assert states(first.reply()) == ["failed", "cancelled"]
    assert connection.read_response()[0]["state"] == "failed"


def test_who_waits_for_a_job_that_lives_again_hears_of_its_end_in_the_same_turn(server):
    board, other = server.board(), server.board("other")
    lives.ready(other, "x")
    lives.claimed(board, "x")
    board.consume("w1", "x", retain=LONG)
    lives.claimed(board, "z")
    Watcher(server, "JOBS", 2, "x", "z")
    late, hasty = (server.client().connection_pool.get_connection() for _ in range(2))
    words = [("RENAME", "other", "board"), ("JOB.WAIT", "board", 0, "JOBS", 1, "x")]
    server.process.send_signal(signal.SIGSTOP)  # both commands come in one turn
    late.send_packed_command(late.pack_commands(words))
    hasty.send_command("JOB.CANCEL", "board", 1, "x")
    server.process.send_signal(signal.SIGCONT)
    assert late.read_response() == "OK"
    try:
        assert hasty.read_response() == ["cancelled"]
    except redis.ResponseError:  # the server took the other order, and x was that of the old board
        board.cancel("x")
    assert late.read_response()[0]["state"] == "cancelled"


def test_a_reload_ends_no_wait(fresh_server):
    server = fresh_server(config=["save 3600 1"])
    board = server.board()
    lives.claimed(board)
    watcher = Watcher(server, "JOBS", 1, "j")
    board.client.execute_command("DEBUG", "RELOAD")
    assert watcher.still_waits()
    server.board().consume("w1", "j")
    assert watcher.reply() == [None]


# Clients


def test_a_client_may_be_unblocked_and_may_go_away(server):
    board = server.board()
    lives.claimed(board)
    first, second, third = (Watcher(server, "JOBS", 1, "j") for _ in range(3))
    board.client.client_unblock(first.id)
    assert first.reply() is None
    board.client.client_unblock(second.id, error=True)
    assert error_of(second).startswith("UNBLOCKED")
    third.close()
    wait_until(lambda: blocked_clients(server) == 0)
    assert server.info("jobboard")["jobboard_waiting_clients"] == 0
    board.consume("w1", "j")


def test_one_that_goes_in_the_turn_in_which_it_is_chosen_harms_nobody(server):
    board = server.board()
    lives.claimed(board)
    watcher = Watcher(server, "JOBS", 1, "j")
    pipe = board.client.pipeline(transaction=False)
    pipe.execute_command("JOB.CONSUME", "board", "w1", "j")
    pipe.execute_command("CLIENT", "KILL", "ID", watcher.id)
    pipe.execute()
    wait_until(lambda: blocked_clients(server) == 0)


def test_many_waits_of_one_client_after_another(server):
    board = server.board()
    for n in range(50):
        lives.claimed(board, f"j{n}")
        timer = threading.Timer(0.002, lambda n=n: server.board().consume("w1", f"j{n}"))
        timer.start()
        assert wait(board, "JOBS", 1, f"j{n}", ms=30_000) == [None]
        timer.join()


def test_many_who_wait_for_other_jobs_make_a_change_no_dearer(server):
    board = server.board()
    jobs = board.post_many(2000, delay=LONG)
    sockets = [server.socket() for _ in range(200)]
    for n, socket in enumerate(sockets):
        mine = jobs[n * 10 : n * 10 + 10]
        socket.sendall(f"JOB.WAIT board 0 JOBS 10 {' '.join(mine)}\r\n".encode())
    wait_until(lambda: blocked_clients(server) == len(sockets))
    board.cancel(*jobs[:10])
    assert sockets[0].recv(3) == b"*10"
    wait_until(lambda: blocked_clients(server) == len(sockets) - 1)
    for socket in sockets:
        socket.close()
    wait_until(lambda: server.info("jobboard")["jobboard_waiting_clients"] == 0)


# Replicas


@pytest.fixture
def pair(fresh_server) -> tuple[Server, Server]:
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    primary.client().set("first", "write")
    replica.wait_synced(primary)
    return primary, replica


def test_a_client_of_a_replica_is_woken_when_the_change_arrives(pair):
    primary, replica = pair
    board = primary.board()
    lives.claimed(board)
    replica.wait_synced(primary)
    ended, changed = (
        Watcher(replica, "JOBS", 1, "j"),
        Watcher(replica, "JOBS", 1, "j", "CHANGED", board.get("j")["version"]),
    )
    work, empty = Watcher(replica, "FOR", "claimable"), Watcher(replica, "FOR", "empty")
    board.heartbeat("w1", "j")
    assert states(changed.reply()) == ["claimed"]
    board.post(id="k")
    assert work.answer() == "OK"
    assert ended.still_waits()
    board.consume("w1", "j")
    assert ended.reply() == [None]
    board.delete("k")
    assert empty.answer() == "OK"


def test_a_deleted_key_wakes_on_a_replica(pair):
    primary, replica = pair
    lives.ready(primary.board())
    replica.wait_synced(primary)
    watcher = Watcher(replica, "JOBS", 1, "j")
    primary.client().delete("board")
    assert watcher.reply() == [None]


def test_a_whole_copy_from_the_primary_is_looked_at(pair):
    primary, replica = pair
    board = primary.board()
    lives.claimed(board)
    replica.wait_synced(primary)
    replica.client().replicaof("NO", "ONE")
    watcher = Watcher(replica, "JOBS", 1, "j", await_block=False)
    # A replica that joins anew ends the waits of its clients, as the server does for all that block.
    board.consume("w1", "j")
    replica.client().replicaof("127.0.0.1", primary.port)
    assert error_of(watcher).startswith("UNBLOCKED")
    replica.wait_synced(primary)
    assert replica.board().call("WAIT", 1, "JOBS", 1, "j") == [None]


def test_a_wait_on_a_replica_outlives_its_promotion(pair):
    primary, replica = pair
    lives.claimed(primary.board())
    replica.wait_synced(primary)
    watcher = Watcher(replica, "JOBS", 1, "j")
    replica.client().replicaof("NO", "ONE")
    replica.board().consume("w1", "j")
    assert watcher.reply() == [None]


def test_a_primary_that_becomes_a_replica_ends_the_waits(pair):
    primary, replica = pair
    lives.ready(primary.board())
    watcher = Watcher(primary, "JOBS", 1, "j")
    replica.client().replicaof("NO", "ONE")
    primary.client().replicaof("127.0.0.1", replica.port)
    assert error_of(watcher).startswith("UNBLOCKED")


# Refusals


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["x", "FOR", "empty"], f"ERR ms must be an integer from 0 to 1099511627776{MS}"),
        ([-1, "FOR", "empty"], f"ERR ms must be an integer from 0 to 1099511627776{MS}"),
        ([1, "UNTIL", "empty"], "ERR JOBS or FOR is needed"),
        ([1, "FOR", "ever"], "ERR FOR must be claimable, present or empty"),
        ([1, "FOR", "empty", "QUEUES", 1, "q"], "ERR QUEUE and QUEUES go with FOR claimable"),
        ([1, "FOR", "empty", "SOON"], "ERR syntax error near 'SOON'"),
        ([1, "JOBS", 1, "j", "ALL", "ANY"], "ERR ALL, ANY and CHANGED exclude each other"),
        ([1, "JOBS", 1, "j", "ALL", "ALL"], "ERR ALL is given twice"),
        ([1, "JOBS", 1, "j", "CHANGED"], "ERR CHANGED needs a value"),
        ([1, "JOBS", 1, "j", "CHANGED", -1], "ERR CHANGED must be an integer from 0 to 281474976710655"),
        ([1, "JOBS", 2, "j"], "ERR n names 2 but fewer follow"),
        ([1, "JOBS", 0, "j"], "ERR n must be an integer from 1 to 10000"),
        ([1, "JOBS", 1, "j", "FIELDS", 1, "kinds"], "ERR unknown field 'kinds': did you mean 'kind'?"),
    ],
    ids=str,
)
def test_what_it_does_not_understand_is_refused(board, words, error):
    lives.ready(board)
    with refused(error, board):
        board.call("WAIT", *words)


def test_a_key_of_another_type_is_refused(server):
    client = server.client()
    client.set("text", "x")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        client.execute_command("JOB.WAIT", "text", 0, "FOR", "empty")


def test_waiting_changes_nothing(server):
    board = server.board()
    lives.ready(board)
    before = board.digest()
    watcher = Watcher(server, "JOBS", 1, "j", ms=300)
    assert watcher.reply() is None
    assert board.digest() == before
    assert ids(board.claim("w1")) == ["j"]


@pytest.mark.parametrize("group", [None, "g"])
def test_whoever_waits_for_work_is_woken_by_a_token_that_time_brings(board, clocked_board, clock, group):
    for each in (board, clocked_board):
        each.set("default", group and "*", rate=1, **{"rate-period": SOON})
        each.post(group=group)
        each.post(group=group)
        each.claim("w1")
    clock.advance(SOON - 1)
    assert clocked_board.call("WAIT", 10, "FOR", "claimable") is None
    assert board.call("WAIT", LONG, "FOR", "claimable") == "OK"
    assert len(board.claim("w1")) == 1
