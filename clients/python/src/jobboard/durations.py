"""Durations: text with units, or timedeltas, and as milliseconds."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

Duration = str | timedelta
"""`"500ms"`, `"5s"`, `"1h30m"`, `"7d"`, or a timedelta, which names its unit: `timedelta(seconds=5)`.
`FOREVER` where the command has that. A bare number is refused: it may mean seconds or milliseconds."""

FOREVER = "forever"

UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

_MS = timedelta(milliseconds=1)
_NUMBER = r"\d+(?:\.\d+)?"
_SHAPE = re.compile("".join(f"(?:({_NUMBER}){unit})?" for unit in reversed(UNITS)), re.ASCII)
"""The largest unit first, each at most once."""


def to_ms(duration: Duration, name: str = "a duration") -> int:
    """Milliseconds of a duration; a fraction of one is cut off. -1 is without end."""
    try:
        return _to_ms(duration, name)
    except OverflowError:
        raise ValueError(f"{name} is longer than a board counts: {duration!r:.100}") from None


def _to_ms(duration: Any, name: str) -> int:
    if isinstance(duration, timedelta):
        return duration // _MS
    if isinstance(duration, str):
        if duration == FOREVER:
            return -1
        found = _SHAPE.fullmatch(duration)
        if found and duration:
            amounts = zip(reversed(UNITS.values()), found.groups(default="0"))
            return timedelta(milliseconds=sum(unit * float(amount) for unit, amount in amounts)) // _MS
    problem = f"{name} is text with a unit, such as '500ms', '5s', '1h30m' or '7d', or a timedelta"
    if isinstance(duration, (int, float)):
        raise TypeError(f"{problem}: {duration} may mean seconds or milliseconds{_instead(duration)}")
    raise (ValueError if isinstance(duration, str) else TypeError)(f"{problem}, not {duration!r}")


def _instead(number: Any) -> str:
    if isinstance(number, bool) or not number >= 0:
        return ""
    return f": write '{number}s', '{number}ms' or timedelta(seconds={number})"


def of_ms(ms: float) -> timedelta:
    """A duration in milliseconds, such as replies have."""
    return timedelta(milliseconds=ms)
