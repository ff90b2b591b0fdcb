"""Anything may be in a snapshot and in an effect: it is refused, or the board is consistent."""

from __future__ import annotations

import random

import lives
import pytest
import redis
from aof import commands, log_of
from crc64 import body, crc64, sealed
from daily import left_to_ci
from expect import check_consistent
from redis.connection import PythonRespSerializer


def small_board(server) -> bytes:
    """A dump of a small board that holds something of everything."""
    board = server.board()
    board.set(lease=5000)
    board.set(queue="q", retries=2)
    lives.ready(board, "r", name="n", meta={"k": "v"}, queue="q")
    lives.scheduled(board, "s")
    lives.claimed(board, "c", worker="w")
    board.heartbeat("w", "c", progress=5, stage="s", log="l")
    lives.failed(board, "f")
    board.post(retain=-1)
    lives.gone(board, "g")
    lives.late(board, "l")
    return server.raw_client().dump("board")


def try_restore(server, raw, payload: bytes) -> str:
    """Restores bytes; says whether they were refused, and checks the board when they were not."""
    raw.delete("copy")
    try:
        raw.restore("copy", 0, payload)
    except redis.ResponseError as error:
        assert "DUMP payload version or checksum" not in str(error), "the checksum does not reach the module"
        return "refused"
    if raw.type("copy") != b"jobboard1":
        return "another type"
    board = server.board("copy", decode_responses=True, encoding_errors="surrogateescape")
    # That of hiredis knows no surrogates.
    pool = board.client.connection_pool
    pool.connection_kwargs["command_packer"] = PythonRespSerializer(6000, pool.get_encoder().encode)
    if not board.info()["broken"]:
        check_consistent(board)
        drain_all(board)
        check_consistent(board)
    board.client.close()
    return "accepted"


def drain_all(board) -> None:
    """Takes the board apart with the verbs of an operator."""
    board.claim("last", queues=[], count=100)
    found = board.list_all(justid=True)
    if found:
        board.cancel(
            *[id for id in found if board.state(id) in ("ready", "scheduled", "claimed")] or ["none"]
        )
        assert board.delete(*found).count == len(set(found))
    board.post(id="new")


def test_the_checksum_can_be_fixed_up(server):
    """The two tests below reach the module, not only the server's own check."""
    dump = small_board(server)
    assert crc64(b"123456789") == 0xE9C6D914C4B8D9CA
    assert sealed(body(dump), dump) == dump
    assert try_restore(server, server.raw_client(), sealed(body(dump), dump)) == "accepted"


def test_a_snapshot_cut_at_every_byte_is_refused(server):
    dump = small_board(server)
    whole, raw = body(dump), server.raw_client()
    for length in range(10, len(whole)):
        assert try_restore(server, raw, sealed(whole[:length], dump)) == "refused", length
    assert not raw.exists("copy")


@pytest.mark.one_server
@pytest.mark.parametrize("flip", [0xFF, *left_to_ci([0x01, 0x80, 0x10])])
def test_a_snapshot_with_any_byte_flipped_is_refused_or_gives_a_consistent_board(server, flip):
    """The first ten bytes are the server's own: the type of the value and the module's name."""
    dump = small_board(server)
    whole, raw = body(dump), server.raw_client()
    refusals = 0
    for place in range(10, len(whole)):
        changed = bytearray(whole)
        changed[place] ^= flip
        refusals += try_restore(server, raw, sealed(bytes(changed), dump)) == "refused"
    assert refusals > len(whole) // 10


def test_a_snapshot_with_random_bytes_is_refused_or_gives_a_consistent_board(server):
    dump = small_board(server)
    whole, raw, chance = body(dump), server.raw_client(), random.Random(3)
    for _ in range(1000):
        changed = bytearray(whole)
        for _ in range(chance.randrange(1, 12)):
            changed[chance.randrange(10, len(changed))] = chance.randrange(256)
        if chance.random() < 0.3:
            start = chance.randrange(10, len(changed))
            del changed[start : start + chance.randrange(30)]
        try_restore(server, raw, sealed(bytes(changed), dump))


def test_a_snapshot_of_another_version_is_refused(server):
    """The last ten bits of the module's id are the version of the format."""
    dump = small_board(server)
    whole, raw = body(dump), server.raw_client()
    start = 1
    assert whole[start] == 0x81, "a 64 bit length"
    changed = bytearray(whole)
    changed[start + 8] = (changed[start + 8] + 1) % 256
    assert try_restore(server, raw, sealed(bytes(changed), dump)) == "refused"


def test_effects_of_random_bytes_do_no_harm(fresh_server):
    """With foreign effects allowed any bytes may come as an effect: refused, or the copy is broken."""
    server = fresh_server("foreign-effects", "yes")
    source = fresh_server(appendonly=True, config=["aof-use-rdb-preamble no"])
    lives.busy(source.board())
    source.stop()
    batches = [command.words[2] for command in commands(log_of(source)) if command.is_effect]
    assert len(batches) > 30
    chance = random.Random(5)
    raw = server.raw_client()
    for _ in range(60):
        raw.delete("board")
        broken_at = chance.randrange(len(batches))
        for n, batch in enumerate(batches):
            changed = bytearray(batch)
            if n >= broken_at:
                for _ in range(chance.randrange(1, 4)):
                    changed[chance.randrange(len(changed))] = chance.randrange(256)
            try:
                raw.execute_command("JOB.APPLY", "board", bytes(changed))
            except redis.ResponseError as error:
                assert "panic" not in str(error)
        board = server.board(encoding_errors="surrogateescape")
        if board.info() and not board.info()["broken"]:
            check_consistent(board)
        board.client.close()
