"""Each alert on boards comes when what it is about happens on a server, and not on a busy one.

A server with the manual clock is played minute by minute, its numbers are written down, and Prometheus's own
tool evaluates the rules over them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from aof import commands, log_of
from harness import Board, Server, wait_until
from harness.wall import WallClock
from prometheus import GROUPS, PROMTOOL, Scrape, check_firing, needed, read

MIDNIGHT = 1_900_022_400_000
"""Counters of a board begin anew at midnight: the plays stay within a day."""
MINUTE, HOUR = 60_000, 3_600_000

Play = Callable[[Board, int], None]


@pytest.fixture
def played(fresh_server: Callable[..., Server]) -> Iterator[Server]:
    """A server whose clock the play moves."""
    needed(PROMTOOL)
    server = fresh_server("clock", "manual")
    server.clock.set(MIDNIGHT)
    yield server
    for connection in WAITING:
        connection.disconnect()
    WAITING.clear()


def numbers(server: Server, boards: list[str]) -> Scrape:
    """What a scrape would find."""
    with server.client() as client:
        return read(client.execute_command("JOB.METRICS", *boards), "jobboard_")


def lateness(server: Server) -> float:
    return numbers(server, [])["jobboard_timer_overdue_seconds"]


def work(board: Board, minute: int, failed: int = 0) -> None:
    """Ten jobs a minute, of which some fail for good; one is always held by a worker."""
    board.mpost(["x"] * 10, retries=0)
    jobs = board.claim("w1", count=10, lease=HOUR)
    for number, job in enumerate(jobs):
        if number < failed:
            board.fail("w1", job["id"], "KeyError", "no such key")
        else:
            board.consume("w1", job["id"])
    if minute == 0:
        board.post("long", id_="long")
        board.claim("w2", lease=HOUR * 30)


def quiet(board: Board, minute: int) -> None:
    """With room for more."""
    work(board, minute)
    board.client.config_set("maxmemory", "1gb")


def broken(board: Board, minute: int) -> None:
    """A copy that misses a change."""
    if minute:
        return
    source = Server("redis82", appendonly=True, config=["aof-use-rdb-preamble no"])
    for _ in range(3):
        source.board(board.key).post("x")
    source.stop()
    effects = [command for command in commands(log_of(source)) if command.is_effect]
    source.close()
    board.client.config_set("jobboard.foreign-effects", "yes")
    board.client.execute_command(*effects[0].words)
    with pytest.raises(Exception, match="BROKEN"):
        board.client.execute_command(*effects[2].words)


def full(board: Board, minute: int) -> None:
    """Nine tenths of the memory are used."""
    board.client.config_set("maxmemory", 0)
    work(board, minute)
    board.client.config_set("maxmemory", board.client.info("memory")["used_memory"] * 10 // 9)


def oldest(board: Board, minute: int) -> None:
    """Workers are at work, and one queue is looked after by none."""
    work(board, minute)
    if minute == 0:
        board.post("forgotten", queue="other")


def nobody(board: Board, minute: int) -> None:
    """Jobs come and go too fast to be old, and no worker is ever seen at one."""
    board.post("x", id_=f"j{minute}")
    board.delete(f"j{minute - 1}")


def failures(board: Board, minute: int) -> None:
    work(board, minute, failed=2)


def lapses(board: Board, minute: int) -> None:
    work(board, minute)
    if minute == 0:
        board.mpost(["x"] * 10, lapses=-1, queue="heavy")
    board.claim("w3", queues=["heavy"], count=10, lease=10_000)


def paused(board: Board, minute: int) -> None:
    work(board, minute)
    if minute == 0:
        board.call("PAUSE", "QUEUE", "other")


def posts_wait(board: Board, minute: int) -> None:
    """A queue with room for one job, which is not due for long, and a post that waits for its end."""
    work(board, minute)
    if minute == 0:
        board.call("SETTINGS SET", "QUEUE", "full", "max-jobs", 1)
        board.post("x", queue="full", delay=30 * HOUR)
        WAITING.append(board.client.connection_pool.make_connection())
        WAITING[-1].send_command("JOB.POST", board.key, "y", "QUEUE", "full", "BLOCK", 3 * HOUR)
        wait_until(lambda: board.client.info("jobboard")["jobboard_blocked_posts"] == 1)


WAITING: list[redis.Connection] = []
"""Connections with a post that waits: it would end with them."""


def records(board: Board, minute: int) -> None:
    """Somebody has cancelled more jobs than the rule takes for few."""
    work(board, minute)
    if minute == 0:
        for _ in range(9):
            ids = board.mpost(["x"] * 9000, queue="many")
            board.call("CANCEL", len(ids), *ids)


PLAYS: dict[str, tuple[Play, int, int]] = {
    "JobboardBroken": (broken, 3, 1),
    "JobboardMemoryNearlyFull": (full, 10, 1),
    "JobboardOldestJobWaits": (oldest, 20, 1),
    "JobboardNobodyWorks": (nobody, 15, 1),
    "JobboardFailures": (failures, 40, 1),
    "JobboardLapses": (lapses, 40, 1),
    "JobboardPausedForLong": (paused, 26 * 12, 5),
    "JobboardPostsWait": (posts_wait, 13, 1),
    "JobboardRecordsNearCap": (records, 8, 1),
}
"""What happens, how many scrapes, and how many minutes from one to the next."""


def scrapes_of(server: Server, play: Play, scrapes: int, minutes: int) -> list[Scrape]:
    board, found = server.board("mails"), []
    for number in range(scrapes):
        play(board, number)
        found.append(numbers(server, ["mails"]))
        server.clock.advance(minutes * MINUTE)
    return found


@pytest.mark.parametrize("alert", PLAYS)
def test_it_comes_when_it_should(played: Server, tmp_path: Path, alert: str) -> None:
    play, scrapes, minutes = PLAYS[alert]
    check_firing(tmp_path, scrapes_of(played, play, scrapes, minutes), minutes, {alert})


def test_none_comes_while_work_goes_on(played: Server, tmp_path: Path) -> None:
    check_firing(tmp_path, scrapes_of(played, quiet, 40, 1), 1, set())


def test_two_that_tell_of_one_board_do_not_add_up(tmp_path: Path) -> None:
    """The console and the exporter are both scraped: half of what the rules name is told twice."""
    needed(PROMTOOL)

    def scrape(minute: int) -> Scrape:
        found = {"jobboard_boards": 1.0}
        for job in ("console", "exporter"):
            labels = f'job="{job}",board="mails",queue="default"'
            found[f'jobboard_jobs{{{labels},state="failed"}}'] = 45_000.0
            found[f'jobboard_events_total{{{labels},event="lapsed"}}'] = 60 * 0.06 * minute
        return found

    check_firing(tmp_path, [scrape(minute) for minute in range(40)], 1, set())


def test_nothing_at_all_is_told_as_well(tmp_path: Path) -> None:
    check_firing(tmp_path, [{"up": 0.0}] * 10, 1, {"JobboardAbsent"})


def test_a_timer_that_may_not_write_is_late(fresh_server: Callable[..., Server], tmp_path: Path) -> None:
    """The machine's clock goes on by minutes, and the server may not write meanwhile."""
    needed(PROMTOOL)
    wall = WallClock()
    try:
        server = fresh_server(environment=wall.environment)
        board, scrapes = server.board("mails"), []
        board.post("x", delay=HOUR)
        board.client.config_set("min-replicas-to-write", "1")
        wall.step(3600)
        for minute in range(1, 5):
            wall.step(60)
            wait_until(lambda least=60 * minute - 5: lateness(server) > least)
            scrapes.append(numbers(server, ["mails"]))
        check_firing(tmp_path, scrapes, 1, {"JobboardTimerLate"})
    finally:
        wall.close()


def test_every_alert_is_tried() -> None:
    assert set(PLAYS) | {"JobboardAbsent", "JobboardTimerLate"} == set(GROUPS["jobboard"])
