"""The verbs of Board: what is sent is what commands.md says, and what comes back, under both protocols."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import jobboard
import pytest
import redis
from harness import wait_until
from jobboard import After, Board, Node


@pytest.fixture
def jobs(server, protocol) -> Board:
    return Board("board", server.client(decode_responses=False, protocol=protocol))


def test_a_posted_job_comes_back_with_its_attributes(jobs) -> None:
    id = jobs.post(
        {"to": "ann", "größe": 3},
        name="mail",
        queue="mails",
        group="acme",
        priority=5,
        user="eve",
        meta={"a": "b"},
        tags=["x", "y"],
        retries=2,
        backoff=("100ms", timedelta(seconds=2)),
        lease=timedelta(seconds=9),
        cost=3,
    )
    job = jobs.get(id)
    assert (job.id, job.state, job.name, job.queue, job.group) == (id, "ready", "mail", "mails", "acme")
    assert (job.priority, job.user, job.meta, job.tags) == (5, "eve", {"a": "b"}, ["x", "y"])
    assert (job.left, job.cost, job.attempt, job.progress, job.worker) == (2, 3, 0, None, None)
    assert job.payload == {"to": "ann", "größe": 3}
    assert job.payload_bytes == '{"to":"ann","größe":3}'.encode()
    assert jobs.get("nobody") is None
    with pytest.raises(AttributeError):
        job.colour  # noqa: B018


def test_times_are_datetimes_with_a_zone(jobs) -> None:
    due = datetime(2030, 1, 1, tzinfo=timezone.utc)
    assert jobs.get(jobs.post(1, at=due)).due == 1893456000000
    for time in (datetime(2030, 1, 1), 1893456000000, 1893456000.0, "2030-01-01"):
        with pytest.raises(TypeError, match=r"at is a datetime with a zone, such as datetime.now\(timezone"):
            jobs.post(1, at=time)
        with pytest.raises(TypeError, match="start is a datetime with a zone"):
            jobs.schedule_set("s", every="1m", start=time)


def test_an_id_that_is_taken_is_refused_kept_or_replaced(jobs) -> None:
    jobs.post(1, id="a")
    with pytest.raises(jobboard.Exists) as refused:
        jobs.post(2, id="a")
    assert refused.value.detail == "a"
    assert isinstance(refused.value, redis.ResponseError)
    assert jobs.post(2, id="a", nx=True) is None
    assert jobs.post(2, id="a", replace=True) == "a"
    assert jobs.post(2, id="b", xx=True) is None
    assert jobs.get("a").payload == 2


def test_unique_keys(jobs) -> None:
    jobs.post(1, id="a", unique="site", delay="5s")
    assert jobs.post(2, unique="site", delay="5s", onconflict="debounce", until="start") == "a"
    with pytest.raises(jobboard.Exists):
        jobs.post(2, unique="site")


def test_a_post_waits_for_room(jobs) -> None:
    jobs.settings_set({"max-jobs": 1})
    jobs.post(1, id="old", block="5s")
    with pytest.raises(jobboard.Limit, match="max-jobs"):
        jobs.post(2, block="10ms")
    with pytest.raises(jobboard.Limit, match="max-jobs"):
        jobs.post_many([2, 3], block="10ms")
    with ThreadPoolExecutor() as threads:
        waits = threads.submit(jobs.post, 2, id="new", block="30s")
        wait_until(lambda: jobs.info()["blocked-posts"] == 1)
        jobs.delete("old")
        assert waits.result() == "new"


def test_many_are_posted_in_chunks(jobs) -> None:
    told = []
    ids = jobs.post_many(range(2500), queue="bulk", progress=told.append)
    assert told == [1000, 2000, 2500]
    assert len(set(ids)) == 2500
    assert jobs.count(queue="bulk") == 2500
    assert [job.payload for job in jobs.list(queue="bulk", page=700)] == list(range(2500))
    assert jobs.post_many(["x", "y"], ids=["a", "b"]) == ["a", "b"]
    assert [job and job.payload for job in jobs.get_many(["a", "nobody", "b"])] == ["x", None, "y"]


def test_a_flow(jobs) -> None:
    nodes = [
        Node("split", "movie", id="s"),
        Node("left", "part", after=["split"], parent="join"),
        Node("join", "all", after=[After(["split"], "run"), After(["left"], "cancel")], retries=0),
    ]
    ids = jobs.flow(nodes)
    assert ids[0] == "s"
    assert jobs.get(ids[2]).after == [ids[0], ids[1]]
    assert [child.id for child in jobs.children(ids[2])] == [ids[1]]
    with pytest.raises(jobboard.Cycle):
        jobs.flow([Node("a", 1, after=["b"]), Node("b", 1, after=["a"])])


def test_a_worker_by_hand(jobs) -> None:
    a, b = jobs.post_many([1, 2], ids=["a", "b"], backoff="10ms", retries=1)
    [job] = jobs.claim("w", lease="1h")
    assert (job.id, job.payload, job.attempt) == (a, 1, 1)
    beat = jobs.heartbeat("w", a, job.token, progress=50, stage="half", meta={"k": 1}, log="hm", payload=[1])
    assert beat.deadline > 0 and beat.cancel is False
    assert jobs.get(a).progress == 50.0
    assert jobs.get(a).payload == [1]
    other = jobs.claim_id("w", b)
    found = jobs.mheartbeat("w", [a, b, "nobody"], [job.token, other.token, 1])
    assert found[0].cancel is False and found[2].code == "NOJOB"
    assert [held.id for held in jobs.mheartbeat_all("w")] == [a, b]
    failure = jobs.fail("w", a, "IOError", "disk", job.token, retry="1m")
    assert (failure.state, failure.left) == ("scheduled", 0) and failure.due
    with pytest.raises(jobboard.NotOwner):
        jobs.consume("v", b, other.token)
    assert jobs.consume("w", b, other.token, result={"n": 1}) == "complete"
    assert jobs.get(b).result == {"n": 1}
    assert jobs.claim("w") == []


def test_a_batch_lingers_for_the_rest(jobs) -> None:
    jobs.post_many(range(3))
    assert [job.payload for job in jobs.claim("w", count=9, min=3, block="30s")] == [0, 1, 2]
    jobs.post(3)
    assert [job.payload for job in jobs.claim("w", count=9, min=3, linger="20ms", block="30s")] == [3]
    with pytest.raises(jobboard.BoardError, match="MIN must not be above COUNT"):
        jobs.claim("w", count=2, min=3)


def test_other_ends_of_work(jobs) -> None:
    jobs.post_many(range(6), ids=list("abcdef"))
    held = {job.id: job.token for job in jobs.claim("w", count=6)}
    jobs.abandon("w", "a", held["a"], delay="1m", reason="later")
    jobs.trash("w", "b", held["b"], reason="broken")
    assert jobs.consume("w", "c", held["c"], next="second", payload="c2") == "ready"
    assert jobs.mconsume("w", ["d", "a"], [held["d"], held["a"]], [{"n": 1}, None])[0] == "complete"
    assert jobs.get("d").result == {"n": 1}
    assert jobs.mabandon("w", ["e"], [held["e"]]) == ["OK"]
    assert jobs.mabandon_all("w") == ["f"]
    jobs.delete("d")
    states = {job.id: job.state for job in jobs.list()}
    assert states == {"a": "scheduled", "b": "trashed", "c": "ready", "e": "ready", "f": "ready"}


def test_selections(jobs) -> None:
    jobs.post_many(range(30), queue="q", name="n")
    assert jobs.cancel_where({"queue": "q"}, dryrun=True).count == 30
    told = []
    done = jobs.cancel_where({"queue": "q", "not_": {"name": "other"}}, count=10, progress=told.append)
    assert (done.count, told[-1]) == (30, 30)
    assert jobs.requeue_where({"state": "cancelled"}, to="r").count == 30
    assert jobs.update_where({"queue": "r"}, {"priority": 7, "tag": ["hot"]}).count == 30
    assert jobs.count(tag="hot", state=["ready", "claimed"]) == 30
    jobs.claim("w", queues=["r"], count=5)
    assert jobs.release_where({"worker": "w"}).count == 5
    assert len(jobs.delete_where({"tag": "hot"}, fields=["id", "payload"]).records) == 30
    assert jobs.count() == 0


def test_operators_verbs_by_id(jobs) -> None:
    jobs.post_many([1, 2], ids=["a", "b"], user="eve")
    [job] = jobs.claim("w")
    assert jobs.cancel("a", "b", "nobody") == ["requested", "cancelled", None]
    with pytest.raises(jobboard.NotOwner):
        jobs.cancel("a", by="fay")
    assert jobs.heartbeat("w", "a", job.token).cancel is True
    with pytest.raises(jobboard.Cancelled):
        jobs.consume("w", "a", job.token)
    assert jobs.requeue("b", queue="slow", payload={"mended": True}).count == 1
    assert jobs.get("b").payload == {"mended": True}
    with pytest.raises(ValueError, match="payload needs exactly one id"):
        jobs.requeue("a", "b", payload=1)
    assert jobs.update("b", priority=3, meta={"x": 1}, payload={"new": 1}).count == 1
    assert jobs.get("b").payload == {"new": 1}
    done = jobs.delete("b", "nobody")
    assert (done.count, done.held) == (1, ["nobody"])


def test_ends_bring_fields_and_a_line(jobs) -> None:
    jobs.post_many([1, 2, 3, 4], ids=["a", "b", "c", "d"], retries=0)
    jobs.claim("w", count=4)
    failed = jobs.fail("w", "a", "Down", "x" * 5000, meta={"host": "h"}, log="the trace", retain="1m")
    assert (failed.state, failed.left, failed.cut) == ("failed", 0, 5000 - 4096)
    job = jobs.get("a", fields=["meta", "history", "retries", "lapses"])
    assert (job.meta, job.retries, job.lapses) == ({"host": "h"}, 0, 0)
    assert [(entry["event"], entry.get("final")) for entry in job.history][2:] == [
        ("log", None),
        ("failed", 1),
    ]
    [done] = jobs.mfail("w", ["b"], "Down", meta={"host": "h"}, noretry=True)
    assert (done.state, done.cut) == ("failed", 0)
    jobs.abandon("w", "c", meta={"page": 7})
    jobs.trash("w", "d", meta={"page": 8})
    assert [job.meta for job in jobs.get_many(["b", "c", "d"])] == [
        {"host": "h"},
        {"page": "7"},
        {"page": "8"},
    ]
    [job] = jobs.claim("w")
    with pytest.raises(jobboard.WrongQueue, match="default"):
        jobs.consume("w", job.id, job.token, if_queue="mails")
    assert jobs.consume("w", job.id, job.token, if_queue="default", meta={"x": 1}, retain="1m") == "complete"
    assert jobs.get(job.id).meta == {"page": "7", "x": "1"}
    with pytest.raises(redis.ResponseError, match="kind must not be one of the server's own"):
        jobs.fail("w", "a", "lapsed")


def test_released_jobs_come_to_the_front(jobs) -> None:
    jobs.post_many([1, 2, 3], ids=["a", "b", "c"])
    jobs.claim_id("w", "c")
    assert jobs.release("c", front=True).count == 1
    assert [job.id for job in jobs.claim("w", count=3)] == ["c", "a", "b"]
    assert jobs.release_where({"worker": "w"}, front=True).count == 3
    assert [job.id for job in jobs.claim("w", count=3)] == ["c", "a", "b"]


def test_dependencies(jobs) -> None:
    jobs.post_many([1, 2, 3], ids=["a", "b", "c"])
    assert jobs.depend_add("c", "a", "b", onfailure="fail") == "blocked"
    assert jobs.depend_remove("c", "a") == "blocked"
    assert jobs.depend_clear("c") == "ready"
    with pytest.raises(jobboard.NoJob):
        jobs.depend_add("c", "nobody", strict=True)


def test_schedules(jobs) -> None:
    jobs.schedule_set("nightly", {"x": 1}, cron="0 3 * * *", tz="Europe/Berlin", name="report", jitter=5)
    jobs.schedule_set(
        "tick", "t", every=timedelta(minutes=1), overlap="skip", spread="10ms", max=3, meta={"a": "b"}
    )
    assert [row["id"] for row in jobs.schedule_list()] == ["nightly", "tick"]
    row = jobs.schedule_get("tick")
    assert (row["every"], row["payload"], row["jitter"], row["meta"]) == (60_000, "t", 10, {"a": "b"})
    assert jobs.schedule_get("nightly")["backoff-jitter"] == 5
    assert jobs.schedule_get("tick")["backlog"] == "one"
    jobs.schedule_set("tick", "t", backlog=3)
    assert jobs.schedule_get("tick")["backlog"] == 3
    assert jobs.schedule_run("tick") == "@tick@1"
    assert jobs.schedule_run("tick") is None
    jobs.schedule_pause("tick")
    assert jobs.schedule_get("tick")["state"] == "paused"
    jobs.schedule_resume("tick")
    jobs.schedule_del("tick")
    assert jobs.schedule_get("tick") is None
    with pytest.raises(jobboard.NoSchedule):
        jobs.schedule_del("tick")


def test_settings_and_pauses(jobs) -> None:
    jobs.settings_set({"lease": timedelta(minutes=1), "ownerless": True})
    jobs.settings_set({"concurrency": 2, "rate": 10}, limit="api")
    jobs.settings_set({"limits": ["api"]}, queue="q")
    assert jobs.settings_get("lease")["lease"] == (60_000, "board")
    assert jobs.settings_get("limits", queue="q")["limits"] == (["api"], "queue")
    assert [row["limit"] for row in jobs.limits()] == ["api"]
    jobs.settings_reset("lease")
    assert jobs.settings_get("lease")["lease"].source == "default"
    jobs.post(1, queue="q")
    jobs.pause(queue="q", for_="1m")
    assert jobs.claim("w", queues=["q"]) == []
    jobs.resume(queue="q")
    assert len(jobs.claim("w", queues=["q"])) == 1


def test_looking(jobs) -> None:
    jobs.post(1, id="a", tags=["red"], group="g", after=["nobody"], delay="1m")
    jobs.post(2, id="b", after=["a"])
    reasons = jobs.explain("b")["reasons"]
    assert reasons[0]["jobs"] == [{"id": "a", "state": "scheduled", "onfailure": "hold"}]
    assert jobs.explain("nobody") is None
    assert [entry["event"] for entry in jobs.history("a")] == ["posted"]
    assert jobs.info()["jobs"] == 2
    assert jobs.info(digest=True)["digest"]
    assert isinstance(jobs.queues()[0]["arrival-rate"], float)
    assert [row["group"] for row in jobs.groups()] == ["g"]
    assert [row["tag"] for row in jobs.tags()] == ["red"]
    assert jobs.stats(day=0)["posted"] == 2
    assert isinstance(jobs.stats()["wait"]["mean"], float)
    assert jobs.kinds() == {}
    assert "jobboard_jobs" in jobs.metrics()
    revision = jobs.info()["revision"]
    jobs.delete("b")
    changed = jobs.list_changed(revision)
    assert (changed.gone, [job.id for job in changed.jobs]) == (["b"], [])


def test_queues_workers_and_kinds_are_read_to_the_end(jobs, server) -> None:
    """However many pages the server gives them in."""
    names = [f"{number:0>200}" for number in range(40)]
    for name in names:
        jobs.post(1, id=name, queue=name)
        [job] = jobs.claim(name, queues=[name], lease="1h")
        jobs.fail(name, job.id, name, noretry=True)
        jobs.post(1, queue=name)
        jobs.claim(name, queues=[name], lease="1h")
    with server.configured(jobboard__max_reply=4096):
        assert [row["queue"] for row in jobs.queues()] == names
        assert [row["worker"] for row in jobs.workers()] == names
        assert list(jobs.kinds()) == names


def test_registered_workers(jobs) -> None:
    assert jobs.worker_register("w", role="r", meta={"host": "h"}, for_="1m").quiet is False
    jobs.worker_quiet("w")
    [row] = jobs.worker_list(role="r")
    assert (row["worker"], row["meta"], row["quiet"]) == ("w", {"host": "h"}, 1)
    jobs.worker_resume("w")
    assert jobs.worker_deregister("w") is True
    assert jobs.worker_deregister("w") is False
    with pytest.raises(jobboard.NoWorker):
        jobs.worker_quiet("w")


def test_waiting_for_jobs(jobs) -> None:
    jobs.block = 30  # so that waits are made of several commands
    jobs.post(1, id="a", retain="1m")
    assert jobs.wait("a", timeout="70ms") is None
    assert jobs.wait_for("claimable", timeout="10ms") is True
    assert jobs.wait_for("empty", timeout="10ms") is False
    with pytest.raises(TimeoutError):
        jobs.result("a", timeout="10ms")
    timer = threading.Timer(0.1, lambda: jobs.claim("w") and jobs.consume("w", "a", result=[7]))
    timer.start()
    assert jobs.result("a") == [7]
    timer.join()
    [job, gone] = jobs.wait("a", "nobody")
    assert (job.state, gone) == ("complete", None)


def test_results_of_jobs_that_did_not_complete(jobs) -> None:
    jobs.post(1, id="a", retries=0)
    [job] = jobs.claim("w")
    jobs.fail("w", "a", "ValueError", "no number", job.token)
    with pytest.raises(jobboard.JobFailed, match="a failed: ValueError: no number") as failed:
        jobs.result("a")
    assert failed.value.job.kind == "ValueError"
    with pytest.raises(jobboard.JobUnknown) as failed:
        jobs.result("nobody")
    assert failed.value.state == "unknown"


def test_a_call_that_nobody_answers_is_cancelled(jobs) -> None:
    with pytest.raises(TimeoutError):
        jobs.call(12, name="square", within="20ms")
    assert jobs.count(state="cancelled") == 1


@pytest.mark.parametrize("codec", ["json", "msgpack", "raw"])
def test_codecs(server, codec) -> None:
    board = Board("coded", server.client(decode_responses=True), codec=codec)  # decoding does not matter
    payload = b"\xff\x00" if codec == "raw" else {"a": [1, None, "ü"]}
    assert board.get(board.post(payload, id="a")).payload == payload
    if codec == "msgpack":
        assert board.get(board.post(b"\xff")).payload == b"\xff"
    if codec != "raw":
        Board("coded", server.client(), codec="raw").post(b"\xc1 no value", id="bad")
        with pytest.raises(jobboard.PayloadError):
            board.get("bad").payload  # noqa: B018
    with pytest.raises(jobboard.PayloadError):
        board.post(object())


def test_ids_that_are_no_text_go_there_and_back(jobs) -> None:
    id = jobs.post(1, id=b"\xff\xfe")
    assert jobs.get(id).id == id
    assert [job.id for job in jobs.list()] == [id]
    assert jobs.delete(id).count == 1


def test_what_is_misspelt_is_refused_here(jobs) -> None:
    with pytest.raises(TypeError, match="unknown option 'prio'"):
        jobs.post(1, prio=3)
    with pytest.raises(TypeError, match="unknown filter 'colour'"):
        list(jobs.list(colour="red"))
    with pytest.raises(TypeError, match="queues is a list"):
        jobs.claim("w", queues="mails")
    with pytest.raises(TypeError, match="priority is a whole number, such as priority=3, not 'high'"):
        jobs.post(1, priority="high")


def test_jobs_are_found_by_what_they_say_and_when(jobs) -> None:
    for id, plan in [("order-1", "pro"), ("order-2", "free"), ("mail-1", "pro")]:
        jobs.post({"to": id}, id=id, meta={"plan": plan, "region": "eu"}, parent=None)
    jobs.post({}, id="child", parent="order-1", after=["order-2"])

    def found(**filters) -> set[str]:
        return {job.id for job in jobs.list(fields=["id"], **filters)}

    assert found(id="order-*") == {"order-1", "order-2"}
    assert found(contains="mail") == {"mail-1"}
    assert found(meta={"plan": ["pro", "team"], "region": "eu"}) == {"order-1", "mail-1"}
    assert found(parent="order-1") == found(after="order-2") == {"child"}
    assert found(posted=("1h", None), not_={"meta": {"plan": "free"}, "parent": "order-1"}) == {
        "order-1",
        "mail-1",
    }
    assert (
        found(posted=(None, timedelta(hours=1)), ended=(datetime(2020, 1, 1, tzinfo=timezone.utc), None))
        == set()
    )
    assert jobs.count(contains=["order-1", "mail"]) == 2
    assert found(message="x") == found(stage="x") == set()
    for wrong in ("2h", ("2h",), 5):
        with pytest.raises(TypeError, match="the filter posted is a first and a last time"):
            jobs.count(posted=wrong)
    with pytest.raises(TypeError, match="the filter meta is a mapping"):
        jobs.count(meta="plan")


def test_what_the_server_itself_says_stays_as_it_is(jobs) -> None:
    jobs.client.config_set("maxmemory", 1)
    try:
        with pytest.raises(redis.OutOfMemoryError) as refused:
            jobs.post(1)
    finally:
        jobs.client.config_set("maxmemory", 0)
    assert not isinstance(refused.value, jobboard.BoardError)


def test_a_dead_job_comes_back_by_id_and_by_filters(jobs) -> None:
    jobs.settings_set({"dead-queue": "unsent"}, queue="mails")
    assert jobs.settings_get("dead-queue", queue="mails")["dead-queue"].value == "unsent"
    jobs.post({"to": "ann"}, id="a", queue="mails", retries=0)

    def dies() -> jobboard.Job:
        jobs.claim("w", queues=["mails"])
        failure = jobs.fail("w", "a", "Refused", "no such mailbox")
        assert (failure.state, failure.dead) == ("ready", "unsent")
        return jobs.get("a")

    job = dies()
    assert (job.queue, job.payload) == ("unsent", {"to": "ann"})
    assert (job.origin.queue, job.origin.attempts) == ("mails", 1)
    assert jobs.requeue("a", origin=True).count == 1
    assert jobs.get("a").queue == "mails" and jobs.get("a").origin is None
    dies()
    assert jobs.requeue_where({"queue": "unsent", "message": "mailbox"}, origin=True).count == 1
    assert jobs.get("a").queue == "mails"
