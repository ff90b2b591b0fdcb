"""A message of kombu as a job, and back.

The payload is kombu's envelope as JSON: body, headers and properties. A task's job has the task's name, and
its id where that is free: a retry of Celery is a new message of the same id.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

from kombu.utils.json import dumps, loads

from ..board.posting import PostOptions

LONGEST = 200
"""Bytes of an id or a name of Celery's that are taken over. A job's may have 255."""


def encode(message: dict[str, Any]) -> bytes:
    text: str = dumps(message)
    return text.encode()


def decode(payload: bytes) -> dict[str, Any] | None:
    """The envelope; None when the payload is none, as when another program has posted it."""
    try:
        message = loads(payload.decode())
    except Exception:  # kombu makes objects of some values, which fails in many ways
        return None
    if not isinstance(message, dict) or not isinstance(message.get("properties"), dict):
        return None
    for whole, name in ((message, "headers"), (message["properties"], "delivery_info")):
        whole[name] = whole.get(name) or {}
        if not isinstance(whole[name], dict):
            return None
    return message if isinstance(message.get("body") or "", str) else None


def tag_of(message: dict[str, Any]) -> str:
    """The delivery tag, which kombu makes anew for each publishing."""
    return str(message["properties"].get("delivery_tag"))


def ids(message: dict[str, Any], queue: str) -> tuple[str, str]:
    """The id to post it under, and the one when that is taken. Both are the same when it is sent again."""
    tag, headers = tag_of(message), message.get("headers") or {}
    second = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{tag} {queue}"))
    task = headers.get("id") if headers.get("task") else None
    if not isinstance(task, str) or not 0 < len(task.encode()) <= LONGEST or task.startswith("@"):
        return tag, second
    retries = headers.get("retries") or 0
    return f"{task}:{retries}" if retries else task, second


def options(message: dict[str, Any], queue: str, priority: Callable[[Any], int]) -> PostOptions:
    """The options of the post."""
    headers, properties = message.get("headers") or {}, message["properties"]
    found: PostOptions = {"queue": queue, "priority": priority(properties.get("priority")), "nx": True}
    task = headers.get("task")
    if isinstance(task, str) and 0 < len(task.encode()) <= LONGEST:
        found["name"] = task
    delay = _until(headers.get("eta"))
    if delay is not None:
        found["delay"] = delay
    # A task that has expired goes to a worker all the same: it tells the result backend that it was revoked.
    if properties.get("expiration") is not None and task is None:
        found["expire"] = timedelta(milliseconds=max(int(properties["expiration"]), 1))
    return found


def _until(eta: Any) -> timedelta | None:
    """How long it is to the time, by the clock of this machine, which has made it out of `countdown`."""
    if not isinstance(eta, str):
        return None
    try:
        due = datetime.fromisoformat(eta.replace("Z", "+00:00"))
    except ValueError:
        return None  # Celery's worker tells of it
    if due.tzinfo is None:
        due = due.replace(tzinfo=timezone.utc)
    left = due - datetime.now(timezone.utc)
    return left if left > timedelta() else None
