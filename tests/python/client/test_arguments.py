"""Arguments of a wrong type or out of range: refused where they are given, by a sentence that names them."""

from __future__ import annotations

import inspect
import re
from datetime import timedelta
from typing import Any

import pytest
from jobboard import Await, Board, Context, Handlers, ShardedBoard, Worker
from jobboard.board.tasks import KNOWN

WRONGS: dict[str, list[tuple[Any, str]]] = {
    "queue": [("", "queue is a text of 1 to 255 bytes, not one of 0"), (5, "queue is text, such as")],
    "group": [("x" * 256, "group is a text of 1 to 255 bytes"), ([], "group is text")],
    "cost": [
        (0, "cost must be from 1 to 2147483647, not 0"),
        ("3", "cost is a whole number, such as cost=3"),
    ],
    "costs": [
        ("tokens=5", "costs is a dict of limits and permits"),
        ({}, "costs names at least one limit"),
        ({"tokens": -1}, "must be from 0 to 2147483647, not -1"),
        ({"tokens": "5"}, "is a whole number"),
        ({"": 5}, "a limit in costs is a text of 1 to 255 bytes"),
    ],
    "priority": [(2**31, "priority must be from -2147483648"), (1.5, "priority is a whole number")],
    "delay": [(5, "delay is text with a unit"), ("soon", "delay is text with a unit")],
    "at": [("noon", "at is a datetime with a zone")],
    "retries": [("3", "retries is a whole number, such as retries=3, not '3'"), (True, "retries is a whole")],
    "lapses": [(-2, "lapses must be from -1"), (None, "")],
    "backoff": [(5, "backoff is text with a unit"), (("1s", "2s", "3s"), "backoff is one duration, or two")],
    "jitter": [(101, "jitter must be from 0 to 100"), ("10%", "jitter is a whole number")],
    "lease": [(30, "lease is text with a unit"), ("9" * 30 + "d", "lease is longer than a board counts")],
    "timeout": [(5.0, "timeout is text with a unit"), (timedelta(seconds=-1), "cannot be negative")],
    "expire": [("1 day", "expire is text with a unit")],
    "retain": [(60, "retain is text with a unit")],
    "user": [(b"", "user is a text of 1 to 255 bytes")],
    "meta": [
        ("a=b", "meta is a dict of texts"),
        ({"a": None}, "'a' is None: write str"),
        ({5: "a"}, "is text"),
    ],
    "tags": [
        ("red", "tags is a list, such as tags=.'mails'"),
        ([5], "tags is a list of texts"),
        (5, "a list"),
    ],
    "after": [("id", "after is a list"), ([5], "after is a list of texts")],
    "after_children": [
        (3, "after_children must be one of"),
        ("maybe", "hold, cancel, fail, run, not 'maybe'"),
    ],
    "await_": [
        (5, "await_ is a list"),
        ([5], "await_ is a list of texts"),
        (Await("paid", within=5), "within is text with a unit"),
        (Await("paid", within="1h", ontimeout="stop"), "ontimeout must be one of"),
    ],
    "strict": [("yes", "strict is True or False, not 'yes'")],
    "parent": [(5, "parent is text")],
    "share": [(0, "share must be from 1 to 1000000")],
    "maxlive": [(0, "maxlive must be from 1")],
    "until": [("later", "until must be one of start, end, not 'later'"), (5, "until must be one of")],
    "for_": [(5, "for is text with a unit")],
    "unique": [("", "unique is a text of 1 to 255 bytes"), (5, "unique is")],
    "onconflict": [("keep", "onconflict must be one of reject, return, replace, debounce")],
    "id": [(5, "id is text"), ("", "id is a text")],
    "replace": [("no", "replace is True or False")],
    "block": [(5, "block is text with a unit")],
    "together": [(5, "together is text")],
}
OF_CALLS = {"id", "at", "after", "strict", "parent", "share", "together", "replace", "block"}


def refused(says: str) -> Any:
    return pytest.raises((TypeError, ValueError), match=says)


def test_options_of_tasks_and_posts(jobs) -> None:
    assert WRONGS.keys() | {"nx", "xx"} >= KNOWN, "each option is tried"
    task = jobs.task("mail")(lambda to: None)
    for name, wrongs in WRONGS.items():
        for value, says in wrongs:
            if value is None:
                continue
            if name not in OF_CALLS:
                with refused(says):
                    jobs.task(f"of {name}", **{name: value})(lambda: None)
            with refused(says):
                task.using(**{name: value})
            if name not in ("unique", "together"):
                with refused(says):
                    jobs.post({"to": "ann"}, name="mail", **{name: value})
            if name not in OF_CALLS | {"at", "delay", "jitter", "unique", "maxlive", "for_"}:
                with refused(says):
                    jobs.schedule_set("s", {"to": "ann"}, name="mail", every="1h", **{name: value})
    assert not jobs.info()


@pytest.mark.parametrize("wrong", [5, "ValueError", [ValueError, "x"], int, (ValueError(),)])
def test_exceptions_after_which_a_job_is_not_tried_again(jobs, wrong) -> None:
    says = re.escape("noretry is a tuple of exceptions, such as noretry=(ValueError,), not")
    with refused(says):
        jobs.task("a", noretry=wrong)(lambda: None)
    with refused(says):
        jobs.handler("a", noretry=wrong)


