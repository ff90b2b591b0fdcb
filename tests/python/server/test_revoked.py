"""Rights that are taken away while a client waits: it is refused, and takes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import lives
import pytest
import redis
from expect import refused_like
from harness import Server, wait_until
from waiters import Parked, Waiter, Watcher, error_of

LOGIN = {"username": "ann", "password": "secret"}
BLPOP_ASKS_AGAIN = {"redis70": False, "redis82": True, "valkey91": True}
"""Whether the server itself asks again before it serves a client that waits."""

REVOKED = "NOPERM .*while the client waited"
LOSSES = [
    ["-job.claim", "-job.wait"],
    ["-@all"],
    ["resetkeys"],
    ["resetkeys", "~other"],
    ["resetkeys", "%W~board"],
]


@pytest.fixture
def acl(server: Server) -> Iterator[Callable[..., None]]:
    """Changes the rules of a user who may do everything at first."""
    client = server.client()

    def change(*rules: str) -> None:
        client.execute_command("ACL", "SETUSER", "ann", *rules)

    change("reset", "on", ">secret", "~*", "&*", "+@all")
    yield change
    client.execute_command("ACL", "DELUSER", "ann")


def refuses(waiter: Parked) -> None:
    with refused_like(REVOKED):
        raise AssertionError(waiter.answer())


@pytest.mark.parametrize("rules", LOSSES, ids=" ".join)
def test_a_claim_that_waits_is_refused_and_takes_nothing(server, board, acl, rules):
    waiter = Waiter(server, login=LOGIN)
    acl(*rules)
    board.post(id="j")
    refuses(waiter)
    assert board.state("j") == "ready"
    assert [event["event"] for event in board.history("j")] == ["posted"]


def test_the_next_in_line_gets_the_job(server, board, acl):
    first, second = Waiter(server, "w1", login=LOGIN), Waiter(server, "w2")
    acl("-job.claim")
    board.post(id="j")
    assert second.job() == "j"
    refuses(first)


def test_the_job_of_a_timer_is_not_handed_over(clocked, clocked_board, clock):
    clocked.client().execute_command("ACL", "SETUSER", "ann", "reset", "on", ">secret", "~*", "+@all")
    clocked_board.post(id="j", delay=300)
    waiter = Waiter(clocked, login=LOGIN)
    clocked.client().execute_command("ACL", "SETUSER", "ann", "-job.claim")
    clock.advance(300)
    refuses(waiter)
    assert clocked_board.state("j") == "ready"


def test_the_job_of_a_transaction_is_not_handed_over(server, board, acl):
    waiter = Waiter(server, login=LOGIN)
    pipeline = board.client.pipeline()
    pipeline.execute_command("ACL", "SETUSER", "ann", "-job.claim")
    pipeline.execute_command("JOB.POST", "board", "x", "ID", "j")
    pipeline.execute()
    refuses(waiter)
    assert board.state("j") == "ready"


@pytest.mark.parametrize(
    "gone", [["ABANDON"], ["CONSUME"], ["FAIL", "kind", "message"], ["TRASH"]], ids=" ".join
)
def test_a_worker_that_ended_a_job_and_waits_hears_of_the_end_and_gets_none(server, board, acl, gone):
    [verb, *words] = gone
    lives.claimed(board)
    # What it gives back is not what it waits for.
    sent = (f"JOB.{verb}", "board", "w1", "j", *words, "CLAIM", "QUEUES", 1, "other", "BLOCK", 0)
    waiter = Parked(server, sent, login=LOGIN)
    acl(f"-job.{verb.lower()}")
    board.post(id="k", queue="other")
    ended, claimed = waiter.answer()
    assert ended and claimed is None
    assert board.state("k") == "ready"


@pytest.mark.parametrize("rules", [["-job.wait"], ["resetkeys"], ["resetkeys", "%W~board"]], ids=" ".join)
@pytest.mark.parametrize("words", [["JOBS", 1, "j"], ["FOR", "empty"]], ids=str)
def test_a_wait_tells_nothing(server, board, acl, rules, words):
    lives.ready(board)
    waiter = Watcher(server, *words, login=LOGIN)
    acl(*rules)
    board.delete("j")
    refuses(waiter)


def test_a_wait_on_a_replica_tells_nothing(fresh_server):
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    board = primary.board()
    lives.ready(board)
    replica.wait_synced(primary)
    control = replica.client()
    control.execute_command("ACL", "SETUSER", "ann", "on", ">secret", "~*", "+@all")
    waiter, other = Watcher(replica, "JOBS", 1, "j", login=LOGIN), Watcher(replica, "JOBS", 1, "j")
    control.execute_command("ACL", "SETUSER", "ann", "-job.wait")
    board.cancel("j")
    refuses(waiter)
    assert other.reply()


def test_a_time_out_is_a_time_out(server, acl):
    waiter = Waiter(server, block=300, login=LOGIN)
    acl("-job.claim")
    assert waiter.reply() is None


def test_rights_that_have_come_back_count(server, board, acl):
    waiter = Waiter(server, login=LOGIN)
    acl("-job.claim")
    acl("+job.claim")
    board.post(id="j")
    assert waiter.job() == "j"


def test_a_user_who_is_off_goes_on_as_the_servers_own_waits_do(server, board, acl):
    waiter, popper = Waiter(server, login=LOGIN), Parked(server, ("BLPOP", "list", 0), login=LOGIN)
    acl("off")
    board.post(id="j")
    server.client().rpush("list", "x")
    assert waiter.job() == "j"
    assert popper.answer() == ["list", "x"]


def test_blpop_is_asked_again_as_well(server, kind, acl):
    popper = Parked(server, ("BLPOP", "list", 0), login=LOGIN)
    acl("-blpop")
    server.client().rpush("list", "x")
    if BLPOP_ASKS_AGAIN[kind]:
        assert "NOPERM" in error_of(popper) or "permissions" in error_of(popper)
    else:
        assert popper.answer() == ["list", "x"]


@pytest.mark.parametrize("together", [False, True])
def test_a_user_who_is_deleted_takes_no_job_along(server, board, acl, together):
    waiter = Waiter(server, login=LOGIN)
    pipeline = board.client.pipeline(transaction=together)
    pipeline.execute_command("ACL", "DELUSER", "ann")
    pipeline.execute_command("JOB.POST", "board", "x", "ID", "j")
    pipeline.execute()
    with pytest.raises(redis.ConnectionError):
        waiter.answer()
    wait_until(lambda: board.state("j") == "ready")
    assert Waiter(server, "w2", await_block=False).job() == "j"
