"""Costs that are known only afterwards: estimates, reports, debts, and pauses of shared limits."""

from __future__ import annotations

import random
from itertools import accumulate

import pytest
from expect import ids, refused, refused_like
from harness import Board
from harness.board import from_pairs, text

TOKENS = (1, "tokens", 40)


def api(board: Board, **values: dict) -> None:
    """The queue `api`, which names limits with these settings."""
    for limit, settings in values.items():
        board.set(limit=limit, **settings)
    board.set(queue="api", limits=list(values))


def tokens(board: Board) -> None:
    api(board, tokens={"rate": 100, "rate_period": 1000, "burst": 100})


def stats(board: Board) -> dict:
    """The sums of JOB.STATS."""
    found = from_pairs(board.call("STATS"))
    return {
        "cost": found["cost"],
        "costs": {text(name): cost for name, cost in from_pairs(found["costs"]).items()},
    }


def reason(board: Board, id_: str, code: str) -> dict:
    """The reason of this code in JOB.EXPLAIN."""
    found = map(from_pairs, from_pairs(board.call("EXPLAIN", id_))["reasons"])
    return next(
        {name: text(value) for name, value in one.items()} for one in found if text(one["reason"]) == code
    )


def taken(board: Board, count: int = 99, **words) -> list:
    return ids(board.claim(count=count, queues=["api"], **words))


def test_each_limit_takes_what_is_named_for_it(clocked_board, clock):
    board = clocked_board
    api(board, requests={"rate": 1, "burst": 2}, tokens={"rate": 100, "burst": 100})
    for id_ in "abc":
        board.post(id=id_, queue="api", costs=(2, "tokens", 30, "requests", 1))
    assert board.get("a")["costs"] == {"requests": 1, "tokens": 30}
    assert taken(board) == ["a", "b"]
    assert board.limits()["requests"]["dry"] > 0 == board.limits()["tokens"]["dry"]
    clock.advance(1000)
    assert taken(board) == ["c"]


def test_a_limit_that_is_not_named_takes_the_plain_cost_and_none_takes_nothing(clocked_board, clock):
    board = clocked_board
    api(board, requests={"rate": 1, "burst": 4}, tokens={"rate": 1, "burst": 4})
    board.post(id="a", queue="api", cost=4, costs=(1, "tokens", 0))
    board.post(id="b", queue="api", cost=1, costs=(1, "requests", 0))
    assert taken(board) == ["a", "b"]


@pytest.mark.parametrize("verb", ["heartbeat", "step", "await", "consume", "fail", "abandon", "trash"])
def test_the_difference_goes_back(clocked_board, verb):
    board = clocked_board
    tokens(board)
    for id_ in "ab":
        board.post(id=id_, queue="api", costs=(1, "tokens", 60))
    assert taken(board) == ["a"]
    words = {
        "step": ["s", "v"],
        "await": ["SIGNALS", 1, "go"],
        "fail": ["kind", "message"],
    }.get(verb, [])
    board.call(verb.upper(), "w1", "a", *words, costs=TOKENS)
    assert ids(board.claim("w2", id="b")) == ["b"]


@pytest.mark.parametrize("verb", ["mconsume", "mfail", "mabandon", "mtrash"])
def test_the_cost_of_many_is_that_of_each(clocked_board, verb):
    board = clocked_board
    tokens(board)
    for id_ in "abc":
        board.post(id=id_, queue="api", costs=(1, "tokens", 50))
    assert taken(board) == ["a", "b"]
    head = ["kind", "message"] if verb == "mfail" else []
    board.call(verb.upper(), "w1", *head, 2, "a", "b", costs=TOKENS)
    assert board.limits()["tokens"]["dry"] == 0
    assert stats(board)["costs"] == {"tokens": 80}
    with refused("LIMIT rate", board):
        board.claim(id="c")


