"""What the server answers to verbs of workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .. import replies
from ..codecs import Codec
from ..errors import Refused
from ..jobs import Job, Signal


class Beat(NamedTuple):
    """The answer to a heartbeat: by when to speak again (Unix ms), and whether somebody asked to cancel."""

    deadline: int
    cancel: bool


class Stored(NamedTuple):
    """The answer to a step: as that to a heartbeat, and the value that counts. `deadline` 0: the worker has
    lost the job.
    """

    deadline: int
    cancel: bool
    value: Any


class Waited(NamedTuple):
    """The answer to a wait for signals, children, or both. `state` is `claimed` while the worker keeps its
    job: then `signals` has what it waited for, or `timeout` says that its time was over. After a wait for
    children `children`, `pending` and `unsuccessful` say how many there are, have not ended, ended without
    success.
    """

    state: str
    timeout: bool = False
    signals: dict[str, Signal] = {}
    deadline: int | None = None
    cancel: bool = False
    children: int | None = None
    pending: int | None = None
    unsuccessful: int | None = None


class HeldBeat(NamedTuple):
    """The same of one of all jobs that a worker holds."""

    id: str
    token: int
    deadline: int
    cancel: bool


class Failure(NamedTuple):
    """What became of a job whose try failed: its state, when it is due, how many retries are left, the
    dead queue to which it has moved, and how many bytes of the message were too many and are cut off.
    """

    state: str
    due: int | None
    left: int
    dead: str | None = None
    cut: int = 0


def failure(reply: Any) -> Failure:
    found = replies.mapping()(reply)
    dead = found.get("dead")
    cut = found.get("cut", 0)
    return Failure(found["state"], found.get("due"), found["left"], dead and replies.text(dead), cut)


def waited(codec: Codec) -> Callable[[Any], Waited]:
    """What makes the reply of JOB.AWAIT a `Waited`."""

    def parse(reply: Any) -> Waited:
        found = dict(replies.pairs(reply))
        state = replies.text(found[b"state"])
        if b"signals" not in found:
            return Waited(state)
        signals = Job({}, codec)._signals(found[b"signals"])
        sums = [found.get(name) for name in (b"children", b"pending", b"unsuccessful")]
        timeout, cancel = bool(found[b"timeout"]), bool(found[b"cancel"])
        return Waited(state, timeout, signals, found[b"deadline"], cancel, *sums)

    return parse


def beat(reply: Any) -> Beat | Refused:
    if not replies.is_map(reply, b"deadline"):
        return Refused(replies.text(reply[0]), replies.text(reply[1]))
    found = dict(replies.pairs(reply))
    return Beat(found[b"deadline"], bool(found[b"cancel"]))


def held_beat(reply: Any) -> HeldBeat:
    found = replies.mapping()(reply)
    return HeldBeat(found["id"], found["token"], found["deadline"], bool(found["cancel"]))


def kept_beat(reply: Any) -> Beat:
    found = beat(reply)
    if isinstance(found, Refused):
        raise found.error()
    return found


def ids_of(reply: Any) -> list[str]:
    """The ids of an M-form with ALL, whose replies are pairs of an id and its reply."""
    return [replies.text(pair[0]) for pair in reply or ()]
