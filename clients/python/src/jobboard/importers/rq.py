"""RQ: jobs of its queues and registries.

The payload is JSON, `{"func": …, "args": […], "kwargs": {…}}`, and the name is that of the function. What
JSON cannot hold (arguments of classes, instances) stays as RQ packed it, with the meta field `encoding`. No
class is imported for that: nothing of what a pickle names is called.
"""

from __future__ import annotations

import base64
import datetime
import io
import json
import pickle
import zlib
from typing import Any

from ..json_values import compact, is_json
from ..outcomes import shortened
from .holds import Hold
from .moving import Item, Section, item_of, sent, text
from .postings import LONGEST_MESSAGE, Posting

STATES = ("waiting", "ready", "delayed", "failed", "running", "taken", "deferred")

PLACES = {
    "waiting": "queue:{}",
    "ready": "ready:{}",
    "held": "rl:{}:rate_limited",
    "delayed": "scheduled:{}",
    "failed": "failed:{}",
    "running": "wip:{}",
    "taken": "queue:{}:intermediate",
    "deferred": "deferred:{}",
}
"""Where RQ has them, behind its prefix, by queue; those that a rate limit holds back by its key. `taken` are
those that a worker has taken off its queue and not begun, `ready` dependent ones that are not queued yet."""

LISTS = {"waiting", "taken"}
"""Lists; the others are sorted sets."""

NOTES = (
    "success_callback_name",
    "failure_callback_name",
    "stopped_callback_name",
    "retry_intervals",
    "repeats_left",
    "repeat_intervals",
)
"""Fields of RQ that a board does not know: kept as meta fields, with dashes."""


LONGEST_NAME = 255

MOST = 32 << 20
"""Bytes that a job, or its traceback, may unpack to."""


HASHED = 1_000_000
"""Parts of keys of dictionaries and of members of sets that are hashed for one job."""


class TooMuch(ValueError):
    """It would take too much memory."""


SLOW: Any = pickle._Unpickler
"""pickle's own, in Python: that in C takes as much memory as the number says that a pickle gives a part."""


class Plain(SLOW):  # type: ignore[misc]
    """Unpickles built-in values alone, and none that takes for ever to hash: a tuple whose parts are one
    tuple twice, and so on, is hashed as often as it is named.
    """

    dispatch = dict(SLOW.dispatch)

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))
        self._left = HASHED

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} is no plain value")

    def _count(self, part: Any) -> None:
        self._left -= 1
        if self._left < 0:
            raise pickle.UnpicklingError("it would take too long to hash")
        if isinstance(part, (tuple, frozenset)):
            for one in part:
                self._count(one)

    def _load_setitem(self) -> None:
        self._count(self.stack[-2])
        SLOW.load_setitem(self)

    def _load_pairs(self, load: Any) -> None:
        for key in self.stack[::2]:
            self._count(key)
        load(self)

    def _load_parts(self, load: Any) -> None:
        for one in self.stack:
            self._count(one)
        load(self)

    def _load_bytearray(self) -> None:
        length = int.from_bytes(self.read(8), "little")
        self.append(bytearray(self.read(length)))

    dispatch[pickle.SETITEM[0]] = _load_setitem
    dispatch[pickle.SETITEMS[0]] = lambda self: self._load_pairs(SLOW.load_setitems)
    dispatch[pickle.DICT[0]] = lambda self: self._load_pairs(SLOW.load_dict)
    dispatch[pickle.ADDITEMS[0]] = lambda self: self._load_parts(SLOW.load_additems)
    dispatch[pickle.FROZENSET[0]] = lambda self: self._load_parts(SLOW.load_frozenset)
    dispatch[pickle.BYTEARRAY8[0]] = _load_bytearray


