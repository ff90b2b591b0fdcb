"""Handlers that wait for signals, in every mode of a worker, and the verbs that send them."""

from __future__ import annotations

import pytest
from harness import wait_until
from jobboard import Await, Board, Worker
from jobboard.jobs import Signal
from jobboard.testing import run_inline


@pytest.mark.parametrize("name", ["approval", "approval-async"])
def test_a_job_is_given_up_and_goes_on_when_it_is_approved(app, name) -> None:
    board = app.board
    board.post({"within": "1h"}, id="j", name=name, retain="1m")
    worker = app()
    worker.run(burst=True)
    job = board.get("j")
    assert (job.state, job.awaits.signals, job.awaits.missing) == ("blocked", ["approved"], ["approved"])
    assert board.signal("approved", "j", "nobody", value={"by": "eve"}, sender="eve") == ["woken", None]
    assert app().run(burst=True)
    assert board.get("j").result == [{"by": "eve"}, "eve"]
    assert app.told() == ["j draft", "j sent"]
    assert board.get("j").attempt == 2


@pytest.mark.parametrize("name", ["approval", "approval-async"])
def test_after_the_time_it_returns_none(app, name) -> None:
    board = app.board
    board.post({"within": "1ms"}, id="j", name=name, retain="1m")
    app().run(burst=True)
    wait_until(lambda: board.state("j") in ("ready", "complete"), what="the end of the wait")
    app().run(burst=True)
    assert (board.get("j").result, app.told()) == (None, ["j draft"])


def test_an_early_signal_returns_at_once(jobs) -> None:
    @jobs.handler()
    def handle(context, payload):
        return context.wait_for("approved").value

    jobs.post(None, id="j", retain="1m")
    assert jobs.signal("approved", "j", value=7) == ["kept"]
    assert [ran.state for ran in run_inline(jobs, raising=True)] == ["complete"]
    assert (jobs.get("j").result, jobs.get("j").attempt) == (7, 1)


def test_several_names_come_by_name(jobs) -> None:
    @jobs.handler()
    def handle(context, payload):
        first = context.wait_for(["a", "b"], any=True, step="first")
        return [sorted(first), sorted(context.wait_for(["a", "b"]))]

    jobs.post(None, id="j", retain="1m")
    jobs.signal("b", "j")
    run_inline(jobs, raising=True)
    assert jobs.state("j") == "blocked"
    jobs.signal("a", "j")
    run_inline(jobs, raising=True)
    assert jobs.get("j").result == [["b"], ["a", "b"]]


def test_a_name_is_waited_for_once_in_a_run(jobs) -> None:
    @jobs.handler()
    def handle(context, payload):
        context.wait_for("a")
        context.wait_for("a")

    jobs.post(None, id="j", retries=0)
    jobs.signal("a", "j")
    with pytest.raises(ValueError, match="a wait for a"):
        run_inline(jobs, raising=True)


def test_except_exception_does_not_swallow_it(jobs) -> None:
    @jobs.handler()
    def handle(context, payload):
        try:
            return context.wait_for("a")
        except Exception:
            return "swallowed"

    jobs.post(None, id="j", retries=0)
    run_inline(jobs)
    assert jobs.state("j") == "blocked"


def test_posts_have_gates(jobs) -> None:
    jobs.post(None, id="a", await_="approved")
    jobs.post(None, id="b", await_=["approved", "paid"])
    jobs.post(None, id="c", await_=Await(["approved", "paid"], any=True, within="2d", ontimeout="fail"))
    assert [job.id for job in jobs.list(awaits="paid")] == ["b", "c"]
    awaits = jobs.get("c").awaits
    assert (awaits.any, awaits.until - awaits.since, awaits.ontimeout) == (True, 172_800_000, "fail")
    assert jobs.signal_where("approved", {"awaits": "approved"}, value="yes").count == 3
    assert [jobs.state(id) for id in "abc"] == ["ready", "blocked", "ready"]
    assert jobs.get("b", fields=["signals"]).signals["approved"] == Signal(
        "yes", jobs.get("b", fields=["signals"]).signals["approved"].at, None
    )


@pytest.mark.parametrize(
    ("gate", "error"),
    [(Await("a", ontimeout="hold"), ValueError), (Await("a", within="soon"), ValueError), (7, TypeError)],
)
def test_what_is_no_gate_is_refused(jobs, gate, error) -> None:
    with pytest.raises(error):
        jobs.post(None, await_=gate)


def test_tasks_and_schedules_have_gates(server) -> None:
    board = Board("tasks", server.client(decode_responses=False))

    @board.task(await_="approved", retain="1m")
    def pay(amount: int) -> int:
        return amount

    id = pay.post(7)
    assert board.state(id) == "blocked"
    assert board.signal("approved", id) == ["woken"]
    Worker(board, mode="threads").run(burst=True)
    assert board.get(id).result == 7
    board.schedule_set("s", every="1h", name="pay", payload={"amount": 1}, await_="approved")
    assert board.state(board.schedule_run("s")) == "blocked"
