"""`jobboard import rq`, on jobs that RQ has made."""

from __future__ import annotations

import datetime
import json
import logging
import os
import pickle
import resource
import time
import uuid
import zlib

import pytest

pytest.importorskip("rq", reason="RQ 3 needs Python 3.10")

import redis  # noqa: E402
from expect import ids  # noqa: E402
from harness import Server, now  # noqa: E402
from jobboard.importers import rq as rq_importer  # noqa: E402
from jobboard.importers.postings import Posting  # noqa: E402
from rq import Queue, Retry, SimpleWorker  # noqa: E402
from rq.job import Job  # noqa: E402
from rq.rate_limit import RateLimit  # noqa: E402

logging.getLogger("rq").setLevel(logging.ERROR)


def send(to: str, copies: int = 1) -> str:
    return f"{copies} to {to}"


def fail(text: str) -> None:
    raise ValueError(text)


def functions(name: str) -> str:
    return f"{__name__}.{name}"


@pytest.fixture
def mails(source: redis.Redis) -> Queue:
    return Queue("mails", connection=source)


def test_waiting_jobs_come_in_their_order_with_their_attributes(server: Server, mails: Queue, imported):
    first = mails.enqueue(
        "tasks.send",
        "ann",
        copies=2,
        job_timeout=90,
        result_ttl=60,
        meta={"tenant": "acme", "n": 1},
        retry=Retry(max=3, interval=[10, 20, 40]),
        description="a mail to ann",
    )
    second = mails.enqueue("tasks.send", "bob", result_ttl=-1, ttl=3600, retry=Retry(max=2, interval=7))
    mails.enqueue("tasks.send", "eve", at_front=True, job_id="front", result_ttl=0, job_timeout=-1)
    assert imported("rq")[0] == 0

    board = server.board()
    assert ids(board.list(queue="mails", state="ready")[1]) == ["front", first.id, second.id]
    job = board.get(first.id)
    assert (job["name"], job["queue"], job["left"]) == ("tasks.send", "mails", 3)
    assert json.loads(job["payload"]) == {"func": "tasks.send", "args": ["ann"], "kwargs": {"copies": 2}}
    meta = job["meta"]
    assert (meta["tenant"], meta["n"], meta["description"]) == ("acme", "1", "a mail to ann")
    assert meta["source"] == "rq"
    assert abs(int(meta["created"]) - time.time() * 1000) < 60_000
    assert json.loads(meta["retry-intervals"]) == [10, 20, 40]
    assert board.get(second.id)["left"] == 2
    assert board.get("front")["left"] == 0

    claimed = board.claim_one("w1", id=first.id, fields=["deadline", "claimed"], lease=3_600_000)
    assert claimed["deadline"] - claimed["claimed"] == 90_000, "the time-out of its run"
    assert board.fail("w1", first.id)["state"] == "scheduled"
    job = board.get(first.id)
    assert abs(job["due"] - job["modified"] - 10_000) < 100
    board.claim_one("w1", id="front")
    board.consume("w1", "front", result="x")
    assert board.get("front") is None, "result_ttl 0"
    board.claim_one("w1", id=second.id)
    board.consume("w1", second.id, result="x")
    assert board.get(second.id)["state"] == "complete"


def test_nothing_of_what_was_moved_stays(server: Server, source: redis.Redis, mails: Queue, imported):
    mails.enqueue("tasks.send", "ann", meta={"a": 1})
    mails.enqueue_in(datetime.timedelta(hours=1), "tasks.send", "bob")
    broken = mails.enqueue(functions("fail"), "no", job_id="broken")
    SimpleWorker([Queue("other", connection=source)], connection=source).work(burst=True)
    run_one(source, mails, broken)
    assert imported("rq")[0] == 0
    left = {key.decode() for key in source.keys("rq:*")}
    assert not {key for key in left if "job" in key or "results" in key}
    assert not left & {"rq:queue:mails", "rq:scheduled:mails", "rq:failed:mails"}
    assert imported("rq") == (0, f"{'state':>12}{'found':>12}{'moved':>12}{'stay':>12}\n{'none':>12}\n")
    assert server.board().count(state=["ready", "scheduled", "failed"]) == 3


