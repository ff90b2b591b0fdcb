"""Output of handlers, in every mode of a worker, and who reads it."""

from __future__ import annotations

import asyncio
import threading

import jobboard
import pytest
import redis.asyncio
from harness import wait_until
from harness.cluster import Cluster
from jobboard import AsyncBoard, Board, ShardedBoard
from jobboard.testing import run_inline


def text_of(board, id: str, **options) -> str:
    return b"".join(chunk.data for chunk in board.output(id, **options)).decode()


@pytest.mark.parametrize("name", ["writes", "writes-async"])
def test_what_a_handler_writes_is_read(app, name) -> None:
    board = app.board
    words = [f"word {n} \u00e9\n" for n in range(200)]
    board.post(words, id="j", name=name)
    assert app().run(burst=True)
    assert text_of(board, "j") == "".join(words)


@pytest.mark.parametrize("name", ["writes", "writes-async"])
def test_a_new_attempt_writes_anew(app, until, name) -> None:
    board = app.board
    board.post(["one", "two"], id="again", name=name)
    worker = app()
    while board.state("again") != "complete":
        assert worker.run(burst=True)
        until(lambda: board.state("again") in ("ready", "complete"))
    [chunk] = board.output("again")
    assert (chunk.text, chunk.attempt, chunk.anew) == ("again", 2, True)


@pytest.mark.parametrize("concurrency", [1, 2, 5])
def test_a_claim_that_came_back_is_written_behind_what_is_there(app, until, concurrency) -> None:
    """Whether the first claim after a broken connection brings old jobs alone, or new ones too."""
    board = app.board
    worker = app(name="w1", concurrency=concurrency, queues=["mine"])
    running = threading.Thread(target=worker.run, kwargs={"signals": False})
    running.start()
    try:
        until(lambda: any(one["cmd"] == "job.claim" for one in board.client.client_list()), what="it claims")
        ids = ["a", "b", "c"]
        board.post_many([["new ", "words"]] * 3, ids=ids, name="writes", queue="other", retain="1m")
        held = board.claim("w1", count=3, lease="10m", queues=["other"])
        for job in held:
            for number, chunk in enumerate(["old ", "chunks "], 1):
                board.heartbeat("w1", job.id, job.token, output=(number, chunk))
        board.client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        until(lambda: board.count(state="complete") >= 1, what="they came back")
        board.post(["new ", "words"], id="d", name="writes", queue="mine", retain="1m")
        until(lambda: board.count(state="complete") == 4, what="all are done")
    finally:
        worker.stop()
        running.join(120)
    assert {id: text_of(board, id) for id in [*ids, "d"]} == {
        **dict.fromkeys(ids, "old chunks new words"),
        "d": "new words",
    }
    assert {chunk.attempt for id in ids for chunk in board.output(id)} == {1}


def test_a_long_chunk_is_sent_in_parts(jobs) -> None:
    @jobs.handler("writes")
    def writes(context, payload) -> None:
        context.output("\u00e9" * 10_000)
        context.output(b"x" * 10_000)

    jobs.post(None, id="j", name="writes")
    assert [ran.state for ran in run_inline(jobs, raising=True)] == ["complete"]
    chunks = [*jobs.output("j")]
    assert len(chunks) == 6 and all(len(chunk.data) <= 8192 for chunk in chunks)
    assert text_of(jobs, "j") == "\u00e9" * 10_000 + "x" * 10_000


def test_output_that_is_off_fails_no_job(app, caplog) -> None:
    app.board.settings_set({"output-bytes": 0})
    app.board.post(["one"] * 5, id="j", name="writes", retain="1m")
    assert app().run(burst=True)
    assert app.board.state("j") == "complete"
    assert [*app.board.output("j")] == []


def test_only_text_and_bytes_are_written(jobs) -> None:
    @jobs.handler("writes")
    def writes(context, payload) -> None:
        context.output(7)

    jobs.post(None, id="j", name="writes", retries=0)
    with pytest.raises(TypeError, match="a chunk of output is text or bytes, not 7"):
        run_inline(jobs, raising=True)


def test_a_reader_follows_and_goes_on_where_it_was(jobs) -> None:
    jobs.post(1, id="j")
    [job] = jobs.claim("w")
    jobs.heartbeat("w", "j", job.token, output=(1, "the "))
    later = threading.Timer(0.05, jobs.step, ["w", "j", "a", 1, job.token], {"output": (2, b"sky ")})
    later.start()
    chunks = jobs.output("j", timeout="30s")
    assert [next(chunks).text, next(chunks).text] == ["the ", "sky "]
    later.join()
    jobs.consume("w", "j", job.token, output=(3, "is blue"))
    assert [chunk.text for chunk in jobs.output("j", since=2)] == ["is blue"]
    with pytest.raises(jobboard.JobUnknown):
        next(jobs.output("nobody"))


def test_what_is_there_is_read_without_waiting(jobs) -> None:
    jobs.post(1, id="j")
    assert [*jobs.output("j", follow=False)] == []
    with pytest.raises(TimeoutError, match="j has not ended in time"):
        [*jobs.output("j", timeout="20ms")]
    [job] = jobs.claim("w")
    with pytest.raises(jobboard.Gap, match="the next chunk of this run is 1"):
        jobs.heartbeat("w", "j", job.token, output=(2, "x"))


def test_output_of_a_sharded_board(server) -> None:
    board = ShardedBoard("many", server.client(decode_responses=False), shards=3)
    for n in range(6):
        board.post(n, id=f"j{n}")
        job = board.claim_id("w", f"j{n}")
        board.consume("w", job.id, job.token, output=(1, f"done {n}"))
    assert [text_of(board, f"j{n}") for n in range(6)] == [f"done {n}" for n in range(6)]


def test_output_is_awaited(server) -> None:
    async def whole() -> None:
        client = redis.asyncio.Redis(port=server.port)
        board = AsyncBoard("board", client)
        await board.post(1, id="j")
        [job] = await board.claim("w")

        async def write() -> None:
            await board.heartbeat("w", "j", job.token, output=(1, "a"))
            await board.consume("w", "j", job.token, output=(2, "b"))

        task = asyncio.create_task(write())
        assert b"".join([chunk.data async for chunk in board.output("j")]) == b"ab"
        await task
        await client.aclose()

    asyncio.run(whole())


@pytest.mark.long
def test_a_walk_goes_on_while_a_slot_moves(server_kind) -> None:
    """The wait ends at the node where the board was, and the slot has not moved yet."""
    cluster = Cluster(server_kind, primaries=2)
    try:
        board = Board("board", cluster.client(decode_responses=False))
        board.block = 1000
        board.post(1, id="a", retain="1h")
        [job] = board.claim("w", lease="10m")
        owner = cluster.owner("board")
        other = next(one for one in cluster.primaries if one is not owner)
        found, errors = [], []

        def read() -> None:
            try:
                found.extend(chunk.text for chunk in board.output("a"))
            except Exception as error:
                errors.append(error)

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        wait_until(lambda: owner.info("clients")["blocked_clients"] == 1)
        slot = cluster.slot("board")
        cluster.begin_migration(slot, owner, other)
        cluster.move("board", owner, other)
        wait_until(lambda: owner.info("clients")["blocked_clients"] == 0)
        wait_until(lambda: errors or other.info("clients")["blocked_clients"] == 1)
        assert errors == []
        cluster.end_migration(slot, other)
        Board("board", cluster.client(decode_responses=False)).consume("w", "a", token=job.token)
        reader.join(120)
        assert (found, errors, reader.is_alive()) == ([], [], False)
    finally:
        cluster.close()
