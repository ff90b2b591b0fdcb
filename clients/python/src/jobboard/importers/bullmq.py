"""BullMQ: waiting, prioritized, delayed, failed and active jobs, parents that wait, and job schedulers."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any, NamedTuple

from .holds import Hold
from .moving import Item, Section, item_of, sent, text
from .postings import Posting, Recurring

PLACES = {
    "waiting": "wait",
    "paused": "paused",
    "prioritized": "prioritized",
    "delayed": "delayed",
    "failed": "failed",
    "running": "active",
    "deferred": "waiting-children",
    "recurring": "repeat",
}
"""Where a queue has them: `bull:<queue>:<place>`."""

LISTS = {"waiting", "paused", "running"}
"""Lists: jobs come in at the left and are taken from the right. The others are sorted sets."""

ENDLESS = 1 << 40
"""The longest wait before a retry that a board knows: BullMQ has no limit."""


class Children(NamedTuple):
    """The keys of a job's children, by what became of them."""

    pending: set[bytes]
    """It waits for them: also for those that failed without a word of what follows from that."""
    processed: dict[bytes, bytes]
    """Complete, with their results."""
    ignored: list[bytes]
    """Failed, and it runs all the same."""
    fatal: list[bytes]
    """Failed, and so does it."""


class BullMQ:
    def __init__(
        self, client: Any, queues: list[str], prefix: str = "bull", to_queue: str | None = None
    ) -> None:
        self.client, self.prefix, self.to_queue = client, prefix, to_queue
        self.queues = queues or sorted(
            text(key)[len(prefix) + 1 : -len(":meta")] for key in client.scan_iter(f"{prefix}:*:meta")
        )
        self.name = prefix

    def sections(self) -> list[Section]:
        # Failed children come before the parents that adopt them.
        order = "recurring failed waiting paused prioritized delayed running deferred".split()
        return [Section(state, queue) for state in order for queue in self.queues]

    def count(self, section: Section) -> int:
        key = self._key(section)
        return int(self.client.llen(key) if section.state in LISTS else self.client.zcard(key))

    def holds(self) -> list[Hold]:
        found = []
        for queue in self.queues:
            if any(self.count(section) for section in self.sections() if section.place == queue):
                meta = sent(f"{self.prefix}:{queue}:meta")
                fields = "paused", "concurrency", "max", "duration"
                paused, concurrency, most, period = self.client.hmget(meta, *fields)
                hold = Hold(self.to_queue or queue, None if paused is None else 0)
                hold.concurrency = None if concurrency is None else int(concurrency)
                hold.rate = (int(most), int(period)) if most and period else None
                found.append(hold)
        return found

    def read(self, section: Section, left: int, size: int) -> list[Item]:
        key = self._key(section)
        if section.state in LISTS:
            found = [(ref, 0.0) for ref in self.client.lrange(key, -left - size, -left - 1)[::-1]]
        else:
            found = self.client.zrange(key, left, left + size - 1, withscores=True)
        found = [(ref, score) for ref, score in found]
        pipeline = self.client.pipeline(transaction=False)
        for ref, _ in found:
            job = self._job(section, ref)
            pipeline.hgetall(sent(job))
            pipeline.smembers(sent(job + ":dependencies"))
            pipeline.hgetall(sent(job + ":processed"))
            pipeline.hkeys(sent(job + ":failed"))
            pipeline.zrange(sent(job + ":unsuccessful"), 0, -1)
        replies = iter(pipeline.execute())
        return [
            item_of(ref, self._item, section, ref, score, next(replies), Children(*islice(replies, 4)))
            for ref, score in found
        ]

    def remove(self, section: Section, refs: list[bytes]) -> None:
        """A scheduler goes with the job that it has posted for its next time."""
        key = self._key(section)
        reading = self.client.pipeline(transaction=False)
        for ref in refs:
            reading.hget(sent(self._job(section, ref)), "deid")
        pipeline = self.client.pipeline()
        for ref, deduplication in zip(refs, reading.execute()):
            if section.state in LISTS:
                pipeline.lrem(key, -1, ref)
            else:
                pipeline.zrem(key, ref)
            next_job = self._next(section, ref) if section.state == "recurring" else None
            if next_job is not None:
                delayed = Section("delayed", section.place)
                pipeline.zrem(self._key(delayed), next_job)
                self._delete(pipeline, self._job(delayed, next_job))
            if deduplication is not None:
                pipeline.delete(sent(f"{self.prefix}:{section.place}:de:{text(deduplication)}"))
            self._delete(pipeline, self._job(section, ref))
        pipeline.execute()

    def _next(self, section: Section, ref: bytes) -> bytes | None:
        """The job that a scheduler has posted for its next time, while that is delayed."""
        score = self.client.zscore(self._key(section), ref)
        if score is None:
            return None
        found: bytes = sent(f"repeat:{text(ref)}:{int(score)}")
        delayed = self._key(Section("delayed", section.place))
        return None if self.client.zscore(delayed, found) is None else found

    def _delete(self, pipeline: Any, job: str) -> None:
        endings = ("", ":logs", ":dependencies", ":processed", ":failed", ":unsuccessful", ":lock")
        pipeline.delete(*(sent(job + ending) for ending in endings))

    def _key(self, section: Section) -> Any:
        return sent(f"{self.prefix}:{section.place}:{PLACES[section.state]}")

    def _job(self, section: Section, ref: bytes) -> str:
        between = "repeat:" if section.state == "recurring" else ""
        return f"{self.prefix}:{section.place}:{between}{text(ref)}"

    def _item(
        self,
        section: Section,
        ref: bytes,
        score: float,
        fields: dict[bytes, bytes],
        children: Children,
    ) -> Item:
        if ref.startswith(b"0:"):  # a marker of older releases, no job
            return Item(ref, foreign=True)
        job = {text(name): text(value) for name, value in fields.items()}
        if "name" not in job:
            return Item(ref, problem="its data have gone")
        options = json.loads(job.get("opts") or "{}")
        id = board_id(section.place, text(ref))
        posting = Posting(id, fields.get(b"data", b"{}"), name=job["name"] or None)
        posting.queue = self.to_queue or section.place
        posting.priority = -int(float(job.get("priority") or options.get("priority") or 0))
        put_retries(posting, options, done=int(job.get("atm") or job.get("attemptsMade") or 0))
        put_retention(posting, options.get("removeOnComplete"))
        if section.state == "recurring":
            done = int(job.get("ic") or 1)
            if self._next(section, ref) is None:  # the job of that time is moved as a job
                score += int(float(job.get("every", 1)))
            else:
                done -= 1
            left = int(float(job["limit"])) - done if job.get("limit") else None
            if left is not None and left < 1:
                return Item(ref, problem="it has posted as many jobs as its limit allows")
            return Item(ref, recurring(posting, text(ref), job, score, left))
        posting.meta = {
            "source": "bullmq",
            "created": job.get("timestamp"),
            "attempts": job.get("atm"),
            "parent": job.get("parentKey"),
        }
        if section.state == "delayed":
            posting.at = int(score) // 0x1000  # the rest is a counter
        if section.state == "failed":
            put_retries(posting, options, done=0)
            posting.failure = failure(job)
        strange = self._strange(children)
        if strange is not None:
            return Item(ref, problem=f"its child {strange} has another prefix")
        if section.state == "deferred":
            unmoved = self._unmoved(children.pending)
            if unmoved:
                return Item(ref, problem=f"waits for {unmoved}, which is not on the board", waits=True)
            posting.after = sorted(board_id(*self._parts(text(other))) for other in children.pending)
        posting.done = self._done(posting.id, children.processed)
        lost = sorted(board_id(*self._parts(text(other))) for other in {*children.ignored, *children.fatal})
        posting.adopts = [*posting.after, *lost]
        if "deid" in job:
            self._put_unique(posting, section, ref, job["deid"])
        return Item(ref, posting)

    def _parts(self, key: str) -> tuple[str, str]:
        """Queue and id of a job's key. Ids have no colon, queues neither."""
        queue, _, id = key[len(self.prefix) + 1 :].partition(":")
        return queue, id

    def _strange(self, children: Children) -> str | None:
        """The key of a child that another prefix has: its id on the board cannot be told from that."""
        keys = [*children.pending, *children.processed, *children.ignored, *children.fatal]
        return next((key for key in sorted(map(text, keys)) if not key.startswith(f"{self.prefix}:")), None)

    def _unmoved(self, others: set[bytes]) -> str | None:
        """The key of one of these children that BullMQ still has; those that it has not are on the board."""
        for other in sorted(map(text, others)):
            if self.client.exists(sent(other)):
                return other
        return None

    def _done(self, parent: str, processed: dict[bytes, bytes]) -> list[Posting]:
        """The children of a job that are complete, with the results that it would ask BullMQ for."""
        found = []
        for key, result in processed.items():
            queue, id = self._parts(text(key))
            name, data = self.client.hmget(key, "name", "data")  # nothing, when it was removed
            child = Posting(board_id(queue, id), data or b"{}", name=text(name or b"") or None)
            child.queue, child.parent, child.result = self.to_queue or queue, parent, result
            child.meta = {"source": "bullmq"}
            found.append(child)
        return sorted(found, key=lambda child: child.id)

    def _put_unique(self, posting: Posting, section: Section, ref: bytes, deduplication: str) -> None:
        """The key of a job that holds its deduplication id: until it ends, or for the time that is left."""
        key = sent(f"{self.prefix}:{section.place}:de:{deduplication}")
        if self.client.get(key) == ref and posting.failure is None:
            left = self.client.pttl(key)
            posting.unique = (deduplication, "FOR", left) if left > 0 else (deduplication,)


