"""No call allocates much beside what it carries and returns: each option of each command at its largest.

What is tried follows from COMMAND DOCS: see `largest`. An option that is named once and given to many jobs
has a bound on all its copies (`max-shared`); what is refused for that is tried smaller.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import redis
from command_docs import module_docs
from expect import error_text
from harness import Board, Server
from largest import CLAIMED, FIXED, TEXT, Call, N, Token, Words, calls_of

EXTRA = 24 << 20
"""So much may one command allocate beside what it carries and returns, here: see `few`. 64 MiB by default."""
COPIES = 4
"""How often the server may have that at a time: as it came, as arguments, in the board, in the reply."""
NAMED = 1_000
"""So many names of each sort there are for commands that tell of them."""
NAMES = {
    *("QUEUES", "GROUPS", "LIMITS", "WORKERS", "KINDS", "TAGS", "INFO", "STATS", "METRICS"),
    *("SCHEDULE LIST", "WORKER LIST"),
}
"""Commands that tell of names."""
READS = {*NAMES, "GET", "MGET", "LIST", "COUNT", "HISTORY", "EXPLAIN"}
"""Commands that leave the board as it is."""
PARTS = 4

REFUSED = (
    "STRICT needs AFTER|SET needs at least one option|TZ goes with CRON|SHARE needs PARENT|"
    "ALL excludes RESULTS|UNIQUE goes with a single payload"
)
"""Why an option does not stand alone, or not for many jobs."""


@pytest.mark.parametrize("part", range(PARTS))
def test_the_largest_calls_allocate_little_beside_what_they_carry_and_return(fresh_server, part):
    server = fresh_server()
    few(server)
    docs = module_docs(server)
    words = Words(fields_of(server.board()))
    wrong = []
    for name in sorted(docs)[part::PARTS]:
        server.flush()
        for call in calls_of(name, docs[name].get("arguments", []), words):
            wrong += [f"{name} {call.option}: {fault}" for fault in faults(server, name, call)]
    assert not wrong, "\n".join(wrong)


def fields_of(board: Board) -> list[str]:
    with pytest.raises(redis.ResponseError) as error:
        board.call("LIST", "FIELDS", 1, "?")
    return str(error.value).split("one of ")[1].split(", ")


def few(server: Server) -> None:
    """Lets one command do a fifth of what it may by default: the test is quicker, and shows the same."""
    server.client().config_set("jobboard.max-batch", N)
    server.client().config_set("jobboard.max-shared", (8 << 20) * N // 10_000)


def faults(server: Server, name: str, call: Call) -> list[str]:
    """Why a call is no good; nothing for one that is accepted and allocates little."""
    for _ in range(8):
        tokens = prepare(server, name)
        words = [tokens[word] if isinstance(word, Token) else word for word in call.words]
        error, allocated, carried = measured(server, [*name.split(), *words])
        if allocated > EXTRA + COPIES * carried:
            return [f"{allocated} bytes allocated, {carried} carried: {error}"]
        shared = re.search(r"(\d+) (?:bytes|jobs), more than (?:max-shared \()?(\d+)", error or "")
        if not shared:
            break
        call = call.smaller(0.8 * int(shared[2]) / int(shared[1]))
    known = error is None or re.match(f"ERR ({REFUSED})", error)
    return [] if known else [error]


def measured(server: Server, words: list) -> tuple[str | None, int, int]:
    """The error of a call, how many bytes it allocated at a time, how many it carried and returned."""
    client = server.client()
    client.memory_purge()
    process = Path(f"/proc/{server.process.pid}")
    (process / "clear_refs").write_text("5")
    before, told = resident(process, "VmRSS"), client.info()
    error = None
    try:
        client.execute_command(*words)
    except redis.ResponseError as refused:
        error = error_text(refused)
    after = client.info("stats")
    carried = 64 * len(words)
    carried += sum(after[name] - told[name] for name in ("total_net_input_bytes", "total_net_output_bytes"))
    return error, resident(process, "VmHWM") - before, carried


def resident(process: Path, line: str) -> int:
    status = (process / "status").read_text()
    return int(re.search(rf"{line}:\s+(\d+) kB", status)[1]) << 10


def prepare(server: Server, name: str) -> list[int]:
    """A board on which the command has most to do; the tokens of its claimed jobs."""
    board = server.board()
    run = board.client.execute_command
    if name.removeprefix("JOB.") in READS and board.client.exists("board"):
        return []
    run("FLUSHALL", "SYNC")
    user = ["QUEUE", "awaited", "USER", FIXED["user"]]
    verb, numbers = name.removeprefix("JOB."), range(N)
    if verb in NAMES:
        return name_much(board)
    board.call("MPOST", N, *["x"] * N, "IDS", N, *[f"a{at}" for at in numbers], *user)
    run("JOB.SETTINGS", "SET", "board", "LIMIT", "l", "concurrency", 5)
    run("JOB.SCHEDULE", "SET", "board", "s", "x", "EVERY", 1 << 40)
    run("JOB.WORKER", "REGISTER", "board", "w1")
    ids = [f"j{at}" for at in numbers]
    if verb == "GET":
        board.post(id="j0")
        board.call("MPOST", N, *["x"] * N, "PARENT", "j0")
        return []
    board.call("MPOST", N, *["x"] * N, "IDS", N, *ids, *user[2:])
    if verb == "REQUEUE":
        board.call("CANCEL", N, *ids)
    if verb not in CLAIMED:
        return []
    return [job["token"] for job in board.claim("w1", count=N, fields=["token"])]


def name_much(board: Board) -> list[int]:
    """As many queues, groups, tags, kinds, workers, limits and schedules, with long names."""
    pipe = board.client.pipeline(transaction=False)
    for at in range(NAMED):
        long = f"{at:0>255}"
        short = f"s{at}"
        pipe.execute_command(
            "JOB.POST", "board", "x", "QUEUE", long, "GROUP", long, "TAGS", 1, long, "ID", short
        )
        pipe.execute_command("JOB.CLAIM", "board", "w", "QUEUE", long, "FIELDS", 1, "id")
        pipe.execute_command("JOB.FAIL", "board", "w", short, long, "m", "NORETRY")
        pipe.execute_command("JOB.POST", "board", "x", "QUEUE", long)
        pipe.execute_command("JOB.CLAIM", "board", long, "QUEUE", long, "FIELDS", 1, "id")
        pipe.execute_command("JOB.SCHEDULE", "SET", "board", short, "x" * TEXT, "EVERY", 1 << 40)
        pipe.execute_command("JOB.WORKER", "REGISTER", "board", long, "META", 1, "f", "v" * TEXT)
        pipe.execute_command("JOB.SETTINGS", "SET", "board", "LIMIT", long, "concurrency", 5)
    pipe.execute()
    return []
