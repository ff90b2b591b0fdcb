"""What `jobboard://[user:password@]host[:port][/db[/board]]` says.

`jobboard+rediss://…`, `jobboard+sentinel://…` and `jobboard+redis://…` are the package's own URLs behind it.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit, urlunsplit

import redis

from ..connecting import connect, is_sentinel

BOARD = "celery-jobs"
"""The board unless another is named. Not `celery`: Celery's redis transport has a list of that name."""

PORT = 6379
SHAPE = "jobboard://[user:password@]host[:port][/db[/board]]"
CLIENT_OPTIONS = (
    "socket_timeout",
    "socket_connect_timeout",
    "socket_keepalive",
    "socket_keepalive_options",
    "health_check_interval",
    "max_connections",
    "retry_on_timeout",
    "client_name",
)
"""Transport options that go to redis-py, as with kombu's redis transport."""


class Address(NamedTuple):
    """A URL for redis-py or of Sentinels, and the name of a board on that server."""

    url: str
    board: str

    def client(self, options: dict[str, Any]) -> redis.Redis:
        if is_sentinel(self.url):
            return connect(self.url)
        client: redis.Redis = redis.Redis.from_url(self.url, **options)
        return client


def of_connection(connection: Any) -> Address:
    """The address of a `kombu.Connection`."""
    named = connection.transport_options.get("board")
    if "://" in (connection.hostname or ""):  # jobboard+rediss://…
        found = of_url(connection.hostname)
        return found if named is None else found._replace(board=named)
    user = "" if connection.userid is None else quote(connection.userid, safe="")
    password = "" if connection.password is None else ":" + quote(connection.password, safe="")
    login = f"{user}{password}@" if user or password else ""
    host = connection.hostname or "127.0.0.1"
    host = f"[{host}]" if ":" in host else host
    db, board = _path(connection.virtual_host or "")
    scheme = "rediss" if connection.ssl else "redis"
    return Address(f"{scheme}://{login}{host}:{connection.port or PORT}/{db}", named or board)


def of_url(url: str) -> Address:
    """The address of a URL with the scheme `jobboard`, or of one that stands behind `jobboard+`."""
    url = url.removeprefix("jobboard+")
    if is_sentinel(url):  # sentinel://host,host/service/db[/board]
        head, mark, query = url.partition("?")
        scheme, _, rest = head.partition("://")
        hosts, *path = rest.split("/")
        service_db, board = path[:2], "/".join(path[2:])
        return Address(f"{scheme}://{'/'.join([hosts, *service_db])}{mark}{query}", board or BOARD)
    parts = urlsplit(url)
    db, board = _path(parts.path)
    scheme = "redis" if parts.scheme == "jobboard" else parts.scheme
    place = parts.netloc or f"127.0.0.1:{PORT}"
    return Address(urlunsplit((scheme, place, f"/{db}", parts.query, "")), board)


def _path(path: str) -> tuple[int, str]:
    db, _, board = path.strip("/").partition("/")
    if not (db or "0").isdecimal():
        raise ValueError(f"{path!r}: the path of the URL is the number of a database, then a board: {SHAPE}")
    return int(db or 0), board or BOARD
