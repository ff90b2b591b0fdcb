"""A primary with a replica, and three Sentinels that watch them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import redis
from harness import Server, wait_until
from servers import NAME, Sentinel

CONFIG = ["repl-timeout 5"]


class Watched:
    def __init__(self, fresh_server: Callable[..., Server], kind: str) -> None:
        first = fresh_server(config=CONFIG)
        self.servers = [first, fresh_server(config=CONFIG, replicaof=first)]
        self.servers[1].wait_synced(first)
        self.sentinels = [Sentinel(kind, first.port) for _ in range(3)]
        hosts = ",".join(f"127.0.0.1:{one.port}" for one in self.sentinels)
        self.url = f"sentinel://{hosts}/{NAME}"
        wait_until(self._ready, 20, what="the Sentinels know each other and the replica")

    def _ready(self) -> bool:
        for one in self.sentinels:
            try:
                with redis.Redis(port=one.port, decode_responses=True) as client:
                    found = client.sentinel_masters()[NAME]
            except (redis.RedisError, KeyError):
                return False
            if (found["num-other-sentinels"], found["num-slaves"]) != (2, 1):
                return False
        return True

    def fail_over(self, how: str) -> None:
        """Returns when the replica is the primary, which every living Sentinel says."""
        old, new = self.servers
        if how == "kill":
            old.kill()
        else:
            os.kill(old.process.pid, signal.SIGSTOP)
        alive = [one for one in self.sentinels if one.process.poll() is None]
        wait_until(lambda: all(one.primary() == new.port for one in alive), 60, what="the failover")

    def close(self) -> None:
        for one in self.sentinels:
            one.close()
        for server in self.servers:
            if server.process is not None:
                os.kill(server.process.pid, signal.SIGCONT)
