"""The largest calls of every command, made from what COMMAND DOCS tells of its syntax.

A word that an argument's name does not lead to is missed with an error: a new sort of argument is added to
`Words`, a new option with known sorts needs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

N = 2_000
"""As many jobs as one command may name here (`max-batch`)."""
NAME = 255
TEXT = 4096
PAYLOAD = 16 << 20
MOST = {"TAGS": 64, "TAG": 64, "UNTAG": 64, "META": 64, "QUEUES": 1000, "WHERE": 200}
"""Lists that are shorter than `max-batch`, by their option."""

CLAIMED = "CONSUME MCONSUME FAIL ABANDON MABANDON TRASH HEARTBEAT MHEARTBEAT RELEASE".split()
"""Verbs on claimed jobs."""
LENGTH = {"payload": PAYLOAD, "result": PAYLOAD, "text": TEXT, "message": TEXT}
"""How long the value of an argument may be; other names NAME."""
NAMES = set("name queue group kind key role label".split())
FIXED = {
    "worker": "w1", "priority": 1, "percent": 1, "version": 0, "cursor": 0, "base": 1, "max": 1, "cost": 1,
    "share": 1, "day": 0, "state": "ready", "zone": "UTC", "expression": "@daily", "unix-ms": 1 << 44,
    "limit": "l", "parent": "a0", "user": "u" * NAME,
}  # fmt: skip
WORDS = set("best claimable hold start reject".split())
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
                n = 1 if token == "AFTER" and not self.inside else MOST.get(token, N)
                self.out.append(n)
                self.many(after, n, token)
                skip = True
            else:
                self.argument(argument, token)

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
            self.sequence(argument["arguments"], token)
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
        if argument == "id":
            new = name in ("JOB.POST", "JOB.MPOST", "JOB.FLOW")
            return f"new{at}" if new else "s" if name.startswith("JOB.SCHEDULE") else f"j{at}"
        if argument in ("other", "field", "tag", "value", "filter", "token", "ms", "n", "board"):
            return getattr(self, argument)(token, at)
        if argument in LENGTH:
            return "x" * (LENGTH[argument] if large else 1)
        if argument == "label" and large:
            return "m" * NAME
        if argument in NAMES:
            return f"{at:0>{NAME}}" if token == "QUEUES" else argument[0] * (NAME if large else 1)
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
        return N if token == "COUNT" else 1 << 20
