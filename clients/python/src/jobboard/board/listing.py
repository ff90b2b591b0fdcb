"""JOB.LIST: jobs by filters, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import replies
from ..jobs import Job
from .family import Family, page_of, record_words
from .filters import Filters, filter_words
from .sending import Page, Pages, Request, command, pages, walk
from .sharding import by_cursor, each_page, unshardable

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Changed(NamedTuple):
    """A page of what has changed since a revision."""

    cursor: str
    jobs: list[Job]
    gone: list[str] | None
    """Ids of jobs that have gone since; None when the board no longer knows: list all of it anew."""
    revision: int
    """The next `since`, from the first page."""


class Listing(Family):
    @pages(each_page)
    def list(
        self,
        *,
        fields: Sequence[str] | None = None,
        rev: bool = False,
        page: int = 100,
        **filters: Unpack[Filters],
    ) -> Pages[Job]:
        """Walks over the jobs that pass all filters, `page` in a command; shard after shard."""
        words = [*filter_words(filters), *(["REV"] if rev else []), "COUNT", page, *record_words(fields)]
        parse = page_of(self._job)
        return walk(lambda cursor: self._request("JOB.LIST", [*words, "CURSOR", cursor], parse))

    @command(by_cursor)
    def list_page(
        self,
        *,
        cursor: str = "0",
        count: int = 100,
        fields: Sequence[str] | None = None,
        rev: bool = False,
        **filters: Unpack[Filters],
    ) -> Request[Page[Job]]:
        """One page of `list`. It may be empty and have a cursor: ask for pages until that is `0`."""
        words = [*filter_words(filters), *(["REV"] if rev else []), *record_words(fields)]
        words += ["CURSOR", cursor, "COUNT", count]
        return self._request("JOB.LIST", words, page_of(self._job))

    @command(unshardable("each of which counts revisions of its own"))
    def list_changed(
        self, since: int, *, cursor: str = "0", count: int = 100, fields: Sequence[str] | None = None
    ) -> Request[Changed]:
        """One page of what has changed since a revision of the board."""
        page = page_of(self._job)

        def parse(reply: Any) -> Changed:
            found = page(reply)
            gone = None if reply[2] is None else [replies.text(one) for one in reply[2]]
            return Changed(found.cursor, found.items, gone, reply[3])

        words = ["SINCE", since, "CURSOR", cursor, "COUNT", count, *record_words(fields)]
        return self._request("JOB.LIST", words, parse)
