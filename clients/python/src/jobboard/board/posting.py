"""Verbs of producers: post one job, many, a whole flow."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional, TypedDict, Union

from .. import replies
from ..arguments import Name, counted, duration, encode_options, flag, pairs, plain, time
from ..times import Duration, Time, to_ms
from .family import Family
from .hooks import NO_HOOK, Hook
from .sending import Call, Request, Steps, command, steps
from .sharding import by_ids, composed, tag_of

if TYPE_CHECKING:
    from typing_extensions import Literal, Unpack

    from .sharded import ShardedVerbs

    OnFailure = Literal["hold", "cancel", "fail", "run"]

CHUNK = 1000
"""Jobs of one command when many are posted."""


class Fixed(NamedTuple):
    """`BACKOFF FIXED`: always the same wait before a retry."""

    wait: Duration


class Exponential(NamedTuple):
    """`BACKOFF EXPONENTIAL`: the wait doubles from `base` to `most`."""

    base: Duration
    most: Duration


class After(NamedTuple):
    """Jobs to wait for, and what if one of them fails."""

    ids: Sequence[Name]
    onfailure: OnFailure = "hold"


class JobOptions(TypedDict, total=False):
    """Options of all posts; their meaning and defaults are those of JOB.POST in commands.md."""

    name: Optional[Name]
    queue: Optional[Name]
    group: Optional[Name]
    cost: Optional[int]
    priority: Optional[int]
    delay: Optional[Duration]
    at: Optional[Time]
    retries: Optional[int]
    lapses: Optional[int]
    backoff: Union[Fixed, Exponential, None]
    jitter: Optional[int]
    lease: Optional[Duration]
    timeout: Optional[Duration]
    expire: Optional[Duration]
    retain: Optional[Duration]
    user: Optional[Name]
    meta: Optional[Mapping[str, Any]]
    tags: Optional[Sequence[Name]]
    after: Union[Sequence[Name], Sequence[After], None]
    strict: Optional[bool]
    parent: Optional[Name]
    share: Optional[int]
    maxlive: Optional[int]
    unique: Optional[Name]
    until: Optional[Literal["start", "end"]]
    for_: Optional[Duration]


class PostOptions(JobOptions, total=False):
    """Options of a single post, or of many."""

    nx: Optional[bool]
    xx: Optional[bool]
    replace: Optional[bool]
    onconflict: Optional[Literal["reject", "return", "replace", "debounce"]]


class NodeOptions(JobOptions, total=False):
    """Options of a node of a flow."""

    id: Optional[Name]


class Node:
    """One job of a flow. Other nodes name it by its label, in `after` and `parent`."""

    def __init__(self, label: Name, payload: Any, **options: Unpack[NodeOptions]) -> None:
        self.label, self.payload, self.options = label, payload, options


def _backoff(word: str, value: Union[Fixed, Exponential]) -> list[Any]:
    return [word, type(value).__name__.upper(), *(to_ms(one, "a back-off's wait") for one in value)]


def _after(word: str, value: Sequence[Any]) -> list[Any]:
    if isinstance(value, After):
        value = [value]
    if not any(isinstance(one, After) for one in value):
        return counted(word, value)
    return [part for one in value for part in [*counted(word, one.ids), "ONFAILURE", one.onfailure]]


PLAIN = (
    "name queue group cost priority retries lapses jitter user parent share maxlive unique until onconflict"
)
OPTIONS = {
    **{name: (name.upper(), plain) for name in ["id", *PLAIN.split()]},
    **{name: (name.upper(), duration) for name in "delay lease timeout expire retain".split()},
    **{name: (name.upper(), flag) for name in "nx xx replace strict".split()},
    "for_": ("FOR", duration),
    "at": ("AT", time),
    "meta": ("META", pairs),
    "tags": ("TAGS", counted),
    "backoff": ("BACKOFF", _backoff),
    "after": ("AFTER", _after),
}


def post_words(options: Mapping[str, Any]) -> list[Any]:
    """The words of a post's options."""
    return encode_options(OPTIONS, options)


def _with_its_like(board: ShardedVerbs, call: Call) -> Steps[Optional[str]]:
    """In the shard of its id, or of what it belongs to."""
    id = _placed(board, call["id"], call["together"] or _belongs_to(call["options"]))
    return call.on(board.shard_of(id), id=id)


def _all_with_their_like(board: ShardedVerbs, call: Call) -> Steps[Any]:
    """Each in the shard of its id; without ids all in one, so that a command posts many."""
    ids, tag = call["ids"], call["together"] or _belongs_to(call["options"])
    if ids is None:
        ids, tag = [None] * len(call["payloads"]), tag or secrets.token_hex(8)
    call.bound.arguments["ids"] = [_placed(board, id, tag) for id in ids]
    return by_ids("payloads")(board, call)


