"""One suite for every client: tests/conformance has its cases, docs/clients.md says how a client joins.

Calls are asked of a client a line at a time. Workers hash files, often named pipes: a worker stays in
mid-work as long as the scenario keeps the pipe open, so that nothing depends on speed. They talk to the
server through a proxy that can be cut, slowed, and pointed to another server.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from harness import SOON, Board, Server, past, wait_until
from harness.server import ROOT, WITH_ITS_PARENT
from proxy import Proxy

pytestmark = pytest.mark.long

FOLDER = ROOT / "tests" / "conformance"
CLIENTS: dict[str, dict[str, Any]] = json.loads((FOLDER / "clients.json").read_text())["clients"]
CALLS = json.loads((FOLDER / "calls.json").read_text())
SCENARIOS = json.loads((FOLDER / "workers.json").read_text())["scenarios"]
CALLERS = [name for name, client in CLIENTS.items() if "calls" in client]
SHORT = [client["short"] for client in CLIENTS.values() if "short" in client]


def words_of(client: str, what: str) -> list[str]:
    """The program of a client; the test is skipped where its language cannot be had."""
    words = [sys.executable if word == "python" else word for word in CLIENTS[client][what]]
    missing = ROOT / "target" / "examples" / client / "missing"
    if missing.exists():
        pytest.skip(f"{client}: {missing.read_text().strip()}")
    program = next(ROOT / word for word in words if "/" in word and not word.startswith(sys.executable))
    assert program.exists(), f"{program} is missing: run scripts/languages"
    return [str(program) if ROOT / word == program else word for word in words]


# Calls


class Caller:
    """A client that answers calls."""

    def __init__(self, client: str, port: int) -> None:
        words = [*words_of(client, "calls"), "--port", str(port)]
        self.process = subprocess.Popen(
            [*WITH_ITS_PARENT, *words],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream
            stream.close()


@pytest.fixture(params=CALLERS, scope="module")
def caller(request: pytest.FixtureRequest, pool) -> Iterator[tuple[Caller, Server]]:
    server = pool.borrow(CLIENTS[request.param]["server"])
    caller = Caller(request.param, server.port)
    yield caller, server
    caller.close()
    server.check_health()


def matches(found: Any, wanted: Any) -> bool:
    """Of a map only what is wanted counts."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(name in found and matches(found[name], one) for name, one in wanted.items())
    if isinstance(wanted, list) and isinstance(found, list):
        return len(found) == len(wanted) and all(map(matches, found, wanted))
    return found == wanted


@pytest.mark.parametrize("case", CALLS["cases"], ids=lambda case: case["name"].replace(" ", "-"))
def test_calls(caller: tuple[Caller, Server], case: dict[str, Any]) -> None:
    client, server = caller
    admin = server.client()
    admin.flushall()
    known: dict[str, Any] = {}

    def filled(value: Any) -> Any:
        return known[value[1:]] if isinstance(value, str) and value.startswith("$") else value

    for step in case["steps"]:
        if "server" in step:
            assert admin.execute_command(*step["server"]) == step["returns"], step
            continue
        expected = ("returns", "raises", "detail", "as", "sorted")
        request = {name: filled(value) for name, value in step.items() if name not in expected}
        answer = client.ask(request)
        assert ("raises" in answer) == ("raises" in step), f"{step}: {answer}"
        if "raises" in step:
            assert answer["raises"] == step["raises"], f"{step}: {answer}"
            assert answer.get("detail") == step["detail"] if "detail" in step else True, f"{step}: {answer}"
            continue
        found = answer["returns"]
        if "returns" in step:
            assert matches(sorted(found) if "sorted" in step else found, step["returns"]), f"{step}: {answer}"
        for name, field in step.get("as", {}).items():
            known[name] = found[0][field]


def test_durations(caller: tuple[Caller, Server]) -> None:
    client, _ = caller
    for text, ms in CALLS["durations"].items():
        answer = client.ask({"call": "duration", "text": text})
        assert answer.get("returns") == ms, f"{text!r}: {answer}"
        assert ms is not None or answer["raises"] == "argument"


