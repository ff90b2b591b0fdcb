"""Verbs of operators: cancel, release, requeue, delete, update; each by ids, or by filters slice by slice."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from .. import replies
from ..arguments import (
    Encoder,
    Name,
    check_flag,
    check_ids,
    encode_options,
    flag,
    names,
    pairs,
    plain,
    text,
    time,
)
from ..durations import Duration
from ..jobs import Job
from ..times import Time
from .family import Family, Slice, fields_words
from .filters import Filters, check_alternatives, filter_words
from .posting import OPTIONS
from .sending import Request, Steps, command, steps
from .sharding import by_id, by_id_near, by_ids, by_ids_summed, each_slices

if TYPE_CHECKING:
    from typing import Literal

    from typing_extensions import Unpack

Progress = Callable[[int], None]
"""Told after each slice how many jobs were done so far."""


class Changes(TypedDict, total=False):
    """What JOB.UPDATE sets."""

    priority: int | None
    queue: Name | None
    delay: Duration | None
    at: Time | None
    payload: Any
    retries: int | None
    lease: Duration | None
    meta: Mapping[str, Any] | None
    log: str | None
    progress: float | None
    tag: Sequence[Name] | None
    untag: Sequence[Name] | None
    unstep: Sequence[Name] | None
    track: bool | None
    untrack: bool | None


CHANGES: dict[str, tuple[str, Encoder]] = {
    **{one: OPTIONS[one] for one in "priority queue retries delay lease".split()},
    **{one: (one.upper(), names) for one in "tag untag unstep".split()},
    **{one: (one.upper(), flag) for one in "track untrack".split()},
    "payload": ("PAYLOAD", plain),
    "log": ("LOG", text),
    "progress": ("PROGRESS", plain),
    "at": ("AT", time),
    "meta": ("META", pairs),
}


class Operating(Family):
    @command(by_ids())
    def cancel(self, *ids: Name, by: Name | None = None, force: bool = False) -> Request[list[str | None]]:
        """Cancels jobs: for each `cancelled`, `requested` (its worker is told), `already`, or None
        (unknown).
        """
        check_ids(ids, "cancel")
        words = [len(ids), *ids, *_cancel(by, force)]
        return self._request("JOB.CANCEL", words, replies.list_of(replies.optional(replies.text)))

    @steps(each_slices)
    def cancel_where(
        self,
        where: Filters,
        *,
        by: Name | None = None,
        force: bool = False,
        dryrun: bool = False,
        count: int = 1000,
        progress: Progress | None = None,
    ) -> Steps[Slice[Job]]:
        """Cancels all jobs that pass the filters, `count` in a command; those that others wait for are
        held.
        """
        return (yield from self._slices("JOB.CANCEL", where, _cancel(by, force), dryrun, count, progress))

    @command(by_ids_summed)
    def release(self, *ids: Name, front: bool = False) -> Request[Slice[Job]]:
        """Takes claimed jobs from their workers, at no cost; with `front` they come first there."""
        check_ids(ids, "release")
        return self._request("JOB.RELEASE", [len(ids), *ids, *_front(front)], self._slice)

    @steps(each_slices)
    def release_where(
        self,
        where: Filters,
        *,
        front: bool = False,
        dryrun: bool = False,
        count: int = 1000,
        progress: Progress | None = None,
    ) -> Steps[Slice[Job]]:
        """Takes all claimed jobs that pass the filters from their workers."""
        return (yield from self._slices("JOB.RELEASE", where, _front(front), dryrun, count, progress))

    @command(by_ids_summed)
    def requeue(
        self,
        *ids: Name,
        queue: Name | None = None,
        fresh: bool = False,
        origin: bool = False,
        payload: Any = None,
    ) -> Request[Slice[Job]]:
        """Makes failed, trashed and cancelled jobs ready again, in their queue or another; with `origin`
        dead jobs as well, each in the queue in which it failed. They keep their steps, unless `fresh` is set.
        With `payload`, one job gets another payload.
        """
        check_ids(ids, "requeue")
        if payload is not None and len(ids) != 1:
            raise ValueError("payload needs exactly one id")
        words = [len(ids), *ids, *([] if queue is None else ["QUEUE", queue]), *_again(fresh, origin)]
        words += [] if payload is None else ["PAYLOAD", self._payload(payload)]
        return self._request("JOB.REQUEUE", words, self._slice)

    @steps(each_slices)
    def requeue_where(
        self,
        where: Filters,
        *,
        to: Name | None = None,
        fresh: bool = False,
        origin: bool = False,
        dryrun: bool = False,
        count: int = 1000,
        progress: Progress | None = None,
    ) -> Steps[Slice[Job]]:
        """Requeues all failed, trashed and cancelled jobs that pass the filters, the oldest first; with
        `origin` dead jobs as well, each to the queue in which it failed.
        """
        words = [*([] if to is None else ["TO", to]), *_again(fresh, origin)]
        return (yield from self._slices("JOB.REQUEUE", where, words, dryrun, count, progress))

    @command(by_ids_summed)
    def delete(
        self, *ids: Name, records: bool = False, fields: Sequence[str] | None = None
    ) -> Request[Slice[Job]]:
        """Forgets jobs in any state. With `records` or `fields` it hands their records back."""
        check_ids(ids, "delete")
        return self._request("JOB.DELETE", [len(ids), *ids, *_returned(records, fields)], self._slice)

    @steps(each_slices)
    def delete_where(
        self,
        where: Filters,
        *,
        records: bool = False,
        fields: Sequence[str] | None = None,
        dryrun: bool = False,
        count: int = 1000,
        progress: Progress | None = None,
    ) -> Steps[Slice[Job]]:
        """Forgets all jobs that pass the filters."""
        words = _returned(records, fields)
        return (yield from self._slices("JOB.DELETE", where, words, dryrun, count, progress))

    @command(by_ids())
    def signal(
        self, name: Name, *ids: Name, value: Any = None, sender: Name | None = None
    ) -> Request[list[str | None]]:
        """Sends a signal: for each job `woken`, `kept` (it does not wait for it yet), `already`, `ended`, or
        None (unknown). `value` is encoded; the first signal of a name counts.
        """
        check_ids(ids, "signal")
        words = [name, len(ids), *ids, *self._said(value, sender)]
        return self._request("JOB.SIGNAL", words, replies.list_of(replies.optional(replies.text)))

    @steps(each_slices)
    def signal_where(
        self,
        name: Name,
        where: Filters,
        *,
        value: Any = None,
        sender: Name | None = None,
        dryrun: bool = False,
        count: int = 1000,
        progress: Progress | None = None,
    ) -> Steps[Slice[Job]]:
        """Sends a signal to all jobs that pass the filters and have none of its name."""
        verb, words = "JOB.SIGNAL", self._said(value, sender)
        return (yield from self._slices(verb, where, words, dryrun, count, progress, [name]))

    def _said(self, value: Any, sender: Name | None) -> list[Any]:
        words: list[Any] = [] if value is None else ["VALUE", self.codec.encode(value)]
        return words if sender is None else [*words, "SENDER", sender]

    @command(by_ids_summed)
    def update(self, *ids: Name, **changes: Unpack[Changes]) -> Request[Slice[Job]]:
        """Changes jobs: of those that have ended only `meta`, `log`, `unstep`, tags and tracking."""
        check_ids(ids, "update")
        return self._request("JOB.UPDATE", [len(ids), *ids, "SET", *self._changes(changes)], self._slice)

    @steps(each_slices)
    def update_where(
        self,
        where: Filters,
        changes: Changes,
        *,
        dryrun: bool = False,
        count: int = 1000,
        progress: Progress | None = None,
    ) -> Steps[Slice[Job]]:
        """Changes all jobs that pass the filters, as `update` does."""
        words = ["SET", *self._changes(changes)]
        return (yield from self._slices("JOB.UPDATE", where, words, dryrun, count, progress))

    @command(by_id_near("others"))
    def depend_add(
        self,
        id: Name,
        *others: Name,
        onfailure: Literal["hold", "cancel", "fail", "run"] | None = None,
        strict: bool = False,
        children: bool = False,
    ) -> Request[str]:
        """Lets a job that was never claimed wait for others as well, or its children; returns its state."""
        _check_one_kind(others, children=children)
        words = ["CHILDREN"] if children else [len(others), *others]
        words += [] if onfailure is None else ["ONFAILURE", onfailure]
        words += ["STRICT"] if strict else []
        return Request(["JOB.DEPEND", "ADD", self.key, id, *words], replies.text)

    @command(by_id)
    def depend_remove(
        self, id: Name, *others: Name, signals: bool = False, children: bool = False
    ) -> Request[str]:
        """Lets a job wait no longer for these, for signals, or for its children; returns its state."""
        _check_one_kind(others, signals=signals, children=children)
        words = ["SIGNALS"] if signals else ["CHILDREN"] if children else [len(others), *others]
        return Request(["JOB.DEPEND", "REMOVE", self.key, id, *words], replies.text)

    @command(by_id)
    def depend_clear(self, id: Name) -> Request[str]:
        """Lets a job wait for no other, no signal and no child; returns its state."""
        return Request(["JOB.DEPEND", "CLEAR", self.key, id], replies.text)

    def _changes(self, changes: Mapping[str, Any]) -> list[Any]:
        if changes.get("payload") is not None:
            changes = {**changes, "payload": self._payload(changes["payload"])}
        return encode_options(CHANGES, changes)

    def _slices(
        self,
        name: str,
        where: Mapping[str, Any],
        words: Sequence[Any],
        dryrun: bool,
        count: int,
        progress: Progress | None,
        head: Sequence[Any] = (),
    ) -> Generator[Request[Any], Any, Slice[Job]]:
        """All slices from the beginning to the end."""
        filters = filter_words(where)
        if not filters:
            verb = name.removeprefix("JOB.").lower()
            empty = "board.client.delete(board.key) deletes a board with all that is in it"
            raise ValueError(
                f"{verb}_where needs a filter, such as {{'state': 'failed'}}, and {where!r:.100} has none"
                + (f"; {empty}" if verb == "delete" else "; every job has one of the states: name them all")
            )
        check_alternatives(where)
        selection = [*head, "WHERE", *filters, "COUNT", count, *(["DRYRUN"] if dryrun else [])]
        whole: Slice[Job] = Slice(0)
        while True:
            part = yield self._request(name, [*selection, "CURSOR", whole.cursor, *words], self._slice)
            whole.add(part)
            if progress:
                progress(whole.count)
            if whole.cursor == "0":
                return whole

    def _slice(self, reply: Any) -> Slice[Job]:
        records = replies.list_of(replies.optional(self._job))(reply[3] if len(reply) > 3 else None)
        return Slice(
            reply[0],
            replies.text(reply[1]),
            [replies.text(one) for one in reply[2]],
            [one for one in records if one is not None],
        )


def _cancel(by: Name | None, force: bool) -> list[Any]:
    return [*([] if by is None else ["BY", by]), *(["FORCE"] if force else [])]


def _front(front: bool) -> list[str]:
    return ["FRONT"] if check_flag(front, "front") else []


def _again(fresh: bool, origin: bool) -> list[str]:
    return [word for word, wanted in (("FRESH", fresh), ("ORIGIN", origin)) if wanted]


def _returned(records: bool, fields: Sequence[str] | None) -> list[Any]:
    return ["RETURN", *fields_words(fields)] if records or fields is not None else []


def _check_one_kind(others: Sequence[Name], **kinds: bool) -> None:
    """One command is about ids, or about one other thing."""
    named = [*(["ids"] if others else []), *(kind for kind, given in kinds.items() if given)]
    if len(named) > 1:
        raise ValueError(f"{' and '.join(named)} exclude each other: call it for each")
