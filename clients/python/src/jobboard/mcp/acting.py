"""The tools that act, which `--write` adds. Each writes two lines of the audit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, Field

from ..board import Board
from ..codecs import Json
from .audit import Audit
from .choosing import Changes, Which
from .reading import SHORT, Reading, tool

SENDER = "jobboard mcp"
JSON = Json()
"""What payloads and values become bytes by: as workers read them by default."""

Ids = Annotated[list[str] | None, Field(max_length=1000, description="These jobs; or give `which`.")]
Some = Annotated[Which | None, Field(description="All jobs that pass these filters; `expect` goes with it.")]
Expect = Annotated[
    int | None, Field(ge=0, description="What dry_run said: with more than these, nothing is done.")
]


class Acting(Reading):
    def __init__(self, client: Any, boards: frozenset[str], payloads: bool, audit: Audit) -> None:
        super().__init__(client, boards, payloads)
        self.audit = audit

    @tool(SHORT)
    def requeue(
        self,
        board: str,
        ids: Ids = None,
        which: Some = None,
        expect: Expect = None,
        origin: bool = False,
        fresh: bool = False,
    ) -> Any:
        """Makes failed, trashed and cancelled jobs ready again. With `origin` dead jobs too, each in the
        queue in which it failed. With `fresh` they forget their steps and do all work again."""
        options = {"origin": origin, "fresh": fresh}
        return self._act("requeue", board, ids, which, expect, options)

    @tool(SHORT)
    def cancel(
        self,
        board: str,
        ids: Ids = None,
        which: Some = None,
        expect: Expect = None,
        force: bool = False,
    ) -> Any:
        """Cancels jobs. The worker of a running one is asked to stop; with `force` it loses the job."""
        return self._act("cancel", board, ids, which, expect, {"force": force})

    @tool(SHORT)
    def release(self, board: str, ids: Ids = None, which: Some = None, expect: Expect = None) -> Any:
        """Takes claimed jobs from their workers; they are ready again."""
        return self._act("release", board, ids, which, expect, {})

    @tool(SHORT)
    def delete(self, board: str, ids: Ids = None, which: Some = None, expect: Expect = None) -> Any:
        """Forgets jobs in any state, for good. Prefer cancel: its record stays for a while."""
        return self._act("delete", board, ids, which, expect, {})

    @tool(SHORT)
    def update(
        self,
        board: str,
        changes: Changes,
        ids: Ids = None,
        which: Some = None,
        expect: Expect = None,
    ) -> Any:
        """Changes jobs that have not ended; of those that have, only their tags."""
        return self._act("update", board, ids, which, expect, {}, changes=changes)

    @tool(SHORT)
    def signal(
        self,
        board: str,
        name: str,
        ids: Ids = None,
        which: Some = None,
        expect: Expect = None,
        value: Annotated[Any, Field(description='Such as {"approved": true}.')] = None,
    ) -> Any:
        """Sends a signal to jobs: those that wait for it go on. The first signal of a name counts."""
        options = {"value": None if value is None else JSON.encode(value), "sender": SENDER}
        return self._act("signal", board, ids, which, expect, options, signal=name)

    @tool(SHORT)
    def pause(
        self,
        board: str,
        queue: str | None = None,
        group: str | None = None,
        how_long: Annotated[str | None, Field(description="Such as `10m`; until resume without it.")] = None,
    ) -> Any:
        """Lets nothing be claimed from a board, a queue, or a group of it. What runs goes on."""
        scope = {"queue": queue, "group": group}
        return self._do(
            "pause", board, {**scope, "for_": how_long}, lambda opened, said: opened.pause(**said)
        )

    @tool(SHORT)
    def resume(self, board: str, queue: str | None = None, group: str | None = None) -> Any:
        """Ends a pause."""
        said = {"queue": queue, "group": group}
        return self._do("resume", board, said, lambda opened, said: opened.resume(**said))

    @tool(SHORT)
    def post(
        self,
        board: str,
        payload: Annotated[Any, Field(description='Such as {"to": "ann"}.')],
        name: str | None = None,
        queue: str | None = None,
        priority: int | None = None,
        delay: Annotated[str | None, Field(description="Such as `10m`.")] = None,
        id: str | None = None,
    ) -> Any:
        """Posts a job. Give an id: a post that is sent again makes no second job then."""
        data = JSON.encode(payload)
        options = {"name": name, "queue": queue, "priority": priority, "delay": delay, "id": id}

        def act(opened: Any, said: dict[str, Any]) -> dict[str, Any]:
            return {"id": opened.post(**said)}

        return self._do("post", board, {"payload": data, **options}, act)

    @tool(SHORT)
    def run_schedule(self, board: str, id: str) -> Any:
        """Posts a job of a schedule at once."""

        def act(opened: Any, said: dict[str, Any]) -> dict[str, Any]:
            return {"id": opened.schedule_run(said["id"])}

        return self._do("run_schedule", board, {"id": id}, act)

    @tool(SHORT)
    def pause_schedule(self, board: str, id: str) -> Any:
        """Lets a schedule post nothing."""
        return self._do(
            "pause_schedule", board, {"id": id}, lambda opened, said: opened.schedule_pause(said["id"])
        )

    @tool(SHORT)
    def resume_schedule(self, board: str, id: str) -> Any:
        """Lets a paused schedule post again, from its next time on."""
        return self._do(
            "resume_schedule", board, {"id": id}, lambda opened, said: opened.schedule_resume(said["id"])
        )

    def _act(
        self,
        action: str,
        board: str,
        ids: list[str] | None,
        which: Which | None,
        expect: int | None,
        options: dict[str, Any],
        *,
        changes: Changes | None = None,
        signal: str | None = None,
    ) -> Any:
        if (not ids) == (which is None):
            raise ValueError("give ids, or which with expect")
        if (which is None) != (expect is None):
            raise ValueError("which and expect go together: dry_run says what to expect")
        said = {"ids": ids, "which": which, "expect": expect, "changes": changes, "signal": signal, **options}

        def act(opened: Any, _: dict[str, Any]) -> dict[str, Any]:
            if which is None:
                more = {**options, **(changes.changes() if changes else {})}
                words = [*([signal] if signal else []), *(ids or [])]
                return _done(getattr(opened, action)(*words, **more), ids or [])
            origin = {"origin": True} if options.get("origin") else {}
            would = self._where(board, action, which, changes, signal, dryrun=True, **origin).count
            if would > (expect or 0):
                raise ValueError(
                    f"{would} jobs pass the filters now, {expect} were expected: nothing was done"
                )
            done = self._where(board, action, which, changes, signal, **options)
            return {"reached": done.count, "held_back": done.held}

        return self._do(action, board, said, act)

    def _do(
        self,
        action: str,
        board: str,
        said: dict[str, Any],
        act: Callable[[Board, dict[str, Any]], Any],
    ) -> Any:
        opened = self.open(board)
        noted = {name: _noted(value) for name, value in said.items() if value not in (None, False)}
        return self.audit.acted(
            action, {"board": board, **noted}, lambda: act(opened, said) or {"done": True}
        )


def _noted(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    return value.model_dump(exclude_none=True) if isinstance(value, BaseModel) else value


def _done(found: Any, ids: list[str]) -> dict[str, Any]:
    """What an action on ids came to: of some verbs a word for each, of others a count."""
    if isinstance(found, list):
        return {id: what or "unknown" for id, what in zip(ids, found)}
    return {"reached": found.count, "held_back": found.held}
