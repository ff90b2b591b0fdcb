"""Recurring jobs: the server posts them by itself, each of its times once."""

from __future__ import annotations

import datetime
import time
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from expect import MS, error_of, refused, refused_like
from harness import EPOCH, Board, Clock, Server, now, past, wait_until
from harness.board import from_pairs
from lives import LONG
from waiters import Waiter

MINUTE = 60_000
HOUR = 60 * MINUTE


def schedule(board: Board, id_: str, *words: object, payload: object = "x") -> None:
    assert board.call("SCHEDULE SET", id_, payload, *words) == "OK"


def shown(board: Board, id_: str) -> dict:
    """JOB.SCHEDULE GET as a dict."""
    return from_pairs(board.call("SCHEDULE GET", id_))


def children(board: Board, id_: str) -> dict[str, int]:
    """The children of a schedule that are there: id to intended time, in the order of posts."""
    found: dict[str, Any] = {}
    cursor = "0"
    while True:
        cursor, records = board.call(
            "LIST", "CURSOR", cursor, "COUNT", 1000, "FIELDS", 3, "id", "intended", "seq"
        )
        for record in map(from_pairs, records):
            if record["id"].startswith(f"@{id_}@"):
                found[record["id"]] = (record["seq"], record["intended"])
        if cursor == "0":
            break
    return {child: at for child, (_, at) in sorted(found.items(), key=lambda item: item[1])}


def each_once(board: Board, id_: str, every: int) -> int:
    """Checks that each time has had its child, and that there is no other; gives how many there are."""
    made = children(board, id_)
    times = list(made.values())
    assert list(made) == [f"@{id_}@{n}" for n in range(1, len(made) + 1)]
    assert times == list(range(times[0], times[0] + len(times) * every, every))
    return len(times)


# Times


@pytest.mark.every_server
def test_an_interval_posts_with_no_worker_and_no_client_alive(board: Board) -> None:
    words = ("QUEUE", "ticks", "NAME", "beat", "META", 1, "k", "v")
    schedule(board, "tick", "EVERY", 50, "BACKLOG", "all", *words)
    board.client.close()
    time.sleep(0.4)
    wait_until(lambda: each_once(board, "tick", 50) >= 8)
    job = board.get("@tick@1")
    assert (job["queue"], job["name"], job["payload"], job["meta"]) == ("ticks", "beat", "x", {"k": "v"})
    assert job["posted"] >= job["intended"]
    [claimed] = board.claim("w1", queues=["ticks"])
    assert claimed["id"] == "@tick@1"


def test_a_blocked_worker_wakes_when_a_schedule_fires(server: Server) -> None:
    board = server.board()
    schedule(board, "tick", "EVERY", 150, "MAX", 1)
    waiter = Waiter(server, "w1", await_block=False)
    assert waiter.job() == "@tick@1"
    assert shown(board, "tick")["state"] == "over"


@pytest.mark.parametrize(
    ("zone", "expression", "hours"),
    [
        ("Europe/Berlin", "30 6 * * MON-FRI", [(6, 30)]),
        ("America/New_York", "0 0 9,17 * * *", [(9, 0), (17, 0)]),
        ("Asia/Kathmandu", "15 12 L * *", [(12, 15)]),
    ],
)
def test_cron_times_are_those_of_the_zone(
    clocked_board: Board, clock: Clock, zone: str, expression: str, hours: list
) -> None:
    schedule(clocked_board, "s", "CRON", expression, "TZ", zone, "BACKLOG", "all")
    clock.advance(400 * 24 * HOUR)
    made = children(clocked_board, "s")
    local = [datetime.datetime.fromtimestamp(at / 1000, ZoneInfo(zone)) for at in made.values()]
    assert {(at.hour, at.minute) for at in local} == set(hours)
    assert {at.second for at in local} == {0}
    if "L" in expression:
        assert {(at + datetime.timedelta(days=1)).day for at in local} == {1}
        assert len(made) in (12, 13, 14)
    elif "MON" in expression:
        assert {at.weekday() for at in local} == {0, 1, 2, 3, 4}
        assert len({at.utcoffset() for at in local}) == 2
    else:
        assert len(made) in (799, 800, 801)


