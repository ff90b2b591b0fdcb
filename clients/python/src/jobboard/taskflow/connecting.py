"""Clients from the configuration of a jobboard: the options of TaskFlow's own redis board."""

from __future__ import annotations

from typing import Any

from oslo_utils import netutils, strutils
from redis import maint_notifications, sentinel
from taskflow.utils import redis_utils

OPTIONS = {
    "host": str,
    "port": int,
    "username": str,
    "password": str,
    "encoding": str,
    "encoding_errors": str,
    "socket_timeout": float,
    "socket_connect_timeout": float,
    "retry_on_timeout": strutils.bool_from_string,
    "health_check_interval": int,
    "unix_socket_path": str,
    "ssl": strutils.bool_from_string,
    "ssl_keyfile": str,
    "ssl_certfile": str,
    "ssl_cert_reqs": str,
    "ssl_ca_certs": str,
    "db": int,
}
"""Options that go to redis-py, with what they are made of a text."""

UNTOLD = 5.0
"""Seconds after which redis-py gives up a read when it is told nothing."""


def make_client(conf: dict) -> Any:
    """A client for `conf`; through Sentinel when it names one (`sentinel`, `sentinel_fallbacks`,
    `sentinel_kwargs`). A closed one raises redis.ConnectionError when it is used."""
    options = {name: convert(conf[name]) for name, convert in OPTIONS.items() if name in conf}
    if "host" not in options and conf.get("hostname"):  # of a URI: the host, and the port if it has one
        options["host"] = str(conf["hostname"]).removesuffix(f":{conf.get('port')}")
    # A command of Redis 8.2 which other servers answer with an error at each connect.
    options["maint_notifications_config"] = maint_notifications.MaintNotificationsConfig(enabled=False)
    if conf.get("sentinel") is None:
        return redis_utils.RedisClient(**options)
    first = (options.pop("host", "localhost"), options.pop("port", 26379))
    others = [host_and_port(one) for one in conf.get("sentinel_fallbacks", [])]
    own = conf.get("sentinel_kwargs")
    found = sentinel.Sentinel(
        [first, *others], sentinel_kwargs=None if own is None else without_tls(own), **without_tls(options)
    )
    return found.master_for(conf["sentinel"])


def host_and_port(text: str) -> tuple[str, int]:
    host, port = netutils.parse_host_port(text)
    if host is None or port is None:
        raise ValueError(f"a sentinel is host:port, not {text!r}")
    return host, port


def without_tls(options: dict) -> dict:
    """Without what only a connection by TLS takes, when there is none."""
    if options.get("ssl"):
        return options
    return {name: value for name, value in options.items() if not name.startswith("ssl_")}


def patience(client: Any) -> float:
    """Seconds that a command may wait on the server without this client giving up on it; at most 2."""
    options = client.connection_pool.connection_kwargs
    timeout = options.get("socket_timeout", UNTOLD)
    return 2.0 if timeout is None else min(2.0, timeout / 2)
