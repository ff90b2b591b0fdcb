"""Handlers that wait for children, in every mode of a worker, and the options that say so."""

from __future__ import annotations

import pytest
from jobboard import After, Node
from jobboard.board.context import Children
from jobboard.testing import run_inline


@pytest.mark.parametrize("name", ["batch", "batch-async"])
def test_a_job_posts_its_parts_and_adds_them_up(app, name) -> None:
    board = app.board
    board.post({"parts": 3}, id="j", name=name, retain="1m")
    assert app(concurrency=1).run(burst=True)  # no part ends while it begins to wait
    job = board.get("j")
    assert (job.state, job.result, job.attempt) == ("complete", [3, 0, 0, [0, 1, 4]], 2)
    assert app.told().count("j posted") == 1


def test_what_failed_is_counted(jobs) -> None:
    @jobs.handler("sum")
    def add(context, payload):
        options = {"name": "part", "parent": context.id, "retries": 0}
        context.step("parts", lambda: context.board.post_many(range(3), **options))
        return list(context.wait_for_children("run"))

    @jobs.handler("part")
    def part(context, payload):
        if payload == 1:
            raise KeyError(payload)

    jobs.post(None, id="j", name="sum", retain="1m")
    run_inline(jobs)
    assert jobs.get("j").result == [3, 0, 1]
    assert Children(3, 0, 1) == tuple(jobs.get("j").result)


def test_except_exception_does_not_swallow_it(jobs) -> None:
    @jobs.handler("sum")
    def add(context, payload):
        try:
            return context.wait_for_children()
        except Exception:
            return "swallowed"

    jobs.post(None, id="j", name="sum")
    jobs.post(None, id="k", name="sum", parent="j", queue="other")
    run_inline(jobs, queues=["default"])
    awaits = jobs.get("j").awaits
    assert (jobs.state("j"), awaits.signals, awaits.since) == ("blocked", [], None)
    assert awaits.children.onfailure == "hold" and awaits.children.since > 0
    assert (jobs.get("j").children, jobs.get("j").pending, jobs.get("j").unsuccessful) == (1, 1, 0)


def test_posts_flows_and_queues_wait(jobs) -> None:
    jobs.flow([Node("sum", 1, id="sum", after_children="cancel"), Node("part", 2, id="part", parent="sum")])
    assert (jobs.state("sum"), jobs.get("sum").awaits.children.onfailure) == ("blocked", "cancel")
    jobs.post(1, id="first")
    both = {"after": [After(["first"], "run")], "after_children": True}
    jobs.post(1, id="sum", replace=True, **both)
    assert jobs.get("sum").after == ["first"]
    assert jobs.get("sum").awaits.children.onfailure == "hold"
    jobs.post(1, id="sum", replace=True, after=[])
    assert jobs.state("sum") == "ready"
    jobs.claim_id("w1", "sum")
    assert (
        jobs.consume("w1", "sum", next="on", after=["first"], onfailure="run", after_children="fail")
        == "blocked"
    )
    assert jobs.depend_remove("sum", "first") == "blocked"
    assert jobs.depend_remove("sum", children=True) == "ready"
    assert jobs.depend_add("sum", children=True, onfailure="run") == "blocked"
    assert jobs.depend_clear("sum") == "ready"


def test_a_worker_of_ones_own_waits(jobs) -> None:
    jobs.post(1, id="p")
    jobs.post(1, id="c", parent="p")
    token = jobs.claim_id("w1", "p").token
    assert jobs.await_children("w1", "p", token, payload="half").state == "blocked"
    assert jobs.get("p").payload == "half"
    jobs.delete("c")
    jobs.signal("go", "p")
    jobs.claim_id("w1", "p")
    both = jobs.await_signals("w1", "p", "go", children="run")
    assert (both.state, list(both.signals), both.children, both.pending) == ("claimed", ["go"], 0, 0)


@pytest.mark.parametrize("value", ["stop", 7])
def test_what_is_no_word_for_a_failure_is_refused(jobs, value) -> None:
    with pytest.raises((ValueError, TypeError), match="after_children"):
        jobs.post(None, after_children=value)
    with pytest.raises((ValueError, TypeError)):
        jobs.await_children("w1", "j", onfailure=value)


def test_one_command_is_about_one_kind(jobs) -> None:
    with pytest.raises(ValueError, match="ids and children exclude each other"):
        jobs.depend_add("a", "b", children=True)
    with pytest.raises(ValueError, match="signals and children exclude each other"):
        jobs.depend_remove("a", signals=True, children=True)