# Workers


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
            wait_until(lambda: select.select([], [self.descriptor], [], 1)[1], what="room in the pipe")
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


class Scenario:
    """Does the steps of a scenario: each step is a method named as its first key."""

    def __init__(self, client: str, server: Server, folder: Path) -> None:
        self.client, self.server, self.folder = client, server, folder
        self.proxy = Proxy(server.port)
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self.pipes: dict[str, Pipe] = {}
        self.digests: dict[str, str] = {}
        self.tokens: dict[str, int] = {}
        self.extra: list[Server] = []
        self.boards: dict[int, Board] = {}
        """By the port of their server."""

    def run(self, steps: list[dict[str, Any]]) -> None:
        for step in steps:
            verb = next(iter(step))
            getattr(self, verb)(step[verb], **{name: one for name, one in step.items() if name != verb})

    def close(self) -> None:
        for worker in self.workers.values():
            worker.kill()
            worker.wait()
        self.proxy.close()
        for server in self.extra:
            server.close()
        for log in self.folder.glob("*.log"):
            print(log.name, log.read_text(errors="replace"), sep="\n")

    # Jobs

    def post(
        self, ids: Any, files: bool = False, missing: bool = False, name: str = "checksum", **options: Any
    ) -> None:
        for id in [ids] if isinstance(ids, str) else ids:
            path = self.folder / f"{id} é"
            if files:
                path.write_bytes(os.urandom(100_000))
                self.digests[id] = hashlib.sha256(path.read_bytes()).hexdigest()
            elif not missing:
                self.pipes[id] = Pipe(path)
            self.server.board().post(str(path), id_=id, name=name, **options)

    def reads(self, id: str) -> None:
        self.pipes[id].wait_for_reader()

    def write(self, id: str) -> None:
        self.pipes[id].write(os.urandom(300_000) if self.server.alive else b"more")

    def end(self, id: str) -> None:
        self.digests[id] = self.pipes[id].end()

    def stops(self, id: str) -> None:
        self.pipes[id].write_until_broken()

    def record(self, id: str) -> dict[str, Any]:
        """`{}` while the server is away."""
        if self.server.port not in self.boards:
            self.boards[self.server.port] = self.server.board()
        with contextlib.suppress(redis.ConnectionError, redis.ResponseError):
            found: dict[str, Any] = self.boards[self.server.port].get(id) or {}
            return found
        return {}

    def wanted(self, id: str, wanted: dict[str, Any]) -> dict[str, Any]:
        return {name: self.digests[id] if one == "digest" else one for name, one in wanted.items()}

    def becomes(self, ids: Any, **wanted: dict[str, Any]) -> None:
        for id in [ids] if isinstance(ids, str) else ids:
            one = self.wanted(id, wanted["is"])
            try:
                wait_until(lambda id=id, one=one: matches(self.record(id), one))
            except AssertionError as error:
                raise AssertionError(f"{id} has not become {one}, but is {self.record(id)}") from error

    def now(self, ids: Any, **wanted: dict[str, Any]) -> None:
        for id in [ids] if isinstance(ids, str) else ids:
            found, one = self.record(id), self.wanted(id, wanted["is"])
            assert matches(found, one), f"{id} is {found}, not {one}"

    def past_deadline(self, id: str) -> None:
        past(self.record(id)["deadline"])

    def new_file(self, id: str, before: str) -> None:
        """Puts another file in its place: a worker that has opened the old one goes on reading that."""
        self.pipes[before] = self.pipes[id]
        self.pipes[id].path.unlink()
        self.pipes[id] = Pipe(self.pipes[id].path)

    def keep_token(self, id: str) -> None:
        self.tokens[id] = self.record(id)["token"]

    def has_new_token(self, id: str) -> None:
        assert self.record(id)["token"] > self.tokens[id]

    # Workers

    def start(
        self, name: str, lease: int = 3 * SOON, also: str | None = None, process: str | None = None
    ) -> None:
        """`process`: what later steps call it, when another one has its name."""
        words = ["--port", self.proxy.port, "--board", "board", "--name", name, "--lease", lease]
        words += [] if also is None else ["--also", also]
        process = process or name
        with (self.folder / f"{process}.log").open("ab") as log:
            self.workers[process] = subprocess.Popen(
                [*WITH_ITS_PARENT, *words_of(self.client, "work"), *map(str, words)],
                cwd=ROOT,
                stdout=log,
                stderr=log,
            )

    def kill(self, name: str) -> None:
        self.workers[name].kill()
        self.workers[name].wait()
        if all(worker.poll() is not None for worker in self.workers.values()):
            # No claim of it comes late to the server, or waits there, and is answered with a job.
            with redis.Redis(port=self.proxy.port) as last:
                last.ping()
            self.proxy.cut()
            self.waiting(0)

    def terminate(self, name: str, exits: int | None = None) -> None:
        self.workers[name].terminate()
        if exits is not None:
            self.exited(name, **{"is": exits})

    def exited(self, name: str, **wanted: int) -> None:
        assert self.workers[name].wait(60) == wanted["is"]

    def alive(self, name: str) -> None:
        time.sleep(0.3)
        assert self.workers[name].poll() is None

    # The server

    def do(self, words: list[Any]) -> None:
        self.server.client().execute_command(*words)

    def waiting(self, count: int) -> None:
        """Until so many claims wait."""
        wait_until(lambda: self.server.client().info("clients")["blocked_clients"] == count)

    def claims(self, count: int) -> None:
        """Until so many more claims were answered."""

        def answered() -> int:
            stats = self.server.client().info("commandstats")
            return sum(one["calls"] for name, one in stats.items() if name.upper() == "CMDSTAT_JOB.CLAIM")

        before = answered()
        wait_until(lambda: answered() >= before + count, what="more claims")

    def cut(self, id: Any) -> None:
        """Ends all connections; with an id, until its lease is kept again."""
        before = 0 if id is True else self.record(id)["deadline"]
        self.proxy.cut()

        def kept() -> bool:
            record = self.record(id)
            assert "deadline" in record, f"{id} is held no more: {record}"
            return bool(record["deadline"] > before)

        if id is not True:
            wait_until(kept, what="it keeps its lease again")

    def slow(self, ms: int) -> None:
        self.proxy.delay = ms / 1000

    def stop_server(self, _: bool) -> None:
        self.server.stop()

    def start_server(self, _: bool) -> None:
        time.sleep(1)
        self.server.start()

    def failover(self, _: bool) -> None:
        """Another server takes over, which has all that the first one had."""
        replica = Server(self.server.kind, replicaof=self.server)
        self.extra.append(replica)
        replica.wait_synced(self.server)
        replica.client().replicaof("NO", "ONE")
        self.proxy.target = replica.port
        self.proxy.cut()
        self.server = replica


