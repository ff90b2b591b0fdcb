"""How a run ends: what a handler may return or raise, and the command that this becomes.

A handler that returns anything else completes its job with that as the result; one that raises anything else
fails its try. `Stopped` is a BaseException, as asyncio's CancelledError is: `except Exception` in a handler
does not swallow it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .arguments import Name, check_name, check_names
from .codecs import Codec
from .durations import Duration, to_ms

TEXT = 4096
"""The longest message or reason, bytes: the module's default `max-text`."""

OWN_KINDS = frozenset({"lapsed", "timeout", "expired", "dependency", "signal"})
"""Kinds of failures that the server gives itself, and refuses from others."""


class Outcome:
    """What becomes of a claim. `words` are those of its command after the worker, before the token."""

    verb = ""
    __slots__ = ()

    def words(self, id: str) -> list[Any]:
        return [id]

    def options(self) -> list[Any]:
        return []


class Complete(Outcome):
    """Ends the job as complete. `force`: also when somebody asked to cancel it.

    As a handler's return value it says what `return result` cannot.
    """

    verb = "JOB.CONSUME"
    __slots__ = ("result", "force", "retain", "data", "alone")

    def __init__(self, result: Any = None, *, force: bool = False, retain: Duration | None = None) -> None:
        self.result, self.force, self.retain = result, force, _checked("retain", retain)
        self.data: bytes | None = None
        self.alone = False
        """It has been refused together with others, and is sent on its own."""

    def encode(self, codec: Codec) -> Complete:
        if self.result is not None:
            self.data = codec.encode(self.result)
        return self

    @property
    def is_plain(self) -> bool:
        """Whether it can share a command with others that have a result too, or have none either."""
        return not self.force and self.retain is None and not self.alone

    def options(self) -> list[Any]:
        words: list[Any] = [] if self.data is None else ["RESULT", self.data]
        words += [] if self.retain is None else ["RETAIN", to_ms(self.retain)]
        return [*words, *(["FORCE"] if self.force else [])]


class Next(Outcome):
    """Sends the job on to another queue, under the same id: `return Next("web", payload, name="publish")`.

    `name` decides which handler does the next step, unless the queue has a handler of its own. Without it the
    job keeps its name. A try that would lead to the same handler under the same name again has failed for
    good, whether the name was given or kept.
    """

    verb = "JOB.CONSUME"
    __slots__ = ("queue", "payload", "name", "delay", "priority", "after", "data")

    def __init__(
        self,
        queue: Name,
        payload: Any = None,
        *,
        name: Name | None = None,
        delay: Duration | None = None,
        priority: int | None = None,
        after: Sequence[Name] = (),
    ) -> None:
        check_name(queue, "queue")
        if name is not None:
            check_name(name, "name")
        self.queue, self.payload, self.name, self.delay = queue, payload, name, _checked("delay", delay)
        self.priority, self.after = priority, check_names(after, "after")
        self.data: bytes | None = None

    def encode(self, codec: Codec) -> Next:
        if self.payload is not None:
            self.data = codec.encode(self.payload)
        return self

    def options(self) -> list[Any]:
        words: list[Any] = [] if self.data is None else ["PAYLOAD", self.data]
        words += ["NEXT", self.queue, *([] if self.name is None else ["NAME", self.name])]
        words += [] if self.delay is None else ["DELAY", to_ms(self.delay)]
        words += [] if self.priority is None else ["PRIORITY", self.priority]
        return words + (["AFTER", len(self.after), *self.after] if self.after else [])


class Fail(Outcome):
    """This try failed."""

    verb = "JOB.FAIL"
    __slots__ = ("kind", "message", "retry", "noretry", "error")

    def __init__(self, kind: str, message: str, retry: Duration | None = None, noretry: bool = False) -> None:
        self.kind, self.message, self.retry, self.noretry = allowed_kind(kind), message, retry, noretry
        self.error: BaseException | None = None
        """What the log tells with its traceback."""

    def words(self, id: str) -> list[Any]:
        return [id, shortened(self.kind, 255), shortened(self.message, TEXT)]

    def options(self) -> list[Any]:
        if self.noretry:
            return ["NORETRY"]
        return [] if self.retry is None else ["RETRY", to_ms(self.retry)]

    def without_delay(self) -> Fail:
        """The job's back-off counts."""
        found = Fail(self.kind, self.message, noretry=self.noretry)
        found.error = self.error
        return found


CANCELLED = "cancelled"
"""Why a worker gives a job back whose cancel was requested."""


class GiveBack(Outcome):
    """Back to the queue, at no cost; cancelled, when somebody asked for that."""

    verb = "JOB.ABANDON"
    __slots__ = ("delay", "reason", "pause")

    def __init__(
        self, reason: str, delay: Duration | None = None, pause: tuple[Name, Duration] | None = None
    ) -> None:
        self.reason, self.delay, self.pause = reason, delay, pause

    def without_pause(self) -> GiveBack:
        """The job alone waits."""
        longest = [one for one in (self.delay, self.pause and self.pause[1]) if one is not None]
        return GiveBack(self.reason, max(longest, key=to_ms, default=None))

    def without_delay(self) -> GiveBack:
        return GiveBack(self.reason)

    def options(self) -> list[Any]:
        words: list[Any] = ["REASON", shortened(self.reason, TEXT)]
        words += [] if self.delay is None else ["DELAY", to_ms(self.delay)]
        return words + ([] if self.pause is None else ["PAUSE", self.pause[0], to_ms(self.pause[1])])


