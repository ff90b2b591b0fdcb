"""Named limits: queues and groups that share one count of running jobs and one bucket of tokens."""

from __future__ import annotations

import itertools
import threading
import time

import lives
import pytest
from expect import ids, refused
from harness import Board
from harness.board import from_pairs
from lives import LONG
from waiters import Waiter


def shared(board: Board, jobs: int = 3, queues: tuple = ("mail", "sms"), **values) -> None:
    """The limit `api`, which these queues name; jobs mail0, mail1 and so on."""
    board.set(limit="api", **values)
    for queue in queues:
        board.set(queue=queue, limits=["api"])
        for n in range(jobs):
            board.post(id=f"{queue}{n}", queue=queue)


def taken(board: Board, count: int = 99, **words) -> list:
    return ids(board.claim(count=count, queues=words.pop("queues", []), **words))


def test_queues_share_one_count(board):
    shared(board, concurrency=2)
    assert taken(board) == ["mail0", "mail1"]
    with refused("LIMIT concurrency", board):
        board.claim(id="sms0")
    board.consume("w1", "mail0")
    assert taken(board, queues=["sms"]) == ["sms0"]
    assert board.limits()["api"]["claimed"] == 2


def test_queues_share_one_bucket(clocked_board, clock):
    board = clocked_board
    shared(board, rate=2, burst=3)
    assert taken(board) == ["mail0", "mail1", "mail2"]
    with refused("LIMIT rate", board):
        board.claim(id="sms0")
    clock.advance(499)
    assert taken(board) == []
    clock.advance(1)
    assert taken(board, queues=["sms"]) == ["sms0"]


def test_a_job_costs_what_its_post_says(clocked_board, clock):
    board = clocked_board
    shared(board, jobs=0, rate=1, burst=4)
    board.post(id="a", queue="mail", cost=3)
    board.post(id="b", queue="sms", cost=3)
    assert taken(board) == ["a"]
    clock.advance(1999)
    assert taken(board) == []
    clock.advance(1)
    assert taken(board) == ["b"]


def test_all_limits_of_a_queue_and_a_group_count_and_each_once(board):
    for limit, most in (("a", 9), ("b", 2), ("c", 1)):
        board.set(limit=limit, concurrency=most)
    board.set(queue="mail", limits=["a"])
    board.set(queue="mail", group="*", limits=["a", "b"])
    board.set(queue="mail", group="small", limits=["c"])
    for group in ("big", "small", None):
        board.mpost(["x"] * 3, ids=[f"{group}{n}" for n in range(3)], queue="mail", group=group)
    assert taken(board) == ["big0", "small0", "None0", "big1", "None1", "None2"]
    assert {name: row["claimed"] for name, row in board.limits().items()} == {"a": 6, "b": 2, "c": 1}
    board.consume("w1", "small0")
    board.consume("w1", "big0")
    assert sorted(taken(board)) == ["big2", "small1"]


def test_a_tenant_has_one_limit_over_its_queues(board):
    board.set(limit="acme", concurrency=1)
    for queue in ("mail", "sms"):
        board.set(queue=queue, group="acme", limits=["acme"])
        board.mpost(["x"] * 2, queue=queue, group="acme")
        board.post(id=f"other {queue}", queue=queue, group="other")
    got = board.claim(queues=[], count=9, fields=["id", "group"])
    assert sorted(one["group"] for one in got) == ["acme", "other", "other"]


# Who waits


def end(board: Board) -> None:
    board.consume("w1", "mail0")


def test_a_slot_that_any_queue_frees_wakes_who_waits_for_another(server):
    board = server.board()
    shared(board, concurrency=1)
    assert taken(board, count=1) == ["mail0"]
    waiter = Waiter(server, "w2", queues=["sms"])
    board.post_many(2, queue="sms")
    assert waiter.still_waits()
    end(board)
    assert waiter.job() == "sms0"


@pytest.mark.parametrize("order", list(itertools.permutations(["mail", "sms", "push"])), ids=" ".join)
def test_who_came_first_gets_the_slot_whichever_queue_it_waits_for(server, order):
    board = server.board()
    shared(board, queues=("mail", "sms", "push"), concurrency=1)
    assert taken(board, count=1) == ["mail0"]
    waiters = [Waiter(server, f"w {queue}", queues=[queue]) for queue in order]
    worker, job = "w1", "mail0"
    for queue, waiter in zip(order, waiters):
        board.consume(worker, job)
        worker, job = f"w {queue}", waiter.job()
        assert job.startswith(queue)


@pytest.mark.parametrize(
    "scope", [{}, {"group": "*"}, {"group": "g"}], ids=["queue", "all groups", "a group"]
)
def test_a_waiter_is_woken_when_the_token_is_there(server, scope):
    board = server.board()
    board.set(limit="api", rate=5)
    for queue in ("mail", "sms"):
        board.set(queue=queue, **scope, limits=["api"])
        board.mpost(["x"] * 2, ids=[f"{queue}{n}" for n in range(2)], queue=queue, group="g")
    begin = time.monotonic()
    assert taken(board) == ["mail0"]
    waiters = [Waiter(server, "w2", queues=[queue], await_block=False) for queue in ("sms", "mail")]
    assert {waiter.job() for waiter in waiters} == {"sms0", "mail1"}
    assert 0.35 <= time.monotonic() - begin


