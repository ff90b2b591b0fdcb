"""What a handler is given beside the payload."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import math
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, ParamSpec, Protocol, TypedDict, TypeVar, overload

from ..arguments import MOST, check_whole, costs
from ..durations import Duration, to_ms
from ..jobs import Job, Signal
from ..outcomes import GoHome, Lost, Stopped, Waits
from .posting import Await, await_words, children_words

if TYPE_CHECKING:
    from typing_extensions import Unpack

P = ParamSpec("P")
T = TypeVar("T")

CURRENT: ContextVar[Context | None] = ContextVar("jobboard.context", default=None)
"""That of the handler which runs in this thread or task."""


PIECE = 4096
"""Longer chunks of output are sent in parts, so that the board's `output-bytes` allows each."""


class EndlessOptions(TypedDict, total=False):
    """How a handler waits for signals, however long it takes."""

    any: bool
    step: str | None


class WaitOptions(EndlessOptions, total=False):
    """How a handler waits for signals: see `Context.wait_for`."""

    within: Duration | None
    ontimeout: Literal["run", "fail", "cancel"] | None


Names = list[str] | tuple[str, ...]
"""Several signals."""


class Children(NamedTuple):
    """The children of a job: how many there are, how many have not ended, and how many failed, were cancelled
    or were trashed. `pending` is 0 unless an operator has let the job run without them.
    """

    total: int
    pending: int
    unsuccessful: int


class Reports(Protocol):
    """Where a context's reports go: to the worker's sender, or through a pipe to it."""

    def report(self, context: Context, fields: Mapping[str, Any]) -> None: ...

    def flush(self, context: Context, timeout: float | None) -> bool: ...

    def store(self, context: Context, name: str, data: bytes, replace: bool) -> bytes | None: ...

    def wait(self, context: Context, words: list[Any]) -> dict[bytes, Any]: ...

    def confirm(self, context: Context, patient: bool) -> None:
        """Asks whether the job is still ours. `patient`: for as long as the server is away."""


