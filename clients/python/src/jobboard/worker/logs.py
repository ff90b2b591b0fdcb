"""How a worker's log is written: lines for people, or JSON for programs."""

from __future__ import annotations

import json
import logging
import textwrap
from datetime import datetime, timezone
from typing import Any, Literal

from ..board.context import CURRENT
from ..escaping import escaped_json

Format = Literal["text", "json"]
TEXT = "%(asctime)s %(levelname)s %(message)s"


class JsonFormatter(logging.Formatter):
    """A line of JSON for each record: time, level, logger, message, traceback, and its `extra`. What is
    logged while a handler runs has its job's id and name.
    """

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, timezone.utc)
        found: dict[str, Any] = {
            "time": time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        context = CURRENT.get()
        if context is not None:
            found.update(job_id=context.id, job_name=context.job.name)
        found.update({name: value for name, value in vars(record).items() if name not in _USUAL})
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            found["traceback"] = textwrap.dedent(record.exc_text)
        return escaped_json(json.dumps(found, ensure_ascii=False, default=str))


_USUAL = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}


def configure(level: int, format: Format) -> None:
    """Lets the root logger write to the terminal."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if format == "json" else logging.Formatter(TEXT))
    logging.basicConfig(level=level, handlers=[handler])


def configured() -> tuple[int, Format] | None:
    """What child processes have to be told; None when this process does not log."""
    root = logging.getLogger()
    if not root.handlers:
        return None
    is_json = any(isinstance(handler.formatter, JsonFormatter) for handler in root.handlers)
    return root.level, "json" if is_json else "text"
