"""Each verb is written once, and is a plain method of `Board`, a coroutine of `AsyncBoard`.

A verb's function only says what to send and what the reply means; it does no input or output:

- `command`: it returns one `Request`.
- `steps`: a generator that yields requests, gets their replies, and returns the value of the whole.
- `pages`: a generator that yields requests, gets their replies, and yields pages for the caller.

`Sync` and `Async` are the two ways to send. A verb of a `Plain` object gives the request itself. `shard` says
what a verb does on a board of several shards: see sharding.py.
"""

from __future__ import annotations

import functools
import inspect
import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Sequence
from datetime import timedelta
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from ..durations import to_ms

T = TypeVar("T")
P = ParamSpec("P")
log = logging.getLogger("jobboard")


class Request(Generic[T]):
    """The words of one command, and what makes its reply a value.

    `done` is called when the command has ended, with its exception or None, and its value: tracing uses it.
    """

    __slots__ = ("words", "parse", "done")

    def __init__(
        self,
        words: list[Any],
        parse: Callable[[Any], T],
        done: Callable[[BaseException | None, Any], None] | None = None,
    ) -> None:
        self.words, self.parse, self.done = words, parse, done

    def tell(self, error: BaseException | None, value: Any) -> None:
        """Calls `done`. What it raises goes into the log: the command has been done, or has its own error."""
        if self.done is not None:
            try:
                self.done(error, value)
            except Exception:
                log.exception("a hook failed after %s", self.words[0])


class Page(Generic[T]):
    """One page of a listing: the cursor of the next one (`0`: this was the last), and what is on it."""

    __slots__ = ("cursor", "items", "rest")

    def __init__(self, cursor: str, items: list[T], rest: Sequence[Any] = ()) -> None:
        self.cursor, self.items, self.rest = cursor, items, rest


Steps = Generator[Request[Any], Any, T]
Pages = Generator[Request[Page[T]] | Page[T], Any, None]


def one(request: Request[T]) -> Steps[T]:
    """A single request as steps."""
    value: T = yield request
    return value


def walk(request: Callable[[str], Request[Page[T]]]) -> Pages[T]:
    """All pages from the first on; `request` is that of the page at a cursor."""
    cursor = "0"
    while True:
        page = yield request(cursor)
        yield page
        cursor = page.cursor
        if cursor == "0":
            return


def gathered(found: Pages[T], count: int | None = None) -> Steps[list[T]]:
    """The items of all pages, or the first `count`."""
    items: list[T] = []
    answer: Any = None
    while (count is None or len(items) < count) and (part := _next(found.send, answer)) is not None:
        if isinstance(part, Page):
            items += part.items
        else:
            answer = yield part
    return items[:count]


class Plain:
    """Gives requests instead of sending them."""


GUARDS: list[Callable[[Any], None]] = []
"""What is asked before a board talks to its server: raises when it must not. `jobboard.testing` adds one."""


def guard(board: Any) -> None:
    for refuse in GUARDS:
        refuse(board)


class Sync:
    """Sends and waits."""

    def send(self, request: Request[T]) -> T:
        """Sends one request and returns its value; raises the server's refusal as a `BoardError`."""
        raise NotImplementedError


class Async:
    """Sends and awaits."""

    async def send(self, request: Request[T]) -> T:
        """Sends one request and returns its value; raises the server's refusal as a `BoardError`."""
        raise NotImplementedError


class Sharded:
    """A board of several: verbs are done on its shards."""


class Call:
    """A verb with its arguments by name. Its timeout, when it has one, begins to pass now."""

    def __init__(self, verb: Verb[Any, Any], words: Sequence[Any], options: dict[str, Any]) -> None:
        self.verb, self.bound = verb, verb.signature.bind(None, *words, **options)
        self.bound.apply_defaults()
        timeout = self.bound.arguments.get("timeout")
        self.deadline = None if timeout is None else time.monotonic() + to_ms(timeout, "timeout") / 1000

    def __getitem__(self, name: str) -> Any:
        return self.bound.arguments[name]

    def on(self, board: Any, **changed: Any) -> Generator[Any, Any, Any]:
        """The steps, or pages, of the verb on this board, with some arguments changed."""
        bound = inspect.BoundArguments(self.verb.signature, self.bound.arguments.copy())
        if self.deadline is not None:
            bound.arguments["timeout"] = timedelta(seconds=max(self.deadline - time.monotonic(), 0))
        bound.arguments.update(changed)
        return self.verb.start(board, *bound.args[1:], **bound.kwargs)


Spread = Callable[[Any, Call], Generator[Any, Any, Any]]
"""What a verb does on a sharded board."""


