"""Workers, boards and the command line find the primary that Sentinels name, also after a failover.

shop    a primary, a replica and three Sentinels: shop.url, shop.servers, shop.sentinels, shop.fail_over()
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Callable

import jobboard
import pytest
import redis
from harness import Server, run_async, wait_until
from jobboard.cli import main
from servers import NAME, Sentinel

from .conftest import TESTS

CONFIG = ["repl-timeout 5"]


class Shop:
    def __init__(self, fresh_server: Callable[..., Server], kind: str) -> None:
        first = fresh_server(config=CONFIG)
        self.servers = [first, fresh_server(config=CONFIG, replicaof=first)]
        self.servers[1].wait_synced(first)
        self.sentinels = [Sentinel(kind, first.port) for _ in range(3)]
        hosts = ",".join(f"127.0.0.1:{one.port}" for one in self.sentinels)
        self.url = f"sentinel://{hosts}/{NAME}"
        wait_until(self._ready, 20, what="the Sentinels know each other and the replica")

    def _ready(self) -> bool:
        for one in self.sentinels:
            try:
                with redis.Redis(port=one.port, decode_responses=True) as client:
                    found = client.sentinel_masters()[NAME]
            except (redis.RedisError, KeyError):
                return False
            if (found["num-other-sentinels"], found["num-slaves"]) != (2, 1):
                return False
        return True

    def fail_over(self, how: str) -> None:
        """Returns when the replica is the primary, which every living Sentinel says."""
        old, new = self.servers
        if how == "kill":
            old.kill()
        else:
            os.kill(old.process.pid, signal.SIGSTOP)
        alive = [one for one in self.sentinels if one.process.poll() is None]
        wait_until(lambda: all(one.primary() == new.port for one in alive), 60, what="the failover")

    def close(self) -> None:
        for one in self.sentinels:
            one.close()
        for server in self.servers:
            if server.process is not None:
                os.kill(server.process.pid, signal.SIGCONT)


@pytest.fixture
def shop(fresh_server: Callable[..., Server], kind: str) -> Iterator[Shop]:
    found = Shop(fresh_server, kind)
    yield found
    found.close()


def board_of(shop: Shop) -> jobboard.Board:
    board = jobboard.Board("board", shop.url + "?socket_timeout=1")

    @board.handler()
    def handler(context: jobboard.Context, payload: Any) -> Any:
        return payload

    return board


def patient(ask: Callable[[], Any]) -> Any:
    """A producer that tries again when there is no primary."""

    def attempt() -> Any:
        try:
            return [ask()]
        except (redis.ConnectionError, redis.TimeoutError, redis.ReadOnlyError):
            return None

    return wait_until(attempt, 60, what="an answer")[0]


@pytest.mark.parametrize("how", ["kill", "freeze"])
def test_a_worker_follows_a_failover(shop: Shop, work: Callable[..., Any], how: str) -> None:
    board = board_of(shop)
    running = work(board, concurrency=4, lease="2s")
    ids = [board.post(n, retain="1h") for n in range(20)]
    assert [board.result(id, within="20s") for id in ids] == list(range(20))
    shop.servers[1].wait_synced(shop.servers[0])
    shop.sentinels[0].close()  # the first that the URL names
    shop.fail_over(how)
    ids = [f"late{n}" for n in range(20)]
    for n, id in enumerate(ids):
        patient(lambda id=id, n=n: board.post(n, id=id, nx=True, retain="1h"))
    results = [patient(lambda id=id: board.result(id, within="60s")) for id in ids]
    assert results == list(range(20))
    assert running.stop(30) is True


@pytest.mark.parametrize("how", [["--threads", "2"], ["--processes", "2"]], ids=["threads", "processes"])
def test_the_command_line_follows_a_failover(shop: Shop, how: list[str], capsys: Any, tmp_path: Any) -> None:
    with (tmp_path / "log").open("wb") as log:
        worker = subprocess.Popen(
            [sys.executable, "-m", "jobboard", "worker", "client_app:board", "--url", shop.url, *how],
            env={**os.environ, "PYTHONPATH": str(TESTS)},
            stdout=log,
            stderr=log,
        )
        try:
            post = ["post", "board", "7", "--name", "square", "--wait", "60s", "--url", shop.url]
            assert main(post) == 0
            shop.servers[1].wait_synced(shop.servers[0])
            shop.fail_over("kill")
            wait_until(lambda: main(post) == 0, 60, what="done by the new primary")
            assert set(capsys.readouterr().out.split()) == {"49"}
        finally:
            worker.kill()
            worker.wait()


def test_claims_of_taskflow_follow_a_failover(shop: Shop) -> None:
    backends = pytest.importorskip("taskflow.jobs.backends", reason="TaskFlow 6.5 needs Python 3.11")
    first, *others = [f"127.0.0.1:{one.port}" for one in shop.sentinels]
    where = {"host": "127.0.0.1", "port": first.rpartition(":")[2], "sentinel": NAME}
    conf = {"board": "jobboard", "namespace": "mails", "lease": 1.0, "sentinel_fallbacks": others, **where}
    with backends.backend("test", conf) as board:
        job = board.post("work")
        board.claim(job, "me")
        shop.servers[1].wait_synced(shop.servers[0])
        shop.fail_over("kill")
        raw = shop.servers[1].board("mails")
        deadline = raw.get(job.uuid)["deadline"]
        wait_until(lambda: raw.get(job.uuid).get("deadline", 0) > deadline, 60, what="the lease is renewed")
        assert board.find_owner(job) == "me"
        board.consume(job, "me")


def test_boards_of_asyncio_and_of_other_processes_find_the_primary(shop: Shop) -> None:
    board = board_of(shop)
    board.post(1, id="a")
    board.handlers = jobboard.Handlers()
    assert pickle.loads(pickle.dumps(board)).get("a").payload == 1

    async def look() -> Any:
        theirs = jobboard.AsyncBoard("board", shop.url)
        found = await theirs.get("a")
        await theirs.client.aclose()
        return found.payload

    assert run_async(look()) == 1
