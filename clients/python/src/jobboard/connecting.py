"""Clients of a server at a URL: those of redis-py, and `sentinel://` for a primary that Sentinels watch."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import redis
import redis.asyncio
import redis.connection
import redis.sentinel

from .errors import NAMES, NO_NODE, explained

T = TypeVar("T")

if TYPE_CHECKING:
    Client = redis.Redis | redis.RedisCluster
    AsyncClient = redis.asyncio.Redis | redis.asyncio.RedisCluster

URL = "redis://127.0.0.1:6379"
SCHEMES = {"sentinel": "redis", "redis+sentinel": "redis", "rediss+sentinel": "rediss"}
"""Schemes of Sentinels, with that of the servers behind them."""

PORT = 26379
SHAPE = "sentinel://[user:password@]host1:26379,host2:26379/service[/db]"
PATIENCE = {"socket_timeout": 2.0, "socket_connect_timeout": 2.0}
"""A Sentinel that does not answer is passed over after so many seconds."""


TROUBLE = (redis.ConnectionError, redis.TimeoutError, OSError)
"""No answer, or none from a server that can work: ask again later."""

BROKEN = (AttributeError, TypeError, ValueError)
"""What redis-py raises when a connection goes while it is at it: its buffers are gone, or another thread has
closed them (a TypeError with hiredis)."""


class _Leaving:
    """A connection to a primary that Sentinels name. One that was refused with NOREPLICAS is made anew for
    the next command: the primary may be cut off, and have a successor.
    """

    _cut_off = False

    def _look(self, error: redis.ResponseError) -> None:
        if str(error).startswith("NOREPLICAS"):
            self._cut_off = True


class _Blocking(_Leaving):
    def read_response(self, *words: Any, **options: Any) -> Any:
        found: Any = super()
        try:
            return found.read_response(*words, **options)
        except redis.ResponseError as error:
            self._look(error)
            raise

    def send_packed_command(self, *words: Any, **options: Any) -> None:
        found: Any = super()
        if self._cut_off:
            self._cut_off = False
            found.disconnect()
        found.send_packed_command(*words, **options)


class _Awaited(_Leaving):
    async def read_response(self, *words: Any, **options: Any) -> Any:
        found: Any = super()
        try:
            return await found.read_response(*words, **options)
        except redis.ResponseError as error:
            self._look(error)
            raise

    async def send_packed_command(self, *words: Any, **options: Any) -> None:
        found: Any = super()
        if self._cut_off:
            self._cut_off = False
            await found.disconnect()
        await found.send_packed_command(*words, **options)


class _Plain(_Blocking, redis.sentinel.SentinelManagedConnection):
    pass


class _Tls(_Blocking, redis.sentinel.SentinelManagedSSLConnection):
    pass


class _AsyncPlain(_Awaited, redis.asyncio.sentinel.SentinelManagedConnection):
    pass


class _AsyncTls(_Awaited, redis.asyncio.sentinel.SentinelManagedSSLConnection):
    pass


class Sentinels(NamedTuple):
    """What a Sentinel URL says. User, password, db and the options of the query are those of the servers;
    options that begin with `sentinel_` are those of the Sentinels. TLS is for both.
    """

    hosts: list[tuple[str, int]]
    service: str
    options: dict[str, Any]
    own: dict[str, Any]


def default_url() -> str:
    return os.environ.get("JOBBOARD_URL") or URL


def connect(url: str | None = None, *, name: str = "the URL") -> redis.Redis:
    """A client of the server at a URL; without one, at $JOBBOARD_URL. `name` is what errors call the URL."""
    url, name = _given(url, name)
    if not is_sentinel(url):
        client: redis.Redis = _of_url(redis.Redis, url, name)
        return _named(client, name)
    found = sentinels(url, name)
    watching: Any = redis.sentinel.Sentinel
    watched = watching(found.hosts, sentinel_kwargs=found.own, **found.options)
    kind = _Tls if found.options.get("ssl") else _Plain
    primary: redis.Redis = watched.master_for(found.service, connection_class=kind)
    return _named(primary, name)


def connect_async(url: str | None = None) -> redis.asyncio.Redis:
    """The same for asyncio."""
    url, name = _given(url, "the URL")
    if not is_sentinel(url):
        client: redis.asyncio.Redis = _of_url(redis.asyncio.Redis, url, name)
        return _named(client, name)
    found = sentinels(url, name)
    watching: Any = redis.asyncio.sentinel.Sentinel
    watched = watching(found.hosts, sentinel_kwargs=found.own, **found.options)
    kind = _AsyncTls if found.options.get("ssl") else _AsyncPlain
    primary: redis.asyncio.Redis = watched.master_for(found.service, connection_class=kind)
    return _named(primary, name)


def connect_cluster(url: str | None = None, *, name: str = "the URL") -> redis.RedisCluster:
    """A client of the cluster of which a node is at a URL."""
    url, name = _given(url, name)
    if is_sentinel(url):
        raise ValueError(f"{hidden(url)!r} in {name} is of Sentinels, which watch no cluster: name a node")
    _of_url(redis.Redis, url, name)  # raises for what is none
    try:
        client: redis.RedisCluster = redis.RedisCluster.from_url(url)
    except (redis.exceptions.RedisClusterException, redis.ConnectionError) as error:
        said = redis.ConnectionError(f"{NO_NODE} {hidden(url)} in {name}: {error}")
        raise explained(said, name, "cluster") from error
    return _named(client, name)


_NAMES: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
"""What says where the server of a client is."""


def _named(client: T, name: str) -> T:
    if name != "the URL":
        _NAMES[client] = name
    return client


def name_of(client: Any) -> str:
    """What says where the server of a client is: an option, $JOBBOARD_URL …"""
    return _NAMES.get(client, NAMES)


def explained_of(error: Exception, client: Any) -> Exception:
    """An error of a client's connection, with what to do in its text."""
    return explained(error, name_of(client), _among(client))


