"""How a worker talks to the server: a connection of its own, or a cluster's client."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from typing import Any

import redis

from ..arguments import encoded
from ..connecting import BROKEN

_AWAY = {
    "UNBLOCKED",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "NOREPLICAS",
    "MISCONF",
    "LOADING",
    "BUSY",
    "READONLY",
}
"""Codes of a server that cannot work now, but that one will be able to: a replica, one that is loading …"""

Reply = Any


class Away(redis.ConnectionError):
    """The server answered that it cannot work now."""


def connection_of(client: Any, key: str | None = None) -> Connection | ClusterConnection:
    """`key`: that of the board which all commands are for. A cluster's client then asks no node for it."""
    return ClusterConnection(client, key) if isinstance(client, redis.RedisCluster) else Connection(client)


class Connection:
    """One connection out of the client's pool. After trouble it goes back there, and the next `ask` takes one
    anew: the pool alone asks a Sentinel which server is the primary now.

    redis-py's own resending is not used: what is sent again, and when, is the worker's business.
    """

    node: str | None = None
    """There is but one."""

    def __init__(self, client: redis.Redis) -> None:
        self._pool = client.connection_pool
        self._connection: Any = None
        self._asked: float | None = None
        """When the command under way was sent, by the monotonic clock."""

    def ask(self, commands: list[list[Any]]) -> list[Reply]:
        """Sends commands in one write; the replies in their order, refusals as exceptions in their places."""
        sent = [encoded(words) for words in commands]
        self._asked = time.monotonic()
        try:
            with _broken_is_lost():
                connection = self._connection or self._connect()
                one = len(sent) == 1
                packed = connection.pack_command(*sent[0]) if one else connection.pack_commands(sent)
                connection.send_packed_command(packed)
                found = [_read(connection) for _ in sent]
            _check(found)
            return found
        except BaseException:
            self.close()
            raise
        finally:
            self._asked = None

    def give_up(self, after: float) -> None:
        """Ends a wait in `ask` that has got no answer for so many seconds, where the client has no timeout: a
        server that went without a word never answers.
        """
        asked, connection = self._asked, self._connection
        if asked is None or time.monotonic() - asked < after:
            return
        if getattr(_behind_cache(connection), "socket_timeout", None) is None:
            self.interrupt()

    def interrupt(self) -> None:
        """Ends a wait in `ask` from another thread: it raises ConnectionError there."""
        # Only the socket: redis-py's buffers are the other thread's.
        connected = getattr(_behind_cache(self._connection), "_sock", None)
        if connected is not None:
            with contextlib.suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)

    def release(self) -> None:
        """Puts the connection back into the pool, for others."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.release(connection)

    def forget(self) -> None:
        """In a forked child: drops the connection without closing it for the parent."""
        connected = getattr(_behind_cache(self._connection), "_sock", None)
        self._connection = None
        if connected is not None:
            connected.close()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.disconnect()
            self._pool.release(connection)

    def _connect(self) -> Any:
        try:
            self._connection = self._pool.get_connection()
        except TypeError:  # redis-py before 5.3 asks for a command's name
            self._connection = self._pool.get_connection("JOB.CLAIM")
        return self._connection


class ClusterConnection:
    """The same over a cluster's client, which finds the node of each command, and follows keys that move.

    Without `target_nodes` redis-py sends a command again that may have been done. With it, redis-py repeats
    only what a server has refused.
    """

    def __init__(self, client: redis.RedisCluster, key: str | None = None) -> None:
        self._client = client
        cluster: Any = client
        self._slot: Any = None if key is None else cluster.keyslot(encoded([key])[0])

    def ask(self, commands: list[list[Any]]) -> list[Reply]:
        found: list[Reply] = []
        for words in commands:
            sent = encoded(words)
            try:
                with _broken_is_lost():
                    node = self._node_of(sent)
                    found.append(
                        self._client.execute_command(*sent, NEVER_DECODE=True, target_nodes=node)  # type: ignore[no-untyped-call]
                    )
            except redis.ConnectionError:
                raise
            except redis.ResponseError as error:
                found.append(error)
            except redis.exceptions.RedisClusterException as error:
                raise Away(str(error)) from error
        _check(found)
        return found

    def _node_of(self, words: list[Any]) -> Any:
        nodes: Any = self._client.nodes_manager
        slot = self._client.determine_slot(*words) if self._slot is None else self._slot
        try:
            return nodes.get_node_from_slot(slot)
        except redis.exceptions.SlotNotCoveredError:
            nodes.initialize()
            return nodes.get_node_from_slot(slot)

    @property
    def node(self) -> str | None:
        """That of its board, as far as is known."""
        try:
            return str(self._client.nodes_manager.get_node_from_slot(self._slot).name)
        except redis.exceptions.SlotNotCoveredError:
            return None

    def interrupt(self) -> None:
        """A cluster's client cannot be interrupted: the wait ends by itself."""

    def give_up(self, after: float) -> None:
        """Nor this."""

    def close(self) -> None:
        """The client is the caller's."""


def _behind_cache(connection: Any) -> Any:
    """The connection itself, where the client caches what it reads (`cache_config`)."""
    return getattr(connection, "_conn", connection)


@contextlib.contextmanager
def _broken_is_lost() -> Iterator[None]:
    """Not around what encodes a user's values: their ValueErrors are the user's."""
    try:
        yield
    except BROKEN as error:
        raise redis.ConnectionError(str(error)) from error


def _read(connection: Any) -> Reply:
    try:
        return connection.read_response(disable_decoding=True)
    except redis.ConnectionError:
        raise
    except redis.ResponseError as error:
        return error


def _check(found: list[Reply]) -> None:
    for reply in found:
        if isinstance(reply, redis.ResponseError) and away(reply):
            raise Away(str(reply)) from reply


def away(error: redis.ResponseError) -> bool:
    if isinstance(error, (redis.ReadOnlyError, redis.exceptions.MasterDownError)):
        return True
    if isinstance(error, (redis.exceptions.ClusterDownError, redis.exceptions.TryAgainError)):
        return True
    code: str | None = getattr(error, "status_code", None)
    return (code or str(error).partition(" ")[0]) in _AWAY
