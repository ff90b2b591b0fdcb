"""Verbs of producers: post one job, many, a whole flow."""

from __future__ import annotations

import itertools
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from .. import replies
from ..arguments import (
    MOST,
    Encoder,
    Name,
    check_choice,
    check_name,
    check_names,
    choice,
    costs,
    counted,
    duration,
    encode_options,
    flag,
    named,
    names,
    pairs,
    time,
    whole,
)
from ..durations import Duration, to_ms
from ..errors import NoJob
from ..times import Time
from .family import Family
from .hooks import NO_HOOK, Hook
from .sending import Call, Request, Steps, command, steps
from .sharding import by_ids, composed, tag_of

if TYPE_CHECKING:
    from typing import Literal

    from typing_extensions import Unpack

    from .sharded import ShardedVerbs

    OnConflict = Literal["reject", "return", "replace", "debounce"]
    OnFailure = Literal["hold", "cancel", "fail", "run"]
    OnTimeout = Literal["run", "fail", "cancel"]

CHUNK = 1000
"""Jobs of one command when many are posted."""


Backoff = Duration | tuple[Duration, Duration]
"""The wait before a retry: always the same, `"10s"`, or doubling from the first to the second,
`("10s", "1h")`."""


ON_FAILURE = ("hold", "cancel", "fail", "run")
META_MOST = 64
"""Fields of META that a job may have."""
ON_TIMEOUT = ("run", "fail", "cancel")


class After(NamedTuple):
    """Jobs to wait for, and what if one of them fails."""

    ids: Sequence[Name]
    onfailure: OnFailure = "hold"


class Await(NamedTuple):
    """Signals to wait for, whether any of them is enough, how long at most, and what then."""

    names: Name | Sequence[Name]
    any: bool = False
    within: Duration | None = None
    ontimeout: OnTimeout | None = None


class SharedOptions(TypedDict, total=False):
    """Options of jobs and of tasks; their meaning and defaults are those of JOB.POST in commands.md.
    `after_children` waits for the job's children, and says what becomes of it when one fails; True is `hold`.
    """

    queue: Name | None
    group: Name | None
    cost: int | None
    costs: Mapping[Name, int] | None
    priority: int | None
    delay: Duration | None
    at: Time | None
    retries: int | None
    lapses: int | None
    backoff: Backoff | None
    jitter: int | None
    lease: Duration | None
    timeout: Duration | None
    expire: Duration | None
    retain: Duration | None
    user: Name | None
    meta: Mapping[str, Any] | None
    tags: Sequence[Name] | None
    after: Sequence[Name] | Sequence[After] | None
    after_children: OnFailure | bool | None
    strict: bool | None
    await_: Name | Sequence[Name] | Await | None
    parent: Name | None
    share: int | None
    maxlive: int | None
    until: Literal["start", "end"] | None
    for_: Duration | None


class JobOptions(SharedOptions, total=False):
    """Options of all posts.

    `elsewhere` says that the handler of the name is in another program. A board that has tasks or handlers
    refuses names that none of them has.
    """

    name: Name | None
    unique: Name | None
    elsewhere: bool | None


class PostOptions(JobOptions, total=False):
    """Options of a single post, or of many. With `block`, a post waits so long for room under `max_jobs` and
    `max_bytes`; keep it below the socket timeout.
    """

    nx: bool | None
    xx: bool | None
    replace: bool | None
    onconflict: OnConflict | None
    block: Duration | None


class NodeOptions(JobOptions, total=False):
    """Options of a node of a flow."""

    id: Name | None


class Node:
    """One job of a flow. Other nodes name it by its label, in `after` and `parent`; None makes one up."""

    _made = itertools.count(1)

    def __init__(self, label: Name | None, payload: Any, **options: Unpack[NodeOptions]) -> None:
        if label is not None:
            check_name(label, "label")
        if unknown := options.keys() - OPTIONS.keys() - {"elsewhere"}:
            post_words({unknown.pop(): None})  # which says what there is
        self.label: Name = label or f"job-{next(Node._made)}"
        self.payload, self.options = payload, options