def run_one(source: redis.Redis, queue: Queue, job: Job) -> None:
    """Lets an RQ worker run one job: those before it in the queue are taken off meanwhile."""
    others = [id for id in queue.job_ids if id != job.id]
    for id in others:
        source.lrem(queue.key, 0, id)
    SimpleWorker([queue], connection=source).work(burst=True, logging_level="CRITICAL")
    for id in others:
        source.rpush(queue.key, id)


def test_delayed_jobs_keep_their_time(server: Server, mails: Queue, imported):
    at = datetime.datetime(2040, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
    mails.enqueue_at(at, "tasks.send", "ann", job_id="later")
    assert imported("rq", "board", "mails")[0] == 0
    job = server.board().get("later")
    assert (job["state"], job["due"]) == ("scheduled", int(at.timestamp() * 1000))


def test_failed_jobs_come_with_their_failure(server: Server, source: redis.Redis, mails: Queue, imported):
    job = mails.enqueue(functions("fail"), "no such file", job_id="broken")
    run_one(source, mails, job)
    assert Job.fetch("broken", connection=source).is_failed
    assert imported("rq")[0] == 0
    board = server.board()
    found = board.get("broken")
    assert (found["state"], found["kind"], found["queue"]) == ("failed", "ValueError", "mails")
    assert found["message"].rstrip().endswith("ValueError: no such file")
    assert board.requeue("broken").count == 1
    assert board.claim_one("w1", queues=["mails"])["id"] == "broken"


def test_a_job_that_was_tried_has_the_retries_that_are_left(
    server: Server, source: redis.Redis, mails: Queue, imported
):
    job = mails.enqueue(functions("fail"), "no", retry=Retry(max=3, interval=3600))
    run_one(source, mails, job)
    assert imported("rq")[0] == 0
    found = server.board().get(job.id)
    assert (found["state"], found["left"]) == ("scheduled", 2)


def test_dependent_jobs_wait_for_those_that_they_waited_for(server: Server, source: redis.Redis, imported):
    mails, texts = Queue("mails", connection=source), Queue("texts", connection=source)
    done = mails.enqueue(functions("send"), "done")
    run_one(source, mails, done)
    first = mails.enqueue("tasks.send", "first", job_id="first")
    mails.enqueue("tasks.send", "second", job_id="second", depends_on=[first, done])
    texts.enqueue("tasks.send", "third", job_id="third", depends_on="second")
    code, output = imported("rq", "board", "texts")
    assert code == 1
    assert "stays: third: waits for second, which is not on the board" in output
    assert imported("rq")[0] == 0
    board = server.board()
    assert board.get("second")["after"] == ["first"]
    assert board.get("third")["after"] == ["second"]
    board.claim_one("w1", queues=["mails"])
    board.consume("w1", "first")
    assert (board.state("second"), board.state("third")) == ("ready", "blocked")


def test_arguments_that_json_cannot_hold_stay_packed(server: Server, mails: Queue, imported):
    job = mails.enqueue("tasks.send", uuid.UUID(int=7), meta={"id": uuid.UUID(int=1)})
    assert imported("rq")[0] == 0
    raw = server.raw_client().execute_command(
        "JOB.GET", "board", job.id, "FIELDS", 3, "payload", "meta", "name"
    )
    assert raw[b"meta"][b"encoding"] == b"pickle"
    assert pickle.loads(raw[b"payload"]) == ("tasks.send", None, (uuid.UUID(int=7),), {})
    assert pickle.loads(raw[b"meta"][b"meta"]) == {"id": uuid.UUID(int=1)}
    assert raw[b"name"].startswith(b"tasks.send")


class Bomb:
    """Unpickled, it would make a folder."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return os.mkdir, (self.path,)


def test_a_pickle_calls_nothing(mails: Queue, imported, tmp_path):
    mails.enqueue("tasks.send", Bomb(str(tmp_path / "made")))
    assert imported("rq")[0] == 0
    assert not (tmp_path / "made").exists()


def test_jobs_of_the_json_serializer(server: Server, source: redis.Redis, imported):
    queue = Queue("plain", connection=source, serializer="json")
    job = queue.enqueue("tasks.send", "ann", copies=3, meta={"a": [1]})
    assert imported("rq")[0] == 0
    found = server.board().get(job.id)
    assert json.loads(found["payload"])["kwargs"] == {"copies": 3}
    assert found["meta"]["a"] == "[1]"


def test_running_jobs_are_moved_when_it_is_asked_for(
    server: Server, source: redis.Redis, mails: Queue, imported
):
    job = mails.enqueue("tasks.send", "ann", job_id="begun")
    worker = SimpleWorker([mails], connection=source)
    source.lrem(mails.key, 0, job.id)
    worker.prepare_execution(job)
    code, output = imported("rq")
    assert (code, server.board().count()) == (0, 0)
    assert "not asked for: 1 running of mails" in output
    assert imported("rq", "board", "--running")[0] == 0
    assert server.board().state("begun") == "ready"
    assert not source.zcard("rq:wip:mails")


def test_jobs_that_a_rate_limit_holds_back_come_as_a_group(
    server: Server, source: redis.Redis, mails, imported
):
    limit = RateLimit("api", concurrency=1)
    for n in range(3):
        mails.enqueue("tasks.send", n, rate_limit=limit, job_id=f"limited-{n}")
    Queue("texts", connection=source).enqueue("tasks.send", 3, rate_limit=limit, job_id="text")
    assert mails.job_ids == ["limited-0"]
    code, output = imported("rq", "board", "mails")
    assert code == 0
    assert f"{'held':>12}{2:>12}{2:>12}{0:>12}" in output
    board = server.board()
    assert ids(board.list(queue="mails")[1]) == ["limited-0", "limited-1", "limited-2"]
    assert board.groups()["mails", "api"]["ready"] == 3
    assert source.zrange("rq:rl:api:rate_limited", 0, -1) == [b"text"]
    assert not source.zcard("rq:rl:api:allowed")
    assert imported("rq")[0] == 0
    assert board.get("text")["queue"] == "texts"


def test_jobs_that_were_taken_and_not_begun_are_running(server: Server, source: redis.Redis, mails, imported):
    mails.enqueue("tasks.send", "ann", job_id="taken")
    mails.enqueue("tasks.send", "bob", job_id="bob")
    source.lmove(mails.key, mails.intermediate_queue_key, "LEFT", "RIGHT")
    code, output = imported("rq")
    assert (code, server.board().count()) == (0, 1)
    assert "not asked for: 1 taken of mails" in output
    assert imported("rq", "board", "--running")[0] == 0
    assert server.board().state("taken") == "ready"


def test_one_queue_of_the_board_can_take_them_all(server: Server, source: redis.Redis, imported):
    for name in ("a", "b"):
        Queue(name, connection=source).enqueue("tasks.send", name)
    assert imported("rq", "board", "--queue", "all")[0] == 0
    assert server.board().count(queue="all") == 2


def test_a_job_whose_data_have_gone_stays(server: Server, source: redis.Redis, mails: Queue, imported):
    job = mails.enqueue("tasks.send", "ann")
    source.delete(job.key)
    mails.enqueue("tasks.send", "bob")
    code, output = imported("rq")
    assert (code, server.board().count()) == (1, 1)
    assert f"stays: {job.id}: its data have gone" in output


def test_nothing_empty_is_moved(server: Server, source: redis.Redis, mails: Queue, imported):
    job = mails.enqueue("tasks.send", "ann")
    fields = source.hgetall(job.key)
    assert b"" in fields.values(), "RQ writes empty fields"
    assert imported("rq")[0] == 0
    meta = server.board().get(job.id)["meta"]
    assert set(meta) == {"source", "created", "description"}


def test_a_long_description_is_cut(server: Server, mails: Queue, imported):
    described = mails.enqueue("tasks.send", "ann", description="ö" * 5000)
    nameless = mails.enqueue("tasks.send", "bob", description="ö" * 5000 + "(1)")
    source = mails.connection
    source.hset(nameless.key, "data", zlib.compress(pickle.dumps(object())))
    assert imported("rq")[0] == 0
    for job in (described, nameless):
        description = raw(server, job, "meta")[b"description"].decode()
        assert description.startswith("ööö") and description.endswith("...")
        assert len(description.encode()) <= 4096
    name = raw(server, nameless, "name").decode()
    assert name.startswith("ööö") and len(name.encode()) <= 255


def raw(server: Server, job: Job, field: str):
    """A field of a record whose payload is no text."""
    return server.raw_client().execute_command("JOB.GET", "board", job.id, "FIELDS", 1, field)[field.encode()]


@pytest.fixture
def bounded(monkeypatch):
    """Bombs of this test need not be larger than 1 MiB."""
    monkeypatch.setattr(rq_importer, "MOST", 1 << 20)


def test_what_unpacks_to_too_much_stays(server: Server, source, mails: Queue, imported, bounded):
    job = mails.enqueue("tasks.send", "ann")
    bomb = zlib.compress(bytes(2 << 20))
    assert len(bomb) < 10_000
    source.hset(job.key, "data", bomb)
    code, output = imported("rq")
    assert code == 1
    assert f"stays: {job.id}: it unpacks to more than 1 MiB" in output
    assert mails.job_ids == [job.id]


def test_a_traceback_that_unpacks_to_too_much_is_not_shown(
    server: Server, source, mails: Queue, imported, bounded
):
    job = mails.enqueue("tasks.send", "ann")
    source.lrem(mails.key, 0, job.id)
    source.zadd("rq:failed:mails", {job.id: 2_000_000_000})
    source.hset(job.key, "exc_info", zlib.compress(bytes(2 << 20)))
    assert imported("rq")[0] == 0
    assert "unpacks to more than 1 MiB" in server.board().get(job.id)["message"]


@pytest.mark.parametrize("shape", ["shared", "deep", "digits"])
def test_a_pickle_that_would_become_much_larger_stays_packed(
    server: Server, source, mails: Queue, imported, bounded, shape
):
    number = pickle.encode_long(10**5000)
    argument = {
        "shared": b")" + b"2\x86" * 64,  # of an empty tuple, 64 times a pair of the same two
        "deep": b")" + b"\x85" * 2000,
        "digits": b"\x8b" + len(number).to_bytes(4, "little") + number,
    }[shape]
    packed = pickle.dumps(("tasks.send", None, (1,), {}), 3).replace(b"K\x01", argument)
    job = mails.enqueue("tasks.send", "ann", meta={})
    source.hset(job.key, "data", zlib.compress(packed))
    assert imported("rq")[0] == 0
    assert raw(server, job, "meta")[b"encoding"] == b"pickle"


@pytest.mark.parametrize(
    "fields",
    [
        {"data": b"[" * 100_000},
        {"timeout": "inf"},
        {"retries_left": "many"},
        {"retries_left": "2", "retry_intervals": "[" * 100_000},
    ],
)
def test_a_job_that_cannot_be_read_holds_up_no_other(
    server: Server, source, mails: Queue, imported, fields: dict
):
    job, other = mails.enqueue("tasks.send", "ann"), mails.enqueue("tasks.send", "bob")
    source.hset(job.key, mapping=fields)
    code, output = imported("rq")
    assert ids(server.board().list()[1])[-1] == other.id
    if "data" in fields:
        assert code == 0 and raw(server, job, "meta")[b"encoding"] == b"pickle"
    else:
        assert code == 1 and f"stays: {job.id}: it cannot be read: " in output
        assert mails.job_ids == [job.id]


def test_an_id_that_is_no_text_holds_up_no_other(server: Server, source, mails: Queue, imported):
    job = mails.enqueue("tasks.send", "ann")
    source.lpush(mails.key, b"\xff\xfe")
    source.hset(b"rq:job:\xff\xfe", "data", source.hget(job.key, "data"))
    assert imported("rq")[0] == 0
    assert server.raw_client().execute_command("JOB.LIST", "board", "JUSTID")[1] == [
        b"\xff\xfe",
        job.id.encode(),
    ]
    assert not source.keys("rq:job:*")


@pytest.mark.parametrize(
    "argument",
    [
        b"})" + b"2\x86" * 100 + b"K\x01s",
        b"(" + b")" + b"2\x86" * 100 + b"K\x01d",
        b"\x8f(" + b")" + b"2\x86" * 100 + b"\x90",
        b"(" + b")" + b"2\x86" * 100 + b"\x91",
    ],
    ids=["setitem", "dict", "set", "frozenset"],
)
def test_a_pickle_that_would_be_hashed_for_ever_stays_packed(
    server: Server, source, mails: Queue, imported, argument
):
    packed = pickle.dumps(("tasks.send", None, (1,), {}), 3).replace(b"K\x01", argument, 1)
    job = mails.enqueue("tasks.send", "ann")
    source.hset(job.key, "data", zlib.compress(packed))
    assert imported("rq")[0] == 0
    assert raw(server, job, "meta")[b"encoding"] == b"pickle"


@pytest.mark.parametrize(
    "part",
    [b"Nr" + (40_000_000).to_bytes(4, "little"), b"Np40000000\n", b"\x96" + (1 << 33).to_bytes(8, "little")],
    ids=["binput", "put", "bytearray"],
)
def test_a_short_pickle_takes_no_memory(part):
    """Of a number that it names: of a place to remember a part at, of the length of one."""
    packed = b"\x80\x05(" + part + b"t."
    rq_importer.put_call(Posting("j", b""), b"\x80\x05N.")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rq_importer.put_call(Posting("j", b""), packed)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB


def test_what_is_plain_is_read_as_pickle_does():
    values = ({"a": {1, 2}, (1, "b"): frozenset([3])}, bytearray(b"x"), [None, True, 1.5, b"y"], {"z": ()})
    assert rq_importer.Plain(pickle.dumps(values, 5)).load() == values
    assert rq_importer.Plain(pickle.dumps(values[0], 4)).load() == values[0]
    for protocol in range(4):  # sets and bytes are of classes there, or of the newer protocols alone
        plain = [None, True, 1.5, "é", 10**30, {"a": {1: (2, 3)}}, ()]
        assert rq_importer.Plain(pickle.dumps(plain, protocol)).load() == plain


def test_a_meta_field_of_the_user_hides_no_encoding(server: Server, mails: Queue, imported):
    job = mails.enqueue("tasks.send", {1, 2}, meta={"encoding": "utf-8"})
    assert imported("rq")[0] == 0
    meta = raw(server, job, "meta")
    assert (meta[b"encoding"], meta[b"meta-encoding"]) == (b"pickle", b"utf-8")


def test_a_suspension_pauses_the_queues(server: Server, source: redis.Redis, mails: Queue, imported):
    mails.enqueue("tasks.send", "ann")
    source.set("rq:suspended", 1)
    code, output = imported("rq")
    assert code == 0 and "set: queue mails: paused\n" in output
    assert server.board().claim("w1", queues=["mails"]) == []
    server.board().resume(queue="mails")
    source.set("rq:suspended", 1, ex=3600)
    mails.enqueue("tasks.send", "bob")
    assert "set: queue mails: paused for 3" in imported("rq")[1]
    assert 0 < server.board().queues()["mails"]["paused"]


def test_failed_jobs_come_to_a_queue_that_is_suspended_for_a_time(
    server: Server, source: redis.Redis, mails: Queue, imported
):
    job = mails.enqueue("tasks.send", "ann", ttl=60)
    source.lrem(mails.key, 0, job.id)
    source.zadd("rq:failed:mails", {job.id: 2_000_000_000})
    source.expire(job.key, 31_536_000)  # for so long RQ keeps the failure
    mails.enqueue("tasks.send", "bob")
    source.set("rq:suspended", 1, ex=3600)
    code, output = imported("rq")
    assert code == 0, output
    board = server.board()
    assert board.state(job.id) == "failed"
    assert board.claim("w1", queues=["mails"]) == []
    assert 0 < board.queues()["mails"]["paused"] <= now() + 3_600_000, "it ends when it would have"
    board.requeue(job.id)
    reasons = source.execute_command("JOB.EXPLAIN", "board", job.id)[b"reasons"]
    [ends] = [reason[b"at"] for reason in reasons if reason[b"reason"] == b"expires"]
    assert ends <= now() + 60_000
