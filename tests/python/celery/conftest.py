"""Fixtures: `tasks`, the application of celery_tasks.py over `server`; `worker`, which starts Celery's own
worker in a process: worker("--concurrency", "2", session=True)."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import Server, wait_until

pytest.importorskip("celery", reason="needs Celery")

TESTS = Path(__file__).resolve().parents[1]


def url_of(server: Server) -> str:
    return f"jobboard://127.0.0.1:{server.port}/0/board"


class Worker:
    """`celery worker` in a process group of its own, which dies with the test."""

    def __init__(self, server: Server, log: Path, words: tuple[str, ...], options: dict[str, Any]) -> None:
        self.log = log
        self.popen = subprocess.Popen(
            [
                *(sys.executable, "-m", "celery", "-A", "celery_tasks", "worker", "--loglevel", "info"),
                *("--hostname", f"{log.stem}@here", *words),
            ],
            cwd=TESTS,
            env={**os.environ, "CELERY_URL": url_of(server), "CELERY_OPTIONS": json.dumps(options)},
            stdout=log.open("wb"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    @property
    def text(self) -> str:
        return self.log.read_text()

    def ready(self) -> Worker:
        wait_until(lambda: " ready." in self.text or self.popen.poll() is not None, 120)
        assert self.popen.poll() is None, self.text
        return self

    def signal(self, number: int) -> None:
        """To the parent alone."""
        self.popen.send_signal(number)

    def kill(self) -> None:
        """The worker and its pool, as when the machine has no memory left."""
        os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait()

    def close(self) -> None:
        if self.popen.poll() is None:
            self.kill()


@pytest.fixture
def worker(server: Server, tmp_path: Path) -> Iterator[Callable[..., Worker]]:
    started: list[Worker] = []

    def start(*words: str, on: Server = server, **options: Any) -> Worker:
        one = Worker(on, tmp_path / f"worker{len(started)}.log", words or ("--concurrency", "1"), options)
        started.append(one)
        return one.ready()

    yield start
    for one in started:
        one.close()


@pytest.fixture
def tasks_on(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Server], Any]]:
    """The application over a server, in this process."""
    loaded: list[Any] = []

    def load(server: Server) -> Any:
        monkeypatch.setenv("CELERY_URL", url_of(server))
        sys.modules.pop("celery_tasks", None)
        loaded.append(importlib.import_module("celery_tasks"))
        return loaded[-1]

    yield load
    for one in loaded:
        one.app.close()
    sys.modules.pop("celery_tasks", None)


@pytest.fixture
def tasks(tasks_on: Callable[[Server], Any], server: Server) -> Any:
    return tasks_on(server)


@pytest.fixture
def told(server: Server) -> Callable[[], list[str]]:
    return lambda: [str(one) for one in server.client().lrange("told", 0, -1)]
