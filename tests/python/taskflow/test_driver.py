"""The TaskFlow driver, beside TaskFlow's own tests: sessions, expiry, fencing, order, push, notifications."""

from __future__ import annotations

import contextlib
import datetime
import json
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("taskflow", reason="TaskFlow 6.5 needs Python 3.11")

import redis  # noqa: E402
from harness import SOON, Server, now, wait_until  # noqa: E402
from harness.server import free_port  # noqa: E402
from jobboard.taskflow import JobBoard  # noqa: E402
from jobboard.taskflow.notifications import Listener  # noqa: E402
from taskflow import exceptions as exc  # noqa: E402
from taskflow import states  # noqa: E402
from taskflow.jobs import backends, base  # noqa: E402
from taskflow.types.entity import Entity  # noqa: E402
from taskflow.utils import persistence_utils, redis_utils  # noqa: E402

Connect = Callable[..., JobBoard]

OTHER = """
import sys, time
from taskflow.jobs import backends
board = backends.fetch("other", {"board": "jobboard", "port": int(sys.argv[1]), "lease": float(sys.argv[2])})
board.connect()
[job] = board.iterjobs()
board.claim(job, "other")
print("claimed", flush=True)
sys.stdin.readline()
try:
    board.consume(job, "other")
    print("consumed", flush=True)
except Exception as error:
    print(type(error).__name__, flush=True)
"""
"""A process that claims the one job there is and, when it is told, consumes it."""


@pytest.fixture
def connect(server: Server) -> Iterator[Connect]:
    """Makes connected boards; closed at the end of the test."""
    with contextlib.ExitStack() as opened:

        def make(port: int = server.port, **options: Any) -> JobBoard:
            board = backends.fetch("test", {"board": "jobboard", "port": port, **options})
            opened.callback(board.close)
            board.connect()
            return board

        yield make


@pytest.fixture
def jobs(connect: Connect) -> JobBoard:
    return connect()


@pytest.fixture
def other(server: Server) -> Iterator[Callable[[float], subprocess.Popen]]:
    running = []

    def start(lease: float) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-c", OTHER, str(server.port), str(lease)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        assert process.stdout.readline() == "claimed\n"
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def calls(server: Server, command: str) -> int:
    """How often a command has been called on the server."""
    return server.info("commandstats").get(f"cmdstat_{command}", {}).get("calls", 0)


