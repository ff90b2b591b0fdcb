"""What doctor, boards, queues and resume say of boards that are paused or full."""

from __future__ import annotations

import json

import pytest
from jobboard.cli import main
from jobboard.commands import condition


@pytest.fixture
def run(server, capsys):
    """run(words …) -> (what was printed, what was said beside it)"""

    def run(*words: str) -> tuple[str, str]:
        assert main([*words, "--url", f"redis://127.0.0.1:{server.port}"]) == 0
        said = capsys.readouterr()
        return said.out, said.err

    return run


def test_doctor_names_pauses_in_place_of_workers(run, jobs, monkeypatch) -> None:
    monkeypatch.setattr(condition, "STUCK", -1)
    jobs.post(1, queue="stuck")
    jobs.post(1)
    jobs.pause(queue="stuck")
    said, _ = run("doctor", "board")
    assert "queue stuck: it is paused\n      → jobboard resume board --queue stuck" in said
    assert said.count("start a worker that claims from it") == 1, "of the queue that is not paused"
    jobs.pause(for_="1h")
    said, _ = run("doctor", "board")
    assert "board board: it is paused until 2" in said and "→ jobboard resume board\n" in said
    assert "queue stuck: it is paused\n" in said and "start a worker" not in said
    jobs.resume()
    jobs.resume(queue="stuck")
    assert "paused" not in run("doctor", "board")[0]


def test_resume_says_what_stays_paused(run, jobs) -> None:
    jobs.post(1, queue="stuck", group="g")
    jobs.pause(queue="stuck")
    out, said = run("resume", "board")
    assert out == "" and "the board was not paused" in said
    assert "queue 'stuck' is paused: `jobboard resume board --queue stuck` ends that" in said
    assert run("resume", "board", "--queue", "stuck") == ("", "")
    jobs.pause()
    _, said = run("resume", "board", "--queue", "stuck")
    assert said == "the board is paused: `jobboard resume board` ends that\n"
    jobs.pause(queue="stuck")
    _, said = run("resume", "board")
    assert said == "queue 'stuck' is paused: `jobboard resume board --queue stuck` ends that\n"
    assert run("resume", "board", "--queue", "stuck") == ("", "")
    assert run("resume", "board", "--queue", "stuck") == ("", "queue 'stuck' was not paused\n")
    jobs.pause(queue="stuck", group="g")
    _, said = run("resume", "board", "--queue", "stuck")
    assert "--queue stuck --group g` ends that" in said


def test_what_is_full_is_named(run, jobs) -> None:
    jobs.post(1, queue="bulk", group="g")
    jobs.post(1, queue="other")
    assert (
        "max-jobs is" not in run("doctor", "board")[0]
        and "full:" not in run("queues", "board")[0] + run("boards")[0]
    )
    jobs.settings_set({"max-jobs": 1}, queue="bulk")
    said, _ = run("doctor", "board")
    assert "warn  queue bulk: 1 jobs that have not ended, max-jobs is 1: posts above it are refused" in said
    assert "→ jobboard settings board max-jobs=N --queue bulk" in said and said.count("max-jobs is") == 1
    lines = run("queues", "board")[0].splitlines()
    assert lines[1].startswith("bulk (full: max-jobs) ") and lines[2].startswith("other ")
    rows = json.loads(run("queues", "board", "--json")[0])
    assert [row["full"] for row in rows] == [["max-jobs"], []]
    jobs.settings_reset("max-jobs", queue="bulk")
    jobs.settings_set({"max-jobs": 1}, queue="bulk", group="*")
    assert "queue bulk, group g: 1 jobs that have not ended, max-jobs is 1" in run("doctor", "board")[0]
    jobs.settings_reset("max-jobs", queue="bulk", group="*")
    jobs.settings_set({"max-jobs": 2, "max-bytes": 100})
    said, _ = run("doctor", "board")
    assert (
        "warn  board board: 2 jobs that have not ended, max-jobs is 2" in said and "max-bytes is 100" in said
    )
    assert "full: max-jobs, max-bytes" in run("boards")[0]
    assert "the board is full: 2 jobs" in run("queues", "board")[1]
    jobs.settings_reset()
    assert "max-jobs is" not in run("doctor", "board")[0]
