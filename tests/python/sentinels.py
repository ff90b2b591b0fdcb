"""A primary with a replica, and three Sentinels that watch them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import redis
from harness import Server, wait_until
from servers import NAME, Sentinel

CONFIG = ["repl-timeout 5"]
PATIENT = f"sentinel down-after-milliseconds {NAME} 60000"


class Watched:
    """A primary, its replica and three Sentinels. The Sentinels take a server for down after a minute of
    silence; `fail_over` makes that 0.8 s, so a failover comes only when a test asks for one.
    """

    def __init__(self, fresh_server: Callable[..., Server], kind: str) -> None:
        first = fresh_server(config=CONFIG)
        self.servers = [first, fresh_server(config=CONFIG, replicaof=first)]
        self.servers[1].wait_synced(first)
        self.sentinels = [Sentinel(kind, first.port, [PATIENT]) for _ in range(3)]
        hosts = ",".join(f"127.0.0.1:{one.port}" for one in self.sentinels)
        self.url = f"sentinel://{hosts}/{NAME}"
        wait_until(self._ready, what="the Sentinels know each other and the replica")

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
        self._missed_after(800, alive)
        wait_until(lambda: all(one.primary() == new.port for one in alive), what="the failover")
        self._missed_after(60_000, alive)

    def _missed_after(self, ms: int, sentinels: list[Sentinel]) -> None:
        for one in sentinels:
            with redis.Redis(port=one.port) as client:
                client.sentinel_set(NAME, "down-after-milliseconds", ms)

    def close(self) -> None:
        for one in self.sentinels:
            one.close()
        for server in self.servers:
            if server.process is not None:
                os.kill(server.process.pid, signal.SIGCONT)
