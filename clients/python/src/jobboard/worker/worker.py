"""The worker, as a program uses it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import redis

from ..arguments import Name, check_choice, check_name, check_names
from ..board import Board
from ..board.sending import Async, Sync
from ..connecting import place_of
from ..durations import Duration, to_ms
from ..handlers import Handlers
from ..pickling import sendable
from . import heeding, journal
from .child import Setup
from .children import ProcessPool
from .claimer import Claimer
from .engine import Engine, Pool, fields_of
from .health import Health
from .listener import Listener
from .logs import configured
from .loop import LoopPool
from .options import MODES, Options, default_concurrency, default_name
from .performer import Performer
from .sender import leave, senders_of
from .threads import ThreadPool

if TYPE_CHECKING:
    from ..board import AsyncBoard, AsyncShardedBoard, ShardedBoard
    from ..board.claiming import Order
    from .options import Interrupt, Mode

log = logging.getLogger("jobboard.worker")

CONNECTIONS = 4
"""Of its client, that a worker takes: to claim, to report, to listen, and to ask for one thing."""

LEAVE_WITHIN = 3.0
"""Seconds to tell the server of the last ends, beyond `stop_within`."""
LOOK = 5.0
"""Seconds between looks whether the server answers."""
SILENT = 30.0
"""Seconds after which a connection without a timeout counts as lost."""
END = 0
"""Ends the list of signals: no signal has this number."""


class Worker:
    """Claims the jobs of a board, runs their handlers, and keeps their leases.

        Worker(board, mode="processes", concurrency=4).run()

    `mode`: `threads` of this process (for what waits on networks and disks), `processes` (for what computes,
    or must be killed), or `asyncio` tasks. Plain and `async` handlers work in each. An `AsyncBoard` has
    `asyncio` alone; claims and leases go over connections of the worker's own.
    `concurrency`: jobs at once; 8 threads, a process for each core, 100 tasks.
    `queues`: those to claim from; those of its tasks when None, every queue when empty. `order`: see
    JOB.CLAIM.
    `name`: the worker's, unique among all that live. When a process starts under it, what an earlier one
    still holds lapses at once: those jobs are ready again, and an earlier one that lives hears that it lost
    them.
    `lease`: how long a job stays ours without a heartbeat; by default what its options or the settings say,
    30 s. There is a heartbeat three times in the shortest of those that the worker holds.
    `prefetch`: how many more jobs are claimed than run, so that short ones (below some ms) travel in batches.
    `block`: how long one claim waits; by default 2 s, or less when the client's socket timeout is short.
    `stop_within`: after SIGTERM running handlers may finish for so long; then their jobs are given back.
    `interrupt`: how a handler is stopped whose job was lost or cancelled: `raise` (by its context's next
    method; an `async` one is cancelled), `flag` (it looks itself), or `kill` (its process, `kill_after` it
    was told). `register`: the worker is listed by JOB.WORKER LIST, with `role`, and can be made quiet there.
    With `session` its claims end at the moment when its connection closes, killed processes' at once.
    `listen`: cancels and losses are heard at once, by Pub/Sub, and not at the next heartbeat only.
    `keep`: completed jobs are kept for an hour, unless the setting `retain-complete` of the board or the
    server says otherwise. With a number, at most so many of them, unless `keep-complete` says otherwise.
    That number counts also jobs with a `retain` of their own. With False the worker sets neither.
    `health_port`, `[host:]port`, answers `/live` and `/ready` for probes; `health_file` is touched while the
    worker is ready.
    `tracebacks`: those of failed tries go into the job's history.
    `fields`: more fields of the jobs, for `context.job`.
    `handlers`: others than those of the board. `target`: where child processes import the board, as
    `module:name`, when it cannot be pickled.
    """

    def __init__(
        self,
        board: Board | ShardedBoard | AsyncBoard | AsyncShardedBoard,
        *,
        mode: Mode | None = None,
        concurrency: int | None = None,
        queues: Sequence[Name] | None = None,
        order: Order | None = None,
        name: str | None = None,
        lease: Duration | None = None,
        prefetch: int = 0,
        block: Duration | None = None,
        stop_within: Duration = "20s",
        interrupt: Interrupt = "raise",
        kill_after: Duration = "0s",
        register: bool = True,
        session: bool = False,
        role: str = "worker",
        listen: bool = True,
        keep: bool | int = True,
        health_port: int | str | None = None,
        health_file: str | os.PathLike[str] | None = None,
        tracebacks: bool = True,
        fields: Sequence[str] = (),
        handlers: Handlers | None = None,
        target: str | None = None,
    ) -> None:
        check_board(board)
        if isinstance(board, Async):
            if mode not in (None, "asyncio"):
                raise ValueError(
                    "handlers of an AsyncBoard share one event loop: mode='asyncio', or take a Board"
                )
            self.board: Board | ShardedBoard = board.blocking()
        else:
            self.board = board
        check_pool(self.board.client)
        if handlers is not None and not isinstance(handlers, Handlers):
            raise TypeError(f"handlers is an object of Handlers, not {handlers!r:.100}")
        if mode is not None:
            check_choice(mode, "mode", MODES)
        if target is not None:
            check_name(target, "target")
        if health_port is not None and not isinstance(health_port, (int, str)):
            raise TypeError(f"health_port is a port, or 'host:port', not {health_port!r:.100}")
        if health_file is not None and not isinstance(health_file, (str, os.PathLike)):
            raise TypeError(f"health_file is the path of a file, not {health_file!r:.100}")
        mode = mode or ("asyncio" if isinstance(board, Async) else "threads")
        self._given = board
        self.handlers = board.handlers if handlers is None else handlers
        if not len(self.handlers):
            raise ValueError(
                "there are no tasks: decorate functions with @board.task(), and import their modules"
            )
        if session and isinstance(board.client, redis.RedisCluster):
            raise ValueError("session=True needs one connection, which a cluster's client does not have")
        self.options = Options(
            mode=mode,
            concurrency=default_concurrency().get(mode, 1) if concurrency is None else concurrency,
            queues=self.handlers.queues() if queues is None else check_names(queues, "queues"),
            order=order,
            name=default_name() if name is None else name,
            named=name is not None,
            lease=None if lease is None else to_ms(lease, "lease"),
            prefetch=prefetch,
            block=None if block is None else to_ms(block, "block"),
            stop_within=to_ms(stop_within, "stop_within"),
            interrupt=interrupt,
            kill_after=to_ms(kill_after, "kill_after"),
            register=register or session,
            session=session,
            role=role,
            listen=listen,
            keep=keep,
            health_port=None if health_port is None else str(health_port),
            health_file=None if health_file is None else os.fspath(health_file),
            tracebacks=tracebacks,
            fields=fields_of(check_names(fields, "fields"), lease),
        )
        self._own_handlers, self._target = handlers, target
        self._engine: Engine | None = None
        self._stops = 0
        self._stop_lock = threading.Lock()
        self._hurry = threading.Event()

    @property
    def name(self) -> str:
        return self.options.name

    @property
    def done(self) -> int:
        """How many jobs it has ended, in whatever way."""
        return 0 if self._engine is None else self._engine.done

    def run(self, *, burst: bool = False, signals: bool = True) -> bool:
        """Works until it is told to stop; whether all that it had begun was finished by then.

        `burst`: until there is no job. `signals`: SIGTERM and SIGINT stop it, when this is the main thread; a
        second one gives back at once what still runs. Raises what no waiting heals (no rights, no such
        option).
        """
        with self._heeding() if signals and _is_main() else contextlib.nullcontext():
            return self._work(self._pool(None), burst)

    async def serve(self, *, burst: bool = False) -> bool:
        """The same inside a running event loop, in which the `async` handlers run (`mode="asyncio"`).

        Cancel it to stop the worker; it heeds no signals, which are the program's.
        """
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(None, self._work, self._pool(loop), burst)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            self.stop()
            await asyncio.shield(work)
            raise

    def stop(self) -> None:
        """Stops it, from any thread: as SIGTERM does. Called twice, it gives back at once what still runs."""
        with self._stop_lock:
            self._stops += 1
            if self._stops > 1:
                self._hurry.set()
        if self._engine is not None:
            self._engine.ask_to_stop()

    def _pool(self, loop: asyncio.AbstractEventLoop | None) -> Pool:
        options = self.options
        performer = Performer(self.handlers, self.board.hook, options.tracebacks, options.queue_names)
        if options.mode == "asyncio":
            return LoopPool(performer, options.concurrency, loop)
        if options.mode == "threads":
            return ThreadPool(performer, options.concurrency)
        kill_after = options.kill_after if options.interrupt == "kill" else None
        return ProcessPool(performer, options.concurrency, self._setup(), kill_after)

    def _setup(self) -> Setup:
        # Without a target children can work without a board of their own; with one they have its parts.
        board = self.board if self._target is None and sendable(self.board) else None
        codec, hook = self.board.codec, self.board.hook
        return Setup(
            target=self._target,
            board=board,
            handlers=self._own_handlers if self._target else self.handlers,
            codec=codec if self._target is None or sendable(codec) else None,
            hook=hook if self._target is None or sendable(hook) else None,
            worker=self.name,
            queues=self.options.queue_names,
            raises=self.options.interrupt != "flag",
            tracebacks=self.options.tracebacks,
            log=configured(),
        )

    def _work(self, pool: Pool, burst: bool) -> bool:
        self.options.burst = burst
        engine = Engine(self.board, self.options, pool, self._given)
        senders = senders_of(engine)
        engine.senders = {shard.key: sender for sender in senders for shard in sender.shards}
        claimer, listener = Claimer(engine), Listener(engine)
        self.health = Health(engine, [claimer, *senders])
        pool.start(engine)
        self._engine = engine
        if self._stops:
            engine.ask_to_stop()
        log.info(
            "%s starts on %s at %s: queues %s; tasks %s; %d %s",
            *(self.name, self.board, place_of(self.board.client)),
            *(", ".join(self.options.queue_names) or "all", self.handlers),
            *(self.options.concurrency, self.options.mode),
        )
        self._warn_of_idle_queues()
        for sender in senders:
            sender.start()
        if self.options.listen:
            listener.start()
        claimer.start()
        self.health.start()
        try:
            while not engine.wants_stop.wait(LOOK):
                claimer.give_up(SILENT)
                for sender in senders:
                    sender.connection.give_up(SILENT)
        finally:
            all_done = self._go_home(engine, claimer)
            listener.close()
            self.health.close()
            pool.close(kill=not all_done)
            with self._stop_lock:  # so that it can run again
                self._stops = 0
                self._hurry.clear()
        if engine.failure is not None:
            raise engine.failure
        return all_done

    def _warn_of_idle_queues(self) -> None:
        """A queue that no task posts to is mostly misspelt, and the worker would be idle without a word."""
        known = self.handlers.queues()
        if (None, None) in [*self.handlers]:  # which does whatever comes
            return
        for queue in self.options.queue_names:
            if queue not in known:
                log.warning(
                    "no task has the queue %s: its jobs come here only if a post names it; the tasks have %s",
                    *(queue, ", ".join(known)),
                )

    def _go_home(self, engine: Engine, claimer: Claimer) -> bool:
        """Lets handlers finish, gives back the rest, and tells the server."""
        engine.claim_no_more()
        claimer.stop()
        running = engine.go_home()
        if running:
            within = self.options.stop_within / 1000
            log.info("%s stops: waits up to %g s for %s", self.name, within, journal.some(running))
        else:
            log.info("%s stops: nothing runs", self.name)
        deadline = time.monotonic() + self.options.stop_within / 1000
        all_done = False
        while not all_done and time.monotonic() < deadline and not self._hurry.is_set():
            left = deadline - time.monotonic()
            all_done = engine.wait_idle(min(left, 0.1) if self._stops else left)
        if not all_done:
            given_back = engine.abandon_all()
            all_done = not given_back
            if given_back:
                log.warning("%s gives back what still runs: %s", self.name, journal.some(given_back))
        if not engine.wait_sent(LEAVE_WITHIN):
            log.warning("%s ends without having told the server of %d jobs", self.name, len(engine.held))
        claimer.join(engine.board.block / 1000 + 1)
        leave(engine.each_sender())
        log.info("%s has stopped: it ended %s", self.name, journal.counted(engine.done, "job", "jobs"))
        return all_done

    @contextlib.contextmanager
    def _heeding(self) -> Iterator[None]:
        """Signals stop the worker. Python writes the number of each into a pipe the moment it comes. It calls
        handlers in the main thread alone, which sleeps on where the system gives a signal to another thread.
        """
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        stops = (signal.SIGTERM, signal.SIGINT)

        def listen() -> None:
            while (number := os.read(reader, 1)[0]) != END:
                if number in stops:
                    self.stop()

        def heed(*_: Any) -> None:
            """That there is a handler is enough."""

        thread = threading.Thread(target=listen, name="jobboard-signals", daemon=True)
        thread.start()
        heeding.heed(stops, heed, writer)
        try:
            yield
        finally:
            heeding.restore()
            os.write(writer, bytes([END]))
            thread.join()
            os.close(reader)
            os.close(writer)


def check_pool(client: Any) -> None:
    """Raises ValueError for a pool in which a worker would wait for its own connections."""
    most = getattr(getattr(client, "connection_pool", None), "max_connections", None)
    if most is not None and most < CONNECTIONS:
        raise ValueError(
            f"a worker takes {CONNECTIONS} connections, and max_connections of its client is {most}: "
            "allow as many, and those that handlers use"
        )


def check_board(board: Any) -> None:
    """Raises TypeError for what a worker cannot work on."""
    if isinstance(board, (list, tuple, set, dict)):
        raise TypeError(
            "a worker works on one board: start a Worker for each, in a thread or process of its own"
        )
    if isinstance(board, str) and ":" in board:
        raise TypeError(
            f"a worker takes the board itself: import it, and write Worker(board, target={board!r}) for "
            f"child processes, or let the command line import it: jobboard worker {board}"
        )
    if not isinstance(board, (Sync, Async)) or not hasattr(board, "handlers"):
        kind = type(board).__name__
        raise TypeError(f"a worker needs a Board or a ShardedBoard with handlers, not an object of {kind}")


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()
