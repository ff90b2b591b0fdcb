"""Chains and groups of jobs, posted in one command."""

from __future__ import annotations

import asyncio

import jobboard
import pytest
import redis.asyncio
from jobboard import After, AsyncBoard, Node, NoJob, ShardedBoard, Worker, chain, group


@pytest.fixture(params=["board", "sharded"])
def board(request, server):
    client = server.client(decode_responses=False)
    return (
        jobboard.Board("board", client)
        if request.param == "board"
        else ShardedBoard("board", client, shards=3)
    )


def run(board) -> None:
    assert Worker(board, concurrency=1).run(burst=True)


def test_a_chain_with_a_group_runs_in_order(board) -> None:
    seen = []

    @board.task()
    def step(name: str) -> None:
        seen.append(name)

    parts = group(step.job("left"), chain(step.job("right 1"), step.job("right 2")))
    ids = board.flow(chain(step.job("first"), parts, step.job("join"), step.job("last")))
    assert len(set(ids)) == 6
    run(board)
    assert sorted(seen) == sorted(["first", "left", "right 1", "right 2", "join", "last"])
    at = seen.index
    assert at("first") == 0 and at("right 1") < at("right 2") and seen[4:] == ["join", "last"]


def test_calls_of_a_flow_have_options_of_their_own(board) -> None:
    @board.task(queue="slow", retries=1)
    def step() -> None: ...

    first = step.using(id="{a}one", priority=5).job()
    second = step.using(queue="fast", after=["{a}other"], strict=False).job()
    ids = board.flow(chain(first, second), together="a")
    assert ids[0] == "{a}one"
    jobs = [board.get(id) for id in ids]
    assert [(job.queue, job.priority, job.state) for job in jobs] == [
        ("slow", 5, "ready"),
        ("fast", 0, "blocked"),
    ]
    assert jobs[1].after == ["{a}one"], "a job that the board does not know counts as met"


def test_an_id_that_nobody_knows_is_refused(board) -> None:
    @board.task()
    def step() -> None: ...

    with pytest.raises(NoJob, match="no such job {a}other in node .*; there are fetch, read$"):
        read = Node("read", 2, after=["{a}other"], elsewhere=True)
        board.flow([Node("fetch", 1, elsewhere=True), read], together="a")
    board.post({}, id="{a}other", name="step")
    ids = board.flow(chain(step.job(), step.using(after=["{a}other"]).job()), together="a")
    assert board.get(ids[1]).after == [ids[0], "{a}other"] or board.get(ids[1]).after == ["{a}other", ids[0]]


def test_what_is_no_flow_is_refused_by_a_sentence(board) -> None:
    for wrong, kind, says in (
        ([], ValueError, "a flow has at least one job"),
        (chain(), ValueError, "a flow has at least one job"),
        (None, TypeError, "a flow is made of jobs: .*, not None"),
        ([1], TypeError, "a flow is made of jobs"),
        (Node("a", 1), TypeError, "a flow is a list of jobs"),
    ):
        with pytest.raises(kind, match=says):
            board.flow(wrong)
    with pytest.raises(TypeError, match="label is text, such as label='mails', not 5"):
        Node(5, 1)
    with pytest.raises(TypeError, match="unknown option 'colour'"):
        Node("a", 1, colour="red")
    with pytest.raises(ValueError, match="onfailure must be one of hold, cancel, fail, run, not 'stop'"):
        chain(Node("a", 1), onfailure="stop")


def test_what_becomes_of_the_rest_when_a_step_fails(board) -> None:
    @board.task(noretry=(ValueError,))
    def step(fail: bool = False) -> None:
        if fail:
            raise ValueError

    held = board.flow(chain(step.job(True), step.job()))
    cancelled = board.flow(chain(step.job(True), step.job(), step.job(), onfailure="cancel"))
    run(board)
    states = [[board.state(id) for id in ids] for ids in (held, cancelled)]
    assert states == [["failed", "blocked"], ["failed", "cancelled", "cancelled"]]


def test_plain_nodes_and_other_dependencies_stay() -> None:
    a, b = Node("a", 1), Node("b", 2, after=["x", "y"])
    c = Node("c", 3, after=After(["z"], "run"))
    flow = chain(a, group(), group(b, c), onfailure="fail")
    assert [node.label for node in flow] == ["a", "b", "c"]
    assert flow[1].options["after"] == [After(["x", "y"]), After(["a"], "fail")]
    assert flow[2].options["after"] == [After(["z"], "run"), After(["a"], "fail")]
    assert b.options == {"after": ["x", "y"]}, "the node is as it was"
    assert (flow.first, flow.last) == (["a"], ["b", "c"])
    assert chain() == [] and chain(a) == [a]


def test_a_job_stands_in_a_flow_once(board) -> None:
    @board.task()
    def step() -> None: ...

    job = step.job()
    with pytest.raises(ValueError, match="stands in the flow twice: call job"):
        board.flow(chain(job, job))
    assert not board.info()


def test_asyncio(server, jobs) -> None:
    async def post() -> list[str]:
        board = AsyncBoard("board", redis.asyncio.Redis(port=server.port))

        @board.task()
        def step(n: int) -> None: ...

        ids = await board.flow(chain(step.job(1), step.job(2)))
        await board.client.aclose()
        return ids

    ids = asyncio.run(post())
    assert [jobs.get(id).state for id in ids] == ["ready", "blocked"]
