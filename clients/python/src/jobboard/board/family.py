"""What all families of verbs share."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Callable, Generic, Optional, TypeVar, Union

from .. import replies
from ..arguments import counted
from ..codecs import Codec
from ..jobs import Job, reader
from .sending import Page, Request

T = TypeVar("T")


class Family:
    """A board by its key, and the codec of its payloads. Others add how to send."""

    key: str
    codec: Codec

    @functools.cached_property
    def _job(self) -> Callable[[Any], Job]:
        return reader(self.codec)

    def _request(self, name: str, words: Sequence[Any], parse: Callable[[Any], T]) -> Request[T]:
        return Request([name, self.key, *words], parse)

    def _payload(self, value: Any) -> bytes:
        return self.codec.encode(value)


def fields_words(fields: Optional[Sequence[str]]) -> list[Any]:
    return [] if fields is None else counted("FIELDS", fields)


def page_of(shape: Callable[[Any], T]) -> Callable[[Any], Page[T]]:
    """`[cursor, items, …]`."""
    items = replies.list_of(shape)
    return lambda reply: Page(replies.text(reply[0]), items(reply[1]), reply[2:])


def many(value: Union[str, bytes, Sequence[T]]) -> list[Any]:
    """A single value as a list of one."""
    return [value] if isinstance(value, (str, bytes, int)) else list(value)


class Slice(Generic[T]):
    """What an operator's verb has done: `count` jobs, and `held` or unknown ids; with `RETURN` the
    records.
    """

    __slots__ = ("count", "cursor", "held", "records")

    def __init__(
        self, count: int, cursor: str = "0", held: Sequence[str] = (), records: Sequence[T] = ()
    ) -> None:
        self.count, self.cursor = count, cursor
        self.held, self.records = list(held), list(records)

    def add(self, part: Slice[T]) -> None:
        """What was done next belongs to it."""
        self.count, self.cursor = self.count + part.count, part.cursor
        self.held += part.held
        self.records += part.records

    def __repr__(self) -> str:
        return f"Slice(count={self.count}, cursor={self.cursor!r}, held={self.held!r})"
