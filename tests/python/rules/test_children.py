"""AFTER CHILDREN of a post, CHILDREN of JOB.AWAIT: waiting for children."""

from __future__ import annotations

import lives
import pytest
from expect import refused
from harness import EPOCH, from_pairs

CHILDREN = ("AFTER", "CHILDREN")


def waits(board, id="p", token=None, **options):
    """JOB.AWAIT … CHILDREN: what a worker learns."""
    words = ["TOKEN", token] if token else []
    return from_pairs(board.call("AWAIT", "w1", id, "CHILDREN", *words, **options))


def parent(board, *children, id="p", **options) -> int:
    """A job that w1 holds, with these children; the token."""
    token = lives.claimed(board, id)
    for child in children:
        board.post(id=child, parent=id, **options)
    return token


def ends(board, *ids, failing=False) -> None:
    for id in ids:
        lives.claim(board, id, "w2")
        if failing:
            board.fail("w2", id, noretry=True)
        else:
            board.consume("w2", id)


def sums(board, id="p") -> tuple:
    job = board.get(id)
    return job["state"], job["children"], job["pending"], job["unsuccessful"]


def test_a_job_is_given_up_until_its_children_have_ended(clocked_board, clock):
    board = clocked_board
    token = parent(board, "a", "b")
    assert waits(board, token=token) == {"state": "blocked"}
    awaits = board.get("p")["awaits"]
    assert from_pairs(awaits.pop("children")) == {"since": EPOCH, "onfailure": "hold"}
    assert awaits == {}
    ends(board, "a")
    board.post(id="c", parent="p")
    ends(board, "b")
    assert sums(board) == ("blocked", 3, 1, 0)
    clock.advance(5)
    ends(board, "c")
    assert sums(board) == ("ready", 3, 0, 0)
    assert "awaits" not in board.get("p")
    token = lives.claim(board, "p", lease=1000)
    answer = waits(board, token=token)
    assert not answer["signals"]
    assert answer == {
        "state": "claimed",
        "timeout": 0,
        "signals": answer["signals"],
        "children": 3,
        "pending": 0,
        "unsuccessful": 0,
        "deadline": EPOCH + 1005,
        "cancel": 0,
    }
    assert [entry["children"] for entry in board.history("p") if entry["event"] == "awaiting"] == [2]


ENDS = {"hold": "blocked", "cancel": "cancelled", "fail": "failed", "run": "blocked"}


@pytest.mark.parametrize("onfailure", ENDS)
def test_a_child_without_success(board, onfailure):
    board.set(retain_cancelled=lives.LONG)
    parent(board, "a", "b")
    assert waits(board, onfailure=onfailure) == {"state": "blocked"}
    ends(board, "a", failing=True)
    assert sums(board) == (ENDS[onfailure], 2, 1, 1)
    # With what has failed already, the answer says how it ends.
    lives.claimed(board, "q")
    board.post(id="c", parent="q")
    ends(board, "c", failing=True)
    answer = waits(board, "q", onfailure=onfailure)
    assert answer["state"] == ("claimed" if onfailure == "run" else ENDS[onfailure])


def test_the_record_of_a_failure_may_be_gone(board):
    board.set(retain_failed=0)
    parent(board, "a", "b")
    waits(board)
    ends(board, "a", failing=True)
    ends(board, "b")
    assert (board.get("a"), sums(board)) == (None, ("blocked", 2, 0, 1))
    [reason] = map(from_pairs, from_pairs(board.call("EXPLAIN", "p"))["reasons"])
    told = [reason[name] for name in ("reason", "children", "pending", "unsuccessful", "onfailure", "jobs")]
    assert told == ["children", 2, 0, 1, "hold", []]
    remove = ("JOB.DEPEND", "REMOVE", "board", "p", "CHILDREN")
    assert board.client.execute_command(*remove) == "ready"
    lives.claim(board, "p")
    assert waits(board)["state"] == "claimed"


def test_a_requeue_or_a_delete_mends_the_count(board):
    parent(board, "a", "b")
    waits(board)
    ends(board, "a", "b", failing=True)
    board.requeue("a")
    assert sums(board) == ("blocked", 2, 1, 1)
    board.delete("b")
    assert sums(board) == ("blocked", 1, 1, 0)
    ends(board, "a")
    assert sums(board) == ("ready", 1, 0, 0)


WAYS = {
    "POST": lambda board: board.call("POST", "x", "ID", "p", "REPLACE", *CHILDREN),
    "MPOST": lambda board: board.call("MPOST", 1, "x", "IDS", 1, "p", "REPLACE", *CHILDREN),
    "NEXT": lambda board: (
        lives.claim(board, "p"),
        board.call("CONSUME", "w1", "p", "NEXT", "q2", *CHILDREN),
    ),
    "DEPEND": lambda board: board.client.execute_command("JOB.DEPEND", "ADD", "board", "p", "CHILDREN"),
}


@pytest.mark.parametrize("way", WAYS)
def test_other_commands_wait_too(board, way):
    board.post(id="p")
    board.post(id="a", parent="p")
    WAYS[way](board)
    assert board.state("p") == "blocked"
    ends(board, "a")
    assert board.state("p") == "ready"


