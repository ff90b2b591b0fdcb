"""A board: its commands as methods, over redis-py's clients, sync and asyncio."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import redis

from .. import codecs
from ..arguments import Name, encoded
from ..connecting import async_client_of, client_of, explained_of, hidden
from ..errors import translated
from ..handlers import Handlers
from ..replies import text
from .administering import Administering
from .decorating import AsyncTasks, Tasks
from .events import AsyncWatched, Watched
from .hooks import NO_HOOK, Hook
from .listing import Listing
from .operating import Operating
from .posting import Posting
from .reading import Reading
from .sending import Async, Plain, Request, Sync, guard
from .waiting import Waiting
from .working import Working

if TYPE_CHECKING:
    from ..connecting import AsyncClient, Client

T = TypeVar("T")
BLOCK = 2000
"""The longest wait of one command, ms."""


class Verbs(Administering, Listing, Operating, Posting, Reading, Waiting, Working):
    """All verbs of a board."""

    def __init__(
        self,
        name: str,
        *,
        codec: str | codecs.Codec = "json",
        hook: Hook = NO_HOOK,
        block: int = BLOCK,
        handlers: Handlers | None = None,
    ) -> None:
        if not isinstance(name, (str, bytes)) or not name:
            raise TypeError(f"the name of a board is text, not {name!r:.100}: Board('mails', client)")
        if "://" in text(name):
            shown = hidden(text(name))
            raise ValueError(f"the name of the board comes first: Board('mails', {shown!r})")
        if not isinstance(hook, Hook) and not all(hasattr(hook, one) for one in ("posting", "running")):
            raise TypeError(f"hook is an object of jobboard.Hook, such as Tracing(), not {hook!r:.100}")
        self.key, self.codec, self.hook, self.block = name, codecs.find(codec), hook, block
        self.handlers = Handlers() if handlers is None else handlers
        """What a worker of this board runs, and `task` and `handler` add to."""

    def handler(self, name: str | None = None, **options: Any) -> Callable[[T], T]:
        """Decorates the function that does jobs of this name: see `Handlers.handler`."""
        return self.handlers.handler(name, **options)


class Requests(Verbs, Plain):
    """The verbs of a board as requests: what to send, and what the reply means."""


class Board(Verbs, Tasks, Watched, Sync):
    """A board over a redis-py client.

        board = Board("mails", redis.Redis())
        board.post({"to": "ann"}, name="welcome")

    `client` is a `redis.Redis` or `redis.RedisCluster`, or a URL; without it, the URL in $JOBBOARD_URL, or
    redis://127.0.0.1:6379. `sentinel://host1:26379,host2:26379/service` is a primary that Sentinels watch.
    Protocol and decoding do not matter. `codec` is how payloads and results become bytes: `json`, `msgpack`,
    `raw`, or an object with `encode` and `decode`. A board may be used by several threads.

    `task` makes functions what a `Worker` of this board runs; `handler` does so for other programs' payloads.
    """

    def __init__(
        self,
        name: str,
        client: Client | str | None = None,
        *,
        codec: str | codecs.Codec = "json",
        hook: Hook = NO_HOOK,
    ) -> None:
        self.client: Client = client_of(client)
        self.by_default = client is None
        """Its server is that of $JOBBOARD_URL."""
        super().__init__(name, codec=codec, hook=hook, block=longest_block(self.client))

    def send(self, request: Request[T]) -> T:
        guard(self)
        try:
            reply = self.client.execute_command(*encoded(request.words), NEVER_DECODE=True)  # type: ignore[no-untyped-call]
        except Exception as error:
            request.tell(error, None)
            if isinstance(error, redis.ResponseError):
                raise translated(error, request.words) from None
            if isinstance(error, (redis.ConnectionError, redis.InvalidResponse)):
                explained_of(error, self.client)
            raise
        found = request.parse(reply)
        request.tell(None, found)
        return found

    def requests(self) -> list[Requests]:
        """The verbs of this board as requests. A list: a sharded board has several."""
        own: Any = {"codec": self.codec, "hook": self.hook, "block": self.block, "handlers": self.handlers}
        return [Requests(self.key, **own)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.key!r})"

    def __reduce__(self) -> Any:
        from ..pickling import spec

        return (_rebuilt, (type(self), self.key, spec(self.client), self.codec, self.hook, self.handlers))


class AsyncBoard(Verbs, AsyncTasks, AsyncWatched, Async):
    """The same over `redis.asyncio`: each verb is awaited, listings are walked with `async for`.

    board = AsyncBoard("mails", redis.asyncio.Redis())
    await board.post({"to": "ann"}, name="welcome")
    """

    def __init__(
        self,
        name: str,
        client: AsyncClient | str | None = None,
        *,
        codec: str | codecs.Codec = "json",
        hook: Hook = NO_HOOK,
    ) -> None:
        self.client: AsyncClient = async_client_of(client)
        self.by_default = client is None
        super().__init__(name, codec=codec, hook=hook, block=longest_block(self.client))

    async def send(self, request: Request[T]) -> T:
        guard(self)
        try:
            reply = await self.client.execute_command(*encoded(request.words), NEVER_DECODE=True)
        except BaseException as error:
            request.tell(error, None)
            if isinstance(error, redis.ResponseError):
                raise translated(error, request.words) from None
            if isinstance(error, (redis.ConnectionError, redis.InvalidResponse)):
                explained_of(error, self.client)
            raise
        found = request.parse(reply)
        request.tell(None, found)
        return found

    def blocking(self) -> Board:
        """The same board, with verbs that block: a worker claims with it."""
        from ..pickling import blocking

        board = Board(self.key, blocking(self.client), codec=self.codec, hook=self.hook)
        board.handlers = self.handlers
        return board

    def __repr__(self) -> str:
        return f"AsyncBoard({self.key!r})"


def longest_block(client: Any) -> int:
    """So long a command may wait without being cut by the client's socket timeout, ms."""
    pool = getattr(client, "connection_pool", None)
    if pool is not None:
        options = pool.connection_kwargs
    elif hasattr(client, "get_connection_kwargs"):
        options = client.get_connection_kwargs()
    else:
        options = getattr(client, "connection_kwargs", {})
    timeout = options.get("socket_timeout")
    return BLOCK if timeout is None else max(min(BLOCK, int(timeout * 400)), 1)


def _rebuilt(kind: Any, key: Name, client: Any, codec: Any, hook: Any, handlers: Any) -> Any:
    board = kind(key, client(), codec=codec, hook=hook)
    board.handlers = handlers
    return board
