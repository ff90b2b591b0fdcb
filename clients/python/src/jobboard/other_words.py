"""Options of a post under the names that other libraries give them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

OTHERS = {
    "countdown": "delay='10s'",
    "eta": "at=…, a datetime with a zone",
    "attempts": "retries, the tries after the first: attempts=3 is retries=2",
    "maxtries": "retries, the tries after the first: max_tries=3 is retries=2",
    "maxretries": "retries=3",
    "retry": "retries=3",
    "retrybackoff": "backoff=('1s', '1h')",
    "jobid": "id='…'",
    "taskid": "id='…'",
    "removeoncomplete": "retain='1h', how long the record stays once it is complete; '0s' for not at all",
    "removeonfail": "the setting retain-failed of the board, how long failed jobs stay",
    "resultttl": "retain='1h'",
    "failurettl": "the setting retain-failed of the board, how long failed jobs stay",
    "ignoreresult": "retain='0s'",
    "expires": "expire='1h'",
    "ttl": "expire='1h'",
    "jobtimeout": "timeout='5m'",
    "timelimit": "timeout='5m'",
    "softtimelimit": "timeout='5m'",
    "lifo": "priority=1: a higher one comes first",
    "repeat": "a schedule: task.schedule(…), board.schedule_set(…)",
    "dependson": "after=[…], the ids of those jobs",
    "deduplication": "unique='…'",
    "debounce": "unique='…', with onconflict='debounce'",
}
"""By the name in lower case and without underscores."""


def hint_of(unknown: str, known: Iterable[str]) -> str:
    """What to write in place of an unknown option."""
    known = sorted(known)
    other = OTHERS.get(unknown.lower().replace("_", ""))
    if other is not None:
        return f"write {other}"
    near = difflib.get_close_matches(unknown, known, 1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
