"""Every verb of a board on a sharded one: the same signature, and the same answer."""

from __future__ import annotations

import inspect
import random
import statistics
import threading
from collections import Counter
from typing import Any

import pytest
from jobboard import Board, Job, Node, ShardedBoard, Slice
from jobboard.board import merging
from jobboard.board.sending import Verb
from mypy import api

SHARDS = 3
VERBS = {
    name
    for name in dir(Board)
    if not name.startswith("_") and isinstance(inspect.getattr_static(Board, name), Verb)
}


@pytest.fixture
def boards(server) -> list[Any]:
    client = server.client(decode_responses=False)
    return [Board("one", client), ShardedBoard("many", client, shards=SHARDS)]


def test_every_verb_has_the_same_signature(boards) -> None:
    board, sharded = boards
    assert len(VERBS) > 60
    for name in VERBS:
        assert inspect.signature(getattr(board, name)) == inspect.signature(getattr(sharded, name)), name
        assert inspect.getattr_static(ShardedBoard, name) is inspect.getattr_static(Board, name), name


def pages(board: Any) -> list[Job]:
    """All jobs by `list_page`, two at a time."""
    found, cursor = [], "0"
    while True:
        page = board.list_page(cursor=cursor, count=2, rev=True)
        found, cursor = found + page.items, page.cursor
        if cursor == "0":
            return found


def claimed(board: Any, **options: Any) -> list[Job]:
    """All that can be claimed."""
    found: list[Job] = []
    while some := board.claim("w", queues=["work"], count=10, **options):
        found += some
    return found


def of_claims(board: Any, verb: str, *words: Any) -> list[Any]:
    """A verb for many claims, of jobs in all shards."""
    jobs = sorted(claimed(board), key=lambda job: job.id)
    ids, tokens = [job.id for job in jobs], [job.token for job in jobs]
    assert len(jobs) == 7
    return getattr(board, verb)("w", [*ids, "nobody"], [*tokens, 7], *words)


def failed_claims(board: Any) -> Any:
    jobs = sorted(claimed(board), key=lambda job: job.id)
    ids, tokens = [job.id for job in jobs], [job.token for job in jobs]
    return board.mfail("w", [*ids, "nobody"], "Kind", "message", [*tokens, 7], noretry=True)


def with_claim(board: Any, verb: str, *words: Any, **options: Any) -> Any:
    job = board.claim_id("w", "w0", lease="1m")
    return getattr(board, verb)("w", "w0", *words, token=job.token, **options)


