"""What a job came to: complete, failed, deleted and unknown are told apart, also when no record was kept."""

from __future__ import annotations

import jobboard
import pytest
import redis
from jobboard import JobFailed, JobUnknown, NoResult, ResultDropped, Worker


def ended(jobs: jobboard.Board, how: str) -> None:
    jobs.handlers = jobboard.Handlers()

    @jobs.handler()
    def handler(context, payload):
        if how == "failed":
            raise jobboard.NoRetry("no")
        if how == "trashed":
            raise jobboard.Trash("no")

    jobs.settings_set({f"retain-{what}": "0s" for what in ("failed", "cancelled", "trashed")})
    jobs.post(1, id="a", retain="0s", delay="1d" if how == "cancelled" else None)
    if how == "cancelled":
        jobs.cancel("a")
    else:
        Worker(jobs).run(burst=True)
    assert jobs.get("a") is None


def test_a_result_that_was_not_kept_is_no_failure(jobs) -> None:
    ended(jobs, "complete")
    with pytest.raises(ResultDropped, match="a complete: its record was not kept") as caught:
        jobs.result("a", timeout="1s")
    assert caught.value.state == "complete" and not isinstance(caught.value, JobFailed)
    assert jobs.state("a") == "complete"


@pytest.mark.parametrize("how", ["failed", "trashed", "cancelled"])
def test_how_it_ended_is_known_without_a_record(jobs, how) -> None:
    ended(jobs, how)
    with pytest.raises(JobFailed, match=f"a {how}: its record was not kept") as caught:
        jobs.result("a", timeout="1s")
    assert caught.value.state == how
    assert jobs.state("a") == how


@pytest.mark.parametrize("how", ["forgotten", "deleted", "never posted"])
def test_an_unknown_job_is_told_as_such(jobs, how) -> None:
    if how == "forgotten":
        jobs.settings_set({"tombstones": 0})
        ended(jobs, "complete")
    elif how == "deleted":
        jobs.post(1, id="a")
        jobs.delete("a")
    with pytest.raises(JobUnknown) as caught:
        jobs.result("a", timeout="1s")
    assert caught.value.state == "unknown" and isinstance(caught.value, NoResult)
    assert jobs.state("a") is None


def test_the_command_line_tells_them_apart(jobs, server, capsys, work) -> None:
    from jobboard.cli import main

    @jobs.handler("none")
    def none(context, payload):
        pass

    @jobs.handler("fails")
    def fails(context, payload):
        raise jobboard.NoRetry("no")

    work(jobs)
    own = ["--url", f"redis://127.0.0.1:{server.port}", "--wait", "60s"]
    assert main(["post", "board", "1", "--name", "none", *own]) == 0
    assert capsys.readouterr().out == "null\n"
    assert main(["post", "board", "1", "--name", "fails", *own]) == 1
    assert "failed: NoRetry: no" in capsys.readouterr().err


def test_who_may_not_cancel_is_told_that_the_time_has_passed(server, jobs) -> None:
    """The role of producers in redis.conf."""
    rights = ["-@all", "+job.post", "+job.wait", "+job.get", "+hello", "+client"]
    server.client().execute_command("ACL", "SETUSER", "producer", "on", ">secret", "~*", *rights)
    try:
        theirs = jobboard.Board("board", f"redis://producer:secret@127.0.0.1:{server.port}")
        with pytest.raises(
            TimeoutError, match="it is ready, and no worker has claimed it, and could not be cancelled: "
        ) as caught:
            theirs.call(1, within="1ms")
        assert isinstance(caught.value.__cause__, redis.exceptions.NoPermissionError)
        ended(jobs, "complete")
        with pytest.raises(JobUnknown, match="JOB.EXPLAIN, which knows how it ended, may not be asked"):
            theirs.result("a", timeout="1s")
    finally:
        server.client().execute_command("ACL", "DELUSER", "producer")


def test_who_waits_in_vain_is_told_where_the_job_is(jobs) -> None:
    jobs.post(1, id="ready")
    jobs.post(1, id="scheduled", delay="1h")
    jobs.post(1, id="blocked", after=["ready"])
    jobs.post(1, id="claimed", queue="other")
    jobs.claim("w", queues=["other"])
    for id, said in (
        ("ready", "it is ready, and no worker has claimed it"),
        ("scheduled", "it is scheduled: its time has not come"),
        ("blocked", "it is blocked: it waits for other jobs or for signals"),
        ("claimed", "it is claimed: a worker is at it"),
    ):
        with pytest.raises(TimeoutError, match=f"^{id} has not ended in time: {said}$"):
            jobs.result(id, timeout="1ms")


def test_a_cancelled_job_says_so_once(jobs, caplog) -> None:
    @jobs.task()
    def looks(context: jobboard.Context) -> None:
        jobs.cancel(context.id)
        while True:
            context.check()

    id = looks.post()
    with caplog.at_level("INFO", "jobboard.worker"):
        Worker(jobs, concurrency=1).run(burst=True)
    with pytest.raises(JobFailed) as caught:
        jobs.result(id)
    assert str(caught.value) == f"{id} cancelled"
    [line] = [one.getMessage() for one in caplog.records if getattr(one, "outcome", None) == "cancelled"]
    assert line.startswith(f"looks {id} cancelled in ") and line.endswith("(queue default, attempt 1)")
