"""Steps of handlers: what is done is not done again, in every mode of a worker."""

from __future__ import annotations

import asyncio

import jobboard
import pytest
from harness import wait_until
from jobboard import Abandon, Board, Limit, Retry, Worker
from jobboard.testing import run_inline


@pytest.mark.parametrize("name", ["stepwise", "stepwise-async"])
def test_a_job_that_runs_again_goes_on_where_it_was(app, name) -> None:
    board = app.board
    board.post({"rows": 5, "fail_at": [0, 3]}, id="j", name=name, retries=5)
    worker = app()
    while board.state("j") not in ("complete", None):
        assert worker.run(burst=True)
    assert app.told() == [
        "j charge",
        "j row 0",
        "j row 0",
        "j row 1",
        "j row 2",
        "j row 3",
        "j row 3",
        "j row 4",
    ]
    assert board.get("j").result == {"receipt": ["paid", 5], "attempts": 3}
    steps = board.get("j", fields=["steps"]).steps
    assert {step: value.value for step, value in steps.items()} == {"charge": ["paid", 5], "rows": 5}


def test_a_step_that_a_limit_refuses_fails_the_try(app) -> None:
    app.board.settings_set({"max-steps": 0})
    app.board.post({"rows": 1, "fail_at": []}, id="j", name="stepwise", retries=0)
    assert app().run(burst=True)
    job = app.board.get("j")
    assert (job.state, job.kind, app.told()) == ("failed", "Limit", ["j charge"])


def test_the_first_value_counts_also_when_another_worker_was_quicker(jobs) -> None:
    @jobs.handler("charge")
    def charge(context, payload):
        def pay():
            jobs.step(context.worker, context.id, "pay", "theirs", context.token)
            return "ours"

        return context.step("pay", pay)

    jobs.post(None, id="j", name="charge", retain="1m")
    assert [ran.state for ran in run_inline(jobs, raising=True)] == ["complete"]
    job = jobs.get("j")
    assert job.result == "theirs"


def test_a_name_that_is_used_twice_is_refused(jobs) -> None:
    @jobs.handler()
    def twice(context, payload):
        context.step("a", int)
        context.step("a", int)

    jobs.post(None, id="j", retries=0)
    with pytest.raises(ValueError, match="two steps of this run are called 'a'"):
        run_inline(jobs, raising=True)


def test_an_async_function_belongs_to_astep(jobs) -> None:
    async def pay():
        return 1

    @jobs.handler()
    def handle(context, payload):
        context.step("pay", pay)

    jobs.post(None, retries=0)
    with pytest.raises(TypeError, match=r"await context.astep\('pay'"):
        run_inline(jobs, raising=True)


@pytest.mark.parametrize("every", [0, -1])
def test_every_is_at_least_one(jobs, every) -> None:
    @jobs.handler()
    def handle(context, payload):
        list(context.iterate("rows", [1], every=every))

    jobs.post(None, retries=0)
    with pytest.raises(ValueError, match="every must be at least 1"):
        run_inline(jobs, raising=True)


def test_a_position_is_stored_as_often_as_asked(jobs) -> None:
    seen: list[int] = []

    @jobs.handler()
    def handle(context, payload):
        for row in context.iterate("rows", iter(range(7)), every=3):
            seen.append(row)
            if row == 4 and context.attempt == 1:
                raise Retry(delay="0s")

    jobs.post(None, id="j", retain="1m")
    assert len(run_inline(jobs)) == 2
    assert seen == [0, 1, 2, 3, 4, 3, 4, 5, 6]
    assert jobs.get("j", fields=["steps"]).steps["rows"].value == 7


def test_a_step_of_another_sort_is_no_position(jobs) -> None:
    @jobs.handler()
    def handle(context, payload):
        if context.attempt == 1:
            context.step("rows", str)
            raise Abandon
        list(context.iterate("rows", [1]))

    jobs.post(None, retries=0)
    assert "does not count items" in str(run_inline(jobs)[-1].error)


def test_steps_are_forgotten_by_name_or_altogether(jobs) -> None:
    calls: list[str] = []

    @jobs.handler()
    def handle(context, payload):
        context.step("a", calls.append, "a")
        context.step("b", calls.append, "b")
        raise jobboard.NoRetry("later")

    jobs.post(None, id="j")
    run_inline(jobs)
    jobs.requeue("j")
    run_inline(jobs)
    assert calls == ["a", "b"]
    jobs.update("j", unstep=["b"])
    jobs.requeue("j")
    run_inline(jobs)
    assert calls == ["a", "b", "b"]
    jobs.requeue("j", fresh=True)
    run_inline(jobs)
    assert calls == ["a", "b", "b", "a", "b"]
    jobs.requeue_where({"state": "failed"}, fresh=True)
    assert jobs.get("j", fields=["steps"]).steps is None


def test_the_verb_gives_the_value_that_counts(jobs) -> None:
    jobs.post(None, id="j")
    [job] = jobs.claim("w")
    assert jobs.step("w", "j", "a", {"n": 1}, job.token) == (jobs.get("j").deadline, False, {"n": 1})
    assert jobs.step("w", "j", "a", {"n": 2}, job.token, lease="1m").value == {"n": 1}
    assert jobs.step("w", "j", "a", {"n": 2}, job.token, replace=True).value == {"n": 2}
    found = jobs.get("j", fields=["id", "steps"])
    assert found.steps["a"].value == {"n": 2} and found.steps["a"].at > 0
    assert found.as_dict()["steps"]["a"]["value"] == {"n": 2}
    jobs.settings_set({"max-steps": 1})
    with pytest.raises(Limit, match="max-steps"):
        jobs.step("w", "j", "b", 1)


def test_a_step_waits_for_a_server_that_is_away(fresh_server, work) -> None:
    server = fresh_server(config=["appendonly yes", "appendfsync always"])
    board = Board("board", server.client(decode_responses=False))

    @board.handler()
    def handle(context, payload):
        def pay():
            server.kill()
            return "paid"

        return context.step("pay", pay)

    board.post(None, id="j", retain="1h")
    port = server.port
    running = work(board, register=False, listen=False)
    wait_until(lambda: server.process is None, what="the kill")
    server.start()
    assert server.port == port
    board = Board("board", server.client(decode_responses=False))
    wait_until(lambda: board.state("j") == "complete", what="the end of the job")
    assert board.get("j", fields=["steps"]).steps["pay"].value == "paid"
    assert board.get("j").attempt == 1
    running.stop()


def test_steps_of_an_async_board(server) -> None:
    async def play() -> None:
        import redis.asyncio

        board = jobboard.AsyncBoard("board", redis.asyncio.Redis(port=server.port))
        seen: list[int] = []

        @board.handler()
        async def handle(context, payload):
            async def rows():
                for n in range(3):
                    yield n

            value = await context.astep("a", asyncio.sleep, 0, "slept")
            async for row in context.aiterate("rows", rows()):
                seen.append(row)
            return [value, await context.astep("b", str, 5), seen]

        await board.post(None, id="j", retain="1m")
        assert await Worker(board).serve(burst=True)
        assert (await board.get("j")).result == ["slept", "5", [0, 1, 2]]

    asyncio.run(play())
