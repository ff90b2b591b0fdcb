"""Tracebacks that a log and a history can hold: the messages in them are as short as those of lines."""

from __future__ import annotations

import builtins
import traceback
from typing import Any

from ..outcomes import said, shortened

SHOWN_TEXT = 1000
"""Bytes of a failure's message that go into a line and into its traceback; the job's record has all of it."""
DEEPEST = 20
"""Exceptions that are shortened where each is the cause of another."""
GROUPS: Any = getattr(builtins, "BaseExceptionGroup", ())
"""Python 3.10 has none."""


class RemoteTraceback(Exception):
    """The text of a traceback in another process, as the cause of an exception here."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def shown(error: BaseException, depth: int = 0) -> BaseException:
    """The exception, or one that looks like it in a traceback, with shortened messages."""
    if depth == DEEPEST or isinstance(error, (RemoteTraceback, GROUPS)):
        return error
    causes = (error.__cause__, error.__context__)
    shorter = tuple(one and shown(one, depth + 1) for one in causes)
    message = said(error)
    text = shortened(message, SHOWN_TEXT).decode()
    if text == message and all(one is other for one, other in zip(causes, shorter, strict=True)):
        return error
    kind = type(error)
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    stand_in: BaseException = type(kind.__name__, (Exception,), {**names, "__str__": lambda _: text})()
    stand_in.__cause__, stand_in.__context__ = shorter
    stand_in.__suppress_context__ = error.__suppress_context__
    return stand_in.with_traceback(error.__traceback__)


def trace_of(error: BaseException) -> str:
    """Its traceback as text."""
    return "".join(traceback.format_exception(shown(error)))
