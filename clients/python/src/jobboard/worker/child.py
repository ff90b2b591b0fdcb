"""What runs in a child process."""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import queue
import signal
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .. import outcomes
from ..board.context import Context
from ..board.hooks import Hook
from ..codecs import Codec
from ..handlers import Handlers
from ..jobs import Job
from .heeding import heed
from .logs import Format, configure
from .performer import Performer
from .threads import Loop
from .traces import RemoteTraceback, trace_of


class RemoteError(Exception):
    """An exception of a child process, with the text of its traceback."""

    def __init__(self, name: str, message: str, trace: str) -> None:
        super().__init__(name, message, trace)
        self.__cause__ = RemoteTraceback(trace)

    def __str__(self) -> str:
        return f"{self.args[0]}: {self.args[1]}"


def remote(error: BaseException) -> RemoteError:
    return RemoteError(type(error).__name__, outcomes.said(error), trace_of(error))


def portable(error: BaseException) -> BaseException:
    """An exception that arrives at the other end of a pipe as what it is."""
    try:
        same = pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {outcomes.said(error)}")
    return error if str(same) == str(error) else RuntimeError(f"{type(error).__name__}: {error}")


def travelling(outcome: outcomes.Outcome) -> outcomes.Outcome:
    """An outcome that arrives at the other end: a value stays here, its bytes go."""
    if isinstance(outcome, outcomes.Fail) and outcome.error is not None:
        outcome.error = remote(outcome.error)
    elif isinstance(outcome, outcomes.Complete):
        outcome.result = None
    elif isinstance(outcome, outcomes.Next):
        outcome.payload = None
    return outcome


@dataclass
class Setup:
    """What a child needs: the handlers, and of the board what can be sent, or where to import it."""

    target: str | None
    """`module:name` of the board."""
    board: Any
    """The board itself, or None when it cannot be pickled."""
    handlers: Handlers | None
    """None: those of the board at `target`."""
    codec: Codec | None
    """None, as the hook: that of the board at `target`."""
    hook: Hook | None
    worker: str
    queues: list[str]
    """Those that the worker claims from; every one when empty."""
    raises: bool
    tracebacks: bool
    log: tuple[int, Format] | None
    """The level and format of the root logger; None: it has no handler."""


def load(target: str) -> Any:
    """The object of `module:name`."""
    module, separator, name = target.partition(":")
    if not separator:
        raise ValueError(f"{target!r} must be module:name")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def serve(pipe: Any, setup: Setup) -> None:
    """The life of a child: runs what comes through the pipe until that closes."""
    # The parent is asked to stop, and sees to it that work ends: a signal to the whole group is not for us.
    # Handlers that do nothing, not SIG_IGN: programs that a job starts do not inherit them.
    heed((signal.SIGINT, signal.SIGTERM), lambda *_: None)
    if setup.log is not None:
        configure(*setup.log)
    board = setup.board if setup.target is None else load(setup.target)
    handlers = setup.handlers or board.handlers
    codec = board.codec if setup.codec is None else setup.codec
    hook = board.hook if setup.hook is None else setup.hook
    messages = Messages(pipe)
    messages.send(("ready",))
    performer = Performer(handlers, hook, setup.tracebacks, setup.queues)
    loop = Loop()
    while True:
        found = messages.next_run()
        if found is None:
            return
        token, _, raw, ours_until = found
        job = Job(raw, codec)
        context = Context(job, setup.worker, board, messages, setup.raises)
        context._ours_until = ours_until
        run = ChildRun(context)
        messages.begin(token, run)
        handler = performer.handler(context)
        if handler.is_async:
            outcome = loop.perform(performer, handler, run)
        else:
            outcome = performer.perform(handler, context)
        messages.end(travelling(outcome))


