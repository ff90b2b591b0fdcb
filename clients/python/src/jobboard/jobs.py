"""The record of a job."""

from __future__ import annotations

from typing import Any, Callable, Optional

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


FIELDS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(["id", "state", "queue", "name", "worker", "kind", "message", "stage"], replies.text),
    **dict.fromkeys(["previous", "reason", "user", "unique", "parent", "group"], replies.text),
    **dict.fromkeys(["seq", "priority", "attempt", "left", "token", "deadline", "posted", "due"], _int),
    **dict.fromkeys(["claimed", "ended", "modified", "version", "intended", "share", "children"], _int),
    **dict.fromkeys(["cost"], _int),
    **dict.fromkeys(["tracked", "session"], _flag),
    **dict.fromkeys(["after", "tags"], _texts),
    "progress": _float,
    "meta": replies.strings,
}
"""The fields of a record but payload and result, and what makes them values."""


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
    name: Optional[str]
    priority: int
    attempt: int
    left: int
    token: int
    worker: Optional[str]
    deadline: Optional[int]
    kind: Optional[str]
    message: Optional[str]
    stage: Optional[str]
    progress: Optional[float]
    posted: int
    due: Optional[int]
    claimed: Optional[int]
    ended: Optional[int]
    modified: int
    version: int
    meta: Optional[dict[str, str]]
    previous: Optional[str]
    reason: Optional[str]
    intended: Optional[int]
    after: Optional[list[str]]
    tags: Optional[list[str]]
    tracked: Optional[bool]
    user: Optional[str]
    unique: Optional[str]
    parent: Optional[str]
    share: Optional[int]
    children: Optional[int]
    group: Optional[str]
    cost: Optional[int]
    session: Optional[bool]

    def __init__(self, raw: dict[bytes, Any], codec: Codec = _JSON) -> None:
        self._raw, self._codec = raw, codec

    def __getattr__(self, name: str) -> Any:
        parse = FIELDS.get(name)
        if parse is None:
            raise AttributeError(name)
        raw = self._raw.get(name.encode())
        value = None if raw is None else parse(raw)
        self.__dict__[name] = value
        return value

    @property
    def payload_bytes(self) -> Optional[bytes]:
        return self._raw.get(b"payload")

    @property
    def result_bytes(self) -> Optional[bytes]:
        return self._raw.get(b"result")

    @property
    def payload(self) -> Any:
        return None if self.payload_bytes is None else self._codec.decode(self.payload_bytes)

    @property
    def result(self) -> Any:
        return None if self.result_bytes is None else self._codec.decode(self.result_bytes)

    @property
    def is_ended(self) -> bool:
        return self.state in ENDED

    def as_dict(self) -> dict[str, Any]:
        """The fields that it has, decoded; what the codec does not understand as text."""
        found: dict[str, Any] = {}
        for key, raw in self._raw.items():
            name = key.decode()
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
        return Job(reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2])), codec)

    return parse
