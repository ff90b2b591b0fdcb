"""Everything that a board tells of itself, as data that can be written down and compared."""

from __future__ import annotations

from typing import Any

from harness import Board, from_pairs

STATES = ("scheduled", "blocked", "ready", "claimed", "complete", "failed", "cancelled", "trashed")
NUMBERS = ("jobs", *STATES, "queues", "workers", "schedules", "limits", "tombstones", "revision", "token")
LOCAL = {"active", "seen"}
"""What each server knows for itself."""


def plain(value: Any) -> Any:
    """A reply as JSON has it: maps with text keys, lists, texts, numbers."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items() if key not in LOCAL}
    if isinstance(value, (list, tuple, set)):
        return [plain(one) for one in value]
    return value


def contents(board: Board) -> dict:
    """The records with their histories, settings, tables, schedules, workers and statistics of a board."""

    def ask(command: str, sub: str, *words: Any) -> Any:
        return board.client.execute_command(f"JOB.{command}", sub, board.key, *words)

    info, queues = board.info() or {}, board.counts()
    groups, limits = board.groups(), board.limits()
    records = board.list_all(count=1000)
    told = {
        "info": {name: info[name] for name in (*NUMBERS, "record-bytes", "paused")},
        "records": {job["id"]: {**job, "history": board.history(job["id"])} for job in records},
        "steps": {
            job["id"]: job["steps"]
            for job in board.list_all(count=1000, fields=["id", "steps"])
            if "steps" in job
        },
        "signals": {
            job["id"]: job["signals"]
            for job in board.list_all(count=1000, fields=["id", "signals"])
            if "signals" in job
        },
        "order": [job["id"] for job in records],
        "queues": queues,
        "groups": [[*key, row] for key, row in groups.items()],
        "limits": limits,
        "workers": board.workers(),
        "kinds": board.kinds(),
        "tags": board.tags()[1],
        "schedules": ask("SCHEDULE", "LIST"),
        "registrations": ask("WORKER", "LIST"),
        "settings": {
            "board": board.settings(),
            "queues": {name: board.settings(queue=name) for name in [*queues, "settings"]},
            "groups": [[*key, board.settings(queue=key[0], group=key[1])] for key in groups],
            "all groups": board.settings(queue="settings", group="*"),
            "limits": {name: board.settings(limit=name) for name in limits},
        },
        "stats": {
            f"{queue} {day}": from_pairs(board.call("STATS", "QUEUE", queue, "DAY", day))
            for queue in queues
            for day in (0, 3)
        },
    }
    return plain(told)


def missing(expected: Any, found: Any, at: str = "") -> list:
    """Where something is not as it is expected. What was not there then may be there now."""
    if isinstance(expected, dict) and isinstance(found, dict):
        wrong = []
        for key, one in expected.items():
            wrong += missing(one, found.get(key), f"{at}/{key}")
        return wrong
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        return [line for n, pair in enumerate(zip(expected, found)) for line in missing(*pair, f"{at}[{n}]")]
    return [] if expected == found else [f"{at}: {expected!r} was expected, not {found!r}"]
