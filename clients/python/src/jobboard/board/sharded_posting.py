"""Posting to a sharded board."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, Optional

from ..arguments import Name
from ..times import Duration
from .posting import CHUNK, After, Node, PostOptions, mpost
from .sending import Steps, one, steps

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .board import Requests


class ShardedPosting:
    _shards: list[Requests]

    def _place(self, id: Name) -> Requests:
        raise NotImplementedError

    @steps
    def post(
        self,
        payload: Any = None,
        *,
        id: Optional[Name] = None,
        together: Optional[str] = None,
        **options: Unpack[PostOptions],
    ) -> Steps[Optional[str]]:
        """Posts a job and returns its id, as `Board.post` does.

        `together`: a word; jobs with the same one share a shard. Raises ValueError when the id leads to
        another shard than the jobs it has to be with.
        """
        tag = together or belongs_to(options)
        if id is None:
            id = new_id(tag)
        elif tag is not None and self._place(id) is not self._place(f"{{{tag}}}"):
            raise ValueError(
                f"the id {id!r} lies in another shard than what it has to be with: put {{{tag}}} into it"
            )
        return one(self._place(id).post(payload, id=id, **options))

    @steps
    def post_many(
        self,
        payloads: Iterable[Any],
        *,
        ids: Optional[Sequence[Name]] = None,
        together: Optional[str] = None,
        progress: Optional[Callable[[int], None]] = None,
        **options: Unpack[PostOptions],
    ) -> Steps[list[Optional[str]]]:
        """Posts many jobs and returns their ids in order: without `ids`, 1,000 to a shard in turn."""
        found: list[Optional[str]] = []
        tag = together or belongs_to(options)
        chunk: list[Any] = []
        rest = iter(payloads)
        while True:
            chunk = [one for _, one in zip(range(CHUNK), rest)]
            if not chunk:
                return found
            if ids is None:
                of_chunk = tag or secrets.token_hex(8)
                named: Sequence[Name] = [new_id(of_chunk) for _ in chunk]
            else:
                named = ids[len(found) : len(found) + len(chunk)]
            found += yield from self._post_chunk(chunk, named, options)
            if progress:
                progress(len(found))

    @steps
    def flow(self, nodes: Sequence[Node], *, together: Optional[str] = None) -> Steps[list[str]]:
        """Posts jobs that wait for each other, all or none, into one shard; returns their ids."""
        tag = together or secrets.token_hex(8)
        shard = self._place(f"{{{tag}}}")
        placed = []
        for node in nodes:
            id = node.options.get("id")
            if id is not None and self._place(id) is not shard:
                raise ValueError(f"the id {id!r} lies in another shard: put {{{tag}}} into it")
            label = node.label if isinstance(node.label, str) else node.label.decode("utf-8", "replace")
            options = {**node.options, "id": id or f"{{{tag}}}{label}"}
            placed.append(Node(node.label, node.payload, **options))  # type: ignore[arg-type]
        return one(shard.flow(placed))

    @steps
    def result(self, id: Name, *, within: Optional[Duration] = None) -> Steps[Any]:
        """Waits for a job and returns its result, as `Board.result` does."""
        return (yield from self._place(id).result(id, within=within))

    @steps
    def call(
        self,
        payload: Any = None,
        *,
        within: Optional[Duration] = None,
        together: Optional[str] = None,
        **options: Unpack[PostOptions],
    ) -> Steps[Any]:
        """Posts a job and waits for its result, as `Board.call` does."""
        tag = together or belongs_to(options) or secrets.token_hex(8)
        shard = self._place(f"{{{tag}}}")
        return (yield from shard.call(payload, within=within, **options))

    def _post_chunk(
        self, payloads: Sequence[Any], ids: Sequence[Name], options: Mapping[str, Any]
    ) -> Steps[list[Optional[str]]]:
        found: list[Optional[str]] = [None] * len(payloads)
        by_shard: dict[str, list[int]] = {}
        for number, id in enumerate(ids):
            by_shard.setdefault(self._place(id).key, []).append(number)
        for numbers in by_shard.values():
            shard = self._place(ids[numbers[0]])
            request = mpost(shard, [payloads[n] for n in numbers], [ids[n] for n in numbers], options)
            for number, id in zip(numbers, (yield request)):
                found[number] = id
        return found


def new_id(tag: Optional[str]) -> str:
    return secrets.token_hex(10) if tag is None else f"{{{tag}}}{secrets.token_hex(6)}"


def belongs_to(options: Mapping[str, Any]) -> Optional[str]:
    """The tag of what a post has to be with, if it names any."""
    from .sharded import tag_of

    def tag(id: Name) -> str:
        return tag_of(id if isinstance(id, bytes) else id.encode()).decode("utf-8", "surrogateescape")

    if options.get("parent") is not None:
        return tag(options["parent"])
    after = options.get("after")
    if after:
        first = after[0]
        others = first.ids if isinstance(first, After) else after
        if others:
            return tag(others[0])
    if options.get("unique") is not None:
        return tag(options["unique"])
    if options.get("maxlive") is not None and options.get("user") is not None:
        return tag(options["user"])
    return None
