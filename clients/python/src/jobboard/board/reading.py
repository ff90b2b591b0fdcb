"""Verbs that read: records, listings, counts, reasons, statistics."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from .. import replies
from ..arguments import Name
from ..jobs import Job
from . import merging
from .family import Family, page_of, record_words
from .filters import Filters, filter_words
from .sending import Page, Pages, Request, Steps, command, gathered, pages, steps, walk
from .sharding import by_id, by_ids, each, each_page_merged, each_queue, unshardable

if TYPE_CHECKING:
    from typing_extensions import Unpack


DISTRIBUTION = replies.mapping(mean=float, deviation=float)
DISTRIBUTIONS = "wait run await lateness lease_lateness due_lateness fire_lateness".split()
PACE = {"arrival_rate": float, "completion_rate": float}
REASON = replies.mapping(
    jobs=replies.list_of(replies.mapping()),
    holders=replies.list_of(replies.mapping()),
    signals=replies.list_of(replies.mapping()),
)


ROWS = 1000
"""Rows of one page where all are fetched."""


def _counted(reply: Any) -> tuple[str, int]:
    return replies.text(reply[0]), int(reply[1])


class Reading(Family):
    @command(by_id)
    def get(self, id: Name, *, fields: Sequence[str] | None = None) -> Request[Job | None]:
        """The record of a job, or None: unknown, or dropped at its end, as when it completes without a
        result. `state` tells these apart.
        """
        return self._request("JOB.GET", [id, *record_words(fields)], replies.optional(self._job))

    @command(by_id)
    def state(self, id: Name) -> Request[str | None]:
        """The state of a job, also of one whose record was dropped a short while ago (`tombstone-ttl`): that
        in which it was then. None for an unknown one.
        """

        def parse(reply: Any) -> str:
            found: str = replies.mapping(reasons=replies.ok)(reply)["state"]
            return found

        return self._request("JOB.EXPLAIN", [id], replies.optional(parse))

    @command(by_ids())
    def get_many(
        self, ids: Sequence[Name], *, fields: Sequence[str] | None = None
    ) -> Request[list[Job | None]]:
        """The records of many jobs, None for an unknown one."""
        words = [len(ids), *ids, *record_words(fields)]
        return self._request("JOB.MGET", words, replies.list_of(replies.optional(self._job)))

    @pages(by_id)
    def children(self, id: Name, *, fields: Sequence[str] | None = None, count: int = 100) -> Pages[Job]:
        """The records of a job's children, as far as they have one, in the order of their posts."""
        words, parse = [id, "CHILDREN", "COUNT", count, *record_words(fields)], page_of(self._job)

        def page(reply: Any) -> Page[Job]:
            return Page("0", []) if reply is None else parse(reply[1:])

        return walk(lambda cursor: self._request("JOB.GET", [*words, "CURSOR", cursor], page))

    @steps(each(sum))
    def count(self, **filters: Unpack[Filters]) -> Steps[int]:
        """How many jobs pass the filters; without any, how many have not ended."""
        cursor, total = "0", 0
        while True:
            words = [*filter_words(filters), "CURSOR", cursor]
            found: tuple[str, int] = yield self._request("JOB.COUNT", words, _counted)
            cursor, total = found[0], total + found[1]
            if cursor == "0":
                return total

    @command(by_id)
    def history(self, id: Name) -> Request[list[dict[str, Any]] | None]:
        """What happened to a job, oldest first, or None: dicts with `at` and `event`, and what there is of
        `worker`, `kind`, `message`, `queue`, `signal`, `signals` and `final`.
        """
        parse = replies.optional(replies.list_of(replies.mapping()))
        return self._request("JOB.HISTORY", [id], parse)

    @command(by_id)
    def explain(self, id: Name) -> Request[dict[str, Any] | None]:
        """Why a job is not running, and what would change that; None for an unknown one."""
        parse = replies.mapping(reasons=replies.list_of(REASON))
        return self._request("JOB.EXPLAIN", [id], replies.optional(parse))

    @steps(each_queue)
    def queues(
        self, *, contains: str | None = None, by: str | None = None, count: int | None = None
    ) -> Steps[list[dict[str, Any]]]:
        """The queues with their jobs by state and their pace, sorted by name.

        `contains` leaves only those whose names contain this text. `by`, a state or "oldest", sorts by that,
        the greatest first. `count` leaves the first ones.
        """
        words = [] if contains is None else ["CONTAINS", contains]
        words += [] if by is None else ["BY", by]
        rows = self._rows("JOB.QUEUES", words, ROWS if count is None else min(count, ROWS), **PACE)
        return gathered(rows, count)

    @pages(each_page_merged(merging.rows("queue", "group")))
    def groups(self, *, queue: Name | None = None, page: int = 100) -> Pages[dict[str, Any]]:
        """Walks over the groups of a queue, or of all."""
        return self._rows("JOB.GROUPS", [] if queue is None else ["QUEUE", queue], page)

    @pages(each_page_merged(merging.rows("limit")))
    def limits(self, *, page: int = 100) -> Pages[dict[str, Any]]:
        """Walks over the named limits."""
        return self._rows("JOB.LIMITS", [], page)

    @pages(each_page_merged(merging.tags))
    def tags(self, *, page: int = 100) -> Pages[dict[str, Any]]:
        """Walks over the tags, those that most jobs have first."""
        return self._rows("JOB.TAGS", [], page)

    @steps(each(merging.rows("worker")))
    def workers(self) -> Steps[list[dict[str, Any]]]:
        """The workers that hold jobs. Registered ones: `worker_list`."""
        return gathered(self._rows("JOB.WORKERS", [], ROWS))

    @steps(each(merging.counts))
    def kinds(self) -> Steps[dict[str, int]]:
        """How many failed jobs are held of each kind of failure."""
        return {row["kind"]: row["jobs"] for row in (yield from gathered(self._rows("JOB.KINDS", [], ROWS)))}

    @command(each(merging.row))
    def stats(
        self, *, queue: Name | None = None, day: int | str | date | None = None
    ) -> Request[dict[str, Any]]:
        """What happened on a day (a date, or how many days back): counters and distributions."""
        words = [] if queue is None else ["QUEUE", queue]
        words += [] if day is None else ["DAY", str(day)]
        shapes = {**dict.fromkeys(DISTRIBUTIONS, DISTRIBUTION), "costs": replies.mapping()}
        return self._request("JOB.STATS", words, replies.mapping(**shapes))

    @command(each(merging.row))
    def info(self, *, digest: bool = False) -> Request[dict[str, Any] | None]:
        """The board at a glance; None when there is none."""
        parse = replies.optional(replies.mapping(**PACE))
        return self._request("JOB.INFO", ["DIGEST"] if digest else [], parse)

    @command(unshardable("each of which tells of its server too"))
    def metrics(self) -> Request[str]:
        """The numbers of the server and of this board, for Prometheus."""
        return self._request("JOB.METRICS", [], replies.text)

    def _rows(
        self, name: str, words: Sequence[Any], page: int, **shapes: replies.Shape
    ) -> Pages[dict[str, Any]]:
        parse = page_of(replies.mapping(**shapes))
        return walk(lambda cursor: self._request(name, [*words, "CURSOR", cursor, "COUNT", page], parse))
