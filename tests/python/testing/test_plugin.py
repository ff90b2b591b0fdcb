"""The fixtures of pytest, in a pytest of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from harness import executable
from harness.server import MODULE, ROOT

README = (ROOT / "clients/python/README.md").read_text()


@pytest.fixture
def outcome(tmp_path: Path):
    """Runs the tests of a folder: what was printed, after so many have passed and none has failed."""

    def run(passed: int, *words: str, **files: str) -> str:
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text)
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
            "JOBBOARD_MODULE": str(MODULE),
            "JOBBOARD_URL": "redis://127.0.0.1:1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": str(ROOT / "clients/python/src"),  # an editable install keeps a copy of the plugin
        }
        plugin = ["-p", "jobboard_pytest", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "--rootdir", tmp_path, *plugin, *words, tmp_path],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert re.search(rf"^{passed} passed in", done.stdout, re.MULTILINE), done.stdout + done.stderr
        return done.stdout

    return run


def test_the_example_of_the_readme(outcome) -> None:
    app = re.search(r"```python\n(# app\.py\n.*?)```", README, re.DOTALL)[1]
    test = re.search(r"```python test\n(# test_app\.py\n.*?)```", README, re.DOTALL)[1]
    assert len([line for line in test.splitlines() if line.strip() and not line.startswith("#")]) <= 10
    outcome(1, app=app, test_app=test)


def test_the_example_without_pytest(monkeypatch) -> None:
    monkeypatch.setenv("JOBBOARD_MODULE", str(MODULE))
    code = re.search(r"```python test\n(from jobboard\.testing.*?)```", README, re.DOTALL)[1]
    exec(compile(code, "README", "exec"), {})


TESTS = r"""
import os
import pytest
from jobboard import Board

pids = set()
board = Board("mails", "redis://127.0.0.1:1")


@board.handler()
def handler(context, payload):
    return payload


def test_first(jobboard):
    pids.add(jobboard.client.info("server")["process_id"])
    jobboard.board("mails").post(1, id="a")
    jobboard.clock.advance("30d")
    jobboard.use(board)
    assert board.get("a")


def test_second(jobboard, jobboard_worker):
    pids.add(jobboard.client.info("server")["process_id"])
    assert len(pids) == 1, "one server for all tests"
    assert not jobboard.client.keys(), "and an empty one for each"
    assert os.environ["JOBBOARD_URL"] == jobboard.url
    assert Board("mails").post(1, id="a") == "a"


def test_a_board_of_another_server_is_refused(jobboard, jobboard_worker):
    for run in (jobboard_worker, jobboard_worker.run_async):
        with pytest.raises(RuntimeError, match="so its jobs are real: call jobboard.use"):
            run(board)


def test_a_board_that_was_not_handed_over_is_refused(jobboard):
    import asyncio
    from jobboard import AsyncBoard, ShardedBoard, Worker

    real = r"on another server than that of the tests, so its jobs are real: call jobboard.use\(board\) first"
    with pytest.raises(RuntimeError, match=real + r", or jobboard.allow\(board\) if you mean them"):
        board.post(1)
    with pytest.raises(RuntimeError, match=real):
        ShardedBoard("mails", "redis://127.0.0.1:1", shards=2).post_many([1, 2])
    with pytest.raises(RuntimeError, match=real):
        asyncio.run(AsyncBoard("mails", "redis://127.0.0.1:1").post(1))
    with pytest.raises(RuntimeError, match=real):
        Worker(board, keep=False, register=False).run(burst=True)
    Board("mails", jobboard.url.replace("127.0.0.1", "localhost")).post(1)
    with jobboard_of_its_own() as other:
        other.post(1)


def jobboard_of_its_own():
    from jobboard.testing import TestServer

    return TestServer()


def test_a_board_that_is_meant_is_not_refused(jobboard):
    import redis

    with pytest.raises(TypeError, match="allow takes boards"):
        jobboard.allow("mails")
    jobboard.allow(board)
    with pytest.raises(redis.ConnectionError):
        board.post(1)


def test_a_board_of_a_test_without_the_fixture_is_not_refused():
    import redis

    with pytest.raises(redis.ConnectionError):
        board.post(1)


def test_third(jobboard, jobboard_worker):
    assert board.client is not jobboard.client, "released"
    jobboard.use(board)
    board.post(1, id="a")
    [run] = jobboard_worker(board)
    assert run.state == "complete"

    async def inside():
        board.post(1, id="b")
        [run] = await jobboard_worker.run_async(board)
        assert run.id == "b"

    import asyncio
    asyncio.run(inside())


def test_last():
    assert os.environ["JOBBOARD_URL"] == "redis://127.0.0.1:1"
"""


def test_one_server_for_a_run_and_an_empty_one_for_each_test(outcome) -> None:
    outcome(8, test_it=TESTS)


@pytest.mark.every_server
def test_another_server(outcome, kind: str) -> None:
    path = str(executable(kind))
    test = f"def test(jobboard):\n    assert jobboard.client.info('server')['executable'] == {path!r}\n"
    outcome(1, "--jobboard-server", path, test_it=test)


def test_who_does_not_ask_for_it_starts_and_imports_nothing(outcome) -> None:
    test = "import sys\n\ndef test():\n    assert not {'jobboard', 'redis'} & set(sys.modules)\n"
    outcome(1, "--jobboard-server", "/no/such/server", test_it=test)