def test_start_end_and_max(clocked_board: Board, clock: Clock) -> None:
    board = clocked_board
    schedule(board, "a", "EVERY", 1000, "START", EPOCH + 500, "END", EPOCH + 2500)
    schedule(board, "b", "EVERY", 1000, "MAX", 2)
    for _ in range(50):
        clock.advance(100)
    assert list(children(board, "a").values()) == [EPOCH + 500, EPOCH + 1500, EPOCH + 2500]
    assert list(children(board, "b").values()) == [EPOCH + 1000, EPOCH + 2000]
    assert shown(board, "a")["state"] == shown(board, "b")["state"] == "over"
    assert "next" not in shown(board, "a")
    schedule(board, "b", "MAX", -1)
    assert shown(board, "b")["next"] == EPOCH + 6000


@pytest.mark.parametrize("start", [-2500, 300, 4500])
@pytest.mark.parametrize(
    "before", [["EVERY", 700], ["EVERY", 1000, "START", EPOCH - 100], ["CRON", "@daily"]]
)
def test_the_same_words_give_the_same_times_whatever_stood_there(
    clocked_board: Board, clock: Clock, before: list, start: int
) -> None:
    """With START: changed and made anew, and when only the interval is changed afterwards."""
    words = ["EVERY", 1000, "START", EPOCH + start]
    schedule(clocked_board, "changed", *before)
    schedule(clocked_board, "interval", "EVERY", 700, "START", EPOCH + start)
    clock.advance(250)
    schedule(clocked_board, "made", *words)
    schedule(clocked_board, "changed", *words)
    schedule(clocked_board, "interval", "EVERY", 1000)
    first = EPOCH + (start if start > 250 else 500)
    nexts = {id_: shown(clocked_board, id_)["next"] for id_ in ("made", "changed", "interval")}
    assert nexts == dict.fromkeys(nexts, first)


def test_jitter_delays_the_post_and_not_the_intended_time(clocked_board: Board, clock: Clock) -> None:
    schedule(clocked_board, "s", "EVERY", 1000, "JITTER", 900)
    for _ in range(300):
        clock.advance(100)
    assert each_once(clocked_board, "s", 1000) >= 29
    late = [clocked_board.get(id_)["posted"] - at for id_, at in children(clocked_board, "s").items()]
    assert all(0 <= ms <= 1000 for ms in late)
    assert len(set(late)) > 3


# Missed times and overlap


@pytest.mark.parametrize(("backlog", "made"), [("skip", 1), ("one", 1), ("all", 10)])
def test_missed_times(clocked_board: Board, clock: Clock, backlog: str, made: int) -> None:
    schedule(clocked_board, "s", "EVERY", 1000, "BACKLOG", backlog)
    clock.advance(10_500)
    found = children(clocked_board, "s")
    assert len(found) == made
    assert list(found.values())[-1] == EPOCH + 10_000
    clock.advance(500)
    assert len(children(clocked_board, "s")) == made + 1


@pytest.mark.every_server
def test_times_missed_during_a_pause_are_made_up_in_short_turns(fresh_server: Any) -> None:
    server = fresh_server()
    board = server.board()
    pause = server.client()
    schedule(board, "s", "EVERY", 1, "BACKLOG", "all", "MAX", 2_000)
    end = now() + 2_000
    pause.execute_command("CLIENT", "PAUSE", LONG, "WRITE")
    fired = shown(board, "s")["fired"]
    past(end)
    turns = server.info("jobboard")["jobboard_timer_turns"]
    pause.execute_command("CLIENT", "UNPAUSE")
    wait_until(lambda: shown(board, "s")["state"] == "over")
    # A turn lasts a millisecond, in which no machine posts so many.
    assert fired > 1_000 or server.info("jobboard")["jobboard_timer_turns"] >= turns + 3
    assert each_once(board, "s", 1) == 2_000


def test_a_schedule_of_seconds_missed_for_a_day_catches_up(clocked_board: Board, clock: Clock) -> None:
    schedule(clocked_board, "s", "CRON", "* * * * * *", "TZ", "Europe/Berlin", "BACKLOG", "all")
    clock.advance(86_000_000)
    assert each_once(clocked_board, "s", 1000) in (86_000, 86_001)


