"""Anything may be in any argument and in any snapshot: a clear error or it works, and the server lives."""

from __future__ import annotations

import random
from typing import Optional

import lives
import pytest
import redis
from aof import commands, log_of
from calls import CALLS
from crc64 import body, crc64, sealed
from expect import check_consistent, error_text
from harness import wait_until
from lives import LONG

STRANGE = {
    "empty": b"",
    "not utf-8": b"\xff\xfe\xc3\x28",
    "nul": b"a\0b",
    "only nul": b"\0",
    "format": b"%s%n%x%d %s %n",
    "low byte zero": "Ā".encode(),
    "emoji": "🎉🧨".encode(),
    "line ends": b"a\r\n+OK\r\n-ERR b\r\n",
    "quotes": b"\"'`\\",
    "space": b" ",
    "star": b"*",
    "at": b"@",
    "minus": b"-",
    "256 bytes": b"x" * 256,
    "5000 bytes": b"x" * 5000,
    "100000 bytes": b"y" * 100_000,
    "0": b"0",
    "-1": b"-1",
    "-0": b"-0",
    "2^31": b"2147483648",
    "-2^31-1": b"-2147483649",
    "2^53": b"9007199254740992",
    "2^63-1": b"9223372036854775807",
    "-2^63": b"-9223372036854775808",
    "2^64": b"18446744073709551616",
    "a thousand digits": b"9" * 1000,
    "1e308": b"1e308",
    "nan": b"nan",
    "inf": b"inf",
    "0.1": b"0.1",
    "hex": b"0x10",
    "all": b"ALL",
    "not": b"NOT",
    "fields": b"FIELDS",
}


def every_call() -> list:
    """Every command with each of its options, as words after the board."""
    calls = []
    for call in CALLS:
        calls.append((call.name, *call.head))
        for option, words in call.options.items():
            calls.append((call.name, *call.head, option, *words))
    return calls


def settings_calls() -> list:
    return [
        ("GET", "lease"),
        ("GET", "QUEUE", "q", "lease"),
        ("SET", "lease", "5"),
        ("SET", "QUEUE", "q", "lease", "5"),
        ("RESET", "lease"),
        ("RESET", "QUEUE", "q", "lease"),
    ]


def board_with_everything(server):
    board = server.board(decode_responses=False)
    lives.ready(board, "other")
    board.post(id="j", delay=LONG)
    board.post_many(3, queue="q")
    board.claim("w1", queues=["q"], count=2, lease=LONG)
    return board


def refusal(board, words: list) -> Optional[str]:
    """The error line of a command, or None. What would wait runs in a transaction."""
    try:
        if b"BLOCK" not in words and words[0] != "JOB.WAIT":
            board.client.execute_command(*words)
            return None
        pipe = board.client.pipeline()
        pipe.execute_command(*words)
        [reply] = pipe.execute(raise_on_error=False)
        if isinstance(reply, redis.ResponseError):
            raise reply
    except redis.ResponseError as error:
        return error_text(error)
    return None


def words_with(strange: bytes) -> list:
    """Every command with this value in each place of its arguments, the board's name excepted."""
    found = []
    for name, *words in every_call():
        for place in range(len(words)):
            changed = [word.encode() for word in words]
            changed[place] = strange
            found.append([f"JOB.{name}", "board", *changed])
    for sub, *words in settings_calls():
        for place in range(len(words)):
            changed = [word.encode() for word in words]
            changed[place] = strange
            found.append(["JOB.SETTINGS", sub, "board", *changed])
    return found


@pytest.mark.parametrize("value", STRANGE)
def test_any_argument_may_be_strange(clocked, value):
    """It works, or the error is one clean line and nothing has changed."""
    board = board_with_everything(clocked)
    before = board.digest()
    for words in words_with(STRANGE[value]):
        line = refusal(board, words)
        if line is None:
            before = board.digest()
            continue
        assert not set(line) & set("\r\n\0"), (words, line)
        assert len(line) < 1000, words
        assert "panic" not in line, (words, line)
        assert board.digest() == before, (words, line)
    check_consistent(clocked.board(encoding_errors="surrogateescape"))


