"""The workers of examples/node, examples/go and examples/rust, built by scripts/languages.

Their work is to hash a file. Here a file is often a named pipe: a worker stays in mid-work for as long as the
test keeps the pipe open, so that no test depends on speed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import select
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness import SOON, Board, Server, past, wait_until
from harness.server import ROOT, _die_with_parent

pytestmark = pytest.mark.long

BUILT = ROOT / "target" / "examples"
COMMANDS = {
    "node": ["node", str(BUILT / "node" / "checksum_worker.js")],
    "go": [str(BUILT / "go" / "checksum_worker")],
    "rust": [str(BUILT / "rust" / "release" / "checksum-worker")],
}
KINDS = {"node": "redis82", "go": "valkey91", "rust": "redis70"}
"""The server that each language meets: the commands are tested on every one elsewhere."""

SOURCES = {
    "node": "node/checksum_worker.js",
    "go": "go/checksum_worker.go",
    "rust": "rust/src/main.rs",
}
LEASE = SOON
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture(params=list(COMMANDS))
def language(request: pytest.FixtureRequest) -> str:
    missing = BUILT / request.param / "missing"
    if missing.exists():
        pytest.skip(f"{request.param}: {missing.read_text().strip()}")
    program = Path(COMMANDS[request.param][-1])
    assert program.exists(), f"{program} is missing: run scripts/languages"
    return request.param


@pytest.fixture
def server(language: str, pool) -> Iterator[Server]:
    server = pool.borrow(KINDS[language])
    yield server
    server.check_health()
    server.close_clients()


@pytest.fixture
def start(language: str, server: Server, tmp_path: Path) -> Iterator[Start]:
    """Starts a worker of the language by its name."""
    started = []

    def worker(name: str, lease: int = LEASE) -> subprocess.Popen[bytes]:
        words = ["--port", server.port, "--board", "board", "--name", name, "--lease", lease]
        with (tmp_path / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [*COMMANDS[language], *map(str, words)], stdout=log, stderr=log, preexec_fn=_die_with_parent
            )
        started.append(process)
        return process

    yield worker
    for process in started:
        process.kill()
        process.wait()
    for log in tmp_path.glob("*.log"):
        print(log.name, log.read_text(), sep="\n")


class Pipe:
    """A named pipe that a job names as its file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.written = hashlib.sha256()
        os.mkfifo(path)

    def wait_for_reader(self) -> None:
        """Until a worker has begun to read."""

        def opened() -> bool:
            with contextlib.suppress(OSError):
                self.descriptor = os.open(self.path, os.O_WRONLY | os.O_NONBLOCK)
                return True
            return False

        wait_until(opened, what="a worker reads the pipe")
        self.written = hashlib.sha256()
        self.write(b"begun")

    def write(self, data: bytes) -> None:
        while data:
            select.select([], [self.descriptor], [], 5)
            taken = os.write(self.descriptor, data)
            self.written.update(data[:taken])
            data = data[taken:]

    def end(self) -> str:
        """Ends the file; the digest of what was written to it."""
        os.close(self.descriptor)
        return self.written.hexdigest()

    def write_until_broken(self) -> None:
        """Until the worker has stopped reading."""
        end = time.monotonic() + 60
        with contextlib.suppress(BrokenPipeError):
            while time.monotonic() < end:
                with contextlib.suppress(BlockingIOError):
                    os.write(self.descriptor, bytes(1 << 16))
                time.sleep(0.01)
            raise AssertionError("the worker still reads")
        os.close(self.descriptor)


@pytest.fixture
def pipe(tmp_path: Path) -> Pipe:
    return Pipe(tmp_path / "pipe")


def state(board: Board, id: str) -> str | None:
    record = board.get(id, fields=["state"])
    return record and record["state"]


def deadline(board: Board, id: str) -> int:
    return board.get(id, fields=["deadline"])["deadline"]


def finished(board: Board, id: str) -> str:
    """Waits for the end of the job; its result."""
    wait_until(lambda: state(board, id) == "complete", what=f"{id} is complete")
    return board.get(id, fields=["result"])["result"]


def stop(process: subprocess.Popen[bytes]) -> int:
    process.terminate()
    return process.wait(60)


def test_files_are_hashed_and_what_cannot_be_read_fails(board: Board, start: Start, tmp_path: Path) -> None:
    files = {}
    for number in range(30):
        path = tmp_path / f"file {number} é"
        path.write_bytes(os.urandom(number * 40_000))
        files[board.post(str(path))] = hashlib.sha256(path.read_bytes()).hexdigest()
    lost = board.post(str(tmp_path / "none"))
    folder = board.post(str(tmp_path))
    workers = [start("w1"), start("w2")]
    assert {id: finished(board, id) for id in files} == files
    for id in (lost, folder):
        wait_until(lambda id=id: state(board, id) == "failed")
        record = board.get(id, fields=["kind", "message", "attempt"])
        assert record["kind"] == "unreadable" and record["message"] and record["attempt"] == 1
    assert [stop(worker) for worker in workers] == [0, 0]