@pytest.mark.parametrize(
    ("overlap", "states"),
    [
        ("allow", {"@s@1": "claimed", "@s@2": "ready"}),
        ("skip", {"@s@1": "claimed"}),
        ("replace", {"@s@1": "cancelled", "@s@2": "ready"}),
    ],
)
def test_overlap(clocked_board: Board, clock: Clock, overlap: str, states: dict) -> None:
    board = clocked_board
    schedule(board, "s", "EVERY", 1000, "OVERLAP", overlap)
    clock.advance(1000)
    token = board.claim_one("w1", lease=HOUR)["token"]
    clock.advance(1000)
    assert {id_: board.state(id_) for id_ in children(board, "s")} == states
    if overlap == "replace":
        with refused("CANCELLED the job was cancelled"):
            board.consume("w1", "@s@1", token=token)
        return
    board.consume("w1", "@s@1", token=token)
    clock.advance(1000)
    assert list(children(board, "s").values())[-1] == EPOCH + 3000


# Changing


def test_setting_again_keeps_the_counter_and_what_is_not_named(clocked_board: Board, clock: Clock) -> None:
    board = clocked_board
    schedule(board, "s", "EVERY", 1000, "QUEUE", "q", "RETRIES", 3)
    clock.advance(1000)
    clock.advance(300)
    schedule(board, "s", "EVERY", 1000, payload="again")
    assert shown(board, "s")["next"] == EPOCH + 2000
    schedule(board, "s", "EVERY", 5000, "PRIORITY", 7, payload="new")
    told = shown(board, "s")
    assert (told["fired"], told["next"], told["every"]) == (1, EPOCH + 6300, 5000)
    clock.advance(5000)
    job = board.get("@s@2")
    assert (job["payload"], job["queue"], job["priority"], job["left"]) == ("new", "q", 7, 3)


def test_pause_resume_and_delete(clocked_board: Board, clock: Clock) -> None:
    board = clocked_board
    schedule(board, "s", "EVERY", 1000, "BACKLOG", "all")
    assert board.call("SCHEDULE PAUSE", "s") == "OK"
    clock.advance(10_000)
    assert (children(board, "s"), shown(board, "s")["state"]) == ({}, "paused")
    assert board.call("SCHEDULE RUN", "s") == "@s@1"
    assert board.call("SCHEDULE RESUME", "s") == "OK"
    clock.advance(1000)
    assert list(children(board, "s").values()) == [EPOCH + 10_000, EPOCH + 11_000]
    assert board.call("SCHEDULE DEL", "s") == "OK"
    clock.advance(10_000)
    assert len(children(board, "s")) == 2
    for sub in ("DEL", "PAUSE", "RESUME", "RUN"):
        with refused("NOSCHEDULE no such schedule", board):
            board.call(f"SCHEDULE {sub}", "s")
    schedule(board, "s", "EVERY", 1000)
    clock.advance(1000)
    assert list(children(board, "s")) == ["@s@1", "@s@2", "@s@4"]


def test_list_goes_page_by_page_in_the_order_of_ids(board: Board) -> None:
    names = sorted(f"s{n}" for n in range(25))
    for name in names:
        schedule(board, name, "EVERY", HOUR)
    found, cursor, pages = [], "0", 0
    while True:
        cursor, rows = board.call("SCHEDULE LIST", "CURSOR", cursor, "COUNT", 10)
        found += [from_pairs(row)["id"] for row in rows]
        pages += 1
        if cursor == "0":
            break
    assert (found, pages) == (names, 3)
    assert board.info()["schedules"] == 25


def test_children_cannot_be_posted_by_clients(board: Board) -> None:
    with refused("ERR ID must not begin with '@'"):
        board.post(id_="@s@1")


def test_get_under_both_protocols(server: Server, protocol: int) -> None:
    board = server.board(protocol=protocol)
    schedule(
        board, "s", "CRON", "0 0 1 1 *", "TZ", "Asia/Tokyo", "END", 2**46, "MAX", 5, "BACKOFF", "FIXED", 9
    )
    told = shown(board, "s")
    assert (told["cron"], told["tz"], told["end"], told["max"]) == ("0 0 1 1 *", "Asia/Tokyo", 2**46, 5)
    assert (told["backoff-base"], told["backoff-max"], told["fired"]) == (9, 9, 0)
    assert "last" not in told and "every" not in told