@pytest.mark.parametrize("value", STRANGE)
def test_a_board_may_have_a_strange_name(server, value):
    board = server.board(STRANGE[value], decode_responses=False)
    board.post("payload", id="j", delay=20)
    wait_until(lambda: board.state("j") == "ready")
    token = board.claim_one(lease=LONG)["token"]
    assert board.consume("w1", "j", token=token) in (b"complete", "complete")
    assert board.info()["jobs"] == 0


@pytest.mark.parametrize(
    "value", [name for name, text in STRANGE.items() if 0 < len(text) <= 255 and text != b"*"]
)
def test_names_of_everything_may_be_strange(server, value):
    """And they come back as they were, through an error, a listing and a snapshot."""
    text = STRANGE[value]
    board = server.board(decode_responses=False)
    id = b"x" + text[:254]
    board.post(text, id=id, name=text, queue=text, meta={text: text})
    [job] = board.claim(text, queues=[text], lease=LONG)
    assert (job["id"], job["name"], job["queue"], job["payload"]) == (id, text, text, text)
    board.heartbeat(text, id, stage=text, log=text)
    with pytest.raises(redis.ResponseError, match="NOTOWNER|CLAIMED"):
        board.consume(b"somebody else", id)
    with pytest.raises(redis.ResponseError, match="EXISTS"):
        board.post(text, id=id)
    board.fail(text, id, text, text, noretry=True)
    record = board.get(id)
    assert (record["kind"], record["message"], record["stage"]) == (text, text, text)
    raw = server.raw_client()
    raw.restore("copy", 0, raw.dump("board"))
    assert server.board("copy").digest() == server.board().digest()
    assert [id] == server.board("copy", decode_responses=False).list_all(justid=True)


def test_names_of_others_in_errors_are_one_clean_line(server):
    board = server.board(decode_responses=False)
    worker = b"evil\r\n+OK\r\n\0%s%n\xff"
    board.post(id="j")
    board.claim_one(worker, lease=LONG)
    for verb in ["CONSUME", "HEARTBEAT", "ABANDON"]:
        with pytest.raises(redis.ResponseError) as caught:
            board.call(verb, "w2", "j")
        line = error_text(caught.value)
        assert line.startswith("NOTOWNER evil")
        assert not set(line) & set("\r\n\0")
    with pytest.raises(redis.ResponseError, match="CLAIMED evil"):
        board.claim("w2", id="j")


def test_random_words_as_commands(server):
    """Words that the commands know, and others, in random order."""
    board = board_with_everything(server)
    chance = random.Random(7)
    known = sorted({word for call in every_call() for word in call[1:]})
    pool = (
        [word.encode() for word in known if word != "BLOCK"]
        + list(STRANGE.values())[:15]
        + [b"1", b"2", b"j"] * 5
    )
    names = sorted({call.name for call in CALLS} - {"WAIT"})
    pipe = board.client.pipeline(transaction=False)
    for _ in range(8000):
        words = [chance.choice(pool) for _ in range(chance.randrange(8))]
        pipe.execute_command(f"JOB.{chance.choice(names)}", "board", *words)
    pipe.execute(raise_on_error=False)
    wait_until(lambda: not board.info()["overdue"])
    check_consistent(server.board(encoding_errors="surrogateescape"))


def test_a_very_large_job_is_handled(fresh_server):
    server = fresh_server("max-payload", 200 * 1024 * 1024)
    board = server.board(socket_timeout=60)
    large = "x" * 100 * 1024 * 1024
    board.post(large, id="j")
    assert len(board.claim_one(lease=LONG)["payload"]) == len(large)
    board.consume("w1", "j", result="r", retain=0)
    assert board.info()["jobs"] == 0


# Snapshots


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


@pytest.mark.parametrize("flip", [0xFF, 0x01, 0x80, 0x10])
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
