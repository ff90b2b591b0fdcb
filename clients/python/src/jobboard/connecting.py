"""Clients of a server at a URL: those of redis-py, and `sentinel://` for a primary that Sentinels watch."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import redis
import redis.asyncio
import redis.connection
import redis.sentinel

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


def connect(url: str | None = None) -> redis.Redis:
    """A client of the server at a URL; without one, at $JOBBOARD_URL."""
    url = url or default_url()
    if not is_sentinel(url):
        client: redis.Redis = _of_url(redis.Redis, url)
        return client
    found = sentinels(url)
    watching: Any = redis.sentinel.Sentinel
    watched = watching(found.hosts, sentinel_kwargs=found.own, **found.options)
    primary: redis.Redis = watched.master_for(found.service)
    return primary


def connect_async(url: str | None = None) -> redis.asyncio.Redis:
    """The same for asyncio."""
    url = url or default_url()
    if not is_sentinel(url):
        client: redis.asyncio.Redis = _of_url(redis.asyncio.Redis, url)
        return client
    found = sentinels(url)
    watching: Any = redis.asyncio.sentinel.Sentinel
    watched = watching(found.hosts, sentinel_kwargs=found.own, **found.options)
    primary: redis.asyncio.Redis = watched.master_for(found.service)
    return primary


def _of_url(kind: Any, url: str) -> Any:
    try:
        return kind.from_url(url)
    except ValueError as error:
        raise ValueError(f"{hidden(url)!r} is no URL of a server, such as {URL}: {error}") from error


def hidden(url: str) -> str:
    """A URL without its user and password."""
    return re.sub("//.*@", "//…@", url)


def is_sentinel(url: str) -> bool:
    return url.partition("://")[0].lower() in SCHEMES


def sentinels(url: str) -> Sentinels:
    """Reads a Sentinel URL; raises ValueError when it is none."""
    scheme, _, rest = url.partition("://")
    head, _, query = rest.partition("?")
    place, _, path = head.partition("/")
    user, at, hosts = place.rpartition("@")
    service, _, db = path.partition("/")
    try:
        found = [(one.hostname or "", one.port or PORT) for one in map(_split, hosts.split(","))]
    except ValueError as error:
        raise ValueError(f"the URL of Sentinels is {SHAPE}: {error}") from error
    if not service or not all(host for host, _ in found) or not (db or "0").isdecimal():
        raise ValueError(f"the URL of Sentinels is {SHAPE}, with the name of the service that they watch")
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
    if isinstance(client, redis.RedisCluster):
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
