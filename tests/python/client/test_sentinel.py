"""Workers, boards and the command line find the primary that Sentinels name, also after a failover."""

from __future__ import annotations

import asyncio
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jobboard
import pytest
import redis
from harness import wait_until
from jobboard.cli import main
from sentinels import Watched
from servers import NAME

from .conftest import TESTS


def board_of(watched: Watched) -> jobboard.Board:
    board = jobboard.Board("board", watched.url + "?socket_timeout=1")

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

    return wait_until(attempt, what="an answer")[0]


def answers(board: jobboard.Board, name: str) -> list[Any]:
    """The results of 20 jobs."""
    ids = [f"{name}{n}" for n in range(20)]
    for n, id in enumerate(ids):
        patient(lambda id=id, n=n: board.post(n, id=id, nx=True, retain="1h"))
    return [patient(lambda id=id: board.result(id, timeout="60s")) for id in ids]


@pytest.mark.parametrize("how", ["kill", "freeze"])
def test_a_worker_follows_a_failover(watched: Watched, work: Callable[..., Any], how: str) -> None:
    board = board_of(watched)
    running = work(board, concurrency=4, lease="2s")
    assert answers(board, "early") == list(range(20))
    watched.servers[1].wait_synced(watched.servers[0])
    watched.sentinels[0].close()  # the first that the URL names
    watched.fail_over(how)
    assert answers(board, "late") == list(range(20))
    assert running.stop() is True


@pytest.mark.parametrize("how", [["--threads", "2"], ["--processes", "2"]], ids=["threads", "processes"])
def test_the_command_line_follows_a_failover(
    watched: Watched, how: list[str], capsys: Any, tmp_path: Any
) -> None:
    with (tmp_path / "log").open("wb") as log:
        worker = subprocess.Popen(
            [sys.executable, "-m", "jobboard", "worker", "client_app:board", "--url", watched.url, *how],
            env={**os.environ, "PYTHONPATH": str(TESTS)},
            stdout=log,
            stderr=log,
        )
        try:
            post = ["post", "board", "7", "--name", "square", "--wait", "60s", "--url", watched.url]
            assert main(post) == 0
            watched.servers[1].wait_synced(watched.servers[0])
            watched.fail_over("kill")
            wait_until(lambda: main(post) == 0, what="done by the new primary")
            assert set(capsys.readouterr().out.split()) == {"49"}
        finally:
            worker.kill()
            worker.wait()


def test_claims_of_taskflow_follow_a_failover(watched: Watched) -> None:
    backends = pytest.importorskip("taskflow.jobs.backends", reason="TaskFlow 6.5 needs Python 3.11")
    first, *others = [f"127.0.0.1:{one.port}" for one in watched.sentinels]
    where = {"host": "127.0.0.1", "port": first.rpartition(":")[2], "sentinel": NAME}
    conf = {"board": "jobboard", "namespace": "mails", "lease": 15.0, "sentinel_fallbacks": others, **where}
    with backends.backend("test", conf) as board:
        job = board.post("work")
        board.claim(job, "me")
        watched.servers[1].wait_synced(watched.servers[0])
        watched.fail_over("kill")
        raw = watched.servers[1].board("mails")
        deadline = raw.get(job.uuid).get("deadline", 0)
        wait_until(lambda: raw.get(job.uuid).get("deadline", 0) > deadline, what="the lease is renewed")
        assert board.find_owner(job) == "me"
        board.consume(job, "me")


def test_boards_of_asyncio_and_of_other_processes_find_the_primary(watched: Watched) -> None:
    board = board_of(watched)
    patient(lambda: board.post(1, id="a", nx=True))
    board.handlers = jobboard.Handlers()
    assert patient(lambda: pickle.loads(pickle.dumps(board)).get("a")).payload == 1

    async def look() -> Any:
        theirs = jobboard.AsyncBoard("board", watched.url)
        found = await theirs.get("a")
        await theirs.client.aclose()
        return found.payload

    assert asyncio.run(look()) == 1


def test_a_primary_that_is_cut_off_is_left(watched: Watched) -> None:
    """Whoever is refused with NOREPLICAS asks the Sentinels again, with a new connection."""
    old = watched.servers[0].client()
    board = jobboard.Board("board", watched.url)
    before = board.client.execute_command("CLIENT", "ID")
    board.post(1, id="a")
    assert board.client.execute_command("CLIENT", "ID") == before
    old.config_set("min-replicas-to-write", 5)
    with pytest.raises(redis.ResponseError, match="NOREPLICAS"):
        board.post(2, id="b")
    old.config_set("min-replicas-to-write", 0)
    board.post(2, id="b")
    assert board.client.execute_command("CLIENT", "ID") > before

    async def main() -> None:
        theirs = jobboard.AsyncBoard("board", watched.url)
        before = await theirs.client.execute_command("CLIENT", "ID")
        old.config_set("min-replicas-to-write", 5)
        with pytest.raises(redis.ResponseError, match="NOREPLICAS"):
            await theirs.post(3, id="c")
        old.config_set("min-replicas-to-write", 0)
        await theirs.post(3, id="c")
        assert await theirs.client.execute_command("CLIENT", "ID") > before
        await theirs.client.aclose()

    asyncio.run(main())