WORK = [f"w{n}" for n in range(8)]
PLAY = {
    "info": lambda board: (board.info(digest=True), board.post(0, id="first", meta={"a": "b"}), board.info()),
    "post": lambda board: [board.post(n, id=f"p{n}", together=None) for n in range(6)],
    "post_many": lambda board: board.post_many(range(8), ids=WORK, queue="work", tags=["t"], group="g"),
    "flow": lambda board: board.flow([Node("a", 1), Node("b", 2, after=["a"])], together="x") and "posted",
    "call": lambda board: timed_out(board, 1, together="x"),
    "get": lambda board: [board.get("p1", fields=["id", "state", "payload"]), board.get("nobody")],
    "state": lambda board: [board.state("p1"), board.state("nobody")],
    "get_many": lambda board: board.get_many(["p3", "nobody", "p1", "w5"], fields=["id", "state", "payload"]),
    "children": lambda board: [
        board.post(5, id="{p1}c", parent="p1"),
        [job.id for job in board.children("p1", count=1)],
    ],
    "history": lambda board: [entry["event"] for entry in board.history("p1")],
    "explain": lambda board: board.explain("p1")["state"],
    "count": lambda board: [board.count(), board.count(queue="work", not_={"state": "failed"})],
    "list": lambda board: sorted(job.payload for job in board.list(queue="work", page=2)),
    "list_page": lambda board: len(pages(board)),
    "list_changed": lambda board: board.list_changed(0),
    "queues": lambda board: [
        board.queues(),
        [[row["queue"], row["ready"]] for row in board.queues(by="ready", count=1)],
        [row["queue"] for row in board.queues(contains="WO")],
    ],
    "groups": lambda board: [list(board.groups()), list(board.groups(queue="work", page=1))],
    "tags": lambda board: list(board.tags()),
    "settings_set": lambda board: [
        board.settings_set({"rate": 100}, limit="api"),
        board.settings_set({"limits": ["api"], "weight": 3}, queue="work", group="g"),
    ],
    "limits": lambda board: list(board.limits()),
    "settings_get": lambda board: [
        board.settings_get("weight", queue="work", group="g"),
        board.settings_get("rate", limit="api"),
    ],
    "settings_reset": lambda board: [
        board.settings_reset("weight", "limits", queue="work", group="g"),
        board.settings_get("weight", queue="work", group="g"),
    ],
    "pause": lambda board: [board.pause(queue="work", for_="1h"), board.claim("w", queues=["work"])],
    "resume": lambda board: [board.resume(queue="work"), board.queues()[1]["paused"]],
    "worker_register": lambda board: board.worker_register("w", role="r", meta={"a": "b"}),
    "worker_list": lambda board: {row["worker"] for row in board.worker_list(role="r", page=1)},
    "worker_quiet": lambda board: [board.worker_quiet("w"), board.claim("w", queues=["work"])],
    "worker_resume": lambda board: board.worker_resume("w"),
    "claim": lambda board: sorted(job.payload for job in claimed(board)),
    "workers": lambda board: board.workers(),
    "mheartbeat_all": lambda board: sorted(beat.id for beat in board.mheartbeat_all("w", lease="1m")),
    "mabandon_all": lambda board: sorted(board.mabandon_all("w", reason="why")),
    "claim_id": lambda board: board.claim_id("w", "w0", fields=["id"]).id,
    "heartbeat": lambda board: board.heartbeat("w", "w0", progress=5).cancel,
    "step": lambda board: [board.step("w", "w0", "s", n).value for n in (1, 2)],
    "signal": lambda board: board.signal("s", "w0", "w1", "nobody", value=1),
    "signal_where": lambda board: board.signal_where("t", {"state": "ready"}).count,
    "await_signals": lambda board: board.await_signals("w", "w0", "s").signals["s"].value,
    "await_children": lambda board: board.await_children("w", "w0", onfailure="run").children,
    "release": lambda board: board.release("w0", "nobody"),
    "abandon": lambda board: with_claim(board, "abandon"),
    "fail": lambda board: with_claim(board, "fail", "Kind", "message", noretry=True).state,
    "trash": lambda board: [board.requeue("w0"), with_claim(board, "trash")],
    "consume": lambda board: [board.requeue("w0"), with_claim(board, "consume"), board.state("w0")],
    "kinds": lambda board: [with_failures(board), board.kinds()],
    "requeue": lambda board: board.requeue(*WORK[:7], queue="work"),
    "mheartbeat": lambda board: [
        [type(beat).__name__ for beat in of_claims(board, "mheartbeat")],
        board.release(*WORK[1:]),
    ],
    "mabandon": lambda board: of_claims(board, "mabandon"),
    "mfail": lambda board: [
        [getattr(one, "state", type(one).__name__) for one in failed_claims(board)],
        board.requeue(*WORK[1:], queue="work"),
    ],
    "mfail_all": lambda board: [
        len(claimed(board)),
        sorted(board.mfail_all("w", "Kind", noretry=True)),
        board.requeue(*WORK[1:], queue="work"),
    ],
    "mtrash_all": lambda board: [
        len(claimed(board)),
        sorted(board.mtrash_all("w", reason="why")),
        board.requeue(*WORK[1:], queue="work"),
    ],
    "mtrash": lambda board: [of_claims(board, "mtrash"), board.requeue(*WORK[1:], queue="work")],
    "mconsume": lambda board: of_claims(board, "mconsume", [*range(7), "x"]),
    "mconsume_all": lambda board: [
        board.post_many(range(3), ids=["c0", "c1", "c2"], queue="work"),
        len(claimed(board)),
        sorted(board.mconsume_all("w", next="work", name="again", delay="1h", meta={"a": "b"})),
        sorted((job.name, job.state) for job in board.get_many(["c0", "c1", "c2"], fields=["name", "state"])),
        board.delete("c0", "c1", "c2"),
    ],
    "wait": lambda board: [
        board.wait(*WORK[1:], timeout="1s", fields=["id", "state", "result"]),
        board.wait("p1", "w3", "w4", until="any", fields=["id", "state", "result"]),
        board.wait("p1", "w3", timeout="20ms"),
    ],
    "watch": lambda board: [
        [(job.id, job.state, job.result) for job in board.watch("w3", timeout="1s")],
        [*board.watch("w5", fields=["queue"])],
    ],
    "output": lambda board: [
        [chunk.text for chunk in board.output("w3")],
        [*board.output("w5", follow=False)],
    ],
    "result": lambda board: [board.result("w3"), board.result("w5", timeout="1s")],
    "wait_for": lambda board: [
        board.wait_for("claimable", timeout="20ms"),
        board.wait_for("claimable", queues=["none"], timeout="20ms"),
        board.wait_for("empty", timeout="20ms"),
        board.wait_for("present"),
    ],
    "stats": lambda board: board.stats(queue="work", day=0),
    "schedule_set": lambda board: [board.schedule_set(f"s{n}", n, every="1h") for n in range(4)],
    "schedule_get": lambda board: board.schedule_get("s1")["payload"],
    "schedule_list": lambda board: sorted(row["id"] for row in board.schedule_list(page=1)),
    "schedule_run": lambda board: board.get(board.schedule_run("s2")).payload,
    "schedule_pause": lambda board: board.schedule_pause("s2"),
    "schedule_resume": lambda board: board.schedule_resume("s2"),
    "schedule_del": lambda board: [board.schedule_del("s2"), board.schedule_get("s2")],
    "depend_add": lambda board: [board.post(1, id="{p2}d"), board.depend_add("{p2}d", "p2", strict=True)],
    "depend_remove": lambda board: board.depend_remove("{p2}d", "p2"),
    "depend_clear": lambda board: board.depend_clear("{p2}d"),
    "update": lambda board: [board.update("p1", "p2", "nobody", priority=3), board.get("p2").priority],
    "update_where": lambda board: board.update_where({"queue": "default"}, {"priority": 4}, count=2),
    "cancel": lambda board: board.cancel("p1", "nobody", "p3", by=None),
    "cancel_where": lambda board: board.cancel_where({"queue": "default"}, force=True, dryrun=True),
    "requeue_where": lambda board: board.requeue_where({"state": "cancelled"}, to="other"),
    "release_where": lambda board: board.release_where({"state": "claimed"}, dryrun=True, count=1),
    "delete": lambda board: board.delete("p5", "nobody", "p4", fields=["id", "state", "payload"]),
    "delete_where": lambda board: progress_of(board, {"not_": {"queue": "none"}}),
    "worker_deregister": lambda board: [board.worker_deregister("w"), board.worker_deregister("w")],
    "metrics": lambda board: board.metrics(),
}