def test_what_is_missing_is_owed_and_a_report_that_comes_again_takes_nothing(clocked_board, clock):
    board = clocked_board
    tokens(board)
    board.post(id="a", queue="api", costs=TOKENS)
    board.post(id="b", queue="api", costs=(1, "tokens", 1))
    token = board.claim_one(queues=["api"])["token"]
    for _ in range(2):
        board.heartbeat("w1", "a", token=token, costs=(1, "tokens", 150))
    for _ in range(2):
        board.consume("w1", "a", token=token, costs=(1, "tokens", 190), retain=1000)
    assert board.limits()["tokens"]["debt"] == 90
    assert board.get("a")["spent"] == {"cost": 1, "costs": {"tokens": 190}}
    rate = reason(board, "b", "rate")
    assert (rate["name"], rate["cost"], rate["debt"]) == ("tokens", 1, 90)
    assert "It owes 90" in rate["text"]
    clock.advance(909)
    assert taken(board) == []
    clock.advance(1)
    assert taken(board) == ["b"]
    assert stats(board)["cost"] == 2
    assert stats(board)["costs"] == {"tokens": 191}


def test_a_stale_worker_settles_nothing(clocked_board, clock):
    board = clocked_board
    tokens(board)
    board.post(id="a", queue="api", lease=10, costs=TOKENS)
    token = board.claim_one(queues=["api"])["token"]
    clock.advance(10)
    board.claim("w2", id="a")
    with refused("NOTOWNER w2", board):
        board.consume("w1", "a", token=token, costs=(1, "tokens", 5))
    assert board.get("a").get("spent") is None


def test_a_mistaken_report_stops_nobody_for_long(clocked_board):
    board = clocked_board
    tokens(board)
    board.post(id="a", queue="api")
    board.claim(queues=["api"])
    board.heartbeat("w1", "a", cost=2**31 - 1)
    assert board.limits()["tokens"]["debt"] == 1000
    board.heartbeat("w1", "a", cost=1)
    assert board.limits()["tokens"]["debt"] == 0
    assert board.limits()["tokens"]["dry"] == 0


def test_a_limit_that_was_deleted_is_ignored(board):
    tokens(board)
    board.post(id="a", queue="api", costs=TOKENS)
    board.claim(queues=["api"])
    board.set(queue="api", limits=[])
    board.call("SETTINGS RESET", "LIMIT", "tokens", "rate", "rate-period", "burst")
    assert board.limits() == {}
    assert board.consume("w1", "a", costs=TOKENS) == "complete"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ((1, "tokens", -1), "ERR COSTS cost must be an integer from 0 to 2147483647"),
        ((1, "tokens", 2**31), "ERR COSTS cost must be an integer from 0 to 2147483647"),
        ((1, "tokens", "many"), "ERR COSTS cost must be an integer from 0 to 2147483647"),
        ((2, "tokens", 1, "tokens", 2), "ERR COSTS names 'tokens' twice"),
        ((2, "tokens", 1), "ERR COSTS names 2 pairs but fewer follow"),
        ((0,), "ERR COSTS must be an integer from 1 to 16"),
        ((17, "tokens", 1), "ERR COSTS must be an integer from 1 to 16"),
        ((1, "", 1), "ERR COSTS limit must be 1 to 255 bytes long"),
    ],
)
def test_bad_costs_are_refused(board, words, error):
    tokens(board)
    board.post(id="a", queue="api")
    board.claim(queues=["api"])
    for call in [
        ("POST", "x"),
        ("HEARTBEAT", "w1", "a"),
        ("CONSUME", "w1", "a"),
        ("MFAIL", "w1", "k", "m", 1, "a"),
    ]:
        with refused(error, board):
            board.call(*call, costs=words)
    with refused(error.replace("COSTS", "NEXT-COSTS"), board):
        board.call("CONSUME", "w1", "a", "NEXT", "q", "NEXT-COSTS", *words)


def test_posts_name_only_limits_that_exist(board):
    missing = "ERR COSTS names 'tokns', and there is no such limit: .+"
    tokens(board)
    board.post(id="a", queue="api")
    board.claim(queues=["api"])
    for call in [
        ("POST", "x"),
        ("MPOST", 2, "x", "y"),
        ("SCHEDULE SET", "s", "x", "EVERY", 1000),
    ]:
        with refused_like(missing, board):
            board.call(*call, costs=(1, "tokns", 5))
    with refused_like(missing + " in node 'n'", board):
        board.call("FLOW", 1, "NODE", "n", "x", "COSTS", 1, "tokns", 5)
    with refused_like(missing, board):
        board.call("CONSUME", "w1", "a", "NEXT", "q", "NEXT-COSTS", 1, "tokns", 5)
    with refused("ERR NAME, DELAY, PRIORITY, AFTER, AWAIT, NEXT-COST and NEXT-COSTS need NEXT", board):
        board.call("CONSUME", "w1", "a", "NEXT-COST", 2)


