"""What one command costs is bounded by what it carries and returns: what the bounds refuse, and how.

An option that is named once and given to many jobs has a bound on all its copies (`max-shared`), a reply one
on its bytes (`max-reply`), and what a client can make grow by its names one on their number.
"""

from __future__ import annotations

import re

import lives
import pytest
import redis
from expect import refused, refused_like
from harness import from_pairs, wait_until
from harness.board import text
from waiters import Waiter

N = 10_000
"""As many jobs as one command may name by default."""


def test_the_bound_on_copies_names_both_arguments_and_the_setting(server):
    board = server.board()
    lives.ready(board)
    with server.configured(jobboard__max_shared=1024):
        told = "ERR META for each of 3 jobs (n) is 1602 bytes, more than max-shared (1024)"
        with refused(f"{told}: name fewer jobs", board):
            board.mpost(["a", "b", "c"], meta={"f": "v" * 501})
        board.mpost(["a"], meta={"f": "v" * 501})
        with refused_like(
            r"ERR AFTER of all nodes \(n\) names 9 jobs, more than 8, which max-shared \(1024\) .*", board
        ):
            board.call("FLOW", 2, "NODE", "a", "x", "NODE", "b", "x", "AFTER", 9, *["a"] * 9)
        board.post_many(4, queue="held")
        board.claim("w1", queues=["held"], count=4)
        with refused_like(r"ERR RESULT for each of 4 jobs \(ALL\) is 1200 bytes, .*", board):
            board.call("MCONSUME", "w1", "ALL", "RESULT", "r" * 300)
        assert board.call("MCONSUME", "w1", "ALL", "RESULT", "r" * 200)


# Replies


@pytest.fixture
def short(server):
    """Replies that end at 4 KB."""
    with server.configured(jobboard__max_reply=4096):
        yield server.board()


def big(board, n, size=1500, **options):
    return [board.post("x" * size, id=f"b{number}", **options) for number in range(n)]


@pytest.mark.parametrize("filters", [{}, {"state": "ready"}, {"name": "n"}], ids=str)
def test_a_page_of_a_listing_ends_early_and_its_cursor_goes_on(short, filters):
    big(short, 10, name="n")
    seen, cursor, pages = [], "0", 0
    while True:
        cursor, rows = short.call("LIST", *short_words(filters), "CURSOR", cursor, "COUNT", 100)
        seen += [from_pairs(row)["id"] for row in rows]
        assert 1 <= len(rows) <= 3
        pages += 1
        if cursor == "0":
            break
    assert sorted(seen) == sorted(f"b{number}" for number in range(10)) and pages >= 4


def short_words(filters):
    return [word for name, value in filters.items() for word in (name.upper(), value)]


def test_a_page_has_one_record_at_least(short):
    big(short, 3, size=10_000)
    cursor, rows = short.call("LIST", "COUNT", 100)
    assert len(rows) == 1 and cursor != "0"


def test_a_listing_of_ids_is_not_cut_short(short):
    big(short, 10)
    cursor, ids = short.call("LIST", "COUNT", 100, "JUSTID")
    assert (cursor, len(ids)) == ("0", 10)


def test_a_claim_gives_fewer_jobs_and_the_others_stay(short):
    big(short, 10)
    assert 1 <= len(short.claim("w1", count=10)) <= 3
    assert short.count(state="ready") >= 7
    assert len(short.claim("w1", count=10, fields=["id"])) >= 7


def test_a_claim_of_what_it_has_seen_gives_fewer_jobs(short):
    big(short, 10)
    held = short.claim("w1", count=10, fields=["id", "token"])
    assert len(held) == 10
    assert 1 <= len(short.claim("w1", count=10, seen=0)) <= 3


def test_a_blocked_claim_gets_fewer_jobs(short, server):
    waiter = Waiter(server, "w1", count=10)
    short.mpost(["x" * 1500] * 10)
    assert 1 <= len(waiter.reply()) <= 3
    assert short.count(state="ready") >= 7


def test_records_named_one_by_one_are_refused_together(short):
    ids = big(short, 10)
    told = "ERR the records are longer than max-reply (4096) together: name fewer ids or FIELDS"
    with refused(told, short):
        short.mget(ids)
    with refused(told, short):
        short.call("WAIT", 5, "JOBS", 10, *ids, "CHANGED", 0)
    assert len(short.call("MGET", 10, *ids, "FIELDS", 1, "id")) == 10
    assert short.call("MGET", 1, ids[0])[0] is not None