def board_id(queue: str, id: str) -> str:
    """Ids that BullMQ has made are numbers, the same in every queue; those of users are not."""
    return f"{queue}:{id}" if id.isdigit() else id


def put_retries(posting: Posting, options: dict[str, Any], done: int) -> None:
    """How often it is tried again. `done`: attempts that have been made."""
    posting.retries = max(int(options.get("attempts") or 1) - 1 - done, 0)
    backoff = options.get("backoff")
    if isinstance(backoff, (int, float)):
        backoff = {"type": "fixed", "delay": backoff}
    backoff = backoff or {"type": "fixed", "delay": 0}
    delay = int(backoff.get("delay") or 0)
    posting.jitter = min(int(float(backoff.get("jitter") or 0) * 100), 100)
    if backoff.get("type") == "exponential":
        posting.backoff = ("EXPONENTIAL", delay, ENDLESS)
    elif backoff.get("type") == "fixed":
        posting.backoff = ("FIXED", delay)
    else:  # a strategy of the user's own: the board's settings
        posting.backoff, posting.jitter = (), None


def put_retention(posting: Posting, remove: Any) -> None:
    """BullMQ keeps complete jobs unless it is told how long; then a board does as its settings say."""
    if remove is True or remove == 0:
        posting.retain = 0
    elif isinstance(remove, dict) and remove.get("age"):
        posting.retain = int(remove["age"]) * 1000


def failure(job: dict[str, str]) -> tuple[str, str]:
    """The kind is the class at the head of the last stack trace."""
    traces = json.loads(job.get("stacktrace") or "[]") or [""]
    kind = (traces[-1] or "").partition(":")[0].strip()
    reason = job.get("failedReason", "")
    return (kind if kind.isidentifier() else "failed")[:100], reason


def recurring(posting: Posting, id: str, job: dict[str, str], due: float, left: int | None) -> Recurring:
    posting.id = id
    if not posting.payload:
        posting.payload = b"{}"
    return Recurring(
        posting,
        every=int(float(job["every"])) if "every" in job else None,
        cron=job.get("pattern"),
        tz=job.get("tz"),
        start=int(due),
        end=int(float(job["endDate"])) if "endDate" in job else None,
        most=left,
    )
