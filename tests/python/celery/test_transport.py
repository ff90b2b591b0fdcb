"""The transport as kombu uses it, and what it says of mistakes."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from celery import Celery
from harness import Server, wait_until
from harness.server import free_port
from jobboard import NoModule
from jobboard.celery import addresses
from kombu import Connection, Consumer, Exchange, Queue
from kombu.exceptions import OperationalError


@pytest.fixture
def connection(server: Server) -> Any:
    with Connection(f"jobboard://127.0.0.1:{server.port}/0/board") as connection:
        yield connection


def publish(connection: Connection, body: Any, queue: str = "mails", **options: Any) -> None:
    connection.Producer().publish(body, routing_key=queue, **options)


def jobs(server: Server) -> list[dict]:
    return server.board().list()[1]


# Messages


def test_a_message_sent_again_is_one_job(connection: Connection, server: Server):
    channel = connection.channel()
    message = channel.prepare_message("[]", headers={"task": "add", "id": "one"}, properties={})
    channel._inplace_augment_message(message, "", "mails")
    for _ in range(3):
        channel._put("mails", message)
    assert [job["id"] for job in jobs(server)] == ["one"]
    channel._put("others", message)  # a topic leads to two queues
    channel._put("others", message)
    assert sorted(job["queue"] for job in jobs(server)) == ["mails", "others"]


def test_two_tasks_of_one_id_are_two_jobs(connection: Connection, server: Server):
    for retries in (0, 0, 1):
        publish(connection, [], headers={"task": "add", "id": "one", "retries": retries})
    ids = [job["id"] for job in jobs(server)]
    assert len(ids) == 3 and {"one", "one:1"} < set(ids)


def test_bodies_of_every_kind_come_through(connection: Connection):
    bodies = [{"text": "ä"}, b"\x00\xff", "plain"]
    for body in bodies:
        publish(connection, body, serializer="pickle" if isinstance(body, bytes) else None)
    queue = connection.SimpleQueue(Queue("mails"))
    queue.consumer.accept = {"application/json", "application/x-python-serialize", "text/plain"}
    assert [queue.get(timeout=20).payload for _ in bodies] == bodies


def test_redelivered_says_whether_it_was_given_out_before(connection: Connection):
    publish(connection, "x")
    first = Queue("mails")(connection.channel()).get()
    assert "redelivered" not in first.delivery_info
    first.requeue()
    second = Queue("mails")(connection.channel()).get()
    assert second.delivery_info["redelivered"] is True


@pytest.mark.parametrize(
    "payload",
    [
        "{}",
        "[" * 100_000,
        '{"__type__": "datetime", "__value__": 5}',
        '{"properties": {}, "headers": [1]}',
        '{"properties": {"delivery_info": 5}}',
    ],
    ids=["object", "deep", "made by kombu", "headers", "delivery_info"],
)
def test_what_no_program_of_kombu_has_posted_is_put_aside(
    connection: Connection, server: Server, payload: str
):
    server.board().post(payload, queue="mails")
    publish(connection, "after it")
    queue = connection.SimpleQueue(Queue("mails"))
    assert queue.get(timeout=20).payload == "after it"
    assert [(job["state"], job["reason"]) for job in jobs(server) if "reason" in job] == [
        ("trashed", "no message of Celery or kombu")
    ]


@pytest.mark.parametrize(
    "payload",
    [
        "[" * 100_000,
        '{"properties": ' + '{"a": ' * 100_000,
        '{"properties": {"x": {"__type__": "datetime", "__value__": 5}}}',
        '{"properties": {}, "headers": [1]}',
        '{"properties": {"delivery_info": "x"}, "body": "x"}',
        '{"properties": {}, "body": 5}',
        '{"properties": {"body_encoding": "rot13"}, "body": "x"}',
        '{"properties": {"body_encoding": "base64"}, "body": "x"}',
        '{"properties": {"body_encoding": 5}, "body": "x"}',
    ],
)
def test_a_message_that_cannot_be_read_ends_no_worker(connection: Connection, server: Server, payload: str):
    """It would come again to the next one, and end that too."""
    id = server.board().post(payload, queue="mails")
    publish(connection, "after it")
    got: list[str] = []

    def take(body: str, message: Any) -> None:
        got.append(body)
        message.ack()

    with connection.Consumer(Queue("mails"), callbacks=[take], accept=["text/plain"]):
        connection.drain_events(timeout=20)
    assert got == ["after it"]
    job = server.board().get(id)
    assert (job["state"], job["reason"]) == ("trashed", "no message of Celery or kombu")


def test_a_time_to_live_is_kept_by_the_server(connection: Connection, server: Server):
    publish(connection, "x", expiration=0.001)
    wait_until(lambda: [job["kind"] for job in jobs(server) if "kind" in job] == ["expired"])


def test_a_message_without_acknowledgement_is_done_when_it_is_given_out(
    connection: Connection, server: Server
):
    got: list[Any] = []
    for number in range(3):
        publish(connection, number)
    with Consumer(connection, [Queue("mails")], callbacks=[lambda body, _: got.append(body)], no_ack=True):
        while len(got) < 3:
            connection.drain_events(timeout=20)
    assert (got, jobs(server)) == ([0, 1, 2], [])


def test_a_channel_that_closes_gives_back_what_it_holds(connection: Connection, server: Server):
    for number in range(10):
        publish(connection, number)
    channel, got = connection.channel(), []
    consumer = Consumer(channel, [Queue("mails")], callbacks=[lambda body, _: got.append(body)])
    with consumer:
        connection.drain_events(timeout=20)
        wait_until(lambda: {job["state"] for job in jobs(server)} == {"claimed"})
    channel.close()
    assert {job["state"] for job in jobs(server)} == {"ready"}
    assert server.client().execute_command("JOB.WORKER", "LIST", "board")[1] == []


def test_a_forked_child_leaves_the_claims_to_its_parent(connection: Connection, server: Server):
    for number in range(2):
        publish(connection, number)
    channel = connection.channel()
    first = Queue("mails")(channel).get()
    child = os.fork()
    if child == 0:
        try:
            channel.close()
            connection.close()
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert sorted(job["state"] for job in jobs(server)) == ["claimed", "ready"]
    first.ack()
    assert [job["state"] for job in jobs(server)] == ["ready"]


def test_consumers_may_come_and_go(connection: Connection, server: Server):
    """Each change breaks off a claim that waits; nothing is lost by it, and nothing is said."""
    got: list[Any] = []
    channel = connection.channel()
    for number in range(30):
        consumer = Consumer(
            channel, [Queue("mails")], callbacks=[lambda body, _: got.append(body)], no_ack=True
        )
        with consumer:
            publish(connection, number)
            connection.drain_events(timeout=20)
    assert got == list(range(30))
    assert jobs(server) == []


def test_broadcasts_reach_all_who_listen(server: Server):
    exchange = Exchange("news", type="fanout")
    got: list[Any] = []
    with Connection(f"jobboard://127.0.0.1:{server.port}") as one, one.clone() as other:
        for number, connection in enumerate((one, other)):
            queue = Queue(f"news-{number}", exchange)
            Consumer(
                connection.channel(), [queue], callbacks=[lambda body, _: got.append(body)], no_ack=True
            ).consume()
        one.Producer().publish("hello", exchange=exchange, declare=[exchange])
        one.drain_events(timeout=20)
        other.drain_events(timeout=20)
    assert got == ["hello", "hello"]


def test_an_acknowledgement_that_no_server_heard_is_said_again(fresh_server: Any):
    server = fresh_server(appendonly=True, config=["appendfsync always"])
    url = f"jobboard://127.0.0.1:{server.port}/0/board"
    options = {"lease": "1m", "retry_on_timeout": False}
    with Connection(url, transport_options=options) as connection:
        publish(connection, "x")
        message = Queue("mails")(connection.channel()).get()
        server.kill()
        message.ack()
        server.restart()
        wait_until(lambda: jobs(server) == [], 120)


# Addresses


@pytest.mark.parametrize(
    "url, found",
    [
        ("jobboard://", ("redis://127.0.0.1:6379/0", "celery-jobs")),
        ("jobboard://db:7000/3", ("redis://db:7000/3", "celery-jobs")),
        ("jobboard://me:se%2Fcret@db/0/shop", ("redis://me:se%2Fcret@db:6379/0", "shop")),
        ("jobboard+rediss://db:7000/1/shop", ("rediss://db:7000/1", "shop")),
        ("jobboard+sentinel://a:1,b:2/main/0/shop", ("sentinel://a:1,b:2/main/0", "shop")),
    ],
)
def test_urls(url: str, found: tuple[str, str]):
    by_kombu = addresses.of_connection(Connection(url))
    by_results = addresses.of_url(url)
    assert by_kombu == found
    assert by_results == found or by_results.url.replace("@db/", "@db:6379/") == found[0]


def test_tls_by_the_settings_of_celery():
    assert addresses.of_connection(Connection("jobboard://db", ssl={"ssl_cert_reqs": "none"})).url == (
        "rediss://db:6379/0"
    )


@pytest.mark.parametrize(
    "options, says",
    [
        ({"lease": 30}, "lease is text with a unit"),
        ({"priority_order": "up"}, "priority_order is one of lowest, highest, not 'up'"),
        ({"leese": "30s"}, "broker_transport_options has no option 'leese'; did you mean 'lease'?"),
        ({"colour": 1}, "has no option 'colour'; there are board, lease"),
        ({"session": "yes"}, "session is True or False, not 'yes'"),
        ({"board": 5}, "board is text"),
        ({"queue_order_strategy": "any"}, "queue_order_strategy is one of best, round_robin"),
    ],
)
def test_wrong_options_are_refused_by_name(server: Server, options: dict, says: str):
    with pytest.raises((TypeError, ValueError), match=says):
        Connection(f"jobboard://127.0.0.1:{server.port}", transport_options=options).connect()


def test_options_of_redis_and_of_kombu_are_let_be(server: Server):
    """A program changes its URL alone."""
    options = {"visibility_timeout": 3600, "max_retries": 1, "global_keyprefix": "x", "interval_start": 0}
    with Connection(f"jobboard://127.0.0.1:{server.port}", transport_options=options) as connection:
        connection.connect()


def test_a_wrong_path_is_refused():
    with pytest.raises(ValueError, match="the number of a database, then a board: jobboard://"):
        Connection("jobboard://db/shop").transport  # noqa: B018


def test_no_server_and_no_module(fresh_server: Any):
    nowhere = Connection(f"jobboard://127.0.0.1:{free_port()}")
    with pytest.raises(OperationalError, match="connecting to"):
        nowhere.ensure_connection(max_retries=1, interval_start=0)
    plain = fresh_server(module=False)
    with pytest.raises(NoModule, match="no jobboard module"):
        Connection(f"jobboard://127.0.0.1:{plain.port}").connect()


def test_kombu_finds_it_in_a_fresh_process(server: Server):
    """No import of ours: the entry points alone."""
    program = f"""
from kombu import Connection, Queue
from celery import Celery
import sys
assert "jobboard" not in sys.modules, "kombu alone must not load it"
with Connection("jobboard://127.0.0.1:{server.port}") as connection:
    print(connection.connect().driver_name)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.stdout == "jobboard\n", found.stderr


# Results


def test_results_are_those_of_celery_for_redis(server: Server):
    url = f"jobboard://me:secret@127.0.0.1:{server.port}/0/board"
    server.client().execute_command("ACL", "SETUSER", "me", "on", ">secret", "~*", "&*", "+@all")
    try:
        app = Celery("x", backend=url)
        backend = app.backend
        backend.store_result("one", 42, "SUCCESS")
        assert app.AsyncResult("one").get(timeout=20) == 42
        assert server.client().ttl("celery-task-meta-one") > 80_000
        assert "secret" not in backend.as_uri() and "secret" in backend.as_uri(include_password=True)
        copy = backend.__reduce__()
        again = copy[0](*copy[1])
        assert again.get_result("one") == 42
        app.AsyncResult("one").forget()
        assert server.client().keys("celery-task-meta-*") == []
        app.close()
    finally:
        server.client().execute_command("ACL", "DELUSER", "me")
