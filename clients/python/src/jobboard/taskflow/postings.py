"""What a posting of TaskFlow looks like as a job: priorities, details, books.

- its name is the job's name, its uuid the id
- its priority is 20, 10, 0, -10 or -20 for VERY_HIGH to VERY_LOW
- its details are the payload: JSON where that keeps every value as it is, else msgpack as TaskFlow packs it
- its book is in the meta fields `book` (the uuid) and `book-name`
"""

from __future__ import annotations

import json
from typing import Any

from oslo_serialization import msgpackutils
from taskflow.jobs.base import JobPriority

from ..json_values import compact, is_json

PRIORITIES = {
    JobPriority.VERY_HIGH: 20,
    JobPriority.HIGH: 10,
    JobPriority.NORMAL: 0,
    JobPriority.LOW: -10,
    JobPriority.VERY_LOW: -20,
}

BOOK, BOOK_NAME = "book", "book-name"
"""Meta fields of the logbook that belongs to a job."""


def named(number: int) -> JobPriority:
    """The priority of TaskFlow for one of a board; numbers between two names get the stronger one."""
    if abs(number) > 10:
        return JobPriority.VERY_HIGH if number > 0 else JobPriority.VERY_LOW
    if number:
        return JobPriority.HIGH if number > 0 else JobPriority.LOW
    return JobPriority.NORMAL


def pack(details: dict | None) -> bytes:
    """Raises TypeError, ValueError or OverflowError for values that neither format knows."""
    details = details or {}
    if is_json(details):
        return compact(details).encode()
    packed = msgpackutils.dumps(details)
    unpack(packed)  # it packs some values that it does not take back
    return packed


def unpack(payload: bytes) -> dict:
    """Raises ValueError when the payload is no dict in either format."""
    try:
        details = json.loads(payload) if payload[:1] in b"{ \t\r\n" else msgpackutils.loads(payload)
    except ValueError:
        raise
    except Exception as error:  # whatever msgpack and its types make of foreign bytes
        raise ValueError(f"no details of a job: {error}") from error
    if not isinstance(details, dict):
        raise ValueError(f"the details of a job are a dict, not {type(details).__name__}")
    return details


def meta(book: Any) -> dict[str, str]:
    return {} if book is None else {BOOK: book.uuid, BOOK_NAME: book.name}


def book_data(fields: dict[str, str]) -> dict[str, str] | None:
    if BOOK not in fields:
        return None
    return {"uuid": fields[BOOK], "name": fields.get(BOOK_NAME, "")}


def as_text(value: Any) -> str:
    """A value of an entity's metadata: a text as it is, anything else as JSON, or as it prints itself."""
    if isinstance(value, str):
        return value
    return json.dumps(value) if is_json(value) else str(value)
