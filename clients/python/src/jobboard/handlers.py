"""Which function does which jobs."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from .arguments import check_name

T = TypeVar("T")
DEFAULT_QUEUE = "default"


def exceptions(noretry: Any) -> tuple[type[BaseException], ...]:
    """Classes of exceptions, of which one may stand alone."""
    found = (noretry,) if isinstance(noretry, type) else noretry
    if isinstance(found, (tuple, list)) and all(
        isinstance(one, type) and issubclass(one, BaseException) for one in found
    ):
        return tuple(found)
    raise TypeError(f"noretry is a tuple of exceptions, such as noretry=(ValueError,), not {noretry!r:.100}")


class Handler:
    """A function that does jobs: `function(context, payload)`, plain or `async`.

    What it returns is the job's result, unless it is None. Exceptions of the classes `noretry` end the job
    at once as failed; others are followed by another try while the job has retries left.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        noretry: tuple[type[BaseException], ...] = (),
        queue: str = DEFAULT_QUEUE,
        check: Callable[[Any], object] | None = None,
        options: Callable[[Mapping[str, Any], Sequence[Any]], dict[str, Any]] | None = None,
    ) -> None:
        self.function, self.noretry = function, noretry
        self.check = check
        """Raises what is wrong with a payload, before it is posted."""
        self.options = options
        """What a post of these options and payloads gets besides, where it names the handler alone."""
        self.queue = queue
        """Where its jobs are posted, unless their post says otherwise."""
        self.is_async = inspect.iscoroutinefunction(function)


class NoHandler(LookupError):
    """There is no handler for a job. A worker gives the job back at no cost: another one may have it."""


Key = tuple[str | None, str | None]
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
        name: str | None = None,
        *,
        queue: str | None = None,
        noretry: tuple[type[BaseException], ...] = (),
    ) -> Callable[[T], T]:
        """Decorates the function that does jobs of this name, in this queue, or of this name in this queue;
        without both, all that no other does. One of the job's queue goes before one of its name alone.
        """
        if callable(name):
            raise TypeError("a handler is decorated with @board.handler('name') or @board.handler()")
        for what, value in (("name", name), ("queue", queue)):
            if value is not None:
                check_name(value, what)
        noretry = exceptions(noretry)

        def decorate(function: T) -> T:
            self.add(name, queue, Handler(function, noretry, queue or DEFAULT_QUEUE))  # type: ignore[arg-type]
            return function

        return decorate

    def add(self, name: str | None, queue: str | None, handler: Handler) -> None:
        if (name, queue) in self._handlers:
            raise ValueError(f"there is a handler of name={name!r}, queue={queue!r} already")
        self._handlers[name, queue] = handler

    def include(self, others: Handlers) -> None:
        """Adds the handlers of another module. Raises ValueError when both have one of the same name and
        queue.
        """
        for name, queue in self._handlers.keys() & others._handlers.keys():
            raise ValueError(f"there is a handler of name={name!r}, queue={queue!r} already")
        self._handlers.update(others._handlers)

    def find(self, name: str | None, queue: str) -> Handler:
        """The handler of a job; raises `NoHandler`."""
        for key in ((name, queue), (None, queue), (name, None), (None, None)):
            if key in self._handlers:
                return self._handlers[key]
        shown = "jobs without a name" if name is None else f"the name {name!r}"
        raise NoHandler(f"no handler of {shown} in the queue {queue!r}")

    def require(self, name: str | None, queue: str) -> Handler:
        """The handler that does jobs of this name. Raises `NoHandler`, which says what to write, when there
        is none.
        """
        try:
            return self.find(name, queue)
        except NoHandler:
            names = sorted({known for known, _ in self._handlers if known is not None})
            other = "When another program has it, post with elsewhere=True"
            if name is None:
                given = f"name={names[0]!r}" if len(names) == 1 else f"name=…, one of {_listed(names)}"
                say = f"say which task does it: {given}" if names else f"there are {self}"
                raise NoHandler(
                    f"no handler does jobs without a name in the queue {queue!r}; {say}. {other}"
                ) from None
            near = difflib.get_close_matches(name, names, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {_listed(names)}."
            raise NoHandler(f"no task has the name {name!r}; {hint} {other}") from None

    def queue_of(self, name: str) -> str:
        """Where the jobs of a name are posted."""
        handler = self._handlers.get((name, None))
        return DEFAULT_QUEUE if handler is None else handler.queue

    def queues(self) -> list[str]:
        """The queues in which its jobs are posted."""
        return sorted({handler.queue for handler in self._handlers.values()})

    def __str__(self) -> str:
        """Which jobs they do."""
        told = []
        for name, queue in sorted(
            self._handlers, key=lambda key: (key[0] is None, key[0] or "", key[1] or "")
        ):
            what = name or ("all others" if queue is None else "all")
            told.append(what if queue is None else f"{what} of the queue {queue}")
        return ", ".join(told)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._handlers)

    def __len__(self) -> int:
        return len(self._handlers)


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names))
