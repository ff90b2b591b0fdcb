"""Tasks: functions that are posted by their arguments, with options that stand beside them."""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Generic, NoReturn, ParamSpec, TypeVar, get_args, overload

from ..arguments import Name, check_name, check_names
from ..handlers import DEFAULT_QUEUE, Handler, exceptions
from ..outcomes import Next, Outcome
from ..replies import text
from ..signatures import ArgumentError, Signature
from ..values import convert
from .administering import Administering
from .context import CURRENT, Context
from .posting import OPTIONS, Node, Posting, SharedOptions, post_words
from .sending import Async, Request, Steps, Sync, steps
from .sharding import composed

if TYPE_CHECKING:
    from typing import Literal

    from typing_extensions import Unpack

    from ..durations import Duration
    from ..times import Time
    from .administering import Backlog
    from .posting import OnConflict

P = ParamSpec("P")
R = TypeVar("R", covariant=True)
T = TypeVar("T")

OF_ONE_JOB = {"id", "at", "after", "strict", "parent", "share", "together", "block", "nx"}
"""Options that a call can have, and a task cannot."""

KNOWN = OPTIONS.keys() - {"name", "xx"} | {"together"}


class TaskOptions(SharedOptions, total=False):
    """Options of a task, or of a call of it. `unique`: a key that one job at a time holds. True makes one of
    the task and all arguments, a list of arguments' names one of these.
    """

    unique: Name | bool | Sequence[str] | None
    onconflict: OnConflict | None


class CallOptions(TaskOptions, total=False):
    """Options of a call alone."""

    id: Name | None
    replace: bool | None
    together: str | None
    block: Duration | None


ELSEWHERE = {
    **dict.fromkeys(["delay", "enqueue", "send", "defer"], "write {task}.post(…)"),
    **dict.fromkeys(
        ["apply_async", "apply", "configure", "send_with_options", "enqueue_in", "enqueue_at"],
        "write {task}.using(delay='10s', queue='mails').post(…)",
    ),
    **dict.fromkeys(["s", "si", "signature", "message"], "write {task}.job(…), and board.flow(chain(…))"),
}
"""What people who come from another library try, with what they want."""


class Definition:
    """What a task is on whichever board: a name, a function, its signature and options."""

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        options: Mapping[str, Any],
        noretry: tuple[type[BaseException], ...],
    ) -> None:
        self.name, self.function, self.options, self.noretry = name, function, options, noretry
        self.signature = Signature(function, name, Context)
        returned = self.signature.result
        if any(
            isinstance(one, type) and issubclass(one, Outcome) for one in get_args(returned) or (returned,)
        ):
            self.signature.result = Any  # what the job comes to in the end
        names = options.get("unique")
        if isinstance(names, (list, tuple)) and (unknown := set(names) - self.signature.parameters.keys()):
            raise ValueError(
                f"{name}: unique names {unknown.pop()!r}, which is no argument of {self.signature}"
            )

    @property
    def handler(self) -> Handler:
        """What a worker calls."""
        perform = self._perform_async if inspect.iscoroutinefunction(self.function) else self._perform
        queue = text(self.options.get("queue") or DEFAULT_QUEUE)
        return Handler(perform, self.noretry, queue, self._check, self.options_besides)

    def options_besides(self, given: Mapping[str, Any], payloads: Sequence[Any]) -> dict[str, Any]:
        """Its options for a post that names it, without those that the post has itself. Only a single payload
        has a unique key that is made of arguments.
        """
        others = over(self.options, given)
        found = {name: value for name, value in others.items() if name not in given and name != "queue"}
        if isinstance(found.get("unique"), str | bytes | None):
            return found
        if len(payloads) != 1 and found["unique"] is not False:
            raise ValueError(
                f"{self.name}: jobs posted together have no keys of their own: write unique=None, "
                "or post them one by one"
            )
        return self.with_key(found, payloads[0] if payloads else {})

    def with_key(self, options: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The options with the unique key of these arguments, where it is made of them."""
        found, unique = dict(options), options.get("unique")
        if unique is False:
            found["unique"] = None
        elif unique is True or isinstance(unique, list | tuple):
            found["unique"] = self.signature.unique_key(arguments, None if unique is True else unique)
        return found

    def _check(self, payload: Any) -> None:
        self.signature.call(payload)

    def _perform(self, context: Context, payload: Any) -> Any:
        args, options = self.signature.call(payload)
        return self.function(*self._given(context), *args, **options)

    async def _perform_async(self, context: Context, payload: Any) -> Any:
        args, options = self.signature.call(payload)
        return await self.function(*self._given(context), *args, **options)

    def _given(self, context: Context) -> tuple[Context, ...]:
        return (context,) if self.signature.takes_given else ()

    def __reduce__(self) -> Any:
        """For child processes: where to import it."""
        module, path = self.function.__module__, self.function.__qualname__
        if module == "__main__" and not hasattr(sys.modules[module], "__file__"):
            raise TypeError(f"the task {self.name} is of a program that is no file")
        found = _imported(module, path)
        if found is not self:
            raise TypeError(f"the task {self.name} is not {path} of the module {module}")
        return (_imported, (module, path))


def check_request(task: Any, request: Any) -> None:
    """Raises TypeError for the arguments of a call: elsewhere that is how a task is posted."""
    if not isinstance(request, Request):
        raise TypeError(f"{task.name}: {ELSEWHERE['send'].format(task=task.__name__)} to post it")


def _imported(module: str, path: str) -> Any:
    found: Any = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name, None)
    return getattr(found, "definition", None)


def _check_values(options: Mapping[str, Any]) -> None:
    """Raises TypeError or ValueError for a value that a post would refuse."""
    post_words(
        {one: value for one, value in options.items() if one not in ("unique", "together", "elsewhere")}
    )
    unique, together = options.get("unique"), options.get("together")
    if unique is not None and not isinstance(unique, bool):
        if isinstance(unique, (str, bytes)):
            check_name(unique, "unique")
        else:
            check_names(unique, "unique")
    if together is not None:
        check_name(together, "together")


def over(options: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The options without those that cannot stand beside what was given."""
    return {name: value for name, value in options.items() if name != "delay" or "at" not in given}


def _check_known(options: Mapping[str, Any]) -> None:
    for unknown in options.keys() - KNOWN:
        near = difflib.get_close_matches(unknown, KNOWN, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(KNOWN))}"
        raise TypeError(f"a task has no option {unknown!r}; {hint}")


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
        if not isinstance(self.options.get("unique"), str | bytes | None):
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
        _check_known(options)
        _check_values(options)
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
        _check_known(options)
        if single := options.keys() & OF_ONE_JOB:
            raise TypeError(f"{single.pop()!r} is of one job, not of a task: give it to `using` at the call")
        _check_values(options)
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
