"""Redis Streams: what a consumer group has not acknowledged, and what it has not been given yet.

Entries are read through the group, as a consumer of its own name, so that what is in its hands can be seen,
and are acknowledged when they are on the board. The stream keeps them, for its other groups, unless it is
told not to.
"""

from __future__ import annotations

from typing import Any

import redis

from ..json_values import compact
from .holds import Hold
from .moving import Item, Section, item_of, text
from .postings import WORKER, Posting

STATES = ("pending", "waiting")


class Streams:
    """`field` is the one field that is the payload, the others are meta fields then; without it the payload
    is a JSON object of all fields. `name_field` is the one that is the job's name. `idle` is for how many ms
    nobody may have been given a pending entry."""

    def __init__(
        self,
        client: Any,
        streams: list[str],
        group: str,
        to_queue: str | None = None,
        field: str | None = None,
        name_field: str | None = None,
        idle: int = 0,
        delete: bool = False,
        dry: bool = False,
    ) -> None:
        self.client, self.streams, self.group, self.to_queue = client, streams, group, to_queue
        self.field, self.name_field, self.idle, self.delete, self.dry = field, name_field, idle, delete, dry
        self.name = f"streams.{group}"
        self._last: dict[str, Any] = {}

    def sections(self) -> list[Section]:
        return [Section(state, stream) for state in STATES for stream in self.streams]

    def count(self, section: Section) -> int:
        for group in self.client.xinfo_groups(section.place):
            if text(group["name"]) == self.group:
                return group["pending"] if section.state == "pending" else int(group.get("lag") or 0)
        raise redis.ResponseError(f"the stream {section.place} has no group {self.group}")

    def holds(self) -> list[Hold]:
        return []

    def read(self, section: Section, left: int, size: int) -> list[Item]:
        if section.state == "pending":
            return self._pending(section.place, left, size)
        if self.dry:
            return self._undelivered(section.place, left, size)
        reply = self.client.xreadgroup(self.group, WORKER, {section.place: ">"}, count=size)
        entries = list(reply.values())[0][0] if isinstance(reply, dict) and reply else []
        if isinstance(reply, list) and reply:
            entries = reply[0][1]
        return [item_of(id, self._item, section.place, id, fields, 1) for id, fields in entries]

    def remove(self, section: Section, refs: list[bytes]) -> None:
        pipeline = self.client.pipeline()
        pipeline.xack(section.place, self.group, *refs)
        if self.delete:
            pipeline.xdel(section.place, *refs)
        pipeline.execute()

    def _pending(self, stream: str, left: int, size: int) -> list[Item]:
        """Of those that others have, the idle ones; of its own, all: it has read them and was killed."""
        listed = self.client.xpending_range(stream, self.group, min="-", max="+", count=left + size)[left:]
        ids = [one["message_id"] for one in listed]
        if not ids:
            return []
        pipeline = self.client.pipeline(transaction=False)
        for id in ids:
            pipeline.xrange(stream, id, id)
        items = []
        for one, entries in zip(listed, pipeline.execute()):
            id, deliveries = one["message_id"], one["times_delivered"]
            if text(one["consumer"]) != WORKER and one["time_since_delivered"] < self.idle:
                items.append(Item(id, problem=f"{text(one['consumer'])} was given it a short while ago"))
            elif not entries:
                items.append(Item(id, problem="it has been deleted from the stream"))
            else:
                items.append(item_of(id, self._item, stream, id, entries[0][1], deliveries))
        return items

    def _undelivered(self, stream: str, left: int, size: int) -> list[Item]:
        """What the group would be given next, without giving it."""
        if not left:
            groups = {text(one["name"]): one for one in self.client.xinfo_groups(stream)}
            self._last[stream] = groups[self.group]["last-delivered-id"]
        entries = self.client.xrange(stream, b"(" + self._last[stream], "+", count=size)
        if entries:
            self._last[stream] = entries[-1][0]
        return [item_of(id, self._item, stream, id, fields, 1) for id, fields in entries]

    def _item(self, stream: str, id: bytes, fields: dict[bytes, bytes], deliveries: int) -> Item:
        values = {text(name): value for name, value in fields.items()}
        posting = Posting(f"{stream}:{text(id)}", b"", queue=self.to_queue)
        if self.name_field in values:
            posting.name = text(values.pop(self.name_field))
        if self.field is None:
            try:
                posting.payload = compact({name: value.decode() for name, value in values.items()})
            except UnicodeDecodeError:
                return Item(
                    id, problem="its fields are no text: name the one that is the payload with --field"
                )
        elif self.field in values:
            posting.payload = values.pop(self.field)
            posting.meta = dict(values)
        else:
            return Item(id, problem=f"it has no field {self.field}")
        posting.meta["source"] = "streams"
        if deliveries > 1:
            posting.meta["deliveries"] = deliveries
        return Item(id, posting)
