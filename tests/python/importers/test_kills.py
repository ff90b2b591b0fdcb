"""An import of each library is killed at every slice, before or after its removal, and begun again."""

from __future__ import annotations

import argparse
import contextlib
import datetime
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from harness import KINDS, Server
from jobboard.importers import command, moving

from .test_bullmq import make as make_bullmq
from .test_qless import Theirs

STATES = ["scheduled", "blocked", "ready", "claimed", "failed", "trashed"]


class Killed(BaseException):
    """Stands for a kill: nothing of ours catches it."""


def make_rq(server: Server, source: redis.Redis) -> int:
    rq = pytest.importorskip("rq", reason="RQ 3 needs Python 3.10")
    mails = rq.Queue("mails", connection=source)
    jobs = [mails.enqueue("tasks.send", n) for n in range(4)]
    mails.enqueue_in(datetime.timedelta(hours=1), "tasks.send", "later")
    mails.enqueue("tasks.send", "after", depends_on=jobs[3])
    mails.enqueue("tasks.send", "last", depends_on=jobs[2])
    broken = jobs[0]
    source.lrem(mails.key, 0, broken.id)
    broken.set_status("failed")
    source.zadd("rq:failed:mails", {broken.id: 2_000_000_000})
    return 7


def make_qless(server: Server, source: redis.Redis) -> int:
    theirs = Theirs(source)
    for n in range(4):
        theirs.put("mails", f"j{n}", tags=["t"])
    theirs("fail", theirs.pop("mails")["jid"], "their-worker", "kind", "no", "{}")
    theirs.put("mails", "later", delay=3600)
    theirs.put("mails", "last", depends=["j3", "j2"])
    return 6


def make_taskflow(server: Server, source: redis.Redis) -> int:
    jobs = pytest.importorskip("taskflow.jobs.backends", reason="TaskFlow 6.5 needs Python 3.11")
    with jobs.backend("test", {"board": "redis", "port": server.port}) as board:
        posted = [board.post(f"{n}") for n in range(5)]
        board.claim(posted[0], "me")
        board.trash(posted[0], "me")
    return 5


def make_streams(server: Server, source: redis.Redis) -> int:
    source.xgroup_create("mails", "g", "0", mkstream=True)
    for n in range(6):
        source.xadd("mails", {"n": n})
    source.xreadgroup("g", "c", {"mails": ">"}, count=3)
    return 6


def make_bull(server: Server, source: redis.Redis) -> int:
    make_bullmq(server)
    return 13  # the first job of a schedule among them


LIBRARIES: dict[str, tuple[Callable[[Server, redis.Redis], int], list[str]]] = {
    "rq": (make_rq, []),
    "qless": (make_qless, []),
    "taskflow": (make_taskflow, []),
    "streams": (make_streams, ["mails", "--group", "g"]),
    "bullmq": (make_bull, []),
}


@pytest.fixture
def killing(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Imports are killed when they remove their first slice, before or after it by turns. What it was."""
    real = command.make_source
    kills: list[str] = []

    def make_source(*words: Any) -> Any:
        source = real(*words)
        remove, calls = source.remove, []

        def deadly(section: moving.Section, refs: list) -> None:
            calls.append(refs)
            recovering = bool(kills) and kills[-1] == "before" and len(calls) == 1
            if recovering:
                remove(section, refs)
                return
            kills.append("after" if kills and kills[-1] == "before" else "before")
            if kills[-1] == "after":
                remove(section, refs)
            raise Killed

        source.remove = deadly
        return source

    monkeypatch.setattr(command, "make_source", make_source)
    yield kills


@pytest.fixture
def server(pool: Any, library: str, request: pytest.FixtureRequest) -> Iterator[Server]:
    """The kinds of servers by turns, a library on each."""
    kinds = request.config.getoption("--server") or KINDS
    server = pool.borrow(kinds[list(LIBRARIES).index(library) % len(kinds)])
    yield server
    server.check_health()
    server.close_clients()


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_import_that_is_killed_at_every_slice_moves_each_job_once(
    server: Server, source: redis.Redis, killing: list[str], library: str
):
    make, words = LIBRARIES[library]
    jobs = make(server, source)
    parser = argparse.ArgumentParser()
    command.add_command(parser.add_subparsers(required=True))
    url = f"redis://127.0.0.1:{server.port}"
    arguments = parser.parse_args(["import", library, "board", *words, "--slice", "3", "--url", url])
    board = server.board()
    board.set(tombstones=0)
    moved: list[str] = []
    code = None
    while code is None and len(killing) < 50:
        with contextlib.suppress(Killed):
            code = arguments.run(arguments)
        # What is there is taken away: nothing but the note keeps it from being posted again.
        moved += board.list_all(state=STATES, justid=True)
        board.where_all("delete", state=STATES)
    assert code == 0
    assert {"before", "after"} == set(killing)
    assert len(set(moved)) == len(moved) == jobs
    assert not source.keys("*import*")
    assert arguments.run(arguments) == 0, "nothing is left"
    assert board.count(state=STATES) == 0
