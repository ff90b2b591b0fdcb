"""Words that nobody meant to send: an error changes nothing, and nothing that comes of them breaks a board.

Each command is made of a right one, with words left out, doubled, exchanged, replaced by strange ones and by
numbers at the edges. JOBBOARD_WORDS sets how many are sent.
"""

from __future__ import annotations

import os
import random

import pytest
import redis
from calls import CALLS
from expect import check_consistent
from harness import EPOCH
from lives import LONG

pytestmark = pytest.mark.long

COUNT = int(os.environ.get("JOBBOARD_WORDS", 3000))
OTHERS = [
    ("SETTINGS|SET", ("lease", "5")),
    ("SETTINGS|SET", ("QUEUE", "q", "GROUP", "g", "weight", "5")),
    ("SETTINGS|SET", ("LIMIT", "l", "concurrency", "5", "rate", "5")),
    ("SETTINGS|SET", ("QUEUE", "q", "limits", "2", "l", "m")),
    ("SETTINGS|RESET", ("QUEUE", "q", "limits")),
    ("SETTINGS|GET", ("QUEUE", "q", "lease")),
    (
        "SCHEDULE|SET",
        ("s", "x", "EVERY", "60000", "QUEUE", "q", "MAX", "5", "BACKLOG", "all", "OVERLAP", "skip"),
    ),
    ("SCHEDULE|SET", ("s", "x", "CRON", "*/5 * * * *", "TZ", "Europe/Rome", "JITTER", "5")),
    ("SCHEDULE|LIST", ("COUNT", "5")),
    ("SCHEDULE|GET", ("s",)),
    ("SCHEDULE|RUN", ("s",)),
    ("SCHEDULE|PAUSE", ("s",)),
    ("SCHEDULE|RESUME", ("s",)),
    ("SCHEDULE|DEL", ("s",)),
    ("DEPEND|ADD", ("j", "2", "a", "b", "ONFAILURE", "run", "STRICT")),
    ("DEPEND|REMOVE", ("j", "1", "a")),
    ("DEPEND|CLEAR", ("j",)),
    ("WORKER|REGISTER", ("w1", "ROLE", "r", "META", "1", "f", "v", "FOR", "5000")),
    ("WORKER|DEREGISTER", ("w1",)),
    ("WORKER|QUIET", ("w1",)),
    ("WORKER|RESUME", ("w1",)),
    ("WORKER|LIST", ("ROLE", "r", "COUNT", "1")),
    ("LIMITS", ("COUNT", "1")),
    ("FLOW", ("2", "NODE", "a", "x", "AFTER", "1", "b", "NODE", "b", "x", "PARENT", "j", "SHARE", "2")),
]
STRANGE = [
    b"",
    b"\0",
    b"\xff\xfe",
    b"*",
    b"@",
    b"@s@1",
    b"0.5",
    b"1e400",
    b"-",
    b"+1",
    b" 1",
    b"0x1",
    b"x" * 256,
]
STRANGE += [b"x" * 5000, b"9" * 400, b"nan", b"ALL", b"WHERE", b"NOT", b">", b">x", b"%s%n", b"a\r\nb"]
EDGES = [0, 1, -1, 2, 64, 65, 100, 101, 255, 10_000, 10_001, 2**31 - 1, 2**31, 2**40, 2**40 + 1, 2**47, 2**53]
EDGES += [2**63 - 1, 2**63, 2**64, -(2**31), -(2**63), EPOCH, EPOCH + 5]
IDS = ["j", "a", "b", "c", "r", "w1", "w2", "q", "g", "t", "s", "k", "u", "none"]


ONCE = """
    local function digest()
        local info = redis.call('JOB.INFO', KEYS[1], 'DIGEST')
        return info and info[#info] or ''
    end
    local before = digest()
    local done = redis.pcall(unpack(ARGV))
    return {before, type(done) == 'table' and done.err or '', digest()}
"""
"""Nothing else happens between the two digests."""


