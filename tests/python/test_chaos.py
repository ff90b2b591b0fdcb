"""Short runs of `make chaos`, and the checker itself: it must find what it is there to find."""

from __future__ import annotations

import pytest
from checker import Checker
from journal import Call
from run import Run


@pytest.mark.parametrize("replicated", [False, True], ids=["one", "replicated"])
@pytest.mark.timeout(240)
def test_nothing_is_lost_in_a_short_run(server_kind, replicated):
    run = Run(server_kind, 12 if replicated else 6, seed=7, replicated=replicated)
    try:
        assert run.play() == []
        assert run.counted["jobs consumed"] > 20 and run.counted["posts that had to be there"] > 0
    finally:
        run.close(keep=False)


def post(id: str, begin: float = 0, after=(), **known) -> Call:
    about = {"id": id, "after": list(after), "queue": "plain"}
    return Call("p", "post", about, 1, begin, begin + 0.1, id, **known)


def claim(worker: str, begin: float, *jobs: tuple, queue: str = "plain", lease: int = 10_000) -> Call:
    about = {"worker": worker, "lease": lease, "session": False}
    reply = [{"id": id, "token": token, "queue": queue} for id, token in jobs]
    return Call(worker, "claim", about, 1, begin, begin + 0.1, reply)


def consume(worker: str, begin: float, id: str, token: int, **known) -> Call:
    about = {"worker": worker, "id": id, "token": token}
    return Call(worker, "consume", about, 1, begin, begin + 0.1, "complete", **known)


def chained(worker: str, begin: float, id: str, token: int, *jobs: tuple) -> Call:
    """A consume that claims these jobs."""
    call, claims = consume(worker, begin, id, token), claim(worker, begin, *jobs)
    return Call(
        worker, "consume", {**claims.about, **call.about}, 1, begin, call.end, ["complete", claims.reply]
    )


GOOD = [
    post("a"),
    post("b", 1, after=["a"]),
    claim("w1", 2, ("a", 10)),
    consume("w1", 3, "a", 10),
    claim("w2", 4, ("b", 11)),
    chained("w2", 5, "b", 11, ("d", 12)),
    consume("w2", 6, "d", 12),
]


def found(calls: list, replicated: bool = False) -> str:
    return "\n".join(Checker(sorted(calls, key=lambda call: call.begin), replicated).check())


def test_a_good_run_is_found_good():
    assert found(GOOD) == ""


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ([*GOOD, post("c", 6)], "c was acknowledged and is lost"),
        ([*GOOD, claim("w3", 7, ("c", 11))], "token 11 was given to"),
        ([*GOOD, claim("w3", 7, ("c", 9))], "got the token 9, not above 12"),
        ([*GOOD, consume("w3", 7, "a", 10)], "a was consumed under 10 and 10"),
        ([claim("w1", 1, ("a", 1)), claim("w2", 2, ("a", 2))], "a was given to w2 (2) while w1 held it"),
        ([post("a"), post("b", 1, after=["a"]), claim("w", 2, ("b", 1))], "b was claimed before a"),
        (
            [claim("w1", 0, ("b", 2)), claim("w2", 0, ("a", 1)), chained("w2", 1, "a", 1, ("b", 3))],
            "b was given to w2 (3) while w1 held it",
        ),
        ([claim("w", 1, ("@tick@1", 1), ("@tick@3", 2))], "children of the schedule are missing: [2]"),
        (
            [claim(f"w{n}", n, (f"j{n}", n), queue="limited", lease=60_000) for n in range(1, 5)],
            "4 jobs of the queue limited ran at once",
        ),
    ],
)
def test_what_is_wrong_is_found(calls, said):
    assert said in found(calls)


def test_with_replicas_only_durable_answers_bind():
    assert found([post("a")], replicated=True) == ""
    assert "a was acknowledged and is lost" in found([post("a", durable=True)], replicated=True)
    twice = [consume("w1", 1, "a", 1), consume("w2", 2, "a", 2)]
    assert found(twice, replicated=True) == ""
    twice[0].durable = True
    assert "a was consumed under 1 and 2" in found(twice, replicated=True)


def test_a_refused_consume_has_done_nothing():
    refused = consume("w", 1, "a", 1)
    refused.error, refused.reply = "NOJOB no such job", None
    assert "a was acknowledged and is lost" in found([post("a"), refused])