# Refusals


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([], "ERR EVERY or CRON is needed for a new schedule"),
        (["EVERY", 0], f"ERR EVERY must be an integer from 1 to {2**40}{MS}"),
        (["EVERY", 5, "CRON", "* * * * *"], "ERR EVERY and CRON exclude each other"),
        (["EVERY", 5, "TZ", "UTC"], "ERR TZ goes with CRON"),
        (["CRON", "* *"], "ERR CRON is not a cron expression: it must have five or six fields"),
        (["CRON", "0 0 31 2 *"], "ERR CRON names no time that ever comes"),
        (["CRON", "x" * 256], "ERR CRON is longer than 255 bytes"),
        (["CRON", "* * * * *", "TZ", "Mars"], "ERR TZ names no time zone: 'Mars'"),
        (["CRON", "* * * * *", "TZ", "x" * 65], "ERR TZ is longer than 64 bytes"),
        (["EVERY", 5, "BACKLOG", "some"], "ERR BACKLOG must be skip, one, all, or an integer from 1 to 400"),
        (["EVERY", 5, "OVERLAP", "some"], "ERR OVERLAP must be allow, skip or replace"),
        (["EVERY", 5, "MAX", 0], f"ERR MAX must be -1 or an integer from 1 to {2**53 - 1}"),
        (["EVERY", 5, "JITTER", -1], f"ERR JITTER must be an integer from 0 to {2**40}{MS}"),
        (["EVERY", 5, "JITTER", 1, "JITTER", 1], "ERR JITTER is given twice"),
        (["EVERY", 5, "AT", 5], "ERR syntax error near 'AT'"),
        (["EVERY", 5, "ID", "j"], "ERR syntax error near 'ID'"),
        (["EVERY"], "ERR EVERY needs a value"),
        (["EVERY", 5, "END", EPOCH, "START", EPOCH + 1], "ERR END must not be before START"),
        (
            ["EVERY", 5, "START", 2**47 + 1],
            f"ERR START must be an integer from 0 to {2**47} Unix milliseconds",
        ),
    ],
    ids=str,
)
def test_what_cannot_be_a_schedule_is_refused(board: Board, words: list, error: str) -> None:
    assert error_of(board, "SCHEDULE SET", "s", "x", *words) == error
    assert board.info() is None


def test_a_change_cannot_end_a_schedule_before_it_starts(clocked_board: Board) -> None:
    board = clocked_board
    schedule(board, "s", "EVERY", 1000, "START", EPOCH + 500, "END", EPOCH + 500)
    before = shown(board, "s")
    start = ("SCHEDULE SET", "s", "x", "START", EPOCH + 501)
    assert error_of(board, *start) == "ERR START must not be after END: give END too, or END -1 for none"
    end = ("SCHEDULE SET", "s", "x", "END", EPOCH + 499)
    assert error_of(board, *end) == "ERR END must not be before START"
    assert shown(board, "s") == before
    schedule(board, "s", "START", EPOCH + 501, "END", -1)
    assert shown(board, "s")["start"] == EPOCH + 501


def test_ids_of_schedules(board: Board) -> None:
    for bad in ("", "i" * 231):
        assert error_of(board, "SCHEDULE SET", bad, "x", "EVERY", 5) == "ERR id must be 1 to 230 bytes long"
    assert error_of(board, "SCHEDULE SET", "@s", "x", "EVERY", 5) == "ERR id must not begin with '@'"
    schedule(board, "i" * 230, "EVERY", HOUR)
    assert board.call("SCHEDULE RUN", "i" * 230) == f"@{'i' * 230}@1"


def test_a_key_of_another_type_is_refused(board: Board) -> None:
    board.client.set("board", "text")
    for words in (["SET", "s", "x", "EVERY", 5], ["GET", "s"], ["LIST"], ["DEL", "s"], ["RUN", "s"]):
        with refused_like("WRONGTYPE .*"):
            board.call(f"SCHEDULE {words[0]}", *words[1:])


# Copies


