"""The examples of clients/python/README.md run, in their order."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import jobboard
import pytest
from jobboard import Worker
from jobboard.cli import build_parser

ROOT = Path(__file__).resolve().parents[3]
README = (ROOT / "clients/python/README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_examples_run(server, capsys, monkeypatch) -> None:
    monkeypatch.setenv("JOBBOARD_URL", f"redis://127.0.0.1:{server.port}")
    module = ModuleType("app")
    monkeypatch.setitem(sys.modules, "app", module)
    names = vars(module)
    for number, block in enumerate(BLOCKS):
        code = block.replace("redis.Redis()", f"redis.Redis(port={server.port})")
        exec(compile(code, f"README, block {number + 1}", "exec"), names)
        if number == 1:
            assert Worker(names["board"]).run(burst=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == ["Hello ann", "complete", "complete None None", "posted"]
    assert lines[-2:] == ["cat.png: 100 bytes", "3"]
    board = names["board"]
    board.resume()
    names["upload"].using(id="u", retain="1m").post("a")
    Worker(board).run(burst=True)
    job = board.get("u")
    assert (job.state, job.payload, job.meta) == ("complete", {"url": "a", "start": 10}, {"host": "web-1"})
    assert not board.count(queue="bulk")
    assert board.schedule_get("resize")["payload"] == {"url": "logo.png"}


def test_the_commands_are_understood(monkeypatch) -> None:
    monkeypatch.setenv("JOBBOARD_URL", "redis://127.0.0.1:1")
    lines = [line.strip().split("#")[0] for line in README.splitlines() if line.startswith("    jobboard ")]
    assert len(lines) > 5
    for line in lines:
        build_parser().parse_args(shlex.split(line)[1:])


def test_names_in_the_text_exist() -> None:
    for name in re.findall(r"`(?:board|context|shop)\.(\w+)", README):
        assert any(hasattr(kind, name) for kind in (jobboard.Board, jobboard.Context)) or name in (
            *("going_home", "cancelled", "lost"),
        ), name


@pytest.mark.parametrize(
    "name", ["Complete", "Next", "Retry", "NoRetry", "Abandon", "Trash", "Lost", "GoHome"]
)
def test_what_handlers_say_is_exported(name) -> None:
    assert f"{name}" in README and hasattr(jobboard, name)


def test_redis_py_and_msgspec_are_all_that_it_needs() -> None:
    extras = ["rich", "pydantic", "opentelemetry", "cryptography", "sentry_sdk", "taskflow"]
    code = f"import sys; sys.modules.update(dict.fromkeys({extras})); import jobboard.cli"
    subprocess.run([sys.executable, "-c", code], check=True)