def _backoff(word: str, value: Backoff) -> list[Any]:
    if not isinstance(value, (tuple, list)):
        return [word, "FIXED", to_ms(value, "backoff")]
    if len(value) != 2:
        raise ValueError(
            f"backoff is one duration, or two: from '10s' to '1h' is ('10s', '1h'), not {value!r}"
        )
    base, most = (to_ms(one, "backoff") for one in value)
    if base > most:
        raise ValueError(f"backoff begins with the shorter wait: ({value[1]!r}, {value[0]!r}), not {value!r}")
    return [word, "EXPONENTIAL", base, most]


def _after(word: str, value: Sequence[Any]) -> list[Any]:
    if isinstance(value, After):
        value = [value]
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        return names(word, value)  # which refuses it
    if not any(isinstance(one, After) for one in value):
        return names(word, value)
    for one in value:
        if not isinstance(one, After):
            raise TypeError(f"after has ids alone, or After(ids, onfailure) alone, not {one!r:.100} too")
        check_choice(one.onfailure, "onfailure", ON_FAILURE)
    return [part for one in value for part in [*names(word, one.ids), "ONFAILURE", one.onfailure]]


def children_words(word: str, value: Any) -> list[Any]:
    """That a job waits for its children; always with what becomes of it when one fails."""
    if value is False:
        return []
    onfailure = "hold" if value is True else value
    check_choice(onfailure, "after_children", ON_FAILURE)
    return [word, "CHILDREN", "ONFAILURE", onfailure]


def await_words(word: str, value: Any) -> list[Any]:
    """A gate: the names of signals, alone or as an `Await`."""
    gate = value if isinstance(value, Await) else Await(value)
    found = [gate.names] if isinstance(gate.names, (str, bytes)) else gate.names
    label = "signals" if word == "SIGNALS" else "await_"
    words = [word, *counted(label, check_names(found, label))[1:], *(["ANY"] if gate.any else [])]
    words += [] if gate.within is None else ["WITHIN", to_ms(gate.within, "within")]
    if gate.ontimeout is not None:
        check_choice(gate.ontimeout, "ontimeout", ON_TIMEOUT)
        words += ["ONTIMEOUT", gate.ontimeout]
    return words


OPTIONS: dict[str, tuple[str, Encoder]] = {
    **{one: (one.upper(), named) for one in "id name queue group user parent unique".split()},
    **{one: (one.upper(), whole(1, MOST)) for one in "cost maxlive".split()},
    **{one: (one.upper(), whole(-1, MOST)) for one in "retries lapses".split()},
    "priority": ("PRIORITY", whole(-MOST - 1, MOST)),
    "jitter": ("JITTER", whole(0, 100, "jitter")),
    "share": ("SHARE", whole(1, 1_000_000)),
    "until": ("UNTIL", choice("start", "end")),
    "onconflict": ("ONCONFLICT", choice("reject", "return", "replace", "debounce")),
    **{one: (one.upper(), duration) for one in "delay lease timeout expire retain block".split()},
    **{one: (one.upper(), flag) for one in "nx xx replace strict".split()},
    "for_": ("FOR", duration),
    "at": ("AT", time),
    "costs": ("COSTS", costs),
    "meta": ("META", pairs),
    "tags": ("TAGS", names),
    "backoff": ("BACKOFF", _backoff),
    "after": ("AFTER", _after),
    "after_children": ("AFTER", children_words),
    "await_": ("AWAIT", await_words),
}


def check_nodes(nodes: Any) -> None:
    """Raises TypeError or ValueError for what is no flow."""
    if isinstance(nodes, Node) or not isinstance(nodes, Sequence):
        check_parts([nodes])
        raise TypeError("a flow is a list of jobs: board.flow([mail.job('ann')])")
    check_parts(nodes)
    if not nodes:
        raise ValueError("a flow has at least one job: this list is empty")
    if twice := [label for label, n in Counter(node.label for node in nodes).items() if n > 1]:
        raise ValueError(f"the job {twice[0]!r} stands in the flow twice: call job(…) for each")


def check_parts(parts: Iterable[Any]) -> None:
    """Raises TypeError for what is no job of a flow."""
    for part in parts:
        if not isinstance(part, Node):
            raise TypeError(
                f"a flow is made of jobs: mail.job('ann'), group(…), chain(…) or a Node, not {part!r:.100}"
            )


