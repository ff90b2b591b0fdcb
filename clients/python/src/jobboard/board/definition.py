"""What a task is on whichever board: a function, its signature, its options and what they may be."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

from ..arguments import Name, check_name, check_names
from ..handlers import DEFAULT_QUEUE, Handler
from ..other_words import hint_of
from ..outcomes import Outcome
from ..replies import text
from ..signatures import Signature
from .context import Context
from .posting import OPTIONS, SharedOptions, post_words

if TYPE_CHECKING:
    from ..durations import Duration
    from .posting import OnConflict

OF_ONE_JOB = {"id", "at", "after", "strict", "parent", "share", "together", "block", "nx"}
"""Options that a call can have, and a task cannot."""

OF_A_KEY = {"onconflict", "until", "for_"}
"""Options that only a job with a unique key can have."""

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


def _imported(module: str, path: str) -> Any:
    found: Any = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name, None)
    return getattr(found, "definition", None)


def check_values(options: Mapping[str, Any]) -> None:
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
    dropped = {"delay"} if "at" in given else set()
    if given.get("unique", True) in (None, False):
        dropped |= OF_A_KEY
    return {name: value for name, value in options.items() if name not in dropped}


def check_known(options: Mapping[str, Any]) -> None:
    for unknown in options.keys() - KNOWN:
        raise TypeError(f"a task has no option {unknown!r}; {hint_of(unknown, KNOWN)}")
