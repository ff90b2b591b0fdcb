"""Replies in one form, whatever protocol and decoding the client has."""

from __future__ import annotations

from typing import Any

from redis.client import NEVER_DECODE


def text(value: Any) -> Any:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def pairs(reply: Any) -> dict[str, Any]:
    """A map as a dict with text keys: RESP3 has maps, RESP2 flat arrays."""
    items = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2])
    return {text(key): value for key, value in items}


def ask(client: Any, *words: Any) -> Any:
    """Sends a command; strings of the reply are bytes."""
    return client.execute_command(*words, **{NEVER_DECODE: True})