def timed_out(board: Any, payload: Any, **options: Any) -> None:
    with pytest.raises(TimeoutError):
        board.call(payload, within="1ms", **options)


def with_failures(board: Any) -> None:
    for n in range(1, 7):
        job = board.claim_id("w", f"w{n}")
        board.fail("w", job.id, f"Kind{n % 2}", token=job.token, noretry=True)


def progress_of(board: Any, where: Any) -> Any:
    """What a deletion has done, and whether its progress only grew, to all that was done."""
    told: list[int] = []
    found = board.delete_where(where, count=1, fields=["state", "payload"], progress=told.append)
    return [found, told == sorted(told), told[-1] == found.count]


TIMELY = {
    "oldest",
    "drain",
    "active",
    "next",
    "revision",
    "created",
    "tombstones",
    "queues",
    "workers",
    "bytes",
    "left",
}
TIMELY |= {
    "arrival-rate",
    "completion-rate",
    "wait",
    "run",
    "await",
    "source",
    "token",
    "digest",
    "record-bytes",
}
ADDED = {"concurrency", "rate", "burst", "max-jobs"}
"""Each shard has its own."""


def shown(value: Any) -> Any:
    """What has to be equal: not what depends on time or on the number of shards."""
    if isinstance(value, Job):
        return (value.id, value.state, value.payload, value.result)
    if isinstance(value, Slice):
        return (value.count, sorted(value.held), sorted(map(shown, value.records)))
    if isinstance(value, dict):
        kept = (name for name in value if name not in TIMELY | ADDED and "lateness" not in name)
        return {name: shown(value[name]) for name in kept}
    return [shown(one) for one in value] if isinstance(value, (list, tuple)) else value