def test_children_come_in_shorter_pages(short):
    short.post(id="parent")
    ids = big(short, 10, parent="parent")
    seen, cursor = [], "0"
    while True:
        _, cursor, rows = short.call("GET", "parent", "CHILDREN", "CURSOR", cursor, "COUNT", 100)
        seen += [from_pairs(row)["id"] for row in rows]
        assert 1 <= len(rows) <= 3
        if cursor == "0":
            break
    assert seen == ids


def test_every_listing_ends_early_and_goes_on(short):
    long = "x" * 200
    for number in range(40):
        short.post(id=f"j{number}", queue=f"q{number}{long}", group=f"g{long}")
    client = short.client
    for number in range(40):
        client.execute_command("JOB.SCHEDULE", "SET", short.key, f"s{number}", long * 3, "EVERY", 60_000_000)
        client.execute_command("JOB.WORKER", "REGISTER", short.key, f"w{number}", "META", 1, "f", long * 3)
        client.execute_command(
            "JOB.SETTINGS", "SET", short.key, "LIMIT", f"l{number}{long}", "concurrency", 1
        )
        short.claim(f"w{number}{long}", queues=[f"q{number}{long}"])
        job = short.get(f"j{number}")
        short.fail(job["worker"], job["id"], f"k{number}{long}", "m", noretry=True)
        short.post(id=f"i{number}", queue=f"q{number}{long}")
        short.claim(f"w{number}{long}", queues=[f"q{number}{long}"])
    for words in [
        ["QUEUES"], ["GROUPS"], ["LIMITS"], ["WORKERS"], ["KINDS"], ["SCHEDULE", "LIST"], ["WORKER", "LIST"]
    ]:  # fmt: skip
        rows, pages, cursor = [], 0, "0"
        while True:
            name, *sub = words
            cursor, page = client.execute_command(
                f"JOB.{name}", *sub, short.key, "CURSOR", cursor, "COUNT", 1000
            )
            rows += [str(row) for row in page]
            pages += 1
            assert page
            if text(cursor) == "0":
                break
        assert len(rows) == len(set(rows)) == 40 and pages > 1, words


# Metrics


def test_metrics_tell_a_thousand_queues_by_name_and_the_others_as_one(server):
    board = server.board()
    client = board.client
    pipe = client.pipeline(transaction=False)
    for number in range(1500):
        pipe.execute_command("JOB.POST", board.key, "x", "QUEUE", f"q{number:0>4}")
    pipe.execute()
    told = text(client.execute_command("JOB.METRICS", board.key))
    ready = re.findall(r'jobboard_jobs\{board="board",queue="(q\d+)",state="ready"\} 1\n', told)
    assert ready == [f"q{number:0>4}" for number in range(1000)]
    assert 'jobboard_jobs{board="board",queues="other",state="ready"} 500\n' in told
    assert 'jobboard_events_total{board="board",queues="other",event="posted"} 500\n' in told
    assert len(re.findall(r'events_total\{board="board",queue="q\d+",event="posted"\} 1\n', told)) == 1000


def test_metrics_tell_queues_that_hold_jobs_before_those_that_had_some(server):
    board = server.board()
    pipe = board.client.pipeline(transaction=False)
    for number in range(1100):
        pipe.execute_command("JOB.POST", board.key, "x", "QUEUE", f"a{number:0>4}", "ID", f"a{number}")
    pipe.execute_command("JOB.DELETE", board.key, 1100, *[f"a{number}" for number in range(1100)])
    pipe.execute_command("JOB.POST", board.key, "x", "QUEUE", "z")
    pipe.execute()
    told = text(board.client.execute_command("JOB.METRICS", board.key))
    assert 'jobboard_events_total{board="board",queue="z",event="posted"} 1\n' in told
    assert len(re.findall(r'events_total\{board="board",queue="a\d+",event="posted"\}', told)) == 999
    assert 'jobboard_events_total{board="board",queues="other",event="posted"} 101\n' in told
    assert 'queues="other",state' not in told


def test_metrics_of_a_long_name_are_refused(server):
    client = server.client()
    client.execute_command("JOB.METRICS", "b" * 1024)
    with refused("ERR board must be at most 1024 bytes long"):
        client.execute_command("JOB.METRICS", "b" * 1025)


# Names


def setting(board, *words):
    return board.client.execute_command("JOB.SETTINGS", "SET", board.key, *words)