class Verb(Generic[P, T]):
    """What the three kinds share: a name and a docstring to look up, and how a board does them."""

    def __init__(self, build: Callable[..., Any], shard: Spread) -> None:
        self.build, self.shard = build, shard
        functools.update_wrapper(self, build)

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.build)

    @functools.cached_property
    def __signature__(self) -> inspect.Signature:
        """What `help` shows: it returns the value of its steps."""
        returned = re.sub(r"^(?:Steps|Request)\[(.*)\]$", r"\1", str(self.signature.return_annotation))
        return self.signature.replace(return_annotation=returned)

    @functools.cached_property
    def bound_signature(self) -> inspect.Signature:
        shown = self.__signature__
        return shown.replace(parameters=[*shown.parameters.values()][1:])

    def __call__(self, board: Any, /, *words: Any, **options: Any) -> Any:
        """`Board.post(board, …)`, as of any method; `help` shows signatures only of what can be called."""
        return self.__get__(board, type(board))(*words, **options)  # type: ignore[attr-defined]

    def start(self, board: Any, /, *words: Any, **options: Any) -> Generator[Any, Any, Any]:
        """Its steps, or pages, on a board that is no sharded one."""
        found: Generator[Any, Any, Any] = self.build(board, *words, **options)
        return found

    def of(self, board: Any, /, *words: P.args, **options: P.kwargs) -> Steps[T]:
        """Its steps, or pages, on any board: so that a verb can be a part of another one."""
        if isinstance(board, Sharded):
            return self.shard(board, Call(self, words, options))
        return self.start(board, *words, **options)

    def bind(self, board: Any, sync: Callable[..., Any], other: Callable[..., Any]) -> Any:
        """The method of a board; `sync` or `other` does its steps."""
        if board is None:
            return self
        if isinstance(board, Plain):
            return self.build.__get__(board)
        run = other if isinstance(board, Async) else sync

        @functools.wraps(self.build)
        def call(*words: Any, **options: Any) -> Any:
            return run(board, self.of(board, *words, **options))

        call.__signature__ = self.bound_signature  # type: ignore[attr-defined]
        return call


class Command(Verb[P, T]):
    """A verb of one command."""

    def start(self, board: Any, /, *words: Any, **options: Any) -> Generator[Any, Any, Any]:
        return one(self.build(board, *words, **options))

    @overload
    def __get__(self, board: None, owner: Any) -> Command[P, T]: ...

    @overload
    def __get__(self, board: Plain, owner: Any) -> Callable[P, Request[T]]: ...

    @overload
    def __get__(self, board: Sync, owner: Any) -> Callable[P, T]: ...

    @overload
    def __get__(self, board: Async, owner: Any) -> Callable[P, Awaitable[T]]: ...

    def __get__(self, board: Any, owner: Any) -> Any:
        return self.bind(board, run_sync, run_async)


class Stepped(Verb[P, T]):
    """A verb of several commands, one after the other."""

    @overload
    def __get__(self, board: None, owner: Any) -> Stepped[P, T]: ...

    @overload
    def __get__(self, board: Plain, owner: Any) -> Callable[P, Steps[T]]: ...

    @overload
    def __get__(self, board: Sync, owner: Any) -> Callable[P, T]: ...

    @overload
    def __get__(self, board: Async, owner: Any) -> Callable[P, Awaitable[T]]: ...

    def __get__(self, board: Any, owner: Any) -> Any:
        return self.bind(board, run_sync, run_async)


class Paged(Verb[P, T]):
    """A verb that walks over all pages of a listing, fetching each when it is needed."""

    @overload
    def __get__(self, board: None, owner: Any) -> Paged[P, T]: ...

    @overload
    def __get__(self, board: Plain, owner: Any) -> Callable[P, Pages[T]]: ...

    @overload
    def __get__(self, board: Sync, owner: Any) -> Callable[P, Iterator[T]]: ...

    @overload
    def __get__(self, board: Async, owner: Any) -> Callable[P, AsyncIterator[T]]: ...

    def __get__(self, board: Any, owner: Any) -> Any:
        return self.bind(board, _walk_sync, _walk_async)


def command(shard: Spread) -> Callable[[Callable[Concatenate[Any, P], Request[T]]], Command[P, T]]:
    return lambda build: Command(build, shard)


def steps(shard: Spread) -> Callable[[Callable[Concatenate[Any, P], Steps[T]]], Stepped[P, T]]:
    return lambda build: Stepped(build, shard)


def pages(shard: Spread) -> Callable[[Callable[Concatenate[Any, P], Pages[T]]], Paged[P, T]]:
    return lambda build: Paged(build, shard)


def run_sync(board: Sync, found: Steps[T]) -> T:
    """Does the steps."""
    try:
        request = next(found)
        while True:
            try:
                reply = board.send(request)
            except Exception as error:
                request = found.throw(error)
            else:
                request = found.send(reply)
    except StopIteration as end:
        value: T = end.value
        return value


async def run_async(board: Async, found: Steps[T]) -> T:
    """Does the steps."""
    try:
        request = next(found)
        while True:
            try:
                reply = await board.send(request)
            except Exception as error:
                request = found.throw(error)
            else:
                request = found.send(reply)
    except StopIteration as end:
        value: T = end.value
        return value


def _walk_sync(board: Sync, found: Pages[T]) -> Iterator[T]:
    step: Callable[[Any], Any] = found.send
    given: Any = None
    while (part := _next(step, given)) is not None:
        step, given = found.send, None
        if isinstance(part, Page):
            yield from part.items
            continue
        try:
            given = board.send(part)
        except Exception as error:
            step, given = found.throw, error


async def _walk_async(board: Async, found: Pages[T]) -> AsyncIterator[T]:
    step: Callable[[Any], Any] = found.send
    given: Any = None
    while (part := _next(step, given)) is not None:
        step, given = found.send, None
        if isinstance(part, Page):
            for item in part.items:
                yield item
            continue
        try:
            given = await board.send(part)
        except Exception as error:
            step, given = found.throw, error


def _next(step: Callable[[Any], Request[Page[T]] | Page[T]], given: Any) -> Request[Page[T]] | Page[T] | None:
    """What a generator yields next; `step` is its `send` or `throw`. None at its end."""
    try:
        return step(given)
    except StopIteration:
        return None
