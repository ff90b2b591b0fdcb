"""Each verb is written once, and is a plain method of `Board`, a coroutine of `AsyncBoard`.

A verb's function only says what to send and what the reply means; it does no input or output:

- `command`: it returns one `Request`.
- `steps`: a generator that yields requests, gets their replies, and returns the value of the whole.
- `pages`: a generator that yields requests of pages; the caller walks over their items.

`Sync` and `Async` are the two ways to send. A verb of a `Plain` object gives the request itself.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Awaitable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Callable, Generic, Optional, TypeVar, overload

T = TypeVar("T")
if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec

    P = ParamSpec("P")
else:
    P = TypeVar("P")


class Request(Generic[T]):
    """The words of one command, and what makes its reply a value.

    `done` is told how it went, with None or the exception: what traces posts hangs there.
    """

    __slots__ = ("words", "parse", "done")

    def __init__(
        self,
        words: list[Any],
        parse: Callable[[Any], T],
        done: Optional[Callable[[Optional[BaseException]], None]] = None,
    ) -> None:
        self.words, self.parse, self.done = words, parse, done


class Page(Generic[T]):
    """One page of a listing: where to go on (`0`: this was the last), and what is on it."""

    __slots__ = ("cursor", "items", "rest")

    def __init__(self, cursor: str, items: list[T], rest: Sequence[Any] = ()) -> None:
        self.cursor, self.items, self.rest = cursor, items, rest


Steps = Generator[Request[Any], Any, T]


def one(request: Request[T]) -> Steps[T]:
    """A single request as steps."""
    value: T = yield request
    return value


class Plain:
    """Gives requests instead of sending them."""


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


class _Verb:
    """What the three kinds share: a name and a docstring to look up."""

    def __init__(self, build: Callable[..., Any]) -> None:
        self.build = build
        functools.update_wrapper(self, build)  # type: ignore[arg-type]

    def named(self, function: Callable[..., Any]) -> Any:
        return functools.wraps(self.build)(function)


class command(_Verb, Generic[P, T]):
    """A verb of one command."""

    if TYPE_CHECKING:

        def __init__(self, build: Callable[Concatenate[Any, P], Request[T]]) -> None: ...

    @overload
    def __get__(self, board: None, owner: Any) -> command[P, T]: ...

    @overload
    def __get__(self, board: Plain, owner: Any) -> Callable[P, Request[T]]: ...

    @overload
    def __get__(self, board: Sync, owner: Any) -> Callable[P, T]: ...

    @overload
    def __get__(self, board: Async, owner: Any) -> Callable[P, Awaitable[T]]: ...

    def __get__(self, board: Any, owner: Any) -> Any:
        if board is None:
            return self
        if isinstance(board, Plain):
            return self.build.__get__(board)
        build, send = self.build, board.send

        def call(*words: Any, **options: Any) -> Any:
            return send(build(board, *words, **options))

        return self.named(call)


class steps(_Verb, Generic[P, T]):
    """A verb of several commands, one after the other."""

    if TYPE_CHECKING:

        def __init__(self, build: Callable[Concatenate[Any, P], Steps[T]]) -> None: ...

    @overload
    def __get__(self, board: None, owner: Any) -> steps[P, T]: ...

    @overload
    def __get__(self, board: Plain, owner: Any) -> Callable[P, Steps[T]]: ...

    @overload
    def __get__(self, board: Sync, owner: Any) -> Callable[P, T]: ...

    @overload
    def __get__(self, board: Async, owner: Any) -> Callable[P, Awaitable[T]]: ...

    def __get__(self, board: Any, owner: Any) -> Any:
        if board is None:
            return self
        if isinstance(board, Plain):
            return self.build.__get__(board)
        run = _run_async if isinstance(board, Async) else _run_sync

        def call(*words: Any, **options: Any) -> Any:
            return run(board, self.build(board, *words, **options))

        return self.named(call)


class pages(_Verb, Generic[P, T]):
    """A verb that walks over all pages of a listing, fetching each when it is needed."""

    if TYPE_CHECKING:

        def __init__(
            self, build: Callable[Concatenate[Any, P], Generator[Request[Page[T]], Page[T], None]]
        ) -> None: ...

    @overload
    def __get__(self, board: None, owner: Any) -> pages[P, T]: ...

    @overload
    def __get__(self, board: Plain, owner: Any) -> Callable[P, Steps[None]]: ...

    @overload
    def __get__(self, board: Sync, owner: Any) -> Callable[P, Iterator[T]]: ...

    @overload
    def __get__(self, board: Async, owner: Any) -> Callable[P, AsyncIterator[T]]: ...

    def __get__(self, board: Any, owner: Any) -> Any:
        if board is None:
            return self
        if isinstance(board, Plain):
            return self.build.__get__(board)
        walk = _walk_async if isinstance(board, Async) else _walk_sync

        def call(*words: Any, **options: Any) -> Any:
            return walk(board, self.build(board, *words, **options))

        return self.named(call)


def _run_sync(board: Sync, found: Steps[T]) -> T:
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


async def _run_async(board: Async, found: Steps[T]) -> T:
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


def _walk_sync(board: Sync, found: Generator[Request[Page[T]], Page[T], None]) -> Iterator[T]:
    request = next(found, None)
    while request is not None:
        page = board.send(request)
        yield from page.items
        request = _after(found, page)


async def _walk_async(board: Async, found: Generator[Request[Page[T]], Page[T], None]) -> AsyncIterator[T]:
    request = next(found, None)
    while request is not None:
        page = await board.send(request)
        for item in page.items:
            yield item
        request = _after(found, page)


def _after(found: Generator[Request[Page[T]], Page[T], None], page: Page[T]) -> Optional[Request[Page[T]]]:
    try:
        return found.send(page)
    except StopIteration:
        return None
