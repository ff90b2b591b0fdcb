"""Copies a board from one server to another, by reading records and posting them.

Redis and Valkey do not read each other's files, so `DUMP`, replication and snapshots do not lead from one to
the other; records do.

While it copies, both boards are paused: nothing of the source ends meanwhile, and nothing of the target is
done before all is there. So a copy that is killed at any moment and called again doubles nothing: what is in
the target already is known by its id. A note on each board, the registration of a worker `jobboard-copy`,
tells the next call how far this one came. At the end the target resumes, and the source stays paused. Called
again later, it copies only what was posted since.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import redis

from ..arguments import encoded
from ..board import Board
from ..connecting import explained_of
from ..durations import of_ms
from ..errors import CannotDo, translated
from ..jobs import Job
from ..outcomes import allowed_kind
from ..replies import text

NOTE = "jobboard-copy"
SLICE = 500
LIVE = ("ready", "scheduled", "blocked")
ASIDE = ("failed", "trashed")
DONE = "done"
"""The phases of a copy, as the target's note has them: `failed`, `ready`, `done`."""

AGAIN = 3000
"""Bytes of the ids that were refused, as the source's note has them."""

KEPT = 3650 * 86_400_000
"""How long the notes stay, ms."""

SET_ASIDE = """
local reply = redis.pcall(unpack(ARGV, 4, 3 + tonumber(ARGV[3])))
if type(reply) == 'table' and reply.err then return reply.err end
local id, at = ARGV[2], 4 + tonumber(ARGV[3])
for _, last in ipairs({{'JOB.CLAIM', KEYS[1], ARGV[1], 'ID', id}, {unpack(ARGV, at)}}) do
  reply = redis.pcall(unpack(last))
  if type(reply) == 'table' and reply.err then
    redis.call('JOB.DELETE', KEYS[1], 1, id)
    return reply.err
  end
end
return 'OK'
"""
"""Posts a job, claims it and fails or trashes it, in one step; deletes it again when that is refused."""


class Busy(ValueError):
    """Jobs of the source are claimed."""


