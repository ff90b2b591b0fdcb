"""Calls a handler, and says what its return or its exception means."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from ..board.context import CURRENT, Context
from ..board.hooks import Hook
from ..board.sharded import ShardedVerbs
from ..codecs import PayloadError
from ..handlers import Handler, Handlers, NoHandler
from ..outcomes import (
    CANCELLED,
    Abandon,
    CancelRequested,
    Complete,
    Fail,
    GiveBack,
    GivenUp,
    GoHome,
    Lost,
    Next,
    NoRetry,
    Nothing,
    Outcome,
    PutAside,
    RateLimited,
    Retry,
    Trash,
    Unhandled,
    Waits,
    said,
    unsent,
)
from ..replies import text
from ..signatures import ArgumentError
from .traces import trace_of

TRACE = 3500
"""Characters of a traceback that go into the job's history: its end."""

OWN = f"{Path(__file__).parents[1]}{os.sep}"
"""The folder of the package."""

NO_HANDLER = Handler(lambda context, payload: None)


def handlers_own(trace: TracebackType | None) -> TracebackType | None:
    """A traceback that begins in the handler, without the frames of the package which have called it. One
    that has no others stays as it is.
    """
    found = trace
    while found is not None and found.tb_frame.f_code.co_filename.startswith(OWN):
        found = found.tb_next
    return trace if found is None else found


class SameHandler(ValueError):
    """A `Next` would lead to the handler that returned it, under the job's own name, for ever."""


class Performer:
    """Runs the handlers of a board for jobs of `queues`, all when that is empty. `tracebacks`: those of
    failures go into the job's history.
    """

    def __init__(
        self, handlers: Handlers, hook: Hook, tracebacks: bool = True, queues: Collection[str] = ()
    ) -> None:
        self.handlers, self.hook, self.tracebacks, self.queues = handlers, hook, tracebacks, queues

    def handler(self, context: Context) -> Handler:
        """The handler of a job. One without tells `perform` so."""
        try:
            return self.handlers.find(context.job.name, context.job.queue)
        except NoHandler:
            return NO_HANDLER

    def perform(self, handler: Handler, context: Context) -> Outcome:
        """Runs a plain handler."""
        try:
            CURRENT.set(context)
            context._confirm(patient=True)
            payload = self._payload(handler, context)
            with self._seen_by_hook(context):
                value = handler.function(context, payload)
            return self._completed(value, handler, context)
        except BaseException as error:
            return self.failed(error, handler, context)
        finally:
            CURRENT.set(None)

    async def perform_async(self, handler: Handler, context: Context) -> Outcome:
        """Runs an `async` handler."""
        try:
            CURRENT.set(context)
            if context._is_late():
                await asyncio.to_thread(context._confirm, True)
            payload = self._payload(handler, context)
            with self._seen_by_hook(context):
                value = await handler.function(context, payload)
            return self._completed(value, handler, context)
        except BaseException as error:
            return self.failed(error, handler, context)

    @contextlib.contextmanager
    def _seen_by_hook(self, context: Context) -> Iterator[None]:
        """The hook sees what a handler raises. What it swallows is raised all the same."""
        raised: BaseException | None = None
        try:
            with self.hook.running(context):
                try:
                    yield
                except BaseException as error:
                    raised = error
                    raise
            if raised is not None:
                raise raised
        finally:
            raised = None  # its traceback leads here

    def _payload(self, handler: Handler, context: Context) -> Any:
        context.check()
        if handler is NO_HANDLER:
            self.handlers.find(context.job.name, context.job.queue)
        return context.payload

    def failed(self, error: BaseException, handler: Handler, context: Context) -> Outcome:
        """What an exception of a handler means. Raises nothing: the run has to end."""
        try:
            return self._failed(error, handler, context)
        except Exception as fault:
            return unsent(fault)

    def _failed(self, error: BaseException, handler: Handler, context: Context) -> Outcome:
        if isinstance(error, asyncio.CancelledError) and context._stop is not None:
            error = context._stop
        if isinstance(error, Waits):
            return GivenUp(str(error))
        if isinstance(error, Lost):
            return Nothing()
        if isinstance(error, CancelRequested):
            return GiveBack(CANCELLED)
        if isinstance(error, GoHome):
            return GiveBack("the worker stops")
        if isinstance(error, NoHandler):
            return Unhandled(str(error))
        if isinstance(error, Abandon):
            return GiveBack(error.reason, error.delay)
        if isinstance(error, RateLimited):
            reason = error.reason or f"the limit {text(error.limit)} rests"
            return GiveBack(reason, pause=(error.limit, error.for_))
        if isinstance(error, Trash):
            return PutAside(error.reason)
        if isinstance(error, Retry | NoRetry):
            delay = error.delay if isinstance(error, Retry) else None
            found = Fail(error.kind, error.message, delay, noretry=isinstance(error, NoRetry))
            has_trace = error.__cause__ is not None or error.__context__ is not None
        else:
            noretry = isinstance(error, (*handler.noretry, PayloadError, SameHandler))
            found = Fail(type(error).__name__, said(error), noretry=noretry)
            has_trace = not isinstance(error, PayloadError | SameHandler | ArgumentError)
        if has_trace:
            error.__traceback__ = handlers_own(error.__traceback__)
            found.error = error
        if has_trace and self.tracebacks:
            context._reports.report(context, {"log": trace_of(error)[-TRACE:]})
        return found

    def _completed(self, value: Any, handler: Handler, context: Context) -> Outcome:
        if isinstance(value, Next):
            self._check_next(value, handler, context)
        if isinstance(value, (Complete, Next)):
            return value.encode(context.job._codec)
        if isinstance(value, Outcome):
            raise TypeError(f"a handler returns a result, Complete or Next, not {type(value).__name__}")
        return Complete(value).encode(context.job._codec)

    def _check_next(self, value: Next, handler: Handler, context: Context) -> None:
        if value.after and isinstance(context._board, ShardedVerbs):
            context._board.check_near(context.id, value.after)
        queue, own = text(value.queue), context.job.name
        if (self.queues and queue not in self.queues) or (value.name is not None and text(value.name) != own):
            return
        with contextlib.suppress(NoHandler):
            if self.handlers.find(own, queue) is handler:
                raise SameHandler(
                    f"Next({queue!r}) would lead to this handler again: name the next step, "
                    f"Next({queue!r}, name=…), or give the queue a handler of its own"
                    if value.name is None
                    else f"the next step, {own!r} in the queue {queue!r}, would lead to this handler again: "
                    "name another one, or go on later with context.save(payload) and raise Abandon(delay=…)"
                )
