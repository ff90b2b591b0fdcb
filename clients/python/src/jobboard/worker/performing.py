"""Calls a handler, and says what its return or its exception means."""

from __future__ import annotations

import asyncio
import logging
import traceback
from typing import Any

from ..codecs import PayloadError
from ..context import Context
from ..handlers import Handler, Handlers, NoHandler
from ..hooks import Hook
from ..outcomes import (
    Abandon,
    CancelRequested,
    Complete,
    Fail,
    GiveBack,
    GoHome,
    Lost,
    Next,
    NoRetry,
    Nothing,
    Outcome,
    PutAside,
    Retry,
    Trash,
)

log = logging.getLogger("jobboard.worker")
TRACE = 3500
"""Characters of a traceback that go into the job's history: its end."""

NO_HANDLER = Handler(lambda context, payload: None)


class Performer:
    """Runs the handlers of a board. `tracebacks`: those of failures go into the job's history."""

    def __init__(self, handlers: Handlers, hook: Hook, tracebacks: bool = True) -> None:
        self.handlers, self.hook, self.tracebacks = handlers, hook, tracebacks

    def handler(self, context: Context) -> Handler:
        """The handler of a job. One without tells `perform` so."""
        try:
            return self.handlers.find(context.job.name)
        except NoHandler:
            return NO_HANDLER

    def perform(self, handler: Handler, context: Context) -> Outcome:
        """Runs a plain handler."""
        try:
            payload = self._payload(handler, context)
            with self.hook.running(context):
                value = handler.function(context, payload)
            return _completed(value, context)
        except BaseException as error:
            return self.failed(error, handler, context)

    async def perform_async(self, handler: Handler, context: Context) -> Outcome:
        """Runs an `async` handler."""
        try:
            payload = self._payload(handler, context)
            with self.hook.running(context):
                value = await handler.function(context, payload)
            return _completed(value, context)
        except BaseException as error:
            return self.failed(error, handler, context)

    def _payload(self, handler: Handler, context: Context) -> Any:
        context.check()
        if handler is NO_HANDLER:
            self.handlers.find(context.job.name)
        return context.payload

    def failed(self, error: BaseException, handler: Handler, context: Context) -> Outcome:
        """What an exception of a handler means."""
        if isinstance(error, asyncio.CancelledError) and context._stop is not None:
            error = context._stop
        if isinstance(error, Lost):
            return Nothing()
        if isinstance(error, CancelRequested):
            return GiveBack("cancelled")
        if isinstance(error, GoHome):
            return GiveBack("the worker stops")
        if isinstance(error, Abandon):
            return GiveBack(error.reason, error.delay)
        if isinstance(error, Trash):
            return PutAside(error.reason)
        if isinstance(error, Retry):
            return Fail(error.kind, error.message, error.delay)
        if isinstance(error, NoRetry):
            return Fail(error.kind, error.message, noretry=True)
        noretry = isinstance(error, handler.noretry) or isinstance(error, PayloadError)
        log.warning("job %s failed: %s: %s", context.id, type(error).__name__, error)
        if self.tracebacks and not isinstance(error, (NoHandler, PayloadError)):
            trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
            context._reports.report(context, {"log": trace[-TRACE:]})
        return Fail(type(error).__name__, str(error), noretry=noretry)


def _completed(value: Any, context: Context) -> Outcome:
    if isinstance(value, (Complete, Next)):
        return value.encode(context.job._codec)
    if isinstance(value, Outcome):
        raise TypeError(f"a handler returns a result, Complete or Next, not {type(value).__name__}")
    return Complete(value).encode(context.job._codec)