def test_a_board_has_a_number_of_queues_by_setting(board):
    setting(board, "max-queues", 3)
    for queue in ["a", "b", "c"]:
        board.post(id=queue, queue=queue)
    for words in [
        ("POST", "x", "QUEUE", "d"), ("POST", "x"), ("MPOST", 2, "x", "y", "QUEUE", "d"),
        ("FLOW", 2, "NODE", "l", "x", "QUEUE", "a", "NODE", "m", "x", "QUEUE", "d"),
        ("UPDATE", 1, "a", "SET", "QUEUE", "d"), ("UPDATE", "WHERE", "STATE", "ready", "SET", "QUEUE", "d"),
        ("REQUEUE", "WHERE", "STATE", "failed", "TO", "d"), ("PAUSE", "QUEUE", "d"),
    ]:  # fmt: skip
        with refused("LIMIT max-queues", board):
            board.call(*words)
    with refused("LIMIT max-queues", board):
        setting(board, "QUEUE", "d", "lease", 5)
    board.post(queue="a"), board.call("PAUSE", "QUEUE", "b"), setting(board, "QUEUE", "c", "lease", 5)
    [job] = board.claim("w1", queues=["a"])
    with refused_like("LIMIT max-queues"):
        board.call("CONSUME", "w1", job["id"], "NEXT", "d")
    board.call("CONSUME", "w1", job["id"], "NEXT", "b")
    assert board.state(job["id"]) == "ready"


def test_a_queue_that_runs_empty_makes_room_for_another(board):
    setting(board, "max-queues", 2)
    for number in range(200):
        board.post(id="j", queue=f"q{number}")
        board.call("DELETE", 1, "j")


def test_a_flow_counts_all_its_new_queues(board):
    setting(board, "max-queues", 2)
    nodes = [word for queue in "abc" for word in ("NODE", queue, "x", "QUEUE", queue)]
    with refused("LIMIT max-queues", board):
        board.call("FLOW", 3, *nodes)
    board.call("FLOW", 2, *nodes[:10])


def test_a_schedule_passes_over_a_queue_that_would_be_too_many(clocked_board, clock):
    board = clocked_board
    setting(board, "max-queues", 1)
    board.post(queue="a")
    board.client.execute_command("JOB.SCHEDULE", "SET", board.key, "s", "x", "EVERY", 1000, "QUEUE", "b")
    clock.advance(1000)
    told = from_pairs(board.client.execute_command("JOB.SCHEDULE", "GET", board.key, "s"))
    assert (told["fired"], told["refused"]) == (0, 1)
    with refused("LIMIT max-queues"):
        board.client.execute_command("JOB.SCHEDULE", "RUN", board.key, "s")


def test_statistics_of_a_day_have_as_many_queues(clocked_board):
    board = clocked_board
    setting(board, "max-queues", 2)
    for queue in ["a", "b", "c"]:
        board.post(id="j", queue=queue)
        board.call("DELETE", 1, "j")
    told = [from_pairs(board.call("STATS", "QUEUE", queue))["posted"] for queue in ["a", "b", "c"]]
    assert told == [1, 1, 0]


def test_a_board_has_a_number_of_schedules_by_setting(board):
    setting(board, "max-schedules", 2)
    for id in ["a", "b", "a"]:
        board.client.execute_command("JOB.SCHEDULE", "SET", board.key, id, "x", "EVERY", 60_000_000)
    with refused("LIMIT max-schedules", board):
        board.client.execute_command("JOB.SCHEDULE", "SET", board.key, "c", "x", "EVERY", 60_000_000)


def test_a_board_has_a_number_of_unique_keys_by_setting(board):
    setting(board, "max-keys", 2)
    for key in ["a", "b"]:
        board.post(id=key, unique=key, for_=60_000_000)
    with refused("LIMIT max-keys", board):
        board.post(unique="c")
    with refused("EXISTS a", board):
        board.post(unique="a")
    board.post()


def test_whatever_takes_a_key_is_refused_one_too_many(board):
    """A requeue takes the key of before again, a schedule that of its jobs, a flow those of its nodes."""
    run = board.client.execute_command
    for key in "abc":
        board.post(id=key, unique=key)
        board.call("CANCEL", 1, key)
    setting(board, "max-keys", 2)
    with refused("LIMIT max-keys", board):
        board.call("REQUEUE", 3, *"abc")
    board.call("REQUEUE", 1, "a")
    with refused("LIMIT max-keys", board):
        board.call("REQUEUE", 2, *"bc")
    assert len(board.call("REQUEUE", "WHERE", "STATE", "cancelled")[1]) == 1
    with refused("LIMIT max-keys c", board):
        board.call("REQUEUE", 1, "c")
    run("JOB.SCHEDULE", "SET", board.key, "s", "x", "EVERY", 60_000_000, "UNIQUE", "d")
    with refused("LIMIT max-keys", board):
        run("JOB.SCHEDULE", "RUN", board.key, "s")
    setting(board, "max-keys", 3)
    with refused("LIMIT max-keys", board):
        board.call("FLOW", 2, *[word for key in "de" for word in ("NODE", key, "x", "UNIQUE", key)])
    run("JOB.SCHEDULE", "RUN", board.key, "s")


