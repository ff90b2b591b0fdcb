"""Which function does which jobs."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, Callable, Optional, TypeVar

T = TypeVar("T")


class Handler:
    """A function that does jobs: `function(context, payload)`, plain or `async`.

    What it returns is the job's result, unless it is None. Exceptions of the classes `noretry` end the job
    at once as failed; others are followed by another try while the job has retries left.
    """

    def __init__(self, function: Callable[..., Any], noretry: tuple[type[BaseException], ...] = ()) -> None:
        self.function, self.noretry = function, noretry
        self.is_async = inspect.iscoroutinefunction(function)


class NoHandler(LookupError):
    """There is no handler for a job. A worker gives the job back at no cost: another one may have it."""


Key = tuple[Optional[str], Optional[str]]
"""A name and a queue; None is any."""


class Handlers:
    """Handlers by job name, by queue, or by both.

        handlers = Handlers()

        @handlers.handler("resize")
        def resize(context, payload): ...

        @handlers.handler(queue="publish")
        def publish(context, payload): ...

    A board has its own (`board.handler`); several boards may share one.
    """

    def __init__(self) -> None:
        self._handlers: dict[Key, Handler] = {}

    def handler(
        self,
        name: Optional[str] = None,
        *,
        queue: Optional[str] = None,
        noretry: tuple[type[BaseException], ...] = (),
    ) -> Callable[[T], T]:
        """Decorates the function that does jobs of this name, in this queue, or of this name in this queue;
        without both, all that no other does. One of the job's queue goes before one of its name alone.
        """
        if callable(name):
            raise TypeError("a handler is decorated with @board.handler('name') or @board.handler()")

        def decorate(function: T) -> T:
            if (name, queue) in self._handlers:
                raise ValueError(f"there is a handler of name={name!r}, queue={queue!r} already")
            self._handlers[name, queue] = Handler(function, noretry)  # type: ignore[arg-type]
            return function

        return decorate

    def include(self, others: Handlers) -> None:
        """Adds the handlers of another module. Raises ValueError when both have one of the same name and
        queue.
        """
        for name, queue in self._handlers:
            if (name, queue) in others._handlers:
                raise ValueError(f"there is a handler of name={name!r}, queue={queue!r} already")
        self._handlers.update(others._handlers)

    def find(self, name: Optional[str], queue: str) -> Handler:
        """The handler of a job; raises `NoHandler`."""
        for key in ((name, queue), (None, queue), (name, None), (None, None)):
            if key in self._handlers:
                return self._handlers[key]
        shown = "jobs without a name" if name is None else f"the name {name!r}"
        raise NoHandler(f"no handler of {shown} in the queue {queue!r}")

    def __iter__(self) -> Iterator[Key]:
        return iter(self._handlers)

    def __len__(self) -> int:
        return len(self._handlers)
