"""docs/operate/sizing.md: the formula of memory, and the table it sums up, against a server."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from documents import ROOT, table
from harness import Board, Server, wait_until
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
BOARDS = 1000
LARGEST = {"has a setting and no job": 2048, "has its first small job": 3072}
"""What a board may take at most, bytes."""
BOARD_TABLE = {row["a board that"]: int(row["bytes"].replace(",", "")) for row in table(PAGE, "Many boards")}
TOLD_NEAR = 0.05
"""How near MEMORY USAGE is to what the allocator holds."""


@pytest.fixture(scope="module")
def redis70() -> Iterator[Server]:
    """The table is of Redis 7.0 with jemalloc."""
    server = Server("redis70", config=["slowlog-log-slower-than -1"])
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
        board.claim("w1", count=BATCH, lease=LONG)


def fail(board: Board) -> None:
    post(board, backoff=("FIXED", LONG))
    for _ in range(0, JOBS, BATCH):
        board.claim("w1", count=BATCH, lease=LONG)
        board.call("MFAIL", "w1", "KeyError", "no such key", "ALL")


def complete(board: Board) -> None:
    post(board, retain=1 << 30)
    for _ in range(0, JOBS, BATCH):
        board.claim("w1", count=BATCH, lease=LONG)
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
    before = held(client)
    make(board)
    each = (held(client) - before) / JOBS
    assert each == pytest.approx(TABLE[row][at], rel=NEAR), row


@pytest.mark.parametrize("row, at, make", CASES, ids=[f"{row}-{at}" for row, at, _ in CASES])
def test_memory_usage_of_a_large_board_is_what_the_allocator_holds(
    redis70: Server, row: str, at: int, make
) -> None:
    redis70.flush()
    board, client = redis70.board(), redis70.client()
    # The module keeps some buffers for the next command; they are no board's.
    make(redis70.board("other"))
    client.execute_command("FLUSHALL", "SYNC")
    board.post("x")
    before, told = held(client), client.memory_usage(board.key)
    make(board)
    more = held(client) - before
    assert client.memory_usage(board.key) - told == pytest.approx(more, rel=TOLD_NEAR), row


def test_a_large_command_leaves_no_buffer_behind(redis70: Server) -> None:
    redis70.flush()
    board, client = redis70.board(), redis70.client()
    board.post("x")
    before = held(client)
    for id in board.mpost(["x" * 100_000] * 100):
        board.delete(id)
    assert held(client) - before < 1 << 20


def held(client) -> int:
    """What the allocator holds, without the buffers of other clients, which are gone then."""
    client.client_kill_filter(_type="normal", skipme=True)
    wait_until(lambda: len(client.client_list()) == 1)
    return client.info("memory")["used_memory"]


def setting(board: Board) -> None:
    board.set(lease=40_000)


def first_job(board: Board) -> None:
    board.post("x" * 60)


def whole_life(board: Board) -> None:
    first_job(board)
    [job] = board.claim("w1", lease=LONG)
    board.consume("w1", job["id"], token=job["token"])


@pytest.mark.parametrize(
    "row, make",
    [
        ("has a setting and no job", setting),
        ("has its first small job", first_job),
        ("has had a job, which was posted, claimed and consumed", whole_life),
    ],
)
def test_a_board_takes_what_the_table_says(redis70: Server, row: str, make) -> None:
    redis70.flush()
    client, board = redis70.client(), redis70.board("warm")
    whole_life(board)
    before = held(client)
    for number in range(BOARDS):
        board.key = f"b{number:04}"
        make(board)
    each = (held(client) - before) / BOARDS
    assert each == pytest.approx(BOARD_TABLE[row], rel=NEAR)
    assert each <= LARGEST.get(row, each)
    assert client.memory_usage("b0000") == pytest.approx(each, rel=TOLD_NEAR)


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