def test_a_flow_decides_when_all_of_it_is_there(board):
    flow = [
        "NODE",
        "sum",
        "x",
        "ID",
        "sum",
        "AFTER",
        "CHILDREN",
        "NODE",
        "a",
        "x",
        "ID",
        "a",
        "PARENT",
        "sum",
    ]
    board.call("FLOW", 3, *flow, "NODE", "alone", "x", "ID", "alone", "AFTER", "CHILDREN")
    assert [board.state(id) for id in ("sum", "a", "alone")] == ["blocked", "ready", "ready"]
    ends(board, "a")
    assert board.state("sum") == "ready"


def test_it_claims_the_next_job_meanwhile(board):
    token = parent(board, "a")
    ended, claimed = board.call("AWAIT", "w1", "p", "CHILDREN", "TOKEN", token, "CLAIM", "FIELDS", 1, "id")
    assert from_pairs(ended) == {"state": "blocked"}
    assert [from_pairs(one)["id"] for one in claimed] == ["a"]


def test_a_child_cannot_wait_for_a_parent_that_waits_for_it(board):
    parent(board, "a")
    board.post(id="k", parent="p", after=["p"])
    with refused("CYCLE a job would wait for itself", board):
        waits(board)
    board.delete("k")
    waits(board)
    with refused("CYCLE a job would wait for itself", board):
        board.post(id="k", parent="p", after=["p"])
    with refused("CYCLE a job would wait for itself in node 'sum'", board):
        words = ["NODE", "sum", "x", "AFTER", "CHILDREN", "NODE", "part", "x", "PARENT", "sum"]
        board.call("FLOW", 2, *words, "AFTER", 1, "sum")


def test_the_children_of_a_cancelled_parent_stay(board):
    parent(board, "a", "b")
    waits(board)
    assert board.cancel("p") == ["cancelled"]
    assert [board.state(id) for id in "ab"] == ["ready", "ready"]
    assert board.call("CANCEL", "WHERE", "PARENT", "p")[0] == 2


BAD = {
    "nothing": (["AWAIT", "w1", "p", "TOKEN", 1], "SIGNALS or CHILDREN must name what to wait for"),
    "twice": (["AWAIT", "w1", "p", "CHILDREN", "CHILDREN"], "CHILDREN is given twice"),
    "onfailure alone": (
        ["AWAIT", "w1", "p", "ONFAILURE", "run", "CHILDREN"],
        "ONFAILURE must follow CHILDREN",
    ),
    "onfailure twice": (
        ["AWAIT", "w1", "p", "CHILDREN", "ONFAILURE", "run", "ONFAILURE", "run"],
        "ONFAILURE is given twice",
    ),
    "onfailure of what": (
        ["AWAIT", "w1", "p", "CHILDREN", "ONFAILURE", "stop"],
        "ONFAILURE must be hold, cancel, fail or run",
    ),
    "within": (["AWAIT", "w1", "p", "CHILDREN", "WITHIN", 5], "WITHIN needs SIGNALS"),
    "any": (["AWAIT", "w1", "p", "CHILDREN", "ANY"], "ANY needs SIGNALS"),
    "step": (["AWAIT", "w1", "p", "CHILDREN", "STEP", "s"], "STEP needs SIGNALS"),
    "post twice": (["POST", "x", "AFTER", "CHILDREN", "AFTER", "CHILDREN"], "AFTER CHILDREN is given twice"),
    "post onfailure twice": (
        ["POST", "x", "AFTER", "CHILDREN", "ONFAILURE", "run", "ONFAILURE", "run"],
        "ONFAILURE is given twice",
    ),
    "next": (
        ["CONSUME", "w1", "p", "AFTER", "CHILDREN"],
        "NAME, DELAY, PRIORITY, AFTER, AWAIT, NEXT-COST and NEXT-COSTS need NEXT",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named_and_changes_nothing(board, case):
    parent(board, "a")
    words, error = BAD[case]
    with refused(f"ERR {error}", board):
        board.call(*words)


@pytest.mark.parametrize("words", [["ADD", "p", "CHILDREN", "x"], ["REMOVE", "p", "CHILDREN", "x"]])
def test_children_of_depend_take_no_more(board, words):
    board.post(id="p")
    with refused(f"ERR syntax error near '{words[-1]}'", board):
        board.client.execute_command("JOB.DEPEND", words[0], "board", *words[1:])


def test_a_hundred_thousand_children(board):
    """One command ends 10,000 of them, and the parent knows of each."""
    most, batch = 100_000, 10_000
    token = lives.claimed(board, "p")
    for start in range(0, most, batch):
        ids = [f"c{n}" for n in range(start, start + batch)]
        board.mpost(["x"] * batch, ids=ids, parent="p", queue="parts")
    assert waits(board, token=token) == {"state": "blocked"}
    for start in range(0, most, batch):
        claimed = board.claim("w2", queues=["parts"], count=batch, fields=["id"])
        assert sums(board) == ("blocked", most, most - start, 0)
        board.mconsume("w2", [job["id"] for job in claimed])
    assert sums(board) == ("ready", most, 0, 0)
