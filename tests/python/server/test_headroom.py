"""A board that says it has come to the end of its numbers harms no other, refuses, and can be saved."""

from __future__ import annotations

import struct
import time

import lives
import pytest
from aof import commands, log_of
from expect import check_consistent, refused
from harness import wait_until

DAY = 86_400_000
LAST_TOKEN = 2**53 - 1
LAST_REVISION = 2**48 - 1


def packed(n: int) -> bytes:
    """A number as it is written in a snapshot."""
    for most, marker, form in [(0x7F, b"", ">B"), (0xFF, b"\xcc", ">B"), (0xFFFF, b"\xcd", ">H")]:
        if n <= most:
            return marker + struct.pack(form, n)
    return b"\xcf" + struct.pack(">Q", n)


@pytest.fixture
def crafted(fresh_server):
    """A factory: the dump of a board that says another number, the first that is `said` there."""

    def craft(field: str, number: int) -> bytes:
        source = fresh_server("foreign-effects", "yes", appendonly=True, config=["aof-use-rdb-preamble no"])
        board = source.board()
        board.post_many(70)
        board.claim("w", count=60, lease=lives.LONG)
        said = board.info()[field]
        source.client().bgrewriteaof()
        for state in ["aof_rewrite_in_progress", "aof_rewrite_scheduled"]:
            wait_until(lambda state=state: not source.info("persistence")[state], what="rewrite")
        found = [command for command in commands(log_of(source)) if command.words[0].upper() == b"JOB.LOAD"]
        [part] = [command.words[2] for command in found]
        assert packed(said) in part and said > 0x7F
        raw = source.raw_client()
        part = part.replace(packed(said), packed(number), 1)
        assert raw.execute_command("JOB.LOAD", "crafted", part) == b"OK"
        return raw.dump("crafted")

    return craft


def loads_again(server) -> None:
    """The server starts again with all that it holds, and what it says of each board can be restored."""
    raw = server.raw_client()
    before = {key: server.board(key.decode()).digest() for key in raw.keys()}
    for key in before:
        raw.restore(b"copy of " + key, 0, raw.dump(key))
    # That of a replica's synchronisation may not be over.
    wait_until(lambda: not server.info("persistence")["rdb_bgsave_in_progress"], what="the save before")
    server.client().save()
    server.restart()
    for key, digest in before.items():
        board = server.board(key.decode())
        assert board.digest() == digest and not board.info()["broken"]


@pytest.mark.parametrize("appendonly", [False, True], ids=["rdb", "aof"])
def test_a_board_with_the_last_token_leaves_the_tokens_of_others_alone(fresh_server, crafted, appendonly):
    dump = crafted("token", LAST_TOKEN)
    server = fresh_server(appendonly=appendonly)
    replica = fresh_server(replicaof=server)
    server.raw_client().restore("mallory", 0, dump)
    mallory, other = server.board("mallory"), server.board("other")
    with refused("LIMIT tokens", mallory):
        mallory.claim("w")
    token = lives.claimed(other)
    assert token < (int(time.time() * 1000) + 2 * DAY) << 11
    assert other.consume("w1", "j", token=token) == "complete"
    replica.wait_synced(server)
    assert replica.board("other").digest() == other.digest()
    assert not replica.board("other").info()["broken"]
    loads_again(server)


def test_a_board_near_the_last_token_counts_for_itself_alone(fresh_server, crafted):
    server = fresh_server()
    server.raw_client().restore("mallory", 0, crafted("token", LAST_TOKEN - 1000))
    assert server.board("mallory").claim_one("w")["token"] > LAST_TOKEN - 1000
    assert lives.claimed(server.board("other")) < (int(time.time() * 1000) + 2 * DAY) << 11


def test_a_board_at_its_last_revision_can_be_saved_and_only_read(fresh_server, crafted):
    server = fresh_server()
    server.raw_client().restore("mallory", 0, crafted("revision", LAST_REVISION))
    mallory = server.board("mallory")
    for change in [lambda: mallory.post("x"), lambda: mallory.claim("w"), lambda: mallory.set(lease=7)]:
        with refused("LIMIT revisions", mallory):
            change()
    assert mallory.count() == 70
    check_consistent(mallory)
    lives.claimed(server.board("other"))
    loads_again(server)
