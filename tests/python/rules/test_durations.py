"""Durations: a number of milliseconds, or text with units."""

from __future__ import annotations

import pytest
from calls import DURATION, RANGES, find
from expect import MS, error_of, refused, refused_like
from harness import EPOCH, Board
from lives import ready

OPTIONS = [where for where, (_, high) in RANGES.items() if high == DURATION]


@pytest.mark.parametrize("where", OPTIONS)
def test_a_duration_with_units_is_its_milliseconds(clocked_board: Board, where: str) -> None:
    name, option = where.split()
    call = find(name, option)
    chosen = ["ID", "new"] if name == "POST" else []

    def outcome(value: object) -> tuple[object, ...]:
        clocked_board.client.flushall()
        ready(clocked_board, "other")
        error = error_of(clocked_board, name, *call.head, *chosen, option, value)
        records = [clocked_board.get(id) for id in ("other", "new")]
        return error, [job and {**job, "token": None} for job in records]

    assert outcome("1m30s") == outcome(90_000)
    assert outcome("1m30s") != outcome("x")


def test_replies_are_milliseconds(clocked_board: Board) -> None:
    clocked_board.call("POST", "x", "ID", "j", "DELAY", "1h30m")
    assert clocked_board.get("j")["due"] == EPOCH + 5_400_000
    clocked_board.call("SETTINGS SET", "lease", "45s")
    assert clocked_board.settings("lease") == {"lease": [45_000, "board"]}


@pytest.mark.parametrize(
    "wrong",
    [
        "5sec",
        "5S",
        "1.5s",
        "-5s",
        "5 s",
        "s",
        "30m1h",
        "1h1h",
        "1h30",
        "400000d",
        pytest.param("9" * 40 + "s", id="long"),
    ],
)
def test_what_is_no_duration_is_refused(board: Board, wrong: str) -> None:
    ready(board, "other")
    with refused(f"ERR DELAY must be an integer from 0 to {2**40}{MS}", board):
        board.call("POST", "x", "DELAY", wrong)


def test_a_time_takes_no_units(board: Board) -> None:
    with refused_like(r"ERR AT must be an integer from 0 to \d+ Unix milliseconds", board):
        board.call("POST", "x", "AT", "5s")
