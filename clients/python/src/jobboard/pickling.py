"""A client as what it takes to make it anew, in another process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import redis
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
            {name: value for name, value in watched.connection_kwargs.items() if name not in DROPPED},
            pool.service_name,
            pool.is_master,
        )
    if not issubclass(type(pool), ConnectionPool) or type(pool).__module__ != "redis.connection":
        raise TypeError(f"a {type(pool).__name__} cannot be sent to another process")
    options = {name: value for name, value in pool.connection_kwargs.items() if name not in DROPPED}
    return Spec(type(client), type(pool), pool.connection_class, options)


DROPPED = {
    "maint_notifications_config",
    "maint_notifications_pool_handler",
    "oss_cluster_maint_notifications_handler",
}
"""Options that redis-py itself puts there, with references to the pool."""
