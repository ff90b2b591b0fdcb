"""qless: the queues, failures and recurring jobs of its Lua core."""

from __future__ import annotations

import json
from typing import Any

from ..arguments import BACKLOG_MOST
from .holds import Hold
from .moving import Item, Section, item_of, sent, text
from .postings import Posting, Recurring

PLACES = {"waiting": "work", "delayed": "scheduled", "running": "locks", "deferred": "depends"}
"""Where a queue has them: `ql:q:<queue>-<place>`, sorted sets."""


class Qless:
    """`queues` restricts failures too, which qless lists by their group."""

    def __init__(
        self, client: Any, queues: list[str], prefix: str = "ql", to_queue: str | None = None
    ) -> None:
        self.client, self.prefix, self.to_queue = client, prefix, to_queue
        self.queues = queues or [text(name) for name in client.zrange(f"{prefix}:queues", 0, -1)]
        self.name = prefix

    def sections(self) -> list[Section]:
        groups = sorted(map(text, self.client.smembers(f"{self.prefix}:failures")))
        return [
            *(Section("recurring", queue) for queue in self.queues),
            *(Section(state, queue) for state in ("waiting", "delayed") for queue in self.queues),
            *(Section("failed", group) for group in groups),
            *(Section(state, queue) for state in ("running", "deferred") for queue in self.queues),
        ]

    def count(self, section: Section) -> int:
        key = self._list(section)
        return int(self.client.llen(key) if section.state == "failed" else self.client.zcard(key))

    def holds(self) -> list[Hold]:
        found = []
        paused = set(map(text, self.client.smembers(f"{self.prefix}:paused_queues")))
        for queue in self.queues:
            if any(self.count(section) for section in self.sections() if section.place == queue):
                most = int(self.client.hget(f"{self.prefix}:config", sent(f"{queue}-max-concurrency")) or 0)
                found.append(Hold(self.to_queue or queue, 0 if queue in paused else None, most or None))
        return found

    def read(self, section: Section, left: int, size: int) -> list[Item]:
        key, end = self._list(section), left + size - 1
        if section.state == "failed":
            found = [(ref, 0.0) for ref in self.client.lrange(key, -left - size, -left - 1)[::-1]]
        elif section.state == "waiting":
            found = self.client.zrevrange(key, left, end, withscores=True)
        else:
            found = self.client.zrange(key, left, end, withscores=True)
        found = [(ref, score) for ref, score in found]
        kind = "r" if section.state == "recurring" else "j"
        pipeline = self.client.pipeline(transaction=False)
        for ref, _ in found:
            pipeline.hgetall(self._key(kind, ref))
            pipeline.smembers(self._key("j", ref) + b"-dependencies")
            pipeline.zscore(f"{self.prefix}:tracked", ref)
        replies = iter(pipeline.execute())
        return [
            item_of(ref, self._item, section, ref, score, next(replies), next(replies), next(replies))
            for ref, score in found
        ]

    def remove(self, section: Section, refs: list[bytes]) -> None:
        if section.state == "recurring":
            self._remove_recurring(section, refs)
            return
        reading = self.client.pipeline(transaction=False)
        for ref in refs:
            reading.hget(self._key("j", ref), "tags")
        pipeline = self.client.pipeline()
        for ref, tags in zip(refs, reading.execute()):
            job = self._key("j", ref)
            if section.state == "failed":
                pipeline.lrem(self._list(section), -1, ref)
            else:
                pipeline.zrem(self._list(section), ref)
            for tag in as_list(tags):
                pipeline.zrem(sent(f"{self.prefix}:t:{tag}"), ref)
                pipeline.zincrby(f"{self.prefix}:tags", -1, sent(tag))
            pipeline.zrem(f"{self.prefix}:tracked", ref)
            pipeline.delete(job, job + b"-dependencies", job + b"-dependents", job + b"-history")
        pipeline.execute()
        if section.state == "failed" and not self.count(section):
            self.client.srem(f"{self.prefix}:failures", sent(section.place))

    def _remove_recurring(self, section: Section, refs: list[bytes]) -> None:
        pipeline = self.client.pipeline()
        for ref in refs:
            pipeline.zrem(self._list(section), ref)
            pipeline.delete(self._key("r", ref))
        pipeline.execute()

    def _list(self, section: Section) -> Any:
        if section.state == "failed":
            return sent(f"{self.prefix}:f:{section.place}")
        return sent(f"{self.prefix}:q:{section.place}-{PLACES.get(section.state, 'recur')}")

    def _key(self, kind: str, ref: bytes) -> bytes:
        return b"%b:%b:%b" % (sent(self.prefix), sent(kind), ref)

    def _item(
        self,
        section: Section,
        ref: bytes,
        score: float,
        fields: dict[bytes, bytes],
        others: set[bytes],
        tracked: Any,
    ) -> Item:
        job = {text(name): text(value) for name, value in fields.items()}
        if "klass" not in job:
            return Item(ref, problem="its data have gone")
        if section.state == "failed" and job["queue"] not in self.queues:
            return Item(ref, foreign=True)
        posting = Posting(
            text(ref),
            fields[b"data"],
            name=job["klass"],
            queue=self.to_queue or job["queue"],
            priority=int(float(job.get("priority") or 0)),
            tags=list(dict.fromkeys(as_list(job.get("tags")))),
            tracked=tracked is not None,
            meta={"source": "qless"},
        )
        posting.retries = posting.lapses = max(int(float(job.get("remaining") or job.get("retries") or 0)), 0)
        if section.state == "recurring":
            return Item(ref, recurring(posting, job, score))
        if job.get("time"):
            posting.meta["created"] = int(float(job["time"]) * 1000)
        if section.state == "delayed":
            posting.at = int(score * 1000)
        if section.state == "failed":
            found = json.loads(job.get("failure") or "{}")
            posting.retries = posting.lapses = max(int(float(job.get("retries") or 0)), 0)
            posting.failure = (section.place[:100], str(found.get("message", "")))
            posting.meta["failed"] = int(found["when"]) * 1000 if found.get("when") else None
        if section.state == "deferred":
            unmoved = self._unmoved(others)
            if unmoved:
                return Item(ref, problem=f"waits for {unmoved}, which is not on the board", waits=True)
            posting.after = sorted(map(text, others))
        return Item(ref, posting)

    def _unmoved(self, others: set[bytes]) -> str | None:
        """One of these jobs that qless still has; those that it has not are on the board."""
        for other in sorted(map(text, others)):
            state = self.client.hget(sent(f"{self.prefix}:j:{other}"), "state")
            if state is not None and state != b"complete":
                return other
        return None


def recurring(posting: Posting, job: dict[str, str], due: float) -> Recurring:
    """qless posts a job for each time that has passed, unless its backlog is limited."""
    posting.retries = posting.lapses = int(float(job.get("retries") or 0))
    posting.tracked = False
    backlog = int(float(job.get("backlog") or 0))
    return Recurring(
        posting,
        every=max(int(float(job["interval"]) * 1000), 1),
        start=int(due * 1000),
        backlog=str(min(backlog, BACKLOG_MOST)) if backlog > 0 else "all",
    )


def as_list(tags: Any) -> list[str]:
    """qless writes an empty list as an empty object."""
    found = json.loads(tags) if tags else []
    return [str(tag) for tag in found] if isinstance(found, list) else []
