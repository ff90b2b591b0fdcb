"""Short runs of `make chaos`, and the checker itself: it must find what it is there to find."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import pytest
from checker import Checker
from daily import left_to_ci
from journal import Call
from links import Links
from run import SITES, Run

DAILY = ["listeners", "replicated"]
"""The plays of each day; `make ci` has all."""
WORK = [
    *("jobs consumed", "posts that had to be there", "steps stored", "signals taken"),
    *("jobs that died", "dead letters sent back", "chunks written", "chunks read"),
    *("waits for children", "children that a parent has waited for"),
]
"""What clients do in each run, however slow the machine is."""


@pytest.mark.long
@pytest.mark.parametrize("site", [*DAILY, *left_to_ci(site for site in SITES if site not in DAILY)])
@pytest.mark.timeout(600)
def test_nothing_is_lost_in_a_short_run(server_kind, site):
    run = Run(server_kind, 12 if site == "replicated" else 6, seed=7, **SITES[site][1])
    try:
        assert run.play(WORK) == []
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


def step(begin: float, value: str, stored: str | None = None) -> Call:
    about = {"worker": "w", "id": "a", "token": 1, "step": "pay", "value": value}
    reply = {"deadline": 0, "cancel": 0} | ({} if stored is None else {"value": stored})
    return Call("w", "step", about, 1, begin, begin + 0.1, reply)


def signal(begin: float, value: str, said: str = "kept") -> Call:
    return Call("boss", "signal", {"id": "a", "value": value}, 1, begin, begin + 0.1, [said])


def waited(begin: float, state: str, value: str | None = None) -> Call:
    reply = {"state": state} | ({} if value is None else {"signals": {"approved": {"value": value}}})
    return Call("w", "await", {"worker": "w", "id": "a", "token": 1}, 1, begin, begin + 0.1, reply)


def seen(begin: float, steps: dict[str, str], signals: dict[str, str]) -> Call:
    """A claim that asked for what the job remembers."""
    call = claim("w", begin, ("a", 1))
    call.about["remembers"] = True
    maps = [{name: {"value": value} for name, value in of.items()} for of in (steps, signals)]
    call.reply = [{**call.reply[0], "steps": maps[0], "signals": maps[1]}]
    return call


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ([step(1, "x"), step(2, "y", stored="x"), seen(3, {"pay": "x"}, {})], ""),
        ([step(1, "x"), step(2, "y")], "the step pay of a was 'x', and 'y' later"),
        ([step(1, "x"), seen(3, {}, {})], "the step pay of a was 'x', and a run saw None"),
        ([signal(1, "x"), waited(2, "claimed", "x"), seen(3, {}, {"approved": "x"})], ""),
        ([signal(1, "x"), waited(2, "blocked")], "a took the signal 'x', and a run saw []"),
        ([signal(1, "x"), seen(2, {}, {"approved": "y"})], "a took the signal 'x', and a run saw ['y']"),
        ([signal(1, "x"), signal(2, "y")], "a took the signal 'x', and 'y' too"),
    ],
)
def test_what_jobs_remember_is_checked(calls, said):
    assert found(calls) == said


def child(begin: float) -> Call:
    call = post("c", begin)
    call.about["parent"] = "a"
    return call


def for_children(begin: float, state: str) -> Call:
    about = {"worker": "w", "id": "a", "token": 1, "children": True}
    return Call("w", "await", about, 1, begin, begin + 0.1, {"state": state})


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ([child(1), for_children(2, "blocked"), consume("w", 3, "c", 2), for_children(4, "claimed")], ""),
        (
            [child(1), for_children(2, "claimed"), consume("w", 3, "c", 2)],
            "a ran on, and c had not ended",
        ),
    ],
)
def test_the_waits_of_parents_are_checked(calls, said):
    assert found(calls) == said


def narrow(begin: float, id: str, error: str | None = None) -> Call:
    call = post(id, begin)
    call.about["queue"] = "narrow"
    if error is not None:
        call.reply, call.error = None, error
    return call


def died(begin: float) -> Call:
    about = {"worker": "w1", "id": "a", "token": 10}
    return Call("w1", "fail", about, 1, begin, begin + 0.1, {"state": "ready", "dead": "grave"})


def requeue(begin: float) -> Call:
    return Call("sexton", "requeue", {"id": "a"}, 1, begin, begin + 0.1, [1, "0", []])


def write(begin: float, number: int) -> Call:
    about = {"worker": "w", "id": "a", "token": 1, "number": number}
    return Call("w", "write", about, 1, begin, begin + 0.1, {"deadline": 0, "cancel": 0})


def read(begin: float, *numbers: int) -> Call:
    chunks = [f"1 {number}" for number in numbers]
    return Call("reader", "read", {"id": "a"}, 1, begin, begin + 0.1, {"chunks": chunks})


FEW = [narrow(n, f"n{n}") for n in range(6)]
DONE = [consume("w1", 100 + n, f"n{n}", 10 + n) for n in range(7)]
LETTER = [claim("w1", 1, ("a", 10), queue="letters"), died(2)]


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ([*FEW, *DONE], ""),
        ([*FEW, narrow(9, "n6"), *DONE], "7 jobs were in the queue narrow, which has room for 6"),
        ([*FEW, narrow(9, "n6", "LIMIT max-jobs"), *DONE], ""),
        ([narrow(1, "x", "LIMIT max-jobs"), claim("w", 2, ("x", 1))], "the post x was refused, and is there"),
        ([*LETTER, claim("w2", 3, ("a", 11), queue="grave")], ""),
        ([*LETTER, claim("w2", 3, ("a", 11), queue="letters")], "a had died, and was claimed from letters"),
        ([*LETTER, requeue(3), claim("w2", 4, ("a", 11), queue="letters")], ""),
        ([write(1, 1), write(2, 2), read(3, 1, 2), read(3, 1, 2, 3)], ""),
        ([write(1, 1), write(2, 2), read(3, 1)], "chunk 2 of a was written, and a reader saw [1]"),
        ([write(1, 1), read(3, 1, 1)], "the output of a under 1 was [1, 1]"),
    ],
)
def test_the_flow_of_work_is_checked(calls, said):
    assert found(calls) == said


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


def test_a_token_that_two_nodes_gave_out_is_found_though_neither_claim_was_confirmed():
    calls = [claim("w1", 1, ("a", 1)), claim("w2", 2, ("a", 1))]
    assert "the token 1 was given to" in found(calls, replicated=True)


def test_a_lease_is_sure_to_last_but_for_the_millisecond_in_which_the_server_counts():
    """A claim at 1.0009 s is one of the millisecond 1.000, and its lease of 500 ms is over at 1.500."""
    calls = [claim("w1", 1.0009, ("a", 1), lease=500), claim("w2", 1.4, ("a", 2))]
    calls[1].end = 1.5005
    assert found(calls) == ""
    calls[1].end = 1.4995
    assert "a was given to w2 (2) while w1 held it" in found(calls)


def test_a_lease_is_not_sure_to_last_over_a_jump_of_the_clock():
    calls = [claim("w1", 1, ("a", 1)), claim("w2", 3, ("a", 2))]
    assert "a was given to w2 (2) while w1 held it" in found(calls)
    assert Checker(calls, False, jumps=[2.0]).check() == []
    assert Checker(calls, False, jumps=[0.5, 4.0]).check() != []


def test_an_order_is_not_sure_to_hold_where_the_clock_went_back():
    first, second = post("a"), post("b", 5)
    second.about["before"] = "a"
    calls = [first, second, claim("w", 6, ("b", 1))]
    assert "b was claimed before a" in found(calls)
    assert any("before a" in line for line in Checker(calls, False, backs=[7.0]).check())
    assert not any("before a" in line for line in Checker(calls, False, backs=[3.0]).check())


@pytest.fixture
def echo():
    """A link to a server that says everything back, and a connection through it."""
    links, listener = Links(), socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                one, _ = listener.accept()
                with one, contextlib.suppress(OSError):
                    while piece := one.recv(1000):
                        one.sendall(piece)

    threading.Thread(target=serve, daemon=True).start()
    port = links.open()
    links.aim(port, listener.getsockname()[1])
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        yield links, port, client
    links.close()
    listener.close()


def test_a_link_may_be_slow_stand_still_and_break(echo):
    links, port, client = echo

    def said(text: bytes) -> float:
        begin = time.monotonic()
        client.sendall(text)
        assert client.recv(1000) == text
        return time.monotonic() - begin

    assert min(said(b"at once") for _ in range(50)) < 0.3
    links.set(port, delay=0.15)
    assert said(b"late") >= 0.3
    links.set(port, still=True)
    client.sendall(b"held back")
    client.settimeout(0.2)
    with pytest.raises(socket.timeout):
        client.recv(1000)
    links.set(port)
    client.settimeout(30)
    assert client.recv(1000) == b"held back"
    links.set(port, shut=True)
    with contextlib.suppress(ConnectionError):
        assert client.recv(1000) == b""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as another:
        with contextlib.suppress(ConnectionError):
            assert another.recv(1000) == b""


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
