"""What all families of verbs share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from .. import replies
from ..arguments import counted
from ..codecs import Codec
from ..handlers import DEFAULT_QUEUE, Handlers
from ..jobs import Job, reader
from .sending import Page, Request

T = TypeVar("T")


class Family:
    """A board by its key, and the codec of its payloads. Others add how to send."""

    key: str
    codec: Codec
    handlers: Handlers

    @functools.cached_property
    def _job(self) -> Callable[[Any], Job]:
        return reader(self.codec)

    def _request(self, name: str, words: Sequence[Any], parse: Callable[[Any], T]) -> Request[T]:
        return Request([name, self.key, *words], parse)

    def _payload(self, value: Any) -> bytes:
        return self.codec.encode(value)

    def _known(self, options: Mapping[str, Any], payloads: Sequence[Any] = ()) -> dict[str, Any]:
        """The options of a post without `elsewhere`, and with those of the task that it names, unless it has
        them itself.

        Where there are tasks or handlers, and `elsewhere` does not say that another program has it, it raises
        `NoHandler` when none of them does such jobs, and `ArgumentError` when the payloads are no arguments
        of the task.
        """
        known = dict(options)
        name, queue = known.get("name"), known.get("queue")
        if not known.pop("elsewhere", False) and len(self.handlers):
            called = None if name is None else replies.text(name)
            own = DEFAULT_QUEUE if called is None else self.handlers.queue_of(called)
            handler = self.handlers.require(called, replies.text(queue or own))
            if handler.check is not None:
                for payload in payloads:
                    handler.check(payload)
            if handler.options is not None:
                known = {**handler.options(known, payloads), **known}
            if queue is None and own != DEFAULT_QUEUE:
                known["queue"] = own
        return known


def fields_words(fields: Sequence[str] | None) -> list[Any]:
    return [] if fields is None else counted("FIELDS", fields)


def record_words(fields: Sequence[str] | None) -> list[Any]:
    """What of records is wanted, and that they come packed: that costs server and client least."""
    return [*fields_words(fields), "PACKED"]


def page_of(shape: Callable[[Any], T]) -> Callable[[Any], Page[T]]:
    """`[cursor, items, …]`."""
    items = replies.list_of(shape)
    return lambda reply: Page(replies.text(reply[0]), items(reply[1]), reply[2:])


def many(value: str | bytes | Sequence[T]) -> list[Any]:
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
