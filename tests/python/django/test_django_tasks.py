"""The backend of Django's tasks. Django is configured once in a process: each program has one of its own."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import Server, wait_until
from jobboard.board.posting import OPTIONS

pytest.importorskip("django")
if importlib.util.find_spec("django.tasks") is None:
    pytest.importorskip("django_tasks")

ROOT = Path(__file__).resolve().parents[3]
TESTS = ROOT / "tests" / "python"
HEAD = """
import django
django.setup()
import datetime, os, sys
from django_site import *
import jobboard
def refused(call, *words, **options):
    try:
        call(*words, **options)
    except Exception as error:
        return type(error).__name__ + ": " + str(error)
"""


@pytest.fixture
def environment(server: Server) -> dict[str, str]:
    own = {"JOBBOARD_URL": f"redis://127.0.0.1:{server.port}", "DJANGO_SETTINGS_MODULE": "django_site"}
    return {**os.environ, **own, "PYTHONPATH": str(TESTS)}


@pytest.fixture
def site(environment: dict[str, str]) -> Callable[[str], list[str]]:
    """Runs a program of the site; the lines that it prints."""

    def run(program: str) -> list[str]:
        command = [sys.executable, "-c", HEAD + program]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


@pytest.fixture
def work(environment: dict[str, str]) -> Iterator[Callable[..., Any]]:
    running: list[subprocess.Popen] = []

    def start(*words: str, burst: bool = True) -> Any:
        command = [sys.executable, "-m", "jobboard", "worker", "jobboard.django.worker:board", *words]
        if not burst:
            running.append(subprocess.Popen(command, env=environment))
            return running[-1]
        done = subprocess.run(
            [*command, "--burst"], env=environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    yield start
    for one in running:
        one.kill()
        one.wait()


def told(server: Server) -> list[str]:
    return [str(one) for one in server.client().lrange("told", 0, -1)]


@pytest.mark.parametrize("how", [["--threads", "2"], ["--processes", "1"]], ids=["threads", "processes"])
def test_tasks_are_enqueued_done_and_read(server: Server, site: Any, work: Any, how: list[str]):
    ids = site(
        """
for one in (add.enqueue(2, b=3), mail.using(priority=5).enqueue("ann"), later.enqueue("async")):
    assert (one.status, one.is_finished, one.attempts) == ("READY", False, 0), one
    print(one.id)
"""
    )
    jobs = {job["id"]: job for job in server.board("site").list()[1]}
    assert [jobs[id]["name"] for id in ids] == [f"django_site.{name}" for name in ("add", "mail", "later")]
    assert (jobs[ids[1]]["queue"], jobs[ids[1]]["priority"]) == ("mails", 5)
    work(*how)
    site(
        f"""
ids = {ids}
found = add.get_result(ids[0])
assert found.return_value == 5 and found.args == [2] and found.kwargs == {{"b": 3}}
assert found.enqueued_at <= found.started_at <= found.finished_at and found.attempts == 1
assert found.last_attempted_at == found.started_at or found.last_attempted_at <= found.started_at
assert mail.get_result(ids[1]).return_value == {{"to": "ann", "at": datetime.date.today().year}}
assert mail.get_result(ids[1]).task.priority == 5
assert later.get_result(ids[2]).return_value is None
assert "TaskResultMismatch" in refused(add.get_result, ids[1])
assert "TaskResultDoesNotExist" in refused(add.get_result, "nobody")
"""
    )
    assert "async" in told(server) and "RUNNING 1 ['ann'] {} 1" in told(server)


def test_a_task_that_fails_tells_why(server: Server, site: Any, work: Any):
    [id, other] = site("print(fails.enqueue().id); print(unserializable.enqueue().id)")
    work()
    site(
        f"""
found = fails.get_result("{id}")
assert (found.status, found.is_finished, found.attempts) == ("FAILED", True, 1)
[error] = found.errors
assert error.exception_class is KeyError and "KeyError: 'nothing'" in error.traceback
assert refused(lambda: found.return_value) == "ValueError: Task failed"
assert unserializable.get_result("{other}").errors[0].exception_class is TypeError
"""
    )


def test_a_backend_with_retries_tries_again(server: Server, site: Any, work: Any, environment: dict):
    [id] = site("print(third_time.enqueue().id)")
    environment["JOBBOARD_DJANGO_BACKEND"] = "stubborn"
    work()
    site(
        f"""
found = third_time.get_result("{id}")
assert found.return_value == "done" and found.attempts == 3
assert [one.exception_class for one in found.errors] == [ValueError, ValueError]
"""
    )


def test_run_after_waits_in_the_server(server: Server, site: Any, work: Any):
    [id] = site(
        """
from django.utils import timezone
soon = timezone.now() + datetime.timedelta(hours=1)
print(add.using(run_after=soon).enqueue(1, 1).id)
"""
    )
    record = server.board("site").get(id)
    assert record["state"] == "scheduled" and 3_500_000 < record["due"] - record["posted"] <= 3_600_000
    work()
    assert server.board("site").get(id)["state"] == "scheduled"


def test_signals_and_refreshing(server: Server, site: Any, work: Any):
    site(
        """
