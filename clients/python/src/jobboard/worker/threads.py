"""Handlers in threads of this process."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from typing import Any

from ..outcomes import Outcome
from .engine import Engine
from .performer import Performer
from .run import Run


class ThreadPool:
    """`concurrency` threads, each with one run at a time. An `async` handler runs in its thread's own loop.

    A handler is stopped by the next call of its context; an `async` one by cancelling its task. A thread
    cannot be ended from outside: the threads are daemons, so that they do not keep a process that has to end.
    """

    def __init__(self, performer: Performer, concurrency: int) -> None:
        self.performer, self.concurrency = performer, concurrency
        self.runs: queue.SimpleQueue[Run | None] = queue.SimpleQueue()
        self.threads: list[threading.Thread] = []

    def start(self, engine: Engine) -> None:
        self.engine = engine
        for number in range(self.concurrency):
            name = f"jobboard-handler-{number}"
            thread = threading.Thread(target=self._work, args=(number,), name=name, daemon=True)
            self.threads.append(thread)
            thread.start()

    def submit(self, runs: list[Run]) -> None:
        for run in runs:
            self.runs.put(run)

    def waiting(self) -> int:
        return self.runs.qsize()

    def drain(self) -> list[Run]:
        found: list[Run] = []
        while True:
            try:
                run = self.runs.get_nowait()
            except queue.Empty:
                return found
            if run is not None:
                found.append(run)

    def interrupt(self, run: Run) -> None:
        stop = run.interrupt  # which goes with the run's end, in another thread
        if stop is not None and run.context._raises:
            stop()

    def going_home(self, runs: list[Run]) -> None:
        for run in runs:
            run.context.going_home = True

    def close(self, kill: bool) -> None:
        for _ in range(self.concurrency):
            self.runs.put(None)

    def _work(self, number: int) -> None:
        loop = Loop()
        while True:
            run = self.runs.get()
            if run is None:
                loop.close()
                return
            try:
                self.engine.begun(run)
                self.engine.finished(run, self._perform(run, loop), here=True)
            except BaseException as error:
                self.engine.broken(run, error)

    def _perform(self, run: Run, loop: Loop) -> Outcome:
        handler = self.performer.handler(run.context)
        if not handler.is_async:
            return self.performer.perform(handler, run.context)
        return loop.perform(self.performer, handler, run)


def run_on(loop: asyncio.AbstractEventLoop) -> None:
    """Runs a loop until it is stopped. It also ends at a SystemExit of a task that a handler has made: who
    awaits that task gets it, and the loop has to go on for that.
    """
    with contextlib.suppress(SystemExit, KeyboardInterrupt):
        loop.run_forever()


class Loop:
    """An event loop of one thread, made when the first `async` handler comes."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def perform(self, performer: Performer, handler: Any, run: Any) -> Outcome:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        loop = self._loop
        task = loop.create_task(performer.perform_async(handler, run.context))
        run.interrupt = lambda: loop.call_soon_threadsafe(task.cancel)
        task.add_done_callback(lambda _: loop.stop())
        while not task.done():
            run_on(loop)
        try:
            return task.result()
        except asyncio.CancelledError as error:  # cancelled before it began
            return performer.failed(error, handler, run.context)

    def close(self) -> None:
        if self._loop is not None:
            self._loop.close()
