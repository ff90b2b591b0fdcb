"""Each alert of examples/alerts.yml comes when what it is about happens on a server, and not on a busy one.

A server with the manual clock is played minute by minute, its numbers are written down, and Prometheus's own
tool evaluates the rules over them.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
import yaml
from aof import commands, log_of
from harness import Board, Server, wait_until
from harness.wall import WallClock

ROOT = Path(__file__).resolve().parents[2]
PROMTOOL = ROOT / "target" / "tools" / "debian" / "usr" / "bin" / "promtool"
RULES = ROOT / "examples" / "alerts.yml"
ALERTS = [rule["alert"] for rule in yaml.safe_load(RULES.read_text())["groups"][0]["rules"]]
MIDNIGHT = 1_900_022_400_000
"""Counters of a board begin anew at midnight: the plays stay within a day."""
MINUTE, HOUR = 60_000, 3_600_000
KIND = "redis82"

Play = Callable[[Board, int], None]


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server(KIND, "clock", "manual")
    server.clock.set(MIDNIGHT)
    yield server
    server.close()


def numbers(server: Server, boards: list[str]) -> dict[str, float]:
    """What a scrape would find: values by name and labels."""
    with server.client() as client:
        text = client.execute_command("JOB.METRICS", *boards)
    return {
        name: float(value)
        for name, value in re.findall(r"^(jobboard_\S+?(?:\{.*\})?) (\S+)$", text, re.MULTILINE)
        if "_bucket{" not in name
    }


def lateness(server: Server) -> float:
    return numbers(server, [])["jobboard_timer_overdue_seconds"]


def series(scrapes: list[dict[str, float]]) -> list[dict[str, str]]:
    """As promtool reads them; `_` where a scrape has no value."""
    names = {name for scrape in scrapes for name in scrape}
    return [
        {
            "series": name,
            "values": " ".join(f"{scrape[name]:g}" if name in scrape else "_" for scrape in scrapes),
        }
        for name in sorted(names)
    ]


def firing(folder: Path, scrapes: list[dict[str, float]], interval: str) -> set[str]:
    """The alerts that fire at the end."""
    (folder / "alerts.yml").write_bytes(RULES.read_bytes())
    found = set()
    for alert in ALERTS:
        end = f"{(len(scrapes) - 1) * int(interval.rstrip('m'))}m"
        expr = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) > 0'
        none = {"expr": expr, "eval_time": end, "exp_samples": []}
        test = {
            "rule_files": ["alerts.yml"],
            "evaluation_interval": interval,
            "tests": [{"interval": interval, "input_series": series(scrapes), "promql_expr_test": [none]}],
        }
        (folder / "test.yml").write_text(yaml.safe_dump(test))
        done = subprocess.run(
            [PROMTOOL, "test", "rules", "test.yml"], cwd=folder, capture_output=True, text=True
        )
        said = done.stdout + done.stderr
        assert done.returncode == 0 or "exp:" in said, said
        if done.returncode:
            found.add(alert)
    return found


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
    source = Server(KIND, appendonly=True, config=["aof-use-rdb-preamble no"])
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


def played(server: Server, play: Play, scrapes: int, minutes: int) -> list[dict[str, float]]:
    board, found = server.board("mails"), []
    for number in range(scrapes):
        play(board, number)
        found.append(numbers(server, ["mails"]))
        server.clock.advance(minutes * MINUTE)
    return found


@pytest.mark.parametrize("alert", PLAYS)
def test_it_comes_when_it_should(server: Server, tmp_path: Path, alert: str) -> None:
    if not PROMTOOL.exists():
        pytest.skip(f"{PROMTOOL} is missing: scripts/dist-tests unpacks it")
    play, scrapes, minutes = PLAYS[alert]
    assert firing(tmp_path, played(server, play, scrapes, minutes), f"{minutes}m") == {alert}


def test_none_comes_while_work_goes_on(server: Server, tmp_path: Path) -> None:
    if not PROMTOOL.exists():
        pytest.skip(f"{PROMTOOL} is missing: scripts/dist-tests unpacks it")
    assert firing(tmp_path, played(server, quiet, 40, 1), "1m") == set()


def test_nothing_at_all_is_told_as_well(tmp_path: Path) -> None:
    if not PROMTOOL.exists():
        pytest.skip(f"{PROMTOOL} is missing: scripts/dist-tests unpacks it")
    assert firing(tmp_path, [{"up": 0.0}] * 10, "1m") == {"JobboardAbsent"}


def test_a_timer_that_may_not_write_is_late(tmp_path: Path) -> None:
    """The machine's clock goes on by minutes, and the server may not write meanwhile."""
    if not PROMTOOL.exists():
        pytest.skip(f"{PROMTOOL} is missing: scripts/dist-tests unpacks it")
    wall = WallClock()
    server = Server(KIND, environment=wall.environment)
    try:
        board, scrapes = server.board("mails"), []
        board.post("x", delay=HOUR)
        board.client.config_set("min-replicas-to-write", "1")
        wall.step(3600)
        for minute in range(1, 5):
            wall.step(60)
            wait_until(lambda least=60 * minute - 5: lateness(server) > least)
            scrapes.append(numbers(server, ["mails"]))
        assert firing(tmp_path, scrapes, "1m") == {"JobboardTimerLate"}
    finally:
        server.close()
        wall.close()


def test_every_alert_is_tried() -> None:
    assert set(PLAYS) | {"JobboardAbsent", "JobboardTimerLate"} == set(ALERTS)
