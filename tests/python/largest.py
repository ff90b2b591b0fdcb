"""The largest calls of every command, made from what COMMAND DOCS tells of its syntax.

A word that an argument's name does not lead to is missed with an error: a new sort of argument is added to
`Words`, a new option with known sorts needs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import pytest
import redis
from harness import Board, Server

T = TypeVar("T")

N = 2_000
"""As many jobs as one command may name here (`max-batch`)."""
NAME = 255
TEXT = 4096
PAYLOAD = 16 << 20
LIMITS = 16
"""So many limits one call may name costs of."""
MOST = {
    "AWAIT": 64,
    "SIGNALS": 64,
    "TAGS": 64,
    "TAG": 64,
    "UNTAG": 64,
    "META": 64,
    "COSTS": LIMITS,
    "NEXT-COSTS": LIMITS,
    "QUEUES": 1000,
    "WHERE": 200,
}
"""Lists that are shorter than `max-batch`, by their option."""

NAMED = 1_000
"""So many names of each sort there are for commands that tell of them."""
LISTING = {
    *("QUEUES", "GROUPS", "LIMITS", "WORKERS", "KINDS", "TAGS", "INFO", "STATS", "METRICS"),
    *("SCHEDULE LIST", "WORKER LIST"),
}
"""Commands that tell of names."""
READS = {*LISTING, "GET", "MGET", "LIST", "COUNT", "HISTORY", "EXPLAIN"}
"""Commands that leave the board as it is."""
REFUSED = (
    "STRICT needs AFTER|LINGER needs MIN|SET needs at least one option|TZ goes with CRON|SHARE needs PARENT|"
    "ALL excludes RESULTS|UNIQUE goes with a single payload|PAYLOAD needs exactly one id"
)
"""Why an option does not stand alone, or not for many jobs."""

CLAIMED = """
CONSUME MCONSUME FAIL MFAIL MTRASH ABANDON MABANDON TRASH HEARTBEAT MHEARTBEAT STEP AWAIT RELEASE
""".split()
"""Verbs on claimed jobs."""
CHUNK = 65_536
"""The default of output-bytes."""
LENGTH = {"payload": PAYLOAD, "chunk": CHUNK, "result": PAYLOAD, "text": TEXT, "message": TEXT}
"""How long the value of an argument may be; other names NAME."""
NAMES = set("name queue group kind key role label part step signal who".split())
FIXED = {
    "worker": "w1", "priority": 1, "percent": 1, "version": 0, "cursor": 0, "base": 1, "max": 1, "cost": 1,
    "share": 1, "day": 0, "state": "ready", "zone": "UTC", "expression": "@daily", "unix-ms": 1 << 44,
    "limit": "l", "order": "oldest", "parent": "a0", "user": "u" * NAME, "from": 0, "to": 1 << 44,
    "prefix*": "j*", "number": 1,
}  # fmt: skip
WORDS = set("best claimable hold start reject run".split())
"""The first of some words that stand for themselves."""


class Token(int):
    """Stands for the token of the job of that number."""


class Call(NamedTuple):
    """The words after the command's name, and where those stand that can be shorter."""

    option: str
    words: list
    large: slice

    def smaller(self, ratio: float) -> Call:
        """With a list so much shorter; or, where only one is left, with a value that is."""
        words = self.words[self.large]
        at = next((at for at, word in enumerate(words) if isinstance(word, int)), len(words))
        each, rest = (words[at], words[at + 1 :]) if at < len(words) else (1, words[-1:])
        if each > 1:
            fewer = max(1, int(each * ratio))
            words = [*words[:at], fewer, *rest[: len(rest) // each * fewer]]
        else:
            words = [*words[:-1], words[-1][: int(len(words[-1]) * ratio)]]
        start = self.large.start
        return Call(
            self.option,
            [*self.words[:start], *words, *self.words[self.large.stop :]],
            slice(start, start + len(words)),
        )


def is_form(argument: dict) -> bool:
    """What a command is about: ids, all of a worker's, a selection."""
    return argument["type"] == "oneof" and "optional" not in argument.get("flags", ())


def tokens_of(arguments: list) -> Iterator[dict]:
    for argument in arguments:
        if "token" in argument:
            yield argument
        yield from tokens_of(argument.get("arguments", []))


def has(argument: dict, wanted: Any) -> bool:
    return argument is wanted or any(has(inner, wanted) for inner in argument.get("arguments", []))


def calls_of(name: str, arguments: list, words: Words) -> Iterator[Call]:
    """Each option of a command by itself, for each of its forms, and each form without options."""
    forms = [form for argument in arguments if is_form(argument) for form in argument["arguments"]] or [None]
    options = list(tokens_of(arguments))
    needed = [argument for argument in arguments if argument["name"] in LENGTH]
    for form in forms:
        others = [other for other in forms if other is not form]
        for option in [None, *needed, *options]:
            if option is None or not any(has(other, option) for other in others):
                yield Maker(name, words, form, option).call(arguments)


class Maker:
    """Writes one call: the form and the option as large as they go, all else small."""

    def __init__(self, name: str, words: Words, form: dict | None, option: dict | None) -> None:
        self.name, self.words, self.form, self.option = name, words, form, option
        self.out: list = []
        self.large = slice(0, 0)
        self.inside = 0

    def call(self, arguments: list) -> Call:
        self.sequence(arguments, "")
        if self.name == "JOB.FLOW":
            self.out[1] = N
            more = range(self.out.count("NODE"), N)
            self.out += [word for at in more for word in ("NODE", f"n{at}", "x")]
        option = (self.option or {}).get("token") or (self.option or {}).get("name", "")
        return Call(option, self.out, self.large)

    def sequence(self, arguments: list, token: str) -> None:
        skip = False
        for at, argument in enumerate(arguments):
            if skip:
                skip = False
                continue
            after = arguments[at + 1] if at + 1 < len(arguments) else {}
            if argument["name"] == "n" and "token" not in argument and "multiple" in after.get("flags", ()):
                n = 1 if token in ("AFTER", "AWAIT") and not self.inside else MOST.get(token, N)
                self.out.append(n)
                self.many(after, n, token)
                skip = True
            else:
                self.argument(argument, token)

    def block(self, arguments: list, token: str) -> None:
        """A word before a choice, as AFTER, is the option of what is chosen."""
        first = arguments[0]
        start = len(self.out)
        self.inside += first is self.option
        self.sequence(arguments, first["token"] if first["type"] == "pure-token" else token)
        if first is self.option:
            self.inside -= 1
            self.large = slice(start, len(self.out))

    def many(self, argument: dict, n: int, token: str) -> None:
        inner = argument.get("arguments", [argument])
        for at in range(n):
            for each in inner:
                # What stands in a list is carried.
                self.out.append(self.words.of(self.name, each["name"], token, at, False))

    def argument(self, argument: dict, token: str) -> None:
        wanted = [each for each in (self.option, self.form) if each is not None]
        chosen = any(has(argument, each) for each in wanted)
        # How many a command is about at most belongs to its largest call.
        if "optional" in argument.get("flags", ()) and not chosen and argument.get("token") != "COUNT":
            return
        if argument["name"] == "options":
            return
        if argument is self.option:
            self.inside += 1
            start = len(self.out)
        if "token" in argument:
            token = argument["token"]
            self.out.append(token)
        if argument["type"] == "oneof":
            among = argument["arguments"]
            which = next((a for a in among if any(has(a, each) for each in wanted)), among[0])
            self.argument(which, token)
        elif argument["type"] == "block":
            self.block(argument["arguments"], token)
        elif "multiple" in argument.get("flags", ()):
            self.many(argument, MOST.get(token, 1), token)
        elif argument["type"] != "pure-token":
            self.out.append(self.words.of(self.name, argument["name"], token, 0, self.inside > 0))
        if argument is self.option:
            self.inside -= 1
            self.large = slice(start, len(self.out))


class Words:
    """The words that stand for arguments."""

    def __init__(self, fields: list) -> None:
        self.fields = fields

    def of(self, name: str, argument: str, token: str, at: int, large: bool) -> Any:
        if name.startswith("JOB.SETTINGS"):
            return {"board": "board", "name": "rate", "value": 5}.get(argument, "x")
        if argument == "limit" and token.endswith("COSTS"):
            return f"{at:0>{NAME}}"
        if argument == "id":
            new = name in ("JOB.POST", "JOB.MPOST", "JOB.FLOW")
            return f"new{at}" if new else "s" if name.startswith("JOB.SCHEDULE") else f"j{at}"
        if argument in ("other", "field", "tag", "value", "filter", "token", "ms", "n", "board"):
            return getattr(self, argument)(token, at)
        if (name, token) == ("JOB.QUEUES", "CONTAINS"):
            # A part of a name.
            return "x" * (NAME if large else 1)
        if argument in LENGTH:
            return "x" * (LENGTH[argument] if large else 1)
        if argument == "label" and large:
            return "m" * NAME
        if argument in NAMES:
            return (
                f"{at:0>{NAME}}"
                if token in ("QUEUES", "AWAIT", "SIGNALS")
                else argument[0] * (NAME if large else 1)
            )
        return argument if argument in WORDS else FIXED[argument]

    def other(self, token: str, at: int) -> str:
        return f"a{at}"

    def field(self, token: str, at: int) -> str:
        return self.fields[at % len(self.fields)] if token == "FIELDS" else f"{at:0>{NAME}}"

    def value(self, token: str, at: int) -> str:
        return "v" * TEXT

    def tag(self, token: str, at: int) -> str:
        return f"{at:0>{NAME}}"

    def filter(self, token: str, at: int) -> str:
        return ("NOT", "TRACKED")[at % 2]

    def board(self, token: str, at: int) -> str:
        return "board"

    def token(self, token: str, at: int) -> int:
        return Token(at) if token in ("TOKEN", "TOKENS") else 0

    def ms(self, token: str, at: int) -> int:
        return 1 if token in ("BLOCK", "") else 60_000

    def n(self, token: str, at: int) -> int:
        return N if token in ("COUNT", "MIN") else 1 << 20


def tried(
    server: Server, name: str, call: Call, measured: Callable[[Server, list], tuple[str | None, T]]
) -> tuple[str | None, T]:
    """What `measured` says of a call, or of a shorter one when it is refused as too long.

    And its error, unless that says that the option does not stand alone.
    """
    for _ in range(8):
        tokens = prepare(server, name)
        words = [tokens[word] if isinstance(word, Token) else word for word in call.words]
        error, result = measured(server, [*name.split(), *words])
        shared = re.search(r"(\d+) (?:bytes|jobs), more than (?:max-shared \()?(\d+)", error or "")
        if not shared:
            break
        call = call.smaller(0.8 * int(shared[2]) / int(shared[1]))
    return None if error is None or re.match(f"ERR ({REFUSED})|WRONGQUEUE", error) else error, result


def fields_of(board: Board) -> list[str]:
    with pytest.raises(redis.ResponseError) as error:
        board.call("LIST", "FIELDS", 1, "?")
    return str(error.value).split("one of ")[1].split(", ")


def few(server: Server) -> None:
    """Lets one command do a fifth of what it may by default: the test is quicker, and shows the same."""
    server.client().config_set("jobboard.max-batch", N)
    server.client().config_set("jobboard.max-shared", (8 << 20) * N // 10_000)


def prepare(server: Server, name: str) -> list[int]:
    """A board on which the command has most to do; the tokens of its claimed jobs."""
    board = server.board()
    run = board.client.execute_command
    if name.removeprefix("JOB.") in READS and board.client.exists("board"):
        return []
    run("FLUSHALL", "SYNC")
    user = ["QUEUE", "awaited", "USER", FIXED["user"]]
    verb, numbers = name.removeprefix("JOB."), range(N)
    if verb in LISTING:
        return name_much(board)
    board.call("MPOST", N, *["x"] * N, "IDS", N, *[f"a{at}" for at in numbers], *user)
    run("JOB.SETTINGS", "SET", "board", "LIMIT", "l", "concurrency", 5)
    for at in range(LIMITS):
        run("JOB.SETTINGS", "SET", "board", "LIMIT", f"{at:0>{NAME}}", "rate", 5)
    run("JOB.SCHEDULE", "SET", "board", "s", "x", "EVERY", 1 << 40)
    run("JOB.WORKER", "REGISTER", "board", "w1")
    ids = [f"j{at}" for at in numbers]
    if verb == "GET":
        board.post(id="j0")
        board.call("MPOST", N, *["x"] * N, "PARENT", "j0")
        return []
    board.call("MPOST", N, *["x"] * N, "IDS", N, *ids, *user[2:])
    if verb == "REQUEUE":
        board.call("CANCEL", N, *ids)
    if verb not in CLAIMED:
        return []
    tokens = [job["token"] for job in board.claim("w1", count=N, fields=["token"])]
    # What a worker pauses is a limit of its job.
    run("JOB.SETTINGS", "SET", "board", "QUEUE", "default", "limits", 1, "l")
    return tokens


def name_much(board: Board) -> list[int]:
    """As many queues, groups, tags, kinds, workers, limits and schedules, with long names."""
    pipe = board.client.pipeline(transaction=False)
    for at in range(NAMED):
        long = f"{at:0>255}"
        short = f"s{at}"
        pipe.execute_command(
            "JOB.POST", "board", "x", "QUEUE", long, "GROUP", long, "TAGS", 1, long, "ID", short
        )
        pipe.execute_command("JOB.CLAIM", "board", "w", "QUEUE", long, "FIELDS", 1, "id")
        pipe.execute_command("JOB.FAIL", "board", "w", short, long, "m", "NORETRY")
        pipe.execute_command("JOB.POST", "board", "x", "QUEUE", long)
        pipe.execute_command("JOB.CLAIM", "board", long, "QUEUE", long, "FIELDS", 1, "id")
        pipe.execute_command("JOB.SCHEDULE", "SET", "board", short, "x" * TEXT, "EVERY", 1 << 40)
        pipe.execute_command("JOB.WORKER", "REGISTER", "board", long, "META", 1, "f", "v" * TEXT)
        pipe.execute_command("JOB.SETTINGS", "SET", "board", "LIMIT", long, "concurrency", 5)
    pipe.execute()
    return []
