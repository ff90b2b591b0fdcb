"""What becomes of boards under the other policies of `maxmemory`, and under EXPIRE."""

from __future__ import annotations

import lives
import pytest
from expect import refused_like
from harness import wait_until
from waiters import Waiter, Watcher

ROOM = 6_000_000


@pytest.fixture
def limited(fresh_server):
    """A server of a policy with room for some ten thousand jobs."""

    def start(policy: str):
        # A thread that frees later would let the server take more boards than it has to.
        server = fresh_server(config=[f"maxmemory-policy {policy}", "lazyfree-lazy-eviction no"])
        board = server.board()
        board.post(id="j")
        board.client.config_set("maxmemory", board.client.info("memory")["used_memory"] + ROOM)
        return server, board

    return start


def fill_with_text(client, count: int = 200, **options) -> None:
    for number in range(count):
        client.set(f"text:{number}", "x" * 100_000, **options)


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-lfu", "allkeys-random"])
def test_an_allkeys_policy_takes_a_board_whole(limited, policy):
    server, board = limited(policy)
    boards = [server.board(f"b{number}") for number in range(20)]
    for one in boards:
        one.mpost(["x" * 100] * 5000)
    counts = [one.count() for one in boards]
    assert server.info("stats")["evicted_keys"] > 0
    assert 0 in counts and set(counts) <= {0, 5000}, "a board is there with all its jobs, or it is not there"
    assert boards[-1].client.info("jobboard")["jobboard_boards"] == boards[-1].client.dbsize()


def test_an_evicted_board_begins_anew_and_its_tokens_rise(limited):
    server, board = limited("allkeys-lru")
    token = board.claim_one("w1")["token"]
    waiter = Waiter(server, "w2", queues=["later"])
    watcher = Watcher(server, "JOBS", 1, "j")
    with server.configured(maxmemory=1):
        wait_until(lambda: not board.client.exists("board"))
    assert watcher.answer() == [None]
    assert waiter.still_waits()
    with refused_like("NOJOB .+"):
        board.consume("w1", "j", token=token)
    board.post(id="j")
    assert board.claim_one("w1")["token"] > token
    board.post(id="k", queue="later")
    assert waiter.job() == "k"


@pytest.mark.parametrize("policy", ["volatile-lru", "volatile-ttl", "volatile-random"])
def test_a_volatile_policy_leaves_boards_alone(limited, policy):
    server, board = limited(policy)
    fill_with_text(board.client, ex=1000)
    assert server.info("stats")["evicted_keys"] > 0
    assert board.state("j") == "ready"
    with refused_like("OOM .+"):
        board.post_many(100_000, "x" * 100)
    assert board.client.dbsize() == 1, "everything else had to go first"
    assert board.claim_one("w1")["id"] == "j"


def test_a_volatile_policy_takes_a_board_with_a_time_to_live(limited):
    _, board = limited("volatile-lru")
    board.client.expire("board", 1000)
    with refused_like("OOM .+"):
        fill_with_text(board.client)
    assert not board.client.exists("board")


def test_expire_deletes_a_board_with_all_its_jobs(server):
    board = server.board()
    lives.claimed(board)
    lives.ready(board, "k")
    waiter, watcher = Waiter(server, "w2", queues=["later"]), Watcher(server, "FOR", "empty")
    board.client.pexpire("board", 50)
    assert watcher.answer() == "OK"
    wait_until(lambda: not board.client.exists("board"))
    board.post(id="x", queue="later")
    assert waiter.job() == "x"
    assert board.count() == 1 and board.client.pttl("board") == -1


def test_no_command_of_a_board_changes_its_time_to_live(server):
    board = server.board()
    lives.ready(board)
    board.client.expire("board", 100_000)
    token = board.claim_one("w1")["token"]
    board.post()
    board.consume("w1", "j", token=token)
    assert 90_000 < board.client.ttl("board") <= 100_000
    board.client.persist("board")
    assert board.client.ttl("board") == -1
