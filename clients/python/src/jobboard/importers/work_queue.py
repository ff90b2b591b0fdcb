"""redis-work-queue: the main list of a prefix and, when asked for, what is being worked on."""

from __future__ import annotations

from typing import Any

from .holds import Hold
from .moving import Item, Section, sent, text
from .postings import Posting

PLACES = {"waiting": ":queue", "running": ":processing"}


class WorkQueue:
    """Items come in at the left of a list and are taken from the right."""

    def __init__(self, client: Any, prefixes: list[str], to_queue: str | None = None) -> None:
        self.client, self.prefixes, self.to_queue = client, prefixes, to_queue
        self.name = "work-queue"

    def sections(self) -> list[Section]:
        return [Section(state, prefix) for state in PLACES for prefix in self.prefixes]

    def count(self, section: Section) -> int:
        return int(self.client.llen(self._list(section)))

    def holds(self) -> list[Hold]:
        return []

    def read(self, section: Section, left: int, size: int) -> list[Item]:
        found = self.client.lrange(self._list(section), -left - size, -left - 1)[::-1]
        if not found:
            return []
        # An item goes with its data when it is complete; its id may stand in the list once more.
        data = self.client.mget([self._item(section, ref) for ref in found])
        return [
            Item(ref, problem="its data have gone: it is complete")
            if value is None
            else Item(
                ref, Posting(text(ref), value, queue=self.to_queue, meta={"source": "redis-work-queue"})
            )
            for ref, value in zip(found, data)
        ]

    def remove(self, section: Section, refs: list[bytes]) -> None:
        pipeline = self.client.pipeline()
        for ref in refs:
            pipeline.lrem(self._list(section), -1, ref)
            pipeline.delete(self._item(section, ref), sent(f"{section.place}:leased_by_session:{text(ref)}"))
        pipeline.execute()

    def _list(self, section: Section) -> str:
        return section.place + PLACES[section.state]

    def _item(self, section: Section, ref: bytes) -> Any:
        return sent(f"{section.place}:item:{text(ref)}")
