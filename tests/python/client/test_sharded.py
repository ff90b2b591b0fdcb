"""A sharded board: one logical board over many slots of a cluster."""

from __future__ import annotations

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import jobboard
import pytest
import redis.asyncio
from harness import wait_until
from jobboard import After, AsyncShardedBoard, JobFailed, Next, Node, ShardedBoard, Worker
from jobboard.board.sharding import tag_of


@pytest.fixture
def board(server) -> ShardedBoard:
    """On one server: what sharding means does not depend on where the shards are."""
    return ShardedBoard("jobs", server.client(decode_responses=False), shards=5)


@pytest.mark.parametrize(
    ("id", "tag"),
    [
        ("a", "a"),
        ("{x}a", "x"),
        ("a{x}b{y}", "x"),
        ("{}a", "{}a"),
        ("{xa", "{xa"),
        ("@nightly@7", "nightly"),
        ("@ann", "@ann"),
        ("@@a", "@@a"),
    ],
)
def test_what_of_an_id_decides(id, tag) -> None:
    assert tag_of(id.encode()) == tag.encode()


def test_an_id_tells_where_its_job_is(board) -> None:
    ids = board.post_many(range(200), ids=[f"j{n}" for n in range(200)], retain="1m")
    assert {board.place(id) for id in ids} == {f"jobs:{{{n}}}" for n in range(5)}
    assert [job.payload for job in board.get_many(ids)] == list(range(200))
    assert board.get("j7").payload == 7
    assert board.post(1, id="j7", nx=True) is None
    with pytest.raises(jobboard.Exists):
        board.post(1, id="j7")
    made = board.post("x", name="n")
    assert board.get(made).name == "n"
    assert board.count() == 201
    assert sorted(job.payload for job in board.list(state="ready", not_={"name": "n"})) == list(range(200))
    [row] = board.queues()
    assert row["ready"] == 201
    assert board.info()["ready"] == 201
    assert board.cancel("j1", "nobody", "j2") == ["cancelled", None, "cancelled"]
    assert board.requeue("j1", "j2").count == 2
    assert board.delete_where({"name": "n"}).count == 1
    assert board.update_where({"queue": "default"}, {"priority": 3}).count == 200
    assert board.explain("j3")["id"] == "j3"
    assert [entry["event"] for entry in board.history("j3")] == ["posted", "updated"]


def test_a_post_waits_for_room_in_its_shard(board) -> None:
    board.settings_set({"max-jobs": 1})
    board.post(1, id="{a}1")
    with pytest.raises(jobboard.Limit):
        board.post(2, id="{a}2", block="10ms")
    with ThreadPoolExecutor() as threads:
        waits = threads.submit(board.post, 2, id="{a}2", block="30s")
        wait_until(lambda: board.info()["blocked-posts"] == 1)
        board.delete("{a}1")
        assert waits.result() == "{a}2"


def test_what_belongs_together_shares_a_shard(board) -> None:
    parent = board.post(1)
    child = board.post(2, parent=parent)
    grandchild = board.post(3, parent=child)
    later = board.post(4, after=[parent])
    assert len({board.place(id) for id in (parent, child, grandchild, later)}) == 1
    assert [job.id for job in board.children(parent)] == [child]
    with pytest.raises(jobboard.Exists):
        for _ in range(2):
            board.post(1, unique="site")
    assert len({board.place(board.post(n, together="acme", group="acme")) for n in range(20)}) == 1
    ids = board.flow([Node("a", 1), Node("b", 2, after=["a"])])
    assert board.get(ids[1]).after == [ids[0]]
    elsewhere = next(f"x{n}" for n in range(99) if board.place(f"x{n}") != board.place(parent))
    with pytest.raises(ValueError, match="another shard"):
        board.post(1, id=elsewhere, parent=parent)


def test_a_job_that_would_wait_for_jobs_of_several_shards_is_refused(board) -> None:
    """It would find those of its own shard alone, take the others for done, and run."""
    ids = board.post_many(range(20), ids=[f"j{n}" for n in range(20)])
    here = [id for id in ids if board.place(id) == board.place("j0")]
    apart = next(id for id in ids if id not in here)
    told = "lives in another shard than"
    for options in (
        {"after": ["j0", apart]},
        {"after": [jobboard.After(["j0"]), jobboard.After([apart], "run")]},
        {"parent": "j0", "after": [apart]},
        {"together": "j0", "after": [apart]},
    ):
        with pytest.raises(ValueError, match=told):
            board.post("x", **options)
        with pytest.raises(ValueError, match=told):
            board.post_many(["x"], **options)
    assert board.count() == 20
    assert board.get(board.post("x", parent=here[0], after=here[1:])).state == "blocked"


def test_what_would_wait_for_another_shard_is_refused(board, work) -> None:
    one = board.post(1, id="one")
    other = next(f"x{n}" for n in range(99) if board.place(f"x{n}") != board.place(one))
    board.post(1, id=other, retain="1m")
    for act in (
        lambda: board.post(2, after=[one, other]),
        lambda: board.post(2, after=[After([one]), After([other], "run")]),
        lambda: board.post(2, after=[other], together=one),
        lambda: board.post(2, after=[other], parent=one),
        lambda: board.post_many([2], after=[other], together=one),
        lambda: board.flow([Node("a", 1, after=[one]), Node("b", 1, after=["a", other], strict=False)]),
        lambda: board.depend_add(one, other),
        lambda: board.consume("w", one, next="later", after=[other]),
    ):
        with pytest.raises(ValueError, match="lives in another shard than"):
            act()
    assert board.count() == 2

    @board.handler("goes-on")
    def goes_on(context, payload):
        return Next("later", name="later", after=payload)

    work(board)
    id = board.post([other], name="goes-on", together=one, retries=0)
    with pytest.raises(JobFailed, match="lives in another shard than"):
        board.result(id, timeout="30s")


