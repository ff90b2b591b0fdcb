"""What every command needs and who may call it, by hand: a command that is new has to be put in here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from harness import Server

CONFIG = Path(__file__).resolve().parents[2] / "redis.conf"
INTERNAL = {"job.apply", "job.load", "job.probe"}


class Row(NamedTuple):
    """One command: a call on the board, the rights that it needs there, who may call it, whether it adds."""

    words: str
    """What stands after the board."""
    needs: str
    """"r": to read, "w": to write, "rw": both."""
    roles: str
    """The roles of redis.conf that have it, by their first letters."""
    adds: bool = False
    """A full server refuses it. All others drain, or change what is there."""


TABLE = {
    "post": Row("x", "w", "p", adds=True),
    "mpost": Row("2 x y", "w", "p", adds=True),
    "flow": Row("1 NODE a x", "w", "p", adds=True),
    "claim": Row("w1", "rw", "w"),
    "heartbeat": Row("w1 j", "rw", "w"),
    "mheartbeat": Row("w1 ALL", "rw", "w"),
    "step": Row("w1 j name value", "rw", "w"),
    "await": Row("w1 j SIGNALS 1 s", "rw", "w"),
    "consume": Row("w1 j", "rw", "w"),
    "mconsume": Row("w1 1 j", "rw", "w"),
    "fail": Row("w1 j kind message", "rw", "w"),
    "abandon": Row("w1 j", "rw", "w"),
    "mfail": Row("w1 k m 1 j", "rw", "w"),
    "mtrash": Row("w1 1 j", "rw", "w"),
    "mabandon": Row("w1 1 j", "rw", "w"),
    "trash": Row("w1 j", "rw", "w"),
    "cancel": Row("1 j", "rw", "o"),
    "release": Row("1 j", "rw", "o"),
    "requeue": Row("1 j", "rw", "o"),
    "delete": Row("1 j", "w", "o"),
    "update": Row("1 j SET PRIORITY 1", "rw", "o", adds=True),
    "signal": Row("s 1 j", "rw", "ao", adds=True),
    "depend|add": Row("j 1 k", "rw", "o", adds=True),
    "depend|remove": Row("j 1 k", "rw", "o"),
    "depend|clear": Row("j", "rw", "o"),
    "pause": Row("FOR 1", "w", "o", adds=True),
    "resume": Row("", "rw", "o"),
    "get": Row("j", "r", "apwOo"),
    "mget": Row("1 j", "r", "apwOo"),
    "wait": Row("1 FOR empty", "r", "apwOo"),
    "output": Row("j", "r", "apwOo"),
    "list": Row("", "r", "aOo"),
    "count": Row("", "r", "aOo"),
    "history": Row("j", "r", "awOo"),
    "explain": Row("j", "r", "apwOo"),
    "queues": Row("", "r", "Oo"),
    "groups": Row("", "r", "Oo"),
    "limits": Row("", "r", "Oo"),
    "workers": Row("", "r", "Oo"),
    "kinds": Row("", "r", "Oo"),
    "tags": Row("", "r", "Oo"),
    "info": Row("", "r", "Oo"),
    "stats": Row("", "r", "Oo"),
    "metrics": Row("", "r", "mOo"),
    "settings|get": Row("", "r", "Oo"),
    "settings|set": Row("lease 30000", "w", "o", adds=True),
    "settings|reset": Row("", "rw", "o"),
    "schedule|set": Row("s x EVERY 1000000", "w", "o", adds=True),
    "schedule|run": Row("s", "w", "o", adds=True),
    "schedule|get": Row("s", "r", "Oo"),
    "schedule|list": Row("", "r", "Oo"),
    "schedule|pause": Row("s", "rw", "o"),
    "schedule|resume": Row("s", "rw", "o"),
    "schedule|del": Row("s", "rw", "o"),
    # A full server refuses new ones: see test_oom.py.
    "worker|register": Row("w1", "w", "wo"),
    "worker|deregister": Row("w1", "rw", "wo"),
    "worker|list": Row("", "r", "Oo"),
    "worker|quiet": Row("w1", "rw", "o"),
    "worker|resume": Row("w1", "rw", "o"),
}

ROLES = {"producer": "p", "worker": "w", "operator": "o", "approver": "a", "observer": "O", "metrics": "m"}
"""By which letter the table names each role."""

FORMS = [
    ("delete", "1 RETURN", "w"),
    ("delete", "2 j RETURN", "w"),
    ("delete", "1 j RETURN", "rw"),
    ("delete", "1 zebra RETURN FIELDS 1 id", "rw"),
    ("delete", "WHERE STATE ready", "rw"),
    ("delete", "WHERE STATE ready DRYRUN", "rw"),
    ("delete", "WHERE STATE ready DRYRUN RETURN", "rw"),
    ("delete", "1 j RETURNS", "w"),
    ("post", "x PARENT p AFTER CHILDREN", "w"),
    ("post", "x COSTS 1 tokens 5", "w"),
    ("post", "x BLOCK 1000", "w"),
    ("mpost", "1 x BLOCK 1000", "w"),
    ("await", "w1 j CHILDREN", "rw"),
    ("heartbeat", "w1 j COSTS 1 tokens 5", "rw"),
    ("abandon", "w1 j PAUSE tokens 1000", "rw"),
    ("pause", "LIMIT tokens FOR 1", "w"),
    ("resume", "LIMIT tokens", "rw"),
    ("release", "1 j FRONT", "rw"),
    ("signal", "s WHERE PARENT p", "rw"),
    ("list", "PARENT p", "r"),
]
"""Calls whose needs hang on their options; one that cannot be understood does nothing."""


def call(verb: str, words: str, board: str = "board") -> list[str]:
    """The words of a call."""
    name, _, sub = f"JOB.{verb}".partition("|")
    return [name, *([sub] if sub else []), board, *words.split()]


def of_role(role: str) -> set[str]:
    """The commands of a role."""
    return {verb for verb, row in TABLE.items() if ROLES[role] in row.roles}


def roles() -> dict[str, list[str]]:
    """The rules of each role, as redis.conf has them."""
    found = re.findall(r"^# user (\w+) (.+)$", CONFIG.read_text(), re.M)
    return {name: rules.split() for name, rules in found}


def verbs(server: Server) -> list[str]:
    """The commands of the module without their prefix, a subcommand as parent|name."""
    connection = server.client(protocol=2).connection_pool.get_connection()

    def ask(*words: str) -> list:
        connection.send_command(*words)
        return connection.read_response()

    names = ask("COMMAND", "LIST", "FILTERBY", "MODULE", "jobboard")
    parents = {name.split("|")[0] for name in names if "|" in name}
    docs = ask("COMMAND", "DOCS", *[name for name in names if "|" not in name])
    docs = dict(zip(docs[::2], docs[1::2]))
    found = []
    for name, facts in docs.items():
        facts = dict(zip(facts[::2], facts[1::2]))
        subs = facts.get("subcommands")
        if subs:
            found += subs[::2]
        elif name not in parents and name not in INTERNAL:
            found.append(name)
    # HELP tells of no board.
    return sorted(name.lower().removeprefix("job.") for name in found if not name.lower().endswith("|help"))
