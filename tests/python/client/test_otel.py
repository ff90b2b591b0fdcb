"""OpenTelemetry: spans of posts and runs, joined through META."""

from __future__ import annotations

import pickle
import sys

import jobboard
import pytest
from jobboard import Board, Worker
from jobboard.otel import Tracing


@pytest.fixture
def spans(monkeypatch):
    """What has been exported."""
    monkeypatch.syspath_prepend(f"{sys.prefix}/tracing")
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    return InMemorySpanExporter()


@pytest.fixture
def board(server, spans) -> Board:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    return Board("board", server.client(decode_responses=False), hook=Tracing(provider))


@pytest.mark.parametrize("mode", ["threads", "asyncio"])
def test_a_run_is_a_child_of_its_post(board, spans, mode) -> None:
    @board.handler("outer")
    async def outer(context, payload):
        board.post(1, name="inner")

    board.handlers.handler("inner")(lambda context, payload: None)
    board.post(1, name="outer", id="a", meta={"own": "x"})
    assert set(board.get("a").meta) == {"own", "traceparent"}
    Worker(board, mode=mode).run(burst=True)
    found = {}
    for span in spans.get_finished_spans():
        found.setdefault((span.name, span.attributes["jobboard.job.name"]), []).append(span)
    [post], [posted_within] = found["post board", "outer"], found["post board", "inner"]
    [outer_run], [inner_run] = found["run board", "outer"], found["run board", "inner"]
    assert outer_run.parent.span_id == post.context.span_id
    assert posted_within.parent.span_id == outer_run.context.span_id
    assert inner_run.parent.span_id == posted_within.context.span_id
    assert len({span.context.trace_id for span in spans.get_finished_spans()}) == 1
    for one, run in ((post, outer_run), (posted_within, inner_run)):
        for same in ("messaging.system", "messaging.destination.name", "messaging.message.id"):
            assert one.attributes[same] == run.attributes[same]
        for span, name, kind in ((one, "post", "send"), (run, "run", "process")):
            assert span.attributes["messaging.operation.name"] == name
            assert span.attributes["messaging.operation.type"] == kind
            assert span.name == f"{name} {span.attributes['messaging.destination.name']}"
    assert outer_run.attributes["messaging.message.id"] == "a"


def test_failures_are_errors_and_cancels_are_not(board, spans) -> None:
    def fail(context, payload):
        raise ValueError("no")

    def stop(context, payload):
        board.cancel(context.id)
        context.sleep("5s")

    board.handlers.handler("fail")(fail)
    board.handlers.handler("stop")(stop)
    board.post(1, name="fail", retries=0)
    board.post(1, name="stop")
    Worker(board).run(burst=True)
    runs = {
        span.attributes["jobboard.job.name"]: span
        for span in spans.get_finished_spans()
        if span.name == "run board"
    }
    assert runs["fail"].status.status_code.name == "ERROR"
    assert runs["fail"].attributes["error.type"] == "ValueError"
    assert runs["stop"].status.status_code.name == "UNSET"
    assert "error.type" not in runs["stop"].attributes


def test_a_refused_post_is_an_error(board, spans) -> None:
    board.post(1, id="a")
    with pytest.raises(jobboard.Exists):
        board.post(1, id="a")
    assert [span.status.status_code.name for span in spans.get_finished_spans()] == ["UNSET", "ERROR"]


def test_a_post_with_all_its_fields_is_no_less_allowed_with_spans(board, spans) -> None:
    for count in (63, 64):
        board.post(1, id=f"j{count}", meta={f"f{number}": "x" for number in range(count)})
        assert len(board.get(f"j{count}").meta) == 64
    assert len(spans.get_finished_spans()) == 2


def test_many_and_flows_carry_it_too(board, spans) -> None:
    board.post_many([1, 2], ids=["a", "b"])
    board.flow([jobboard.Node("x", 1, id="c"), jobboard.Node("y", 1)])
    traces = [board.get(id).meta["traceparent"] for id in "abc"]
    assert traces[0] == traces[1] != traces[2]
    assert [span.attributes["messaging.batch.message_count"] for span in spans.get_finished_spans()] == [2, 2]


def test_it_goes_to_child_processes(board) -> None:
    assert isinstance(pickle.loads(pickle.dumps(board.hook)), Tracing)
