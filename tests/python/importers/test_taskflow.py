"""`jobboard import taskflow`, on postings of TaskFlow's redis jobboard; read by the driver."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("taskflow", reason="TaskFlow 6.5 needs Python 3.11")

import redis  # noqa: E402
from harness import Server  # noqa: E402
from taskflow.jobs import backends  # noqa: E402
from taskflow.utils import persistence_utils  # noqa: E402


@pytest.fixture
def theirs(server: Server) -> Iterator[Any]:
    with backends.backend("test", {"board": "redis", "port": server.port}) as board:
        yield board


@contextlib.contextmanager
def driver(server: Server, key: str = "board") -> Iterator[Any]:
    with backends.backend("test", {"board": "jobboard", "port": server.port, "namespace": key}) as board:
        yield board


def test_postings_come_in_their_order_with_all_they_hold(server: Server, theirs, imported):
    book = persistence_utils.temporary_log_book()
    details = [{"to": "ann"}, {"at": datetime.datetime(2026, 1, 2)}, {}, {"n": [1, 2]}]
    for number, priority in enumerate(["low", "high", "normal", "normal"]):
        theirs.post(f"{number}", book if number == 0 else None, details[number], priority=priority)
    before = {job.uuid: job for job in theirs.iterjobs()}
    assert imported("taskflow")[0] == 0
    assert theirs.job_count == 0
    with driver(server) as board:
        jobs = list(board.iterjobs())
        assert [job.name for job in jobs] == ["1", "2", "3", "0"]
        for job in jobs:
            old = before[job.uuid]
            assert (job.details, job.priority) == (old.details, old.priority)
            assert (job.book_uuid, job.book_name) == (old.book_uuid, old.book_name)
            created = server.board().get(job.uuid, fields=["meta"])["meta"]["created"]
            stamp = old.created_on.replace(tzinfo=datetime.timezone.utc).timestamp()
            assert abs(int(created) - stamp * 1000) <= 1
        board.claim(jobs[0], "me")
        board.consume(jobs[0], "me")


def test_claimed_postings_stay_unless_they_are_asked_for(server: Server, theirs, imported):
    for name in ("claimed", "free"):
        theirs.post(name)
    theirs.claim(next(job for job in theirs.iterjobs() if job.name == "claimed"), "me", expiry=600)
    code, output = imported("taskflow")
    assert code == 0
    assert "not asked for: 1 running of taskflow" in output
    assert [job.name for job in theirs.iterjobs()] == ["claimed"]
    assert imported("taskflow", "board", "--running")[0] == 0
    with driver(server) as board:
        assert [job.name for job in board.iterjobs(only_unclaimed=True)] == ["free", "claimed"]
    assert theirs.job_count == 0


def test_the_trash_comes_along(server: Server, source: redis.Redis, theirs, imported):
    job = theirs.post("broken", details={"a": 1})
    theirs.claim(job, "me")
    theirs.trash(job, "me")
    assert imported("taskflow")[0] == 0
    with driver(server) as board:
        [found] = board.trashed()
        assert (found.uuid, found.details, board.job_count) == (job.uuid, {"a": 1}, 0)
    assert not source.exists("taskflow:trash")


def test_what_is_no_posting_stays(server: Server, source: redis.Redis, theirs, imported):
    theirs.post("work")
    source.hset("taskflow:listings", "other", "no msgpack")
    code, output = imported("taskflow", "board", "taskflow")
    assert (code, server.board().count(), source.hlen("taskflow:listings")) == (1, 1, 1)
    assert "stays: other: it is no posting of TaskFlow" in output


def test_namespaces_can_be_named(server: Server, theirs, imported):
    theirs.post("work")
    assert imported("taskflow", "board", "elsewhere")[0] == 0
    assert theirs.job_count == 1
