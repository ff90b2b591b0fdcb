"""Verbs that steer a board: schedules, settings, pauses, registered workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import replies
from ..arguments import (
    BACKLOG_MOST,
    Encoder,
    Name,
    check_choice,
    check_name,
    check_whole,
    choice,
    encode_options,
    named,
    pairs,
    time,
    whole,
)
from ..arguments import duration as duration_words
from ..durations import Duration, to_ms
from ..times import Time
from .family import Family, page_of
from .merging import nothing
from .posting import OPTIONS, PostOptions
from .sending import Pages, Request, command, pages, walk
from .sharding import by_id, each, each_page, first

if TYPE_CHECKING:
    from typing import Literal

    from typing_extensions import Unpack

    Backlog = Literal["skip", "one", "all"] | int


class Setting(NamedTuple):
    """A setting in force, and where it was set: `queue`, `board`, `module`, `default` …"""

    value: Any
    source: str


class Registration(NamedTuple):
    """When a registration lapses (Unix ms, -1: never by itself), and whether the worker is to be quiet."""

    expires: int
    quiet: bool


DURATIONS = frozenset(
    "lease backoff-base backoff-max timeout expire retain-complete retain-result retain-failed "
    "retain-trashed retain-cancelled retain-output session-grace tombstone-ttl grace cancel-grace "
    "ageing rate-period lapse-delay".split()
)
"""The settings that are durations."""

SCHEDULE: dict[str, tuple[str, Encoder]] = {
    **{
        one: words
        for one, words in OPTIONS.items()
        if one not in ("at", "after", "strict", "jitter", "block")
    },
    "every": ("EVERY", duration_words),
    "cron": ("CRON", named),
    "tz": ("TZ", named),
    "start": ("START", time),
    "end": ("END", time),
    "max": ("MAX", whole(-1, 2**53 - 1)),
    "backlog": ("BACKLOG", lambda word, value: _backlog(value)),
    "overlap": ("OVERLAP", choice("allow", "skip", "replace")),
    "spread": ("JITTER", lambda word, value: [word, *duration_words("SPREAD", value)[1:]]),
    "jitter": ("BACKOFF-JITTER", whole(0, 100, "jitter")),
}


def _backlog(value: Backlog | None) -> list[Any]:
    """A word, or how many of the missed times."""
    if value is None:
        return []
    if isinstance(value, str):
        check_choice(value, "backlog", ["skip", "one", "all"])
        return ["BACKLOG", value]
    return ["BACKLOG", check_whole(value, "backlog", 1, BACKLOG_MOST)]


def _setting(pair: Any) -> Setting:
    return Setting(replies.value(pair[0]), replies.text(pair[1]))


def _settings(reply: Any) -> dict[str, Setting]:
    return {replies.text(name): _setting(pair) for name, pair in replies.pairs(reply)}


class Administering(Family):
    @command(by_id)
    def schedule_set(
        self,
        id: Name,
        payload: Any = None,
        *,
        every: Duration | None = None,
        cron: str | None = None,
        tz: str | None = None,
        start: Time | None = None,
        end: Time | None = None,
        max: int | None = None,
        backlog: Backlog | None = None,
        overlap: Literal["allow", "skip", "replace"] | None = None,
        spread: Duration | None = None,
        **options: Unpack[PostOptions],
    ) -> Request[None]:
        """Makes a schedule, or changes what is named of one. `options` are those of the jobs it posts.

        `backlog` says what becomes of times that passed while the server could not post: `skip`, `one` job, a
        number of them, or `all`. `spread` is the command's JITTER: a job is posted up to so much after its
        time. `jitter` is, as in a post, that of retries.
        """
        check_name(id, "id")
        own = {"every": every, "cron": cron, "tz": tz, "start": start, "end": end, "max": max}
        own.update({"backlog": backlog, "overlap": overlap, "spread": spread})
        known = self._known(options, [payload])
        words = [id, self.codec.encode(payload), *encode_options(SCHEDULE, {**own, **known})]
        return self._schedule("SET", words, replies.ok)

    @command(by_id)
    def schedule_get(self, id: Name) -> Request[dict[str, Any] | None]:
        """A schedule, or None. Its `payload` is decoded."""
        return self._schedule("GET", [id], replies.optional(self._schedule_row))

    @pages(each_page)
    def schedule_list(self, *, page: int = 100) -> Pages[dict[str, Any]]:
        """Walks over the schedules in the order of their ids."""
        words, parse = ["JOB.SCHEDULE", "LIST", self.key, "COUNT", page], page_of(self._schedule_row)
        return walk(lambda cursor: Request([*words, "CURSOR", cursor], parse))

    @command(by_id)
    def schedule_del(self, id: Name) -> Request[None]:
        """Deletes a schedule; its jobs stay. Raises `NoSchedule`."""
        return self._schedule("DEL", [id], replies.ok)

    @command(by_id)
    def schedule_pause(self, id: Name) -> Request[None]:
        """Lets a schedule post nothing. Raises `NoSchedule`."""
        return self._schedule("PAUSE", [id], replies.ok)

    @command(by_id)
    def schedule_resume(self, id: Name) -> Request[None]:
        """Resumes it at its next time. Raises `NoSchedule`."""
        return self._schedule("RESUME", [id], replies.ok)

    @command(by_id)
    def schedule_run(self, id: Name) -> Request[str | None]:
        """Posts a job of a schedule at once; its id, or None when the last one has not ended (overlap
        skip).
        """
        return self._schedule("RUN", [id], replies.optional(replies.text))

    @command(first)
    def settings_get(
        self,
        *names: str,
        queue: Name | None = None,
        group: Name | None = None,
        limit: Name | None = None,
    ) -> Request[dict[str, Setting]]:
        """The settings in force, all or those named."""
        words = ["JOB.SETTINGS", "GET", self.key, *_scope(queue, group, limit), *names]
        return Request(words, _settings)

    @command(each(nothing))
    def settings_set(
        self,
        settings: Mapping[str, Any],
        *,
        queue: Name | None = None,
        group: Name | None = None,
        limit: Name | None = None,
    ) -> Request[None]:
        """Sets settings: `{"lease": "1m", "rate": 100, "limits": ["api"]}`.

        Of several shards each has them: divide limits and rates by their number.
        """
        words: list[Any] = []
        for name, value in settings.items():
            words += _setting_words(name, value)
        head = ["JOB.SETTINGS", "SET", self.key]
        return Request([*head, *_scope(queue, group, limit), *words], replies.ok)

    @command(each(nothing))
    def settings_reset(
        self,
        *names: str,
        queue: Name | None = None,
        group: Name | None = None,
        limit: Name | None = None,
    ) -> Request[None]:
        """Goes back to the board's or the module's; without names, all of them."""
        words = ["JOB.SETTINGS", "RESET", self.key, *_scope(queue, group, limit), *names]
        return Request(words, replies.ok)

    @command(each(nothing))
    def pause(
        self,
        *,
        queue: Name | None = None,
        group: Name | None = None,
        limit: Name | None = None,
        for_: Duration | None = None,
        release: bool = False,
    ) -> Request[None]:
        """Lets nothing be claimed from the board, a queue or a group, or nothing that counts against a shared
        limit; `release` takes running jobs back. A pause only gets longer, until `resume`.
        """
        words: list[Any] = _scope(queue, group, limit)
        words += [] if for_ is None else ["FOR", to_ms(for_, "for_")]
        return self._request("JOB.PAUSE", [*words, *(["RELEASE"] if release else [])], replies.ok)

    @command(each(nothing))
    def resume(
        self, *, queue: Name | None = None, group: Name | None = None, limit: Name | None = None
    ) -> Request[None]:
        """Ends a pause."""
        return self._request("JOB.RESUME", _scope(queue, group, limit), replies.ok)

    @command(each(min))
    def worker_register(
        self,
        worker: Name,
        *,
        role: Name | None = None,
        meta: Mapping[str, Any] | None = None,
        for_: Duration | None = None,
        session: bool = False,
        anew: bool = False,
    ) -> Request[Registration]:
        """Registers a worker, or refreshes it. `anew`: it has just started; what it still holds lapses."""
        words: list[Any] = [] if role is None else ["ROLE", role]
        words += pairs("META", meta) if meta else []
        words += [] if for_ is None else ["FOR", to_ms(for_, "for_")]
        words += ["SESSION"] if session else []
        words += ["ANEW"] if anew else []

        def parse(reply: Any) -> Registration:
            found = replies.mapping()(reply)
            return Registration(found["expires"], bool(found["quiet"]))

        return Request(["JOB.WORKER", "REGISTER", self.key, worker, *words], parse)

    @command(each(any))
    def worker_deregister(self, worker: Name) -> Request[bool]:
        """Ends a registration; the worker's jobs go back at no cost. False: it was not registered."""
        return Request(["JOB.WORKER", "DEREGISTER", self.key, worker], bool)

    @pages(each_page)
    def worker_list(self, *, role: Name | None = None, page: int = 100) -> Pages[dict[str, Any]]:
        """Walks over the registered workers by name. Over shards it gives a worker for each of them."""
        words = ["JOB.WORKER", "LIST", self.key, *([] if role is None else ["ROLE", role]), "COUNT", page]
        parse = page_of(replies.mapping(meta=replies.strings))
        return walk(lambda cursor: Request([*words, "CURSOR", cursor], parse))

    @command(each(nothing))
    def worker_quiet(self, worker: Name) -> Request[None]:
        """Hands nothing more to a registered worker. Raises `NoWorker`."""
        return Request(["JOB.WORKER", "QUIET", self.key, worker], replies.ok)

    @command(each(nothing))
    def worker_resume(self, worker: Name) -> Request[None]:
        """Hands jobs to it again. Raises `NoWorker`."""
        return Request(["JOB.WORKER", "RESUME", self.key, worker], replies.ok)

    def _schedule(self, verb: str, words: list[Any], parse: Any) -> Request[Any]:
        return Request(["JOB.SCHEDULE", verb, self.key, *words], parse)

    def _schedule_row(self, reply: Any) -> dict[str, Any]:
        row = replies.mapping(meta=replies.strings, payload=bytes)(reply)
        try:
            row["payload"] = self.codec.decode(row["payload"])
        except ValueError:
            row["payload"] = replies.text(row["payload"])
        return row


def _scope(queue: Name | None, group: Name | None, limit: Name | None) -> list[Any]:
    words: list[Any] = [] if queue is None else ["QUEUE", queue]
    words += [] if group is None else ["GROUP", group]
    return words + ([] if limit is None else ["LIMIT", limit])


def _setting_words(name: str, value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [name, len(value), *value]
    if isinstance(value, bool):
        return [name, int(value)]
    if name.lower().replace("_", "-") in DURATIONS:
        return [name, to_ms(value, name)]
    return [name, value]
