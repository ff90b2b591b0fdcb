"""AsyncBoard: the same verbs, awaited."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path

import jobboard
import pytest
import redis.asyncio
from jobboard import AsyncBoard, AsyncShardedBoard, Board, ShardedBoard
from jobboard.board.sending import Verb


def run(server, main, **options) -> None:
    async def whole() -> None:
        client = redis.asyncio.Redis(port=server.port, **options)
        try:
            await main(AsyncBoard("board", client))
        finally:
            await client.connection_pool.disconnect()

    asyncio.run(whole())


def test_verbs_are_awaited(server, protocol) -> None:
    async def main(board: AsyncBoard) -> None:
        id = await board.post({"to": "ann"}, name="mail")
        job = await board.get(id)
        assert (job.name, job.payload) == ("mail", {"to": "ann"})
        with pytest.raises(jobboard.Exists):
            await board.post(1, id=id)
        ids = await board.post_many(range(1500), queue="bulk")
        assert len(set(ids)) == 1500
        found = [job.payload async for job in board.list(queue="bulk", page=400)]
        assert found == list(range(1500))
        assert (await board.cancel_where({"queue": "bulk"})).count == 1500
        await board.settings_set({"lease": "1m"})
        assert (await board.settings_get("lease"))["lease"].value == 60_000

    run(server, main, protocol=protocol)


def test_a_batch_is_awaited(server) -> None:
    async def main(board: AsyncBoard) -> None:
        batch = asyncio.create_task(board.claim("w", count=9, min=3, block="30s"))
        ids = await board.post_many(range(3))
        assert [job.id for job in await batch] == ids
        last = await board.post(3)
        batch = board.claim("w", count=9, min=3, linger="20ms", block="30s")
        assert [job.id for job in await batch] == [last]

    run(server, main)


def test_a_post_that_waits_for_room_is_awaited(server) -> None:
    async def main(board: AsyncBoard) -> None:
        await board.settings_set({"max-jobs": 1})
        await board.post(1, id="old")
        post = asyncio.create_task(board.post(2, id="new", block="30s"))
        while (await board.info())["blocked-posts"] == 0:
            await asyncio.sleep(0.01)
        await board.delete("old")
        assert await post == "new"

    run(server, main)


def test_a_result_is_awaited_without_blocking_the_loop(server) -> None:
    async def main(board: AsyncBoard) -> None:
        async def answer() -> None:
            [job] = await board.claim("w", block="30s")
            await board.consume("w", job.id, job.token, result=job.payload * 2)

        waiting = asyncio.create_task(board.call(21, within="30s"))
        await asyncio.sleep(0.05)
        await answer()
        assert await waiting == 42
        with pytest.raises(TimeoutError):
            await board.call(1, within="20ms")

    run(server, main)


def test_both_boards_have_the_same_verbs() -> None:
    for sync, other in ((Board, AsyncBoard), (ShardedBoard, AsyncShardedBoard)):
        verbs = {name for name in dir(sync) if isinstance(inspect.getattr_static(sync, name), Verb)}
        assert len(verbs) > 20
        for name in verbs:
            assert inspect.getattr_static(sync, name) is inspect.getattr_static(other, name)


def test_a_verb_has_its_name_and_description(jobs) -> None:
    assert jobs.post.__name__ == "post"
    assert jobs.post.__doc__.startswith("Posts a job")
    assert "payload" in inspect.signature(jobs.post).parameters


def test_every_command_of_a_board_has_a_verb(server) -> None:
    """commands.md is the list: each JOB.* command is sent by some verb."""
    known = {name.upper().split("|")[0] for name in server.client().command_list()}
    known = {name for name in known if name.startswith("JOB.")}
    own = {"JOB.APPLY", "JOB.LOAD", "JOB.PROBE", "JOB.CLOCK"}
    sources = Path(jobboard.__file__).parent.joinpath("board").glob("*.py")
    text = "".join(path.read_text() for path in sources)
    missing = {name for name in known - own if f'"{name}"' not in text}
    assert not missing
