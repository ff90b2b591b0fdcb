"""JOB.LIST: jobs by filters, page by page."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from .. import replies
from ..jobs import Job
from .family import Family, fields_words, page_of
from .filters import Filters, filter_words
from .sending import Page, Request, command, pages

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Changed(NamedTuple):
    """A page of what has changed since a revision."""

    cursor: str
    jobs: list[Job]
    gone: Optional[list[str]]
    """Ids of jobs that have gone since; None when the board no longer knows: list all of it anew."""
    revision: int
    """The next `since`, from the first page."""


class Listing(Family):
    @pages
    def list(
        self,
        *,
        fields: Optional[Sequence[str]] = None,
        rev: bool = False,
        page: int = 100,
        **filters: Unpack[Filters],
    ) -> Generator[Request[Page[Job]], Page[Job], None]:
        """Walks over the jobs that pass all filters, `page` in a command."""
        cursor = "0"
        words = [*filter_words(filters), *(["REV"] if rev else []), "COUNT", page, *fields_words(fields)]
        while True:
            request = self._request("JOB.LIST", [*words, "CURSOR", cursor], page_of(self._job))
            cursor = (yield request).cursor
            if cursor == "0":
                return

    @command
    def list_page(
        self,
        *,
        cursor: str = "0",
        count: int = 100,
        fields: Optional[Sequence[str]] = None,
        rev: bool = False,
        **filters: Unpack[Filters],
    ) -> Request[Page[Job]]:
        """One page of `list`. It may be empty and have a cursor: go on until that is `0`."""
        words = [*filter_words(filters), *(["REV"] if rev else []), *fields_words(fields)]
        words += ["CURSOR", cursor, "COUNT", count]
        return self._request("JOB.LIST", words, page_of(self._job))

    @command
    def list_changed(
        self, since: int, *, cursor: str = "0", count: int = 100, fields: Optional[Sequence[str]] = None
    ) -> Request[Changed]:
        """One page of what has changed since a revision of the board."""
        page = page_of(self._job)

        def parse(reply: Any) -> Changed:
            found = page(reply)
            gone = None if reply[2] is None else [replies.text(one) for one in reply[2]]
            return Changed(found.cursor, found.items, gone, reply[3])

        words = ["SINCE", since, "CURSOR", cursor, "COUNT", count, *fields_words(fields)]
        return self._request("JOB.LIST", words, parse)
