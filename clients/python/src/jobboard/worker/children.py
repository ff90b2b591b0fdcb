"""Handlers in child processes."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import pickle
import signal
import threading
import time
from typing import Any

from ..outcomes import CANCELLED, CancelRequested, Fail, GiveBack, GoHome, Lost, Nothing, Outcome, said
from .child import Setup, portable, serve
from .engine import Engine
from .performer import Performer
from .run import Run
from .threads import ThreadPool

log = logging.getLogger("jobboard.worker")

START_WITHIN = 60.0
"""Seconds that a child may take to import its handlers."""

LOOK = 0.5
"""Seconds between looks whether a child that says nothing lives."""

CLOSE_WITHIN = 5.0
"""Seconds that a child may take to end by itself."""

_SPAWN = multiprocessing.get_context("spawn")


class ProcessPool(ThreadPool):
    """Child processes, each with one run at a time, and in this process a thread beside each.

    Claims, leases and ends stay here, so a handler that holds the interpreter's lock for long does not lose
    its lease. A child that dies fails its job at once (kind `Killed`), and another one takes its place. When
    this process dies its children end as well.
    """

    def __init__(self, performer: Performer, concurrency: int, setup: Setup, kill_after: int | None) -> None:
        super().__init__(performer, concurrency)
        self.setup, self.kill_after = setup, kill_after
        self.children: list[Child] = []
        self.killed = False
        check_portable(setup)

    def start(self, engine: Engine) -> None:
        self.children = [Child(self.setup) for _ in range(self.concurrency)]
        try:
            for child in self.children:
                child.await_ready()
        except BaseException:
            for child in self.children:
                child.kill()
            raise
        super().start(engine)

    def interrupt(self, run: Run) -> None:
        stop = run.interrupt  # which goes with the run's end, in another thread
        if stop is not None:
            stop()

    def going_home(self, runs: list[Run]) -> None:
        super().going_home(runs)
        for child in self.children:
            child.going_home()

    def close(self, kill: bool) -> None:
        self.killed = kill
        if kill:
            for child in self.children:
                child.kill()
        super().close(kill)
        for thread in self.threads:
            thread.join(CLOSE_WITHIN)
        for child in self.children:
            child.kill()

    def _work(self, number: int) -> None:
        while True:
            run = self.runs.get()
            if run is None:
                self.children[number].close()
                return
            try:
                self.engine.begun(run)
                outcome = self._perform_in(number, run)
            except BaseException as error:  # the child could not be started again
                self.engine.finished(run, GiveBack(f"no process to work in: {said(error)}"))
                self.engine.fail(error)
                return
            try:
                self.engine.finished(run, outcome, here=True)
            except BaseException as error:
                self.engine.broken(run, error)

    def _perform_in(self, number: int, run: Run) -> Outcome:
        child = self.children[number]
        if not child.alive:  # killed for the last run
            child = self.children[number] = Child(self.setup)
            child.await_ready()
        run.interrupt = lambda: self._stop(child, run)
        try:
            child.begin(run)
            if run.context.must_stop:
                self._stop(child, run)
            return child.outcome(run)
        except (EOFError, OSError):
            return self._died(child, run)

    def _stop(self, child: Child, run: Run) -> None:
        """Tells the child; with `interrupt="kill"` kills it after the grace."""
        child.stop(run)
        if self.kill_after is not None:
            timer = threading.Timer(self.kill_after / 1000, self._kill, (child, run))
            timer.daemon = True
            timer.start()

    def _kill(self, child: Child, run: Run) -> None:
        if child.run is run:
            log.warning("killing process %s: it goes on with job %s", child.pid, run.id)
            child.kill()

    def _died(self, child: Child, run: Run) -> Outcome:
        code = child.reap()
        reason = run.context._stop
        if isinstance(reason, Lost):
            return Nothing()
        if isinstance(reason, CancelRequested):
            return GiveBack(CANCELLED)
        if isinstance(reason, GoHome) or self.killed:
            return GiveBack("the worker stops")
        how = f"by signal {signal.Signals(-code).name}" if code and code < 0 else f"with status {code}"
        log.error("process %s ended %s while it worked on job %s", child.pid, how, run.id)
        return Fail("Killed", f"the process ended {how}")


def check_portable(setup: Setup) -> None:
    """Raises ValueError for what cannot be sent to a child process, and says what to do."""
    top = "at the top of a module"
    for what, part, where in (
        ("the handlers", setup.handlers, f"define them {top}"),
        ("the codec", setup.codec, f"define its class {top}"),
        ("the hook", setup.hook, f"define its class {top}"),
    ):
        try:
            pickle.dumps(part)
        except Exception as error:
            # Handlers of the worker's own are sent also where the board has a target.
            named = "" if setup.target else ", or name the board: Worker(board, …, target='module:board')"
            raise ValueError(f"{what} cannot be sent to a child process ({error}): {where}{named}") from error


class Child:
    """One child process and the pipe to it."""

    def __init__(self, setup: Setup) -> None:
        self._pipe, other = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=serve, args=(other, setup), name="jobboard-child")
        self._process.start()
        other.close()
        self._sending = threading.Lock()
        self.run: Run | None = None
        """What it works on."""

    @property
    def pid(self) -> int | None:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def await_ready(self) -> None:
        """Waits until its handlers are imported."""
        deadline = time.monotonic() + START_WITHIN
        while not self._pipe.poll(0.2):
            if not self.alive or time.monotonic() > deadline:
                break
        try:
            if self._pipe.poll(0):
                self._pipe.recv()
                return
        except (EOFError, OSError):
            pass
        self.kill()
        raise RuntimeError(f"a worker process did not start (status {self.reap()}): see its output")

    def begin(self, run: Run) -> None:
        self.run = run
        self._send(("run", run.token, run.requests.key, run.job._raw, run.context._ours_until))

    def stop(self, run: Run) -> None:
        """Tells it that this run has to stop."""
        reason = run.context._stop
        with contextlib.suppress(OSError, ValueError):
            self._send(("stop", run.token, type(reason).__name__, str(reason)))

    def going_home(self) -> None:
        """Tells it that the worker is about to stop."""
        with contextlib.suppress(OSError, ValueError):
            self._send(("home",))

    def outcome(self, run: Run) -> Outcome:
        """Takes its messages until the run has ended. Raises EOFError or OSError when it dies before."""
        while True:
            kind, *rest = self._receive()
            if kind == "report":
                run.report(run.context, rest[0])
            elif kind == "store":
                threading.Thread(target=self._store, args=(run, *rest), daemon=True).start()
            elif kind == "wait":
                threading.Thread(target=self._wait, args=(run, *rest), daemon=True).start()
            elif kind == "confirm":
                threading.Thread(target=self._confirm, args=(run, *rest), daemon=True).start()
            elif kind == "flush":
                threading.Thread(target=self._flush, args=(run, *rest), daemon=True).start()
            else:
                self.run = None
                found: Outcome = rest[0]
                return found

    def _receive(self) -> Any:
        """Its next message. The end of the pipe alone does not tell that it has died: what it has forked may
        hold the pipe.
        """
        while not self._pipe.poll(LOOK):
            if not self.alive and not self._pipe.poll(0):
                raise EOFError
        return self._pipe.recv()

    def kill(self) -> None:
        with contextlib.suppress(Exception):
            self._process.kill()

    def reap(self) -> int | None:
        """What it has ended with."""
        self.run = None
        self._process.join(CLOSE_WITHIN)
        self._pipe.close()
        return self._process.exitcode

    def close(self) -> None:
        """Tells it to end; it has nothing to do."""
        with contextlib.suppress(Exception):
            self._pipe.close()
        self._process.join(CLOSE_WITHIN)
        self.kill()

    def _flush(self, run: Run, number: int, timeout: float | None) -> None:
        done = run.flush(run.context, timeout)
        with contextlib.suppress(OSError, ValueError):
            self._send(("flushed", number, done))

    def _confirm(self, run: Run, number: int, patient: bool) -> None:
        run.context._confirm(patient)
        reason = run.context._stop
        told = (None, None) if reason is None else (type(reason).__name__, str(reason))
        with contextlib.suppress(OSError, ValueError):
            self._send(("confirmed", number, run.context._ours_until, *told))

    def _store(self, run: Run, number: int, name: str, data: bytes, replace: bool) -> None:
        value, error = None, None
        try:
            value = run.store(run.context, name, data, replace)
        except BaseException as raised:
            error = portable(raised)
        with contextlib.suppress(OSError, ValueError):
            self._send(("stored", number, value, error))

    def _wait(self, run: Run, number: int, words: list[Any]) -> None:
        found, error = None, None
        try:
            found = run.wait(run.context, words)
        except BaseException as raised:
            error = portable(raised)
        with contextlib.suppress(OSError, ValueError):
            self._send(("waited", number, found, error))

    def _send(self, message: Any) -> None:
        with self._sending:
            self._pipe.send(message)