class Unhandled(GiveBack):
    """Back to the queue: this worker has no handler for it. How long it then waits, the engine decides."""

    __slots__ = ()


class PutAside(Outcome):
    """To the trash."""

    verb = "JOB.TRASH"
    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def options(self) -> list[Any]:
        return ["REASON", shortened(self.reason, TEXT)]


class Nothing(Outcome):
    """The claim was lost: there is nothing to say."""

    __slots__ = ()


class GivenUp(Nothing):
    """The job waits for signals or its children, as `why` says: the server knows already."""

    __slots__ = ("why",)

    def __init__(self, why: str) -> None:
        self.why = why


class Retry(Exception):
    """Raised by a handler: fail this try, and try again after `delay` (without one, after the job's
    back-off).
    """

    def __init__(self, message: str = "", delay: Duration | None = None, kind: str = "Retry") -> None:
        super().__init__(message)
        self.message = _text("message", message, "Retry('the server is busy', delay='5s')")
        self.delay, self.kind = _checked("delay", delay), _kind(kind, "kind='Busy'")


class NoRetry(Exception):
    """Raised by a handler: the job has failed, and is not tried again."""

    def __init__(self, message: str = "", kind: str = "NoRetry") -> None:
        super().__init__(message)
        self.message = _text("message", message, "NoRetry('there is no such user')")
        self.kind = _kind(kind, "kind='Gone'")


class Abandon(Exception):
    """Raised by a handler: give the job back, which costs it nothing; ready again after `delay`."""

    def __init__(self, reason: str = "", delay: Duration | None = None) -> None:
        super().__init__(reason)
        self.reason = _text("reason", reason, "Abandon('the disk is full', delay='5m')")
        self.delay = _checked("delay", delay)


class RateLimited(Exception):
    """Raised by a handler whose call was answered with 429: `raise RateLimited("tokens", "30s")`.

    No job that counts against this shared limit is claimed for this time, and the job goes back at no cost.
    The limit has to be one of the job's; otherwise the job alone waits, and the log says so.
    """

    def __init__(self, limit: Name, for_: Duration, reason: str = "") -> None:
        super().__init__(limit, for_, reason)
        check_name(limit, "limit")
        if to_ms(for_, "for_") < 1:
            raise ValueError(f"for_ is how long the limit rests, such as '30s', not {for_!r}")
        self.limit, self.for_ = limit, for_
        self.reason = _text("reason", reason, "RateLimited('tokens', '30s', 'the API says 429')")


class Trash(Exception):
    """Raised by a handler: the job can never succeed; put it aside for a person to look at."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = _text("reason", reason, "Trash('this is no image')")


class Stopped(BaseException):
    """Raised in a handler by its context: stop now."""


class Waits(Stopped):
    """The job waits for signals or its children: the handler is left, and called again when they have arrived
    or ended.
    """


class Lost(Stopped):
    """The job is no longer ours: its lease ended, it timed out, or somebody took it. What the handler would
    say of it is refused, so there is no use in going on."""


class CancelRequested(Stopped):
    """Somebody asked to cancel the job. Unless the handler catches it and returns, the job is cancelled."""


class GoHome(Stopped):
    """The worker has to stop now: its time for finishing work is over. The job has been given back."""


def _checked(name: str, duration: Duration | None) -> Duration | None:
    """The duration; raises here, in the handler, when it is none."""
    if duration is not None:
        to_ms(duration, name)
    return duration


def _text(name: str, value: Any, example: str) -> str:
    """The text; raises here, in the handler, when it is none."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is text, such as {example}, not {value!r:.100}")
    return value


def _kind(value: Any, example: str) -> str:
    """The kind of a failure; raises here, in the handler, when it is one of the server's own."""
    if _text("kind", value, example) in OWN_KINDS:
        raise ValueError(f"kind {value!r} is the server's own: choose another one, such as {example}")
    return str(value)


def allowed_kind(kind: str) -> str:
    """A kind that the server takes: one of its own gets `was-` before it."""
    return f"was-{kind}" if kind in OWN_KINDS else kind or "error"


def said(error: BaseException) -> str:
    """The text of an exception, also of one that raises when it is asked."""
    try:
        return str(error)
    except Exception as fault:
        return f"its text cannot be had: {type(fault).__name__}: {fault}"


def unsent(error: BaseException) -> Fail:
    """What becomes of a run whose end cannot be sent."""
    return Fail(type(error).__name__, f"how this run ended cannot be sent: {said(error)}")


def shortened(text: str, most: int) -> bytes:
    """Text of at most so many bytes."""
    data = text.encode("utf-8", "replace")
    return data if len(data) <= most else data[: most - 3].decode("utf-8", "ignore").encode() + b"..."
