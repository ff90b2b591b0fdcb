"""Where tracing hangs: around posts and around runs of handlers."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Callable, Optional

if TYPE_CHECKING:
    from .context import Context

Done = Callable[[Optional[BaseException]], None]


class Hook:
    """What a board calls around its work. This one does nothing; `jobboard.otel.Tracing` makes spans.

    A hook that is to work in child processes must be picklable.
    """

    def posting(self, board: str, name: Any, count: int) -> tuple[Mapping[str, str], Optional[Done]]:
        """Before a post: fields to put into the jobs' META, and what to call when it was answered."""
        return {}, None

    def running(self, context: Context) -> AbstractContextManager[Any]:
        """Around a run of a handler, in its thread or task. It sees the handler's exceptions."""
        return nullcontext()


NO_HOOK = Hook()
