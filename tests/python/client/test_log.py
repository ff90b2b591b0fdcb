"""What the worker's log tells: of each job how it ended and what comes next, of itself where it works."""

from __future__ import annotations

import json
import logging
import re
import threading
import time

import jobboard
import pytest
import sentry_sdk
from jobboard import Abandon, Hooks, Lost, Next, NoRetry, Retry, Trash, Worker
from jobboard.otel import Tracing
from jobboard.sentry import Reporting
from jobboard.worker.logs import JsonFormatter
from sentry_sdk.transport import Transport

LOGGER = "jobboard.worker"


@pytest.fixture
def tasks(jobs):
    @jobs.task("mail", retries=1, backoff="1h", jitter=0)
    def mail(what: str):
        match what:
            case "fails":
                raise ValueError("no such address")
            case "for good":
                raise NoRetry("gone") from KeyError("ann")
            case "later":
                raise Retry("busy", delay="1h")
            case "abandons":
                raise Abandon("not now", delay="1h")
            case "trashes":
                raise Trash("no image")
            case "goes on":
                return Next("images", {}, name="shrink")
            case "cannot be encoded":
                return object()

    return mail


CASES = {
    "": ("INFO", r"done in \d\.\d{3} s \(queue default, attempt 1\)"),
    "goes on": ("INFO", r"goes on in the queue images as shrink in .* attempt 1\)"),
    "fails": (
        "WARNING",
        r"failed in .*attempt 1\): ValueError: no such address; "
        r"next try at 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d, 0 retries left",
    ),
    "for good": ("ERROR", r"failed for good in .*\): NoRetry: gone"),
    "later": ("WARNING", r"failed in .*\): Retry: busy; next try at"),
    "abandons": ("INFO", r"given back in .*\): not now; ready again after 3600\.0 s"),
    "trashes": ("WARNING", r"put aside in .*\): no image"),
    "cannot be encoded": ("ERROR", r"failed for good in .*\): PayloadError: no JSON: a object is none"),
}


@pytest.mark.parametrize("mode", ["threads", "asyncio"])
@pytest.mark.parametrize("what", CASES)
def test_each_outcome_has_a_line(jobs, tasks, caplog, what, mode) -> None:
    level, said = CASES[what]
    id = tasks.post(what)
    with caplog.at_level(logging.DEBUG, LOGGER):
        Worker(jobs, mode=mode, concurrency=1, name="w").run(burst=True)
    began, ended = [one for one in caplog.records if hasattr(one, "job_id")]
    assert began.levelname == "DEBUG" and began.getMessage() == f"mail {id} began (queue default, attempt 1)"
    assert ended.levelname == level and re.fullmatch(f"mail {id} (?:{said}).*", ended.getMessage())
    assert (ended.board, ended.job_id, ended.job_name) == ("board", id, "mail")
    assert (ended.queue, ended.attempt, ended.worker) == ("default", 1, "w") and ended.duration > 0


def test_a_failure_has_its_traceback_and_what_comes_next(jobs, tasks, caplog) -> None:
    ids = [tasks.post(what) for what in ("fails", "for good", "trashes")]
    with caplog.at_level(logging.INFO, LOGGER):
        Worker(jobs, concurrency=1).run(burst=True)
    failed, for_good, trashed = [
        next(one for one in caplog.records if getattr(one, "job_id", "") == id) for id in ids
    ]
    assert 'raise ValueError("no such address")' in failed.exc_text
    assert (failed.outcome, failed.kind, failed.detail, failed.left) == (
        "retry",
        "ValueError",
        "no such address",
        0,
    )
    assert failed.due[:16] == time.strftime("%Y-%m-%dT%H:%M", time.gmtime(jobs.get(ids[0]).due / 1000))
    assert "KeyError" in for_good.exc_text and for_good.outcome == "failed"
    assert trashed.exc_info is None
    assert any("KeyError" in one.get("message", "") for one in jobs.history(ids[1])), "the history has it too"


def test_a_long_message_of_a_failure_is_shortened_in_the_line(jobs, caplog) -> None:
    @jobs.handler("fails")
    def fails(context, payload) -> None:
        raise NoRetry("x" * 100_000, kind="Long")

    jobs.post(None, id="a", name="fails")
    with caplog.at_level(logging.INFO, LOGGER):
        Worker(jobs, concurrency=1).run(burst=True)
    [line] = [text for text in caplog.messages if "failed for good" in text]
    assert "Long: xxx" in line and "..." in line
    assert len(line) < 2000


@pytest.mark.parametrize("mode", ["threads", "processes"])
def test_long_messages_are_shortened_in_the_traceback_too(app_board, process, mode) -> None:
    app_board.post(None, id="a", name="raise-long", retries=0)
    worker = process(f"--{mode}", "1", "--burst", "--log-format", "json")
    assert worker.wait() == 0, worker.text
    [line] = [one for one in worker.text.splitlines() if "failed for good" in one]
    found = json.loads(line)
    assert len(line) < 12_000 and len(found["detail"]) <= 1000
    assert "in raise_long" in found["traceback"], "where it was raised"
    assert "ValueError: xxx" in found["traceback"] and "KeyError: " in found["traceback"]
    assert len(app_board.get("a").message) > 4000
    assert "in raise_long" in str(app_board.history("a")), "the history has the frames, too"