@dataclass
class Copied:
    """What was copied, what was there already, and what could not be, by id with the reason."""

    jobs: int = 0
    there: int = 0
    schedules: int = 0
    settings: int = 0
    later: int = 0
    """Jobs that were posted to the source meanwhile, for the next call."""
    refused: dict[str, str] = field(default_factory=dict)
    unfinished: bool = False
    """So many were refused that the target stays paused, until the next call has copied them."""

    def add(self, other: Copied) -> None:
        """What another shard's copy has done belongs to it."""
        for name in ("jobs", "there", "schedules", "settings", "later"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.refused |= other.refused
        self.unfinished = self.unfinished or other.unfinished


class Copy:
    """Both boards have the codec `raw`. `running`: claimed jobs as well, as ready ones; only when no worker
    is at them any more.
    """

    def __init__(
        self,
        source: Board,
        target: Board,
        *,
        running: bool = False,
        told: Callable[[int], None] = lambda n: None,
    ) -> None:
        self.source, self.target, self.running, self.told = source, target, running, told
        self.client: Any = target.client
        self.done = Copied()
        self.phase, self.copy, self.since, self.until = DONE, "", 0, 0
        self.again: frozenset[str] = frozenset()
        """Ids that the last call could not copy."""

    def run(self) -> Copied:
        """Copies all that is to be copied. Raises `Busy` when jobs are claimed; then the source is paused."""
        self.prepare()
        return self.carry()

    def check(self) -> None:
        """Raises ValueError, before anything has changed, where a copy cannot lead."""
        source, target = _server(self.source), _server(self.target)
        if source == target and text(self.source.key) == text(self.target.key):
            raise ValueError(
                "source and target are the same board: name another one after the source, "
                "or another server in --to"
            )
        if target.is_replica:
            raise CannotDo("the target is a replica, which takes no writes: name its primary in --to")

    def prepare(self) -> None:
        """Pauses the source, and sees what there is to do."""
        self.check()
        note, there = self._note(self.source), self._note(self.target)
        same = there.get("copy") is not None and there.get("copy") == note.get("copy")
        self.phase = there.get("phase", DONE) if same else DONE
        if not same and there.get("phase", DONE) != DONE:
            raise CannotDo("another copy to this board was broken off: call that again first")
        self.copy, self.since = (note["copy"], int(note["since"])) if same else (secrets.token_hex(8), 0)
        self.again = frozenset(json.loads(note.get("again") or "[]") if same else ())
        self.source.pause()
        self.until = self._now({"copy": self.copy, "since": self.since})
        if not self.running and (claimed := self.source.count(state="claimed")):
            raise Busy(
                f"{claimed} jobs are claimed. The source is paused now: wait until their workers have ended "
                "them, and call this again; or say --running when no worker is at them any more"
            )

    def carry(self) -> Copied:
        """Copies."""
        if self.phase == DONE:
            begun = {"copy": self.copy, "phase": ASIDE[0], "paused": ""}
            self.target.worker_register(NOTE, role="copy", meta=begun)
        if self.phase != LIVE[0]:
            self._settings()
            for job in self._jobs(ASIDE):
                self._set_aside(job)
            if not self._note(self.target).get("paused"):
                paused = bool((self.target.info() or {}).get("paused"))
                self.target.worker_register(NOTE, meta={"paused": int(paused)})
            self.target.pause()
            self.target.worker_register(NOTE, meta={"phase": LIVE[0]})
        self._live()
        self._schedules()
        if not self._note_done():
            self.done.unfinished = True
            self.target.worker_register(NOTE, meta={"phase": ASIDE[0]})
            return self.done
        if self._note(self.target).get("paused") != "1":
            self.target.resume()
        self.target.worker_register(NOTE, meta={"phase": DONE})
        return self.done

    def _now(self, meta: Mapping[str, Any]) -> int:
        """Notes on the source what copy this is, and returns the time there, Unix ms: one after which nothing
        was posted before this call.
        """
        times: set[int] = set()
        while len(times) < 2:
            found = self.source.worker_register(NOTE, role="copy", meta=meta, for_=of_ms(KEPT))
            times.add(found.expires - KEPT)
        return max(times)

    def _note_done(self) -> bool:
        """Notes on the source how far this call came, and what it could not copy; false when that is too
        much.
        """
        refused = json.dumps([*self.done.refused])
        if len(refused) > AGAIN:
            return False
        try:
            self.source.worker_register(NOTE, meta={"since": self.until, "again": refused})
        except redis.ResponseError:  # max-text of the server is smaller
            if not self.done.refused:
                raise
            return False
        return True

    # Jobs

    def _jobs(self, states: Any) -> Iterator[Job]:
        """Those that were posted before this copy began, and after the last one did, or which that one could
        not copy.
        """
        for job in self.source.list(page=SLICE, state=list(states)):
            if job.posted >= self.until:
                self.done.later += 1
            elif job.posted >= self.since or job.id in self.again:
                yield job

    def _live(self) -> None:
        """Parents first, without what they wait for; then that, since a parent may wait for its children."""
        states = [*LIVE, *(["claimed"] if self.running else [])]
        waiting: list[tuple[str, list[str]]] = []
        parents: list[tuple[str, Any]] = []
        later: dict[str, list[Job]] = {}
        slice: list[Job] = []
        for job in self._jobs(states):
            if job.after:
                waiting.append((job.id, job.after))
            if job.awaits is not None and job.awaits.children is not None:
                parents.append((job.id, job.awaits.children.onfailure))
            if job.parent is not None:
                later.setdefault(job.parent, []).append(job)
                continue
            slice.append(job)
            if len(slice) == SLICE:
                self._post(slice)
                slice = []
        self._post(slice)
        while later:  # a generation at a time
            next_ones = [job for id, jobs in later.items() if id not in _ids(later) for job in jobs]
            if not next_ones:
                break
            later = {id: jobs for id, jobs in later.items() if id in _ids(later)}
            for start in range(0, len(next_ones), SLICE):
                self._post(next_ones[start : start + SLICE])
        for id, after in waiting:
            self._wait(id, after)
        for id, onfailure in parents:
            try:
                self.target.depend_add(id, children=True, onfailure=onfailure)
            except redis.ResponseError as error:
                self.done.refused[id] = f"it does not wait for its children: {error}"

    def _post(self, jobs: list[Job]) -> None:
        if not jobs:
            return
        pipe: Any = self.client.pipeline(transaction=False)
        for job in jobs:
            pipe.execute_command(
                *encoded(["JOB.POST", self.target.key, *words(job), "NX"]), NEVER_DECODE=True
            )
            if job.tracked:
                update = ["JOB.UPDATE", self.target.key, 1, job.id, "SET", "TRACK"]
                pipe.execute_command(*encoded(update), NEVER_DECODE=True)
        found = iter(pipe.execute(raise_on_error=False))
        there = []
        for job in jobs:
            if not self._count(job, next(found)):
                there.append(job)
            if job.tracked:
                next(found)
        self._compare(there)

    def _count(self, job: Job, reply: Any) -> bool:
        """False when the target has a job of this id."""
        if isinstance(reply, redis.ResponseError):
            reply = self._again(job, reply)
        if isinstance(reply, redis.ResponseError):
            self.done.refused[job.id] = str(translated(reply))
        elif reply is not None:
            self.done.jobs += 1
            self.told(self.done.jobs)
        return reply is not None

    def _compare(self, jobs: list[Job]) -> None:
        """Counts jobs whose ids the target has: as there, or as refused when it is another job there."""
        if not jobs:
            return
        found = self.target.get_many([job.id for job in jobs], fields=["name", "payload"])
        for job, other in zip(jobs, found):
            if other is None or (_payload(other), other.name) == (_payload(job), job.name):
                self.done.there += 1  # None: it was there, and has ended
            else:
                what = "payload" if other.name == job.name else "name"
                self.done.refused[job.id] = f"the target has another job of this id, with another {what}"

    def _again(self, job: Job, refusal: redis.ResponseError) -> Any:
        """Posts a job without what the source has let go of, which records do not tell: a key that is free
        again, a parent that has ended.
        """
        code = str(refusal).partition(" ")[0]
        without = {"EXISTS": "unique", "NOJOB": "parent", "ENDED": "parent"}.get(code)
        if without is None or getattr(job, without) is None:
            return refusal
        command = encoded(["JOB.POST", self.target.key, *words(job, without), "NX"])
        try:
            return self.client.execute_command(*command, NEVER_DECODE=True)
        except redis.ResponseError as error:
            return error

    def _wait(self, id: str, after: list[str]) -> None:
        """Lets a job of the target wait for what that of the source waits for."""
        kinds = self._onfailure(id)
        for onfailure in ("hold", "cancel", "fail", "run"):
            others = [one for one in after if kinds.get(one, "hold") == onfailure]
            if others:
                try:
                    self.target.depend_add(id, *others, onfailure=onfailure)
                except redis.ResponseError as error:
                    self.done.refused[id] = f"it does not wait for {' '.join(others)}: {error}"

    def _onfailure(self, id: str) -> dict[str, str]:
        """What becomes of it when another fails: JOB.EXPLAIN knows that of the first 100."""
        found = self.source.explain(id) or {"reasons": []}
        rows = [row for reason in found["reasons"] for row in reason.get("jobs", [])]
        return {row["id"]: row["onfailure"] for row in rows}

    def _set_aside(self, job: Job) -> None:
        post = ["JOB.POST", self.target.key, *words(job)]
        if job.state == "failed":
            last = [
                "JOB.FAIL",
                self.target.key,
                NOTE,
                job.id,
                allowed_kind(job.kind or "failed"),
                job.message or "",
                "NORETRY",
            ]
        else:
            last = [
                "JOB.TRASH",
                self.target.key,
                NOTE,
                job.id,
                *(["REASON", job.reason] if job.reason else []),
            ]
        command = ["EVAL", SET_ASIDE, 1, self.target.key, NOTE, job.id, len(post), *post, *last]
        reply: Any = self.client.execute_command(*encoded(command), NEVER_DECODE=True)
        said = reply.decode()
        if said.startswith("EXISTS"):
            self._compare([job])
        elif said != "OK":
            self.done.refused[job.id] = said
        else:
            self.done.jobs += 1
            self.told(self.done.jobs)

    # The rest

    def _settings(self) -> None:
        """Those of the board, of its queues, and of its shared limits."""
        queues = [row["queue"] for row in self.source.queues()]
        limits = [row["limit"] for row in self.source.limits()]
        # Limits first: queues name them.
        scopes: list[dict[str, Any]] = [{"limit": one} for one in limits]
        scopes += [{}, *({"queue": one} for one in queues)]
        for scope in scopes:
            level = next(iter(scope), "board")
            found = {
                name: one.value
                for name, one in self.source.settings_get(**scope).items()
                if one.source == level
            }
            own: list[Any] = [part for name, value in scope.items() for part in (name.upper(), value)]
            for name, value in found.items():
                listed = [len(value), *value] if isinstance(value, list) else [value]
                sent = ["JOB.SETTINGS", "SET", self.target.key, *own, name, *listed]
                self.client.execute_command(*encoded(sent))
                self.done.settings += 1

    def _schedules(self) -> None:
        for row in self.source.schedule_list():
            if row["state"] == "over" or self.target.schedule_get(row["id"]) is not None:
                continue
            sent = ["JOB.SCHEDULE", "SET", self.target.key, row["id"], *schedule_words(row)]
            try:
                self.client.execute_command(*encoded(sent))
                if row["state"] == "paused":
                    self.target.schedule_pause(row["id"])
            except redis.ResponseError as error:
                self.done.refused[row["id"]] = str(error)
            else:
                self.done.schedules += 1

    def _note(self, board: Board) -> Mapping[str, str]:
        return next(
            (row.get("meta", {}) for row in board.worker_list(role="copy") if row["worker"] == NOTE), {}
        )


class Server(NamedTuple):
    """What tells the databases of servers apart, at whatever address."""

    run_id: str
    db: int
    is_replica: bool


def _server(board: Board) -> Server:
    """That of a board; of a cluster the node that has it."""
    client: Any = board.client
    if isinstance(board.client, redis.RedisCluster):
        options = {"target_nodes": client.get_node_from_key(board.key)}
        db = 0
    else:
        options, db = {}, int(client.connection_pool.connection_kwargs.get("db") or 0)
    try:
        found = client.info("server", **options)["run_id"]
        return Server(found, db, client.info("replication", **options)["role"] != "master")
    except redis.ConnectionError as error:
        raise explained_of(error, client) from None


def _payload(job: Job) -> bytes:
    found: bytes = job._raw.get(b"payload", b"")
    return found


def words(job: Job, without: str = "") -> list[Any]:
    """The payload and the options of a post that makes such a job."""
    found: list[Any] = [_payload(job), "ID", job.id, "RETRIES", job.left, "QUEUE", job.queue]
    for name in ("name", "group", "user", "cost"):
        if getattr(job, name) is not None:
            found += [name.upper(), getattr(job, name)]
    if job.priority:
        found += ["PRIORITY", job.priority]
    if job.due is not None and job.due > 0 and job.state in ("scheduled", "blocked"):
        found += ["AT", job.due]
    meta: Any = job.meta or {}
    if meta:
        found += ["META", len(meta), *(part for pair in meta.items() for part in pair)]
    if job.costs:
        found += ["COSTS", len(job.costs), *(part for pair in job.costs.items() for part in pair)]
    if job.tags:
        found += ["TAGS", len(job.tags), *job.tags]
    if job.parent is not None and without != "parent" and job.state not in ASIDE:
        found += ["PARENT", job.parent, "SHARE", job.share or 1]
    if job.unique is not None and without != "unique" and job.state not in ASIDE:
        found += ["UNIQUE", job.unique]
    return found


NO_WORDS = frozenset(
    "id state fired refused last intended next due payload parent share backoff-base backoff-max await any "
    "within ontimeout meta costs tags".split()
)
"""The fields of a schedule that are no option of one word; the others are called as their options."""


def schedule_words(row: Mapping[str, Any]) -> list[Any]:
    found: list[Any] = [row["payload"]]
    for name, value in row.items():
        if name not in NO_WORDS and value is not None:
            found += [name.upper(), value]
    if "backoff-base" in row:
        found += ["BACKOFF", "EXPONENTIAL", row["backoff-base"], row["backoff-max"]]
    for name, width in (("meta", 2), ("costs", 2), ("tags", 1)):
        values: Any = row.get(name) or {}
        if values:
            flat = [part for pair in values.items() for part in pair] if width == 2 else list(values)
            found += [name.upper(), len(flat) // width, *flat]
    return found


def _ids(later: Mapping[str, list[Job]]) -> set[str]:
    return {job.id for jobs in later.values() for job in jobs}
