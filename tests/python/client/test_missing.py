"""What a worker takes for new after commands without an answer: of all else it does not know the age."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import jobboard
import pytest
import redis
from jobboard import Board
from jobboard.worker.engine import UNCERTAIN, Engine

LEASE = 60_000


class Claims:
    """A worker without a server: each claim gets no answer, or tokens one behind the other."""

    def __init__(self, **options: Any) -> None:
        board = Board("board", redis.Redis())
        board.handler()(lambda context, payload: None)
        self.engine = Engine(board, jobboard.Worker(board, **options).options, Mock())
        self.engine.senders = {"board": Mock()}
        [self.shard] = self.engine.shards
        self.shard.__dict__["_job"] = lambda job: job
        self.token = 1

    def ask(self) -> bool:
        """Whether it asks for what it may have missed."""
        self.engine.asked = self.engine.options.concurrency
        return "SEEN" in self.engine.claim_words(self.shard, self.engine.asked)

    def lost(self) -> None:
        self.ask()
        self.engine.troubled([self.shard], self.shard)

    def trouble(self) -> None:
        """Another command than a claim has got no answer."""
        self.engine.troubled([self.shard])

    def bring(self, count: int | None = None) -> str:
        """One letter for each job that comes: new or old. They end at once."""
        self.ask()
        count = self.engine.asked if count is None else count
        jobs = [
            SimpleNamespace(id="a", token=self.token + n, claimed=0, deadline=LEASE) for n in range(count)
        ]
        self.token += count
        self.engine.claimed(self.shard, jobs)
        leases = [run.lease for run in self.engine.held.values()]
        self.engine.held.clear()
        self.engine.busy = 0
        assert {*leases} <= {LEASE, UNCERTAIN}
        return "".join("n" if lease == LEASE else "o" for lease in leases)


def test_all_is_new_without_trouble() -> None:
    claims = Claims(concurrency=2)
    assert [claims.bring() for _ in range(3)] == ["nn", "nn", "nn"]
    claims.trouble()
    assert claims.ask(), "an end may be lost"
    assert [claims.bring() for _ in range(3)] == ["nn", "nn", "nn"]


@pytest.mark.parametrize(("losses", "wanted"), [(1, "oo oo nn nn"), (2, "oo oo oo nn"), (9, "oo oo oo nn")])
def test_what_comes_after_as_many_as_may_be_missing_is_new(losses, wanted) -> None:
    """The first answer may be older than a claim without one that the server reads late."""
    claims = Claims(concurrency=2)
    claims.bring()
    for _ in range(losses):
        claims.lost()
    assert " ".join(claims.bring() for _ in range(4)) == wanted
    assert claims.ask(), "until a claim brings less than it asks for"


def test_a_claim_that_brings_less_than_it_asks_for_has_brought_all() -> None:
    claims = Claims(concurrency=3)
    claims.bring()
    claims.lost()
    assert claims.bring(1) == "o"
    assert not claims.ask()
    assert claims.bring() == "nnn"


def test_other_commands_without_an_answer_hide_no_jobs() -> None:
    claims = Claims(concurrency=2)
    claims.bring()
    claims.lost()
    found = []
    for _ in range(4):
        claims.trouble()
        found.append(claims.bring())
    assert found == ["oo", "oo", "nn", "nn"]


def test_a_shard_that_has_nothing_has_nothing_that_is_missing() -> None:
    claims = Claims(concurrency=2)
    claims.bring()
    claims.lost()
    claims.ask()
    claims.engine.found_none(claims.shard)
    assert not claims.ask()
    assert claims.bring() == "nn"


def test_jobs_of_an_earlier_process_of_this_name_may_be_of_any_number() -> None:
    claims = Claims(name="w1", concurrency=2)
    claims.trouble()
    assert {claims.bring() for _ in range(9)} == {"oo"}
    assert claims.bring(0) == ""
    assert claims.bring() == "nn"


def test_a_first_claim_that_finds_nothing_says_nothing_of_an_earlier_process() -> None:
    claims = Claims(name="w1", concurrency=2)
    assert claims.bring(0) == ""
    claims.trouble()
    assert claims.bring() == "oo"


def test_none_is_left_of_a_process_that_was_ended() -> None:
    claims = Claims(name="w1", concurrency=2)
    claims.engine.started_anew(claims.shard)
    claims.trouble()
    assert claims.bring() == "nn"