def test_a_unique_key_or_a_user_has_one_shard_however_it_begins(board) -> None:
    for name in ("@ann", "@@ann", "@a@b", "a}b"):
        board.post(1, unique=name)
        board.post(1, user=name, maxlive=1)
        for n in range(5):
            with pytest.raises(jobboard.Exists):
                board.post(n, unique=name)
            with pytest.raises(jobboard.Limit):
                board.post(n, user=name, maxlive=1)


def test_a_flow_goes_to_what_it_belongs_to(board) -> None:
    one = board.post(1, id="one")
    for _ in range(2):
        ids = board.flow([Node("a", 1, after=[one]), Node("b", 2, after=["a"])])
        assert {board.place(id) for id in ids} == {board.place(one)}
        assert board.get(ids[0]).after == [one]
    board.flow([Node("a", 1, unique="site")])
    for _ in range(5):
        with pytest.raises(jobboard.Exists):
            board.flow([Node("a", 1, unique="site")])
    for n in range(5):
        ids = board.flow([Node("a", 1, id=f"mine{n}"), Node("b", 2, after=["a"])])
        assert board.get(ids[1]).after == [f"mine{n}"]


def test_the_name_may_be_bytes(board) -> None:
    board.post(1, id="a")
    assert ShardedBoard(b"jobs", board.client, shards=5).get("a").payload == 1


def test_schedules_live_where_their_children_do(board) -> None:
    for n in range(4):
        board.schedule_set(f"tick{n}", n, every="1m")
    ran = [board.schedule_run(f"tick{n}") for n in range(4)]
    assert [board.get(id).payload for id in ran] == [0, 1, 2, 3]
    assert {row["id"] for row in board.schedule_list()} == {f"tick{n}" for n in range(4)}


def test_settings_and_pauses_hold_everywhere(board) -> None:
    board.settings_set({"lease": "5s"})
    assert {one.settings_get("lease")["lease"].value for one in board.boards} == {5000}
    board.post_many(range(20), ids=[f"j{n}" for n in range(20)])
    board.pause()
    board.handlers.handler()(lambda context, payload: None)
    assert Worker(board).run(burst=True) and board.count() == 20
    board.resume()
    Worker(board).run(burst=True)
    assert board.count() == 0


def test_waiting_over_shards(board) -> None:
    ids = board.post_many([1, 2, 3], ids=["j1", "j2", "j3"], retain="1m")
    assert board.wait(*ids, timeout="50ms") is None
    assert board.wait(*ids, timeout="50ms", until="any") is None
    board.handlers.handler()(lambda context, payload: payload + 1)
    Worker(board).run(burst=True)
    assert [job.result for job in board.wait(*ids)] == [2, 3, 4]
    assert board.wait("j1", "nobody", until="any")[1] is None
    assert board.result("j2") == 3


def test_workers_of_a_cluster_find_all_work(cluster, work, until) -> None:
    board = ShardedBoard("jobs", cluster.client(decode_responses=False), shards=6)
    runs: Counter = Counter()

    @board.handler()
    def handler(context, payload):
        runs[payload] += 1
        if payload == "more":
            context.board.post("posted within", retain="1m")
        return payload

    board.post_many(range(300), ids=[f"j{n}" for n in range(300)])
    workers = [work(board, prefetch=20, concurrency=2) for _ in range(2)]
    until(lambda: board.count() == 0, what="all done")
    assert set(runs) == set(range(300)) and max(runs.values()) == 1
    for n in range(6):  # a job on any shard is found by workers that wait elsewhere
        assert board.call(f"call{n}", within="30s") == f"call{n}"
    board.post("more", id="m")
    until(lambda: runs["posted within"] == 1, what="posted within")
    assert len(list(board.worker_list())) == 2 * 6
    id = board.post("stop", delay="1h")
    assert board.cancel(id) == ["cancelled"]
    assert all(one.stop() is True for one in workers)


def test_a_cancel_reaches_a_worker_of_a_cluster(cluster, work, until) -> None:
    board = ShardedBoard("jobs", cluster.client(decode_responses=False), shards=6)
    seen = []

    @board.handler()
    def handler(context, payload):
        seen.append("began")
        context.sleep("20s")

    work(board, lease="30s")
    board.post(1, id="a")
    until(lambda: seen, what="it runs")
    board.cancel("a")
    until(lambda: board.get("a").state == "cancelled", what="cancelled")


def test_verbs_with_the_key_second_find_their_node(cluster) -> None:
    board = jobboard.Board("somewhere", cluster.client(decode_responses=False))
    board.settings_set({"lease": "5s"})
    board.schedule_set("s", 1, every="1m")
    assert board.schedule_get("s")["payload"] == 1
    assert board.worker_register("w").expires == -1
    board.post_many([1, 2], ids=["a", "b"])
    assert board.depend_add("b", "a") == "blocked"


def test_async_over_a_cluster(cluster) -> None:
    async def main() -> None:
        client = redis.asyncio.RedisCluster(host="127.0.0.1", port=cluster.primaries[0].port)
        board = AsyncShardedBoard("jobs", client, shards=6)
        ids = await board.post_many(range(50), ids=[f"j{n}" for n in range(50)])
        assert await board.count() == 50
        assert [job.payload for job in await board.get_many(ids)] == list(range(50))
        assert len([job async for job in board.list()]) == 50
        assert (await board.cancel_where({"state": "ready"})).count == 50
        await client.aclose()

    asyncio.run(main())
