"""Durations and times, as Python has them and as milliseconds."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Union

Duration = Union[str, timedelta]
"""`"500ms"`, `"5s"`, `"10m"`, `"2h"`, `"7d"`, or a timedelta; `FOREVER` where the command has that. A number
is refused: it does not say whether it means seconds or milliseconds."""

Time = datetime
"""A datetime with a zone."""

FOREVER = "forever"

UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

_MS = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def to_ms(duration: Duration, name: str = "a duration") -> int:
    """Milliseconds of a duration; a fraction of one is cut off. -1 is without end."""
    if isinstance(duration, timedelta):
        return duration // _MS
    if isinstance(duration, str):
        if duration == FOREVER:
            return -1
        found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", duration, re.ASCII)
        if found:
            return timedelta(milliseconds=float(found[1]) * UNITS[found[2]]) // _MS
    problem = f"{name} is text with a unit, such as '500ms', '5s', '10m', '2h' or '7d', or a timedelta"
    if isinstance(duration, (int, float)):
        raise TypeError(f"{problem}: {duration!r} may mean seconds or milliseconds")
    raise (ValueError if isinstance(duration, str) else TypeError)(f"{problem}, not {duration!r}")


def of_ms(ms: float) -> timedelta:
    """A duration in milliseconds, such as replies have."""
    return timedelta(milliseconds=ms)


def to_unix(time: Time, name: str = "a time") -> int:
    """Unix milliseconds of a time. A datetime without a zone is refused: it may mean any hour."""
    if not isinstance(time, datetime) or time.tzinfo is None:
        problem = "such as datetime.now(timezone.utc) + timedelta(hours=1)"
        raise TypeError(f"{name} is a datetime with a zone, {problem}, not {time!r}")
    return (time - _EPOCH) // _MS
