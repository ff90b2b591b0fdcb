"""Durations say their unit, wherever the package and its command line take one."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import jobboard
import pytest
from jobboard import FOREVER, Abandon, Complete, Context, Next, Retry, Worker
from jobboard.board.administering import DURATIONS
from jobboard.cli import build_parser
from jobboard.durations import to_ms

ROOT = Path(__file__).resolve().parents[3]
SENTENCE = r"text with a unit, such as '500ms', '5s', '1h30m' or '7d', or a timedelta"


@pytest.mark.parametrize(
    ("duration", "ms"),
    [
        ("0s", 0),
        ("500ms", 500),
        ("5s", 5000),
        ("2.5s", 2500),
        ("0.29s", 290),
        ("10m", 600_000),
        ("2h", 7_200_000),
        ("7d", 604_800_000),
        ("1h30m", 5_400_000),
        ("90s500ms", 90_500),
        ("1d2h3m4.5s", 93_784_500),
        (timedelta(microseconds=1999), 1),
        (FOREVER, -1),
    ],
)
def test_durations_are_text_with_a_unit_or_timedeltas(duration, ms) -> None:
    assert to_ms(duration) == ms


@pytest.mark.parametrize("duration", [0, 5, 2.5, -1, True])
def test_a_number_is_refused_because_it_has_no_unit(duration) -> None:
    with pytest.raises(TypeError, match=f"delay is {SENTENCE}: {duration} may mean seconds or milliseconds"):
        to_ms(duration, "delay")


@pytest.mark.parametrize("number", [0, 5, 2.5])
def test_the_refusal_says_what_to_write(number) -> None:
    with pytest.raises(TypeError) as refusal:
        to_ms(number)
    said = str(refusal.value).split(": write ")[1].replace(" or ", ", ").split(", ")
    assert [to_ms(eval(one)) for one in said] == [number * 1000, int(number), number * 1000]


def test_a_backoff_is_one_duration_or_two(jobs) -> None:
    jobs.post(1, id="same", backoff="10s", retries=3, jitter=0)
    jobs.post(1, id="doubling", backoff=(timedelta(seconds=1), "1m"), retries=3, jitter=0)
    for id in ("same", "doubling"):
        assert jobs.claim_id("w", id)
    now = jobs.get("same").claimed
    dues = [jobs.fail("w", id, "kind").due - now for id in ("same", "doubling")]
    assert dues[0] in range(10_000, 60_000) and dues[1] in range(1000, 10_000)
    with pytest.raises(ValueError, match=r"backoff is one duration, or two: .* not \('1s',\)"):
        jobs.post(1, backoff=("1s",))


@pytest.mark.parametrize(
    "duration",
    ["", "5", "5 s", "s", "-5s", "5s\n", "1e3s", "\u0665s", "30m1h", "1h1h", "1m30", b"5s", None, []],
)
def test_what_is_no_duration_is_refused(duration) -> None:
    with pytest.raises((TypeError, ValueError), match=f"{SENTENCE}, not"):
        to_ms(duration, "delay")


WAYS = {
    "post": lambda board: board.post(1, delay=5),
    "post lease": lambda board: board.post(1, lease=5),
    "post timeout": lambda board: board.post(1, timeout=5),
    "post expire": lambda board: board.post(1, expire=5),
    "post retain": lambda board: board.post(1, retain=5),
    "post for": lambda board: board.post(1, unique="a", for_=5),
    "post many": lambda board: board.post_many([1], delay=5),
    "node": lambda board: board.flow([jobboard.Node("a", 1, delay=5)]),
    "fixed": lambda board: board.post(1, backoff=5),
    "exponential": lambda board: board.post(1, backoff=("1s", 5)),
    "schedule": lambda board: board.schedule_set("s", every=5),
    "spread": lambda board: board.schedule_set("s", every="1m", spread=5),
    "pause": lambda board: board.pause(for_=5),
    "register": lambda board: board.worker_register("w", for_=5),
    "wait": lambda board: board.wait("a", timeout=5),
    "wait for": lambda board: board.wait_for("empty", timeout=5),
    "result": lambda board: board.result("a", timeout=5),
    "call": lambda board: board.call(1, within=5),
    "claim": lambda board: board.claim("w", lease=5),
    "claim block": lambda board: board.claim("w", block=5),
    "claim id": lambda board: board.claim_id("w", "a", lease=5),
    "heartbeat": lambda board: board.heartbeat("w", "a", lease=5),
    "heartbeats": lambda board: board.mheartbeat("w", ["a"], lease=5),
    "all heartbeats": lambda board: board.mheartbeat_all("w", lease=5),
    "consume": lambda board: board.consume("w", "a", retain=5),
    "fail": lambda board: board.fail("w", "a", "kind", retry=5),
    "abandon": lambda board: board.abandon("w", "a", delay=5),
    "mabandon": lambda board: board.mabandon("w", ["a"], delay=5),
    "mfail": lambda board: board.mfail("w", ["a"], "kind", retry=5),
    "update": lambda board: board.update("a", lease=5),
    "setting": lambda board: board.settings_set({"lease": 5}),
    "Retry": lambda board: Retry("busy", delay=5),
    "Abandon": lambda board: Abandon("busy", delay=5),
    "Next": lambda board: Next("q", delay=5),
    "Complete": lambda board: Complete(1, retain=5),
    "sleep": lambda board: Context(None, "w", None, None).sleep(5),
    "flush": lambda board: Context(None, "w", None, None).flush(5),
    **{
        f"Worker {name}": lambda board, name=name: Worker(board, **{name: 5})
        for name in ("lease", "block", "stop_within", "kill_after")
    },
}


@pytest.mark.parametrize("way", WAYS)
def test_no_parameter_takes_a_number(jobs, way) -> None:
    jobs.handlers.handler()(print)
    with pytest.raises(TypeError, match=f"{SENTENCE}: 5 may mean"):
        WAYS[way](jobs)
    assert jobs.info() is None, "nothing was sent"


@pytest.mark.parametrize(
    "words",
    [
        ["post", "b", "1", "--delay"],
        ["post", "b", "1", "--wait"],
        ["worker", "m:b", "--lease"],
        ["worker", "m:b", "--stop-within"],
        ["pause", "b", "--for"],
        ["top", "b", "--every"],
        ["import", "streams", "b", "s", "--group", "g", "--idle"],
    ],
    ids=" ".join,
)
def test_the_command_line_takes_none_either(words, capsys) -> None:
    build_parser().parse_args([*words, "5s"])
    with pytest.raises(SystemExit):
        build_parser().parse_args([*words, "5"])
    assert "'5' is no duration: write 5s or 5ms" in capsys.readouterr().err


def test_the_settings_that_are_durations_are_known(jobs) -> None:
    """Those of commands.md whose range is in ms."""
    rows = re.findall(
        r"^\| `([a-z-]+)` \| .* \| (.*?) \| \S+ \| (.*?) \|$", (ROOT / "commands.md").read_text(), re.M
    )
    names = {name for name, range, scopes in rows if "board" in scopes and range.endswith(" ms")}
    assert names == DURATIONS
    jobs.settings_set({"lease": "1m", "rate-period": timedelta(seconds=2), "rate": 5})
    found = jobs.settings_get("lease", "rate-period", "rate")
    assert [found[name].value for name in ("lease", "rate-period", "rate")] == [60_000, 2000, 5]