class Babble:
    """Draws commands."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.calls = [(call.name, call.head, call.options) for call in CALLS if call.name != "WAIT"]
        self.calls += [(name, words, {}) for name, words in OTHERS] * 2

    def word(self) -> bytes:
        kind = self.draw.random()
        if kind < 0.35:
            return self.draw.choice(IDS).encode()
        if kind < 0.65:
            return str(self.draw.choice(EDGES)).encode()
        if kind < 0.8:
            _, head, options = self.draw.choice(self.calls)
            return str(self.draw.choice([*head, *options, "x"])).encode()
        return self.draw.choice(STRANGE)

    def command(self) -> list:
        name, head, options = self.draw.choice(self.calls)
        words = [str(word).encode() for word in head]
        for option in self.draw.sample(sorted(options), min(len(options), self.draw.randrange(4))):
            words += [option.encode(), *[str(word).encode() for word in options[option]]]
        for _ in range(self.draw.choice([0, 0, 1, 1, 2, 5])):
            self.change(words)
        # Nobody may wait here.
        words = [word if word.upper() != b"BLOCK" else b"COUNT" for word in words]
        command, _, sub = f"JOB.{name}".partition("|")
        return [command, *([sub] if sub else []), "board", *words]

    def change(self, words: list) -> None:
        at = self.draw.randrange(len(words) + 1)
        how = self.draw.randrange(8)
        if how == 0 and words:
            del words[at % len(words)]
        elif how == 1:
            words.insert(at, self.word())
        elif how == 2 and words:
            words.insert(at, words[at % len(words)])
        elif how == 3 and words:
            other = self.draw.randrange(len(words))
            words[at % len(words)], words[other] = words[other], words[at % len(words)]
        elif how == 4:
            words[at:at] = [b"x%d" % n for n in range(self.draw.choice([2, 65, 300]))]
        elif how == 5:
            del words[at:]
        elif words:
            words[at % len(words)] = self.word()


def fill(board) -> None:
    board.set(ownerless=1)
    for id in ("j", "a", "b", "c", "r"):
        board.post(id=id, nx=True, queue="q", name="n", tags=["t"], user="u")
    board.claim("w1", queues=["q"], count=2, lease=LONG)
    board.post(id="grouped", nx=True, queue="q", group="g", unique="k", onconflict="return")


@pytest.mark.one_server
@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_refused_changes_nothing_and_what_is_done_is_sound(clocked, seed):
    board = clocked.board(decode_responses=False)
    fill(board)
    babble = Babble(seed)
    refused = 0
    once = board.client.register_script(ONCE)
    for number in range(COUNT):
        words = babble.command()
        before, line, after = once(["board"], words)
        if line:
            refused += 1
            assert b"panic" not in line and len(line) < 1000 and not set(line) & set(b"\r\n\0"), (words, line)
            assert after == before, (words, line)
        if number % 100 == 99:
            clocked.clock.advance(babble.draw.choice([0, 0, 5, 1000]))
            if not 3 <= board.count() < 1000:
                board.client.delete("board")
                fill(board)
    assert COUNT * 0.2 < refused < COUNT * 0.95
    check_consistent(clocked.board(encoding_errors="surrogateescape"))
    before = board.digest()
    board.client.execute_command("DEBUG", "RELOAD")
    assert board.digest() == before
    clocked.spoil()


@pytest.mark.parametrize("seed", [3])
def test_a_replica_follows_whatever_was_sent(fresh_server, seed):
    primary = fresh_server("clock", "manual", appendonly=True)
    replica = fresh_server("clock", "manual", replicaof=primary)
    board = primary.board(decode_responses=False)
    fill(board)
    babble = Babble(seed)
    for _ in range(COUNT // 200):
        pipe = board.client.pipeline(transaction=bool(babble.draw.randrange(2)))
        for _ in range(100):
            words = babble.command()
            # In a transaction the server itself refuses what has no arity.
            pipe.execute_command(*words) if len(words) > 5 else pipe.execute_command("JOB.COUNT", "board")
        try:
            pipe.execute(raise_on_error=False)
        except redis.ResponseError as error:
            assert "wrong number of arguments" in str(error) or "discarded" in str(error), error
        primary.clock.advance(babble.draw.choice([0, 5, 1000]))
    replica.wait_synced(primary)
    before = board.digest()
    assert replica.board(decode_responses=False).digest() == before
    assert replica.info("jobboard")["jobboard_broken_boards"] == 0
    primary.client().config_set("min-replicas-to-write", 9)
    primary.restart(config=[*primary.config, "min-replicas-to-write 9"])
    assert primary.board(decode_responses=False).digest() == before
