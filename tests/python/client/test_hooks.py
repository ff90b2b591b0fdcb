"""Hooks that fail, and hooks that swallow."""

from __future__ import annotations

import asyncio
import contextlib

import jobboard
import pytest
import redis.asyncio
from jobboard import AsyncBoard, Board, Hook, Hooks, Worker


class Bad(Hook):
    """Fails when it is told how a post went."""

    def posting(self, board, name, count):
        def done(error, posted):
            raise RuntimeError("the hook is broken")

        return {}, done


class Noting(Hook):
    def __init__(self) -> None:
        self.told: list[tuple[str, object]] = []

    def posting(self, board, name, count):
        return {}, lambda error, posted: self.told.append((type(error).__name__, posted))


class Swallowing(Hook):
    def running(self, context):
        return contextlib.suppress(Exception)


@pytest.mark.parametrize("first", [True, False])
def test_a_hook_that_fails_takes_no_post_back(server, caplog, first) -> None:
    noting = Noting()
    hook = Hooks(Bad(), noting) if first else Hooks(noting, Bad())
    board = Board("board", server.client(decode_responses=False), hook=hook)
    assert board.post(1, id="a") == "a"
    with pytest.raises(jobboard.Exists):
        board.post(1, id="a")
    assert board.post_many([1, 2], ids=["b", "c"]) == ["b", "c"]
    told = [("NoneType", "a"), ("ResponseError", None), ("NoneType", ["b", "c"])]
    assert noting.told == told
    assert caplog.messages == ["a hook failed after JOB.POST"] * 2 + ["a hook failed after JOB.MPOST"]

    async def main() -> None:
        board = AsyncBoard("board", redis.asyncio.Redis(port=server.port), hook=hook)
        assert await board.post(1, id="d") == "d"
        await board.client.aclose()

    asyncio.run(main())
    assert noting.told == [*told, ("NoneType", "d")]


@pytest.mark.parametrize("hook", [Swallowing(), Hooks(Swallowing()), Hooks(Hook(), Swallowing(), Hook())])
@pytest.mark.parametrize("mode", ["threads", "asyncio"])
def test_a_hook_that_swallows_does_not_decide_what_becomes_of_a_job(server, mode, hook) -> None:
    board = Board("board", server.client(decode_responses=False), hook=hook)

    @board.task(retries=0)
    def plain() -> None:
        raise KeyError("gone")

    @board.task(retries=0)
    async def of_asyncio() -> None:
        raise KeyError("gone")

    @board.task(retries=0)
    def stops() -> None:
        raise StopIteration

    ids = [plain.post(), of_asyncio.post(), stops.post()]
    Worker(board, mode=mode).run(burst=True)
    assert [board.get(id).kind for id in ids] == ["KeyError", "KeyError", "StopIteration"]
    assert board.get(ids[0]).message == "'gone'"
