"""What `jobboard://[user:password@]host[:port][/db[/board]]` says.

`jobboard+rediss://…`, `jobboard+sentinel://…` and `jobboard+redis://…` are the package's own URLs behind it.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit, urlunsplit

import redis

from ..arguments import check_name
from ..connecting import check_url, connect, hidden, is_sentinel

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


CHANNEL_OPTIONS = (
    "lease",
    "session",
    "queue_order_strategy",
    "priority_order",
    "fanout_patterns",
)
"""Transport options of our channels, beside those of every virtual transport."""
OF_KOMBU = (
    *("body_encoding", "deadletter_queue", "polling_interval", "confirm_publish", "client_properties"),
    *("max_retries", "interval_start", "interval_step", "interval_max", "connect_retries_timeout"),
    *("errback", "callback", "retry_errors", "timeout"),
)
"""Transport options that kombu heeds, or hands to every transport."""
OF_REDIS = (
    *("visibility_timeout", "priority_steps", "sep", "ack_emulation", "fanout_prefix", "global_keyprefix"),
    *("queue_prefix", "unacked_key", "unacked_index_key", "unacked_mutex_key", "unacked_mutex_expire"),
    *("unacked_restore_limit", "unacked_restore_interval", "unacked_restore_throttle"),
)
"""Transport options that an application over Redis may still have: they have no meaning here."""


def check_options(options: Mapping[str, Any]) -> None:
    """Raises ValueError for a transport option that nobody knows."""
    own = ("board", *CHANNEL_OPTIONS, *CLIENT_OPTIONS)
    for unknown in options.keys() - {*own, *OF_KOMBU, *OF_REDIS}:
        near = difflib.get_close_matches(str(unknown), own, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(own)}"
        raise ValueError(f"broker_transport_options has no option {unknown!r}; {hint}")


class Address(NamedTuple):
    """A URL for redis-py or of Sentinels, and the name of a board on that server."""

    url: str
    board: str

    def client(self, options: dict[str, Any]) -> redis.Redis:
        if is_sentinel(self.url):
            return connect(self.url)
        check_url(self.url, "the URL of the broker")
        client: redis.Redis = redis.Redis.from_url(self.url, **options)
        return client


def of_connection(connection: Any) -> Address:
    """The address of a `kombu.Connection`."""
    check_options(connection.transport_options)
    named = connection.transport_options.get("board")
    if named is not None:
        check_name(named, "board")
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


def shown(url: str, include_password: bool = False, **_: Any) -> str:
    """A URL of several Sentinels as logs have it."""
    return f"jobboard+{url if include_password else hidden(url)}"


def _path(path: str) -> tuple[int, str]:
    db, _, board = path.strip("/").partition("/")
    if not (db or "0").isdecimal():
        raise ValueError(f"{path!r}: the path of the URL is the number of a database, then a board: {SHAPE}")
    return int(db or 0), board or BOARD
