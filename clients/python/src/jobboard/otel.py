"""OpenTelemetry: a span for each post and each run, joined by `traceparent` in the job's META.

    board = Board("mails", client, hook=Tracing())

Needs the extra `otel`. META makes a record about 600 bytes larger, see docs/operate/sizing.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

try:
    from opentelemetry import trace
    from opentelemetry.trace import SpanKind, Status, StatusCode
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError as error:
    raise ImportError("pip install 'jobboard[otel]'") from error

from .board.context import Context
from .board.hooks import Done, Hook
from .outcomes import Abandon, Stopped
from .replies import text

SYSTEM = "jobboard"
_CARRIER = TraceContextTextMapPropagator()


class Tracing(Hook):
    """Spans by `provider`, or by the global one, with names and attributes of OpenTelemetry's conventions for
    messaging: the destination is the board, the message the job. `Worker` runs it in child processes as
    well, there with theirs.

    A run's span is a child of the post's span. That of a failed run has the exception; a run that was
    cancelled, lost or given back is no error.
    """

    def __init__(self, provider: trace.TracerProvider | None = None) -> None:
        self._provider = provider

    def __reduce__(self) -> Any:
        return (Tracing, ())  # another process has a provider of its own

    @property
    def _tracer(self) -> trace.Tracer:
        return trace.get_tracer("jobboard", tracer_provider=self._provider)

    def posting(self, board: str, name: Any, count: int) -> tuple[Mapping[str, str], Done | None]:
        attributes: dict[str, Any] = {
            "messaging.system": SYSTEM,
            "messaging.destination.name": board,
            "messaging.operation.name": "post",
            "messaging.operation.type": "send",
        }
        if name is not None:
            attributes["jobboard.job.name"] = (
                name if isinstance(name, str) else name.decode("utf-8", "replace")
            )
        if count > 1:
            attributes["messaging.batch.message_count"] = count
        span = self._tracer.start_span(f"post {board}", kind=SpanKind.PRODUCER, attributes=attributes)
        carrier: dict[str, str] = {}
        _CARRIER.inject(carrier, trace.set_span_in_context(span))

        def done(error: BaseException | None, posted: Any) -> None:
            if error is not None:
                _failed(span, error)
            elif isinstance(posted, str):
                span.set_attribute("messaging.message.id", posted)
            span.end()

        return carrier, done

    @contextmanager
    def running(self, context: Context) -> Iterator[None]:
        job = context.job
        attributes: dict[str, Any] = {
            "messaging.system": SYSTEM,
            "messaging.destination.name": text(context.board.key),
            "jobboard.job.queue": job.queue,
            "messaging.operation.name": "run",
            "messaging.operation.type": "process",
            "messaging.message.id": job.id,
            "jobboard.job.attempt": job.attempt,
            "jobboard.worker": context.worker,
        }
        if job.name is not None:
            attributes["jobboard.job.name"] = job.name
        parent = _CARRIER.extract(dict(context.meta))
        with self._tracer.start_as_current_span(
            f"run {attributes['messaging.destination.name']}",
            parent,
            kind=SpanKind.CONSUMER,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield
            except (Stopped, Abandon) as error:
                span.set_attribute("jobboard.stopped", type(error).__name__)
                raise
            except Exception as error:
                _failed(span, error)
                raise


def _failed(span: trace.Span, error: BaseException) -> None:
    span.record_exception(error)
    span.set_attribute("error.type", type(error).__qualname__)
    span.set_status(Status(StatusCode.ERROR, str(error)))