@pytest.mark.parametrize("right", [ValueError, [ValueError], (ValueError, KeyError), ()])
def test_exceptions_may_stand_alone(jobs, right) -> None:
    @jobs.task(noretry=right, backoff="1h")
    def fails() -> None:
        raise ValueError

    id = fails.post()
    Worker(jobs, concurrency=1).run(burst=True)
    assert jobs.state(id) == ("failed" if right else "scheduled")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"max": "3"}, "max is a whole number"),
        ({"backlog": "most"}, "backlog must be one of skip, one, all"),
        ({"backlog": 401}, "backlog must be from 1 to 400"),
        ({"overlap": 5}, "overlap must be one of allow, skip, replace"),
        ({"cron": 5}, "cron is text"),
        ({"tz": ""}, "tz is a text"),
        ({"start": "noon"}, "start is a datetime with a zone"),
        ({"spread": 5}, "spread is text with a unit"),
        ({"id": 5}, "id is text"),
        ({"arguments": "ann"}, "arguments is a dict, such as {'to': …}, not 'ann'"),
    ],
)
def test_arguments_of_a_schedule(jobs, options, says) -> None:
    task = jobs.task("mail")(lambda to: None)
    given = {"arguments": {"to": "ann"}, "every": None if "cron" in options else "1h", **options}
    with refused(re.escape(says)):
        task.schedule(**given)
    assert not jobs.info()


WORKER: dict[str, list[tuple[Any, str]]] = {
    "mode": [("fork", "mode must be one of threads, processes, asyncio"), (5, "mode must be one of")],
    "concurrency": [
        ("a", "concurrency is a whole number, such as concurrency=3, not 'a'"),
        (0, "at least 1"),
    ],
    "queues": [("mails", "queues is a list"), ([5], "queues is a list of texts"), ([""], "1 to 255 bytes")],
    "order": [("first", "order must be one of best, listed, rotate")],
    "name": [(5, "name is text"), ("", "name is a text of 1 to 255 bytes")],
    "lease": [(30, "lease is text with a unit"), ("1ms", "lease is at least '30ms', not '1ms'")],
    "prefetch": [(-1, "prefetch must be at least 0"), ("2", "prefetch is a whole number")],
    "block": [(2, "block is text with a unit"), ("0s", "block is at least '1ms', not '0ms'")],
    "stop_within": [(20, "stop_within is text with a unit"), (timedelta(seconds=-1), "at least 0")],
    "interrupt": [("stop", "interrupt must be one of raise, flag, kill"), ("kill", "needs mode='processes'")],
    "kill_after": [(5, "kill_after is text with a unit"), (timedelta(seconds=-1), "at least 0")],
    "register": [("no", "register is True or False")],
    "session": [(1, "session is True or False")],
    "role": [("", "role is a text"), (5, "role is text")],
    "listen": [("no", "listen is True or False")],
    "keep": [
        (0, "keep is True, False, or how many completed jobs a board keeps"),
        ("no", "such as 5000, not 'no'"),
    ],
    "health_port": [
        ("http", "health_port is a port, or host:port"),
        (70_000, "health_port is"),
        ([], "is a port"),
    ],
    "health_file": [(5, "health_file is the path of a file")],
    "tracebacks": [("no", "tracebacks is True or False")],
    "fields": [("meta", "fields is a list"), ([5], "fields is a list of texts")],
    "handlers": [({}, "handlers is an object of Handlers")],
    "target": [(5, "target is text")],
}


def test_arguments_of_a_worker(jobs) -> None:
    jobs.task("mail")(lambda to: None)
    assert WORKER.keys() == inspect.signature(Worker).parameters.keys() - {"board"}, "each one is tried"
    for name, wrongs in WORKER.items():
        for value, says in wrongs:
            with refused(says):
                Worker(jobs, **{name: value})


def test_arguments_of_boards(server) -> None:
    client = server.client(decode_responses=False)
    for wrong, says in (
        ({"codec": 5}, "codec is json, msgpack, raw or an object of a codec, not 5"),
        ({"codec": "yaml"}, "codec must be one of"),
        ({"hook": 5}, "hook is an object of jobboard.Hook"),
    ):
        with refused(says):
            Board("b", client, **wrong)
        with refused(says):
            ShardedBoard("b", client, shards=2, **wrong)
    for shards, says in (
        ("3", "shards is a whole number"),
        (0, "shards must be at least 1"),
        (True, "whole"),
    ):
        with refused(says):
            ShardedBoard("b", client, shards=shards)


def test_names_of_handlers(jobs) -> None:
    for options, says in (({"name": 5}, "name is text"), ({"queue": ""}, "queue is a text of 1 to 255")):
        with refused(says):
            Handlers().handler(**options)
        with refused(says):
            jobs.handler(**options)
    with refused("name is a text of 1 to 255 bytes"):
        jobs.task("")


def test_what_is_right_is_let_be(jobs) -> None:
    @jobs.task(
        queue=b"q", retries=-1, unique=["to"], onconflict="return", tags=("a",), meta={"n": 5, "x": 1.5}
    )
    def mail(context: Context, to: str) -> None: ...

    assert mail.post("ann") == mail.post("ann")
    job = jobs.get(
        mail.using(priority=-(2**31), strict=None, unique=False, onconflict=None, retain="forever").post(
            "bob"
        )
    )
    assert (job.queue, job.meta, job.priority, job.tags) == ("q", {"n": "5", "x": "1.5"}, -(2**31), ["a"])
