"""A large board that goes is freed on a thread of the server's, whatever makes it go."""

from __future__ import annotations

import pytest
from harness import Board, Server, wait_until

LAZY = [
    f"lazyfree-lazy-{what} yes" for what in ("user-del", "user-flush", "expire", "server-del", "eviction")
]


def freed(server: Server) -> int:
    """How many values the server's thread has freed; waits until there are some, and none is left."""

    def done() -> int:
        memory = server.info("memory")
        return not memory["lazyfree_pending_objects"] and memory["lazyfreed_objects"]

    return wait_until(done)


def fill(board: Board, jobs: int) -> None:
    """Jobs of all sorts: much is freed with them."""
    each = jobs // 4
    board.set(retain_failed=-1, keep_failed=jobs)
    for size in [5000] * (each // 5000) + [each % 5000]:
        if not size:
            continue
        board.mpost(["x" * 60] * size, queue="plain")
        board.mpost(["x" * 60] * size, queue="delayed", delay=3_600_000, name="n", tags=["t"])
        board.mpost(["x" * 60] * size, queue="grouped", group="g", meta={"a": "b"})
        board.mpost(["x" * 60] * size, queue="claimed", lease=3_600_000)
        board.claim("w1", queues=["claimed"], count=size, fields=["id"])


def evict(board: Board) -> None:
    board.client.config_set("maxmemory", 1)
    wait_until(lambda: not board.client.exists(board.key))
    board.client.config_set("maxmemory", 0)


def expire(board: Board) -> None:
    board.client.pexpire(board.key, 1)
    wait_until(lambda: board.client.dbsize() == 0)


WAYS = {
    "UNLINK": lambda board: board.client.unlink(board.key),
    "DEL": lambda board: board.client.delete(board.key),
    "FLUSHALL": lambda board: board.client.flushall(),
    "FLUSHALL ASYNC": lambda board: board.client.flushall(asynchronous=True),
    "FLUSHDB ASYNC": lambda board: board.client.flushdb(asynchronous=True),
    "EXPIRE": expire,
    "eviction": evict,
    "SET": lambda board: board.client.set(board.key, "x"),
    "RENAME": lambda board: board.client.set("other", "x") and board.client.rename("other", board.key),
}


@pytest.mark.parametrize("way", WAYS)
def test_whatever_makes_a_board_go(fresh_server, way):
    server = fresh_server(config=[*LAZY, "maxmemory-policy allkeys-lru"])
    board = server.board()
    before = server.info("memory")["used_memory"]
    fill(board, 12_000)
    WAYS[way](board)
    assert freed(server) > 0
    assert server.info("memory")["used_memory"] < before + 1_000_000
    assert server.info("jobboard")["jobboard_boards"] == 0


def test_a_board_with_nothing_but_tombstones_is_freed_there_as_well(fresh_server):
    server = fresh_server()
    board = server.board()
    board.mpost(["x"] * 500)
    board.claim("w1", count=500)
    board.mconsume("w1", "ALL")
    assert board.info()["jobs"] == 0 and board.info()["tombstones"] == 500
    board.client.unlink("board")
    assert freed(server) == 1


@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_server_answers_while_300_thousand_jobs_are_freed(fresh_server):
    """And other boards are worked on meanwhile, with the same allocator."""
    server = fresh_server()
    board, other = server.board(), server.board("other")
    fill(board, 300_000)
    assert board.info()["jobs"] == 300_000
    board.client.unlink("board")
    worked = 0
    while worked < 20 or server.info("memory")["lazyfree_pending_objects"]:
        other.mpost(["x" * 60] * 100)
        other.claim("w1", count=100)
        assert [state for _, state in other.mconsume("w1", "ALL")] == ["complete"] * 100
        worked += 1
    assert freed(server) == 1
    assert not board.client.exists("board") and other.info()["jobs"] == 0
    assert server.info("jobboard")["jobboard_boards"] == 1
