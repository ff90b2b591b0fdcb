"""Outcomes and reports that cannot be sent: no worker hangs, none ends, and no other job suffers."""

from __future__ import annotations

import logging

import pytest
from jobboard import Abandon, Next, NoRetry, Retry, Trash
from jobboard.testing import run_inline

MODES = ["threads", "asyncio", "processes"]


@pytest.fixture(params=MODES)
def app(request, app_board, work):
    """The board of client_app, and a worker of it in one mode."""
    work(app_board, mode=request.param, queues=[], concurrency=1, target="client_app:board")
    return app_board


@pytest.mark.parametrize("name", ["odd", "odd-async"])
@pytest.mark.parametrize(
    ("way", "kind", "says"),
    [
        ("message", "TypeError", "message is text, such as Retry('the server is busy', delay='5s'), not 0"),
        ("silent", "Silent", "its text cannot be had: LookupError: no text"),
        ("changed", "AttributeError", "how this run ended cannot be sent: "),
        ("next", "UnicodeEncodeError", "surrogates not allowed"),
        ("late", "DataError", "how this run ended cannot be sent: Invalid input of type: 'object'"),
        ("step", "UnicodeEncodeError", "surrogates not allowed"),
    ],
)
def test_an_end_that_cannot_be_sent_is_a_failure(app, until, name, way, kind, says) -> None:
    app.post(way, id="odd", name=name, retries=0)
    app.post("plain", id="other", name=name, retain="1m")
    until(lambda: app.state("odd") == "failed")
    job = app.get("odd")
    assert job.kind == kind and says in job.message
    until(lambda: app.state("other") == "complete")


def test_a_report_that_cannot_be_sent_is_left_out(app, until, caplog) -> None:
    with caplog.at_level(logging.WARNING, "jobboard.worker"):
        app.post("meta", id="odd", name="odd", retain="1m")
        until(lambda: app.state("odd") == "complete")
    assert app.get("odd").meta == {"other": "kept"}
    assert "odd odd: a report cannot be sent" in caplog.text


class Refusing(logging.Filter):
    """Raises at what a worker tells of an end."""

    def filter(self, record: logging.LogRecord) -> bool:
        if getattr(record, "outcome", None) in ("complete", "began"):
            raise LookupError("no such field")
        return True


@pytest.mark.parametrize("mode", MODES[:2])
@pytest.mark.parametrize("level", [logging.INFO, logging.DEBUG])
def test_a_log_that_raises_ends_the_worker(jobs, work, until, caplog, mode, level) -> None:
    """At its first record that is, of the end, or of the beginning."""

    @jobs.handler()
    def handle(context, payload) -> None: ...

    refusing, log = Refusing(), logging.getLogger("jobboard.worker")
    log.addFilter(refusing)
    try:
        with caplog.at_level(level, "jobboard.worker"):
            jobs.post(1, id="j", retain="1m")
            running = work(jobs, mode=mode)
            until(lambda: not running.thread.is_alive())
    finally:
        log.removeFilter(refusing)
    assert isinstance(running.result, LookupError)
    assert jobs.state("j") == ("complete" if level == logging.INFO else "ready")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Retry(0), r"message is text, such as Retry\('the server is busy', delay='5s'\), not 0"),
        (lambda: Retry("x", kind=1), "kind is text, such as kind='Busy', not 1"),
        (lambda: NoRetry(ValueError("x")), "message is text, such as NoRetry"),
        (lambda: NoRetry("x", kind=None), "kind is text"),
        (lambda: Abandon(7), "reason is text, such as Abandon"),
        (lambda: Trash(None), "reason is text, such as Trash"),
        (lambda: Next(3), "queue is text, such as queue='mails', not 3"),
        (lambda: Next("a", name=3), "name is text"),
        (lambda: Next("a", after="b"), "after is a list"),
    ],
)
def test_the_arguments_of_an_outcome_are_checked(make, says) -> None:
    with pytest.raises(TypeError, match=says):
        make()


def test_an_error_without_text_is_told_in_a_test(jobs) -> None:
    import client_app

    jobs.handlers = client_app.board.handlers
    jobs.post("silent", id="odd", name="odd", retries=0)
    assert [ran.state for ran in run_inline(jobs)] == ["failed"]
    assert jobs.get("odd").kind == "Silent"
