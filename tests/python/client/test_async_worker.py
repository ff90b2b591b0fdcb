"""A worker of an AsyncBoard: its tasks run in one event loop, and post to the same board."""

from __future__ import annotations

import asyncio
import threading

import pytest
import redis
import redis.asyncio
from jobboard import AsyncBoard, AsyncShardedBoard, Board, ShardedBoard, Worker
from jobboard.pickling import blocking
from jobboard.worker.claimer import Claimer
from jobboard.worker.loop import LoopPool


@pytest.fixture(params=["board", "sharded"])
def make(request, server):
    """make() -> a board of asyncio of this server; its client is to be closed in the loop that used it"""

    def make(**options):
        client = redis.asyncio.Redis(port=server.port, **options)
        if request.param == "board":
            return AsyncBoard("board", client)
        return AsyncShardedBoard("board", client, shards=3)

    return make


def blocking_board(board, server):
    client = server.client(decode_responses=False)
    return (
        Board("board", client) if isinstance(board, AsyncBoard) else ShardedBoard("board", client, shards=3)
    )


def test_its_tasks_await_its_verbs(make, server, work, until) -> None:
    board = make()
    seen = []

    @board.task(queue="first")
    async def outer(context, n: int) -> int:
        assert context.board is board
        seen.append(("outer", n, asyncio.get_running_loop()))
        await inner.post(n + 1)
        return n

    @board.task()
    async def inner(n: int) -> int:
        seen.append(("inner", n, asyncio.get_running_loop()))
        return n

    theirs = blocking_board(board, server)
    theirs.post({"n": 1}, name="outer", queue="first")
    work(board)
    until(lambda: len(seen) == 2)
    assert [one[:2] for one in seen] == [("outer", 1), ("inner", 2)] and seen[0][2] is seen[1][2]
    until(lambda: theirs.count(state="complete") == 2)


def test_in_a_loop_that_runs(make, server) -> None:
    async def main() -> int:
        board = make()

        @board.task()
        async def double(n: int) -> int:
            return 2 * n

        id = await double.post(21)
        assert await Worker(board).serve(burst=True)
        found = await double.result(id)
        await board.client.aclose()
        return found

    assert asyncio.run(main()) == 42


def test_what_runs_when_the_loop_ends_is_given_back(jobs, until) -> None:
    """The program has not waited for its worker: `asyncio.run` cancels all tasks, those of jobs too."""
    began = []

    @jobs.handler()
    async def handler(context, payload):
        began.append(context.id)
        await asyncio.sleep(600)

    async def program() -> None:
        worker = Worker(jobs, mode="asyncio", concurrency=1, stop_within="0s")
        serving = asyncio.create_task(worker.serve())
        while not began:
            await asyncio.sleep(0.01)
        assert not serving.done()

    jobs.post(1, id="a", retries=0)
    asyncio.run(program())
    job = jobs.get("a")
    assert (job.state, job.reason) == ("ready", "the worker stops")
    assert len(began) == 1
    assert [entry["event"] for entry in jobs.history("a") if entry["event"] != "log"] == [
        "posted",
        "claimed",
        "abandoned",
    ]


def test_nothing_is_given_back_before_the_last_claim_has_ended(jobs, server, monkeypatch) -> None:
    """A claim that waits would get it."""
    began, cut_off, at_last_claim = threading.Event(), threading.Event(), []
    run, stop = LoopPool._run, Claimer.stop

    async def running(pool, one) -> None:
        try:
            await run(pool, one)
        finally:
            cut_off.set()

    def stopping(claimer) -> None:
        assert cut_off.wait(60)
        at_last_claim.extend(one.ended for one in claimer.engine.all_held())
        stop(claimer)

    monkeypatch.setattr(LoopPool, "_run", running)
    monkeypatch.setattr(Claimer, "stop", stopping)

    @jobs.handler()
    async def handler(context, payload):
        began.set()
        await asyncio.sleep(600)

    async def program() -> None:
        worker = Worker(jobs, mode="asyncio", block="30s", stop_within="0s")
        serving = asyncio.create_task(worker.serve())
        while not began.is_set() or server.info("jobboard")["jobboard_blocked_claims"] != 1:
            await asyncio.sleep(0.01)
        assert not serving.done()

    jobs.post(1, id="a")
    asyncio.run(program())
    assert at_last_claim == [False] and jobs.get("a").reason == "the worker stops"


def test_only_in_an_event_loop(make) -> None:
    board = make()
    board.task("nothing")(lambda: None)
    for mode in ("threads", "processes"):
        with pytest.raises(ValueError, match="share one event loop: mode='asyncio', or take a Board"):
            Worker(board, mode=mode)
    assert Worker(board).options.mode == "asyncio"


def test_the_client_that_blocks_is_of_the_same_server(server) -> None:
    there = redis.asyncio.Redis(port=server.port, db=3, username="default", socket_timeout=7, protocol=2)
    same = blocking(there)
    same.set("a", 1)
    assert redis.Redis(port=server.port, db=3).get("a") == b"1"
    assert same.connection_pool.connection_kwargs["socket_timeout"] == 7
    same.flushdb()
    tls = blocking(redis.asyncio.Redis.from_url("rediss://u:p@there:1?ssl_cert_reqs=none"))
    pool = tls.connection_pool
    assert pool.connection_class is redis.SSLConnection
    assert {
        "host": "there",
        "password": "p",
        "ssl_cert_reqs": "none",
    }.items() <= pool.connection_kwargs.items()
    path = blocking(redis.asyncio.Redis.from_url("unix:///tmp/there?db=2")).connection_pool
    assert (
        path.connection_class is redis.UnixDomainSocketConnection
        and path.connection_kwargs["path"] == "/tmp/there"
    )
    own = type("Own", (redis.asyncio.Connection,), {})
    pool = redis.asyncio.ConnectionPool(connection_class=own)
    with pytest.raises(TypeError, match="a Own has no form that blocks: give the Worker a Board"):
        blocking(redis.asyncio.Redis(connection_pool=pool))


def test_over_a_cluster(cluster) -> None:
    async def main() -> list[int]:
        node = cluster.primaries[0]
        board = AsyncShardedBoard("shop", redis.asyncio.RedisCluster("127.0.0.1", node.port), shards=4)

        @board.task()
        async def double(n: int) -> int:
            return 2 * n

        ids = await double.post_many([{"n": n} for n in range(3)])
        assert await Worker(board).serve(burst=True)
        found = [await double.result(id) for id in ids]
        await board.client.aclose()
        return found

    assert asyncio.run(main()) == [0, 2, 4]


def test_by_sentinels() -> None:
    watching = redis.asyncio.sentinel.Sentinel(
        [("one", 1), ("two", 2)], sentinel_kwargs={"password": "s"}, password="p"
    )
    same = blocking(watching.master_for("service")).connection_pool
    assert (same.service_name, same.is_master) == ("service", True)
    hosts = [one.connection_pool.connection_kwargs for one in same.sentinel_manager.sentinels]
    assert [(one["host"], one["port"], one["password"]) for one in hosts] == [
        ("one", 1, "s"),
        ("two", 2, "s"),
    ]
    assert same.sentinel_manager.connection_kwargs == {"password": "p"}
