"""Where tracing hangs: around posts and around runs of handlers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .context import Context

Done = Callable[[BaseException | None, Any], None]
"""Is told how a post went: the exception or None, and what the post returns, an id or several."""


class Hook:
    """What a board calls around its work. This one does nothing; `jobboard.otel.Tracing` makes spans,
    `jobboard.sentry.Reporting` reports what handlers raise.

    A hook that is to work in child processes must be picklable.
    """

    def posting(self, board: str, name: Any, count: int) -> tuple[Mapping[str, str], Done | None]:
        """Before a post: fields to put into the jobs' META, and what to call when it was answered."""
        return {}, None

    def running(self, context: Context) -> AbstractContextManager[Any]:
        """Around a run of a handler, in its thread or task. It sees the handler's exceptions."""
        return nullcontext()


class Hooks(Hook):
    """Several hooks as one, the first outermost: `Board(…, hook=Hooks(Tracing(), Reporting()))`."""

    def __init__(self, *hooks: Hook) -> None:
        self.hooks = hooks

    def posting(self, board: str, name: Any, count: int) -> tuple[Mapping[str, str], Done | None]:
        meta: dict[str, str] = {}
        told: list[Done] = []
        for hook in self.hooks:
            fields, done = hook.posting(board, name, count)
            meta.update(fields)
            told += [done] if done else []

        def all_done(error: BaseException | None, posted: Any) -> None:
            with ExitStack() as stack:  # calls every hook, also when one of them raises
                for done in told:
                    stack.callback(done, error, posted)

        return meta, all_done if told else None

    @contextmanager
    def running(self, context: Context) -> Iterator[None]:
        with ExitStack() as stack:
            for hook in self.hooks:
                stack.enter_context(hook.running(context))
            yield


NO_HOOK = Hook()