def test_replicas_follow_and_a_promoted_one_goes_on(fresh_server: Any) -> None:
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    board = primary.board()
    schedule(board, "s", "EVERY", 20, "BACKLOG", "all", "JITTER", 5)
    schedule(board, "c", "CRON", "* * * * * *", "TZ", "Europe/Berlin")
    wait_until(lambda: shown(board, "s")["fired"] > 20)
    for id_ in ("s", "c"):
        board.call("SCHEDULE PAUSE", id_)
    replica.wait_synced(primary)
    assert replica.board().digest() == board.digest()
    for id_ in ("s", "c"):
        board.call("SCHEDULE RESUME", id_)
    fired = shown(board, "s")["fired"]
    wait_until(lambda: shown(board, "s")["fired"] > fired)
    primary.kill()
    # What the primary has sent is applied before the replica takes the link for down.
    wait_until(lambda: replica.info("replication")["master_link_status"] == "down")
    copy = replica.board()
    before = shown(copy, "s")["fired"]
    time.sleep(0.1)
    assert shown(copy, "s")["fired"] == before, "a replica has fired"
    replica.client().replicaof("NO", "ONE")
    wait_until(lambda: shown(copy, "s")["fired"] > before + 20)
    copy.call("SCHEDULE PAUSE", "s")
    made = list(children(copy, "s").values())
    behind = made[fired:]
    assert len(set(made)) == len(made) == shown(copy, "s")["fired"]
    assert behind == list(range(behind[0], behind[0] + 20 * len(behind), 20))


@pytest.mark.parametrize("kept", ["aof", "rdb", "reload", "copy"])
def test_schedules_survive_and_miss_nothing(fresh_server: Any, kept: str) -> None:
    server = fresh_server(appendonly=kept == "aof")
    board = server.board()
    schedule(board, "s", "EVERY", 20, "BACKLOG", "all")
    schedule(board, "c", "CRON", "0 0 1 1 *", "TZ", "Asia/Tokyo", "META", 1, "k", "v")
    wait_until(lambda: shown(board, "s")["fired"] > 10)
    told = shown(board, "c")
    if kept == "aof":
        server.restart(kill=False)
    elif kept == "rdb":
        server.client().save()
        server.restart(kill=True)
    elif kept == "reload":
        server.client().execute_command("DEBUG", "RELOAD")
    else:
        server.client().copy("board", "other")
    board = server.board("other" if kept == "copy" else "board")
    fired = shown(board, "s")["fired"]
    wait_until(lambda: shown(board, "s")["fired"] > fired + 20)
    assert each_once(board, "s", 20) > fired
    assert shown(board, "c") == told


def test_paused_digests_are_equal_after_a_restart(fresh_server: Any) -> None:
    server = fresh_server("clock", "manual", appendonly=True)
    board = server.board()
    # At each start the clock is at the machine's time again: no restart takes until the next hour.
    schedule(board, "s", "EVERY", 3_600_000, "JITTER", 7)
    server.clock.advance(5 * 3_600_000)
    before = board.digest()
    server.restart()
    assert server.board().digest() == before
    server.client().bgrewriteaof()
    wait_until(lambda: not server.info("persistence")["aof_rewrite_in_progress"])
    server.restart()
    assert server.board().digest() == before


def test_the_last_few_of_many_missed_times_are_made_up(clocked, clock):
    board = clocked.board()
    client = board.client
    client.execute_command("JOB.SCHEDULE", "SET", "board", "s", "x", "EVERY", 1000, "BACKLOG", 3)
    row = from_pairs(client.execute_command("JOB.SCHEDULE", "GET", "board", "s"))
    assert row["backlog"] == 3
    clock.advance(10_500)
    intended = [job["intended"] - EPOCH for job in board.list_all()]
    assert intended == [8000, 9000, 10_000]
    client.execute_command("JOB.SCHEDULE", "SET", "board", "s", "x", "BACKLOG", 1)
    assert from_pairs(client.execute_command("JOB.SCHEDULE", "GET", "board", "s"))["backlog"] == "one"


@pytest.mark.parametrize("backlog", ["0", "401", "-1", "few", "", "1.5", "2 "])
def test_a_backlog_is_a_word_or_a_number(board, backlog):
    with refused("ERR BACKLOG must be skip, one, all, or an integer from 1 to 400", board):
        board.client.execute_command("JOB.SCHEDULE", "SET", "board", "s", "x", "EVERY", 9, "BACKLOG", backlog)
