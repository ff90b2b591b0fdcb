"""Jobs of names that a worker does not know, as in a rolling deploy: they go back, and cost nothing."""

from __future__ import annotations

import logging

import pytest
from jobboard import Handlers, Worker
from jobboard.worker import unhandled

MODES = ["threads", "asyncio", "processes"]


@pytest.mark.parametrize("mode", MODES)
def test_an_old_worker_gives_new_jobs_back_to_new_ones(
    jobs, work, until, mode, server, monkeypatch, caplog
) -> None:
    monkeypatch.setenv("JOBBOARD_URL", f"redis://127.0.0.1:{server.port}")
    import client_app

    monkeypatch.setattr(unhandled, "FIRST", 600.0)
    monkeypatch.setattr(unhandled, "MOST", 600.0)
    jobs.handlers = client_app.board.handlers
    ids = jobs.post_many(range(5), name="new", retries=0, elsewhere=True)
    old = Worker(jobs, mode=mode, concurrency=2, lease="3s", target="client_app:board")
    with caplog.at_level(logging.WARNING, "jobboard.worker"):
        old.run(burst=True)
    for job in jobs.get_many(ids):
        assert (job.state, job.left, job.kind) == ("scheduled", 0, None)
        assert job.reason == "no handler of the name 'new' in the queue 'default'"
        assert 290_000 < job.due - job.modified <= 600_000
    told = [one for one in caplog.messages if "no handler of the name 'new'" in one]
    assert len(told) == 1, caplog.messages
    jobs.update(*ids, delay="0s")
    jobs.handlers = Handlers()
    jobs.handlers.handler("new")(lambda context, payload: payload)
    new = Worker(jobs)
    new.run(burst=True)
    assert [jobs.result(id, timeout="1s") for id in ids] == list(range(5))


def test_where_no_worker_knows_a_name_nobody_is_kept_busy() -> None:
    """The longest wait bounds how often a job comes, however many there are."""
    known = unhandled.UnhandledJobs()
    waits = [known.wait("a") for _ in range(20)]
    assert 0.5 <= waits[0] <= 1.0
    assert all(15 <= wait <= 30 for wait in waits[6:])
    assert known.wait("b") <= 1.0


def test_names_that_somebody_makes_up_fill_no_memory(monkeypatch) -> None:
    monkeypatch.setattr(unhandled, "NAMES", 3, raising=False)
    found = unhandled.UnhandledJobs()
    for number in range(10):
        found.wait(f"name {number}")
    assert found.wait("name 9") >= 1.0, "the newest are remembered"
    assert len(found._next) == 3
