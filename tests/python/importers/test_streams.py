"""`jobboard import streams`, on entries that consumers of a group have, and have not, been given."""

from __future__ import annotations

import json

import pytest
import redis
from expect import ids
from harness import Server


@pytest.fixture
def entries(source: redis.Redis) -> list[str]:
    """Six entries: c1 was given two, of which it has acknowledged one; c2 one, twice."""
    source.xgroup_create("mails", "senders", "0", mkstream=True)
    found = [source.xadd("mails", {"to": f"ann{n}", "type": "mail"}) for n in range(6)]
    source.xreadgroup("senders", "c1", {"mails": ">"}, count=2)
    source.xack("mails", "senders", found[0])
    source.xreadgroup("senders", "c2", {"mails": ">"}, count=1)
    source.xclaim("mails", "senders", "c2", 0, [found[2]])
    return [f"mails:{id.decode()}" for id in found]


def test_pending_entries_come_first_then_what_nobody_was_given(
    server: Server, source: redis.Redis, entries: list[str], imported
):
    code, output = imported("streams", "board", "mails", "--group", "senders", "--slice", "2")
    assert code == 0
    assert f"{'pending':>12}{2:>12}{2:>12}" in output
    assert f"{'waiting':>12}{3:>12}{3:>12}" in output
    board = server.board()
    assert ids(board.list()[1]) == entries[1:]
    job = board.get(entries[2])
    assert json.loads(job["payload"]) == {"to": "ann2", "type": "mail"}
    assert job["meta"] == {"source": "streams", "deliveries": "2"}
    assert source.xpending("mails", "senders")["pending"] == 0
    assert source.xinfo_groups("mails")[0]["lag"] == 0
    assert source.xlen("mails") == 6, "other groups may want them"
    source.xadd("mails", {"to": "later"})
    assert imported("streams", "board", "mails", "--group", "senders")[0] == 0
    assert board.count() == 6


def test_a_field_can_be_the_payload_and_one_the_name(
    server: Server, source: redis.Redis, entries: list[str], imported
):
    words = ["--group", "senders", "--field", "to", "--name-field", "type", "--queue", "out", "--delete"]
    assert imported("streams", "board", "mails", *words)[0] == 0
    job = server.board().get(entries[1])
    assert (job["payload"], job["name"], job["queue"], job["meta"]) == (
        "ann1",
        "mail",
        "out",
        {"source": "streams"},
    )
    assert source.xlen("mails") == 1, "what was acknowledged before is not ours"


def test_entries_that_are_not_idle_stay_with_their_consumer(
    server: Server, source: redis.Redis, entries: list[str], imported
):
    words = ["--group", "senders", "--idle", "1m"]
    code, output = imported("streams", "board", "mails", *words)
    assert (code, server.board().count()) == (1, 3)
    assert "c1 was given it a short while ago" in output
    pending = [entry.removeprefix("mails:") for entry in entries[1:3]]
    source.xclaim("mails", "senders", "c1", 0, pending, idle=120_000, justid=True)
    assert imported("streams", "board", "mails", *words)[0] == 0
    assert ids(server.board().list()[1]) == entries[3:] + entries[1:3]


def test_what_was_read_before_a_kill_is_moved_by_the_next(
    server: Server, source: redis.Redis, entries: list[str], imported
):
    source.xreadgroup("senders", "jobboard-import", {"mails": ">"}, count=2)
    assert imported("streams", "board", "mails", "--group", "senders", "--idle", "1m")[0] == 1
    assert sorted(ids(server.board().list()[1])) == entries[3:]


def test_entries_that_cannot_be_moved_stay_pending(server: Server, source: redis.Redis, imported):
    source.xgroup_create("raw", "g", "0", mkstream=True)
    source.xadd("raw", {"data": b"\xff\xfe"})
    source.xadd("raw", {"data": "text"})
    code, output = imported("streams", "board", "raw", "--group", "g")
    assert (code, server.board().count()) == (1, 1)
    assert "its fields are no text" in output
    assert source.xpending("raw", "g")["pending"] == 1
    assert imported("streams", "board", "raw", "--group", "g", "--field", "nothing")[0] == 1
    assert imported("streams", "board", "raw", "--group", "g", "--field", "data")[0] == 0
    assert server.board().count() == 2


def test_a_dry_run_gives_no_entry_to_anybody(source: redis.Redis, entries: list[str], imported):
    before = source.xinfo_groups("mails"), source.xpending("mails", "senders")
    code, output = imported("streams", "board", "mails", "--group", "senders", "--dry-run", "--slice", "2")
    assert code == 0
    assert f"{'pending':>12}{2:>12}{0:>12}" in output
    assert f"{'waiting':>12}{3:>12}{0:>12}" in output
    assert (source.xinfo_groups("mails"), source.xpending("mails", "senders")) == before


def test_a_group_has_to_be_there(source: redis.Redis, entries: list[str], imported):
    assert imported("streams", "board", "mails", "--group", "nobody")[0] == 2
    assert imported("streams", "board", "absent", "--group", "senders")[0] == 2
