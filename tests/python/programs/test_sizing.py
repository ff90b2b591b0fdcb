"""docs/operate/sizing.md: the formula of memory, and the table it sums up, against a server."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from documents import ROOT, table
from harness import Board, Server
from lives import LONG

PAGE = (ROOT / "docs/operate/sizing.md").read_text()
JOBS, BATCH = 20_000, 1000
NEAR = 0.15
"""Tables and trees grow by steps, so a board of another size is a little off."""
TABLE = {
    row["what waits"]: [int(number) for number in row["bytes"].split(", ")]
    for row in table(PAGE, "Memory")
    if "to" not in row["bytes"]
}


@pytest.fixture(scope="module")
def redis70() -> Iterator[Server]:
    """The table is of Redis 7.0 with jemalloc."""
    server = Server("redis70")
    yield server
    server.close()


def post(board: Board, size: int = 100, **options: object) -> None:
    for _ in range(0, JOBS, BATCH):
        board.mpost(["x" * size] * BATCH, **options)


def post_each(board: Board, **options: Callable[[int], object]) -> None:
    for first in range(0, JOBS, BATCH):
        with board.client.pipeline(transaction=False) as pipe:
            for number in range(first, first + BATCH):
                Board(pipe).post("x" * 100, **{name: value(number) for name, value in options.items()})
            pipe.execute()


def claim(board: Board) -> None:
    post(board)
    for _ in range(0, JOBS, BATCH):
        board.claim("w1", count=BATCH)


def fail(board: Board) -> None:
    post(board, backoff=("FIXED", LONG))
    for _ in range(0, JOBS, BATCH):
        board.claim("w1", count=BATCH)
        board.call("MFAIL", "w1", "KeyError", "no such key", "ALL")


def complete(board: Board) -> None:
    post(board, retain=1 << 30)
    for _ in range(0, JOBS, BATCH):
        board.claim("w1", count=BATCH)
        board.call("MCONSUME", "w1", "ALL")


CASES: list[tuple[str, int, Callable[[Board], None]]] = [
    ("no payload", 0, lambda board: post(board, 0)),
    *(
        ("payload of 10, 100, 300, 1000 bytes", at, lambda board, size=size: post(board, size))
        for at, size in enumerate((10, 100, 300, 1000))
    ),
    ("an id of the client's making (20 bytes)", 0, lambda board: post_each(board, id=lambda n: f"{n:020}")),
    ("delayed", 0, lambda board: post(board, delay=1 << 30)),
    ("a group for each job", 0, lambda board: post_each(board, group=lambda n: f"group-{n}")),
    ("a user, or a meta field", 0, lambda board: post(board, user="ann")),
    ("a user, or a meta field", 1, lambda board: post(board, meta={"k": "v"})),
    ("a unique key", 0, lambda board: post_each(board, unique=lambda n: f"key-{n}")),
    ("claimed", 0, claim),
    ("failed once, waiting for its next try", 0, fail),
    ("complete, kept by `RETAIN`", 0, complete),
]


@pytest.mark.parametrize("row, at, make", CASES, ids=[f"{row}-{at}" for row, at, _ in CASES])
def test_a_job_takes_what_the_table_says(redis70: Server, row: str, at: int, make) -> None:
    redis70.flush()
    board, client = redis70.board(), redis70.client()
    board.post("x")
    before = client.info("memory")["used_memory"]
    make(board)
    each = (client.info("memory")["used_memory"] - before) / JOBS
    assert each == pytest.approx(TABLE[row][at], rel=NEAR), row


def test_the_formula_sums_the_table_up() -> None:
    [fixed] = map(int, re.findall(r"waiting  =  (\d+) \+ payload", PAGE))
    for size, told in zip((0, 10, 100, 300, 1000), TABLE["no payload"] + TABLE[CASES[1][0]]):
        assert told == pytest.approx(fixed + size, rel=NEAR)
    waiting = TABLE[CASES[1][0]][1]
    [claimed] = map(int, re.findall(r"claimed  =  waiting \+ (\d+)", PAGE))
    assert TABLE["claimed"][0] == waiting + claimed
    lines = re.findall(r"waiting \+ (\d+)(?: to (\d+))?: (?:with|tried)", PAGE)
    rare, keyed, least, most = (int(number) for found in lines for number in found if number)
    assert TABLE["a user, or a meta field"] == pytest.approx([waiting + rare] * 2, rel=NEAR)
    assert TABLE["a unique key"][0] == pytest.approx(waiting + keyed, rel=NEAR)
    for row in ("failed once, waiting for its next try", "complete, kept by `RETAIN`"):
        assert waiting + least <= TABLE[row][0] + 10 and TABLE[row][0] <= waiting + most + 10
