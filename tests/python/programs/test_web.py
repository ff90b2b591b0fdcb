"""The examples for web frameworks: examples/web."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import jobboard
import pytest
from harness import wait_until
from harness.server import ROOT


@pytest.fixture
def load(server, monkeypatch, tmp_path) -> Iterator[Any]:
    """load("flask_app") -> the module, with its board on this server and a worker that runs"""
    monkeypatch.setenv("JOBBOARD_URL", f"redis://127.0.0.1:{server.port}")
    monkeypatch.chdir(tmp_path)
    workers = []

    def load(name: str) -> Any:
        spec = importlib.util.spec_from_file_location(name, ROOT / "examples/web" / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        worker = jobboard.Worker(module.board)
        thread = threading.Thread(target=worker.run)
        thread.start()
        workers.append((worker, thread))
        return module

    yield load
    for worker, thread in workers:
        worker.stop()
        worker.stop()
        thread.join(30)


def test_fastapi_follows_a_job_by_server_sent_events(load, server) -> None:
    testing = pytest.importorskip("fastapi.testclient")
    module = load("fastapi_app")
    admin, board = server.client(), server.board("web")

    def follows() -> bool:
        return any(one["cmd"] == "job.wait" and "b" in one["flags"] for one in admin.client_list())

    def begin() -> None:
        """The work begins once somebody follows it: the answers come here all at once."""
        wait_until(follows, what="the first event was sent")
        board.resume()

    with testing.TestClient(module.app) as client:
        board.pause()
        posted = client.post("/exports?rows=3")
        assert posted.status_code == 202
        id = posted.json()["id"]
        heard = []
        threading.Thread(target=begin).start()
        with client.stream("GET", f"/exports/{id}/events") as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            heard += [json.loads(line[len("data: ") :]) for line in answer.iter_lines() if line]
        assert heard[-1] == {"state": "complete", "progress": 100.0}
        shown = [one["progress"] for one in heard if one["progress"] is not None]
        assert shown == sorted(shown) and len(heard) > 1
        assert client.get("/exports/none/events").status_code == 404
        assert client.post("/exports?rows=many").status_code == 422
        id = client.post("/exports?rows=100000").json()["id"]
        assert client.delete(f"/exports/{id}").status_code == 204
        with client.stream("GET", f"/exports/{id}/events") as answer:
            assert [line for line in answer.iter_lines() if line][-1].startswith(
                'data: {"state": "cancelled"'
            )


def test_flask_tells_what_has_become_of_a_job(load) -> None:
    pytest.importorskip("flask")
    module = load("flask_app")
    module.thumbnail.options["retries"] = 0
    client = module.app.test_client()

    def ended(id: str) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            found = client.get(f"/thumbnails/{id}").get_json()
            return found if found["state"] in ("complete", "failed") else None

        return wait_until(look)

    posted = client.post("/thumbnails", json={"url": "cat.png", "width": 50})
    assert posted.status_code == 202
    assert ended(posted.get_json()["id"]) == {"state": "complete", "result": "cat.png at 50"}
    failed = ended(client.post("/thumbnails", json={"url": "cat.txt"}).get_json()["id"])
    assert failed["state"] == "failed" and "cat.txt is no picture" in failed["error"]
    wrong = client.post("/thumbnails", json={"url": 5})
    assert wrong.status_code == 400 and "got `int` - at `url`" in wrong.get_json()["error"]
    assert client.get("/thumbnails/none").status_code == 404


DJANGO = """
import threading
import time

import django_app as module
import jobboard
from django.db import connection
from django.test import Client

module.migrate()
client = Client(raise_request_exception=False)
worker = jobboard.Worker(module.board)
threading.Thread(target=worker.run, daemon=True).start()


def await_state(number, state):
    deadline = time.monotonic() + 60
    while module.Order.objects.get(pk=number).state != state:
        assert time.monotonic() < deadline
        time.sleep(0.01)


number = client.get("/order?to=ann").json()["order"]
await_state(number, "confirmed")
assert client.get("/order?to=bob&fail").status_code == 500
assert client.get("/order?to=bob&fail&charge").status_code == 500
assert module.Order.objects.count() == 1 and module.relay() == 0
assert module.board.count(state=["ready", "claimed", "complete"]) == 1
number = client.get("/order?to=eve&charge").json()["order"]
[row] = module.Outbox.objects.all()
# a relay that died before the delete
module.board.post(row.arguments, name=row.task, id=f"outbox-{row.id}")
assert module.relay() == 1 and module.relay() == 0
await_state(number, "paid")
assert module.board.count(name="charge", state=["complete", "ready", "claimed"]) == 1, "once"

# a database that is restored from a backup gives the numbers of orders and rows again
with connection.cursor() as cursor:
    cursor.execute("DELETE FROM sqlite_sequence WHERE name = %s", [module.Outbox._meta.db_table])
again = client.get("/order?to=bob&charge").json()["order"]
[row_again] = module.Outbox.objects.all()
assert row_again.pk == row.pk, "the number comes again"
assert module.relay() == 1
assert module.board.count(name="charge", state=["complete", "ready", "claimed"]) == 2, "another job"
await_state(again, "paid")

# rows that cannot be posted hold up no other
module.Outbox.objects.create(task="bill", arguments={"order": again})
module.Outbox.objects.create(task="charge", arguments={"number": again})
last = client.get("/order?to=dan&charge").json()["order"]
assert module.relay() == 3 and module.relay() == 0
await_state(last, "paid")
renamed, changed = module.Outbox.objects.order_by("number")
assert "no task has the name 'bill'" in renamed.error and "unknown field `number`" in changed.error
renamed.task, renamed.error = "charge", None
renamed.save()
assert module.relay() == 1 and module.Outbox.objects.count() == 1
worker.stop()
"""


def test_django_posts_after_the_commit_and_loses_nothing(server, tmp_path) -> None:
    """In a process of its own: Django is configured once in each."""
    pytest.importorskip("django")
    place = {"JOBBOARD_URL": f"redis://127.0.0.1:{server.port}", "PYTHONPATH": str(ROOT / "examples/web")}
    command = [sys.executable, "-c", DJANGO]
    done = subprocess.run(command, cwd=tmp_path, env={**os.environ, **place}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
