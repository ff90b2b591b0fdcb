"""A client as what it takes to make it anew: in another process, or one of asyncio as one that blocks."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import redis
import redis.asyncio
import redis.asyncio.sentinel
import redis.sentinel
from redis.connection import ConnectionPool


@dataclass
class Spec:
    """Makes a client when it is called."""

    kind: Any
    pool: Any
    connection: Any
    options: dict[str, Any]

    def __call__(self) -> Any:
        if self.pool is None:
            return self.kind(**self.options)
        pool = self.pool(connection_class=self.connection, **self.options)
        return self.kind(connection_pool=pool)


@dataclass
class SentinelSpec:
    """The same of a client whose server Sentinels name."""

    hosts: list[tuple[str, int]]
    own: dict[str, Any]
    options: dict[str, Any]
    service: str
    primary: bool

    def __call__(self) -> Any:
        watching: Any = redis.sentinel.Sentinel
        watched = watching(self.hosts, sentinel_kwargs=self.own, **self.options)
        return (watched.master_for if self.primary else watched.slave_for)(self.service)


def spec(client: Any) -> Callable[[], Any]:
    """Raises TypeError for a client that cannot be made anew: one with a pool of its own."""
    if isinstance(client, redis.RedisCluster):
        nodes = [
            redis.cluster.ClusterNode(str(node.host), node.port)  # type: ignore[no-untyped-call]
            for node in client.nodes_manager.startup_nodes.values()
        ]
        options = {
            name: value
            for name, value in client.get_connection_kwargs().items()  # type: ignore[no-untyped-call]
            if name in ("username", "password", "protocol", "socket_timeout", "ssl", "decode_responses")
        }
        return Spec(type(client), None, None, {"startup_nodes": nodes, **options})
    pool = client.connection_pool
    if type(pool) is redis.sentinel.SentinelConnectionPool:
        watched = pool.sentinel_manager
        hosts = [one.connection_pool.connection_kwargs for one in watched.sentinels]
        return SentinelSpec(
            [(one["host"], one["port"]) for one in hosts],
            watched.sentinel_kwargs,
            _kept(watched.connection_kwargs),
            pool.service_name,
            pool.is_master,
        )
    if not issubclass(type(pool), ConnectionPool) or type(pool).__module__ != "redis.connection":
        raise TypeError(f"a {type(pool).__name__} cannot be sent to another process")
    return Spec(type(client), type(pool), pool.connection_class, _kept(pool.connection_kwargs))


def sendable(value: Any) -> bool:
    """Whether it can be sent to another process."""
    try:
        pickle.dumps(value)
    except Exception:
        return False
    return True


def blocking(client: Any) -> Any:
    """A client that blocks, of the same server as one of redis.asyncio. Raises TypeError when it has a
    connection class of its own.
    """
    if isinstance(client, redis.asyncio.RedisCluster):
        nodes: list[Any] = [
            redis.cluster.ClusterNode(str(node.host), node.port)  # type: ignore[no-untyped-call]
            for node in client.nodes_manager.startup_nodes.values()
        ]
        options = _shared(client.connection_kwargs)
        is_tls = client.connection_kwargs["connection_class"] is redis.asyncio.SSLConnection
        return redis.RedisCluster(startup_nodes=nodes, ssl=is_tls, **options)
    pool = client.connection_pool
    if isinstance(pool, redis.asyncio.sentinel.SentinelConnectionPool):
        watched = pool.sentinel_manager
        hosts = [one.connection_pool.connection_kwargs for one in watched.sentinels]
        return SentinelSpec(
            [(one["host"], one["port"]) for one in hosts],
            watched.sentinel_kwargs,
            watched.connection_kwargs,
            pool.service_name,
            pool.is_master,
        )()
    kind = BLOCKING.get(pool.connection_class)
    if kind is None:
        raise TypeError(
            f"a {pool.connection_class.__name__} has no form that blocks: give the Worker a Board"
        )
    return redis.Redis(
        connection_pool=ConnectionPool(connection_class=kind, **_shared(pool.connection_kwargs))
    )


def _kept(options: dict[str, Any]) -> dict[str, Any]:
    """The options that a client is made of, and not what redis-py keeps among them for itself."""
    return {
        name: value
        for name, value in options.items()
        if name not in DROPPED and (not type(value).__module__.startswith("redis.") or sendable(value))
    }


def _shared(options: dict[str, Any]) -> dict[str, Any]:
    """The options that mean the same in both worlds."""
    return {name: value for name, value in options.items() if name in SHARED or name.startswith("ssl_")}


BLOCKING: dict[Any, Any] = {
    redis.asyncio.Connection: redis.Connection,
    redis.asyncio.SSLConnection: redis.SSLConnection,
    redis.asyncio.UnixDomainSocketConnection: redis.UnixDomainSocketConnection,
}

SHARED = set(
    "host port path db username password credential_provider client_name protocol socket_timeout "
    "socket_connect_timeout socket_keepalive health_check_interval".split()
)

DROPPED = {
    "maint_notifications_config",
    "maint_notifications_pool_handler",
    "oss_cluster_maint_notifications_handler",
}
"""Options that redis-py itself puts there, with references to the pool."""
