"""Celery's own worker, unmodified, over a board."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
from celery import chord, group
from celery.exceptions import TaskRevokedError
from harness import Server, wait_until

Worker = Callable[..., Any]
Told = Callable[[], list[str]]

WITHIN = 120
"""Seconds within which Celery does anything, on a busy machine."""


def states(server: Server) -> dict[str, str]:
    _, jobs = server.board().list()
    return {job["id"]: job["state"] for job in jobs}


def go(server: Server) -> None:
    """Ends the tasks that wait for it."""
    server.client().set("go", 1)


# What users do


@pytest.mark.every_server
def test_tasks_groups_chords_retries_and_errors(tasks: Any, worker: Worker, server: Server):
    worker("--concurrency", "2")
    assert tasks.add.delay(2, 3).get(timeout=WITHIN) == 5
    numbers = group(tasks.add.s(n, n) for n in range(20))
    assert numbers.apply_async().get(timeout=WITHIN) == [2 * n for n in range(20)]
    assert chord(numbers, tasks.total.s()).delay().get(timeout=WITHIN) == 380
    assert (tasks.add.s(1, 1) | tasks.add.s(2) | tasks.add.s(4)).delay().get(timeout=WITHIN) == 8
    assert tasks.thrice.delay().get(timeout=WITHIN) == 2
    with pytest.raises(ValueError, match="no"):
        tasks.fails.delay().get(timeout=WITHIN)
    wait_until(lambda: states(server) == {})  # all acknowledged, and none kept


@pytest.mark.every_server
def test_an_eta_waits_in_the_server(tasks: Any, worker: Worker, server: Server):
    far = tasks.add.apply_async((1, 2), countdown=3600)
    record = server.board().get(far.id)
    assert (record["state"], record["name"], record["queue"]) == (
        "scheduled",
        "celery_tasks.add",
        "celery",
    )
    assert 3_500_000 < record["due"] - record["posted"] <= 3_600_000
    one = worker()
    began = time.monotonic()
    assert tasks.add.apply_async((1, 2), countdown=1).get(timeout=WITHIN) == 3
    assert time.monotonic() - began >= 1
    # The result comes before the end of its job.
    wait_until(lambda: states(server) == {far.id: "scheduled"}, WITHIN)
    assert far.id not in one.text  # no worker holds it


def test_smaller_numbers_come_first_as_over_redis(tasks: Any, worker: Worker, told: Told):
    for number in (9, 0, 5):
        tasks.say.apply_async((str(number),), priority=number)
    worker()
    wait_until(lambda: len(told()) == 3, WITHIN)
    assert told() == ["0", "5", "9"]


def test_or_larger_ones_as_over_rabbitmq(tasks: Any, worker: Worker, told: Told):
    tasks.app.conf.broker_transport_options = {"priority_order": "highest"}
    for number in (5, 0, 9):
        tasks.say.apply_async((str(number),), priority=number)
    worker(priority_order="highest")
    wait_until(lambda: len(told()) == 3, WITHIN)
    assert told() == ["9", "5", "0"]


@pytest.mark.every_server
def test_remote_control(tasks: Any, worker: Worker, server: Server, told: Told):
    worker("--concurrency", "1")
    control, inspect = tasks.app.control, tasks.app.control.inspect(timeout=20, limit=1)
    assert control.ping(timeout=20, limit=1) == [{"worker0@here": {"ok": "pong"}}]
    assert "celery_tasks.add" in inspect.registered()["worker0@here"]
    running = tasks.early.delay(600)
    wait_until(lambda: len(told()) == 1, WITHIN)
    assert [one["id"] for one in inspect.active()["worker0@here"]] == [running.id]
    control.revoke(running.id, terminate=True)
    with pytest.raises(TaskRevokedError):
        running.get(timeout=WITHIN)
    assert control.revoke("later", reply=True, timeout=20, limit=1)
    later = tasks.say.apply_async(("never",), countdown=2, task_id="later")
    with pytest.raises(TaskRevokedError):
        later.get(timeout=WITHIN)
    wait_until(lambda: states(server) == {}, WITHIN)
    assert control.add_consumer("other", reply=True, timeout=20, limit=1)
    assert tasks.add.apply_async((1, 1), queue="other").get(timeout=WITHIN) == 2
    assert control.cancel_consumer("other", reply=True, timeout=20, limit=1)
    tasks.add.apply_async((1, 1), queue="other", task_id="stays")
    assert tasks.add.delay(1, 1).get(timeout=WITHIN) == 2
    wait_until(lambda: states(server) == {"stays": "ready"}, WITHIN)  # once the other is acknowledged
    assert control.purge() == 0
    control.shutdown()


def test_a_task_that_has_expired_is_revoked_by_the_worker(tasks: Any, worker: Worker):
    gone = tasks.add.apply_async((1, 1), expires=0.001)
    worker()
    with pytest.raises(TaskRevokedError):
        gone.get(timeout=WITHIN)


def test_what_is_rejected_or_unknown_is_put_aside(tasks: Any, worker: Worker, server: Server):
    refused = tasks.refuses.delay()
    unknown = tasks.app.send_task("tasks.of.another")
    worker()
    wait_until(lambda: states(server) == {refused.id: "trashed", unknown.id: "trashed"}, WITHIN)


def test_a_queue_can_be_measured_and_purged(tasks: Any, server: Server):
    for _ in range(3):
        tasks.add.delay(1, 1)
    tasks.add.apply_async((1, 1), countdown=3600)
    with tasks.app.connection_for_read() as connection:
        channel = connection.default_channel
        assert channel.queue_declare("celery", passive=True).message_count == 4
        with pytest.raises(connection.channel_errors, match="no queue 'nowhere'"):
            channel.queue_declare("nowhere", passive=True)
    assert tasks.app.control.purge() == 4
    assert states(server) == {}


# Workers that die, servers that go


@pytest.mark.every_server
def test_a_late_task_of_a_killed_worker_runs_again_and_once(
    tasks: Any, worker: Worker, server: Server, told: Told
):
    workers = {str(one.popen.pid): one for one in (worker(lease="10s"), worker(lease="10s"))}
    found = tasks.late.delay()
    wait_until(lambda: len(told()) == 1, WITHIN)
    deadline = server.board().get(found.id)["deadline"]
    wait_until(lambda: server.board().get(found.id)["deadline"] > deadline, WITHIN, what="the lease is kept")
    assert (len(told()), states(server)) == (1, {found.id: "claimed"})
    doomed = told()[0].split()[2]
    workers.pop(doomed).kill()
    wait_until(lambda: len(told()) == 2, WITHIN)
    go(server)
    assert found.get(timeout=WITHIN) == "done"
    assert [line.split()[0] for line in told()] == ["began", "began", "ended"]
    first, second = (line.split() for line in told()[:2])
    assert first[2:] == [doomed, "False"]
    assert second[2:] == [*workers, "True"]


def test_with_a_session_it_is_ready_at_once(tasks: Any, worker: Worker, server: Server, told: Told):
    doomed = worker(lease="1h", session=True)
    found = tasks.late.delay(600)
    wait_until(lambda: len(told()) == 1, WITHIN)
    doomed.kill()
    wait_until(lambda: states(server) == {found.id: "ready"}, WITHIN)


def test_what_was_fetched_and_not_begun_goes_back_when_a_worker_stops(
    tasks: Any, worker: Worker, server: Server, told: Told
):
    stops = worker("--concurrency", "1", "--prefetch-multiplier", "4", lease="1h")
    running = tasks.late.delay()
    wait_until(lambda: len(told()) == 1, WITHIN)
    waiting = [tasks.add.delay(1, 1) for _ in range(3)]
    wait_until(lambda: set(states(server).values()) == {"claimed"}, WITHIN)
    stops.signal(signal.SIGTERM)
    wait_until(lambda: "Warm shutdown" in stops.text, WITHIN)
    go(server)
    assert stops.popen.wait(WITHIN) == 0
    assert running.get(timeout=WITHIN) == "done"
    assert states(server) == {one.id: "ready" for one in waiting}


@pytest.mark.parametrize("of_kind", ["prefork", "threads", "solo", "gevent"])
def test_a_task_longer_than_its_lease_runs_once_in_every_pool(
    tasks: Any, worker: Worker, server: Server, told: Told, of_kind: str
):
    if of_kind == "gevent":
        pytest.importorskip("gevent", reason="the pool gevent needs gevent, which is not installed")
    worker("--pool", of_kind, "--concurrency", "2", lease="9s")
    assert tasks.late.delay(12).get(timeout=WITHIN) == "done"
    assert tasks.add.apply_async((1, 2), countdown=1).get(timeout=WITHIN) == 3
    assert tasks.thrice.delay().get(timeout=WITHIN) == 2
    wait_until(lambda: states(server) == {}, WITHIN)
    assert [line.split()[0] for line in told()] == ["began", "ended"]


def test_a_restart_of_the_server_is_nothing_to_the_worker(
    tasks_on: Callable[[Server], Any], worker: Worker, fresh_server: Callable[..., Server]
):
    server = fresh_server(appendonly=True, config=["appendfsync always"])
    tasks = tasks_on(server)
    one = worker(on=server)
    running, later = tasks.late.delay(), tasks.add.apply_async((1, 1), countdown=5)
    wait_until(lambda: server.client().llen("told") == 1, WITHIN)
    server.kill()
    wait_until(lambda: "the server does not answer" in one.text, WITHIN)
    server.start()
    go(server)
    assert running.get(timeout=WITHIN) == "done"
    assert later.get(timeout=WITHIN) == 2
    assert tasks.add.delay(2, 2).get(timeout=WITHIN) == 4
    assert tasks.app.control.ping(timeout=20, limit=1) == [{"worker0@here": {"ok": "pong"}}]
    assert [line.split()[0] for line in server.client().lrange("told", 0, -1)] == ["began", "ended"]
    wait_until(lambda: states(server) == {}, WITHIN)
    assert one.text.count("the server does not answer") == 1
    assert one.text.count("the server is back after") == 1


def test_workers_that_take_no_more_than_they_run(tasks: Any, worker: Worker, server: Server, told: Told):
    worker("--concurrency", "1", "--disable-prefetch")
    running, waiting = tasks.early.delay(), tasks.add.delay(1, 1)
    wait_until(lambda: len(told()) == 1, WITHIN)
    wait_until(lambda: states(server) == {waiting.id: "ready"}, WITHIN)  # once what runs is acknowledged
    go(server)
    assert (running.get(timeout=WITHIN), waiting.get(timeout=WITHIN)) == ("done", 2)