class RQ:
    def __init__(
        self, client: Any, queues: list[str], prefix: str = "rq", to_queue: str | None = None
    ) -> None:
        self.client, self.prefix, self.to_queue = client, prefix, to_queue
        known = sorted(text(key).split(":queue:", 1)[1] for key in client.smembers(f"{prefix}:queues"))
        self.queues = queues or known
        self.name = prefix

    def sections(self) -> list[Section]:
        limits = sorted(map(text, self.client.smembers(f"{self.prefix}:rl-keys")))
        found = [Section(state, queue) for state in STATES for queue in self.queues]
        return (
            found[: len(self.queues)] + [Section("held", key) for key in limits] + found[len(self.queues) :]
        )

    def count(self, section: Section) -> int:
        key = self._key(section)
        return int(self.client.llen(key) if section.state in LISTS else self.client.zcard(key))

    def holds(self) -> list[Hold]:
        """`rq suspend` is for all queues."""
        left = self.client.pttl(f"{self.prefix}:suspended")
        if left == -2 or not any(map(self.count, self.sections())):
            return []
        return [Hold(queue, max(left, 0)) for queue in ([self.to_queue] if self.to_queue else self.queues)]

    def read(self, section: Section, left: int, size: int) -> list[Item]:
        key, end = self._key(section), left + size - 1
        if section.state in LISTS:
            found = [(ref, 0.0) for ref in self.client.lrange(key, left, end)]
        else:
            found = self.client.zrange(key, left, end, withscores=True)
        found = [(ref, score) for ref, score in found]
        pipeline = self.client.pipeline(transaction=False)
        for ref, _ in found:
            job = sent(self._job(section, ref))
            pipeline.hgetall(job)
            pipeline.pttl(job)
            pipeline.xrevrange(sent(f"{self.prefix}:results:{self._id(section, ref)}"), count=1)
            pipeline.smembers(sent(f"{self.prefix}:job::{self._id(section, ref)}:dependencies"))
        replies = iter(pipeline.execute())
        return [
            item_of(ref, self._item, section, ref, score, *(next(replies) for _ in range(4)))
            for ref, score in found
        ]

    def remove(self, section: Section, refs: list[bytes]) -> None:
        reading = self.client.pipeline(transaction=False)
        for ref in refs:
            reading.hget(sent(self._job(section, ref)), "rate_limit_key")
        pipeline = self.client.pipeline()
        for ref, limit in zip(refs, reading.execute()):
            id, job = self._id(section, ref), self._job(section, ref)
            if section.state in LISTS:
                pipeline.lrem(self._key(section), 1, ref)
            else:
                pipeline.zrem(self._key(section), ref)
            if limit:
                pipeline.zrem(sent(f"{self.prefix}:rl:{text(limit)}:allowed"), sent(id))
            keys = (
                job,
                f"{job}:dependents",
                f"{self.prefix}:job::{id}:dependencies",
                f"{self.prefix}:results:{id}",
                f"{self.prefix}:executions:{id}",
            )
            pipeline.delete(*map(sent, keys))
        pipeline.execute()

    def _key(self, section: Section) -> Any:
        return sent(f"{self.prefix}:{PLACES[section.state].format(section.place)}")

    def _id(self, section: Section, ref: bytes) -> str:
        """Running ones are listed by job and execution."""
        return text(ref).rpartition(":")[0] if section.state == "running" else text(ref)

    def _job(self, section: Section, ref: bytes) -> str:
        return f"{self.prefix}:job:{self._id(section, ref)}"

    def _item(
        self,
        section: Section,
        ref: bytes,
        score: float,
        fields: dict[bytes, bytes],
        left: int,
        results: list[Any],
        others: set[bytes],
    ) -> Item:
        job = {text(name): value for name, value in fields.items()}
        if "data" not in job:
            return Item(ref, problem="its data have gone")
        id = self._id(section, ref)
        if section.state == "deferred":
            unmoved = self._unmoved(others)
            if unmoved:
                return Item(ref, problem=f"waits for {unmoved}, which is not on the board", waits=True)
        queue = text(job["origin"]) if section.state == "held" else section.place
        if queue not in self.queues:
            return Item(ref, foreign=True)
        posting = Posting(id, b"", queue=self.to_queue or queue)
        try:
            put_call(posting, job["data"])
        except TooMuch as error:
            return Item(ref, problem=str(error))
        # How long RQ keeps a failed job says nothing of its `ttl`.
        put_options(posting, job, -1 if section.state == "failed" else left)
        if section.state == "delayed":
            posting.at = int(score * 1000)
        if section.state == "failed":
            posting.failure = failure(job, results)
        if section.state == "deferred":
            posting.after = sorted(map(text, others))
            posting.onfailure = "run" if number(job, "allow_dependency_failures") else None
        return Item(ref, posting)

    def _unmoved(self, others: set[bytes]) -> str | None:
        """One of these jobs that RQ still has and has not finished. Those that it has not are on the board,
        or done: a board takes ids that it does not know as done."""
        for other in sorted(map(text, others)):
            status = self.client.hget(sent(f"{self.prefix}:job:{other}"), "status")
            if status is not None and status != b"finished":
                return other
        return None


def put_call(posting: Posting, data: bytes) -> None:
    """The name and the payload of a job from what RQ packed of its call."""
    data = unpacked(data)
    try:
        encoding, call = "json", json.loads(data)
    except (ValueError, RecursionError):
        encoding = "pickle"
        try:
            call = Plain(data).load()
        except Exception:  # a pickle of anything: it may fail in any way
            call = None
    if isinstance(call, (tuple, list)) and len(call) == 4 and isinstance(call[0], str):
        func, instance, args, kwargs = call
        posting.name = func
        plain = {"func": func, "args": list(args), "kwargs": kwargs}
        found = as_json(plain) if instance is None else None
        if found is not None:
            posting.payload = found
            return
    posting.payload = data
    posting.meta["encoding"] = encoding