def test_every_verb_answers_as_on_one_board(boards) -> None:
    assert set(PLAY) == VERBS
    one, many = boards
    for verb, act in PLAY.items():
        answer = shown(act(one))
        if verb in ("list_changed", "metrics"):
            with pytest.raises(TypeError, match=rf"{verb} has no meaning over shards, .*: call it on one of"):
                act(many)
        else:
            assert shown(act(many)) == answer, verb


def test_a_claim_waits_at_all_shards_and_knows_no_tokens_of_others(boards) -> None:
    board = boards[1]
    with pytest.raises(ValueError, match="seen has no meaning over shards"):
        board.claim("w", seen=1)
    assert board.claim("w", block="20ms") == []
    for n in range(4):
        later = threading.Timer(0.05, board.post, [n])
        later.start()
        assert [job.payload for job in board.claim("w", block="30s")] == [n]
        later.join()


def test_a_batch_is_gathered_from_all_shards(boards) -> None:
    board = boards[1]
    board.post_many(range(5))
    assert len(board.claim("w", count=9, min=5, block="30s")) == 5
    later = threading.Timer(0.05, board.post_many, [range(4)])
    later.start()
    assert len(board.claim("w", count=9, min=4, block="30s")) == 4
    later.join()
    board.post_many([1, 2])
    assert len(board.claim("w", count=9, min=4, linger="20ms", block="30s")) == 2
    assert board.claim("w", count=9, min=4, linger="20ms", block="20ms") == []
    board.post_many([1, 2])
    assert len(board.claim("w", count=9, min=4)) == 2
    board.post_many(range(9))
    assert len(board.claim("w", count=3, min=2)) in (2, 3)
    with pytest.raises(ValueError, match="min must not be above count"):
        board.claim("w", count=3, min=4)


def test_lists_of_different_lengths_are_refused(boards) -> None:
    board = boards[1]
    for act in (
        lambda: board.mconsume("w", ["a", "b"], [1]),
        lambda: board.mconsume("w", ["a", "b"], [1, 2], [0]),
        lambda: board.post_many([1, 2, 3], ids=["a", "b"]),
    ):
        with pytest.raises(ValueError, match="must be of one length"):
            act()


def test_posts_that_would_part_what_belongs_together_are_refused(boards) -> None:
    board = boards[1]
    elsewhere = next(f"x{n}" for n in range(99) if board.place(f"x{n}") != board.place("p"))
    for act in (
        lambda: board.post_many([1], ids=[elsewhere], parent="p"),
        lambda: board.flow([Node("a", 1, id=elsewhere)], together="p"),
        lambda: board.post(1, id=elsewhere, together="p"),
    ):
        with pytest.raises(ValueError, match="leads to another shard than that of what it belongs with"):
            act()
    assert board.info() is None, "nothing was sent"


