"""How Python values become the arguments of a command."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .durations import FOREVER, to_ms
from .times import to_unix

Name = str | bytes
"""An id, a queue, a worker and so on: 1 to 255 bytes."""

Encoder = Callable[[str, Any], "list[Any]"]


def plain(word: str, value: Any) -> list[Any]:
    return [word, value]


def duration(word: str, value: Any) -> list[Any]:
    ms = to_ms(value, word.lower())
    if ms < 0 and value != FOREVER:
        raise ValueError(f"{word.lower()} is a duration from now on, and cannot be negative: {value!r}")
    return [word, ms]


def time(word: str, value: Any) -> list[Any]:
    return [word, to_unix(value, word.lower())]


def flag(word: str, value: Any) -> list[Any]:
    return [word] if value else []


def counted(word: str, value: Iterable[Any]) -> list[Any]:
    """`QUEUES 2 a b`. Text is refused: it would be taken letter by letter."""
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{word.lower()} is a list, not {value!r}")
    values = list(value)
    return [word, len(values), *values]


def pairs(word: str, value: Mapping[Any, Any]) -> list[Any]:
    """`META 1 field value`."""
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
            raise TypeError(f"unknown option {name!r}; there are {', '.join(table)}")
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