@pytest.mark.parametrize(
    "change",
    [
        lambda board: board.set(limit="api", concurrency=2),
        lambda board: board.reset(limit="api"),
        lambda board: board.reset("limits", queue="sms"),
        lambda board: board.reset(queue="mail"),
        lambda board: board.set(queue="sms", limits=[]),
        lambda board: board.update("mail0", queue="elsewhere"),
    ],
    ids=["raised", "reset", "named no more", "not counted any more", "empty list", "moved"],
)
def test_whatever_opens_a_limit_wakes_who_waits(server, change):
    board = server.board()
    shared(board, concurrency=1)
    assert taken(board, count=1) == ["mail0"]
    waiter = Waiter(server, "w2", queues=["sms"])
    change(board)
    assert waiter.job() == "sms0"


def test_workers_of_several_queues_keep_to_the_rate_and_nobody_idles(server):
    board = server.board()
    shared(board, jobs=75, queues=("mail", "sms", "push"), rate=150, burst=5)
    begin, got = time.monotonic(), []

    def work(queue: str) -> None:
        mine = server.board()
        for _ in range(25):
            got.extend(mine.claim(queue, queues=[queue], count=1, block=30_000))
            got.extend(mine.claim(queue, queues=[queue], count=2))

    threads = [threading.Thread(target=work, args=(queue,)) for queue in ("mail", "sms", "push")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    waited = time.monotonic() - begin
    assert 75 <= len(got) <= 5 + 150 * waited + 1


def test_explain_names_the_limit_and_who_holds_it(clocked_board, clock):
    board = clocked_board
    shared(board, concurrency=1, rate=1)
    assert taken(board, count=1) == ["mail0"]

    def reasons() -> list:
        return [from_pairs(one) for one in from_pairs(board.call("EXPLAIN", "sms0"))["reasons"]]

    full, dry = reasons()[:2]
    assert (full["reason"], full["level"], full["name"]) == ("concurrency", "limit", "api")
    assert (full["limit"], full["running"]) == (1, 1)
    assert from_pairs(full["holders"][0])["id"] == "mail0"
    assert (dry["reason"], dry["level"], dry["name"]) == ("rate", "limit", "api")
    assert dry["at"] == clock.now() + 1000
    assert "JOB.SETTINGS SET board LIMIT api rate" in dry["text"]
    board.consume("w1", "mail0")
    clock.advance(1000)
    assert reasons()[0]["reason"] == "unclaimed"


# Settings


def test_settings_of_a_limit_tell_where_they_come_from(board):
    board.set(limit="api", rate=5, concurrency=3)
    assert board.settings(limit="api") == {
        "concurrency": [3, "limit"],
        "rate": [5, "limit"],
        "rate-period": [1000, "default"],
        "burst": [1, "default"],
    }
    board.reset("rate", limit="api")
    assert board.settings("rate", limit="api") == {"rate": [-1, "default"]}
    assert board.settings("rate", limit="unknown") == {"rate": [-1, "default"]}


def test_a_list_comes_from_the_group_or_from_all_groups(board):
    for limit in ("b", "a"):
        board.set(limit=limit, concurrency=1)
    board.set(queue="mail", limits=["b", "a"])
    board.set(queue="mail", group="*", limits=["a"])
    board.set(queue="mail", group="free", limits=[], weight=2)
    assert board.settings("limits", queue="mail") == {"limits": [["a", "b"], "queue"]}
    assert board.settings("limits", queue="other") == {"limits": [[], "default"]}
    assert board.settings("limits", queue="mail", group="*") == {"limits": [["a"], "groups"]}
    assert board.settings("limits", queue="mail", group="any") == {"limits": [["a"], "groups"]}
    assert board.settings(queue="mail", group="free")["limits"] == [[], "group"]
    assert board.queues()["mail"]["limits"] == ["a", "b"]
    board.post(queue="mail", group="any")
    assert board.groups()["mail", "any"]["limits"] == ["a"]
    assert board.groups()["mail", "free"]["limits"] == []
    board.reset(queue="mail", group="free")
    assert ("mail", "free") not in board.groups()


def test_limits_are_listed_page_by_page(board):
    names = [f"limit {n}" for n in range(5)]
    for name in names:
        board.set(limit=name, rate=1)
    board.set(queue="a", limits=names[:2])
    board.set(queue="b", group="*", limits=names[1:3])
    found = board.limits(count=2)
    assert list(found) == names
    assert [row["queues"] for row in found.values()] == [1, 2, 1, 0, 0]
    assert board.info()["limits"] == 5
    assert board.call("LIMITS") == board.call("LIMITS", "COUNT", 5)
    with refused("ERR CURSOR must be 0 or the cursor that the last call returned", board):
        board.call("LIMITS", "CURSOR", "x")


def test_a_limit_stays_while_something_names_it(board):
    shared(board, concurrency=1)
    assert taken(board, count=1) == ["mail0"]
    board.reset(limit="api")
    assert board.limits()["api"] == {
        "queues": 2,
        "claimed": 1,
        "concurrency": -1,
        "rate": -1,
        "rate-period": 1000,
        "burst": 1,
        "dry": 0,
        "debt": 0,
        "paused": 0,
    }
    board.reset(queue="mail")
    board.reset("limits", queue="sms")
    assert board.limits() == {}


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["QUEUE", "q", "limits", 1, "typo"], "ERR limits names 'typo', which is not a limit of this board"),
        (["QUEUE", "q", "limits", 2, "api", "api"], "ERR limits names 'api' twice"),
        (["QUEUE", "q", "limits", 2, "api"], "ERR limits names 2 but fewer follow"),
        (["QUEUE", "q", "limits", 17], "ERR limits must be an integer from 0 to 16"),
        (["QUEUE", "q", "limits", 1, ""], "ERR limits must be 1 to 255 bytes long"),
        (["QUEUE", "q", "limits", 0, "LIMITS", 0], "ERR limits is given twice"),
        (["limits", 1, "api"], "ERR 'limits' is a setting of queues and groups"),
        (["LIMIT", "api", "limits", 0], "ERR 'limits' is a setting of queues and groups"),
        (["LIMIT", "api", "lease", 1], "ERR 'lease' is not a setting of limits"),
        (["LIMIT", "", "rate", 1], "ERR LIMIT must be 1 to 255 bytes long"),
        (["LIMIT", "api", "rate", -2], "ERR rate must be an integer from -1 to 2147483647"),
        (
            ["LIMIT", "api", "QUEUE", "q"],
            "ERR unknown setting 'QUEUE': it must be one of concurrency, rate, rate-period, burst",
        ),
    ],
)
def test_bad_words_are_refused(board, words, error):
    board.set(limit="api", rate=1)
    with refused(error, board):
        board.call("SETTINGS SET", *words)