class ChildRun:
    """A run as the child knows it."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.interrupt: Any = None


class Messages:
    """Both ends' messages. A thread reads, so that the parent is heard while a handler works."""

    def __init__(self, pipe: Any) -> None:
        self._pipe = pipe
        self._sending = threading.Lock()
        self._runs: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._asked: dict[int, queue.SimpleQueue[Any]] = {}
        self._questions = 0
        self._lock = threading.Lock()
        self._current: tuple[int, ChildRun | None] = (0, None)
        self._stopped: dict[int, Any] = {}
        threading.Thread(target=self._read, name="jobboard-parent", daemon=True).start()

    def send(self, message: Any) -> None:
        with self._sending:
            self._pipe.send(message)

    def _say(self, context: Context, message: Any) -> bool:
        """Sends what a run says, unless it has ended: the parent would take it for the words of the next one.
        What a handler has left behind, a thread or a task, may go on speaking.
        """
        with self._sending:
            _, run = self._current
            if run is None or run.context is not context:
                context._stopped_by(outcomes.Lost("the job is not ours any more: its run has ended"))
                return False
            self._pipe.send(message)
            return True

    def next_run(self) -> Any:
        return self._runs.get()

    def begin(self, token: int, run: ChildRun) -> None:
        with self._lock:
            self._current = (token, run)
            reason = self._stopped.pop(token, None)
        if reason is not None:
            self._stop(run, reason)

    def end(self, outcome: outcomes.Outcome) -> None:
        with self._sending, self._lock:
            self._current = (0, None)
            self._stopped.clear()
        try:
            self.send(("end", outcome))
        except OSError:
            raise
        except Exception as error:  # it cannot be pickled
            self.send(("end", outcomes.unsent(error)))

    def report(self, context: Context, fields: Mapping[str, Any]) -> None:
        self._say(context, ("report", dict(fields)))

    def flush(self, context: Context, timeout: float | None) -> bool:
        [done] = self._ask(context, "flush", timeout)
        return bool(done)

    def store(self, context: Context, name: str, data: bytes, replace: bool) -> bytes | None:
        value, error = self._ask(context, "store", name, data, replace)
        if error is not None:
            raise error
        found: bytes | None = value
        return found

    def wait(self, context: Context, words: list[Any]) -> dict[bytes, Any]:
        value, error = self._ask(context, "wait", words)
        if error is not None:
            raise error
        found: dict[bytes, Any] = value
        return found

    def confirm(self, context: Context, patient: bool) -> None:
        context._ours_until, name, text = self._ask(context, "confirm", patient)
        if name is not None:
            context._stopped_by(getattr(outcomes, name)(text))

    def _ask(self, context: Context, kind: str, *words: Any) -> Any:
        """Asks the parent, and waits for the answer; raises Lost when the run has ended."""
        with self._lock:
            self._questions += 1
            number, answer = self._questions, queue.SimpleQueue[Any]()
            self._asked[number] = answer
        if not self._say(context, (kind, number, *words)):
            with self._lock:
                del self._asked[number]
            raise outcomes.Lost(str(context._stop))
        return answer.get()

    def _read(self) -> None:
        while True:
            try:
                kind, *rest = self._pipe.recv()
            except (EOFError, OSError):
                self._left_alone()
                return
            if kind == "run":
                self._runs.put(rest)
            elif kind in ("flushed", "stored", "waited", "confirmed"):
                with self._lock:
                    answer = self._asked.pop(rest[0])
                answer.put(rest[1:])
            elif kind == "home":
                self._go_home()
            else:
                self._told_to_stop(*rest)

    def _go_home(self) -> None:
        with self._lock:
            _, run = self._current
        if run is not None:
            run.context.going_home = True

    def _left_alone(self) -> None:
        """The parent has ended, or needs us no longer. What a handler still does would be refused."""
        with self._lock:
            _, run = self._current
        if run is not None:
            os._exit(1)
        self._runs.put(None)

    def _told_to_stop(self, token: int, name: str, text: str) -> None:
        reason = getattr(outcomes, name)(text)
        with self._lock:
            current, run = self._current
            if current != token:
                self._stopped[token] = reason
                return
        if run is not None:
            self._stop(run, reason)

    def _stop(self, run: ChildRun, reason: Any) -> None:
        run.context._stopped_by(reason)
        if run.context._raises and run.interrupt is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                run.interrupt()
