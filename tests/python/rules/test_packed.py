"""PACKED: records as one string say what they say as maps."""

from __future__ import annotations

from typing import Any

import lives
import msgspec
import pytest
from expect import refused
from harness import Board, Server
from lives import LONG
from waiters import Parked


def ask(server: Server, protocol: int, *words: Any) -> Any:
    return server.raw_client(protocol=protocol).execute_command(*words)


def unpacked(reply: bytes) -> Any:
    assert isinstance(reply, bytes)
    return msgspec.msgpack.decode(reply)


def pairs(reply: Any) -> dict:
    return reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2]))


def plain(record: Any) -> dict | None:
    """A record that came as a map, as it is when it is unpacked."""
    if record is None:
        return None
    found = {name.decode(): value for name, value in pairs(record).items()}
    if "meta" in found:
        found["meta"] = pairs(found["meta"])
    if "steps" in found:
        steps = {name: pairs(step) for name, step in pairs(found["steps"]).items()}
        found["steps"] = {name: {k.decode(): v for k, v in step.items()} for name, step in steps.items()}
    if "progress" in found:
        found["progress"] = float(found["progress"])
    return found


def agree(server: Server, protocol: int, *words: Any) -> Any:
    """Asks for records in both ways, which have to agree; the packed ones."""
    maps = ask(server, protocol, *words)
    packed = unpacked(ask(server, protocol, *words, "PACKED"))
    wanted = plain(maps) if isinstance(packed, dict) else [plain(one) for one in maps]
    assert packed == wanted
    if isinstance(packed, dict):
        assert list(packed) == list(wanted or {}), "the order of the fields"
    return packed


@pytest.fixture
def busy(server: Server) -> Server:
    """A board with records that have every field between them."""
    board = server.board()
    lives.busy(board)
    board.post(b"\x00\xff\n", id="tagged", tags=["a", "b"], user="ann", group="g", cost=3, unique="key")
    server.raw_client().execute_command("JOB.POST", "board", "x", "ID", b"\xffbytes", "QUEUE", b"\xfe")
    board.post(id="parent")
    board.post(id="child", parent="parent", share=5, after=["ready", "claimed"], delay=LONG)
    board.update("ready", track=True)
    lives.claimed(board, "half", queue="half")
    board.client.execute_command("JOB.STEP", "board", "w1", "half", "first", "value")
    board.heartbeat("w1", "half", progress=33.5, stage="half", meta={b"\xfe": b"\xfd"})
    return server


def test_every_field_is_the_same_in_both(busy, protocol):
    seen: dict = {}
    _, ids = ask(busy, protocol, "JOB.LIST", "board", "JUSTID", "COUNT", 1000)
    for id in ids:
        seen |= agree(busy, protocol, "JOB.GET", "board", id)
    assert agree(busy, protocol, "JOB.GET", "board", b"\xffbytes")["queue"] == b"\xfe"
    fields = set(seen) | {"session", "intended"}
    every = "id seq state queue name payload priority attempt left token worker deadline kind message stage"
    every += " progress posted due claimed ended modified version result meta previous reason intended after"
    every += " tags tracked user unique parent share children group cost session"
    assert fields >= set(every.split())


def test_fields_come_in_the_order_in_which_they_are_named(busy, protocol):
    [step] = agree(busy, protocol, "JOB.MGET", "board", 1, "half", "FIELDS", 1, "steps")
    assert list(step["steps"]) == [b"first"] and step["steps"][b"first"]["value"] == b"value"
    words = ("JOB.GET", "board", "half", "FIELDS", 4, "state", "meta", "id", "reason")
    assert agree(busy, protocol, *words) == {
        "state": b"claimed",
        "meta": {b"\xfe": b"\xfd"},
        "id": b"half",
    }


def test_an_unknown_job_is_null_and_nil(busy, protocol):
    assert ask(busy, protocol, "JOB.GET", "board", "nowhere", "PACKED") is None
    found = agree(busy, protocol, "JOB.MGET", "board", 3, "half", "nowhere", "ready", "FIELDS", 1, "id")
    assert found == [{"id": b"half"}, None, {"id": b"ready"}]


