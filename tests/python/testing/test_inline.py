"""The worker that runs handlers inline."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import datetime

import jobboard
import pytest
from jobboard import Abandon, Complete, Next, Retry, Trash
from jobboard.testing import Ran, TestServer, run_inline, run_inline_async


@pytest.fixture(scope="module")
def private() -> Iterator[TestServer]:
    server = TestServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def board(private: TestServer) -> jobboard.Board:
    private.empty()
    return private.board("mails")


def test_a_handler_runs_in_the_thread_of_the_test(board) -> None:
    @board.handler("welcome")
    def welcome(context, payload):
        assert threading.current_thread() is threading.main_thread()
        context.progress(50, "writing")
        context.log("a line")
        context.set_meta(host="web-1")
        assert context.flush()
        assert context.board.get(context.id).progress == 50
        return f"Hello {payload['to']}"

    id = board.post({"to": "ann"}, name="welcome")
    assert run_inline(board) == [Ran(id, "welcome", "default", 1, "complete", None)]
    assert board.result(id) == "Hello ann"
    record = board.get(id)
    assert record.stage == "writing" and record.meta == {"host": "web-1"}
    assert "a line" in [event.get("message") for event in board.history(id)]
    assert run_inline(board) == []


def test_a_task_gets_its_arguments_and_posts_others(board) -> None:
    @board.task(queue="mails")
    def welcome(to: str, when: datetime) -> str:
        again.post(to)
        return f"Hello {to} at {when.hour}"

    @board.task(queue="later")
    async def again(to: str) -> None: ...

    id = welcome.post("ann", datetime(2026, 1, 1, 8))
    assert [(run.name, run.queue, run.state) for run in run_inline(board)] == [
        ("welcome", "mails", "complete"),
        ("again", "later", "complete"),
    ]
    assert welcome.result(id) == "Hello ann at 8"


def test_it_goes_on_until_nothing_is_ready(board) -> None:
    """Also with what handlers post, in any queue, and with the next steps of a job."""

    @board.handler("first")
    def first(context, payload):
        context.board.post(payload + 1, name="second", queue="other")
        return Next("third", payload + 2, name="third")

    @board.handler("second")
    def second(context, payload):
        return payload

    @board.handler("third")
    async def third(context, payload):
        await asyncio.sleep(0)
        return payload

    board.post(1, name="first", id="a")
    ran = run_inline(board, queues=[])
    assert sorted((run.name, run.queue, run.state) for run in ran) == [
        ("first", "default", "ready"),
        ("second", "other", "complete"),
        ("third", "third", "complete"),
    ]
    assert board.result("a") == 3


def test_it_claims_from_the_queues_from_which_a_worker_claims(board) -> None:
    """So it leaves a dead queue alone."""
    board.settings_set({"dead-queue": "unsent"}, queue="mails")

    @board.task(queue="mails", retries=0)
    def send(to: str) -> None:
        raise LookupError(to)

    id = send.post("ann")
    assert [(run.id, run.queue, run.state) for run in run_inline(board)] == [(id, "mails", "ready")]
    assert board.get(id).queue == "unsent"
    assert run_inline(board) == []
    assert [run.queue for run in asyncio.run(run_inline_async(board, queues=["unsent"]))] == ["unsent"]


def test_a_failed_try_waits_for_its_time(board, private) -> None:
    tries = []

    @board.handler()
    def once_in_a_while(context, payload):
        tries.append(context.attempt)
        if context.attempt < 3:
            raise KeyError("not yet")
        return "done"

    id = board.post(1, retries=3, backoff="10m", jitter=0)
    [run] = run_inline(board)
    assert run.state == "scheduled" and isinstance(run.error, KeyError)
    assert run_inline(board) == []
    private.clock.advance("10m")
    [run] = run_inline(board)
    assert (run.attempt, run.state) == (2, "scheduled")
    private.clock.advance("10m")
    [run] = run_inline(board)
    assert (run.attempt, run.state, run.error) == (3, "complete", None)
    assert tries == [1, 2, 3] and board.result(id) == "done"


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (Retry("later", delay="1h"), "scheduled"),
        (Abandon(delay="1h"), "scheduled"),
        (Trash("no use"), "trashed"),
        (jobboard.NoRetry("gone"), "failed"),
    ],
)
def test_what_handlers_raise_means_what_it_means_to_a_worker(board, outcome, state) -> None:
    @board.handler()
    def handler(context, payload):
        raise outcome

    id = board.post(1, retries=5)
    [run] = run_inline(board)
    assert (run.id, run.state, run.error) == (id, state, outcome)


def test_what_a_handler_raises_can_be_raised(board) -> None:
    @board.handler()
    def handler(context, payload):
        return 1 / payload

    board.post(0, id="a", retries=0)
    board.post(1, id="b")
    with pytest.raises(ZeroDivisionError):
        run_inline(board, raising=True)
    assert board.state("a") == "failed" and board.state("b") == "ready"
    [run] = run_inline(board, raising=True)
    assert run.state == "complete"


def test_a_cancel_reaches_the_handler(board) -> None:
    @board.handler()
    def handler(context, payload):
        context.board.cancel(context.id)
        context.log("the server says it in the answer to this")
        context.check()
        raise AssertionError("it should have been stopped")

    id = board.post(1)
    [run] = run_inline(board)
    assert isinstance(run.error, jobboard.CancelRequested)
    assert board.state(id) == "cancelled"


def test_a_cancelled_job_that_completes_is_cancelled_unless_it_is_forced(board) -> None:
    @board.handler()
    def handler(context, payload):
        context.board.cancel(context.id)
        return Complete("done", force=payload)

    board.post(False, id="a")
    board.post(True, id="b")
    run_inline(board)
    assert (board.state("a"), board.state("b")) == ("cancelled", "complete")


def test_a_job_without_a_handler_is_given_back(board) -> None:
    @board.handler("known")
    def handler(context, payload): ...

    board.post(1, name="unknown", elsewhere=True)
    [run] = run_inline(board)
    assert isinstance(run.error, jobboard.NoHandler) and run.state == "scheduled"


def test_only_some_queues(board) -> None:
    @board.handler()
    def handler(context, payload): ...

    board.post(1, queue="a")
    board.post(1, queue="b")
    assert [run.queue for run in run_inline(board, queues=["b"])] == ["b"]


def test_a_handler_that_never_ends_its_work_is_told_of(board) -> None:
    @board.handler()
    def handler(context, payload):
        context.board.post(1)

    board.post(1)
    with pytest.raises(RuntimeError, match="20 jobs were run, and more are ready"):
        run_inline(board, at_most=20)
    assert board.count(state="claimed") == 0 and board.count(state="ready") == 1


def test_a_sharded_board(private) -> None:
    private.empty()
    shop = jobboard.ShardedBoard("shop", private.client, shards=3)

    @shop.handler()
    def handler(context, payload):
        return payload

    shop.post_many(range(10), ids=[f"id-{number}" for number in range(10)])
    assert sorted(run.id for run in run_inline(shop)) == [f"id-{number}" for number in range(10)]


def test_async_handlers_run_in_the_loop_of_the_test(board) -> None:
    loops = []

    @board.handler("async")
    async def handler(context, payload):
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return payload

    @board.handler("plain")
    def plain(context, payload):
        return payload

    board.post(1, name="async")
    board.post(2, name="plain")

    async def test() -> None:
        ran = await run_inline_async(board)
        assert [run.state for run in ran] == ["complete", "complete"]
        assert loops == [asyncio.get_running_loop()]
        board.post(1, name="async")
        with pytest.raises(RuntimeError, match="await run_inline_async"):
            run_inline(board)

    asyncio.run(test())


def test_options_that_make_no_sense(board) -> None:
    with pytest.raises(ValueError, match="there are no tasks"):
        run_inline(board)
    with pytest.raises(TypeError, match="a worker needs a Board"):
        run_inline("mails")
