"""Whether a server takes writes: what it says of itself, and what it answers to one that changes nothing."""

from __future__ import annotations

import secrets
from typing import Any, NamedTuple

import redis

from ..errors import SERVERS, coded
from ..replies import text as text_of

LATE = 1000
"""From this on, ms, the module's timer is late."""
STOPPED = 5000
"""And from this on it stands still."""

ADVICE = {
    "NOREPLICAS": "bring a replica back, or lower min-replicas-to-write: docs/operate/sentinel.md",
    "MISCONF": "it cannot write to its disk: look at the disk and the server's log",
    "OOM": "docs/operate/memory.md says what frees memory",
    "CLUSTERDOWN": "slots are without a primary: `redis-cli --cluster check` says which",
    "READONLY": "name the primary, or its Sentinels",
}
UNTRIED = ""
"""In place of a write: this server has no board, or not this one."""
WHEN = "docs/operate/trouble.md says when a server cannot write"


class Refusal(NamedTuple):
    """Why a server takes no writes. `is_sure`: whatever its configuration is."""

    text: str
    is_sure: bool = True


def refusals(info: dict[str, Any]) -> list[Refusal]:
    """Why a server refuses or holds back writes, as far as its INFO tells."""
    found = []
    if info.get("aof_last_write_status", "ok") != "ok":
        found.append(Refusal("MISCONF: its append-only file cannot be written"))
    if info.get("rdb_last_bgsave_status", "ok") != "ok":
        found.append(Refusal("MISCONF: its last snapshot could not be written", is_sure=False))
    if info.get("min_slaves_good_slaves") == 0:
        found.append(Refusal("NOREPLICAS: too few replicas are connected"))
    if str(info.get("paused_actions", "none")) not in ("none", ""):
        found.append(Refusal("it holds writes back: CLIENT PAUSE, or a failover"))
    return found


def advice_for(said: str) -> str:
    """What to do about the server's answer, by its code."""
    return ADVICE.get(said.split(" ", 1)[0].rstrip(":"), WHEN)


def probe(client: Any, key: Any, allowed: list[str] | None = None) -> tuple[str, str | None] | None:
    """What the server answers to a write that changes nothing: what it was, and the refusal or None. None
    when this user may do no such write, and `UNTRIED` where the server has none. `allowed`: the commands that
    it may call on the key, where that is known.
    """
    id = f"jobboard-doctor-{secrets.token_hex(16)}"
    for what, *words in (
        ("posts", "JOB.POST", key, "", "ID", id, "XX"),  # replaces a job that there is not
        ("heartbeats", "JOB.HEARTBEAT", key, "jobboard-doctor", id),
        ("cancels", "JOB.CANCEL", key, "1", id),
    ):
        if allowed is not None and words[0] not in allowed:
            continue
        try:
            client.execute_command(*words)
        except redis.exceptions.NoPermissionError:
            continue
        except redis.TimeoutError:
            return what, "it does not answer them in time: CLIENT PAUSE, a failover, or it is busy"
        except (redis.ResponseError, redis.exceptions.BusyLoadingError) as error:
            said = coded(error)
            code = said.split(" ", 1)[0]
            if "unknown command" in said.lower() or code in ("MOVED", "ASK"):
                return UNTRIED, None
            return what, said if code in SERVERS else None
        return what, None
    return None


def key_on(client: Any, node: Any) -> str:
    """A key that this node of a cluster serves."""
    for number in range(100_000):
        key = f"jobboard-doctor-{number}"
        if client.get_node_from_key(key).name == node.name:
            return key
    raise ValueError(f"{text_of(node.name)} serves no slot")