def test_a_child_process_tells_its_traceback(jobs, process, told) -> None:
    jobs.post(None, id="a", name="raise", retries=0)
    worker = process("--processes", "1", "--burst", "--log-format", "json")
    worker.wait()
    lines = [json.loads(line) for line in worker.text.splitlines()]
    [failed] = [line for line in lines if line.get("outcome") == "failed"]
    assert failed["level"] == "error" and failed["job_id"] == "a" and failed["kind"] == "ValueError"
    assert 'raise ValueError("as asked")' in failed["traceback"]
    [own] = [line for line in lines if line["message"] == "about to raise"]
    assert (own["job_id"], own["job_name"], own["logger"]) == ("a", "raise", "client_app")
    assert lines[0]["message"].endswith("1 processes") and lines[-1]["message"].endswith("it ended 1 job")


def test_json_is_one_line_whatever_it_holds() -> None:
    record = logging.makeLogRecord(
        {"msg": "a\nb %s", "args": ("\x1b",), "levelno": 20, "job_id": "\u2028", "odd": {1}}
    )
    text = JsonFormatter().format(record)
    assert "\n" not in text and "\x1b" not in text and "\u2028" not in text
    found = json.loads(text)
    assert found["message"] == "a\nb \x1b" and found["job_id"] == "\u2028" and found["odd"] == "{1}"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", found["time"])


def test_the_first_and_the_last_lines(server, jobs, work, until, caplog) -> None:
    began, go = [], threading.Event()

    @jobs.task("slow", queue="slow ones")
    def slow(n: int) -> None:
        began.append(n)
        go.wait(120)

    jobs.handler(queue="bulk")(lambda context, payload: None)
    jobs.client.set("password", "secret")
    ids = [slow.post(n) for n in range(2)]
    with caplog.at_level(logging.INFO, LOGGER):
        worker = work(jobs, concurrency=2, stop_within="30s")
        until(lambda: len(began) == 2)
        worker.worker.stop()
        until(lambda: any("waits up to" in one for one in caplog.messages))
        go.set()
        worker.thread.join(120)
    told = caplog.messages
    assert told[0] == (
        f"{worker.name} starts on Board('board') at 127.0.0.1:{server.port}, db 0: queues bulk, slow ones; "
        "tasks slow, all of the queue bulk; 2 threads"
    )
    [waits] = [one for one in told if "waits up to" in one]
    assert waits.startswith(f"{worker.name} stops: waits up to 30 s for slow ")
    assert all(id in waits for id in ids)
    assert told[-1] == f"{worker.name} has stopped: it ended 2 jobs"


def test_a_lost_job_is_told_of(jobs, work, until, caplog) -> None:
    began = []

    @jobs.task("slow")
    def slow(context) -> None:
        began.append(context.id)
        context.sleep("60s")

    id = slow.post()
    with caplog.at_level(logging.INFO, LOGGER):
        work(jobs)
        until(lambda: began)
        jobs.release(id)
        until(lambda: any(f"slow {id} lost in" in one for one in caplog.messages))


def test_a_handler_may_say_itself_that_its_job_is_lost(jobs, work, until, caplog) -> None:
    @jobs.task("slow")
    def slow() -> None:
        raise Lost("somebody else has it")

    slow.post()
    with caplog.at_level(logging.INFO, LOGGER):
        work(jobs)
        until(
            lambda: any("lost in" in one and "its handler has raised Lost" in one for one in caplog.messages)
        )


class Sent(Transport):
    def __init__(self) -> None:
        super().__init__()
        self.events: list = []

    def capture_envelope(self, envelope) -> None:
        self.events += [item.get_event() for item in envelope.items if item.get_event()]


def test_sentry_is_told_of_what_handlers_raise(server, caplog) -> None:
    board = jobboard.Board(
        "board", server.client(decode_responses=False), hook=Hooks(Tracing(), Reporting(payloads=True))
    )

    @board.task("mail", retries=0)
    def mail(what: str) -> None:
        raise {
            "fails": ValueError("no such address"),
            "later": Retry("busy", delay="1h"),
            "gives": Abandon(delay="1h"),
        }[what]

    ids = [mail.post(what) for what in ("fails", "later", "gives")]
    sent = Sent()
    with sentry_sdk.isolation_scope():
        sentry_sdk.init(dsn="http://a@localhost/1", transport=sent, default_integrations=False)
        try:
            Worker(board, concurrency=1, name="w").run(burst=True)
            sentry_sdk.flush()
        finally:
            # Not `init()`: that one patches what it finds in the process, such as RQ and Flask.
            sentry_sdk.get_global_scope().set_client(None)
    [event] = sent.events
    assert event["exception"]["values"][0]["value"] == "no such address"
    assert event["tags"] == {"jobboard.name": "mail", "jobboard.queue": "default", "jobboard.attempt": 1}
    about = event["contexts"]["job"]
    assert about == {
        "id": ids[0],
        "name": "mail",
        "queue": "default",
        "attempt": 1,
        "payload": {"what": "fails"},
        "worker": "w",
    }
    assert event["transaction"] == "mail"
