"""A cluster of servers: primaries that share the slots evenly, each with its replicas."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import redis
from redis.cluster import RedisCluster
from redis.crc import key_slot
from redis.exceptions import RedisClusterException

from .board import Board
from .server import Server
from .waiting import PATIENCE, wait_until

SLOTS = 16384
CONFIG = (
    "cluster-enabled yes",
    "cluster-node-timeout 5000",  # on a busy machine a node may stand still for some seconds
    "cluster-require-full-coverage no",
    "cluster-migration-barrier 99",
)


class Cluster:
    """`Cluster("redis70", primaries=3, replicas=1)`: whole and in agreement when constructed."""

    def __init__(
        self,
        kind: str,
        *module_args: object,
        primaries: int = 3,
        replicas: int = 0,
        config: Sequence[str] = (),
    ) -> None:
        self.kind = kind
        self._clients: list[Any] = []
        count = primaries * (1 + replicas)
        self.servers = [Server(kind, *module_args, config=[*CONFIG, *config]) for _ in range(count)]
        self.primaries = self.servers[:primaries]
        first = self.primaries[0]
        for number, server in enumerate(self.primaries):
            bounds = [SLOTS * n // primaries for n in (number, number + 1)]
            self.ask(server, "CLUSTER", "ADDSLOTSRANGE", bounds[0], bounds[1] - 1)
            self.ask(server, "CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for server in self.servers[1:]:
            self.ask(server, "CLUSTER", "MEET", "127.0.0.1", first.port)
        for server in self.servers:
            wait_until(lambda s=server: self.known(s) == count, what="all nodes know each other")
        for number, server in enumerate(self.servers[primaries:]):
            self.ask(server, "CLUSTER", "REPLICATE", self.id(self.primaries[number % primaries]))
        for server in self.servers:
            wait_until(lambda s=server: self.is_whole(s), what="all slots are known")
            wait_until(lambda s=server: self.replicas_known(s) == count - primaries, what="replicas known")
        for server in self.servers[primaries:]:
            wait_until(lambda s=server: s.info("replication").get("master_link_status") == "up", what="link")

    def ask(self, server: Server, *words: Any) -> Any:
        """One command, to exactly this node."""
        with server.connect() as client:
            return client.execute_command(*words)

    def id(self, server: Server) -> str:
        return self.ask(server, "CLUSTER", "MYID")

    def state(self, server: Server) -> dict:
        state = self.ask(server, "CLUSTER", "INFO")
        if isinstance(state, dict):
            return state
        return dict(line.split(":", 1) for line in state.split("\r\n") if ":" in line)

    def is_whole(self, server: Server) -> bool:
        """Whether this node knows who has each slot."""
        state = self.state(server)
        return state["cluster_state"] == "ok" and int(state["cluster_slots_assigned"]) == SLOTS

    def known(self, server: Server) -> int:
        return int(self.state(server)["cluster_known_nodes"])

    def replicas_known(self, server: Server) -> int:
        """How many replicas of the cluster this node knows as such."""
        nodes = self.ask(server, "CLUSTER", "NODES")
        text = nodes if isinstance(nodes, str) else "\n".join(str(node) for node in nodes.values())
        return text.count("slave")

    def failover(self, replica: Server) -> None:
        """Promotes a replica by hand; asked again when the vote was missed."""
        for _ in range(4):
            self.ask(replica, "CLUSTER", "FAILOVER")
            try:
                wait_until(lambda: replica.info("replication")["role"] == "master", 12, what="promotion")
                return
            except AssertionError:
                continue
        raise AssertionError(f"not promoted\n{replica.log_end()}")

    def client(self, **arguments: Any) -> RedisCluster:
        """A cluster client with text replies."""
        defaults = {
            **{"decode_responses": True, "protocol": 3},
            # Or redis-py resends after five seconds what a busy server may have done.
            **{"socket_timeout": 40 * PATIENCE, "socket_connect_timeout": 30 * PATIENCE},
        }

        def connected() -> RedisCluster | None:
            # On a busy machine a node may lose sight of another for a moment.
            with contextlib.suppress(RedisClusterException):
                return RedisCluster("127.0.0.1", self.primaries[0].port, **{**defaults, **arguments})
            return None

        client = wait_until(connected, what="a client of the cluster")
        self._clients.append(client)
        return client

    def board(self, key: str = "board", **arguments: Any) -> Board:
        return Board(self.client(**arguments), key)

    def slot(self, key: str) -> int:
        return key_slot(key.encode())

    def owner(self, key: str) -> Server:
        """The node that serves the key's slot, as the first primary sees it."""
        slot = self.slot(key)
        for begin, end, primary, *_ in self.ask(self.primaries[0], "CLUSTER", "SLOTS"):
            if begin <= slot <= end:
                return next(server for server in self.servers if server.port == primary[1])
        raise AssertionError(f"nobody owns slot {slot}")

    def replica_of(self, primary: Server) -> Server:
        for server in self.servers:
            info = server.info("replication")
            if info["role"] == "slave" and info["master_port"] == primary.port:
                return server
        raise AssertionError("it has no replica")

    def begin_migration(self, slot: int, source: Server, target: Server) -> None:
        self.ask(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", self.id(source))
        self.ask(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", self.id(target))

    def move(self, key: str, source: Server, target: Server) -> None:
        """Moves one key by MIGRATE."""
        self.ask(source, "MIGRATE", "127.0.0.1", target.port, key, 0, 60_000)

    def end_migration(self, slot: int, target: Server) -> None:
        for server in [target, *(s for s in self.primaries if s is not target)]:
            self.ask(server, "CLUSTER", "SETSLOT", slot, "NODE", self.id(target))

    def check_health(self) -> None:
        for server in self.servers:
            if server.process is not None:
                server.check_health()

    def close(self) -> None:
        for client in self._clients:
            client.close()
        for server in self.servers:
            server.close()


def asking(server: Server) -> redis.Redis:
    """A client of one node whose every command is preceded by ASKING."""
    client = server.client(single_connection_client=True)
    send = client.execute_command

    def execute(*words: Any, **options: Any) -> Any:
        send("ASKING")
        return send(*words, **options)

    client.execute_command = execute  # type: ignore[method-assign]
    return client
