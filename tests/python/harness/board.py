"""The commands of one board as methods.

Positional arguments are the command's own; keywords become its options, so a test reads like the command:

    board = Board(client, "jobs")
    board.post("hello", queue="mail", meta={"to": "ann"})   # JOB.POST jobs hello QUEUE mail META 1 to ann
    [job] = board.claim("w1", queues=["mail", "sms"])       # JOB.CLAIM jobs w1 QUEUES 2 mail sms
    board.consume("w1", job["id"], token=job["token"])      # JOB.CONSUME jobs w1 <id> TOKEN <token>

Maps of RESP3 and flat arrays of RESP2 both come back as dicts with text keys. Errors are redis-py's
ResponseError; their first word is the code. `call` sends anything else as it stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import redis

COUNTED = {
    "queues",
    "fields",
    "tokens",
    "results",
    "ids",
    "meta",
    "after",
    "tags",
    "untag",
    "unstep",
    "await",
}
"""Options whose list is preceded by its length."""


class Selection(NamedTuple):
    """The reply of an operator's verb: jobs changed, where to go on ("0": done), which ids are unknown, or
    with WHERE held back."""

    count: int
    cursor: str
    unknown: list


class Returned(NamedTuple):
    """The same with the records that were handed back."""

    count: int
    cursor: str
    unknown: list
    records: list


def options(**keywords: Any) -> list:
    """Turns keywords into the words of a command.

    delay=5             DELAY 5
    nx=True             NX                      (None and False: left out)
    queues=["a", "b"]   QUEUES 2 a b            (also fields, tokens, results, ids)
    meta={"k": "v"}     META 1 k v
    backoff=("FIXED", 5)        BACKOFF FIXED 5 (tuples: the words as they stand)
    state=["ready", "claimed"]  STATE ready STATE claimed
    not_state="ready"           NOT STATE ready
    id_="x"                     ID x            (a trailing _ is dropped)
    """
    words: list = []
    for name, value in keywords.items():
        if value is None or value is False:
            continue
        name = name.rstrip("_")
        head = name.upper().split("_") if name.startswith("not_") else [name.upper()]
        if value is True:
            words += head
        elif name in COUNTED:
            pairs = value.items() if isinstance(value, dict) else ([one] for one in value)
            words += [*head, len(value), *(part for pair in pairs for part in pair)]
        elif isinstance(value, tuple):
            words += [*head, *value]
        elif isinstance(value, list):
            for one in value:
                words += [*head, one]
        else:
            words += [*head, value]
    return words


def text(value: Any) -> Any:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def from_pairs(reply: Any) -> Any:
    """A map reply as a dict with text keys, whether it came as a map or as a flat array; None stays None."""
    if reply is None:
        return None
    items = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2])
    return {text(key): value for key, value in items}


def record(reply: Any) -> Any:
    """A job record as a dict: `meta` and `steps` are dicts as well, `progress` a float; None stays None."""
    job = from_pairs(reply)
    if job is None:
        return None
    if job.get("meta") is not None:
        job["meta"] = {text(key): value for key, value in from_pairs(job["meta"]).items()}
    for memos in ("steps", "signals"):
        if job.get(memos) is not None:
            job[memos] = {name: from_pairs(memo) for name, memo in from_pairs(job[memos]).items()}
    if job.get("awaits") is not None:
        job["awaits"] = from_pairs(job["awaits"])
    if job.get("history") is not None:
        job["history"] = [from_pairs(entry) for entry in job["history"]]
    for costs in ("costs", "spent"):
        if job.get(costs) is not None:
            job[costs] = {text(key): value for key, value in from_pairs(job[costs]).items()}
    if job.get("spent") is not None and "costs" in job["spent"]:
        job["spent"]["costs"] = {text(key): value for key, value in from_pairs(job["spent"]["costs"]).items()}
    if job.get("progress") is not None:
        job["progress"] = float(job["progress"])
    return job


def records(reply: Any) -> list:
    return [record(one) for one in reply or []]


def _map_or_error(reply: Any) -> Any:
    """Per-id replies of MHEARTBEAT: a map becomes a dict, `[code, detail]` stays a list."""
    if isinstance(reply, dict) or (reply and text(reply[0]) in ("deadline", "id")):
        return from_pairs(reply)
    return reply


class Board:
    """JOB.* commands on one key over one redis-py client."""

    def __init__(self, client: redis.Redis, key: str | bytes = "board") -> None:
        self.client = client
        self.key = key

    def call(self, command: str, *words: Any, **keywords: Any) -> Any:
        """Sends `JOB.<command> <key> <words> <options>` and gives the reply as it came."""
        return self.client.execute_command(f"JOB.{command.upper()}", self.key, *words, *options(**keywords))

    # Producers

    def post(self, payload: Any = "payload", **keywords: Any) -> Any:
        """Posts one job and returns its id."""
        return self.call("POST", payload, **keywords)

    def mpost(self, payloads: Iterable, **keywords: Any) -> list:
        """Posts several jobs with shared options and returns their ids."""
        payloads = list(payloads)
        return self.call("MPOST", len(payloads), *payloads, **keywords)

    def post_many(self, count: int, payload: Any = "payload", **keywords: Any) -> list:
        """Posts `count` equal jobs, in batches of 1000."""
        ids: list = []
        for start in range(0, count, 1000):
            ids += self.mpost([payload] * min(1000, count - start), **keywords)
        return ids

    # Workers

    def claim(self, worker: Any = "w1", **keywords: Any) -> list:
        """Claims jobs and returns their records; an empty list when there are none."""
        return records(self.call("CLAIM", worker, **keywords))

    def claim_one(self, worker: Any = "w1", **keywords: Any) -> dict:
        """Claims exactly one job and returns its record; fails when there is none."""
        claimed = self.claim(worker, **keywords)
        assert len(claimed) == 1, f"expected one job, got {claimed}"
        return claimed[0]

    def heartbeat(self, worker: Any, id: Any, **keywords: Any) -> dict:
        return from_pairs(self.call("HEARTBEAT", worker, id, **keywords))

    def mheartbeat(self, worker: Any, ids: Iterable | str, **keywords: Any) -> list:
        """`ids` is a list, or "ALL"."""
        return [_map_or_error(one) for one in self.call("MHEARTBEAT", worker, *_ids_or_all(ids), **keywords)]

    def step(self, worker: Any, id: Any, name: Any, value: Any = "done", **keywords: Any) -> dict:
        return from_pairs(self.call("STEP", worker, id, name, value, **keywords))

    def wait_for(self, worker: Any, id: Any, signals: Iterable, **keywords: Any) -> Any:
        """JOB.AWAIT: the state, and what a worker learns that keeps its job; a pair with a claim."""
        names = list(signals)
        reply = self.call("AWAIT", worker, id, "SIGNALS", len(names), *names, **keywords)
        answer = from_pairs(reply)
        if isinstance(answer, dict) and "signals" in answer:
            answer["signals"] = {name: from_pairs(one) for name, one in from_pairs(answer["signals"]).items()}
        return answer

    def consume(self, worker: Any, id: Any, **keywords: Any) -> Any:
        return self.call("CONSUME", worker, id, **keywords)

    def mconsume(self, worker: Any, ids: Iterable | str, **keywords: Any) -> list:
        return self.call("MCONSUME", worker, *_ids_or_all(ids), **keywords)

    def fail(
        self, worker: Any, id: Any, kind: Any = "error", message: Any = "it failed", **keywords: Any
    ) -> dict:
        return from_pairs(self.call("FAIL", worker, id, kind, message, **keywords))

    def abandon(self, worker: Any, id: Any, **keywords: Any) -> Any:
        return self.call("ABANDON", worker, id, **keywords)

    def mabandon(self, worker: Any, ids: Iterable | str, **keywords: Any) -> list:
        return self.call("MABANDON", worker, *_ids_or_all(ids), **keywords)

    def trash(self, worker: Any, id: Any, **keywords: Any) -> Any:
        return self.call("TRASH", worker, id, **keywords)

    def mtrash(self, worker: Any, ids: Iterable | str, **keywords: Any) -> list:
        return self.call("MTRASH", worker, *_ids_or_all(ids), **keywords)

    def mfail(
        self, worker: Any, ids: Iterable | str, kind: Any = "k", message: Any = "m", **keywords: Any
    ) -> list:
        return self.call("MFAIL", worker, kind, message, *_ids_or_all(ids), **keywords)

    # Operators

    def cancel(self, *ids: Any, **keywords: Any) -> list:
        return self.call("CANCEL", len(ids), *ids, **keywords)

    def release(self, *ids: Any, **keywords: Any) -> Selection:
        return _selection(self.call("RELEASE", len(ids), *ids, **keywords))

    def requeue(self, *ids: Any, **keywords: Any) -> Selection:
        return _selection(self.call("REQUEUE", len(ids), *ids, **keywords))

    def delete(self, *ids: Any, **keywords: Any) -> Any:
        return _selection(self.call("DELETE", len(ids), *ids, **keywords))

    def update(self, *ids: Any, tag: Iterable | None = None, **keywords: Any) -> Selection:
        tag = None if tag is None else list(tag)
        tags = [] if tag is None else ["TAG", len(tag), *tag]
        return _selection(self.call("UPDATE", len(ids), *ids, "SET", *options(**keywords), *tags))

    def where(self, command: str, *words: Any, set_: dict | None = None, **keywords: Any) -> Any:
        """One slice of an operator's verb on a selection: `where("cancel", queue="mail", count=10)`."""
        change = ["SET", *options(**set_)] if set_ is not None else []
        return _selection(self.call(command, "WHERE", *options(**keywords), *words, *change))

    def where_all(self, command: str, *words: Any, **keywords: Any) -> int:
        """All slices, from the beginning to the end; how many jobs it was done with."""
        done, slices = self.where(command, *words, **keywords), 1
        total = done.count
        while done.cursor != "0":
            done, slices = self.where(command, *words, **keywords, cursor=done.cursor), slices + 1
            total += done.count
            assert slices < 10_000, "a loop without end"
        return total

    def signal(self, name: Any, *ids: Any, **keywords: Any) -> list:
        """JOB.SIGNAL by ids: a word for each."""
        return [
            None if one is None else text(one)
            for one in self.call("SIGNAL", name, len(ids), *ids, **keywords)
        ]

    def depend(self, verb: str, id: Any, others: Iterable = (), **keywords: Any) -> str:
        """JOB.DEPEND ADD, REMOVE or CLEAR; returns the state of the job."""
        others = list(others)
        words = [len(others), *others] if others else []
        return text(
            self.client.execute_command("JOB.DEPEND", verb, self.key, id, *words, *options(**keywords))
        )

    def pause(self, **keywords: Any) -> Any:
        return self.call("PAUSE", **keywords)

    def resume(self, **keywords: Any) -> Any:
        return self.call("RESUME", **keywords)

    # Registered workers

    def worker(self, verb: str, name: Any, **keywords: Any) -> Any:
        """JOB.WORKER REGISTER (a dict), DEREGISTER, QUIET or RESUME."""
        reply = self.client.execute_command("JOB.WORKER", verb, self.key, name, *options(**keywords))
        return from_pairs(reply) if verb.upper() == "REGISTER" else reply

    def worker_page(self, **keywords: Any) -> tuple:
        """One page of JOB.WORKER LIST: (cursor, worker name to the rest of its row)."""
        cursor, rows = self.client.execute_command("JOB.WORKER", "LIST", self.key, *options(**keywords))
        rows = [record(one) for one in rows]
        return text(cursor), {text(row.pop("worker")): row for row in rows}

    def registered(self, **keywords: Any) -> dict:
        return self.worker_page(**keywords)[1]

    # Readers

    def get(self, id: Any, **keywords: Any) -> dict | None:
        return record(self.call("GET", id, **keywords))

    def mget(self, ids: Iterable, **keywords: Any) -> list:
        ids = list(ids)
        return records(self.call("MGET", len(ids), *ids, **keywords))

    def state(self, id: Any) -> str | None:
        """The state of a job; None when the board does not know it."""
        job = self.get(id, fields=["state"])
        return job and text(job["state"])

    def list(self, *, justid: bool = False, **keywords: Any) -> tuple:
        """One page: (cursor, records), or (cursor, ids) with `justid=True`."""
        cursor, found = self.call("LIST", justid=justid, **keywords)
        return text(cursor), found if justid else records(found)

    def list_all(self, **keywords: Any) -> list:
        """Every page from the beginning, in one list."""
        cursor, found = self.list(**keywords)
        while cursor != "0":
            cursor, more = self.list(**keywords, cursor=cursor)
            found = found + more
        return found

    def count(self, **keywords: Any) -> int:
        return self.call("COUNT", **keywords)

    def output(self, id: Any, **keywords: Any) -> dict | None:
        return from_pairs(self.call("OUTPUT", id, **keywords))

    def history(self, id: Any) -> list | None:
        reply = self.call("HISTORY", id)
        return None if reply is None else [from_pairs(one) for one in reply]

    def events(self, id: Any) -> list:
        """The words of a job's history, oldest first."""
        return [text(entry["event"]) for entry in self.history(id) or []]

    def rows(self, name: str, **keywords: Any) -> list[dict]:
        """All rows of a listing, page by page."""
        found, cursor = [], "0"
        while True:
            cursor, page = self.call(name, cursor=cursor, **keywords)
            found += map(from_pairs, page)
            if text(cursor) == "0":
                return found

    def queues(self) -> dict:
        """Queue name to its counts by state."""
        rows = self.rows("QUEUES")
        return {text(row.pop("queue")): row for row in rows}

    def groups(self, **keywords: Any) -> dict:
        """Queue and group to the rest of the row, page by page."""
        found, cursor = {}, "0"
        while True:
            cursor, rows = self.call("GROUPS", cursor=cursor, **keywords)
            for row in map(from_pairs, rows):
                found[text(row.pop("queue")), text(row.pop("group"))] = row
            if text(cursor) == "0":
                return found

    def limits(self, **keywords: Any) -> dict:
        """Name of a limit to the rest of its row, page by page."""
        found, cursor = {}, "0"
        while True:
            cursor, rows = self.call("LIMITS", cursor=cursor, **keywords)
            for row in map(from_pairs, rows):
                found[text(row.pop("limit"))] = row
            if text(cursor) == "0":
                return found

    def counts(self) -> dict:
        """Like `queues`, without what goes on by itself: ages, rates, lateness."""
        pace = {"oldest", "arrival-rate", "completion-rate", "drain", "lateness-p99", "lateness-max"}
        return {
            name: {field: value for field, value in row.items() if field not in pace}
            for name, row in self.queues().items()
        }

    def workers(self) -> dict:
        """Worker name to the rest of its row."""
        rows = self.rows("WORKERS")
        return {text(row.pop("worker")): row for row in rows}

    def kinds(self) -> dict:
        return {text(row["kind"]): row["jobs"] for row in self.rows("KINDS")}

    def tags(self, **keywords: Any) -> tuple:
        """One page: (cursor, tag to number of jobs)."""
        cursor, rows = self.call("TAGS", **keywords)
        return cursor, {row["tag"]: row["jobs"] for row in map(from_pairs, rows)}

    def info(self, *, digest: bool = False) -> dict | None:
        return from_pairs(self.call("INFO", digest=digest))

    def digest(self) -> Any:
        """Equal on two boards when their state is equal."""
        info = self.info(digest=True)
        return info and info["digest"]

    # Settings

    def settings(self, *names: Any, queue: Any = None, group: Any = None, limit: Any = None) -> dict:
        """Setting name to [value, source]."""
        scope = options(queue=queue, group=group, limit=limit)
        return from_pairs(self.client.execute_command("JOB.SETTINGS", "GET", self.key, *scope, *names))

    def set(self, queue: Any = None, group: Any = None, limit: Any = None, **values: Any) -> Any:
        """JOB.SETTINGS SET; `_` stands for a dash: `set(retain_complete=1000, queue="mail")`; a list
        has its length before it: `set(limits=["api"], queue="mail")`.
        """
        words: list = []
        for name, value in values.items():
            words += [name.replace("_", "-"), *([len(value), *value] if isinstance(value, list) else [value])]
        scope = options(queue=queue, group=group, limit=limit)
        return self.client.execute_command("JOB.SETTINGS", "SET", self.key, *scope, *words)

    def reset(self, *names: Any, queue: Any = None, group: Any = None, limit: Any = None) -> Any:
        scope = options(queue=queue, group=group, limit=limit)
        return self.client.execute_command("JOB.SETTINGS", "RESET", self.key, *scope, *names)


def _ids_or_all(ids: Iterable | str) -> list:
    if isinstance(ids, str) and ids.upper() == "ALL":
        return [ids]
    ids = list(ids)
    return [len(ids), *ids]


def _selection(reply: Any) -> Any:
    count, cursor, unknown, *handed = reply
    if handed:
        return Returned(count, text(cursor), unknown, records(handed[0]))
    return Selection(count, text(cursor), unknown)
