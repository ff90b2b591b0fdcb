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
    own = ["--url", f"redis://127.0.0.1:{server.port}", "--wait", "10s"]
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
            TimeoutError, match="has not ended in time, and could not be cancelled: "
        ) as caught:
            theirs.call(1, within="1ms")
        assert isinstance(caught.value.__cause__, redis.exceptions.NoPermissionError)
        ended(jobs, "complete")
        with pytest.raises(JobUnknown, match="JOB.EXPLAIN, which knows how it ended, may not be asked"):
            theirs.result("a", timeout="1s")
    finally:
        server.client().execute_command("ACL", "DELUSER", "producer")
