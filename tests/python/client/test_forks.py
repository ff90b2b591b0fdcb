"""Jobs that fork processes."""

from __future__ import annotations

import signal

import pytest

MODES = {"threads": ["--threads", "1"], "processes": ["--processes", "1"], "asyncio": ["--tasks", "1"]}


@pytest.mark.parametrize("mode", MODES)
def test_a_signal_to_a_forked_process_is_its_own(jobs, process, until, mode) -> None:
    """With the worker's handlers it would not end, and the worker would take it for one of its own."""
    jobs.post(1, id="a", name="fork-ended", retain="1m")
    worker = process(*MODES[mode])
    until(lambda: jobs.state("a") == "complete", what="it has ended")
    assert jobs.get("a").result == -signal.SIGTERM
    jobs.post(3, id="b", name="square", retain="1m")
    until(lambda: jobs.state("b") == "complete", what="the worker works on")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0


def test_a_process_that_dies_is_seen_while_one_that_it_has_forked_lives(jobs, process, until) -> None:
    jobs.post(1, id="a", name="fork-and-die", retries=0)
    worker = process(*MODES["processes"])
    until(lambda: jobs.state("a") == "failed", what="its death is seen")
    jobs.client.rpush("go", "on")
    until(lambda: not jobs.client.llen("go"), what="the forked one ends")
    assert jobs.get("a").kind == "Killed"
    jobs.post(3, id="b", name="square", retain="1m")
    until(lambda: jobs.state("b") == "complete", what="another process has its place")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
