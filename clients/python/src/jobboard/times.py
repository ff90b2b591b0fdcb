"""Times: datetimes with a zone, and as Unix milliseconds."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

Time = datetime
"""A datetime with a zone."""

_MS = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def to_unix(time: Time, name: str = "a time") -> int:
    """Unix milliseconds of a time. A datetime without a zone is refused: it may mean any hour."""
    if not isinstance(time, datetime) or time.tzinfo is None:
        problem = "such as datetime.now(timezone.utc) + timedelta(hours=1)"
        raise TypeError(f"{name} is a datetime with a zone, {problem}, not {time!r}")
    return (time - _EPOCH) // _MS
