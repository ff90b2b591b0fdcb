"""The filters of JOB.LIST, which listings, counts and selections share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from ..arguments import Name
from .family import many

if TYPE_CHECKING:
    from typing import Literal

    State = Literal["scheduled", "blocked", "ready", "claimed", "complete", "failed", "cancelled", "trashed"]
    OneOrMany = Name | Sequence[Name] | None


class Plainly(TypedDict, total=False):
    """What a job is to be. A list names alternatives."""

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


class Filters(Plainly, total=False):
    """Which jobs: those that pass all filters, and of `not_` none."""

    not_: Plainly | None


NAMES = "state queue group worker name tag kind user tracked lapsed since".split()


def filter_words(filters: Mapping[str, Any], prefix: Sequence[str] = ()) -> list[Any]:
    """`STATE ready STATE claimed NOT QUEUE slow`."""
    words: list[Any] = []
    for name, value in filters.items():
        if name == "not_":
            words += filter_words(value or {}, ["NOT"])
        elif name not in NAMES:
            raise TypeError(f"unknown filter {name!r}; there are {', '.join(NAMES)} and not_")
        elif value is True:
            words += [*prefix, name.upper()]
        elif value is not None and value is not False:
            words += [part for one in many(value) for part in [*prefix, name.upper(), one]]
    return words