def _strictly(options: Mapping[str, Any], own: set[str]) -> Mapping[str, Any]:
    """The options of a node, which refuse ids that neither the flow nor the board has, unless they say
    otherwise.
    """
    others = {replies.text(one) for one in _waits_for(options) if isinstance(one, (str, bytes))}
    return options if options.get("strict") is not None or others <= own else {**options, "strict": True}


def _waits_for(options: Mapping[str, Any]) -> list[Any]:
    """The ids in `after`."""
    after = options.get("after") or ()
    after = [after] if isinstance(after, After) else after
    return [id for one in after for id in (one.ids if isinstance(one, After) else [one])]


def post_words(options: Mapping[str, Any]) -> list[Any]:
    """The words of a post's options."""
    return encode_options(OPTIONS, options)


def _with_its_like(board: ShardedVerbs, call: Call) -> Steps[str | None]:
    """In the shard of its id, or of what it belongs to, also by an option of its task."""
    options = board._known(call["options"], [call["payload"]])
    id = _placed(board, call["id"], call["together"] or _belongs_to(options))
    board.check_near(id, _named_by(options))
    return call.on(board.shard_of(id), id=id)


def _all_with_their_like(board: ShardedVerbs, call: Call) -> Steps[Any]:
    """Each in the shard of its id; without ids all in one, so that a command posts many."""
    options = board._known(call["options"], call["payloads"])
    ids, tag = call["ids"], call["together"] or _belongs_to(options)
    if ids is None:
        ids, tag = [None] * len(call["payloads"]), tag or secrets.token_hex(8)
    call.bound.arguments["ids"] = placed = [_placed(board, id, tag) for id in ids]
    if named := _named_by(options):
        for id in placed:
            board.check_near(id, named)
    return by_ids("payloads")(board, call)


def _in_one_shard(board: ShardedVerbs, call: Call) -> Steps[list[str]]:
    check_nodes(call["nodes"])
    ids = [id for node in call["nodes"] if (id := node.options.get("id")) is not None]
    own = {replies.text(one) for one in (*ids, *(node.label for node in call["nodes"]))}
    known = [board._known(node.options, [node.payload]) for node in call["nodes"]]
    tags = [*(_belongs_to(options, own) for options in known), *(replies.text(tag_of(id)) for id in ids[:1])]
    tag, mark = call["together"], ""
    if not tag and (tag := next(filter(None, tags), None)):
        mark = f"{secrets.token_hex(6)}-"  # more flows may belong there
    tag = tag or secrets.token_hex(8)
    nodes = []
    for node, options in zip(call["nodes"], known):
        id = node.options.get("id")
        id = f"{{{tag}}}{mark}{replies.text(node.label)}" if id is None else _placed(board, id, tag)
        board.check_near(id, _named_by(options, own))
        nodes.append(Node(node.label, node.payload, **{**node.options, "id": id}))
    return call.on(board.shard_of(f"{{{tag}}}"), nodes=nodes)


def _placed(board: ShardedVerbs, id: Name | None, tag: str | None) -> Name:
    """An id in the shard of the tag: this one, or a new one. Raises ValueError when this one is elsewhere."""
    if id is None:
        return secrets.token_hex(10) if tag is None else f"{{{tag}}}{secrets.token_hex(6)}"
    if tag is not None and board.place(id) != board.place(f"{{{tag}}}"):
        raise ValueError(
            f"the id {id!r} leads to another shard than that of what it belongs with: put {{{tag}}} into it"
        )
    return id


def _belongs_to(options: Mapping[str, Any], own: Collection[str] = ()) -> str | None:
    """The tag of what a post has to be with, if it names any; `own` are the other jobs of its flow."""
    user = None if options.get("maxlive") is None else options.get("user")
    ids = [*_named_by(options, own), options.get("unique"), user]
    return next((replies.text(tag_of(id)) for id in ids if id is not None), None)


def _named_by(options: Mapping[str, Any], own: Collection[str] = ()) -> list[Name]:
    """The jobs that a post names, without those of its own flow. What is no name is refused later."""
    after = options.get("after")
    named = [options.get("parent"), *([] if isinstance(after, (str, bytes)) else _waits_for(options))]
    return [id for id in named if isinstance(id, (str, bytes)) and replies.text(id) not in own]