def _among(client: Any) -> str:
    """What its server belongs to, of `AMONG`."""
    if isinstance(client, (redis.RedisCluster, redis.asyncio.RedisCluster)):
        return "cluster"
    pools = (redis.sentinel.SentinelConnectionPool, redis.asyncio.sentinel.SentinelConnectionPool)
    return "sentinels" if isinstance(getattr(client, "connection_pool", None), pools) else "server"


def name_of_default() -> str:
    """What says where the server is when no option does."""
    return "$JOBBOARD_URL" if os.environ.get("JOBBOARD_URL") else NAMES


def _given(url: str | None, name: str) -> tuple[str, str]:
    """The URL, and what says it."""
    if url is not None:
        return url, name
    return default_url(), "$JOBBOARD_URL" if os.environ.get("JOBBOARD_URL") else "the URL"


def check_url(url: str, name: str = "the URL") -> None:
    """Raises ValueError for what is no URL of a server, and for a path that is no number of a database, for
    which redis-py takes database 0.
    """
    _check_password(url, name)
    parts = urlsplit(url)
    if parts.scheme in ("redis", "rediss") and not _is_database(parts.path.strip("/")):
        raise ValueError(
            f"{hidden(url)!r} in {name} names the database {parts.path.strip('/')!r}: write its number, "
            f"such as {URL}/0"
        )


def _check_password(url: str, name: str) -> None:
    """Raises ValueError for a user or a password that ends at one of `/?#`: what follows would be taken for
    something else, and be shown.
    """
    scheme, _, after = url.partition("://")
    hosts = re.split("[/?#]", after, maxsplit=1)[0]
    path, _, query = after.removeprefix(hosts).partition("?")
    is_cut = "@" in query and not re.fullmatch(r"(.*@)?(\[.*\]|[^:]+)(:[0-9]+)?(,.*)?", hosts)
    if scheme != "unix" and ("@" in path or is_cut):
        raise ValueError(
            f"{hidden(url)!r} in {name}: a / of a user or a password is written %2F there, ? %3F, and # %23"
        )


def _is_database(text: str) -> bool:
    return not text or (text.isascii() and text.isdecimal())


