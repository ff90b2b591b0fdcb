"""Anything may be in any argument: a clear error or it works, and the server lives."""

from __future__ import annotations

import random

import lives
import pytest
import redis
from calls import CALLS
from daily import left_to_ci
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
PARTS = 3
"""Every value is tried in each PARTSth place of all arguments, by `make ci` in each."""


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


def refusal(board, words: list) -> str | None:
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


@pytest.mark.parametrize("part", [0, *left_to_ci(range(1, PARTS))])
@pytest.mark.parametrize("value", STRANGE)
def test_any_argument_may_be_strange(clocked, value, part):
    """It works, or the error is one clean line and nothing has changed. Values begin at different places."""
    board = board_with_everything(clocked)
    whole, before = board.client.dump("board"), board.digest()
    for words in words_with(STRANGE[value])[(list(STRANGE).index(value) + part) % PARTS :: PARTS]:
        line = refusal(board, words)
        if line is None:
            if len(STRANGE[value]) >= 5000:
                # A digest of all that such calls leave behind would take longer each time.
                board.client.restore("board", 0, whole, replace=True)
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