from jobboard.django.interface import task_enqueued, task_backends
seen = []
def note(sender, task_result, **_):
    seen.append((sender.__name__, task_result.id))
task_enqueued.connect(note)
found = add.enqueue(1, 1)
assert seen == [("JobboardBackend", found.id)]
from jobboard import Worker
from jobboard.django.interface import task_started, task_finished
for signal in (task_started, task_finished):
    signal.connect(lambda sender, task_result, **_: seen.append(task_result.status), weak=False)
fails.enqueue()
Worker(task_backends["default"].board, concurrency=1).run(burst=True)
assert [str(one) for one in seen[2:]] == ["RUNNING", "SUCCESSFUL", "RUNNING", "FAILED"], seen
found.refresh()
assert found.return_value == 2
import asyncio
async def both():
    one = await add.aenqueue(1, 2)
    return (await add.aget_result(one.id)).status
assert asyncio.run(both()) == "READY"
"""
    )


def test_a_killed_worker_loses_no_task(server: Server, site: Any, work: Any):
    [id] = site("print(slow.enqueue(600).id)")
    worker = work("--lease", "1s", "--threads", "1", burst=False)
    wait_until(lambda: told(server) == ["began"], 120)
    worker.send_signal(signal.SIGKILL)
    wait_until(lambda: server.board("site").get(id)["state"] == "ready", 120)


def test_a_name_that_cannot_be_imported_goes_back(server: Server, site: Any, work: Any):
    server.board("site").post('{"args":[],"kwargs":{}}', id="new", name="django_site.of_tomorrow")
    said = work()
    assert "no task 'django_site.of_tomorrow' can be imported" in said
    record = server.board("site").get("new")
    assert record["state"] in ("scheduled", "ready") and record["reason"].startswith("no task ")


def test_a_job_that_is_no_task_has_no_result(server: Server, site: Any):
    lines = site("""
whole = {"args": [], "kwargs": {}}
board = jobboard.Board("site", os.environ["JOBBOARD_URL"])
own = "django_site.add"
for name, payload in (("os.getcwd", whole), (own, 7), (own, {**whole, "args": 1})):
    board.post(payload, name=name, id="foreign")
    print(refused(add.get_result, "foreign"))
    board.delete("foreign")
""")
    assert lines == ["TaskResultDoesNotExist: foreign: this job was not enqueued as a task of Django's"] * 3


def test_the_management_command(environment: dict[str, str], server: Server, site: Any):
    [id] = site("print(add.enqueue(1, 2).id)")
    command = [sys.executable, "-m", "django", "jobboard_worker", "--backend", "default", "--burst"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert server.board("site").get(id)["state"] == "complete"


@pytest.mark.parametrize(
    "options, says",
    [
        ('{"retry": 3}', "there is no option 'retry'; there are url, board, retries"),
        ('{"timeout": 5}', "timeout is text with a unit"),
        ('{"url": "db:6379"}', "is no URL of a server"),
    ],
)
def test_wrong_options_are_refused(site: Any, options: str, says: str):
    [line] = site(
        f"""
from jobboard.django.backend import JobboardBackend
print(refused(JobboardBackend, "default", {{"OPTIONS": {options}}}))
"""
    )
    assert line.startswith("ImproperlyConfigured: TASKS['default']: ") and says in line


def test_what_the_backend_cannot_do_is_refused_when_it_is_enqueued(site: Any):
    site(
        """
assert "Unsupported type" in refused(add.enqueue, object(), 1)
assert "Queue 'nowhere' is not valid" in refused(add.using, queue_name="nowhere")
"""
    )


def test_the_guide(environment: dict[str, str], server: Server, tmp_path: Path):
    text = (ROOT / "docs/guides/django.md").read_text()
    blocks = dict(re.findall(r"```python (\w+)\n(.*?)```", text, re.DOTALL))
    own = "" if importlib.util.find_spec("django.tasks") else '"django_tasks", '
    settings = blocks["settings"].replace("localhost:6379", f"127.0.0.1:{server.port}").replace("..., ", own)
    (tmp_path / "shop_settings.py").write_text(f"SECRET_KEY = 'x'\nUSE_TZ = True\n{settings}")
    tasks = blocks["tasks"].replace("django.tasks", "django_tasks", 1) if own else blocks["tasks"]
    (tmp_path / "shop_tasks.py").write_text(tasks)
    head = (
        "import django; django.setup()\nfrom datetime import timedelta\nfrom django.utils import timezone\n"
    )
    use = f"{head}from shop_tasks import welcome\n{blocks['use']}"
    there = {**environment, "DJANGO_SETTINGS_MODULE": "shop_settings", "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", use], env=there, capture_output=True, text=True, timeout=120)
    assert done.stdout == "READY\n", done.stderr
    command = [sys.executable, "-m", "django", "jobboard_worker", "--burst"]
    subprocess.run(command, env=there, check=True, timeout=120)
    states = sorted(job["state"] for job in server.board("shop").list()[1])
    assert states == ["complete", "scheduled"]
    table = text.partition("| option |")[2].partition("\n\n")[0]
    named = re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in table.splitlines()[2:]))
    assert set(named) - {"url", "board"} <= OPTIONS.keys()
