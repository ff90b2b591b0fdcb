"""What makes replies Python values, whether they came by RESP2 (flat arrays, text), RESP3 (maps, doubles),
or packed (records as MessagePack in one string).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from .errors import Refused

T = TypeVar("T")
Shape = Callable[[Any], Any]


def text(value: Any) -> str:
    """Bytes as text. Bytes that are not UTF-8 survive the way there and back."""
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def data(value: str) -> bytes:
    """Text as the bytes that it was."""
    return value.encode("utf-8", "surrogateescape")


def value(reply: Any) -> Any:
    """A value that is text, a number, null, or a list of these."""
    if isinstance(reply, bytes):
        return reply.decode("utf-8", "surrogateescape")
    return [value(one) for one in reply] if isinstance(reply, list) else reply


def pairs(reply: Any) -> list[tuple[Any, Any]]:
    """The pairs of a map."""
    return list(reply.items()) if isinstance(reply, dict) else list(zip(reply[::2], reply[1::2]))


def strings(reply: Any) -> dict[str, str]:
    """A map of texts."""
    return {text(key): text(found) for key, found in pairs(reply)}


def unpacked(reply: Any) -> Any:
    """Records, or one, as they come without `PACKED`."""
    return _named(msgspec.msgpack.decode(reply)) if isinstance(reply, bytes) else reply


def _named(found: Any) -> Any:
    """With names as bytes, which they are in other replies."""
    if isinstance(found, list):
        return [_named(one) for one in found]
    if not isinstance(found, dict):
        return found
    pairs = ((name.encode() if isinstance(name, str) else name, value) for name, value in found.items())
    return {name: _named(value) if isinstance(value, dict) else value for name, value in pairs}


def list_of(shape: Callable[[Any], T]) -> Callable[[Any], list[T]]:
    """A list; null is an empty one."""
    return lambda reply: [shape(one) for one in unpacked(reply) or []]


def optional(shape: Callable[[Any], T]) -> Callable[[Any], T | None]:
    return lambda reply: None if reply is None else shape(reply)


def mapping(**shapes: Shape) -> Callable[[Any], dict[str, Any]]:
    """A map with text keys; `shapes` say what is not a plain value. A `_` stands for a dash."""
    named: Mapping[str, Shape] = {name.replace("_", "-"): shape for name, shape in shapes.items()}

    def parse(reply: Any) -> dict[str, Any]:
        found = ((text(key), raw) for key, raw in pairs(reply))
        return {key: named.get(key, value)(raw) for key, raw in found}

    return parse


def ok(reply: Any) -> None:
    """`OK`: nothing to tell."""


def is_map(reply: Any, first: bytes) -> bool:
    """Whether a per-id reply is a map, whose first key is `first`, and no refusal."""
    return isinstance(reply, dict) or bool(reply and reply[0] == first)


def or_refused(shape: Callable[[Any], T]) -> Callable[[Any], Any]:
    """A per-id reply of an M-form: the single reply, or what was refused."""

    def parse(reply: Any) -> Any:
        # A map that comes as a flat list has more than one pair.
        is_refused = isinstance(reply, list) and len(reply) == 2
        return Refused(text(reply[0]), text(reply[1])) if is_refused else shape(reply)

    return parse
