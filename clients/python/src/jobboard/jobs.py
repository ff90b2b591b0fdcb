"""The record of a job."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, NamedTuple

from . import replies
from .codecs import Codec, Json

_JSON = Json()
ENDED = ("complete", "failed", "cancelled", "trashed")


def _float(value: Any) -> float:
    return float(value)


def _int(value: Any) -> int:
    return int(value)


def _flag(value: Any) -> bool:
    return bool(int(value))


def _texts(value: Any) -> list[str]:
    return [replies.text(one) for one in value]


class Origin(NamedTuple):
    """Where a dead job was: its queue, how often it had been claimed, and when it moved (Unix ms)."""

    queue: str
    attempts: int
    at: int


def _origin(value: Any) -> Origin:
    return Origin(**replies.mapping()(value))


class Spent(NamedTuple):
    """What a claim has cost so far, as its worker said: the permits of everything that is not named, and of
    single limits.
    """

    cost: int
    costs: dict[str, int] = {}


def _costs(value: Any) -> dict[str, int]:
    return {replies.text(limit): int(cost) for limit, cost in replies.pairs(value)}


def _spent(value: Any) -> Spent:
    found = {replies.text(name): one for name, one in replies.pairs(value)}
    return Spent(int(found["cost"]), _costs(found.get("costs") or {}))


FIELDS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(["id", "state", "queue", "name", "worker", "kind", "message", "stage"], replies.text),
    **dict.fromkeys(["previous", "reason", "user", "unique", "parent", "group"], replies.text),
    **dict.fromkeys(["seq", "priority", "attempt", "left", "token", "deadline", "posted", "due"], _int),
    **dict.fromkeys(["claimed", "ended", "modified", "version", "intended", "share", "children"], _int),
    **dict.fromkeys(["pending", "unsuccessful"], _int),
    **dict.fromkeys(["cost", "retries", "lapses", "until"], _int),
    **dict.fromkeys(["tracked", "session"], _flag),
    **dict.fromkeys(["after", "tags"], _texts),
    "progress": _float,
    "meta": replies.strings,
    "origin": _origin,
    "costs": _costs,
    "spent": _spent,
    "awaits": lambda value: _awaits(value),
    "history": lambda value: [replies.mapping()(entry) for entry in value],
}
"""The fields of a record but payload and result, and what makes them values."""


class StepValue(NamedTuple):
    """What a step came to, and when it was stored (Unix ms)."""

    value: Any
    at: int


class Signal(NamedTuple):
    """A signal that has arrived: what it says, when it came (Unix ms), and who sent it."""

    value: Any
    at: int
    sender: str | None


class AwaitsChildren(NamedTuple):
    """Since when a job waits for its children, and what becomes of it when one of them fails."""

    since: int
    onfailure: str


class Awaits(NamedTuple):
    """What a job waits for: the names of the signals, those that are missing, since when, whether one is
    enough, until when, and what happens then; and its children.
    """

    signals: list[str]
    missing: list[str]
    since: int | None
    any: bool = False
    until: int | None = None
    ontimeout: str | None = None
    children: AwaitsChildren | None = None


def _awaits(value: Any) -> Awaits:
    found = {replies.text(name): one for name, one in replies.pairs(value)}
    found.update({name: _texts(found.get(name) or []) for name in ("signals", "missing")})
    found.setdefault("since", None)
    found["any"] = bool(found.get("any"))
    if "ontimeout" in found:
        found["ontimeout"] = replies.text(found["ontimeout"])
    if "children" in found:
        found["children"] = AwaitsChildren(**replies.mapping()(found["children"]))
    return Awaits(**found)


class Job:
    """A record, or those of its fields that were asked for; the others are None.

    The fields are those of commands.md: times are Unix milliseconds. `payload` and `result` are decoded when
    they are read, and raise `PayloadError` when the codec does not understand them; `payload_bytes` and
    `result_bytes` are as the server has them.
    """

    id: str
    seq: int
    state: str
    queue: str
    name: str | None
    priority: int
    attempt: int
    left: int
    token: int
    worker: str | None
    deadline: int | None
    kind: str | None
    message: str | None
    stage: str | None
    progress: float | None
    posted: int
    due: int | None
    claimed: int | None
    ended: int | None
    modified: int
    version: int
    meta: dict[str, str] | None
    previous: str | None
    reason: str | None
    intended: int | None
    after: list[str] | None
    tags: list[str] | None
    tracked: bool | None
    user: str | None
    unique: str | None
    parent: str | None
    share: int | None
    children: int | None
    pending: int | None
    unsuccessful: int | None
    group: str | None
    cost: int | None
    session: bool | None
    origin: Origin | None
    awaits: Awaits | None
    costs: dict[str, int] | None
    spent: Spent | None
    retries: int
    lapses: int
    history: list[dict[str, Any]] | None
    until: int | None

    def __init__(self, raw: dict[bytes, Any], codec: Codec = _JSON) -> None:
        self._raw, self._codec = raw, codec

    def __getattr__(self, name: str) -> Any:
        parse = FIELDS.get(name)
        if parse is None:
            known = FIELDS.keys() | {"payload", "result", "steps", "payload_bytes", "result_bytes"}
            near = difflib.get_close_matches(name, known, 1)
            raise AttributeError(
                f"{type(self).__name__}: the record of a job has no field {name!r}"
                + (f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(sorted(known))}"),
                name=name,
                obj=self,
            )
        raw = self._raw.get(name.encode())
        value = None if raw is None else parse(raw)
        self.__dict__[name] = value
        return value

    @property
    def payload_bytes(self) -> bytes | None:
        return self._raw.get(b"payload")

    @property
    def result_bytes(self) -> bytes | None:
        return self._raw.get(b"result")

    @property
    def payload(self) -> Any:
        return None if self.payload_bytes is None else self._codec.decode(self.payload_bytes)

    @property
    def result(self) -> Any:
        return None if self.result_bytes is None else self._codec.decode(self.result_bytes)

    def _steps(self) -> dict[str, tuple[bytes, int]]:
        """Value and time of each step, as the server has them."""
        found: dict[str, tuple[bytes, int]] = {}
        for name, raw in replies.pairs(self._raw.get(b"steps") or []):
            step = dict(replies.pairs(raw))
            found[replies.text(name)] = (step[b"value"], step[b"at"])
        return found

    @property
    def steps(self) -> dict[str, StepValue] | None:
        """What the steps of its work came to; only when `fields` asked for `steps`."""
        if b"steps" not in self._raw:
            return None
        return {name: StepValue(self._shown(value), at) for name, (value, at) in self._steps().items()}

    @property
    def signals(self) -> dict[str, Signal] | None:
        """The signals that have arrived; only when `fields` asked for `signals`."""
        if b"signals" not in self._raw:
            return None
        return self._signals(self._raw[b"signals"])

    def _signals(self, reply: Any) -> dict[str, Signal]:
        """Signals by name, decoded; a value that the codec does not understand as text, none as None."""
        found = {}
        for name, raw in replies.pairs(reply):
            memo = dict(replies.pairs(raw))
            value, sender = memo[b"value"], memo.get(b"sender")
            shown = self._shown(value) if value else None
            found[replies.text(name)] = Signal(shown, memo[b"at"], sender and replies.text(sender))
        return found

    @property
    def is_ended(self) -> bool:
        return self.state in ENDED

    def as_dict(self) -> dict[str, Any]:
        """The fields that it has, decoded; what the codec does not understand as text."""
        found: dict[str, Any] = {}
        for key, raw in self._raw.items():
            name = key.decode()
            if name == "steps":
                found[name] = {step: value._asdict() for step, value in (self.steps or {}).items()}
            elif name == "signals":
                found[name] = {one: signal._asdict() for one, signal in (self.signals or {}).items()}
            else:
                found[name] = getattr(self, name) if name in FIELDS else self._shown(raw)
        return found

    def _shown(self, raw: bytes) -> Any:
        try:
            return self._codec.decode(raw)
        except ValueError:
            return replies.text(raw)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={found!r}" for name, found in self.as_dict().items())
        return f"Job({shown})"

    def __reduce__(self) -> Any:
        return (Job, (self._raw, self._codec))


def reader(codec: Codec) -> Callable[[Any], Job]:
    """What makes a record's reply a `Job`."""

    def parse(reply: Any) -> Job:
        reply = replies.unpacked(reply)
        return Job(reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2])), codec)

    return parse