def runs() -> Iterator[Any]:
    """The packages have every scenario each time; the examples every third, but in `make ci`."""
    examples = [client for client, described in CLIENTS.items() if "calls" not in described]
    for client, described in CLIENTS.items():
        for at, scenario in enumerate(SCENARIOS):
            if set(scenario.get("needs", ())) - set(described.get("can", ())):
                continue
            left = client in examples and (examples.index(client) + at) % 3
            name = f"{client}-{re.sub(r'[ ,]+', '-', scenario['name'])}"
            yield pytest.param(client, scenario, id=name, marks=[pytest.mark.thorough] if left else [])


@pytest.mark.parametrize(("client", "scenario"), [*runs()])
def test_workers(client: str, scenario: dict[str, Any], pool, tmp_path: Path) -> None:
    kind = CLIENTS[client]["server"]
    alone = scenario.get("alone", False)
    server = Server(kind, appendonly=True) if alone else pool.borrow(kind)
    running = Scenario(client, server, tmp_path)
    try:
        running.run(scenario["steps"])
        server.check_health()
    finally:
        running.close()
        server.close() if alone else server.close_clients()


@pytest.mark.parametrize("path", SHORT)
def test_each_example_is_short(path: str) -> None:
    lines = (ROOT / path).read_text().splitlines()
    assert len([line for line in lines if line.strip() and not re.match(r"\s*//", line)]) < 100
