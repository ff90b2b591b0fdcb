"""How functions become tasks of a board: `@board.task(…)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, overload

from ..arguments import check_name
from ..handlers import exceptions
from .context import Context
from .definition import OF_ONE_JOB, Definition, TaskOptions, check_known, check_values
from .tasks import AsyncTask, Task

if TYPE_CHECKING:
    from typing_extensions import Unpack

P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class Decorator:
    """Makes a function a task of a board."""

    def __init__(self, board: Any, name: str | None, options: Mapping[str, Any]) -> None:
        if name is not None and not isinstance(name, str):
            raise TypeError(
                "a task is decorated with @board.task('name'), or @board.task() to be named as it is"
            )
        if name is not None:
            check_name(name, "name")
        self.board, self.name, self.options = board, name, options

    def register(self, function: Any) -> Definition:
        options = dict(self.options)
        noretry = exceptions(options.pop("noretry", ()))
        check_known(options)
        if single := options.keys() & OF_ONE_JOB:
            raise TypeError(f"{single.pop()!r} is of one job, not of a task: give it to `using` at the call")
        check_values(options)
        found = Definition(self.name or function.__name__, function, options, noretry)
        self.board.handlers.add(found.name, None, found.handler)
        return found


class SyncDecorator(Decorator):
    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], R]) -> Task[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, R]) -> Task[P, R]: ...

    def __call__(self, function: Any) -> Any:
        found = self.register(function)
        return Task(self.board, found, found.options)


class AsyncDecorator(Decorator):
    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], R]) -> AsyncTask[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, R]) -> AsyncTask[P, R]: ...

    def __call__(self, function: Any) -> Any:
        found = self.register(function)
        return AsyncTask(self.board, found, found.options)


class DecoratorOptions(TaskOptions, total=False):
    """What a task can be made with: its options, and the exceptions after which a job is not tried again."""

    noretry: tuple[type[BaseException], ...]


class Tasks:
    """A board whose functions are tasks."""

    def task(self, name: str | None = None, **options: Unpack[DecoratorOptions]) -> SyncDecorator:
        """Makes a function a task, which is posted by its arguments.

            @board.task("mail", retries=3, backoff=("10s", "1h"), timeout="5m", queue="mails")
            def mail(to: str, subject: str = "Hello") -> None: ...

            mail.post(to="ann")

        Without a name it has that of the function. The options are those of a post, but for what only one
        job can have; `unique` may be True or names of arguments. `noretry`: exceptions after which a job has
        failed for good. A first parameter of the type `Context` is given the job's context.
        """
        return SyncDecorator(self, name, options)


class AsyncTasks:
    """The same of `asyncio`."""

    def task(self, name: str | None = None, **options: Unpack[DecoratorOptions]) -> AsyncDecorator:
        """Makes a function a task, which is posted by its arguments: see `Board.task`."""
        return AsyncDecorator(self, name, options)
