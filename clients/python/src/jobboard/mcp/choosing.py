"""Which jobs a tool is about, and what it changes: the shapes of its arguments."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ..board.filters import Filters

State = Literal["scheduled", "blocked", "ready", "claimed", "complete", "failed", "cancelled", "trashed"]
Texts = list[str] | None
Ago = Annotated[str | None, Field(pattern=r"^\d{1,12}(ms|s|m|h|d)$")]


class Which(BaseModel):
    """Jobs that pass every filter. A list names alternatives. A time is how long ago: `90s`, `2h`, `7d`."""

    model_config = ConfigDict(extra="forbid")

    state: list[State] | None = None
    queue: Texts = None
    name: Annotated[Texts, Field(description="What the jobs are called: which handler does them.")] = None
    kind: Annotated[Texts, Field(description="Of the failure, such as TimeoutError.")] = None
    message: Annotated[Texts, Field(description="A part of the failure's message.")] = None
    contains: Annotated[Texts, Field(description="A part of the payload, as it is stored.")] = None
    id: Annotated[Texts, Field(description="A whole id, or its beginning and `*`.")] = None
    user: Texts = None
    group: Texts = None
    tag: Texts = None
    worker: Texts = None
    parent: Texts = None
    awaits: Annotated[Texts, Field(description="A signal that they wait for.")] = None
    lapsed: Annotated[bool | None, Field(description="Their worker was lost.")] = None
    posted_within: Ago = None
    posted_before: Ago = None
    ended_within: Ago = None
    ended_before: Ago = None

    def filters(self) -> Filters:
        found: dict[str, Any] = self.model_dump(exclude_none=True)
        for what in ("posted", "ended"):
            span = (found.pop(f"{what}_within", None), found.pop(f"{what}_before", None))
            if span != (None, None):
                found[what] = span
        return {name: value for name, value in found.items() if value not in ([], False)}  # type: ignore[return-value]


class Changes(BaseModel):
    """What is set; a delay is written as `90s`, `2h`."""

    model_config = ConfigDict(extra="forbid")

    priority: int | None = None
    queue: str | None = None
    delay: str | None = None
    retries: int | None = None
    tag: Texts = None
    untag: Texts = None

    def changes(self) -> dict[str, Any]:
        found = self.model_dump(exclude_none=True)
        if not found:
            raise ValueError(f"changes names nothing: there are {', '.join(type(self).model_fields)}")
        return found