def _in_one_shard(board: ShardedVerbs, call: Call) -> Steps[list[str]]:
    tag = call["together"] or secrets.token_hex(8)
    nodes = []
    for node in call["nodes"]:
        id = node.options.get("id")
        own = f"{{{tag}}}{replies.text(node.label)}" if id is None else _placed(board, id, tag)
        nodes.append(Node(node.label, node.payload, **{**node.options, "id": own}))
    return call.on(board.shard_of(f"{{{tag}}}"), nodes=nodes)


def _placed(board: ShardedVerbs, id: Optional[Name], tag: Optional[str]) -> Name:
    """An id in the shard of the tag: this one, or a new one. Raises ValueError when this one is elsewhere."""
    if id is None:
        return secrets.token_hex(10) if tag is None else f"{{{tag}}}{secrets.token_hex(6)}"
    if tag is not None and board.place(id) != board.place(f"{{{tag}}}"):
        raise ValueError(
            f"the id {id!r} leads to another shard than that of what it belongs with: put {{{tag}}} into it"
        )
    return id


def _belongs_to(options: Mapping[str, Any]) -> Optional[str]:
    """The tag of what a post has to be with, if it names any."""
    after = options.get("after") or ()
    after = [after] if isinstance(after, After) else after
    others = [id for one in after for id in (one.ids if isinstance(one, After) else [one])]
    user = None if options.get("maxlive") is None else options.get("user")
    ids = [options.get("parent"), *others[:1], options.get("unique"), user]
    return next((replies.text(tag_of(id)) for id in ids if id is not None), None)


class Posting(Family):
    hook: Hook = NO_HOOK

    @command(_with_its_like)
    def post(
        self,
        payload: Any = None,
        *,
        id: Optional[Name] = None,
        together: Optional[str] = None,
        **options: Unpack[PostOptions],
    ) -> Request[Optional[str]]:
        """Posts a job and returns its id. None when `nx` or `xx` kept it from posting.

        Raises `Exists` when the id is taken, or the unique key; `Limit` when a limit is reached.
        On a sharded board jobs with the same word as `together` share a shard, and a ValueError is raised
        when the id leads to another shard than that of the jobs it belongs with. A `Board` ignores the word.
        """
        traced, done = self.hook.posting(self.key, options.get("name"), 1)
        words = [self._payload(payload), *post_words({"id": id, **_with_meta(options, traced)})]
        return Request(["JOB.POST", self.key, *words], replies.optional(replies.text), done)

    @steps(composed)
    def post_many(
        self,
        payloads: Iterable[Any],
        *,
        ids: Optional[Sequence[Name]] = None,
        together: Optional[str] = None,
        progress: Optional[Callable[[int], None]] = None,
        **options: Unpack[PostOptions],
    ) -> Steps[list[Optional[str]]]:
        """Posts many jobs with shared options, 1,000 in a command, and returns their ids in order.

        Each command posts all of its jobs or none. `progress` is told how many jobs were posted so far.
        """
        found: list[Optional[str]] = []
        for start, chunk in _chunks(payloads):
            named = None if ids is None else ids[start : start + len(chunk)]
            found += yield from Posting._mpost.of(self, chunk, named, together, options)
            if progress:
                progress(len(found))
        return found

    @command(_in_one_shard)
    def flow(self, nodes: Sequence[Node], *, together: Optional[str] = None) -> Request[list[str]]:
        """Posts jobs that wait for each other or are parts of each other, all or none; returns their ids."""
        traced, done = self.hook.posting(self.key, None, len(nodes))
        words: list[Any] = [len(nodes)]
        for node in nodes:
            options = post_words(_with_meta(node.options, traced))
            words += ["NODE", node.label, self._payload(node.payload), *options]
        return Request(["JOB.FLOW", self.key, *words], replies.list_of(replies.text), done)

    @command(_all_with_their_like)
    def _mpost(
        self,
        payloads: Sequence[Any],
        ids: Optional[Sequence[Name]],
        together: Optional[str],
        options: Mapping[str, Any],
    ) -> Request[list[Optional[str]]]:
        traced, done = self.hook.posting(self.key, options.get("name"), len(payloads))
        words = [len(payloads), *map(self._payload, payloads)]
        words += counted("IDS", ids) if ids is not None else []
        words += post_words(_with_meta(options, traced))
        parse = replies.list_of(replies.optional(replies.text))
        return Request(["JOB.MPOST", self.key, *words], parse, done)


def _with_meta(options: Mapping[str, Any], traced: Mapping[str, str]) -> Mapping[str, Any]:
    return {**options, "meta": {**traced, **(options.get("meta") or {})}} if traced else options


def _chunks(payloads: Iterable[Any]) -> Iterable[tuple[int, list[Any]]]:
    chunk: list[Any] = []
    start = 0
    for payload in payloads:
        chunk.append(payload)
        if len(chunk) == CHUNK:
            yield start, chunk
            start, chunk = start + CHUNK, []
    if chunk:
        yield start, chunk
