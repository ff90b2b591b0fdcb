"""How Python values become the arguments of a command."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .durations import FOREVER, to_ms
from .other_words import hint_of
from .times import to_unix

Name = str | bytes
"""An id, a queue, a worker and so on: 1 to 255 bytes."""

Encoder = Callable[[str, Any], "list[Any]"]


LONGEST_NAME = 255
"""Bytes."""

BACKLOG_MOST = 400
"""The most missed times that a schedule makes up, unless it makes up all."""


def check_name(value: Any, name: str) -> None:
    """Raises where a name stands for what is none."""
    if not isinstance(value, (str, bytes)):
        raise TypeError(f"{name} is text, such as {name}='mails', not {value!r:.100}")
    data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    if not 0 < len(data) <= LONGEST_NAME:
        raise ValueError(f"{name} is a text of 1 to {LONGEST_NAME} bytes, not one of {len(data)}")


def check_names(value: Any, name: str) -> list[Any]:
    """The names of a list. Text is refused: it would be taken letter by letter."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError(f"{name} is a list, such as {name}=['mails'], not {value!r:.100}")
    values = list(value)
    for one in values:
        if not isinstance(one, (str, bytes)):
            raise TypeError(f"{name} is a list of texts, such as {name}=['mails'], not one with {one!r:.100}")
    return values


def check_whole(value: Any, name: str, least: int, most: int | None = None) -> int:
    """The number; raises where it is no whole one, or out of its range."""
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        example = f"{name}={max(least, 3)}"
        raise TypeError(f"{name} is a whole number, such as {example}, not {value!r:.100}")
    number = operator.index(value)
    if number < least or (most is not None and number > most):
        range_ = f"at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} must be {range_}, not {number}")
    return number


def check_flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} is True or False, not {value!r:.100}")
    return value


def check_choice(value: Any, name: str, known: Sequence[str]) -> None:
    if value not in known:
        kind = ValueError if isinstance(value, str) else TypeError
        raise kind(f"{name} must be one of {', '.join(known)}, not {value!r:.100}")


def plain(word: str, value: Any) -> list[Any]:
    return [word, value]


def named(word: str, value: Any) -> list[Any]:
    check_name(value, word.lower())
    return [word, value]


def text(word: str, value: Any) -> list[Any]:
    if not isinstance(value, (str, bytes)):
        raise TypeError(f"{word.lower()} is text, not {value!r:.100}")
    return [word, value]


def whole(least: int, most: int, name: str = "") -> Encoder:
    return lambda word, value: [word, check_whole(value, name or word.lower(), least, most)]


def choice(*known: str) -> Encoder:
    def encode(word: str, value: Any) -> list[Any]:
        check_choice(value, word.lower(), known)
        return [word, value]

    return encode


def duration(word: str, value: Any) -> list[Any]:
    ms = to_ms(value, word.lower())
    if ms < 0 and value != FOREVER:
        raise ValueError(f"{word.lower()} is a duration from now on, and cannot be negative: {value!r}")
    return [word, ms]


def time(word: str, value: Any) -> list[Any]:
    return [word, to_unix(value, word.lower())]


def flag(word: str, value: Any) -> list[Any]:
    return [word] if check_flag(value, word.lower()) else []


def counted(word: str, value: Iterable[Any]) -> list[Any]:
    """`QUEUES 2 a b`. Text is refused: it would be taken letter by letter."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError(f"{word.lower()} is a list, not {value!r:.100}")
    values = list(value)
    return [word, len(values), *values]


def names(word: str, value: Iterable[Any]) -> list[Any]:
    """The same of names."""
    return counted(word, check_names(value, word.lower()))


def pairs(word: str, value: Mapping[Any, Any]) -> list[Any]:
    """`META 1 field value`."""
    label = word.lower()
    if not isinstance(value, Mapping):
        raise TypeError(f"{label} is a dict of texts, such as {label}={{'to': 'ann'}}, not {value!r:.100}")
    for field, one in value.items():
        check_name(field, f"a field of {label}")
        if isinstance(one, bool) or not isinstance(one, (str, bytes, int, float)):
            raise TypeError(f"{label} has texts and numbers, and {field!r} is {one!r:.100}: write str(…)")
    return [word, len(value), *(part for pair in value.items() for part in pair)]


MOST = 2**31 - 1


def costs(word: str, value: Mapping[Any, Any]) -> list[Any]:
    """`COSTS 1 limit cost`."""
    label = word.lower().replace("-", "_")
    if not isinstance(value, Mapping):
        raise TypeError(
            f"{label} is a dict of limits and permits, such as {label}={{'tokens': 500}}, not {value!r:.100}"
        )
    if not value:
        raise ValueError(
            f"{label} names at least one limit: leave it out, or write {label}={{'tokens': 500}}"
        )
    for limit, one in value.items():
        check_name(limit, f"a limit in {label}")
        check_whole(one, f"{label}[{limit!r}]", 0, MOST)
    return [word, len(value), *(part for pair in value.items() for part in pair)]


def check_ids(ids: Iterable[Any], verb: str) -> None:
    """Raises TypeError where a list stands for the ids in it."""
    for id in ids:
        if not isinstance(id, (str, bytes)):
            hint = f": {verb}(*ids) takes those of a list" if isinstance(id, (list, tuple, set)) else ""
            raise TypeError(f"{verb}: an id is text, not {id!r:.100}{hint}")


def encode_options(table: Mapping[str, tuple[str, Encoder]], options: Mapping[str, Any]) -> list[Any]:
    """The words of keyword options. None leaves one out; an unknown one is a TypeError."""
    found: list[Any] = []
    for name, value in options.items():
        if name not in table:
            raise TypeError(f"unknown option {name!r}; {hint_of(name, table)}")
        if value is not None:
            word, encode = table[name]
            found += encode(word, value)
    return found


def encoded(words: list[Any]) -> list[Any]:
    """Text that stands for bytes that are not UTF-8 (surrogates) as those bytes again."""
    return [
        word.encode("utf-8", "surrogateescape") if isinstance(word, str) and not word.isascii() else word
        for word in words
    ]