def test_costs_of_flows_schedules_and_next_queues(clocked_board, clock):
    board = clocked_board
    tokens(board)
    board.call("FLOW", 1, "NODE", "n", "x", "ID", "flown", "QUEUE", "api", "COSTS", *TOKENS)
    board.call("SCHEDULE SET", "s", "x", "EVERY", 1000, "QUEUE", "api", "COSTS", *TOKENS)
    costs = from_pairs(from_pairs(board.call("SCHEDULE GET", "s"))["costs"])
    assert {text(limit): cost for limit, cost in costs.items()} == {"tokens": 40}
    board.call("SCHEDULE RUN", "s")
    assert board.get("flown")["costs"] == board.get("@s@1")["costs"] == {"tokens": 40}
    board.claim(id="flown")
    board.call(
        "CONSUME", "w1", "flown", "COST", 9, "NEXT", "api", "NEXT-COST", 2, "NEXT-COSTS", 1, "tokens", 7
    )
    job = board.get("flown")
    assert (job["cost"], job["costs"], job["spent"]["cost"]) == (2, {"tokens": 7}, 9)
    board.post(id="flown", replace=True, queue="api", cost=3)
    job = board.get("flown")
    assert (job["cost"], job["costs"]) == (3, {"tokens": 7})


# Pauses


def test_a_worker_pauses_a_limit_of_its_job(clocked_board, clock):
    board = clocked_board
    tokens(board)
    board.set(limit="foreign", rate=1)
    board.post_many(3, queue="api", costs=(1, "tokens", 1))
    one, two, three = (job["id"] for job in board.claim(count=3, queues=["api"]))
    refusal = "ERR PAUSE names '{}', which is no limit of this job: JOB.EXPLAIN and JOB.QUEUES say which are"
    for limit in ("foreign", "absent"):
        for call in [("HEARTBEAT",), ("ABANDON",)]:
            with refused(refusal.format(limit), board):
                board.call(*call, "w1", one, pause=(limit, 1000))
        with refused(refusal.format(limit), board):
            board.call("FAIL", "w1", one, "k", "m", pause=(limit, 1000))
    with refused_like("ERR PAUSE must be an integer from 1 to .+", board):
        board.abandon("w1", one, pause=("tokens", 0))
    board.abandon("w1", one, pause=("tokens", 1000))
    board.heartbeat("w1", two, pause=("tokens", 10))
    assert board.limits()["tokens"]["paused"] == clock.now() + 1000
    with refused("NOTREADY paused", board):
        board.claim(id=one)
    paused = reason(board, one, "paused")
    assert (paused["level"], paused["name"], paused["until"]) == ("limit", "tokens", clock.now() + 1000)
    clock.advance(999)
    assert taken(board) == []
    clock.advance(1)
    assert taken(board) == [one]
    assert board.limits()["tokens"]["paused"] == 0
    board.fail("w1", three, pause=("tokens", "1m"), retry=0)
    assert board.limits()["tokens"]["paused"] == clock.now() + 60_000


def test_an_operator_pauses_and_resumes_a_limit(clocked_board, clock):
    board = clocked_board
    tokens(board)
    board.post(id="a", queue="api")
    board.post(id="other")
    board.call("PAUSE", limit="tokens")
    board.call("PAUSE", "LIMIT", "tokens", "FOR", 5)
    clock.advance(1000)
    assert board.limits()["tokens"]["paused"] == -1
    assert ids(board.claim(count=9, queues=[])) == ["other"]
    board.call("RESUME", limit="tokens")
    assert taken(board) == ["a"]
    for verb in ("PAUSE", "RESUME"):
        with refused(
            "ERR LIMIT names 'x', and there is no such limit: JOB.LIMITS lists those of a board", board
        ):
            board.call(verb, limit="x")
        with refused("ERR LIMIT excludes QUEUE and GROUP", board):
            board.call(verb, limit="tokens", queue="api")
    with refused("ERR RELEASE goes with a board, a queue or a group: LIMIT excludes it", board):
        board.call("PAUSE", limit="tokens", release=True)