def started(work: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def names(jobs: Any) -> list[str]:
    return [job.name for job in jobs]


# Sessions


def test_a_killed_process_loses_its_claims_at_once(jobs: JobBoard, other):
    job = jobs.post("work")
    process = other(30.0)
    assert (job.state, jobs.find_owner(job)) == (states.CLAIMED, "other")
    assert job.expires_in() == redis_utils.DOES_NOT_EXPIRE
    process.kill()
    wait_until(lambda: job.state == states.UNCLAIMED)
    jobs.claim(job, "me")


def test_a_process_that_hangs_loses_its_claims_when_the_lease_ends(jobs: JobBoard, other):
    job = jobs.post("work")
    process = other(0.5)
    process.send_signal(signal.SIGSTOP)
    wait_until(lambda: job.state == states.UNCLAIMED)
    jobs.claim(job, "me")
    process.send_signal(signal.SIGCONT)
    process.stdin.write("go on\n")
    process.stdin.flush()
    assert process.stdout.readline() == "JobFailure\n"
    jobs.consume(job, "me")


def test_a_claim_outlives_its_lease_as_long_as_its_process_lives(connect: Connect):
    board = connect(lease=3 * SOON / 1000)
    job = board.post("work")
    board.claim(job, "me")
    until = now() + 3 * SOON + 500
    while now() < until:
        assert (job.state, board.find_owner(job)) == (states.CLAIMED, "me")
        time.sleep(0.02)
    board.consume(job, "me")
    assert job.state == states.COMPLETE


def test_closing_the_board_gives_its_claims_back(connect: Connect):
    closing, staying = connect(), connect()
    job = closing.post("work")
    closing.claim(job, "me")
    closing.close()
    [found] = staying.iterjobs()
    wait_until(lambda: found.state == states.UNCLAIMED)
    with pytest.raises(exc.JobFailure):
        closing.post("more")


def test_claims_and_entities_are_kept_over_a_restart_of_the_server(fresh_server, connect: Connect):
    server = fresh_server("recovery-grace", 3 * SOON, appendonly=True, config=["appendfsync always"])
    board = connect(server.port, lease=3 * SOON / 1000)
    board.register_entity(Entity("conductor", "c@host:1", {}))
    job = board.post("work")
    board.claim(job, "me")
    server.restart(kill=True)
    until = now() + 3 * SOON + 500
    while now() < until:
        assert job.state == states.CLAIMED
        time.sleep(0.05)
    assert [one.name for one in board.entities()] == ["c@host:1"]
    board.consume(job, "me")
    assert board.job_count == 0


def test_a_cut_connection_gets_its_claims_back(server: Server, connect: Connect):
    board = connect(lease=SOON / 1000)
    job = board.post("work")
    board.claim(job, "me")
    server.client().client_kill_filter(_type="normal", skipme=True)
    wait_until(lambda: job.state == states.CLAIMED)
    board.consume(job, "me")


def test_a_job_survives_any_number_of_lost_claims(server: Server, jobs: JobBoard):
    job = jobs.post("work")
    for _ in range(12):
        jobs.claim(job, "me", expiry=0.005)
        wait_until(lambda: job.state == states.UNCLAIMED)
    jobs.claim(job, "me")
    jobs.consume(job, "me")


# Expiry and fencing


def test_an_expiry_ends_a_claim_unless_it_is_extended(jobs: JobBoard):
    job = jobs.post("work")
    assert job.expires_in() == redis_utils.KEY_NOT_FOUND
    assert not job.extend_expiry(10)
    jobs.claim(job, "me", expiry=30)
    assert 0 < job.expires_in() <= 30
    assert job.extend_expiry(600)
    assert 30 < job.expires_in() <= 600
    assert job.extend_expiry(0.1)
    wait_until(lambda: job.state == states.UNCLAIMED)
    assert jobs.find_owner(job) is None
    with pytest.raises(ValueError):
        jobs.claim(job, "me", expiry=0)


def test_a_claim_that_lives_as_its_process_can_be_given_an_expiry(connect: Connect):
    board = connect(lease=0.3)
    job = board.post("work")
    board.claim(job, "me")
    assert job.extend_expiry(SOON / 1000)
    assert 0 < job.expires_in() <= SOON / 1000
    wait_until(lambda: job.state == states.UNCLAIMED)


def test_an_expiry_can_be_extended_by_another_process(connect: Connect):
    board, elsewhere = connect(), connect()
    job = board.post("work")
    board.claim(job, "me", expiry=30)
    [seen] = elsewhere.iterjobs()
    assert seen.extend_expiry(600)
    assert 30 < job.expires_in() <= 600
    board.consume(job, "me")


@pytest.mark.parametrize("name", ["you", "me"])
def test_who_has_lost_a_job_cannot_end_it_for_its_new_owner(connect: Connect, name: str):
    late, new = connect(), connect()
    job = late.post("work")
    late.claim(job, "me", expiry=0.05)
    wait_until(lambda: job.state == states.UNCLAIMED)
    [seen] = new.iterjobs()
    new.claim(seen, name)
    for verb in (late.consume, late.abandon, late.trash):
        with pytest.raises(exc.JobFailure):
            verb(job, "me")
    new.consume(seen, name)


def test_a_consume_that_fails_keeps_no_claim(server: Server, connect: Connect):
    board = connect(lease=0.6)
    job = board.post("work")
    board.claim(job, "me")
    admin = server.client()
    admin.execute_command("ACL", "SETUSER", "default", "-job.consume")
    try:
        with pytest.raises(exc.JobFailure):
            board.consume(job, "me")
    finally:
        admin.execute_command("ACL", "SETUSER", "default", "+@all")
    wait_until(lambda: job.state == states.UNCLAIMED)


def test_a_request_to_cancel_does_not_undo_work_that_is_done(server: Server, jobs: JobBoard):
    job = jobs.post("work")
    jobs.claim(job, "me")
    assert server.board("taskflow").cancel(job.uuid) == ["requested"]
    jobs.consume(job, "me")
    assert job.state == states.COMPLETE


def test_a_job_that_is_gone_is_not_found(server: Server, jobs: JobBoard):
    job = jobs.post("work")
    server.board("taskflow").delete(job.uuid)
    for verb in (jobs.claim, jobs.consume, jobs.abandon, jobs.trash):
        with pytest.raises(exc.NotFound):
            verb(job, "me")
    assert (job.state, job.last_modified, jobs.find_owner(job)) == (states.COMPLETE, None, None)


# The listing


def test_jobs_come_by_priority_and_then_by_post(jobs: JobBoard):
    for number, priority in enumerate(["low", "very_high", "normal", "HIGH", "very_low", "normal", "low"]):
        jobs.post(f"{number}", priority=priority)
    order = ["1", "3", "2", "5", "0", "6", "4"]
    assert names(jobs.iterjobs()) == order
    for job in list(jobs.iterjobs())[1:4]:
        jobs.claim(job, "me")
    assert names(jobs.iterjobs()) == order
    assert names(jobs.iterjobs(only_unclaimed=True)) == ["1", "0", "6", "4"]
    assert [job.priority.value for job in jobs.iterjobs()][:2] == ["VERY_HIGH", "HIGH"]
    assert jobs.job_count == 7


def test_the_first_job_of_a_long_board_costs_one_page(server: Server, jobs: JobBoard):
    server.board("taskflow").post_many(1000, "{}", name="bulk")
    server.client().config_resetstat()
    found = jobs.iterjobs()
    assert next(found).name == "bulk"
    assert calls(server, "job.list") == 2, "one page of claimed jobs and one of ready ones"
    assert len(list(found)) == 999
    assert calls(server, "job.get") == 0


def test_jobs_that_cannot_be_claimed_yet_are_not_listed(server: Server, jobs: JobBoard):
    board = server.board("taskflow")
    board.post("{}", id="a", name="later", delay=60_000)
    board.post("{}", id="b", name="blocked", after=["a"])
    assert (names(jobs.iterjobs()), jobs.job_count) == ([], 0)
    with pytest.raises(exc.NotFound):
        jobs.wait(timeout=0.05)


def test_a_board_sees_its_queue_alone(connect: Connect):
    mails, texts = connect(queue="mails"), connect(queue="texts")
    mails.post("mail")
    texts.post("text")
    assert (names(mails.iterjobs()), names(texts.iterjobs()), mails.job_count) == (["mail"], ["text"], 1)


def test_what_others_post_is_a_job_when_it_has_details(server: Server, jobs: JobBoard, caplog):
    board = server.board("taskflow")
    board.post('{"to": "ann"}', id="plain", name="mail", priority=7)
    board.post("[1]", id="list")
    board.post("no details", id="text")
    [job] = jobs.iterjobs()
    assert (job.uuid, job.name, job.details, job.priority) == (
        "plain",
        "mail",
        {"to": "ann"},
        base.JobPriority.HIGH,
    )
    assert job.book is None
    assert sorted(record.args[0] for record in caplog.records if "passed over" in record.msg) == [
        "list",
        "text",
    ]
    assert board.count() == 3, "they stay on the board"


@pytest.mark.parametrize(
    "details, readable",
    [
        (None, True),
        ({"to": "änn", "n": [1, 2.5, None, True, {"deep": "x"}], "big": 2**70}, True),
        ({"at": datetime.datetime(2026, 1, 2, 3, 4, 5), "day": datetime.date(2026, 1, 2)}, False),
        ({"raw": b"\xff\x00", "set": {1, 2}}, False),
        ({"nan": float("inf")}, False),
    ],
    ids=["none", "plain", "dates", "bytes", "infinite"],
)
def test_details_come_back_as_they_were(server: Server, jobs: JobBoard, details: Any, readable: bool):
    job = jobs.post("work", details=details)
    [found] = jobs.iterjobs()
    assert found.details == (details or {})
    payload = server.raw_client().execute_command("JOB.GET", "taskflow", job.uuid, "FIELDS", 1, "payload")
    raw = payload[b"payload"]
    assert (raw[:1] == b"{") == readable
    if readable:
        assert json.loads(raw) == (details or {})


@pytest.mark.parametrize("details", [{"object": object()}, {7: "number as key"}, {"set": {2**70}}])
def test_details_that_cannot_be_packed_are_refused(jobs: JobBoard, details: dict):
    with pytest.raises(exc.JobFailure):
        jobs.post("work", details=details)
    assert jobs.job_count == 0


def test_times_are_those_of_the_server(jobs: JobBoard):
    before = jobs.time()
    job = jobs.post("work")
    after = jobs.time()
    [found] = jobs.iterjobs()
    assert job.created_on == found.created_on == found.last_modified
    created = job.created_on.replace(tzinfo=datetime.timezone.utc).timestamp()
    assert before - 0.001 < created <= after, "in whole milliseconds"
    time.sleep(0.01)
    jobs.claim(job, "me")
    assert job.last_modified > job.created_on
    jobs.consume(job, "me")
    assert jobs.post("quick").created_on


def test_equal_jobs_are_the_same_job(jobs: JobBoard):
    one, two = jobs.post("work"), jobs.post("work")
    assert one != two
    assert {one, two} == set(jobs.iterjobs())
    assert one != "work"


def test_a_book_travels_by_name(connect: Connect):
    board = connect()
    book = persistence_utils.temporary_log_book()
    job = board.post("work", book)
    [found] = connect().iterjobs()
    assert (found.book_uuid, found.book_name) == (book.uuid, book.name) == (job.book_uuid, job.book_name)


# Trash and entities


def test_trashed_jobs_are_kept_aside(server: Server, jobs: JobBoard):
    job = jobs.post("broken", details={"a": 1})
    with pytest.raises(exc.NotFound):
        jobs.trash(job, "me")
    jobs.claim(job, "me")
    with pytest.raises(exc.JobFailure):
        jobs.trash(job, "you")
    jobs.trash(job, "me")
    assert (names(jobs.iterjobs()), jobs.job_count, job.state) == ([], 0, states.COMPLETE)
    [found] = jobs.trashed()
    assert (found, found.details) == (job, {"a": 1})
    server.board("taskflow").requeue(job.uuid)
    assert list(jobs.iterjobs()) == [job]


def test_entities_are_registered_as_long_as_their_board_is_connected(connect: Connect):
    board, elsewhere = connect(), connect()
    board.register_entity(Entity("conductor", "c@host:1", {"hostname": "host", "pid": 1}))
    elsewhere.register_entity(Entity("cleaner", "d", {}))
    assert [one.to_dict() for one in elsewhere.entities("conductor")] == [
        {"kind": "conductor", "name": "c@host:1", "metadata": {"hostname": "host", "pid": "1"}}
    ]
    assert len(board.entities()) == 2
    board.close()
    wait_until(lambda: not elsewhere.entities("conductor"))
    with pytest.raises(exc.JobFailure):
        board.register_entity(Entity("conductor", "c", {}))


# Waiting and notifications


def test_waiting_is_ended_by_the_server(server: Server, connect: Connect):
    board = connect()
    took: queue.Queue = queue.Queue()
    before = calls(server, "job.wait")
    thread = started(lambda: took.put(names(board.wait(timeout=60))))
    wait_until(lambda: server.info("clients")["blocked_clients"] == 1, what="it waits")
    server.board("taskflow").post("{}", name="new")
    assert took.get(timeout=30) == ["new"]
    thread.join()
    assert calls(server, "job.wait") - before <= 2


def test_waiting_for_a_job_is_ended_by_the_server(server: Server, connect: Connect):
    board = connect()
    job = board.post("work")
    assert job.wait(0.05) is False
    before = calls(server, "job.wait")
    board.claim(job, "me")
    thread = started(lambda: (time.sleep(0.5), board.consume(job, "me")))
    assert job.wait(60) is True
    thread.join()
    assert calls(server, "job.wait") - before <= 2


@pytest.fixture
def told(connect: Connect) -> queue.Queue:
    """What a board with callbacks is told: (event, name of the job)."""
    found: queue.Queue = queue.Queue()
    board = connect()
    board.notifier.register("*", lambda event, details: found.put((event, details["job"].name)))
    return found


def drained(told: queue.Queue, count: int) -> list:
    found = [told.get(timeout=30) for _ in range(count)]
    time.sleep(0.05)
    assert told.empty()
    return found


def test_posts_and_removals_of_other_processes_are_told(server: Server, connect: Connect, told: queue.Queue):
    board = connect()
    for verb, name in [(board.consume, "consumed"), (board.trash, "trashed"), (board.abandon, "abandoned")]:
        job = board.post(name)
        board.claim(job, "me")
        verb(job, "me")
    raw = server.board("taskflow")
    raw.post("{}", id="c", name="cancelled")
    raw.cancel("c")
    raw.post("{}", id="d", name="deleted")
    raw.delete("d")
    assert drained(told, 9) == [
        (base.POSTED, "consumed"),
        (base.REMOVAL, "consumed"),
        (base.POSTED, "trashed"),
        (base.REMOVAL, "trashed"),
        (base.POSTED, "abandoned"),
        (base.POSTED, "cancelled"),
        (base.REMOVAL, "cancelled"),
        (base.POSTED, "deleted"),
        (base.REMOVAL, "deleted"),
    ]
    raw.requeue("c")
    raw.post("{}", queue="other", name="of another queue")
    assert drained(told, 1) == [(base.POSTED, "cancelled")]


def test_what_happened_during_a_lost_connection_is_told(server: Server, connect: Connect, told: queue.Queue):
    board = connect()
    old = board.post("old")
    assert drained(told, 1) == [(base.POSTED, "old")]
    with server.client().pipeline() as together:
        together.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
        together.execute_command("JOB.POST", "taskflow", "{}", "NAME", "meanwhile")
        together.execute_command("JOB.CANCEL", "taskflow", 1, old.uuid)
        together.execute()
    assert sorted(drained(told, 2)) == [(base.POSTED, "meanwhile"), (base.REMOVAL, "old")]
    board.post("later")
    assert drained(told, 1) == [(base.POSTED, "later")]


def test_what_happens_while_it_catches_up_is_told_once(
    server: Server, connect: Connect, told: queue.Queue, monkeypatch
):
    board, raw = connect(), server.board("taskflow")
    old = [board.post(f"old {n}") for n in range(5)]
    assert drained(told, 5) == [(base.POSTED, f"old {n}") for n in range(5)]
    catch_up = Listener._catch_up

    def meanwhile(listener: Listener) -> None:
        """When it listens again, and has not looked yet."""
        raw.cancel(*(job.uuid for job in old))
        raw.post("{}", name="flash", id="flash")
        raw.delete("flash")
        raw.post("{}", name="new")
        catch_up(listener)

    monkeypatch.setattr(Listener, "_catch_up", meanwhile)
    server.client().execute_command("CLIENT", "KILL", "TYPE", "pubsub")
    expected = [(base.REMOVAL, f"old {n}") for n in range(5)]
    expected += [(base.POSTED, "flash"), (base.REMOVAL, "flash"), (base.POSTED, "new")]
    assert sorted(drained(told, 8)) == sorted(expected)
    board.post("later")
    assert drained(told, 1) == [(base.POSTED, "later")], "nothing comes twice"


def test_a_board_without_callbacks_does_not_listen(server: Server, connect: Connect):
    connect()
    quiet = connect(emit_notifications=False)
    quiet.notifier.register(base.POSTED, print)
    assert server.info("clients").get("pubsub_clients", 0) == 0
    assert server.board("taskflow").settings("events")["events"][0] == 0


def test_the_settings_for_events_keep_what_was_set(server: Server, connect: Connect):
    server.board("taskflow").set(events="progress")
    board = connect()
    board.notifier.register(base.POSTED, print)
    assert (
        server.board("taskflow").settings("events")["events"][0]
        == 16 | 1 | 32 | 128 | 256 | 1024 | 2048 | 4096
    )


def test_who_may_not_change_settings_is_told_what_the_board_publishes(
    server: Server, connect: Connect, caplog
):
    server.board("taskflow").set(events="all")
    admin = server.client()
    admin.execute_command("ACL", "SETUSER", "default", "-job.settings")
    try:
        found: queue.Queue = queue.Queue()
        board = connect()
        board.notifier.register(base.POSTED, lambda event, details: found.put(details["job"].name))
        board.post("work")
        assert found.get(timeout=30) == "work"
        # It listens first, and asks for more events then.
        wait_until(lambda: "may not publish all events" in caplog.text, 30, what="the warning")
    finally:
        admin.execute_command("ACL", "SETUSER", "default", "+@all")


# Connections


@pytest.mark.parametrize("decode", [False, True], ids=["bytes", "text"])
def test_any_client_will_do(server: Server, protocol: int, decode: bool):
    client = server.client(protocol=protocol, decode_responses=decode)
    with contextlib.closing(JobBoard("test", {"namespace": b"k\xff"}, client=client)) as board:
        board.connect()
        board.post("work", details={"raw": b"\xff"})
        [job] = board.wait(30)
        board.claim(job, "me", expiry=60)
        assert 30 < job.expires_in() <= 60
        assert job.extend_expiry(30)
        board.abandon(job, "me")
        board.claim(job, "me")
        assert (job.details, board.find_owner(job)) == ({"raw": b"\xff"}, "me")
        board.register_entity(Entity("conductor", "c", {"a": 1}))
        assert board.entities()[0].metadata == {"a": "1"}
        board.trash(job, "me")
        assert list(board.trashed()) == [job]
    assert client.ping()


def test_a_board_can_be_named_by_a_uri(server: Server):
    uri = f"jobboard://127.0.0.1:{server.port}/?namespace=mails&lease=5"
    with backends.backend("test", uri) as board:
        assert isinstance(board, JobBoard)
        board.post("work")
    assert server.board("mails").count() == 1


def test_a_board_behind_sentinels(server: Server, tmp_path):
    executable = next(path for path in (shutil.which("redis-server"), shutil.which("valkey-server")) if path)
    port = free_port()
    conf = tmp_path / "sentinel.conf"
    conf.write_text(f"port {port}\nbind 127.0.0.1\nsentinel monitor shop 127.0.0.1 {server.port} 1\n")
    process = subprocess.Popen([executable, str(conf), "--sentinel"], stdout=subprocess.DEVNULL)
    try:
        with redis.Redis(port=port) as sentinel:
            wait_until(lambda: answers(sentinel))
        where = {"host": "127.0.0.1", "port": port, "sentinel": "shop"}
        with backends.backend("test", {"board": "jobboard", "namespace": "mails", **where}) as board:
            job = board.post("work")
            board.claim(job, "me")
            assert board.find_owner(job) == "me"
            board.consume(job, "me")
            assert job.wait(30)
    finally:
        process.kill()
        process.wait()


def answers(client: redis.Redis) -> bool:
    with contextlib.suppress(redis.ConnectionError):
        return client.ping()
    return False


def test_a_server_without_the_module_is_told_as_such(fresh_server):
    server = fresh_server(module=False)
    board = backends.fetch("test", {"board": "jobboard", "port": server.port})
    with pytest.raises(exc.IncompatibleVersion, match="module"):
        board.connect()
    assert not board.connected


def test_options_are_checked():
    with pytest.raises(ValueError, match="lease"):
        JobBoard("test", {"lease": 0})


def test_a_redis_error_is_a_job_failure(server: Server, connect: Connect):
    server.client().set("taken", "x")
    with pytest.raises(exc.JobFailure, match="WRONGTYPE") as caught:
        connect(namespace="taken")
    assert isinstance(caught.value.__cause__, redis.ResponseError)
