"""A worker that runs handlers in the thread of the test, one job after the other, until nothing is ready.

It is the worker's own engine with another way to run handlers (at once) and to send (at once): so a handler
may do here what it may do there, and it ends its jobs in the same ways.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import redis

from .. import replies
from ..arguments import Name, check_whole
from ..board import Board
from ..board.context import Context
from ..board.sending import Request
from ..errors import translated
from ..handlers import Handler, Handlers
from ..outcomes import Nothing, Outcome, Waits
from ..worker import Worker
from ..worker.batch import Batch
from ..worker.claimer import keep_completed
from ..worker.connection import connection_of
from ..worker.engine import Engine
from ..worker.performer import Performer
from ..worker.run import Run
from ..worker.storing import Awaiting, Storing, Writing
from ..worker.threads import Loop

if TYPE_CHECKING:
    from ..board import ShardedBoard
    from .server import TestServer

AT_MOST = 1000


class Killed(BaseException):
    """What a handler of a test raises to be killed there, as by SIGKILL: the worker says nothing more of the
    job, which stays claimed until its lease ends.
    """


class Ran(NamedTuple):
    """One run of a handler, and what has become of its job."""

    id: str
    name: str | None
    queue: str
    attempt: int
    state: str | None
    """`complete`, `failed`, `scheduled` (it will be tried again) …; None: the board has forgotten the job."""
    error: BaseException | None
    """What the handler raised."""


def run_inline(
    board: Board | ShardedBoard,
    *,
    queues: Sequence[Name] | None = None,
    handlers: Handlers | None = None,
    raising: bool = False,
    at_most: int = AT_MOST,
) -> list[Ran]:
    """Runs the handlers of a board until no job is ready, also of those that handlers post; what was run.

    `queues`: those to claim from; as of a `Worker` those of its tasks when None, every queue when empty: so a
    dead queue is not worked off. `handlers`: others than those of the board.
    `raising`: what a handler raises is raised here too, once its job has been ended as a worker ends it.
    `at_most`: raises RuntimeError when more jobs than that are ready.
    """
    inline, loop = Inline(board, queues, handlers, at_most), Loop()
    try:
        for handler, run in inline.runs(raising):
            _refuse_in_loop()
            inline.outcome = loop.perform(inline.performer, handler, run)
    finally:
        loop.close()
        inline.close()
    return inline.ran


async def run_inline_async(
    board: Board | ShardedBoard,
    *,
    queues: Sequence[Name] | None = None,
    handlers: Handlers | None = None,
    raising: bool = False,
    at_most: int = AT_MOST,
) -> list[Ran]:
    """The same inside a running event loop: `async` handlers run in it."""
    inline = Inline(board, queues, handlers, at_most)
    try:
        for handler, run in inline.runs(raising):
            inline.outcome = await inline.performer.perform_async(handler, run.context)
    finally:
        inline.close()
    return inline.ran


class Inline:
    """Claims one job at a time, and takes its end."""

    def __init__(
        self,
        board: Board | ShardedBoard,
        queues: Sequence[Name] | None,
        handlers: Handlers | None,
        at_most: int,
    ) -> None:
        check_whole(at_most, "at_most", 1)
        worker = Worker(board, concurrency=1, queues=queues, handlers=handlers, register=False, listen=False)
        worker.options.burst = True
        self.board, self.at_most = board, at_most
        self.performer = Watching(worker.handlers, board.hook, queues=worker.options.queue_names)
        self.ran: list[Ran] = []
        self.outcome: Outcome = Nothing()
        """Of the run that is under way."""
        self._pool = OneRun()
        self._engine = Engine(board, worker.options, self._pool)
        self._sender = AtOnce(self._engine)
        senders: Any = {shard.key: self._sender for shard in self._engine.shards}
        self._engine.senders = senders

    def runs(self, raising: bool) -> Iterator[tuple[Handler, Run]]:
        """Runs job after job until none is ready. Gives the `async` handlers to its caller, who runs them in
        a loop of its own and puts down the `outcome`.
        """
        for shard in self._engine.shards:
            keep_completed(shard, self._request)
        while (run := self.claim()) is not None:
            handler = self.performer.handler(run.context)
            if handler.is_async:
                yield handler, run
            else:
                self.outcome = self.performer.perform(handler, run.context)
            self.end(run, self.outcome, raising)

    def claim(self) -> Run | None:
        """The next job, if any is ready."""
        for shard in self._engine.shards:
            words = ["JOB.CLAIM", shard.key, self._engine.name, *self._engine.claim_words(shard, 1)]
            [reply] = self._sender.connection.ask([words])
            if isinstance(reply, redis.ResponseError):
                raise translated(reply)
            if self._engine.claimed(shard, replies.unpacked(reply) or ()):
                if len(self.ran) >= self.at_most:
                    self._engine.go_home()
                    raise RuntimeError(
                        f"{self.at_most} jobs were run, and more are ready: does a handler post or give back "
                        "one each time? If not, raise at_most"
                    )
                return self._pool.take()
        return None

    def _request(self, request: Request[Any]) -> Any:
        [reply] = self._sender.connection.ask([request.words])
        if isinstance(reply, redis.ResponseError):
            raise translated(reply)
        return request.parse(reply)

    def end(self, run: Run, outcome: Outcome, raising: bool) -> None:
        job, error = run.job, self.performer.error
        self.performer.error = None
        if isinstance(error, Killed):
            self._engine.leave_to_lease(run)
        self._engine.finished(run, outcome, here=True)
        state = self.board.state(job.id)
        self.ran.append(Ran(job.id, job.name, job.queue, job.attempt, state, error))
        if raising and error is not None:
            raise error

    def close(self) -> None:
        self._sender.connection.close()


class Watching(Performer):
    """Keeps what the handler has raised."""

    error: BaseException | None = None

    def failed(self, error: BaseException, handler: Handler, context: Context) -> Outcome:
        self.error = None if isinstance(error, Waits) else error
        if isinstance(error, Killed):
            return Nothing()
        return super().failed(error, handler, context)


class OneRun:
    """A pool that runs nothing by itself: it keeps the run that was claimed."""

    def __init__(self) -> None:
        self._runs: list[Run] = []

    def start(self, engine: Engine) -> None: ...

    def submit(self, runs: list[Run]) -> None:
        self._runs += runs

    def take(self) -> Run:
        return self._runs.pop()

    def waiting(self) -> int:
        return 0

    def drain(self) -> list[Run]:
        runs, self._runs = self._runs, []
        return runs

    def interrupt(self, run: Run) -> None: ...

    def going_home(self, runs: list[Run]) -> None: ...

    def close(self, kill: bool) -> None: ...


class AtOnce:
    """A sender that sends each report and each end when it is made, and takes the answer."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.connection = connection_of(engine.board.client)

    def report(self, run: Run, fields: Mapping[str, Any]) -> None:
        if "output" in fields:
            fields = {"output": Writing(fields["output"])}
            run.numbered(fields)
        batch = Batch(self.engine, may_register=False)
        batch.add_reports([(run, fields)])
        self._send(batch)

    def flush_reports(self, run: Run, timeout: float | None) -> bool:
        return True

    def store(self, run: Run, name: str, data: bytes, replace: bool) -> bytes | None:
        batch, step = Batch(self.engine, may_register=False), Storing(run, name, data, replace)
        batch.add_steps([step])
        self._send(batch)
        if step.error is not None:
            raise step.error
        return step.value

    def wait(self, run: Run, words: list[Any]) -> dict[bytes, Any]:
        batch, asking = Batch(self.engine, may_register=False), Awaiting(run, words)
        batch.add_steps([asking])
        self._send(batch)
        if asking.error is not None:
            raise asking.error
        return asking.found

    def end(self, run: Run, outcome: Outcome, here: bool) -> None:
        if isinstance(outcome, Nothing):
            self.engine.let_go(run)
            return
        batch = Batch(self.engine, may_register=False)
        batch.add_ends([(run, outcome)])
        self._send(batch)
        for again in batch.instead:
            self.end(*again, here)

    def _send(self, batch: Batch) -> None:
        found = self.connection.ask([words for words, _ in batch.commands])
        for (_, take), reply in zip(batch.commands, found):
            take(reply)


def _refuse_in_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("an async handler, in a running event loop: await run_inline_async(…) instead")


class InlineWorker:
    """What the fixture `jobboard_worker` is: runs handlers until no job is ready, see `run_inline`. Refuses
    boards of other servers.
    """

    def __init__(self, server: TestServer) -> None:
        self.server = server

    def __call__(self, board: Any, **options: Any) -> list[Ran]:
        self.server.refuse_foreign(board)
        return run_inline(board, **options)

    def run_async(self, board: Any, **options: Any) -> Awaitable[list[Ran]]:
        self.server.refuse_foreign(board)
        return run_inline_async(board, **options)
