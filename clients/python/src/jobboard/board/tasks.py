"""Tasks: functions that are posted by their arguments, with options that stand beside them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NoReturn, ParamSpec, TypeVar, overload

from ..arguments import Name
from ..handlers import DEFAULT_QUEUE
from ..other_words import hint_of
from ..outcomes import Next
from ..signatures import ArgumentError
from ..values import convert
from .administering import Administering
from .context import CURRENT
from .definition import KNOWN, CallOptions, Definition, check_known, check_values, over
from .posting import Node, Posting
from .sending import Async, Request, Steps, Sync, steps
from .sharding import composed

if TYPE_CHECKING:
    from typing import Literal

    from typing_extensions import Unpack

    from ..durations import Duration
    from ..times import Time
    from .administering import Backlog

P = ParamSpec("P")
R = TypeVar("R", covariant=True)
T = TypeVar("T")

ELSEWHERE = {
    **dict.fromkeys(["delay", "enqueue", "send", "defer"], "write {task}.post(…)"),
    **dict.fromkeys(
        ["apply_async", "apply", "configure", "send_with_options", "enqueue_in", "enqueue_at"],
        "write {task}.using(delay='10s', queue='mails').post(…)",
    ),
    **dict.fromkeys(["s", "si", "signature", "message"], "write {task}.job(…), and board.flow(chain(…))"),
}
"""What people who come from another library try, with what they want."""

OF_A_SCHEDULE = "cron arguments id every tz start end max backlog overlap spread".split()


def check_request(task: Any, request: Any) -> None:
    """Raises TypeError for the arguments of a call: elsewhere that is how a task is posted."""
    if not isinstance(request, Request):
        raise TypeError(f"{task.name}: {ELSEWHERE['send'].format(task=task.__name__)} to post it")


class TaskVerbs(Generic[P, R]):
    """A function that is done by workers: `mail.post(to="ann")`.

    Its arguments are those of the function, checked at the post. Called as a function it is just that.
    """

    def __init__(self, board: Any, definition: Definition, options: Mapping[str, Any]) -> None:
        self.board, self.definition, self.options = board, definition, options
        functools.update_wrapper(self, definition.function)

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def function(self) -> Callable[..., Any]:
        return self.definition.function

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs the function here and now. One that takes a context gets that of the job that runs."""
        given: tuple[Any, ...] = ()
        if self.definition.signature.takes_given:
            given = (CURRENT.get(),)
            if given[0] is None:
                raise RuntimeError(
                    f"{self.name} takes a context, and no job runs: call {self.name}.function(context, …)"
                )
        value: R = self.function(*given, *args, **kwargs)
        return value

    def job(self, /, *args: P.args, **kwargs: P.kwargs) -> Node:
        """The same call as a job of a flow: see `chain`, `group` and `Board.flow`."""
        self._refuse_nx("a flow")
        arguments = self._arguments("job", args, kwargs)
        return Node(None, arguments, **self._options(arguments))

    def next(self, /, *args: P.args, **kwargs: P.kwargs) -> Next:
        """The value that another task returns to hand its job to this task, under the same id."""
        arguments = self._arguments("next", args, kwargs)
        queue, options = self.options.get("queue"), self.options
        times = {
            name: options[name] for name in ("delay", "priority", "after") if options.get(name) is not None
        }
        return Next(DEFAULT_QUEUE if queue is None else queue, arguments, name=self.name, **times)

    @steps(composed)
    def post(self, /, *args: P.args, **kwargs: P.kwargs) -> Steps[str]:
        """Posts a job that calls the function with these arguments, and returns its id.

        Raises `ArgumentError`, a TypeError, when the function cannot be called so; else as `Board.post` does.
        """
        arguments = self._arguments("post", args, kwargs)
        id: Any = yield from Posting.post.of(self.board, arguments, **self._options(arguments))
        found: str = id
        return found

    @steps(composed)
    def post_many(
        self,
        /,
        calls: Iterable[Mapping[str, Any]],
        *,
        ids: Sequence[Name] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Steps[list[str]]:
        """Posts a job for each of many calls, 1,000 in a command, and returns their ids in order. All are
        checked before the first is posted.

            mail.post_many({"to": one} for one in people)
        """
        unique = self.options.get("unique")
        if unique is not False and not isinstance(unique, str | bytes | None):
            raise ValueError(
                f"{self.name}: jobs posted together have no keys of their own: using(unique=None)"
            )
        arguments = [self.definition.signature.arguments((), self._call(one)) for one in calls]
        options = self._options({})
        found: Any = yield from Posting.post_many.of(
            self.board, arguments, ids=ids, progress=progress, **options
        )
        return list(found)

    @steps(composed)
    def schedule(
        self,
        /,
        cron: str | None = None,
        *,
        arguments: Mapping[str, Any] | None = None,
        id: Name | None = None,
        every: Duration | None = None,
        tz: str | None = None,
        start: Time | None = None,
        end: Time | None = None,
        max: int | None = None,
        backlog: Backlog | None = None,
        overlap: Literal["allow", "skip", "replace"] | None = None,
        spread: Duration | None = None,
        **unknown: NoReturn,
    ) -> Steps[None]:
        """Lets the server post it again and again, by a cron expression or `every` so long.

        `id` is that of the schedule, the task's name by default: the same one changes it. `arguments` are
        those of each call, the others those of `Board.schedule_set`.
        """
        self._refuse_nx("a schedule")
        for name in unknown:
            if name in self.definition.signature.parameters or self.definition.signature.more:
                raise TypeError(f"{self.name}: arguments of the calls stand in arguments={{{name!r}: …}}")
            hint = f": write {self.__name__}.using({name}=…).schedule(…)" if name in KNOWN else ""
            hint = hint or f"; {hint_of(name, OF_A_SCHEDULE)}"
            raise TypeError(f"{self.name}: a schedule has no option {name!r}{hint}")
        if arguments is not None and not isinstance(arguments, Mapping):
            first = next(iter(self.definition.signature.parameters), "name")
            raise TypeError(f"arguments is a dict, such as {{{first!r}: …}}, not {arguments!r:.100}")
        given = self.definition.signature.arguments((), arguments or {})
        times = {"every": every, "cron": cron, "tz": tz, "start": start, "end": end, "max": max}
        rules = {"backlog": backlog, "overlap": overlap, "spread": spread}
        own: Any = {**times, **rules, **self._options(given)}
        yield from Administering.schedule_set.of(self.board, id or self.name, given, **own)

    def _arguments(self, verb: str, args: Sequence[Any], given: Mapping[str, Any]) -> dict[str, Any]:
        """The payload of a call. An option among its arguments is told where it stands."""
        signature = self.definition.signature
        if signature.more is None and (options := (given.keys() - signature.parameters.keys()) & KNOWN):
            option = min(options)
            raise ArgumentError(
                f"{self.name}: {option!r} is an option, and no argument of {signature}: write "
                f"{self.__name__}.using({option}=…).{verb}(…)"
            )
        return signature.arguments(args, given)

    def _call(self, one: Any) -> Mapping[str, Any]:
        if not isinstance(one, Mapping):
            first = next(iter(self.definition.signature.parameters), "name")
            raise TypeError(
                f"{self.name}: each call is a dict of arguments, such as {{{first!r}: …}}, not {one!r:.100}"
            )
        return one

    def __getattr__(self, name: str) -> Any:
        if name in ELSEWHERE:
            raise AttributeError(f"a task has no {name!r}: {ELSEWHERE[name].format(task=self.__name__)}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _refuse_nx(self, what: str) -> None:
        if self.options.get("nx"):
            raise TypeError(f"{self.name}: nx is of post and post_many; {what} has no such option")

    def _options(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The options of a post of these arguments."""
        return {
            "name": self.name,
            "elsewhere": True,
            **self.definition.with_key(self.options, arguments),
        }

    def _using(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Its options with those of a call over them."""
        check_known(options)
        check_values(options)
        return {**over(self.options, options), **options}

    @overload
    def on(self, board: Async) -> AsyncTask[P, R]: ...

    @overload
    def on(self, board: Sync) -> Task[P, R]: ...

    def on(self, board: Any) -> Any:
        """The same task on another board: of another name, or of `asyncio`."""
        return made(board, self.definition, self.options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}{self.definition.signature})"


class Task(TaskVerbs[P, R], Sync):
    """A task of a `Board` or a `ShardedBoard`."""

    def send(self, request: Request[T]) -> T:
        check_request(self, request)
        value: T = self.board.send(request)
        return value

    @overload
    def using(self, *, nx: bool, **options: Unpack[CallOptions]) -> TaskIfNew[P, R]: ...

    @overload
    def using(self, **options: Unpack[CallOptions]) -> Task[P, R]: ...

    def using(self, **options: Any) -> Any:
        """The same task with other options: `mail.using(delay="1h").post(to="ann")`."""
        return made(self.board, self.definition, self._using(options))

    @overload
    def result(self: Task[P, Coroutine[Any, Any, T]], id: Name, *, timeout: Duration | None = None) -> T: ...

    @overload
    def result(self, id: Name, *, timeout: Duration | None = None) -> R: ...

    def result(self, id: Name, *, timeout: Duration | None = None) -> Any:
        """Waits for a job and returns what the function did, of the type of its annotation. See
        `Board.result`.
        """
        return convert(self.board.result(id, timeout=timeout), self.definition.signature.result)


class AsyncTask(TaskVerbs[P, R], Async):
    """A task of an `AsyncBoard` or an `AsyncShardedBoard`: `await mail.post(to="ann")`."""

    async def send(self, request: Request[T]) -> T:
        check_request(self, request)
        value: T = await self.board.send(request)
        return value

    @overload
    def using(self, *, nx: bool, **options: Unpack[CallOptions]) -> AsyncTaskIfNew[P, R]: ...

    @overload
    def using(self, **options: Unpack[CallOptions]) -> AsyncTask[P, R]: ...

    def using(self, **options: Any) -> Any:
        """The same task with other options: `await mail.using(delay="1h").post(to="ann")`."""
        return made(self.board, self.definition, self._using(options))

    @overload
    async def result(
        self: AsyncTask[P, Coroutine[Any, Any, T]], id: Name, *, timeout: Duration | None = None
    ) -> T: ...

    @overload
    async def result(self, id: Name, *, timeout: Duration | None = None) -> R: ...

    async def result(self, id: Name, *, timeout: Duration | None = None) -> Any:
        """Waits for a job and returns what the function did, of the type of its annotation. See
        `Board.result`.
        """
        return convert(await self.board.result(id, timeout=timeout), self.definition.signature.result)


class IfNew(TaskVerbs[P, R]):
    """A task with `nx`: it posts nothing under an id that the board knows already."""

    if TYPE_CHECKING:

        @steps(composed)
        def post(self, /, *args: P.args, **kwargs: P.kwargs) -> Steps[str | None]:
            """As that of any task. None: the board knows the id, and nothing was posted."""
            raise NotImplementedError

        @steps(composed)
        def post_many(
            self,
            /,
            calls: Iterable[Mapping[str, Any]],
            *,
            ids: Sequence[Name] | None = None,
            progress: Callable[[int], None] | None = None,
        ) -> Steps[list[str | None]]:
            """As that of any task, with None for each id that the board knows."""
            raise NotImplementedError


class TaskIfNew(IfNew[P, R], Task[P, R]):
    """`mail.using(nx=True)`: its `post` returns None when the id is taken."""


class AsyncTaskIfNew(IfNew[P, R], AsyncTask[P, R]):
    """The same of `asyncio`."""


def made(board: Any, definition: Definition, options: Mapping[str, Any]) -> Any:
    """A task of the kind that board and options ask for."""
    kinds: Any = (AsyncTask, AsyncTaskIfNew) if isinstance(board, Async) else (Task, TaskIfNew)
    return kinds[bool(options.get("nx"))](board, definition, options)
