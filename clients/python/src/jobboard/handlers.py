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
    """No handler has the job's name. The try fails with the kind `NoHandler`: another worker may know it."""


class Handlers:
    """Handlers by job name.

        handlers = Handlers()

        @handlers.handler("resize")
        def resize(context, payload): ...

    A board has its own (`board.handler`); several boards may share one.
    """

    def __init__(self) -> None:
        self._named: dict[Optional[str], Handler] = {}

    def handler(
        self, name: Optional[str] = None, *, noretry: tuple[type[BaseException], ...] = ()
    ) -> Callable[[T], T]:
        """Decorates the function that does jobs of this name; without a name, all that no other does."""

        def decorate(function: T) -> T:
            if name in self._named:
                raise ValueError(f"there is a handler of {name!r} already")
            self._named[name] = Handler(function, noretry)  # type: ignore[arg-type]
            return function

        return decorate

    def include(self, others: Handlers) -> None:
        """Adds the handlers of another module. Raises ValueError when both have one of the same name."""
        twice = set(self._named) & set(others._named)
        if twice:
            raise ValueError(f"there are handlers of {twice} already")
        self._named.update(others._named)

    def find(self, name: Optional[str]) -> Handler:
        """The handler of a name; raises `NoHandler`."""
        found = self._named.get(name) or self._named.get(None)
        if found is None:
            raise NoHandler(f"no handler for {name!r}" if name else "no handler for jobs without a name")
        return found

    def __iter__(self) -> Iterator[Optional[str]]:
        return iter(self._named)

    def __len__(self) -> int:
        return len(self._named)