def test_heartbeats_keep_the_lease_and_a_killed_worker_is_followed(
    board: Board, start: Start, pipe: Pipe
) -> None:
    board.post(str(pipe.path), id_="a")
    first = start("w1")
    pipe.wait_for_reader()
    past(deadline(board, "a"))
    record = board.get("a", fields=["state", "worker", "attempt"])
    assert record == {"state": "claimed", "worker": "w1", "attempt": 1}
    second = start("w2")
    first.kill()
    first.wait()
    pipe.end()
    wait_until(lambda: board.get("a", fields=["worker"]).get("worker") == "w2")
    pipe.wait_for_reader()
    pipe.write(os.urandom(300_000))
    digest = pipe.end()
    assert finished(board, "a") == digest
    assert board.get("a", fields=["attempt"]) == {"attempt": 2}
    assert stop(second) == 0


def test_a_restarted_worker_gets_back_what_it_held(board: Board, start: Start, pipe: Pipe) -> None:
    board.post(str(pipe.path), id_="a")
    first = start("w1", lease=60_000)
    pipe.wait_for_reader()
    first.kill()
    first.wait()
    pipe.end()
    start("w1", lease=60_000)
    pipe.wait_for_reader()
    digest = pipe.end()
    assert finished(board, "a") == digest
    assert board.get("a", fields=["attempt"]) == {"attempt": 1}


def test_sigterm_finishes_the_file_at_hand_and_abandons_the_rest(
    board: Board, start: Start, pipe: Pipe, tmp_path: Path
) -> None:
    (tmp_path / "small").write_bytes(b"x")
    board.post(str(pipe.path), id_="a", priority=1)
    board.post(str(tmp_path / "small"), id_="b")
    board.post(str(tmp_path / "small"), id_="c")
    worker = start("w1", lease=60_000)
    pipe.wait_for_reader()
    assert state(board, "c") == "claimed"
    worker.terminate()
    time.sleep(0.3)
    assert worker.poll() is None
    pipe.write(b"more")
    digest = pipe.end()
    assert worker.wait(60) == 0
    assert board.get("a", fields=["state", "result"]) == {"state": "complete", "result": digest}
    for id in ("b", "c"):
        assert state(board, id) == "ready"


def test_an_idle_worker_stops_at_once(board: Board, start: Start, server: Server) -> None:
    worker = start("w1")
    wait_until(lambda: waiting(server))
    assert stop(worker) == 0


@pytest.mark.parametrize("how", ["released", "cancelled", "deleted"])
def test_a_job_that_is_taken_away_stops_the_work(board: Board, start: Start, pipe: Pipe, how: str) -> None:
    board.post(str(pipe.path), id_="a")
    worker = start("w1")
    pipe.wait_for_reader()
    if how == "released":
        board.pause()
        board.release("a")
    elif how == "cancelled":
        board.cancel("a")
    else:
        board.delete("a")
    pipe.write_until_broken()
    wait_until(lambda: state(board, "a") == {"released": "ready", "cancelled": "cancelled"}.get(how))
    assert stop(worker) == 0


def test_a_killed_connection_costs_nothing(board: Board, start: Start, pipe: Pipe, server: Server) -> None:
    board.post(str(pipe.path), id_="a")
    worker = start("w1")
    pipe.wait_for_reader()
    for _ in range(3):
        before = deadline(board, "a")
        kill_connections(server)
        wait_until(lambda: deadline(board, "a") > before, what="it keeps its lease again")  # noqa: B023
    pipe.write(b"more")
    digest = pipe.end()
    kill_connections(server)
    assert finished(board, "a") == digest
    record = board.get("a", fields=["attempt", "previous"])
    assert record == {"attempt": 1, "previous": "w1"}

    other = Pipe(pipe.path.with_name("other"))
    wait_until(lambda: waiting(server))
    kill_connections(server)  # in mid-claim
    board.post(str(other.path), id_="b")
    other.wait_for_reader()
    digest = other.end()
    assert finished(board, "b") == digest
    assert stop(worker) == 0


def waiting(server: Server) -> bool:
    return server.client().info("clients")["blocked_clients"] == 1


def kill_connections(server: Server) -> None:
    """All of them but this one: those of the worker."""
    server.client().execute_command("CLIENT", "KILL", "SKIPME", "yes", "TYPE", "normal")


def test_a_server_that_restarts_is_waited_for(language: str, tmp_path: Path) -> None:
    server = Server(KINDS[language], appendonly=True)
    pipe = Pipe(tmp_path / "pipe")
    board = server.board()
    board.post(str(pipe.path), id_="a")
    words = ["--port", server.port, "--board", "board", "--name", "w1", "--lease", LEASE]
    worker = subprocess.Popen([*COMMANDS[language], *map(str, words)], preexec_fn=_die_with_parent)
    try:
        pipe.wait_for_reader()
        server.stop()
        pipe.write(b"more")
        digest = pipe.end()
        time.sleep(1)
        assert worker.poll() is None
        server.start()
        assert finished(server.board(), "a") == digest
        assert server.board().get("a", fields=["attempt"]) == {"attempt": 1}
        assert stop(worker) == 0
        server.check_health()
    finally:
        worker.kill()
        worker.wait()
        server.close()


@pytest.mark.parametrize("name", SOURCES)
def test_each_is_short(name: str) -> None:
    code = [
        line
        for line in (ROOT / "examples" / SOURCES[name]).read_text().splitlines()
        if line.strip() and not re.match(r"\s*//", line)
    ]
    assert len(code) < 100
