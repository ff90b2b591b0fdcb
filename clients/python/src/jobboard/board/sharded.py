"""One logical board over many slots of a cluster: shards, each a board, `mails:{0}` to `mails:{11}`."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from .. import codecs
from ..arguments import Name, check_whole
from ..connecting import client_of
from ..replies import text
from .board import AsyncBoard, Board, Requests, Verbs, longest_block
from .decorating import AsyncTasks, Tasks
from .events import AsyncWatched, Watched
from .hooks import NO_HOOK, Hook
from .sending import Async, Request, Sharded, Sync
from .sharding import tag_of

if TYPE_CHECKING:
    from ..connecting import AsyncClient, Client

T = TypeVar("T")


def shard_keys(name: str, shards: int) -> list[str]:
    """The keys of the shards."""
    return [f"{text(name)}:{{{number}}}" for number in range(shards)]


class ShardedVerbs(Verbs, Sharded):
    """The verbs of a sharded board.

    A job lives in the shard of its id's hash tag, the part in braces, or else of its whole id: so any id
    tells where to look. Jobs that depend on each other, are parent and child, or share a unique key or an
    ordered group belong together: they get ids of one tag. What a post names (`parent`, `after`, `unique`,
    `user` with `maxlive`) decides by itself; else `together` does.

    Priorities, turns of groups, rates and limits hold within each shard. A command over several shards is not
    atomic. Of what all answer counts, rates and limits are sums, ages and lateness the greatest of any shard,
    pauses those that end first; a page of `groups`, `limits` or `tags` is all of them. Verbs that have no
    meaning over shards raise TypeError.
    """

    def __init__(self, name: str, shards: int, *, codec: str | codecs.Codec, hook: Hook, block: int) -> None:
        check_whole(shards, "shards", 1)
        super().__init__(name, codec=codec, hook=hook, block=block)
        self._shards = [
            Requests(key, codec=self.codec, hook=hook, block=block, handlers=self.handlers)
            for key in shard_keys(name, shards)
        ]

    def requests(self) -> list[Requests]:
        """The verbs of each shard as requests."""
        return self._shards

    def place(self, id: Name) -> str:
        """The key of the shard that a job of this id, or a schedule, lives in."""
        return self.shard_of(id).key

    def shard_of(self, id: Name) -> Requests:
        return self._shards[zlib.crc32(tag_of(id)) % len(self._shards)]

    def check_near(self, id: Name, others: Iterable[Name]) -> None:
        """Raises ValueError for others that live elsewhere: the shard of this job does not know them, so the
        job would not wait for them.
        """
        for other in others:
            if self.place(other) != self.place(id):
                raise ValueError(
                    f"{text(other)!r} lives in another shard than {text(id)!r}, which would not wait for "
                    "it there, nor be its child: post both with the same `together`, or with ids of one tag"
                )

    def split(self, ids: Sequence[Name]) -> list[tuple[Requests, list[int]]]:
        """The shards of ids, each with the numbers of its own."""
        found: dict[str, tuple[Requests, list[int]]] = {}
        for number, id in enumerate(ids):
            shard = self.shard_of(id)
            found.setdefault(shard.key, (shard, []))[1].append(number)
        return list(found.values())


class ShardedBoard(ShardedVerbs, Tasks, Watched, Sync):
    """A board in `shards` parts, over a `redis.RedisCluster` (or any client). Their number must never change.

    board = ShardedBoard("mails", redis.RedisCluster("node-1"), shards=12)
    """

    def __init__(
        self,
        name: str,
        client: Client | str | None = None,
        *,
        shards: int,
        codec: str | codecs.Codec = "json",
        hook: Hook = NO_HOOK,
    ) -> None:
        self.client: Client = client_of(client)
        self.by_default = client is None
        super().__init__(name, shards, codec=codec, hook=hook, block=longest_block(self.client))
        self.boards = [Board(one.key, self.client, codec=self.codec, hook=hook) for one in self._shards]
        """The shards as boards, for what has no meaning over all of them."""

    def send(self, request: Request[T]) -> T:
        return self.boards[0].send(request)

    def __repr__(self) -> str:
        return f"ShardedBoard({self.key!r}, shards={len(self._shards)})"

    def __reduce__(self) -> Any:
        from ..pickling import spec

        made = (self.key, spec(self.client), len(self._shards), self.codec, self.hook, self.handlers)
        return (_rebuilt, made)


class AsyncShardedBoard(ShardedVerbs, AsyncTasks, AsyncWatched, Async):
    """The same over `redis.asyncio`."""

    def __init__(
        self,
        name: str,
        client: AsyncClient | str | None = None,
        *,
        shards: int,
        codec: str | codecs.Codec = "json",
        hook: Hook = NO_HOOK,
    ) -> None:
        first = AsyncBoard(name, client)
        self.client: AsyncClient = first.client
        self.by_default = first.by_default
        super().__init__(name, shards, codec=codec, hook=hook, block=first.block)
        self.boards = [AsyncBoard(one.key, self.client, codec=self.codec, hook=hook) for one in self._shards]

    async def send(self, request: Request[T]) -> T:
        return await self.boards[0].send(request)

    def blocking(self) -> ShardedBoard:
        """The same board, with verbs that block: a worker claims with it."""
        from ..pickling import blocking

        return _rebuilt(
            self.key, lambda: blocking(self.client), len(self._shards), self.codec, self.hook, self.handlers
        )

    def __repr__(self) -> str:
        return f"AsyncShardedBoard({self.key!r}, shards={len(self._shards)})"


def _rebuilt(key: str, client: Any, shards: int, codec: Any, hook: Any, handlers: Any) -> ShardedBoard:
    board = ShardedBoard(key, client(), shards=shards, codec=codec, hook=hook)
    board.handlers = handlers
    return board