class Posting(Family):
    hook: Hook = NO_HOOK

    @command(_with_its_like)
    def post(
        self,
        payload: Any = None,
        *,
        id: Name | None = None,
        together: str | None = None,
        **options: Unpack[PostOptions],
    ) -> Request[str | None]:
        """Posts a job and returns its id. None when `nx` or `xx` kept it from posting.

        Raises `Exists` when the id is taken, or the unique key; `Limit` when a limit is reached; `NoHandler`
        when no task of the board has the name, unless `elsewhere` says that another program does. A job that
        names a task of the board gets the task's options, but for those that are given here.
        With `block` it waits so long for room before it raises `Limit`. Give an `id` then: if the reply is
        lost, posting again posts no second job. A handler that waits for room in its own queue can wait for
        itself.
        On a sharded board jobs with the same word as `together` share a shard, and a ValueError is raised
        when the id leads to another shard than that of the jobs it belongs with. A `Board` ignores the word.
        """
        known, data = self._known(options, [payload]), self._payload(payload)
        traced, done = self.hook.posting(self.key, known.get("name"), 1)
        words = [data, *post_words({"id": id, **_with_meta(known, traced)})]
        return Request(["JOB.POST", self.key, *words], replies.optional(replies.text), done)

    @steps(composed)
    def post_many(
        self,
        payloads: Iterable[Any],
        *,
        ids: Sequence[Name] | None = None,
        together: str | None = None,
        progress: Callable[[int], None] | None = None,
        **options: Unpack[PostOptions],
    ) -> Steps[list[str | None]]:
        """Posts many jobs with shared options, 1,000 in a command, and returns their ids in order.

        Each command posts all of its jobs or none; `block` is the time of each. `progress` is told how many
        jobs were posted so far.
        """
        found: list[str | None] = []
        for start, chunk in _chunks(payloads):
            named = None if ids is None else ids[start : start + len(chunk)]
            found += yield from Posting._mpost.of(self, chunk, named, together, options)
            if progress:
                progress(len(found))
        return found

    @steps(_in_one_shard)
    def flow(self, nodes: Sequence[Node], *, together: str | None = None) -> Steps[list[str]]:
        """Posts jobs that wait for each other or are parts of each other, all or none; returns their ids.

        `after` and `parent` name other jobs of the flow by their labels or ids, or jobs of the board by their
        ids. Raises `NoJob` for a name that is neither; with `strict=False` a job waits for such an id.
        """
        check_nodes(nodes)
        labels = {replies.text(node.label) for node in nodes}
        ids = {replies.text(id) for node in nodes if (id := node.options.get("id")) is not None}
        known = [
            (
                node.label,
                self._payload(node.payload),
                self._known(_strictly(node.options, labels | ids), [node.payload]),
            )
            for node in nodes
        ]
        traced, done = self.hook.posting(self.key, None, len(nodes))
        words: list[Any] = [len(nodes)]
        for label, data, options in known:
            words += ["NODE", label, data, *post_words(_with_meta(options, traced))]
        try:
            found: list[str] = yield Request(
                ["JOB.FLOW", self.key, *words], replies.list_of(replies.text), done
            )
        except NoJob as error:
            shown = ", ".join(sorted(labels)[:20]) + (" …" if len(labels) > 20 else "")
            raise NoJob(f"{error.detail}, and no job of the flow has that label; there are {shown}") from None
        return found

    @command(_all_with_their_like)
    def _mpost(
        self,
        payloads: Sequence[Any],
        ids: Sequence[Name] | None,
        together: str | None,
        options: Mapping[str, Any],
    ) -> Request[list[str | None]]:
        known = self._known(options, payloads)
        words = [len(payloads), *map(self._payload, payloads)]
        traced, done = self.hook.posting(self.key, known.get("name"), len(payloads))
        words += counted("IDS", ids) if ids is not None else []
        words += post_words(_with_meta(known, traced))
        parse = replies.list_of(replies.optional(replies.text))
        return Request(["JOB.MPOST", self.key, *words], parse, done)


def _with_meta(options: Mapping[str, Any], traced: Mapping[str, str]) -> Mapping[str, Any]:
    """The options with what joins the post to its run, where there is room for it."""
    own = options.get("meta") or {}
    if not traced or not isinstance(own, Mapping) or len(meta := {**traced, **own}) > META_MOST:
        return options
    return {**options, "meta": meta}


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
