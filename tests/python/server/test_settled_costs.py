"""Blocked claims are served at the moment permits come back, or the pause of a limit ends: nobody polls."""

from __future__ import annotations

from expect import ids
from harness import Board, Server
from waiters import Waiter


def api(board: Board) -> None:
    """The job `a` is claimed, and leaves too few permits for `b`."""
    board.set(limit="tokens", rate=1, rate_period=3_600_000, burst=100)
    board.set(queue="api", limits=["tokens"])
    for id_ in ("a", "b"):
        board.post(id=id_, queue="api", costs=(1, "tokens", 80))
    assert ids(board.claim("w1", queues=["api"])) == ["a"]


def test_a_blocked_claim_gets_its_job_when_permits_come_back(server: Server) -> None:
    board = server.board()
    api(board)
    waiting = Waiter(server, "w2", queues=["api"])
    board.heartbeat("w1", "a", costs=(1, "tokens", 50))
    assert waiting.still_waits()
    board.consume("w1", "a", costs=(1, "tokens", 10))
    assert waiting.job() == "b"


def test_a_blocked_claim_gets_its_job_when_a_pause_ends(clocked: Server) -> None:
    board = clocked.board()
    api(board)
    board.heartbeat("w1", "a", costs=(1, "tokens", 0), pause=("tokens", 5_000))
    waiting = Waiter(clocked, "w2", queues=["api"])
    clocked.clock.advance(4_999)
    assert waiting.still_waits()
    clocked.clock.advance(1)
    assert waiting.job() == "b"


def test_a_blocked_claim_gets_its_job_when_a_limit_is_resumed(server: Server) -> None:
    board = server.board()
    api(board)
    board.heartbeat("w1", "a", costs=(1, "tokens", 0))
    board.call("PAUSE", limit="tokens")
    waiting = Waiter(server, "w2", queues=["api"])
    assert waiting.still_waits()
    board.call("RESUME", limit="tokens")
    assert waiting.job() == "b"
