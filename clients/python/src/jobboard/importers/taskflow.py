"""TaskFlow's redis jobboard: its listing, its trash, and what is claimed. Jobs become those of the TaskFlow
driver (`jobboard.taskflow`)."""

from __future__ import annotations

import datetime
from typing import Any

from taskflow.jobs.base import JobPriority
from taskflow.utils import misc

from ..taskflow import postings as theirs
from .holds import Hold
from .moving import Item, Section, item_of, sent, text
from .postings import Posting

STATES = ("waiting", "trashed", "running")


class TaskFlow:
    """The listing is one hash without an order: ids, priorities and numbers of all jobs are read at first."""

    def __init__(self, client: Any, namespaces: list[str], to_queue: str | None = None) -> None:
        self.client, self.namespaces, self.to_queue = client, namespaces, to_queue
        self.name = "taskflow"
        self._orders: dict[Section, list[bytes]] = {}

    def sections(self) -> list[Section]:
        return [Section(state, namespace) for state in STATES for namespace in self.namespaces]

    def count(self, section: Section) -> int:
        return len(self._order(section))

    def holds(self) -> list[Hold]:
        return []

    def read(self, section: Section, left: int, size: int) -> list[Item]:
        refs = self._order(section)[left : left + size]
        raw = self.client.hmget(self._hash(section), refs) if refs else []
        return [item_of(ref, self._item, section, ref, posting) for ref, posting in zip(refs, raw)]

    def remove(self, section: Section, refs: list[bytes]) -> None:
        pipeline = self.client.pipeline()
        for ref in refs:
            pipeline.hdel(self._hash(section), ref)
            pipeline.delete(self._key(section, ref, ".owned"), self._key(section, ref, ".last_modified"))
        pipeline.execute()
        gone = set(refs)
        if section in self._orders:
            self._orders[section] = [ref for ref in self._orders[section] if ref not in gone]

    def _hash(self, section: Section) -> str:
        return f"{section.place}:{'trash' if section.state == 'trashed' else 'listings'}"

    def _key(self, section: Section, ref: bytes, ending: str) -> Any:
        return sent(f"{section.place}:{text(ref)}{ending}")

    def _order(self, section: Section) -> list[bytes]:
        """The jobs of a section, those that were posted first before the others."""
        if section not in self._orders:
            found = []
            for ref, raw in self.client.hscan_iter(self._hash(section), count=1000):
                try:
                    found.append((int(misc.decode_msgpack(raw)["sequence"]), ref))
                except (ValueError, TypeError, KeyError, OverflowError):
                    found.append((0, ref))
            refs = [ref for _, ref in sorted(found)]
            if section.state != "trashed":
                refs = [
                    ref
                    for ref, owned in zip(refs, self._owned(section, refs))
                    if owned == (section.state == "running")
                ]
            self._orders[section] = refs
        return self._orders[section]

    def _owned(self, section: Section, refs: list[bytes]) -> list[bool]:
        pipeline = self.client.pipeline(transaction=False)
        for ref in refs:
            pipeline.exists(self._key(section, ref, ".owned"))
        return [bool(one) for one in pipeline.execute()]

    def _item(self, section: Section, ref: bytes, raw: bytes | None) -> Item:
        if raw is None:
            return Item(ref, problem="it has gone meanwhile", foreign=True)
        try:
            job: dict[str, Any] = misc.decode_msgpack(raw)
            priority = JobPriority.convert(job.get("priority", JobPriority.NORMAL))
            posting = Posting(
                job["uuid"],
                theirs.pack(job.get("details")),
                name=job["name"] or None,
                queue=self.to_queue,
                priority=theirs.PRIORITIES[priority],
                retries=-1,
                lapses=-1,
                trashed=section.state == "trashed",
            )
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            return Item(ref, problem=f"it is no posting of TaskFlow: {error}")
        book = job.get("book") or {}
        posting.meta = {
            theirs.BOOK: book.get("uuid"),
            theirs.BOOK_NAME: book.get("name"),
            "source": "taskflow",
        }
        created = job.get("created_on")
        if isinstance(created, datetime.datetime):
            posting.meta["created"] = int(created.replace(tzinfo=datetime.timezone.utc).timestamp() * 1000)
        return Item(ref, posting)