def _of_url(kind: Any, url: str, name: str) -> Any:
    try:
        check_url(url, name)
        client = kind.from_url(url)
        pool = client.connection_pool
        pool.connection_class(**pool.connection_kwargs)  # raises for what is no option
    except (ValueError, TypeError) as error:
        said = str(error).partition(" got an unexpected keyword argument ")[2]
        why = f"there is no option {said}" if said else str(error)
        if why.startswith(repr(hidden(url))):
            raise
        raise ValueError(f"{hidden(url)!r} in {name} is no URL of a server, such as {URL}: {why}") from error
    return client


def hidden(url: str) -> str:
    """A URL without its user and password."""
    return re.sub("//.*@", "//…@", url)


def is_sentinel(url: str) -> bool:
    return url.partition("://")[0].lower() in SCHEMES


def sentinels(url: str, name: str = "the URL") -> Sentinels:
    """Reads a Sentinel URL; raises ValueError when it is none."""
    _check_password(url, name)
    scheme, _, rest = url.partition("://")
    head, _, query = rest.partition("?")
    place, _, path = head.partition("/")
    user, at, hosts = place.rpartition("@")
    service, _, db = path.partition("/")
    try:
        found = [(one.hostname or "", one.port or PORT) for one in map(_split, hosts.split(","))]
    except ValueError as error:
        raise ValueError(f"{hidden(url)!r} in {name}: the URL of Sentinels is {SHAPE}: {error}") from error
    if not service or not all(host for host, _ in found) or not _is_database(db):
        raise ValueError(
            f"{hidden(url)!r} in {name}: the URL of Sentinels is {SHAPE}, with the name of the service that "
            "they watch and the number of a database"
        )
    parse: Any = redis.connection.parse_url
    options: dict[str, Any] = parse(f"{SCHEMES[scheme.lower()]}://{user}{at}server/{db}?{query}")
    options.pop("host")
    prefix = "sentinel_"
    own = {name[len(prefix) :]: options.pop(name) for name in list(options) if name.startswith(prefix)}
    own = {name: float(value) if name in PATIENCE else value for name, value in own.items()}
    if options.pop("connection_class", None) is not None:
        options["ssl"] = True
        own.update({name: value for name, value in options.items() if name.startswith("ssl")})
    return Sentinels(found, service, options, {**PATIENCE, **own})


def _split(host: str) -> Any:
    return urlsplit(f"//{host}")


def place_of(client: Any) -> str:
    """Where its server is, without passwords."""
    if isinstance(client, (redis.RedisCluster, redis.asyncio.RedisCluster)):
        return f"a cluster ({', '.join(client.nodes_manager.startup_nodes)})"
    pool = client.connection_pool
    if isinstance(pool, redis.sentinel.SentinelConnectionPool):
        own = [one.connection_pool.connection_kwargs for one in pool.sentinel_manager.sentinels]
        hosts = ", ".join(f"{one['host']}:{one['port']}" for one in own)
        return f"the primary of {pool.service_name} (Sentinels {hosts})"
    options = pool.connection_kwargs
    if "path" in options:
        return f"{options['path']}, db {options.get('db', 0)}"
    return f"{options.get('host', 'localhost')}:{options.get('port', 6379)}, db {options.get('db', 0)}"


def client_of(client: Any) -> Client:
    """The client that a board was given, or one of its URL."""
    if client is None or isinstance(client, str):
        return connect(client)
    if isinstance(client, (redis.asyncio.Redis, redis.asyncio.RedisCluster)):
        raise TypeError("this client is one of redis.asyncio: use AsyncBoard, or give Board a redis.Redis")
    if not hasattr(client, "execute_command"):
        raise TypeError(f"a board needs a redis.Redis, a redis.RedisCluster or a URL, not {client!r:.100}")
    found: Client = client
    return found


def async_client_of(client: Any) -> AsyncClient:
    """The same for asyncio."""
    if client is None or isinstance(client, str):
        return connect_async(client)
    if isinstance(client, (redis.Redis, redis.RedisCluster)):
        raise TypeError(
            "this client is not one of redis.asyncio: use Board, or give it a redis.asyncio.Redis"
        )
    if not hasattr(client, "execute_command"):
        raise TypeError(f"a board needs a redis.asyncio.Redis, a RedisCluster or a URL, not {client!r:.100}")
    found: AsyncClient = client
    return found
