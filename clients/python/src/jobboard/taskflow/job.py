"""Jobs of TaskFlow on a board of the module."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from oslo_utils import timeutils
from taskflow import states
from taskflow.jobs import base
from taskflow.utils import redis_utils

from . import postings
from .replies import pairs, text

if TYPE_CHECKING:
    from .board import JobBoard

FIELDS = ("id", "seq", "name", "payload", "priority", "posted", "meta")
"""What of a record makes a job."""

STATES = {
    "scheduled": states.UNCLAIMED,
    "blocked": states.UNCLAIMED,
    "ready": states.UNCLAIMED,
    "claimed": states.CLAIMED,
}
"""Every other state has ended: the job is on the board no more."""


def moment(milliseconds: int) -> datetime.datetime:
    """A time of the server, UTC without a zone as elsewhere in TaskFlow."""
    found = datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.timezone.utc)
    return found.replace(tzinfo=None)


class Job(base.Job):
    """A job of a `JobBoard`. Two are equal when they stand for the same job of the same board."""

    _board: JobBoard

    def __init__(
        self,
        board: JobBoard,
        name: str,
        priority: base.JobPriority = base.JobPriority.NORMAL,
        created_on: datetime.datetime | None = None,
        **known: Any,
    ) -> None:
        super().__init__(board, name, **known)
        self._priority = priority
        self._created_on = created_on
        self._made = timeutils.utcnow()

    @classmethod
    def of(cls, board: JobBoard, record: dict[str, Any], backend: Any) -> Job:
        """The job of a record with FIELDS. Raises ValueError when its payload holds no details."""
        meta = {text(name): text(value) for name, value in pairs(record.get("meta") or {}).items()}
        return cls(
            board,
            text(record.get("name", "")),
            priority=postings.named(record["priority"]),
            created_on=moment(record["posted"]),
            uuid=text(record["id"]),
            details=postings.unpack(record["payload"]),
            backend=backend,
            book_data=postings.book_data(meta),
        )

    @property
    def priority(self) -> base.JobPriority:
        return self._priority

    @property
    def created_on(self) -> datetime.datetime:
        """When it was posted, by the server's clock. Of a job that this process has posted and that has gone
        before it was asked for: by the clock of this process."""
        if self._created_on is None:
            posted = self._look("posted").get("posted")
            self._created_on = self._made if posted is None else moment(posted)
        return self._created_on

    @property
    def last_modified(self) -> datetime.datetime | None:
        """When it last changed, by the server's clock; None when it has gone."""
        modified = self._look("modified").get("modified")
        return None if modified is None else moment(modified)

    @property
    def state(self) -> str:
        """UNCLAIMED, CLAIMED, or COMPLETE when it is on the board no more, in whatever way it ended."""
        return STATES.get(text(self._look("state").get("state")), states.COMPLETE)

    def wait(
        self,
        timeout: float | None = None,
        delay: float = 0.01,
        delay_multiplier: float = 2.0,
        max_delay: float = 60.0,
        sleep_func: Callable[[float], None] = time.sleep,
    ) -> bool:
        """Waits until the job has ended: True, or False when `timeout` seconds have passed before.

        The server tells; nothing is polled, and the delays of the other boards have no part in it."""
        return self._board.wait_for("JOBS", 1, self.uuid, "FIELDS", 1, "state", timeout=timeout)

    def expires_in(self) -> float:
        """Seconds until the claim ends unless it is extended; DOES_NOT_EXPIRE for one that lives as long as
        its process, KEY_NOT_FOUND when nobody holds the job (both of `taskflow.utils.redis_utils`)."""
        found = self._look("worker", "deadline", "session")
        if "worker" not in found:
            return redis_utils.KEY_NOT_FOUND
        if "session" in found and not self._board.extended(self):
            return redis_utils.DOES_NOT_EXPIRE
        return max(found["deadline"] / 1000 - self._board.time(), 0.0)

    def extend_expiry(self, expiry: float) -> bool:
        """Lets the claim end in `expiry` seconds; False when there is none. One that lived as long as its
        process has an expiry from then on."""
        return self._board.extend(self, expiry)

    def _look(self, *fields: str) -> dict[str, Any]:
        """These fields of the record; nothing when it has gone."""
        return self._board.look(self, *fields)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Job):
            return NotImplemented
        return (self.board.key, self.uuid) == (other.board.key, other.uuid)

    def __hash__(self) -> int:
        return hash((self.board.key, self.uuid))
