"""Reading a sharded board: by id from one shard, everything else from all of them."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, Optional

from ..arguments import Name
from ..jobs import Job
from ..times import Duration, of_ms, to_ms
from .filters import Filters
from .sending import Page, Request, Steps, one, pages, steps

if TYPE_CHECKING:
    from typing_extensions import Literal, Unpack

    from .board import Requests

TURN = 100
"""How long one shard is waited for, ms, when any of several will do."""

GREATEST = {"oldest", "drain", "lateness-p99", "lateness-max", "overdue", "broken", "revision", "token"}
GREATEST |= {f"{what}-lateness-{how}" for what in ("lease", "due", "fire") for how in ("p99", "max")}


class ShardedReading:
    _shards: list[Requests]

    def _place(self, id: Name) -> Requests:
        raise NotImplementedError

    @steps
    def get(self, id: Name, *, fields: Optional[Sequence[str]] = None) -> Steps[Optional[Job]]:
        """The record of a job, or None."""
        return one(self._place(id).get(id, fields=fields))

    @steps
    def state(self, id: Name) -> Steps[Optional[str]]:
        """The state of a job, also of one whose record was dropped a short while ago."""
        return one(self._place(id).state(id))

    @steps
    def get_many(
        self, ids: Sequence[Name], *, fields: Optional[Sequence[str]] = None
    ) -> Steps[list[Optional[Job]]]:
        """The records of many jobs in the order of the ids, None for an unknown one."""
        return self._records(ids, fields)

    @pages
    def children(
        self, id: Name, *, fields: Optional[Sequence[str]] = None, count: int = 100
    ) -> Generator[Request[Page[Job]], Page[Job], None]:
        """The records of a job's children."""
        yield from self._place(id).children(id, fields=fields, count=count)

    @steps
    def history(self, id: Name) -> Steps[Optional[list[dict[str, Any]]]]:
        """What happened to a job; None for an unknown one."""
        return one(self._place(id).history(id))

    @steps
    def explain(self, id: Name) -> Steps[Optional[dict[str, Any]]]:
        """Why a job is not running; None for an unknown one."""
        return one(self._place(id).explain(id))

    @steps
    def count(self, **filters: Unpack[Filters]) -> Steps[int]:
        """How many jobs pass the filters, in all shards."""
        total = 0
        for shard in self._shards:
            total += yield from shard.count(**filters)
        return total

    @steps
    def kinds(self) -> Steps[dict[str, int]]:
        """How many failed jobs are held of each kind of failure."""
        total: dict[str, int] = {}
        for shard in self._shards:
            for kind, count in (yield from shard.kinds()).items():
                total[kind] = total.get(kind, 0) + count
        return total

    @steps
    def queues(self) -> Steps[list[dict[str, Any]]]:
        """The queues, sorted by name: counts and rates are sums, ages and lateness the greatest of any shard.

        `paused` is that of the shard where it ends first.
        """
        found: dict[str, dict[str, Any]] = {}
        for shard in self._shards:
            for row in (yield from shard.queues()):
                _add(found.setdefault(row["queue"], {}), row)
        return [found[name] for name in sorted(found)]

    @steps
    def info(self) -> Steps[Optional[dict[str, Any]]]:
        """The board at a glance, put together as `queues` does; None when no shard is there."""
        found: dict[str, Any] = {}
        for shard in self._shards:
            row = yield shard.info()
            if row is not None:
                row.pop("next")
                _add(found, row)
        return found or None

    @steps
    def workers(self) -> Steps[list[dict[str, Any]]]:
        """The workers that hold jobs, sorted by name."""
        found: dict[str, dict[str, Any]] = {}
        for shard in self._shards:
            for row in (yield from shard.workers()):
                one = found.setdefault(row["worker"], {**row, "claimed": 0})
                one["claimed"] += row["claimed"]
                one["active"] = min(one["active"], row["active"])
        return [found[name] for name in sorted(found)]

    @steps
    def wait(
        self,
        *ids: Name,
        within: Optional[Duration] = None,
        until: Literal["all", "any"] = "all",
        fields: Optional[Sequence[str]] = None,
    ) -> Steps[Optional[list[Optional[Job]]]]:
        """Waits until all of the jobs, or any, have ended, as `Board.wait` does; over shards, one after
        the other.
        """
        deadline = None if within is None else time.monotonic() + to_ms(within, "within") / 1000
        parts = self._by_shard(ids)
        while until == "any" and len(parts) > 1:
            for shard, own in parts:
                if (yield from shard.wait(*own, within=of_ms(TURN), until="any", fields=fields)) is not None:
                    return (yield from self._records(ids, fields))
            if deadline is not None and time.monotonic() >= deadline:
                return None
        found: dict[Name, Optional[Job]] = {}
        for shard, own in parts:
            left = None if deadline is None else of_ms(max(deadline - time.monotonic(), 0) * 1000)
            jobs: Optional[list[Optional[Job]]] = yield from shard.wait(
                *own, within=left, until=until, fields=fields
            )
            if jobs is None:
                return None
            found.update(zip(own, jobs))
        return [found[id] for id in ids]

    def _records(self, ids: Sequence[Name], fields: Optional[Sequence[str]]) -> Steps[list[Optional[Job]]]:
        found: dict[Name, Optional[Job]] = {}
        for shard, own in self._by_shard(ids):
            found.update(zip(own, (yield shard.get_many(own, fields=fields))))
        return [found[id] for id in ids]

    def _by_shard(self, ids: Sequence[Name]) -> list[tuple[Requests, list[Name]]]:
        found: dict[str, tuple[Requests, list[Name]]] = {}
        for id in ids:
            shard = self._place(id)
            found.setdefault(shard.key, (shard, []))[1].append(id)
        return list(found.values())


class ShardedListing:
    _shards: list[Requests]

    @pages
    def list(
        self,
        *,
        fields: Optional[Sequence[str]] = None,
        rev: bool = False,
        page: int = 100,
        **filters: Unpack[Filters],
    ) -> Generator[Request[Page[Job]], Page[Job], None]:
        """Walks over the jobs that pass all filters, shard after shard."""
        for shard in self._shards:
            yield from shard.list(fields=fields, rev=rev, page=page, **filters)

    @pages
    def schedule_list(
        self, *, page: int = 100
    ) -> Generator[Request[Page[dict[str, Any]]], Page[dict[str, Any]], None]:
        """Walks over the schedules, shard after shard."""
        for shard in self._shards:
            yield from shard.schedule_list(page=page)

    @pages
    def worker_list(
        self, *, role: Optional[Name] = None
    ) -> Generator[Request[Page[dict[str, Any]]], Page[dict[str, Any]], None]:
        """Walks over the registered workers, shard after shard: each is registered in all of them."""
        for shard in self._shards:
            yield from shard.worker_list(role=role)


def _add(total: dict[str, Any], row: dict[str, Any]) -> None:
    for name, value in row.items():
        if name not in total or isinstance(value, (str, list)):
            total[name] = value
        elif name == "paused":
            total[name] = 0 if 0 in (value, total[name]) else _earlier(value, total[name])
        elif name in GREATEST:
            total[name] = -1 if name == "drain" and -1 in (value, total[name]) else max(value, total[name])
        elif name == "concurrency":
            total[name] = -1 if -1 in (value, total[name]) else value + total[name]
        else:
            total[name] += value


def _earlier(one: int, other: int) -> int:
    """Of two ends of pauses; -1 is without end."""
    return max(one, other) if -1 in (one, other) else min(one, other)