class Context:
    """One run of a job: what is known of it, and what the handler says while it works.

    Reports (`progress`, `stage`, `log`, `set_meta`, `output`, `save`) return at once; the worker sends them
    in the order in which they were made, and before the end of the run. Of what comes faster than it can be
    sent, the newest progress and stage count; log lines are all sent. `flush` waits until the server has
    answered.

    When the job is lost, cancelled, or the worker has to go, each of these methods raises `Lost`,
    `CancelRequested` or `GoHome`, unless the worker was made with `interrupt="flag"`.
    """

    def __init__(
        self,
        job: Job,
        worker: str,
        board: Any,
        reports: Reports,
        raises: bool = True,
    ) -> None:
        self.job, self.worker = job, worker
        self._board, self._reports, self._raises = board, reports, raises
        self._stop: Stopped | None = None
        self._ours_until = math.inf
        """Until when the job is ours by the last answer of the server, by the monotonic clock."""
        self._wake = threading.Event()
        self._used: set[str] = set()
        """The names of the steps of this run."""
        self.going_home = False
        """The worker is about to stop: the handler may finish, or raise `Abandon`."""
        self.cancelled = False
        """Somebody asked to cancel the job."""
        self.lost = False
        """The job is no longer ours."""

    @property
    def id(self) -> str:
        return self.job.id

    @property
    def token(self) -> int:
        """The fencing token: pass it on to what the handler writes to, so that it can refuse late writes."""
        return self.job.token

    @property
    def attempt(self) -> int:
        """1 at the first try."""
        return self.job.attempt

    @property
    def payload(self) -> Any:
        return self.job.payload

    @property
    def meta(self) -> Mapping[str, str]:
        return self.job.meta or {}

    @property
    def board(self) -> Any:
        """The worker's board, to post more jobs, for instance. Verbs of a `Board` block: for `async` handlers
        give the worker an `AsyncBoard`.
        """
        if self._board is None:
            raise RuntimeError(
                "the board's client cannot be made anew in a child process: name the board as 'module:board'"
            )
        return self._board

    def progress(self, percent: float, stage: str | None = None) -> None:
        """Says how far the job is, 0 to 100; a lower number than before is ignored."""
        found = {"progress": min(max(float(percent), 0.0), 100.0)}
        self._report(found if stage is None else {**found, "stage": str(stage)})

    def stage(self, text: str) -> None:
        """Says in words how far the job is."""
        self._report({"stage": str(text)})

    def log(self, text: str) -> None:
        """Adds a line to the job's history."""
        self._report({"log": str(text)})

    def set_meta(self, **fields: Any) -> None:
        """Sets fields of the job's META, as text; others stay."""
        self._report({"meta": {name: str(value) for name, value in fields.items()}})

    def cost(self, permits: int | None = None, /, **limits: int) -> None:
        """Says what this run has cost so far, in permits: `context.cost(tokens=812)` of shared limits by
        name, `context.cost(3)` of all other rates. The server takes or returns the difference to the estimate
        with which the job was posted. A later report takes the place of an earlier one.
        """
        found: dict[str, Any] = {}
        if permits is not None:
            found["cost"] = check_whole(permits, "permits", 0, MOST)
        if limits:
            costs("costs", limits)  # which refuses what is none
            found["costs"] = limits
        if found:
            self._report(found)

    def output(self, chunk: str | bytes) -> None:
        """Writes what the job says while it runs, for readers of `board.output(id)`. Each run writes anew.

        What comes faster than it can be sent is sent together. The board's codec is not used: what is written
        is readable for everybody who may read the board.
        """
        if not isinstance(chunk, (str, bytes)):
            raise TypeError(f"a chunk of output is text or bytes, not {chunk!r:.100}")
        for start in range(0, len(chunk), PIECE):
            part = chunk[start : start + PIECE]
            self._report({"output": part.encode("utf-8", "replace") if isinstance(part, str) else part})

    def save(self, payload: Any) -> None:
        """Replaces the job's payload, so that the next attempt can continue from here."""
        self._report({"payload": self.job._codec.encode(payload)})

    def step(self, name: str, function: Callable[P, T], /, *args: P.args, **keywords: P.kwargs) -> T:
        """Does a step of the work once: calls the function and stores what it returns. When the job runs
        again, the stored value is returned, and the function is not called.

        Each step of a job needs a name of its own; a name that is used twice in a run raises ValueError. In
        every run the value is what the codec makes of the function's: with JSON a tuple comes as a list. A
        worker that dies after the function and before the answer of the server leaves nothing: the step runs
        again. So pass a key to what must not happen twice: `context.step("pay", pay, sum, key=context.id)`.
        """
        if inspect.iscoroutinefunction(function):
            raise TypeError(f"{name!r} is an async function: await context.astep({name!r}, …)")
        self._confirm(patient=True)
        stored = self._begin_step(name)
        if stored is None:
            stored = self._store(name, self.job._codec.encode(function(*args, **keywords)))
        found: T = self.job._codec.decode(stored)
        return found

    @overload
    async def astep(
        self, name: str, function: Callable[P, Awaitable[T]], /, *args: P.args, **keywords: P.kwargs
    ) -> T: ...

    @overload
    async def astep(
        self, name: str, function: Callable[P, T], /, *args: P.args, **keywords: P.kwargs
    ) -> T: ...

    async def astep(self, name: str, function: Callable[..., Any], /, *args: Any, **keywords: Any) -> Any:
        """The same in an `async` handler; the function may be `async` too."""
        if self._is_late():
            await asyncio.to_thread(self._confirm, True)
        stored = self._begin_step(name)
        if stored is None:
            value = function(*args, **keywords)
            if inspect.isawaitable(value):
                value = await value
            stored = await asyncio.to_thread(self._store, name, self.job._codec.encode(value))
        return self.job._codec.decode(stored)

    @overload
    def wait_for(self, signals: str, **options: Unpack[EndlessOptions]) -> Signal: ...

    @overload
    def wait_for(self, signals: str, **options: Unpack[WaitOptions]) -> Signal | None: ...

    @overload
    def wait_for(self, signals: Names, **options: Unpack[EndlessOptions]) -> dict[str, Signal]: ...

    @overload
    def wait_for(self, signals: Names, **options: Unpack[WaitOptions]) -> dict[str, Signal] | None: ...

    def wait_for(self, signals: Any, **options: Unpack[WaitOptions]) -> Any:
        """Waits for a signal from outside, such as an approval; what `board.signal` sends.

        When it has arrived, this returns it. Otherwise the worker gives the job up, at no cost to it, and the
        handler is left by `Waits`, which `except Exception` does not catch. When the signal has arrived the
        handler is called again: the steps before this answer from the store, and this returns the signal. So
        what stands before it and must not happen twice belongs into a `step`.

        Several names wait for all of them, and return them by name; with `any` the one that came first.
        After `within` it returns None, or the job fails or is cancelled, as `ontimeout` says. `step` names
        the wait, where a handler waits for the same signal twice.
        """
        words = self._begin_waiting(signals, options)
        found = self._waited(self._reports.wait(self, words))
        return _one(signals, found)

    @overload
    async def await_for(self, signals: str, **options: Unpack[EndlessOptions]) -> Signal: ...

    @overload
    async def await_for(self, signals: str, **options: Unpack[WaitOptions]) -> Signal | None: ...

    @overload
    async def await_for(self, signals: Names, **options: Unpack[EndlessOptions]) -> dict[str, Signal]: ...

    @overload
    async def await_for(self, signals: Names, **options: Unpack[WaitOptions]) -> dict[str, Signal] | None: ...

    async def await_for(self, signals: Any, **options: Unpack[WaitOptions]) -> Any:
        """The same in an `async` handler."""
        words = self._begin_waiting(signals, options)
        found = self._waited(await asyncio.to_thread(self._reports.wait, self, words))
        return _one(signals, found)

    def wait_for_children(self, onfailure: Literal["hold", "cancel", "fail", "run"] = "hold") -> Children:
        """Waits until all children of the job have ended: those that this handler has posted with
        `parent=context.id`, and those that anybody has added meanwhile.

        When they have, this says how many there are, and how many failed, were cancelled or were trashed.
        Otherwise the worker gives the job up, as in `wait_for`, and the handler is called again when they
        have: post the children in a `step`. `onfailure` says what becomes of the job when one of them fails:
        `hold` waits until somebody requeues or deletes it, `cancel` and `fail` end the job, `run` goes on.
        """
        return self._counted(self._reports.wait(self, self._ask_for_children(onfailure)))

    async def await_for_children(
        self, onfailure: Literal["hold", "cancel", "fail", "run"] = "hold"
    ) -> Children:
        """The same in an `async` handler."""
        words = self._ask_for_children(onfailure)
        return self._counted(await asyncio.to_thread(self._reports.wait, self, words))

    def iterate(self, name: str, items: Iterable[T], *, every: int = 1) -> Iterator[T]:
        """The items, one after the other, going on where the last run was: what was done is passed over.

        How many are done is stored under the name after each `every` items, and at the end. Items must come
        in the same order in every run. After a crash it repeats up to `every` items.
        """
        start = self._begin_iterating(name, every)
        done = start
        for item in _from(items, start):
            yield item
            done += 1
            if (done - start) % every == 0:
                self._store(name, b"%d" % done, replace=True)
        if (done - start) % every:
            self._store(name, b"%d" % done, replace=True)

    async def aiterate(
        self, name: str, items: Iterable[T] | AsyncIterator[T], *, every: int = 1
    ) -> AsyncIterator[T]:
        """The same in an `async` handler: `async for row in context.aiterate("rows", rows)`."""
        start = self._begin_iterating(name, every)
        done = start
        async for item in _afrom(items, start):
            yield item
            done += 1
            if (done - start) % every == 0:
                await asyncio.to_thread(self._store, name, b"%d" % done, True)
        if (done - start) % every:
            await asyncio.to_thread(self._store, name, b"%d" % done, True)

    def flush(self, timeout: Duration | None = None) -> bool:
        """Waits until the server has taken all reports; False when it has not within `timeout`."""
        self.check()
        seconds = None if timeout is None else to_ms(timeout, "timeout") / 1000
        done = self._reports.flush(self, seconds)
        self.check()
        return done

    def check(self) -> None:
        """Raises when the handler has to stop. Costs nothing: call it between any two steps. After a pause
        that was longer than the lease it asks the server first.
        """
        self._confirm(patient=False)
        if self._raises and self._stop is not None:
            raise self._stop.with_traceback(None)

    def sleep(self, duration: Duration) -> None:
        """Waits so long, or until the handler has to stop. Not for `async` handlers: they have
        asyncio.sleep.
        """
        deadline = time.monotonic() + to_ms(duration) / 1000
        while not self.must_stop:
            left = deadline - time.monotonic()
            if left <= 0 or not self._wake.wait(left):
                break
        self.check()

    @property
    def must_stop(self) -> bool:
        """The job is lost or cancelled, or the worker has to go now."""
        return self._stop is not None

    def _is_late(self) -> bool:
        """The last answer about this job is older than its lease: it may be lost."""
        return time.monotonic() >= self._ours_until

    def _confirm(self, patient: bool) -> None:
        """Makes sure that the job is ours, where that is not known."""
        if self._stop is None and self._is_late():
            self._reports.confirm(self, patient)

    def _begin_step(self, name: str) -> bytes | None:
        """What is stored under the name; raises when the run has used it."""
        self.check()
        if name in self._used:
            raise ValueError(
                f"two steps of this run are called {name!r}: give each a name of its own, in a loop one "
                "with the number of the round"
            )
        self._used.add(name)
        return self.job._steps().get(name, (None, 0))[0]

    def _begin_waiting(self, signals: Any, options: WaitOptions) -> list[Any]:
        """The words of the question; raises when the run has asked under this name."""
        names = [signals] if isinstance(signals, str) else list(signals)
        self._begin_step(f"a wait for {options.get('step') or ''.join(names[:1])}")
        gate = Await(names, options.get("any", False), options.get("within"), options.get("ontimeout"))
        step = options.get("step")
        return [*await_words("SIGNALS", gate), *([] if step is None else ["STEP", step])]

    def _ask_for_children(self, onfailure: str) -> list[Any]:
        self.check()
        return children_words("AFTER", onfailure)[1:]

    def _counted(self, reply: dict[bytes, Any]) -> Children:
        if b"children" not in reply:
            raise self._stop if self._stop is not None else Waits("the job waits for its children")
        self.check()
        return Children(reply[b"children"], reply[b"pending"], reply[b"unsuccessful"])

    def _waited(self, reply: dict[bytes, Any]) -> dict[str, Signal]:
        """The signals, none after a timeout. Leaves the handler when the job was given up."""
        if b"signals" not in reply:
            raise self._stop if self._stop is not None else Waits("the job waits for signals")
        self.check()
        return {} if reply[b"timeout"] else self.job._signals(reply[b"signals"])

    def _begin_iterating(self, name: str, every: int) -> int:
        if every < 1:
            raise ValueError(f"every must be at least 1, not {every}")
        stored = self._begin_step(name)
        try:
            return 0 if stored is None else int(stored)
        except ValueError:
            raise ValueError(f"{name!r} is a step that does not count items: it holds {stored!r}") from None

    def _store(self, name: str, data: bytes, replace: bool = False) -> bytes:
        """Stores a step also when the handler has to stop; the value that counts."""
        other = self._reports.store(self, name, data, replace)
        self.check()
        return data if other is None else other

    def _report(self, fields: Mapping[str, Any]) -> None:
        self.check()
        if not self.lost:
            self._reports.report(self, fields)

    def _stopped_by(self, reason: Stopped) -> None:
        """Told by the worker. What came first counts, but for a loss, which is final."""
        if isinstance(reason, Lost):
            self.lost = True
        elif not isinstance(reason, GoHome):
            self.cancelled = True
        if self._stop is None or self.lost:
            self._stop = reason
        self._wake.set()


def _one(signals: Any, found: dict[str, Signal]) -> Any:
    """None after a timeout; the signal, or several by name."""
    if not found:
        return None
    return next(iter(found.values())) if isinstance(signals, str) else found


def _from(items: Iterable[T], start: int) -> Iterator[T]:
    """The items from one on; a list is not walked up to it."""
    if isinstance(items, Sequence):
        return (items[at] for at in range(start, len(items)))
    return itertools.islice(items, start, None)


async def _afrom(items: Iterable[T] | AsyncIterator[T], start: int) -> AsyncIterator[T]:
    if isinstance(items, Iterable):
        for item in _from(items, start):
            yield item
        return
    at = 0
    async for item in items:
        if at >= start:
            yield item
        at += 1