def put_options(posting: Posting, job: dict[str, bytes], left: int) -> None:
    """The attributes of a job. `left` is in how many ms RQ would drop it, negative for never."""
    retries = number(job, "retries_left") or 0
    posting.retries = retries
    if retries:
        intervals = json.loads(job.get("retry_intervals", b"null")) or [0]
        first, last = min(intervals) * 1000, max(intervals) * 1000
        posting.backoff = ("FIXED", first) if first == last else ("EXPONENTIAL", first, last)
        posting.jitter = 0
    timeout, ttl, kept = (number(job, name) for name in ("timeout", "ttl", "result_ttl"))
    posting.timeout = timeout * 1000 if timeout and timeout > 0 else -1
    if ttl:
        posting.expire = left if left > 0 else ttl * 1000
    if kept is not None:
        posting.retain = kept * 1000 if kept >= 0 else -1
    if job.get("group_id"):
        posting.tags = [text(job["group_id"])]
    if job.get("rate_limit_key"):
        posting.group = text(job["rate_limit_key"])
    posting.meta["source"] = "rq"
    posting.meta["created"] = milliseconds(job.get("created_at", b""))
    for name in NOTES:
        posting.meta[name.replace("_", "-")] = job.get(name)
    description = text(job.get("description", b""))
    posting.meta["description"] = cut(description, LONGEST_MESSAGE)
    own = own_meta(job.get("meta"))
    if "encoding" in posting.meta and "encoding" in own:  # ours says how the payload is to be read
        own["meta-encoding"] = own.pop("encoding")
    posting.meta.update(own)
    if posting.name is None:
        posting.name = cut(description.partition("(")[0], LONGEST_NAME) or None


def own_meta(packed_meta: bytes | None) -> dict[str, Any]:
    """The job's own meta fields; as one, `meta`, when they are no plain values."""
    if not packed_meta:
        return {}
    try:
        found = json.loads(packed_meta) if packed_meta[:1] == b"{" else Plain(packed_meta).load()
    except Exception:  # a pickle of anything
        return {"meta": packed_meta}
    if isinstance(found, dict) and as_json(found) is not None:
        return found
    return {"meta": packed_meta}


def failure(job: dict[str, bytes], results: list[Any]) -> tuple[str, str]:
    """The kind and the text of a failure, from its last result or, of an older RQ, from the job."""
    trace = ""
    if results and b"exc_string" in results[0][1]:
        trace = traceback(base64.b64decode(results[0][1][b"exc_string"]))
    elif "exc_info" in job:
        trace = traceback(job["exc_info"])
    lines = trace.strip().splitlines()
    kind = lines[-1].partition(":")[0].strip() if lines else ""
    return (kind.rpartition(".")[2] if kind and " " not in kind else "failed")[:100], trace


def traceback(data: bytes) -> str:
    try:
        return text(unpacked(data))
    except TooMuch as error:
        return f"a traceback that is not shown: {error}"


def unpacked(data: bytes) -> bytes:
    """What zlib has packed, as it is when an old RQ has written it; raises `TooMuch`."""
    packed = zlib.decompressobj()
    try:
        found = packed.decompress(data, MOST)
    except zlib.error:
        return data
    if packed.unconsumed_tail:
        raise TooMuch(f"it unpacks to more than {MOST >> 20} MiB")
    return found


def as_json(value: Any) -> str | None:
    """JSON of a plain value; None of one that JSON does not hold, or that it would make much larger: a pickle
    may name one part any number of times.
    """
    left = MOST

    def fits(part: Any) -> bool:
        nonlocal left
        if isinstance(part, dict):
            return all(fits(key) and fits(one) for key, one in part.items())
        left -= len(part) if isinstance(part, (str, bytes)) else 16
        return left > 0 and (not isinstance(part, (list, tuple)) or all(map(fits, part)))

    try:
        return compact(value) if fits(value) and is_json(value) else None
    except (RecursionError, ValueError):  # nested too deep, or a number of too many digits
        return None


def cut(found: str, most: int) -> str:
    """Text of at most so many bytes, the end of which goes."""
    return shortened(found, most).decode() if len(found.encode("utf-8", "replace")) > most else found


def number(job: dict[str, bytes], name: str) -> int | None:
    return int(float(job[name])) if job.get(name) else None


def milliseconds(moment: bytes) -> int | None:
    try:
        found = datetime.datetime.fromisoformat(text(moment).replace("Z", "+00:00"))
    except ValueError:
        return None
    if found.tzinfo is None:
        found = found.replace(tzinfo=datetime.timezone.utc)
    return int(found.timestamp() * 1000)