def test_a_queue_that_ran_empty_counts_again_when_it_is_used_again(board):
    """What the board remembers of a queue without jobs lets none slip through."""
    board.post(id="a", queue="a")
    board.post(id="b", queue="b")
    board.call("DELETE", 1, "b")
    setting(board, "max-queues", 1)
    for words in [
        ("POST", "x", "QUEUE", "b"), ("PAUSE", "QUEUE", "b"), ("UPDATE", 1, "a", "SET", "QUEUE", "b"),
        ("FLOW", 1, "NODE", "n", "x", "QUEUE", "b"),
    ]:  # fmt: skip
        with refused("LIMIT max-queues", board):
            board.call(*words)


def test_a_queue_keeps_a_number_of_groups_by_setting(board):
    setting(board, "max-groups", 2)
    for group in ["a", "b", "a"]:
        setting(board, "QUEUE", "q", "GROUP", group, "weight", 2)
    with refused("LIMIT max-groups", board):
        setting(board, "QUEUE", "q", "GROUP", "c", "weight", 2)
    with refused("LIMIT max-groups", board):
        board.call("PAUSE", "QUEUE", "q", "GROUP", "c")
    setting(board, "QUEUE", "q", "GROUP", "*", "weight", 2)
    board.post(queue="q", group="c")


# Looks


def test_a_count_that_would_look_at_too_many_jobs_goes_by_cursor(server):
    board = server.board()
    for _ in range(11):
        board.client.execute_command("JOB.MPOST", board.key, N, *["x"] * N, "NAME", "n")
    told = "ERR the count looks at more than 100000 jobs: give CURSOR 0, then the returned cursor"
    filters = ["NAME", "n", "NOT", "TAG", "t"]
    with refused(told, board):
        board.call("COUNT", *filters)
    total, cursor, calls = 0, "0", 0
    while True:
        cursor, found = board.call("COUNT", *filters, "CURSOR", cursor)
        total, calls = total + found, calls + 1
        if cursor == "0":
            break
    assert total == 110_000 and calls > 1
    assert board.call("COUNT", "NAME", "n") == 110_000
    assert board.call("COUNT", "NAME", "n", "CURSOR", 0) == ["0", 110_000]
    assert board.call("COUNT", "CURSOR", 0) == ["0", 110_000]
    with refused("ERR CURSOR must be 0 or the cursor that the last call returned", board):
        board.call("COUNT", "CURSOR", "x")


def test_one_that_may_wait_names_a_thousand_queues(board):
    queues = [f"q{number}" for number in range(1001)]
    board.claim("w1", queues=queues[:1000])
    for words in [("CLAIM", "w1"), ("WAIT", 1, "FOR", "claimable")]:
        with refused("ERR QUEUES must be an integer from 0 to 1000", board):
            board.call(*words, "QUEUES", 1001, *queues)


def test_a_jump_of_the_manual_clock_does_a_bounded_number_of_steps_at_once(fresh_server):
    server = fresh_server("clock", "manual")
    board = server.board()
    server.client().execute_command(
        "JOB.SCHEDULE", "SET", board.key, "s", "x", "EVERY", 1, "BACKLOG", "all", "MAX", 150_000
    )
    server.client().execute_command("JOB.CLOCK", "ADVANCE", 10**9)
    wait_until(lambda: board.count() == 150_000, 60)


def test_the_first_job_of_an_absent_board_reaches_who_waits(server):
    """Those who wait are parked beside the board's key; whatever comes under that name does not matter."""
    waiters = [Waiter(server, f"w{number}") for number in range(3)]
    server.client().set("{board}:\0waiting", "theirs")
    board = server.board()
    ids = [board.post() for _ in range(3)]
    assert sorted(waiter.job() for waiter in waiters) == sorted(ids)


def test_a_cron_expression_that_never_comes_is_refused(board):
    for never in ["0 0 30 2 *", "0 0 31 4,6,9,11 *"]:
        with pytest.raises(redis.ResponseError, match="CRON names no time that ever comes"):
            board.client.execute_command("JOB.SCHEDULE", "SET", board.key, "s", "x", "CRON", never)
    board.client.execute_command("JOB.SCHEDULE", "SET", board.key, "s", "x", "CRON", "0 0 29 2 +MON")
