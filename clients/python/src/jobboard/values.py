"""Values of programs as what JSON and msgpack hold, and back by annotations. msgspec does the work.

It was the fastest and smallest of those measured (docs/guides/payloads.md), needs no other package, knows
both formats, and is kept well. pydantic's models are turned by pydantic itself.
"""

from __future__ import annotations

import functools
from typing import Any

import msgspec

BASES: tuple[Any, ...] = (str, int, float, bytes, dict, list)


def encodable(value: Any) -> Any:
    """What msgspec does not know as something that it does. Raises TypeError when there is no such thing."""
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json", by_alias=True)
    for base in BASES:  # msgspec takes those themselves, and not what derives from them
        if isinstance(value, base):
            return base(value)
    raise TypeError(
        f"a {type(value).__qualname__} is none of what payloads hold: text, numbers, lists, dicts, dates and "
        "times, UUID, Decimal, Enum, bytes, dataclasses, pydantic models"
    )


def convert(value: Any, kind: Any) -> Any:
    """What was decoded as what an annotation says; raises ValueError, which names the place that is wrong."""
    return msgspec.convert(value, kind, dec_hook=_of_its_own)


@functools.cache
def check(kind: Any) -> None:
    """Raises TypeError when nothing decoded can be told to be of this type, as with a union of two
    dataclasses.
    """
    msgspec.json.Decoder(kind, dec_hook=_of_its_own)


def has_nan(value: Any) -> bool:
    """Whether there is a number in it that JSON has no word for."""
    if isinstance(value, float):
        return value - value != 0
    if isinstance(value, dict):
        return any(map(has_nan, value.values()))
    if isinstance(value, (list, tuple, set, frozenset)):
        return any(map(has_nan, value))
    return False


def builtins(value: Any) -> Any:
    """The value in dicts, lists, text and numbers alone."""
    return msgspec.to_builtins(value, enc_hook=encodable)


def _of_its_own(kind: Any, value: Any) -> Any:
    """A value of a class that msgspec does not know."""
    validate = getattr(kind, "model_validate", None)
    if validate is not None:
        return validate(value)
    if isinstance(kind, type) and isinstance(value, kind):
        return value
    raise TypeError(f"a {getattr(kind, '__qualname__', kind)} cannot be made of what a payload holds")