def test_a_call_posts_where_its_id_leads(boards) -> None:
    board = boards[1]
    for n in range(8):
        timed_out(board, n)
    ids = [job.id for job in board.list(state="cancelled")]
    assert sorted(board.get(id).payload for id in ids) == list(range(8))
    for n in range(8):
        timed_out(board, n, together="acme", queue="acme")
    assert {board.place(job.id) for job in board.list(queue="acme")} == {board.place("{acme}")}


def test_a_board_is_empty_when_all_its_shards_are(boards) -> None:
    board = boards[1]
    for id in ("a", "b", "c", "d", "e"):  # in shards that come first and last
        assert board.wait_for("empty", timeout="1s") and not board.wait_for("present", timeout="5ms")
        board.post(1, id=id)
        assert board.wait_for("present", timeout="1s") and board.wait_for("claimable", timeout="1s")
        assert not board.wait_for("empty", timeout="5ms")
        board.delete(id)


def distribution(samples: list[int]) -> dict[str, Any]:
    """As JOB.STATS has it of samples up to 100 ms, each of which has a bin."""
    ranked = sorted(samples)
    rank = {f"p{n}": ranked[max(-(-len(samples) * n // 100), 1) - 1] if samples else 0 for n in (50, 95, 99)}
    return {
        **{"count": len(samples), "sum": sum(samples), **rank},
        **{"min": min(samples, default=0), "max": max(samples, default=0)},
        "mean": statistics.fmean(samples) if samples else 0.0,
        "deviation": statistics.stdev(samples) if len(samples) > 1 else 0.0,
        "histogram": [[ms, ms, n] for ms, n in sorted(Counter(samples).items())],
    }


def test_statistics_of_shards_are_those_of_all_their_samples() -> None:
    for _ in range(50):
        parts = [[random.randrange(101) for _ in range(random.randrange(40))] for _ in range(SHARDS)]
        found = merging.row([{"posted": len(part), "wait": distribution(part)} for part in parts])
        whole = distribution([ms for part in parts for ms in part])
        for name in ("mean", "deviation"):
            assert found["wait"].pop(name) == pytest.approx(whole.pop(name), abs=1e-9)
        assert found == {"posted": whole["count"], "wait": whole}


def test_limits_add_up_and_what_ends_first_counts() -> None:
    rows = [
        {"queue": "q", "ready": 1, "paused": -1, "concurrency": 2, "oldest": -1, "drain": 0},
        {"queue": "q", "ready": 2, "paused": 99, "concurrency": 3, "oldest": 7, "drain": -1},
    ]
    [found] = merging.rows("queue")([[rows[0]], [rows[1]]])
    assert found == {"queue": "q", "ready": 3, "paused": 99, "concurrency": 5, "oldest": 7, "drain": -1}
    rows[0].update(paused=0, concurrency=-1)
    [found] = merging.rows("queue")([rows])
    assert (found["paused"], found["concurrency"]) == (0, -1)


PROGRAM = """
from typing import AsyncIterator, Awaitable, Iterator, Optional, assert_type
from jobboard import AsyncBoard, AsyncShardedBoard, Board, Job, ShardedBoard, Slice

def sync(board: {0}) -> None:
    assert_type(board.post(1, together="a"), Optional[str])
    assert_type(board.count(queue="q"), int)
    assert_type(board.list(), Iterator[Job])
    assert_type(board.delete("a", fields=["id"]), Slice[Job])
    board.post(1, colour="red")  # type: ignore[call-arg]
    board.delete(1)  # type: ignore[arg-type]

def other(board: Async{0}) -> None:
    assert_type(board.post(1), Awaitable[Optional[str]])
    assert_type(board.list(), AsyncIterator[Job])
"""


@pytest.mark.parametrize("kind", ["Board", "ShardedBoard"])
def test_mypy_sees_the_signatures(tmp_path, kind) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(kind))
    out, errors, status = api.run(["--strict", "--python-version=3.11", "--config-file=", str(path)])
    assert not status, out + errors
