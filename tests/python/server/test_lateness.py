"""How late the timer says that it is, on a server that may not write."""

from __future__ import annotations

import lives
import pytest
import redis
from harness import Server, now, past, wait_until
from lives import LONG

REFUSING = ["min-replicas-to-write 1"]
LITTLE = 400
"""Milliseconds."""


def lateness(server: Server) -> int:
    return server.client().info("jobboard")["jobboard_timer_overdue_ms"]


def of_session(server: Server) -> redis.Redis:
    """A worker whose registration ends with its connection, which the restart cuts."""
    worker = server.connect()
    worker.execute_command("JOB.WORKER", "REGISTER", "board", "w1", "SESSION")
    lives.claimed(server.board(), lease=LONG)
    return worker


def of_delay(server: Server) -> redis.Redis:
    """A job that is due before the restart. The server may not write from then on: it makes nothing ready."""
    client = server.connect()
    with client.pipeline(transaction=False) as pipe:
        pipe.execute_command("JOB.POST", "board", "x", "DELAY", LITTLE)
        pipe.config_set("min-replicas-to-write", 9)
        pipe.execute()
    return client


@pytest.mark.parametrize("due", [of_session, of_delay])
def test_lateness_counts_from_the_restart_of_a_server_that_may_not_write(fresh_server, due):
    """What is due at once has no time of its own, and what was due before the server could do nothing."""
    server = fresh_server("recovery-grace", 0, appendonly=True, config=["appendfsync always"])
    client = due(server)
    server.kill()
    client.close()
    past(now() + 3 * LITTLE)
    began = now()
    server.restart(config=["appendonly yes", *REFUSING])
    wait_until(lambda: lateness(server) > LITTLE)
    assert lateness(server) <= now() - began
    before = lateness(server)
    wait_until(lambda: lateness(server) > before + LITTLE, what="it grows while nothing is done")
    server.client().config_set("min-replicas-to-write", 0)
    wait_until(lambda: lateness(server) == 0)


@pytest.mark.parametrize("due", [of_session, of_delay])
def test_lateness_counts_from_the_promotion(fresh_server, due):
    """The deadlines of a replica were its primary's."""
    primary = fresh_server("recovery-grace", 0)
    replica = fresh_server("recovery-grace", 0, replicaof=primary)
    replica.wait_synced(primary)
    client = replica.client()
    client.config_set("min-replicas-to-write", 1)
    worker = due(primary)
    replica.wait_synced(primary)
    primary.kill()
    worker.close()
    past(now() + 3 * LITTLE)
    began = now()
    client.replicaof("NO", "ONE")
    wait_until(lambda: lateness(replica) > LITTLE)
    assert lateness(replica) <= now() - began
    client.config_set("min-replicas-to-write", 0)
    wait_until(lambda: lateness(replica) == 0)
