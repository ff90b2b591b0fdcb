"""Handlers as tasks of one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque

from ..handlers import Handler
from ..outcomes import Outcome
from .engine import Engine
from .performer import Performer
from .run import Run
from .threads import run_on
from .watchdog import Watchdog


class LoopPool:
    """Up to `concurrency` tasks at once. A plain handler runs in a thread beside the loop.

    An `async` handler is stopped by cancelling its task. `loop`: that of the caller; else one in a thread of
    its own. All but `submit` and `interrupt` of the runs happens in the loop's thread.
    """

    def __init__(
        self,
        performer: Performer,
        concurrency: int,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.performer, self.concurrency = performer, concurrency
        self.own = loop is None
        self.loop = loop or asyncio.new_event_loop()
        self.runs: deque[Run] = deque()
        self.running: set[asyncio.Task[None]] = set()
        self.closing = False

    def start(self, engine: Engine) -> None:
        self.engine = engine
        self.watchdog = Watchdog(self.loop)
        self.watchdog.start()
        if self.own:
            threading.Thread(target=self._serve, name="jobboard-loop", daemon=True).start()

    def submit(self, runs: list[Run]) -> None:
        self.runs.extend(runs)
        self.loop.call_soon_threadsafe(self._begin)

    def waiting(self) -> int:
        return len(self.runs)

    def drain(self) -> list[Run]:
        found: list[Run] = []
        while self.runs:
            try:
                found.append(self.runs.popleft())
            except IndexError:  # the loop was quicker
                break
        return found

    def interrupt(self, run: Run) -> None:
        stop = run.interrupt
        if stop is not None and run.context._raises:
            self.loop.call_soon_threadsafe(stop)

    def going_home(self, runs: list[Run]) -> None:
        for run in runs:
            run.context.going_home = True

    def close(self, kill: bool) -> None:
        self.watchdog.closed.set()
        self.closing = True
        if self.own:
            self.loop.call_soon_threadsafe(self.loop.stop)

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        while not self.closing:
            run_on(self.loop)
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self.loop.close()

    def _begin(self) -> None:
        while len(self.running) < self.concurrency:
            try:
                run = self.runs.popleft()
            except IndexError:
                return
            task = self.loop.create_task(self._run(run))
            self.running.add(task)
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self.running.discard(task)
        self._begin()

    async def _run(self, run: Run) -> None:
        try:
            self.engine.begun(run)
            self.engine.finished(run, await self._outcome(run))
        except Exception as error:
            self.engine.broken(run, error)
        except BaseException:  # the caller's loop ends before us
            self.engine.cut_off(run)
            raise

    async def _outcome(self, run: Run) -> Outcome:
        handler = self.performer.handler(run.context)
        if not handler.is_async:
            return await self._in_thread(handler, run)
        inner = self.loop.create_task(self.performer.perform_async(handler, run.context))
        run.interrupt = inner.cancel  # type: ignore[assignment]
        await asyncio.wait({inner})  # a cancel of `inner` alone does not come through here
        try:
            return inner.result()
        except asyncio.CancelledError as error:
            if run.context.must_stop:  # cancelled before it began
                return self.performer.failed(error, handler, run.context)
            raise

    async def _in_thread(self, handler: Handler, run: Run) -> Outcome:
        """Runs a plain handler in a daemon thread: an executor's would keep a process that has to end."""
        done: asyncio.Future[Outcome] = self.loop.create_future()

        def tell(outcome: Outcome | BaseException) -> None:
            if done.done():
                return
            if isinstance(outcome, Outcome):
                done.set_result(outcome)
            else:
                done.set_exception(outcome)

        def work() -> None:
            outcome: Outcome | BaseException
            try:
                outcome = self.performer.perform(handler, run.context)
            except Exception as error:
                outcome = error
            with contextlib.suppress(RuntimeError):  # the loop has ended before
                self.loop.call_soon_threadsafe(tell, outcome)

        threading.Thread(target=work, name="jobboard-handler", daemon=True).start()
        return await done
