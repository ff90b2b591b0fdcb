"""What the shards of a board have answered as one answer."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

Row = dict[str, Any]

EARLIEST = {"paused", "dry", "next", "active", "created"}
"""When something ends or comes; -1 is never."""

UNBOUNDED = {"concurrency", "rate", "burst", "max-jobs"}
"""Limits; -1 is none."""

GREATEST = {"oldest", "drain", "lateness-p99", "lateness-max", "overdue", "broken", "revision", "token"}
GREATEST |= {f"{what}-lateness-{how}" for what in ("lease", "due", "fire") for how in ("p99", "max")}
GREATEST |= {"weight", "ordered", "rate-period"}


def nothing(found: list[None]) -> None:
    """All have done it."""


def joined(lists: Iterable[list[Any]]) -> list[Any]:
    return [*chain(*lists)]


def counts(found: Iterable[dict[str, int]]) -> dict[str, int]:
    return dict(sum(map(Counter, found), Counter()))


def row(found: Iterable[Row | None]) -> Row | None:
    """One row of several: counts, rates and limits are sums, ages and lateness the greatest of any shard,
    pauses those of the shard where they end first. None when no shard is there.
    """
    rows = [one for one in found if one is not None]
    return {name: _value(name, [one[name] for one in rows]) for name in rows[0]} if rows else None


def rows(*keys: str) -> Callable[[Iterable[list[Row]]], list[Row]]:
    """The rows of all, sorted by what `keys` name: those with the same as one."""

    def merge(found: Iterable[list[Row]]) -> list[Row]:
        same: dict[tuple[str, ...], list[Row]] = defaultdict(list)
        for one in chain(*found):
            same[tuple(one[key] for key in keys)].append(one)
        return [merged for key in sorted(same) if (merged := row(same[key]))]

    return merge


def tags(found: Iterable[list[Row]]) -> list[Row]:
    """Those that most jobs have first."""
    return sorted(rows("tag")(found), key=lambda one: -one["jobs"])


def _value(name: str, values: list[Any]) -> Any:
    if name == "digest":
        return "".join(values)
    if isinstance(values[0], (str, list)):
        return values[0]
    if name == "costs":
        return {limit: sum(one.get(limit, 0) for one in values) for limit in sorted({*chain(*values)})}
    if isinstance(values[0], dict):
        return _distribution(values)
    if name in EARLIEST:
        return min(values, key=lambda value: math.inf if value == -1 else value)
    if -1 in values and (name == "drain" or name in UNBOUNDED):
        return -1
    return max(values) if name in GREATEST else sum(values)


def _distribution(parts: list[Row]) -> Row:
    parts = [part for part in parts if part["count"]] or parts[:1]
    count, total = sum(part["count"] for part in parts), sum(part["sum"] for part in parts)
    mean = total / max(count, 1)
    squares = sum(
        part["deviation"] ** 2 * (part["count"] - 1) + part["count"] * (part["mean"] - mean) ** 2
        for part in parts
    )
    bins: Counter[tuple[int, int]] = Counter()
    for start, end, n in chain(*(part["histogram"] for part in parts)):
        bins[start, end] += n
    least, most = min(part["min"] for part in parts), max(part["max"] for part in parts)

    def percentile(hundredths: int) -> int:
        """The middle of its bin, as the module has it."""
        rank = max(-(-count * hundredths // 100), 1)
        for (start, end), n in sorted(bins.items()):
            rank -= n
            if rank <= 0:
                end = most if end == -1 else min(end, most)
                return int(min(max(start + (end - start) // 2, least), most))
        return int(most)

    return {
        **{"count": count, "sum": total, "min": least, "max": most, "mean": mean},
        "deviation": math.sqrt(squares / (count - 1)) if count > 1 else 0.0,
        **{f"p{hundredths}": percentile(hundredths) for hundredths in (50, 95, 99)},
        "histogram": [[start, end, n] for (start, end), n in sorted(bins.items())],
    }
