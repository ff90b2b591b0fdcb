"""The tools that change nothing."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
from collections.abc import Callable
from typing import Annotated, Any, Literal

import redis
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from ..board import Board
from ..errors import coded, explained, translated
from ..replies import text
from .choosing import Changes, Which
from .framing import LONGEST, framed

TYPE = "jobboard1"
"""What TYPE says of a board."""
FIELDS = "id state queue name priority attempt posted due claimed ended worker kind message progress".split()
"""Of the jobs of a search."""
SHORT = 300
"""Characters of a text in a row of many."""
ROWS = 50
BOARDS = 1000

Action = Literal["requeue", "cancel", "release", "delete", "update", "signal"]
Rows = Annotated[int, Field(ge=1, le=ROWS, description="At most this many jobs.")]


def tool(longest: int = LONGEST) -> Callable[[Callable[..., Any]], Callable[..., str]]:
    """A method whose value, or the server's refusal, is shown as data."""

    def decorate(method: Callable[..., Any]) -> Callable[..., str]:
        @functools.wraps(method)
        def run(*arguments: Any, **named: Any) -> str:
            try:
                return framed(method(*arguments, **named), longest)
            except (redis.RedisError, redis.exceptions.RedisClusterException, ValueError) as error:
                if isinstance(error, redis.ConnectionError):
                    explained(error)
                raise ToolError(framed({"refused": coded(translated(error))}, SHORT)) from error

        signature = inspect.signature(method, eval_str=True)
        run.__signature__ = signature.replace(return_annotation=str)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in signature.parameters.values()}
        run.__annotations__["return"] = str
        return run

    return decorate


class Reading:
    """Tools over the boards of one server: all that its user may see, or those that are named."""

    def __init__(self, client: Any, boards: frozenset[str], payloads: bool) -> None:
        self.client, self.only, self.payloads = client, boards, payloads

    def open(self, name: str) -> Board:
        if self.only and name not in self.only:
            raise ValueError(f"this server was started for the boards {', '.join(sorted(self.only))} alone")
        return Board(name, self.client, codec="raw")

    @tool(SHORT)
    def boards(self) -> Any:
        """The job boards of the server, with their jobs by state."""
        keys = self.only or map(text, itertools.islice(self.client.scan_iter(_type=TYPE, count=1000), BOARDS))
        rows: list[dict[str, Any]] = []
        for key in sorted(keys):
            try:
                info: dict[str, Any] = dict(Board(key, self.client).info() or {"jobs": 0})
                if "next" in info:  # no time, as that of a schedule is
                    info["ms_to_next_deadline"] = info.pop("next")
                rows.append({"board": key, **info})
            except redis.ResponseError as error:
                rows.append({"board": key, "refused": coded(translated(error))})
        if not rows:
            with contextlib.suppress(redis.exceptions.NoPermissionError):
                Board("jobboard", self.client).info()  # raises NoModule
        return rows

    @tool(SHORT)
    def queues(self, board: str) -> Any:
        """The queues of a board: jobs by state, age of the oldest, rates of arrival and completion (jobs a
        second), pauses and limits."""
        return self.open(board).queues()

    @tool(SHORT)
    def stats(
        self,
        board: str,
        queue: str | None = None,
        days_ago: Annotated[int, Field(ge=0, le=60)] = 0,
    ) -> Any:
        """What happened on a board, or in one queue, in a day (UTC): posts, ends, failures, and how long jobs
        waited and ran (milliseconds)."""
        return self.open(board).stats(queue=queue, day=days_ago)

    @tool(SHORT)
    def failures(self, board: str) -> Any:
        """How many failed jobs a board holds of each kind of failure."""
        return self.open(board).kinds()

    @tool(SHORT)
    def workers(self, board: str) -> Any:
        """The registered workers of a board, and those that hold jobs."""
        opened = self.open(board)
        registered = itertools.islice(opened.worker_list(), 100)
        return {"registered": list(registered), "holding": opened.workers()}

    @tool(SHORT)
    def schedules(self, board: str) -> Any:
        """The recurring jobs of a board."""
        rows = list(itertools.islice(self.open(board).schedule_list(), 100))
        return rows if self.payloads else [self._without(row) for row in rows]

    @tool(SHORT)
    def find(self, board: str, which: Which, count: Rows = 20, newest_first: bool = True) -> Any:
        """Jobs that pass filters, without payloads, and how many there are in all."""
        opened, filters = self.open(board), which.filters()
        if self._by_payload(filters):
            raise ValueError("contains: payloads are not shown here (--no-payloads)")
        jobs = opened.list(fields=FIELDS, rev=newest_first, page=count, **filters)
        found = [job.as_dict() for job in itertools.islice(jobs, count)]
        named = filters if filters else {"state": list(STATES)}
        return {"all": opened.count(**named), "jobs": found}

    @tool()
    def get(self, board: str, id: str) -> Any:
        """The record of one job, with payload, result, failure and metadata. Null: the board does not know
        it, or has dropped its record."""
        job = self.open(board).get(id)
        if job is None:
            return None
        record = job.as_dict()
        return record if self.payloads else self._without(record)

    @tool()
    def explain(self, board: str, id: str) -> Any:
        """Why a job is not running, or what it waits for, and what would change that. Numbers of 13 digits
        are Unix milliseconds."""
        return self.open(board).explain(id)

    @tool()
    def history(self, board: str, id: str) -> Any:
        """What happened to a job, the oldest first."""
        return self.open(board).history(id)

    @tool(SHORT)
    def dry_run(
        self,
        board: str,
        action: Action,
        which: Which,
        changes: Changes | None = None,
        signal: str | None = None,
        origin: bool = False,
    ) -> Any:
        """How many jobs an action on these filters would reach, and which it would hold back. It changes
        nothing. `changes` goes with update, `signal` (a name) with signal, `origin` with requeue."""
        would = self._where(board, action, which, changes, signal, origin=origin, dryrun=True)
        return {"would_reach": would.count, "held_back": would.held}

    def _where(
        self,
        board: str,
        action: str,
        which: Which,
        changes: Changes | None,
        signal: str | None,
        *,
        origin: bool = False,
        dryrun: bool = False,
        **options: Any,
    ) -> Any:
        opened: Any = self.open(board)
        filters = which.filters()
        if not filters:
            raise ValueError("which names no filter")
        if self._by_payload(filters):
            raise ValueError("contains: payloads are not shown here (--no-payloads)")
        words: list[Any] = [filters]
        if action == "update":
            if changes is None:
                raise ValueError("update needs changes")
            words.append(changes.changes())
        elif changes is not None:
            raise ValueError("changes goes with update alone")
        if action == "signal":
            if not signal:
                raise ValueError("signal needs the name of a signal")
            words.insert(0, signal)
        elif signal is not None:
            raise ValueError("signal goes with the action signal alone")
        if origin:
            if action != "requeue":
                raise ValueError("origin goes with requeue alone")
            options["origin"] = True
        return getattr(opened, f"{action}_where")(*words, dryrun=dryrun, **options)

    def _by_payload(self, filters: Any) -> bool:
        return not self.payloads and "contains" in filters

    def _without(self, record: dict[str, Any]) -> dict[str, Any]:
        hidden = ("payload", "result", "steps", "signals")
        return {name: value for name, value in record.items() if name not in hidden}


STATES = ("scheduled", "blocked", "ready", "claimed", "complete", "failed", "cancelled", "trashed")