def test_a_running_job_moves_only_where_its_limits_have_room(board):
    shared(board, jobs=0, concurrency=1)
    for id_ in ("a", "b"):
        lives.claimed(board, id_, queue="other")
    with refused("LIMIT concurrency", board):
        board.update("a", "b", queue="mail")
    assert board.where("UPDATE", "QUEUE", "other", set_={"queue": "mail"})[0] == 1
    assert board.limits()["api"]["claimed"] == 1


# Copies


def test_counts_and_buckets_outlive_reload_restart_and_promotion(fresh_server):
    primary = fresh_server(appendonly=True)
    board = primary.board()
    shared(board, jobs=4, rate=1, rate_period=LONG, burst=3, concurrency=3)
    board.set(limit="acme", concurrency=1, rate=1, rate_period=LONG)
    board.set(queue="mail", group="acme", limits=["acme"])
    board.mpost(["x"] * 2, queue="mail", group="acme")
    assert len(taken(board, lease=LONG, count=1, queues=["sms"])) == 1
    assert len(taken(board, lease=LONG, count=1, queues=["mail"])) == 1
    before = board.limits()
    board.client.execute_command("DEBUG", "RELOAD")
    assert board.limits() == before
    primary.restart()
    board = primary.board()
    assert board.limits() == before
    replica = fresh_server(replicaof=primary)
    assert len(taken(board, lease=LONG)) == 1
    replica.wait_synced(primary)
    assert replica.board().digest() == board.digest()
    replica.client().replicaof("NO", "ONE")
    board = replica.board()
    assert taken(board) == []
    board.set(limit="api", concurrency=9, burst=5)
    assert taken(board) == []
    with refused("LIMIT rate", board):
        board.claim(id="sms3")


def test_a_claim_of_very_many_jobs_stops_where_many_limits_make_it_long(board):
    names = [f"l{n}" for n in range(32)]
    for name in names:
        board.set(limit=name, rate=1_000_000, burst=1_000_000)
    pipe = board.client.pipeline(transaction=False)
    for n in range(128):
        place = ("JOB.SETTINGS", "SET", "board", "QUEUE", f"q{n}")
        pipe.execute_command(*place, "limits", 16, *names[:16])
        pipe.execute_command(*place, "GROUP", "*", "limits", 16, *names[16:])
        pipe.execute_command("JOB.MPOST", "board", 10, *["x"] * 10, "QUEUE", f"q{n}", "GROUP", "g")
    pipe.execute()
    first = taken(board, count=10_000)
    assert 300 <= len(first) < 1280
    rest = len(first)
    while some := taken(board, count=10_000):
        rest += len(some)
    assert rest == 1280


def test_a_claim_of_very_many_jobs_gets_them_all_where_no_limit_counts(board):
    pipe = board.client.pipeline(transaction=False)
    for n in range(128):
        pipe.execute_command("JOB.MPOST", "board", 50, *["x"] * 50, "QUEUE", f"q{n}")
    pipe.execute()
    assert len(taken(board, count=10_000)) == 128 * 50