def test_pages_are_the_same(busy, protocol):
    words = ("JOB.LIST", "board", "COUNT", 20)
    cursor, maps = ask(busy, protocol, *words)
    again, packed = ask(busy, protocol, *words, "PACKED")
    assert again == cursor != b"0"
    assert unpacked(packed) == [plain(one) for one in maps]
    record, cursor, children = ask(busy, protocol, "JOB.GET", "board", "parent", "CHILDREN", "PACKED")
    assert unpacked(record)["children"] == 1 and cursor == b"0"
    assert [one["id"] for one in unpacked(children)] == [b"child"]


def test_a_page_since_a_revision_has_its_other_parts(busy):
    reply = ask(busy, 3, "JOB.LIST", "board", "SINCE", 0, "PACKED")
    assert len(reply) == 4 and unpacked(reply[1]) and reply[3] == busy.board().info()["revision"]


def test_claims_are_one_string(server, protocol):
    board = server.board()
    board.mpost("abc", ids=["a", "b", "c"])
    claim = ("JOB.CLAIM", "board", "w1", "PACKED", "COUNT", 2)
    one, two = unpacked(ask(server, protocol, *claim))
    assert (one["id"], one["payload"], two["id"], one["attempt"]) == (b"a", b"a", b"b", 1)
    assert board.get("a")["token"] == one["token"] and board.get("a")["deadline"] == one["deadline"]
    chained = ("JOB.CONSUME", "board", "w1", "a", "TOKEN", one["token"], "CLAIM", "PACKED")
    ending, claims = ask(server, protocol, *chained)
    assert (ending, unpacked(claims)[0]["id"]) == (b"complete", b"c")
    assert ask(server, protocol, *claim) is None
    assert ask(server, protocol, "JOB.CONSUME", "board", "w1", "b", "CLAIM", "PACKED") == [b"complete", None]


def test_a_claim_by_id_and_one_that_returns_earlier_claims(server, protocol):
    server.board().mpost("ab", ids=["a", "b"])
    [job] = unpacked(ask(server, protocol, "JOB.CLAIM", "board", "w1", "ID", "b", "PACKED"))
    [again] = unpacked(ask(server, protocol, "JOB.CLAIM", "board", "w1", "SEEN", 0, "PACKED"))
    assert (job["id"], again["token"]) == (b"b", job["token"])


@pytest.mark.parametrize("verb", ["claim", "consume"])
def test_a_claim_that_waited_is_packed_as_well(server, verb):
    board = server.board()
    lives.claimed(board)
    words = ("JOB.CLAIM", "board", "w1") if verb == "claim" else ("JOB.CONSUME", "board", "w1", "j", "CLAIM")
    words = (*words, "BLOCK", 0, "FIELDS", 1, "attempt", "PACKED")
    client = Parked(server, words, login={"decode_responses": False})
    board.post(id="n")
    reply = client.answer()
    packed = reply if verb == "claim" else reply[1]
    assert unpacked(packed) == [{"attempt": 1}]


def test_a_wait_for_jobs_is_packed_as_well(server, protocol):
    lives.complete(server.board())
    wait = ("JOB.WAIT", "board", 1000, "JOBS", 2, "j", "nowhere", "FIELDS", 1, "state", "PACKED")
    assert unpacked(ask(server, protocol, *wait)) == [{"state": b"complete"}, None]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("JOB.GET board j PACKED PACKED", "ERR PACKED is given twice"),
        ("JOB.LIST board JUSTID PACKED", "ERR JUSTID and PACKED exclude each other"),
        ("JOB.LIST board JUSTID FIELDS 1 id", "ERR JUSTID and FIELDS exclude each other"),
    ],
)
def test_what_makes_no_sense_is_refused(board: Board, words, error):
    with refused(error, board):
        board.client.execute_command(*words.split())


def test_many_records_are_packed_up_to_max_reply(server):
    board = server.board()
    board.post_many(300, "x" * 1000)
    with server.configured(jobboard__max_reply=100_000):
        found = unpacked(ask(server, 3, "JOB.CLAIM", "board", "w1", "COUNT", 300, "PACKED"))
    assert 50 < len(found) < 150 and all(one["payload"] == b"x" * 1000 for one in found)
