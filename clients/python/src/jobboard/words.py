"""How Python values become the words of a command, and durations and times milliseconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, Callable, Union

Duration = Union[int, timedelta]
"""Milliseconds, or a timedelta. -1 is without end, where the command has that."""

Time = Union[int, datetime]
"""Unix milliseconds, or a datetime with a zone."""

Name = Union[str, bytes]
"""An id, a queue, a worker and so on: 1 to 255 bytes."""

FOREVER = -1

_MS = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def to_ms(duration: Duration) -> int:
    """Milliseconds of a duration; a fraction of one is cut off."""
    return duration // _MS if isinstance(duration, timedelta) else int(duration)


def to_unix(time: Time) -> int:
    """Unix milliseconds of a time. A datetime without a zone is refused: it may mean any hour."""
    if not isinstance(time, datetime):
        return int(time)
    if time.tzinfo is None:
        raise ValueError("a datetime needs a zone: datetime.now(timezone.utc), for instance")
    return (time - _EPOCH) // _MS


Encoder = Callable[[str, Any], "list[Any]"]


def plain(word: str, value: Any) -> list[Any]:
    return [word, value]


def duration(word: str, value: Any) -> list[Any]:
    return [word, to_ms(value)]


def time(word: str, value: Any) -> list[Any]:
    return [word, to_unix(value)]


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
