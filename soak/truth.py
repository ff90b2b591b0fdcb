"""What is asked when all clients have left: are the counts true, and was everything given back?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import redis
from client import EVENTS, JOBS, PROBE, QUEUES, TEMPORARY
from expect import check_consistent
from harness import Board, from_pairs, wait_until
from verdicts import Verdict, at_most, equal
from watch import STANDING, memory

if TYPE_CHECKING:
    from churn import Soak

ENDS = ("completed", "failed", "cancelled", "trashed")
LIVE = ("scheduled", "blocked", "ready", "claimed")
KEPT = 1 << 20
"""So many bytes the server and the module may keep for themselves when every board is gone."""


def verdicts(soak: Soak) -> list[Verdict]:
    """All of them. Leaves the server empty."""
    with soak.server.connect() as client:

        def own(name: str) -> int:
            return client.info("jobboard")[f"jobboard_{name}"]

        for key in client.scan_iter(TEMPORARY + "*", count=1000):
            client.delete(key)
        wait_until(lambda: own("boards") == len(STANDING), 10, what="short-lived boards are gone")
        client.execute_command("CLIENT", "PAUSE", 600_000, "WRITE")  # what time does stands still as well
        found = [*counts(soak.counts, client), *waiting(own)]
        client.execute_command("CLIENT", "UNPAUSE")
        full = memory(soak.server)["used_memory"]
        client.execute_command("DEBUG", "RELOAD")
        fresh = memory(soak.server)["used_memory"]
        question = "used_memory is at most a quarter above that of the same boards just loaded"
        found.append(at_most(question, full, fresh * 1.25))
        client.execute_command("FLUSHALL", "SYNC")
        wait_until(lambda: own("boards") == 0, 10, what="what the server frees beside its work is gone")
        client.config_resetstat()  # the server's own histograms of each command
        left = memory(soak.server)["used_memory"] - soak.before["used_memory"]
        found.append(at_most("bytes more than at the beginning when all boards are gone", left, KEPT))
    soak.server.check_health()
    return found


def counts(told: Counter, client: redis.Redis) -> list[Verdict]:
    """What clients were told beside what the boards count."""
    found = []
    for key in STANDING:
        try:
            check_consistent(Board(client, key))
            said = ""
        except AssertionError as error:
            said = f"they do not: {error}"
        found.append(Verdict(f"lists, counts and records of {key} agree", not said, said or "they do", False))
    for key in (JOBS, EVENTS):
        board, stats = Board(client, key), statistics(client, key)
        found += [
            equal(
                f"{key}: posts acknowledged, and counted",
                told["posted", key],
                stats["posted"] - stats["fired"],
            ),
            equal(f"{key}: jobs handed out, and counted", told["claimed", key], stats["claimed"]),
            equal(f"{key}: consumes acknowledged, and counted", told["completed", key], stats["completed"]),
            equal(
                f"{key}: what came and did not end, and what there is",
                stats["posted"] + stats["requeued"] - sum(stats[end] for end in ENDS),
                board.count(),
            ),
        ]
    left = told["posted", QUEUES] - told["completed", QUEUES]
    found.append(
        equal(f"{QUEUES}: posts less consumes, and what there is", left, Board(client, QUEUES).count())
    )
    heard, fired = told["children of the schedule", PROBE], statistics(client, PROBE)["fired"]
    waits = Board(client, PROBE).count(queue="schedule", state=list(LIVE))
    found.append(
        equal("children of the measured schedule: received or waiting, and fired", heard + waits, fired)
    )
    found.append(equal("children out of step", told["children out of step", PROBE], 0))
    return found


def statistics(client: redis.Redis, key: str) -> Counter:
    """JOB.STATS of the last two days together."""
    total: Counter = Counter()
    for day in (0, 1):
        row: dict[str, Any] = from_pairs(client.execute_command("JOB.STATS", key, "DAY", day))
        total.update({name: value for name, value in row.items() if isinstance(value, int)})
    return total


def waiting(own: Callable[[str], int]) -> list[Verdict]:
    """Nobody waits any more."""
    return [
        equal(f"`{name}` when all clients have left", own(name), 0)
        for name in ("blocked_claims", "waiting_clients")
    ]
