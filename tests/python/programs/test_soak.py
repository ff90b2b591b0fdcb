"""A short run of `make soak`, and its verdicts: they must find what they are there to find."""

from __future__ import annotations

import pytest
from churn import Soak
from verdicts import Quarters, steady
from watch import STANDING, Sample


@pytest.mark.long
@pytest.mark.thorough
@pytest.mark.timeout(180)
def test_the_counts_are_true_after_a_short_run(server_kind):
    soak = Soak(server_kind, 12, seed=5, scale=0.03)
    try:
        verdicts = soak.run(show=False, wanted=["PING", "JOB.CLAIM", "due job", "ended lease", "schedule"])
        assert soak.wrong == []
        assert [verdict for verdict in verdicts if not verdict.good and not verdict.steady] == []
        assert soak.counts["completed", "soak:jobs"] > 0 and soak.counts["boards made", ""] > 0
    finally:
        soak.close()


def quarters(**growing: float) -> Quarters:
    """A run of 400 s in which these numbers grow so much (a share) from beginning to end."""
    level = {
        "records": 50_000.0,
        "bytes each": 300.0,
        "board bytes each": 250.0,
        "rss": 4e7,
        "fragmentation": 1.1,
        "boards": 5.0,
        "blocked_claims": 3.0,
        "waiting_clients": 2.0,
        "timer_boards": 20.0,
    }
    for size in ("queues", "workers", "schedules", "tombstones"):
        level.update({f"{key} {size}": 100.0 for key in STANDING})
    times = {"PING": 200.0, "JOB.CLAIM": 300.0, "due job": 900.0}

    def at(name: str, base: float, second: int) -> float:
        return base * (1 + growing.get(name, growing.get(name.rpartition(" ")[2], 0)) * second / 400)

    samples, spent = [], 0.0
    for second in range(400):
        spent += at("JOB.POST", 10.0, second) * 100
        numbers = {name: at(name, base, second) for name, base in level.items()}
        numbers |= {"commands": second * 100.0, "cpu": spent / 1e6}
        numbers |= {"calls JOB.POST": second * 100.0, "usec JOB.POST": spent}
        samples.append(Sample(second, numbers))
    measured = {
        what: [(second, at(what, base, second)) for second in range(400)] for what, base in times.items()
    }
    return Quarters(samples, measured, 400)


def bad(run: Quarters) -> list[str]:
    return [verdict.question for verdict in steady(run) if not verdict.good]


def test_a_run_that_stays_as_it_was_is_good():
    assert bad(quarters()) == []


@pytest.mark.parametrize(
    ("growing", "said"),
    [
        ({"bytes each": 0.1}, "used_memory"),
        ({"board bytes each": 0.1}, "JOB.INFO"),
        ({"rss": 0.2}, "resident"),
        ({"fragmentation": 0.2}, "fragmentation"),
        ({"records": 0.5}, "population"),
        ({"queues": 0.5}, "queues"),
        ({"tombstones": 0.5}, "tombstones"),
        ({"timer_boards": 50}, "timer_boards"),
        ({"PING": 50}, "PING"),
        ({"JOB.CLAIM": 50}, "JOB.CLAIM"),
        ({"JOB.POST": 3}, "JOB.POST, time in the server"),
        ({"due job": 8}, "due job"),
    ],
    ids=str,
)
def test_what_grows_is_found(growing, said):
    assert any(said in question for question in bad(quarters(**growing)))