@pytest.mark.parametrize(
    "place", [{}, {"queue": "api"}, {"queue": "api", "group": "g"}, {"limit": "tokens"}], ids=str
)
def test_a_later_shorter_pause_does_not_end_a_longer_one(clocked_board, clock, place):
    board = clocked_board
    tokens(board)
    board.post(id="a", queue="api", group="g")
    board.call("PAUSE", **place, for_=100_000)
    board.call("PAUSE", **place, for_=10)
    clock.advance(99_999)
    assert taken(board) == []
    clock.advance(1)
    assert taken(board) == ["a"]


def test_a_paused_limit_survives_a_copy(clocked_board):
    board = clocked_board
    tokens(board)
    board.post(id="a", queue="api", costs=TOKENS)
    board.claim(queues=["api"])
    board.heartbeat("w1", "a", costs=(1, "tokens", 500), pause=("tokens", 5000))
    board.client.restore("copy", 0, board.client.dump(board.key))
    copy = Board(board.client, "copy")
    assert copy.limits() == board.limits()
    assert copy.get("a") == board.get("a")
    assert stats(copy) == stats(board)


def test_metrics_have_costs_debts_and_pauses(board):
    tokens(board)
    board.post(id="a", queue="api", costs=TOKENS)
    board.claim(queues=["api"])
    board.heartbeat("w1", "a", cost=3, costs=(1, "tokens", 500), pause=("tokens", "1h"))
    text = board.client.execute_command("JOB.METRICS", board.key)
    lines = (text.decode() if isinstance(text, bytes) else text).splitlines()
    key = board.key
    for line in [
        f'jobboard_limit_paused{{board="{key}",limit="tokens"}} 1',
        f'jobboard_cost{{board="{key}",queue="api"}} 3',
        f'jobboard_costs{{board="{key}",queue="api",limit="tokens"}} 500',
    ]:
        assert any(one.startswith(line) for one in lines), line
    assert any(one.startswith(f'jobboard_limit_debt{{board="{key}",limit="tokens"}} ') for one in lines)


# The whole: an API with 60 requests and 90,000 tokens a minute


def test_an_api_is_used_and_never_overrun(clocked_board, clock):
    """Twenty workers, ten minutes. What a job costs is known only at its end; three fifths are estimated."""
    board = clocked_board
    api(
        board,
        requests={"rate": 60, "rate_period": 60_000, "burst": 5},
        tokens={"rate": 90_000, "rate_period": 60_000, "burst": 9_000},
    )
    draw = random.Random(7)
    begin, number, runs, open_ = clock.now(), 0, [], []
    posted: dict[str, tuple[int, int]] = {}
    now = begin
    while now < begin + 600_000:
        while len(posted) < 3:
            cost = draw.randint(540, 2_500)
            posted[f"j{number}"] = (cost * 3 // 5, cost)
            board.post(id=f"j{number}", queue="api", costs=(2, "requests", 1, "tokens", cost * 3 // 5))
            number += 1
        for run in [one for one in open_ if one["end"] <= now]:
            open_.remove(run)
            board.consume("w1", run["id"], costs=(1, "tokens", run["cost"]))
        free = 20 - len(open_)
        for job in board.claim(count=free, queues=["api"], lease=60_000) if free else []:
            estimate, cost = posted.pop(job["id"])
            end = now + draw.randint(2_000, 12_000)
            run = {"id": job["id"], "begin": now, "end": end, "estimate": estimate, "cost": cost}
            open_.append(run)
            runs.append(run)
        now = clock.advance(500)
    used = sum(run["cost"] for run in runs if run["end"] <= begin + 600_000)
    assert used >= 900_000 * 0.95
    assert len(runs) >= 600 * 0.95
    # What the jobs in flight at any one time cost beyond their estimates.
    moments = sorted(
        [(run["begin"], run["cost"] - run["estimate"]) for run in runs]
        + [(run["end"], run["estimate"] - run["cost"]) for run in runs]
    )
    beyond = list(zip((at for at, _ in moments), accumulate(more for _, more in moments)))
    for first in (run["begin"] for run in runs):
        within = [run for run in runs if first <= run["begin"] < first + 60_000]
        over = max(more for at, more in beyond if first <= at <= first + 60_000)
        assert len(within) <= 5 + 60
        assert sum(run["cost"] for run in within) <= 9_000 + 90_000 + over
