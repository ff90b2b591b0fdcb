"""`jobboard serve`: runs a server with the module on a data folder, and the console, until a signal ends it.

In this order, and back in the other one: the parts are found (parts.py), the folder is taken (folder.py),
the ports are chosen (ports.py), the server starts (process.py, reasons.py), then the console (console.py),
and the demo when it is wanted (demo.py). What is not as it has to be is a `CannotServe`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn

from .. import __version__
from ..escaping import escaped
from .cannot import CannotServe
from .checksums import NAME as BOARD
from .console import ConsoleProcess
from .demo import Demo
from .folder import DataFolder, default_folder
from .parts import find_console, find_module, find_server
from .ports import choose
from .process import ServerProcess, quoted

DURABLE = (
    "appendonly yes",
    "appendfsync everysec",
    "no-appendfsync-on-rewrite no",
    "maxmemory-policy noeviction",
)
LOOK_EVERY = 0.2
"""Seconds between two looks at whether all that was started still runs."""
DISK_EVERY = 25
"""Looks between two at the disk."""
SAY_AFTER = 2.0
"""Seconds of loading after which a word about it is due."""


class Settings(NamedTuple):
    """The options of `jobboard serve`, see commands/serve.py."""

    folder: Path | None = None
    temporary: bool = False
    port: int = 6379
    console_port: int = 8379
    any_port: bool = False
    with_password: bool = True
    with_console: bool = True
    write: bool = False
    server: str | None = None
    module: str | None = None
    console: str | None = None
    config: Path | None = None
    demo: Path | None = None
    workers: int = 4
    once: bool = False


class Told(BaseException):
    """Somebody wants it to stop."""


def serve(settings: Settings) -> int:
    """Serves until SIGTERM, SIGINT or SIGHUP; returns 0, or 1 when the demo has failed or jobs are unwritten.
    Raises `CannotServe` when the server ends by itself.
    """
    try:
        return _serve(settings)
    except Told:  # before anything had been started
        return 0


def _serve(settings: Settings) -> int:
    server = None
    with Signals() as signals, contextlib.ExitStack() as stack:
        try:
            folder, server, console = _start(settings, stack, signals)
            _say_where(settings, folder, server, console)
            if settings.demo is not None:
                if not Demo(server.url, settings.demo, settings.workers, check=signals.check).run():
                    return 1
                if settings.once:
                    return 0
            _say_what_next(settings, folder, server)
            _watch(server, console, signals)
        except Told:
            signals.heeded = False
            _say("Saving, and ending.")
            return 0 if server is None or _has_written(server, signals) else 1
        finally:
            signals.heeded = False


def _start(
    settings: Settings, stack: contextlib.ExitStack, signals: Signals
) -> tuple[DataFolder, ServerProcess, ConsoleProcess | None]:
    program, module = find_server(settings.server), find_module(settings.module)
    console_path = find_console(settings.console) if settings.with_console else None
    more = [] if settings.config is None else [f"include {quoted(_file(settings.config))}"]
    folder = DataFolder(_path(settings, stack))
    stack.callback(folder.close)
    folder.open()
    port = choose(settings.port, "--port", other=settings.any_port)
    password = folder.password() if settings.with_password else None
    server = ServerProcess(
        program,
        module,
        folder.path,
        port=port,
        password=password,
        config=[*DURABLE, *more],
        keep=[folder.lock],
        written_by=folder.written_by,
    )
    stack.callback(server.stop)
    console = None
    if console_path is not None:
        console_port = choose(settings.console_port, "--console-port", other=settings.any_port)
        console = ConsoleProcess(
            *(console_path, folder.path),
            url=server.url,
            password=password,
            port=console_port,
            write=settings.write,
        )
        stack.callback(console.stop)
    page = console and console.url
    folder.say({"process": os.getpid(), "address": server.address, "console": page})
    server.start(_Loading(signals))
    folder.mark(program.version)
    stack.callback(folder.forget_url)
    folder.say_url(server.url)
    _say(f"{program.version} with jobboard {__version__} at {server.address}, data in {folder.path}")
    _warn_of_broken(server)
    if console is not None:
        console.start()
    return folder, server, console


def _path(settings: Settings, stack: contextlib.ExitStack) -> Path:
    if settings.temporary:
        return stack.enter_context(_temporary_folder())
    return settings.folder or default_folder()


@contextlib.contextmanager
def _temporary_folder() -> Iterator[Path]:
    """Removed at the end, unless the sentence that says why the server failed names a file in it."""
    path, keep = Path(tempfile.mkdtemp(prefix="jobboard-")), False
    try:
        yield path
    except CannotServe as failure:
        keep = str(path) in str(failure)
        raise
    finally:
        if not keep:
            shutil.rmtree(path)


def _file(path: Path) -> Path:
    if not path.is_file():
        raise CannotServe(f"--config: there is no file {path}")
    return path.resolve()


class _Loading:
    """Says once that the server is loading, when that takes long."""

    def __init__(self, signals: Signals) -> None:
        self._signals, self._due = signals, time.monotonic() + SAY_AFTER

    def __call__(self) -> None:
        self._signals.check()
        if time.monotonic() > self._due:
            self._due = float("inf")
            _say("The server is loading its data.")


def _warn_of_broken(server: ServerProcess) -> None:
    """A board that could not be loaded is kept as it is, and the others are served."""
    with server.connect() as client:
        broken = int(client.info("jobboard").get("jobboard_broken_boards", 0))
    if broken:
        what = "1 board" if broken == 1 else f"{broken} boards"
        _say(f"Warning: {what} could not be read: commands answer BROKEN, {server.log_file} says why.")


def _say_where(
    settings: Settings, folder: DataFolder, server: ServerProcess, console: ConsoleProcess | None
) -> None:
    """The password is shown on a terminal alone: what goes elsewhere is often kept, and read by others."""
    lines = ["", f"  server   redis://{server.address}"]
    if console is not None:
        lines += [f"  console  {console.url}"]
    elif settings.with_console:
        lines += ["  console  none is installed here: the wheel jobboard-server has it"]
    if server.password is not None:
        shown = server.password if sys.stdout.isatty() else f"the line in {folder.password_file}"
        lines += ["  user     default", f"  password {shown}"]
    for line in [*lines, ""]:
        _say(line)


def _say_what_next(settings: Settings, folder: DataFolder, server: ServerProcess) -> None:
    board = "mails" if settings.demo is None else BOARD
    url = server.url if server.password is None else f"$(cat {shlex.quote(str(folder.url_file))})"
    lines = [
        *("In another terminal:", ""),
        f"  export JOBBOARD_URL={url}",
        f'  jobboard post {board} \'{{"to": "ann"}}\' --name welcome',
        f"  jobboard list {board}",
        f"  jobboard top {board}",
        *("", f"Ctrl-C here, or `kill {os.getpid()}`, saves and ends."),
    ]
    for line in lines:
        _say(line)


def _watch(server: ServerProcess, console: ConsoleProcess | None, signals: Signals) -> NoReturn:
    full = False
    for number in itertools.count():
        signals.check()
        if server.ended:
            break
        if number % DISK_EVERY == 0 and full != bool(server.unwritten()):
            full = not full
            _tell(f"{_no_room(server)}: the server refuses changes" if full else "there is room again")
        if console is not None and console.ended:
            _tell(f"the console has ended: {console.last_words()}")
            console = None
        time.sleep(LOOK_EVERY)
    raise CannotServe(server.last_words())


def _has_written(server: ServerProcess, signals: Signals) -> bool:
    """Waits until the disk has taken all that was acknowledged; False when a second signal ends the wait."""
    if not server.unwritten():
        return True
    _tell(f"{_no_room(server)}: free some, and it ends. Another signal ends it without them")
    try:
        signals.heeded, signals.told = True, False
        while not server.ended and server.unwritten():
            signals.check()
            time.sleep(LOOK_EVERY)
    except Told:
        return False
    finally:
        signals.heeded = False
    return True


def _no_room(server: ServerProcess) -> str:
    return f"no room for {server.unwritten()} bytes on the disk of {server.folder}"


class Signals:
    """SIGTERM, SIGINT and SIGHUP raise `Told`: the first of them, and only while they are heeded. A SIGHUP
    that was ignored before (nohup) stays so.

    Python drops what is raised while a destructor runs, so whoever waits in a loop has to `check` too.
    """

    def __init__(self) -> None:
        self.heeded, self.told = True, False

    def check(self) -> None:
        if self.heeded and self.told:
            raise Told

    def __enter__(self) -> Signals:
        numbers = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
        if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
            numbers.remove(signal.SIGHUP)
        self._old = {number: signal.signal(number, self._heed) for number in numbers}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)

    def _heed(self, *_: object) -> None:
        if not self.told:
            self.told = True
            self.check()


def _say(line: str) -> None:
    print(escaped(line), flush=True)


def _tell(problem: str) -> None:
    print(f"jobboard: {escaped(problem)}", file=sys.stderr, flush=True)
