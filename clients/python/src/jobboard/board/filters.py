"""The filters of JOB.LIST, which listings, counts and selections share."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict

from ..arguments import Name
from ..durations import Duration, to_ms
from ..times import to_unix
from .family import many

if TYPE_CHECKING:
    from typing import Literal

    State = Literal["scheduled", "blocked", "ready", "claimed", "complete", "failed", "cancelled", "trashed"]
    OneOrMany = Name | Sequence[Name] | None
    When = datetime | Duration | None
    Span = tuple[When, When]


class Plainly(TypedDict, total=False):
    """What a job is to be. A list names alternatives.

    `posted` and `ended` are a first and a last time: a datetime with a zone, a duration before now, or None
    for no bound: `ended=("2h", None)`. `id` is how ids begin, with `*` behind it, `contains` a part of the
    payload as it is stored. `meta` names values by field.
    """

    state: State | Sequence[State] | None
    queue: OneOrMany
    group: OneOrMany
    worker: OneOrMany
    name: OneOrMany
    tag: OneOrMany
    kind: OneOrMany
    user: OneOrMany
    tracked: bool | None
    lapsed: bool | None
    since: int | None
    posted: Span | None
    ended: Span | None
    parent: OneOrMany
    after: OneOrMany
    awaits: OneOrMany
    id: OneOrMany
    meta: Mapping[Name, OneOrMany] | None
    stage: OneOrMany
    message: OneOrMany
    contains: OneOrMany


class Filters(Plainly, total=False):
    """Which jobs: those that pass all filters, and of `not_` none."""

    not_: Plainly | None


TIMES = ("posted", "ended")
FLAGS = ("tracked", "lapsed")
NAMES = (
    "state queue group worker name tag kind user tracked lapsed since posted ended parent after awaits id"
    " meta stage message contains"
).split()


def filter_words(filters: Mapping[str, Any], prefix: Sequence[str] = ()) -> list[Any]:
    """`STATE ready STATE claimed NOT QUEUE slow`."""
    words: list[Any] = []
    for name, value in filters.items():
        if name == "not_":
            words += filter_words(value or {}, ["NOT"])
        elif name not in NAMES:
            raise TypeError(f"unknown filter {name!r}; there are {', '.join(NAMES)} and not_")
        elif value is not None and value is not False:
            for values in _values(name, value):
                words += [*prefix, name.upper(), *values]
    return words


def check_alternatives(filters: Mapping[str, Any]) -> None:
    """Raises ValueError for a filter without an alternative, which no job passes and which would be left
    out.
    """
    for name, value in filters.items():
        values = [value, *value.values()] if name == "meta" and isinstance(value, Mapping) else [value]
        if name != "not_" and any(_is_empty(one) for one in values):
            raise ValueError(f"the filter {name} names nothing, so that no job passes it: {value!r}")


def _is_empty(value: Any) -> bool:
    return isinstance(value, Collection) and not isinstance(value, (str, bytes)) and not value


def _values(name: str, value: Any) -> Iterator[tuple[Any, ...]]:
    """What stands behind the word of each filter."""
    if value is True:
        yield ()
    elif name in TIMES:
        yield _span(name, value)
    elif name == "meta":
        if not isinstance(value, Mapping):
            raise TypeError(f"the filter meta is a mapping from fields to values, not {value!r}")
        for field, values in value.items():
            yield from ((field, one) for one in many(values))
    else:
        yield from ((one,) for one in many(value))


def _span(name: str, value: Any) -> tuple[Any, Any]:
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        raise TypeError(f"the filter {name} is a first and a last time, such as ('2h', None), not {value!r}")
    first, last = value
    return _when(name, first, "-"), _when(name, last, "+")


def _when(name: str, time: Any, unbounded: str) -> Any:
    if time is None:
        return unbounded
    if isinstance(time, datetime):
        return to_unix(time, name)
    return f"-{to_ms(time, name)}ms"
