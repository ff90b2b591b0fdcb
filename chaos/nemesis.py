"""What is done to servers, workers and connections, as drawn from a seed."""

from __future__ import annotations

import contextlib
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import redis
from harness import Server, wait_until

if TYPE_CHECKING:
    from run import Run


class Nemesis:
    """Does one thing after another, each undone before the next."""

    def __init__(self, run: Run, seed: int) -> None:
        self.run, self.random = run, random.Random(f"{seed} nemesis")
        self.done: Counter = Counter()
        one = [
            self.kill_worker,
            self.kill_worker,
            self.stop_worker,
            self.cut_clients,
            self.save,
            self.rewrite,
            self.reload,
            self.pause_clients,
            self.kill_primary,
            self.stop_primary,
            self.pause_board,
            self.fill_memory,
            self.slow_clients,
            self.still_clients,
            self.shut_clients,
        ]
        more = [
            self.kill_replica,
            self.stop_replica,
            self.cut_replicas,
            self.failover,
            self.slow_replicas,
            self.part_primary,
            self.part_replica,
        ]
        # Nobody promises to outlive a kill while nothing is on disk: `switch_file` kills when it is.
        mortal = [deed for deed in one if deed != self.kill_primary]
        self.deeds: list[Callable[[], None]] = one + (more if run.site.replicated else [])
        if run.site.listeners:
            self.deeds = mortal + [self.switch_file, self.bring_replica] * 3
        self.wrong: list[str] = []
        if run.site.steps is not None:
            self.deeds += [self.clock_ahead, self.clock_back] * 2

    def act(self) -> str:
        """One deed; its name."""
        deed = self.random.choice(self.deeds)
        self.done[deed.__name__] += 1
        with contextlib.suppress(redis.RedisError, OSError):
            deed()
        return deed.__name__

    def _ask(self, *words: object) -> None:
        with self.run.site.primary.connect(socket_timeout=20) as client:
            client.execute_command(*words)

    def _nap(self, most: float) -> None:
        time.sleep(self.random.uniform(most / 4, most))

    # Workers and connections

    def kill_worker(self) -> None:
        self.run.respawn(self.random.choice(list(self.run.actors)))

    def stop_worker(self) -> None:
        process = self.run.actors[self.random.choice(list(self.run.actors))].process
        self._stopped(process.pid, 1.5)

    def cut_clients(self) -> None:
        self._ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    def pause_clients(self) -> None:
        self._ask("CLIENT", "PAUSE", self.random.randrange(50, 800), self.random.choice(["ALL", "WRITE"]))
        self._nap(0.5)

    def pause_board(self) -> None:
        self._ask("JOB.PAUSE", "chaos", "FOR", self.random.randrange(50, 500))

    # Links

    def _link(self, port: int, most: float, **wrong: Any) -> None:
        """Something is wrong with a link for a while."""
        links = self.run.site.links
        links.set(port, **wrong)
        try:
            self._nap(most)
        finally:
            links.set(port)

    def slow_clients(self) -> None:
        self._link(self.run.site.doors[self.run.site.primary], 2.0, delay=self.random.uniform(0.005, 0.2))

    def still_clients(self) -> None:
        """What clients and server say arrives later, when they may have given up."""
        self._link(self.run.site.doors[self.run.site.primary], 1.5, still=True)

    def shut_clients(self) -> None:
        self._link(self.run.site.doors[self.run.site.primary], 0.5, shut=True)

    def slow_replicas(self) -> None:
        """Replicas and Sentinels hear the primary late."""
        self._link(self.run.site.peers[self.run.site.primary], 3.0, delay=self.random.uniform(0.02, 0.3))

    def part_primary(self) -> None:
        """Replicas and Sentinels do not hear the primary, clients do: another may take its place."""
        wrong = self.random.choice(["still", "shut"])
        self._link(self.run.site.peers[self.run.site.primary], 4.0, **{wrong: True})
        self.run.site.heal()

    def part_replica(self) -> None:
        """Sentinels do not hear a replica."""
        server = self.random.choice(self.run.site.replicas)
        self._link(self.run.site.peers[server], 2.0, shut=True)
        self.run.site.heal()

    # The clock

    def clock_ahead(self) -> None:
        self._step(self.random.choice([0.05, 0.3, 1, 5, 60]))

    def clock_back(self) -> None:
        self._step(-self.random.choice([0.05, 0.3, 1, 5]))

    def _step(self, seconds: float) -> None:
        """And now and then the clock is set right again."""
        self.run.site.steps.step(self.run.site.primary, seconds)
        if self.random.random() < 0.5:
            self.run.site.steps.step(self.run.site.primary, -seconds)

    # The primary

    def fill_memory(self) -> None:
        """No memory is left for posts for a while; what drains goes on."""
        server = self.run.site.primary
        with server.connect(socket_timeout=20) as client:
            client.config_set("maxmemory", "1mb")
            self._nap(1.0)
            client.config_set("maxmemory", "0")

    def save(self) -> None:
        self._ask("BGSAVE")  # not scheduled: `reload` has to know when one runs

    def rewrite(self) -> None:
        self._ask("BGREWRITEAOF")

    def reload(self) -> None:
        """Not while a child saves: the server would load the child's file, older than the last answers, and
        write DEBUG RELOAD itself to its log, which then cannot be replayed.
        """
        server = self.run.site.primary
        wait_until(lambda: not server.info("persistence")["rdb_bgsave_in_progress"], 60, what="the save")
        self._ask("DEBUG", "RELOAD")

    def kill_primary(self) -> None:
        server = self.run.site.primary
        server.kill()
        self._nap(3.0 if self.run.site.replicated else 0.5)
        self.run.site.heal()

    def stop_primary(self) -> None:
        server = self.run.site.primary
        assert server.process is not None
        self._stopped(server.process.pid, 3.0 if self.run.site.replicated else 1.0)
        self.run.site.heal()

    # Who listens to one server

    def switch_file(self) -> None:
        """The append-only file comes and goes. When it is whole, a kill loses nothing."""
        server = self.run.site.primary
        with server.connect(socket_timeout=20) as client:
            client.config_set("appendonly", "yes")
            if self.random.random() < 0.3:  # off again in the middle of its first rewrite
                client.config_set("appendonly", "no")
                return
        wait_until(lambda: self._is_rewritten(server), 60, what="the first rewrite")
        with server.connect(socket_timeout=20) as client:
            client.config_rewrite()
        self._nap(1.0)
        if self.random.random() < 0.5:
            server.kill()
            self.done["kill with a file"] += 1
            self.run.site.heal()
            server.wait_ready()
        with server.connect(socket_timeout=20) as client:
            client.config_set("appendonly", "no")
            client.config_rewrite()

    def _is_rewritten(self, server: Server) -> bool:
        info = server.info("persistence")
        busy = info["aof_rewrite_in_progress"] or info["aof_rewrite_scheduled"]
        return not busy and info["aof_last_bgrewrite_status"] == "ok"

    def bring_replica(self) -> None:
        """A replica comes, now and then one behind it, follows for a while, and leaves."""
        way = self.random.choice(["yes", "no"])
        config = [f"repl-diskless-sync {way}", "repl-diskless-load on-empty-db"]
        primary = self.run.site.primary
        chain = [primary]
        try:
            for _ in range(self.random.choice([1, 1, 2])):
                chain.append(Server(primary.kind, replicaof=chain[-1], config=config))
            if self.random.random() < 0.3:  # before it has everything
                return
            for source, replica in pairwise(chain):
                replica.wait_synced(source)
            self._nap(1.0)
            # Nobody writes, and no deadline passes, until they have been compared.
            self._ask("CLIENT", "PAUSE", 60_000, "WRITE")
            for source, replica in pairwise(chain):
                replica.wait_synced(source)
            if len({server.board("chaos").digest() for server in chain}) != 1:
                found = [server.board("chaos").info() for server in chain]
                self.wrong.append(f"a replica differs from its primary: {found}")
        finally:
            for replica in chain[1:]:
                replica.close()
            self._ask("CLIENT", "UNPAUSE")

    # Replicas

    def kill_replica(self) -> None:
        self.random.choice(self.run.site.replicas).kill()
        self._nap(1.0)
        self.run.site.heal()

    def stop_replica(self) -> None:
        process = self.random.choice(self.run.site.replicas).process
        assert process is not None
        self._stopped(process.pid, 2.0)
        self.run.site.heal()

    def cut_replicas(self) -> None:
        self._ask("CLIENT", "KILL", "TYPE", "replica")
        self.run.site.heal()

    def failover(self) -> None:
        with redis.Redis(port=self.run.site.sentinels[0].port, socket_timeout=5) as client:
            client.execute_command("SENTINEL", "FAILOVER", "chaos")
        self._nap(3.0)
        self.run.site.heal()

    def _stopped(self, pid: int, most: float) -> None:
        import os

        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            try:
                self._nap(most)
            finally:
                os.kill(pid, signal.SIGCONT)
