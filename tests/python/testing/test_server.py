"""`jobboard.testing`: the private server and its clock."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import socket
import subprocess
import sys
import textwrap
from datetime import datetime, timedelta, timezone
from pathlib import Path

import jobboard
import pytest
import redis
from harness import executable, wait_until
from jobboard.serving import CannotServe
from jobboard.serving.ports import any_free
from jobboard.testing import TestServer, run_inline


@pytest.fixture
def at_hand(kind: str) -> TestServer:
    return TestServer(server=str(executable(kind)))


@pytest.mark.every_server
def test_a_board_on_each_server(at_hand: TestServer) -> None:
    with at_hand as board:
        id = board.post({"to": "ann"})
        assert board.get(id).payload == {"to": "ann"}
        url = at_hand.url
    with pytest.raises(redis.ConnectionError):
        redis.Redis.from_url(url).ping()


def test_an_async_board(at_hand: TestServer) -> None:
    async def use() -> None:
        async with at_hand as board:
            id = await board.post(1, delay="2h")
            assert await board.state(id) == "scheduled"
            at_hand.clock.advance("2h")
            assert await board.state(id) == "ready"

    asyncio.run(use())


def test_time_moves_only_by_the_clock(at_hand: TestServer) -> None:
    with at_hand as board:
        clock = at_hand.clock
        begin = clock.now
        assert abs(begin - datetime.now(timezone.utc)) < timedelta(minutes=5)
        id = board.post(1, delay="2h")
        assert clock.advance("1h59m") == begin + timedelta(hours=1, minutes=59)
        assert board.state(id) == "scheduled"
        clock.advance(timedelta(minutes=1))
        assert board.state(id) == "ready"
        [job] = board.claim("w", lease="10s")
        clock.set(clock.now + timedelta(seconds=11))
        assert board.history(job.id)[-1]["event"] == "lapsed"


@pytest.mark.parametrize(
    ("duration", "error"),
    [(5, TypeError), ("2x", ValueError), ("forever", ValueError), (timedelta(-1), ValueError)],
)
def test_a_clock_goes_on_by_a_duration(at_hand: TestServer, duration, error) -> None:
    with at_hand:
        now = at_hand.clock.now
        with pytest.raises(error, match="clock"):
            at_hand.clock.advance(duration)
        assert at_hand.clock.now == now


def test_a_server_with_the_machines_clock_has_none(kind: str) -> None:
    server = TestServer(server=str(executable(kind)), manual_clock=False)
    with server as board:
        assert board.post(1)
        with pytest.raises(TypeError, match="manual_clock=True"):
            server.clock.now  # noqa: B018


def test_two_at_once_know_nothing_of_each_other(kind: str) -> None:
    with TestServer(server=str(executable(kind))) as one, TestServer(server=str(executable(kind))) as other:
        one.post(1, id="a")
        assert other.get("a") is None


@pytest.mark.every_server
def test_another_port_is_taken_when_one_is_gone_meanwhile(at_hand: TestServer, monkeypatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ports, given = itertools.chain([taken.getsockname()[1]], iter(any_free, None)), []

        def give() -> int:
            given.append(next(ports))
            return given[-1]

        monkeypatch.setattr("jobboard.testing.server.any_free", give)
        with at_hand as board:
            assert board.post(1)
        assert len(given) > 1


def test_a_server_that_never_answers_is_given_up(monkeypatch, tmp_path: Path) -> None:
    lines = ['if [ "$1" = --version ]; then echo "Redis server v=7.9.0 sha=0"; exit; fi', "exec sleep 600"]
    silent = tmp_path / "redis-server"
    silent.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    silent.chmod(0o755)
    monkeypatch.setattr("jobboard.testing.server.WITHIN", 0.5)
    with pytest.raises(CannotServe, match="did not answer within 0.5 s"), TestServer(server=str(silent)):
        pass


def test_nobody_else_on_the_machine_may_use_it(at_hand: TestServer) -> None:
    with at_hand:
        port = at_hand.client.connection_pool.connection_kwargs["port"]
        with pytest.raises(redis.AuthenticationError):
            redis.Redis(port=port).ping()


def test_boards_of_a_program_use_it_until_they_are_released(at_hand: TestServer) -> None:
    plain = jobboard.Board("plain", "redis://127.0.0.1:1")
    sharded = jobboard.ShardedBoard("sharded", "redis://127.0.0.1:1", shards=3)
    asynchronous = jobboard.AsyncBoard("async", "redis://127.0.0.1:1")
    before = [one.client for one in (plain, sharded, asynchronous)]
    with at_hand:
        at_hand.use(plain, sharded, asynchronous)
        assert plain.post(1, id="a") == "a"
        assert len(sharded.post_many([1, 2, 3])) == 3
        assert asyncio.run(asynchronous.post(1, id="b")) == "b"
        with pytest.raises(TypeError, match="use takes boards"):
            at_hand.use("mails")
        forgotten = jobboard.Board("forgotten", "redis://127.0.0.1:1")
        with pytest.raises(RuntimeError, match="its jobs are real"):
            forgotten.post(1)
        at_hand.release()
        with pytest.raises(redis.ConnectionError):
            forgotten.post(1)
    assert [one.client for one in (plain, sharded, asynchronous)] == before
    assert sharded.boards[0].client is before[1]


def test_empty_removes_all_and_wakes_who_waits(at_hand: TestServer) -> None:
    with at_hand as board:
        board.post(1, id="a", delay="1h")
        at_hand.board("others").post(1)
        at_hand.clock.advance("5h")
        where = at_hand.client.connection_pool.connection_kwargs
        with socket.create_connection((where["host"], where["port"]), timeout=60) as waiting:
            waiting.sendall(f"AUTH {where['password']}\r\nBLPOP x 0\r\n".encode())
            assert waiting.recv(100) == b"+OK\r\n"
            wait_until(lambda: at_hand.client.info("clients")["blocked_clients"] == 1, 60)
            at_hand.empty()
            assert waiting.recv(100) == b""
        assert not at_hand.client.keys()
        assert abs(at_hand.clock.now - datetime.now(timezone.utc)) < timedelta(minutes=5)
        assert board.post(1, id="a") == "a"


def test_the_server_goes_with_a_process_that_is_killed(kind: str, tmp_path: Path) -> None:
    program = f"""
        import time
        from jobboard.testing import TestServer
        server = TestServer(server={str(executable(kind))!r})
        server.start()
        print(server.client.info("server")["process_id"], server._folder.name, flush=True)
        time.sleep(600)
    """
    words = [sys.executable, "-c", textwrap.dedent(program)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    pid = int(process.stdout.readline().split()[0])
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()

    def gone() -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        return False

    wait_until(gone, 60)


def test_what_it_needs_is_named_when_it_is_missing(monkeypatch) -> None:
    monkeypatch.setenv("JOBBOARD_MODULE", "/no/such/module.so")
    with pytest.raises(CannotServe, match=r"\$JOBBOARD_MODULE: there is no file /no/such/module\.so"):
        TestServer()
    with pytest.raises(CannotServe, match="TestServer.server=….: there is no program /no/such/server"):
        TestServer(server="/no/such/server")


def test_it_can_be_used_only_while_it_runs(at_hand: TestServer) -> None:
    with pytest.raises(RuntimeError, match="with TestServer"):
        at_hand.url  # noqa: B018
    with at_hand as board:
        pass
    with pytest.raises(redis.ConnectionError):
        run_inline(board, handlers=handlers())


def handlers() -> jobboard.Handlers:
    found = jobboard.Handlers()
    found.handler()(lambda context, payload: None)
    return found
