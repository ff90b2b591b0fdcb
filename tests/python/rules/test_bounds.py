"""Every count and length that comes from outside has a limit: what is at it works, one past it is refused.

The table Limits of commands.md says the same. The ranges of numbers are in test_syntax.py.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import lives
import pytest
from calls import CALLS
from expect import check_consistent, error_of, refused, refused_like
from lives import LONG

COMMANDS = Path(__file__).resolve().parents[3] / "commands.md"


def ask(board, words):
    return board.client.execute_command(f"JOB.{words[0]}", *words[1:])


def refusal(board, words):
    """The error line, or None; commands with subcommands name them before the board."""
    sub = words[0] in ("SETTINGS", "SCHEDULE", "WORKER", "DEPEND")
    if not sub:
        return error_of(board, words[0], *words[1:])
    from expect import error_text

    try:
        ask(board, (words[0], words[1], board.key, *words[2:]))
    except Exception as error:
        return error_text(error)
    return None


NAMES = {
    "ID": ("POST", "x", "ID", None),
    "IDS": ("MPOST", 1, "x", "IDS", 1, None),
    "NAME": ("POST", "x", "NAME", None),
    "QUEUE": ("POST", "x", "QUEUE", None),
    "GROUP": ("POST", "x", "GROUP", None),
    "USER": ("POST", "x", "USER", None),
    "UNIQUE": ("POST", "x", "UNIQUE", None),
    "PARENT": ("POST", "x", "PARENT", None),
    "AFTER": ("POST", "x", "AFTER", 1, None),
    "TAGS": ("POST", "x", "TAGS", 1, None),
    "META field": ("POST", "x", "META", 1, None, "v"),
    "label": ("FLOW", 1, "NODE", None, "x"),
    "worker": ("CLAIM", None),
    "QUEUES": ("CLAIM", "w1", "QUEUES", 1, None),
    "ID of a claim": ("CLAIM", "w1", "ID", None),
    "id of a heartbeat": ("HEARTBEAT", "w1", None),
    "worker of a heartbeat": ("HEARTBEAT", None, "j"),
    "id of a step": ("STEP", "w1", None, "n", "v"),
    "name of a step": ("STEP", "w1", "j", None, "v"),
    "id of an await": ("AWAIT", "w1", None, "SIGNALS", 1, "s"),
    "SIGNALS": ("AWAIT", "w1", "j", "SIGNALS", 1, None),
    "STEP of an await": ("AWAIT", "w1", "j", "SIGNALS", 1, "s", "STEP", None),
    "name of a signal": ("SIGNAL", None, 1, "j"),
    "id of a signal": ("SIGNAL", "s", 1, None),
    "SENDER": ("SIGNAL", "s", 1, "j", "SENDER", None),
    "AWAIT": ("POST", "x", "AWAIT", 1, None),
    "AWAITS": ("LIST", "AWAITS", None),
    "UNSTEP": ("UPDATE", 1, "j", "SET", "UNSTEP", 1, None),
    "id of a consume": ("CONSUME", "w1", None),
    "NEXT": ("CONSUME", "w1", "j", "NEXT", None),
    "kind": ("FAIL", "w1", "j", None, "message"),
    "id of an abandon": ("ABANDON", "w1", None),
    "id of a trash": ("TRASH", "w1", None),
    "id of an M-form": ("MCONSUME", "w1", 1, None),
    "id of a cancel": ("CANCEL", 1, None),
    "BY": ("CANCEL", 1, "j", "BY", None),
    "queue of a requeue": ("REQUEUE", 1, "j", "QUEUE", None),
    "TO": ("REQUEUE", "WHERE", "STATE", "failed", "TO", None),
    "queue of an update": ("UPDATE", 1, "j", "SET", "QUEUE", None),
    "TAG": ("UPDATE", 1, "j", "SET", "TAG", 1, None),
    "UNTAG": ("UPDATE", 1, "j", "SET", "UNTAG", 1, None),
    "id of a get": ("GET", None),
    "id of an mget": ("MGET", 1, None),
    "id of a history": ("HISTORY", None),
    "id of an explain": ("EXPLAIN", None),
    "id of a wait": ("WAIT", 1, "JOBS", 1, None),
    "queue of a wait": ("WAIT", 1, "FOR", "claimable", "QUEUES", 1, None),
    "filter QUEUE": ("LIST", "QUEUE", None),
    "filter GROUP": ("LIST", "GROUP", None),
    "filter WORKER": ("LIST", "WORKER", None),
    "filter NAME": ("LIST", "NAME", None),
    "filter TAG": ("LIST", "TAG", None),
    "filter KIND": ("LIST", "KIND", None),
    "filter USER": ("LIST", "USER", None),
    "queue of a pause": ("PAUSE", "QUEUE", None),
    "group of a pause": ("PAUSE", "QUEUE", "q", "GROUP", None),
    "queue of a resume": ("RESUME", "QUEUE", None),
    "queue of groups": ("GROUPS", "QUEUE", None),
    "queue of stats": ("STATS", "QUEUE", None),
    "queue of settings": ("SETTINGS", "SET", "QUEUE", None, "lease", 5),
    "group of settings": ("SETTINGS", "SET", "QUEUE", "q", "GROUP", None, "weight", 5),
    "limit of settings": ("SETTINGS", "SET", "LIMIT", None, "concurrency", 5),
    "id of a dependency": ("DEPEND", "ADD", None, 1, "j"),
    "other of a dependency": ("DEPEND", "ADD", "r", 1, None),
    "registered worker": ("WORKER", "REGISTER", None),
    "ROLE": ("WORKER", "REGISTER", "w1", "ROLE", None),
}
"""Where a name stands: None is its place."""


@pytest.mark.parametrize("place", NAMES)
def test_a_name_has_1_to_255_bytes(server, place):
    board = server.board(decode_responses=False)
    for id in ("j", "r"):
        lives.ready(board, id)

    def said(name):
        return refusal(board, [name if word is None else word for word in NAMES[place]])

    for name in (b"x", b"x" * 255, b"\xff" * 255):
        assert not (said(name) or "").startswith("ERR"), said(name)
    before = board.digest()
    for name in (b"", b"x" * 256, b"x" * 100_000):
        assert re.fullmatch(r"ERR .+ must be 1 to 255 bytes long( in node .+)?", said(name) or ""), said(name)
    assert board.digest() == before


def test_the_id_of_a_schedule_has_1_to_230_bytes(board):
    for id, fits in [("x" * 230, True), ("x" * 231, False), ("", False), ("@x", False)]:
        line = refusal(board, ("SCHEDULE", "SET", id, "payload", "EVERY", LONG))
        assert (line is None) == fits, line
    board.client.execute_command("JOB.SCHEDULE", "RUN", "board", "x" * 230)
    [child] = board.list_all(justid=True)
    assert 230 < len(child) <= 255 and board.claim_one()["id"] == child


@pytest.mark.parametrize("option, most", [("CRON", 255), ("TZ", 64)])
def test_texts_of_a_schedule_have_a_length(board, option, most):
    cron = "0 9 * * MON" if option == "TZ" else None

    def said(text):
        words = ["CRON", cron, "TZ", text] if cron else ["CRON", text]
        return refusal(board, ("SCHEDULE", "SET", "s", "x", *words))

    assert said("x" * (most + 1)) == f"ERR {option} is longer than {most} bytes"
    assert "longer" not in said("x" * most)
    assert not board.client.exists("board")


TEXTS = {
    "STAGE": ("HEARTBEAT", "w1", "j", "STAGE", None),
    "LOG": ("HEARTBEAT", "w1", "j", "LOG", None),
    "META value": ("HEARTBEAT", "w1", "j", "META", 1, "f", None),
    "LOG of an update": ("UPDATE", 1, "j", "SET", "LOG", None),
    "META of an update": ("UPDATE", 1, "j", "SET", "META", 1, "f", None),
    "META of a post": ("POST", "x", "META", 1, "f", None),
    "META of a worker": ("WORKER", "REGISTER", "w1", "META", 1, "f", None),
    "REASON of an abandon": ("ABANDON", "w1", "j", "REASON", None),
    "REASON of many": ("MABANDON", "w1", 1, "j", "REASON", None),
    "REASON of many trashed": ("MTRASH", "w1", 1, "j", "REASON", None),
    "REASON of a trash": ("TRASH", "w1", "j", "REASON", None),
}
PAYLOADS = {
    "POST": ("POST", None),
    "MPOST": ("MPOST", 2, "x", None),
    "FLOW": ("FLOW", 1, "NODE", "a", None),
    "SCHEDULE": ("SCHEDULE", "SET", "s", None, "EVERY", LONG),
    "HEARTBEAT": ("HEARTBEAT", "w1", "j", "PAYLOAD", None),
    "STEP": ("STEP", "w1", "j", "n", None),
    "PAYLOAD of an await": ("AWAIT", "w1", "j", "SIGNALS", 1, "s", "PAYLOAD", None),
    "VALUE": ("SIGNAL", "s", 1, "j", "VALUE", None),
    "UPDATE": ("UPDATE", 1, "r", "SET", "PAYLOAD", None),
    "CONSUME": ("CONSUME", "w1", "j", "PAYLOAD", None),
    "RESULT": ("CONSUME", "w1", "j", "RESULT", None),
    "RESULT of many": ("MCONSUME", "w1", 1, "j", "RESULT", None),
    "RESULTS": ("MCONSUME", "w1", 2, "i", "j", "RESULTS", 2, "x", None),
    "FAIL": ("FAIL", "w1", "j", "kind", "message", "PAYLOAD", None),
}


@pytest.mark.parametrize(
    "setting, words",
    [("max_text", words) for words in TEXTS.values()]
    + [("max_payload", words) for words in PAYLOADS.values()],
    ids=[f"text-{name}" for name in TEXTS] + [f"payload-{name}" for name in PAYLOADS],
)
def test_texts_and_payloads_have_a_length_by_setting(server, setting, words):
    board = server.board()
    lives.ready(board, "r")
    with server.configured(**{f"jobboard__{setting}": 100}):
        lives.claimed(board)
        before = board.digest()
        line = refusal(board, ["x" * 101 if word is None else word for word in words])
        assert re.fullmatch(r"ERR .+ is longer than 100 bytes( in node 'a')?", line or ""), line
        assert board.digest() == before
        assert refusal(board, ["x" * 100 if word is None else word for word in words]) is None


def listed(n: int, *around) -> list:
    """A list of n different ids where ... stands, its length before it."""
    words: list = []
    for word in around:
        words += [n, *[f"x{number}" for number in range(n)]] if word is ... else [word]
    return words


LISTS = {
    "MPOST": ("MPOST", ...),
    "IDS": ("IDS",),
    "FLOW": ("FLOW",),
    "AFTER": ("POST", "x", "AFTER", ...),
    "QUEUES": ("CLAIM", "w1", "QUEUES", ...),
    "MHEARTBEAT": ("MHEARTBEAT", "w1", ...),
    "MCONSUME": ("MCONSUME", "w1", ...),
    "MABANDON": ("MABANDON", "w1", ...),
    "MFAIL": ("MFAIL", "w1", "k", "m", ...),
    "MTRASH": ("MTRASH", "w1", ...),
    "CANCEL": ("CANCEL", ...),
    "RELEASE": ("RELEASE", ...),
    "REQUEUE": ("REQUEUE", ...),
    "DELETE": ("DELETE", ...),
    "UPDATE": ("UPDATE", ..., "SET", "PRIORITY", 1),
    "UNSTEP": ("UPDATE", 1, "j", "SET", "UNSTEP", ...),
    "SIGNAL": ("SIGNAL", "s", ...),
    "MGET": ("MGET", ...),
    "WAIT JOBS": ("WAIT", 1, "JOBS", ...),
    "WAIT QUEUES": ("WAIT", 1, "FOR", "claimable", "QUEUES", ...),
    "DEPEND": ("DEPEND", "ADD", "j", ...),
    "FIELDS": ("FIELDS",),
    "TOKENS": ("TOKENS",),
    "RESULTS": ("RESULTS",),
    "COUNT of a claim": ("CLAIM", "w1", "COUNT", None),
    "COUNT of a list": ("LIST", "COUNT", None),
    "COUNT of a selection": ("CANCEL", "WHERE", "STATE", "failed", "COUNT", None),
    "COUNT of children": ("GET", "j", "CHILDREN", "COUNT", None),
    "COUNT of groups": ("GROUPS", "COUNT", None),
    "COUNT of limits": ("LIMITS", "COUNT", None),
    "COUNT of tags": ("TAGS", "COUNT", None),
    "COUNT of queues": ("QUEUES", "COUNT", None),
    "COUNT of workers that hold jobs": ("WORKERS", "COUNT", None),
    "COUNT of kinds": ("KINDS", "COUNT", None),
    "COUNT of schedules": ("SCHEDULE", "LIST", "COUNT", None),
    "COUNT of workers": ("WORKER", "LIST", "COUNT", None),
}


def list_of(name: str, n: int) -> list:
    if name == "IDS":
        return ["MPOST", 1, "x", *listed(n, "IDS", ...)]
    if name == "FLOW":
        return ["FLOW", n, *[word for number in range(n) for word in ("NODE", f"l{number}", "x")]]
    if name == "FIELDS":
        return ["GET", "j", "FIELDS", n, *["id"] * n]
    if name in ("TOKENS", "RESULTS"):
        return ["MCONSUME", "w1", 1, "x", name, n, *[5] * n]
    return [n if word is None else word for word in listed(n, *LISTS[name])]


@pytest.mark.parametrize("name", LISTS)
def test_lists_and_counts_have_a_length_by_setting(server, name):
    board = server.board()
    lives.ready(board)
    with server.configured(jobboard__max_batch=8):
        before = board.digest()
        line = refusal(board, list_of(name, 9))
        assert re.fullmatch(r"ERR .+ must be an integer from [01] to 8", line or ""), line
        assert board.digest() == before
        line = refusal(board, list_of(name, 8))
        assert line is None or "must be an integer" not in line, line


def test_boards_of_the_metrics_have_a_number_by_setting(server):
    client = server.client()
    with server.configured(jobboard__max_batch=8):
        client.execute_command("JOB.METRICS", *["b"] * 8)
        with refused("ERR no more than 8 boards can be named"):
            client.execute_command("JOB.METRICS", *["b"] * 9)


def test_a_job_has_64_tags(board):
    tags = [f"t{n}" for n in range(65)]
    board.post(id="j", tags=tags[:64])
    assert refusal(board, ("POST", "x", "TAGS", 65, *tags)) == "ERR TAGS must be an integer from 0 to 64"
    for option in ("TAG", "UNTAG"):
        line = refusal(board, ("UPDATE", 1, "j", "SET", option, 65, *tags))
        assert line == f"ERR {option} must be an integer from 1 to 64"
    with refused("LIMIT tags j", board):
        board.update("j", tag=["one more"])
    board.update("j", tag=["t5"])
    assert len(board.get("j")["tags"]) == 64


def test_a_job_and_a_worker_have_64_meta_fields(board):
    meta = {f"f{n}": "v" for n in range(65)}
    first = dict(list(meta.items())[:64])
    board.post(id="j", meta=first)
    lives.claim(board)
    for words in [
        ("POST", "x"),
        ("HEARTBEAT", "w1", "j"),
        ("UPDATE", 1, "j", "SET"),
        ("WORKER", "REGISTER", "w1"),
    ]:
        pairs = [word for pair in meta.items() for word in pair]
        assert refusal(board, (*words, "META", 65, *pairs)) == "ERR META must be an integer from 1 to 64"
    with refused("LIMIT meta fields", board):
        board.heartbeat("w1", "j", meta={"one more": "v"})
    with refused_like("LIMIT meta fields.*", board):
        board.update("j", meta={"one more": "v"})
    board.heartbeat("w1", "j", meta={"f5": "other"})
    assert board.get("j")["meta"]["f5"] == "other"
    board.worker("REGISTER", "w2", meta=first)


def test_a_job_waits_for_10000_others(server):
    board = server.board()
    half = [f"x{n}" for n in range(5000)]
    more = [f"y{n}" for n in range(5001)]
    for ids in (half, more):
        for start in range(0, len(ids), 1000):
            some = ids[start : start + 1000]
            board.mpost(["x"] * len(some), ids=some)
    words = ["POST", "x", "ID", "last", *("AFTER", 5000, *half)]
    line = refusal(board, [*words, "AFTER", 5001, *more])
    assert line is not None and line.startswith(("LIMIT dependencies", "ERR")), line
    assert board.get("last") is None
    assert refusal(board, [*words, "AFTER", 5000, *more[:5000]]) is None
    with refused("LIMIT dependencies", board):
        board.depend("ADD", "last", more[5000:])
    assert len(board.get("last")["after"]) == 10_000
    check_consistent(board)


FILTERED = ["LIST", "COUNT", "CANCEL WHERE", "RELEASE WHERE", "REQUEUE WHERE", "DELETE WHERE"]


@pytest.mark.parametrize("command", FILTERED)
def test_100_filters_can_be_named(board, command):
    lives.ready(board, name="n7")
    filters = [word for n in range(50) for word in ("NAME", f"n{n}", "NOT", "TAG", f"t{n}")]
    with refused("ERR no more than 100 filters can be named", board):
        board.call(*command.split(), *filters, "LAPSED")
    reply = board.call(*command.split(), *filters)
    assert command not in ("LIST", "COUNT") or reply == 1 or len(reply[1]) == 1


def test_many_filters_cost_what_they_are(server, board):
    """A hundred alternatives on ten thousand jobs: each is asked once, which is less than a post."""
    empty = server.cpu()
    board.post_many(10_000, name="n")
    filled = server.cpu()
    filters = [word for n in range(100) for word in ("USER", f"u{n}")]
    assert board.call("COUNT", *filters) == 0
    assert server.cpu() - filled < filled - empty


def test_a_queue_names_16_limits(board):
    names = [f"l{n}" for n in range(17)]
    for name in names:
        board.set(limit=name, concurrency=5)
    board.set(queue="q", limits=names[:16])
    with refused("ERR limits must be an integer from 0 to 16", board):
        board.set(queue="q", limits=names)


def test_a_board_has_10000_named_limits(board):
    pipe = board.client.pipeline(transaction=False)
    for n in range(10_000):
        pipe.execute_command("JOB.SETTINGS", "SET", "board", "LIMIT", f"l{n}", "concurrency", 1)
    pipe.execute()
    with refused("LIMIT limits", board):
        board.set(limit="one more", concurrency=1)
    board.set(limit="l5", concurrency=2)
    board.reset("concurrency", limit="l7")
    board.set(limit="one more", concurrency=1)


def test_1000_groups_name_a_limit_themselves(board):
    board.set(limit="api", concurrency=5)
    pipe = board.client.pipeline(transaction=False)
    for n in range(1000):
        pipe.execute_command(
            "JOB.SETTINGS", "SET", "board", "QUEUE", "q", "GROUP", f"g{n}", "limits", 1, "api"
        )
    pipe.execute()
    with refused("LIMIT groups", board):
        board.set(queue="q", group="one more", limits=["api"])
    board.set(queue="q", group="g5", limits=["api"])


def test_a_board_has_10000_registered_workers(board):
    pipe = board.client.pipeline(transaction=False)
    for n in range(10_000):
        pipe.execute_command("JOB.WORKER", "REGISTER", "board", f"w{n}")
    pipe.execute()
    with refused("LIMIT workers", board):
        board.worker("REGISTER", "one more")
    board.worker("REGISTER", "w5")


def test_a_job_has_32_ancestors(board):
    board.post(id="g0")
    for n in range(1, 33):
        board.post(id=f"g{n}", parent=f"g{n - 1}")
    with refused("LIMIT generations g32", board):
        board.post(id="g33", parent="g32")


def test_every_limit_stands_in_the_reference():
    text = COMMANDS.read_text()
    table = text[text.index("\n## Limits") : text.index("\n## Errors")]
    for what in "255 230 64 10,000 1,000 100 16 32 max-batch max-text max-payload 2^40 2^47".split():
        assert what in table, what


def test_every_list_of_the_syntax_is_tried_here():
    """A command whose syntax has a list, by its length, is in the tests above."""
    tried = {words[0] for words in LISTS.values()} | {"MPOST", "FLOW", "GET", "MCONSUME", "METRICS"}
    lists = ((call.name, pair) for call in CALLS for pair in pairwise(("", *call.head)))
    with_lists = {name for name, (before, word) in lists if word.isdigit() and before != "MIN"}
    # AWAIT names few signals, whatever the setting: see test_signals.py.
    assert with_lists - tried <= {"HEARTBEAT", "AWAIT"}, with_lists - tried
