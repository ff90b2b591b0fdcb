"""The syntax of every command of a board, as data: what stands after the board, and each option."""

from __future__ import annotations

from typing import NamedTuple

DURATION = 2**40
TIME = 2**47
INT32 = 2**31
BATCH = 10_000

FIELDS = ("1", "id")
META = ("1", "field", "value")
CHUNK = ("1", "chunk")


class Call(NamedTuple):
    """One command: the words that must follow the board, and each option with the words that follow it."""

    name: str
    head: tuple
    options: dict


WORKER = ("w1", "j")
ONE_ID = ("1", "j")
WHERE = ("WHERE", "STATE", "ready")
SLICE = {"COUNT": ("2",), "CURSOR": ("0",), "DRYRUN": ()}
TOKEN = {"TOKEN": ("1",)}
TOKENS = {"TOKENS": ("1", "1")}
FAILURE = {"RETRY": ("1",), "NORETRY": (), "RETAIN": ("1",), "META": META, "LOG": ("l",)}
COSTS = ("1", "l", "1")
COST = {"COST": ("1",), "COSTS": COSTS}
SPEND = {**COST, "PAUSE": ("l", "1")}
ONWARD = {"NAME": ("n",), "DELAY": ("1",), "PRIORITY": ("1",), "NEXT-COST": ("1",), "NEXT-COSTS": COSTS}
CLAIM = {
    "QUEUE": ("q",),
    "QUEUES": ("1", "q"),
    "ORDER": ("best",),
    "COUNT": ("1",),
    "MIN": ("1",),
    "LEASE": ("60000",),
    "BLOCK": ("1",),
    "SEEN": ("1",),
    "SESSION": (),
    "FIELDS": FIELDS,
    "PACKED": (),
}
CLAIMING = {
    "CLAIM": ("w1",),
    "CONSUME": (*WORKER, "CLAIM"),
    "MCONSUME": ("w1", "1", "j", "CLAIM"),
    "FAIL": (*WORKER, "kind", "message", "CLAIM"),
    "MFAIL": ("w1", "kind", "message", "1", "j", "CLAIM"),
    "AWAIT": (*WORKER, "SIGNALS", "1", "s", "CLAIM"),
    "ABANDON": (*WORKER, "CLAIM"),
    "TRASH": (*WORKER, "CLAIM"),
    "MTRASH": ("w1", "1", "j", "CLAIM"),
}
"""Commands that claim, up to the options of the claim."""
POST_SHARED = {
    "NAME": ("n",),
    "QUEUE": ("q",),
    "GROUP": ("g",),
    **COST,
    "PRIORITY": ("1",),
    "DELAY": ("1",),
    "AT": ("1",),
    "RETRIES": ("1",),
    "LAPSES": ("1",),
    "BACKOFF": ("FIXED", "1"),
    "JITTER": ("1",),
    "LEASE": ("60000",),
    "TIMEOUT": ("60000",),
    "EXPIRE": ("60000",),
    "RETAIN": ("1",),
    "USER": ("u",),
    "META": META,
    "AFTER": ("1", "x"),
    "TAGS": ("1", "t"),
    "AWAIT": ("1", "s"),
    "UNIQUE": ("k",),
}
FILTERS = {
    "STATE": ("ready",),
    "QUEUE": ("q",),
    "GROUP": ("g",),
    "WORKER": ("w1",),
    "NAME": ("n",),
    "LAPSED": (),
    "TAG": ("t",),
    "KIND": ("k",),
    "TRACKED": (),
    "USER": ("u",),
    "SINCE": ("1",),
    "POSTED": ("1", "2"),
    "ENDED": ("1", "2"),
    "PARENT": ("j",),
    "AFTER": ("j",),
    "AWAITS": ("s",),
    "ID": ("j*",),
    "META": ("f", "v"),
    "STAGE": ("s",),
    "MESSAGE": ("m",),
    "CONTAINS": ("c",),
}
"""May be given more than once."""

CALLS = [
    Call("POST", ("payload",), {"ID": ("j",), **POST_SHARED, "BLOCK": ("1",)}),
    Call("POST", ("payload", "AFTER", "1", "x"), {"ONFAILURE": ("hold",), "STRICT": ()}),
    Call("POST", ("payload", "AWAIT", "1", "s"), {"ANY": (), "WITHIN": ("1",)}),
    Call("POST", ("payload", "AWAIT", "1", "s", "WITHIN", "1"), {"ONTIMEOUT": ("fail",)}),
    Call("POST", ("payload",), {"PARENT": ("p",)}),
    Call("POST", ("payload", "PARENT", "p"), {"SHARE": ("1",)}),
    Call("POST", ("payload", "USER", "u"), {"MAXLIVE": ("1",)}),
    Call(
        "POST",
        ("payload", "UNIQUE", "k"),
        {"UNTIL": ("start",), "FOR": ("1",), "ONCONFLICT": ("return",)},
    ),
    Call("POST", ("payload", "ID", "j"), {"NX": (), "XX": (), "REPLACE": ()}),
    Call("MPOST", ("1", "payload"), {"IDS": ("1", "j"), **POST_SHARED, "BLOCK": ("1",)}),
    Call("MPOST", ("1", "payload", "IDS", "1", "j"), {"NX": (), "XX": (), "REPLACE": ()}),
    *(Call(name, head, CLAIM) for name, head in CLAIMING.items()),
    *(Call(name, (*head, "MIN", "1"), {"LINGER": ("1",)}) for name, head in CLAIMING.items()),
    Call(
        "CLAIM", ("w1",), {"ID": ("j",), "LEASE": ("60000",), "SESSION": (), "FIELDS": FIELDS, "PACKED": ()}
    ),
    Call(
        "HEARTBEAT",
        WORKER,
        {
            **TOKEN,
            "LEASE": ("60000",),
            "PROGRESS": ("1",),
            "STAGE": ("s",),
            "PAYLOAD": ("p",),
            "META": META,
            "LOG": ("l",),
            "OUTPUT": CHUNK,
            **SPEND,
        },
    ),
    Call("MHEARTBEAT", ("w1", "1", "j"), {**TOKENS, "LEASE": ("60000",)}),
    Call("MHEARTBEAT", ("w1", "ALL"), {"LEASE": ("60000",)}),
    Call("STEP", (*WORKER, "n", "v"), {**TOKEN, "LEASE": ("60000",), "REPLACE": (), "OUTPUT": CHUNK, **COST}),
    Call(
        "AWAIT",
        (*WORKER, "SIGNALS", "1", "s"),
        {**TOKEN, "ANY": (), "WITHIN": ("1",), "STEP": ("n",), "PAYLOAD": ("p",), **COST},
    ),
    Call("AWAIT", (*WORKER, "SIGNALS", "1", "s", "WITHIN", "1"), {"ONTIMEOUT": ("fail",)}),
    Call("SIGNAL", ("s", *ONE_ID), {"VALUE": ("v",), "SENDER": ("w",)}),
    Call("SIGNAL", ("s", *WHERE), {**SLICE, "VALUE": ("v",), "SENDER": ("w",)}),
    Call("CONSUME", WORKER, {**TOKEN, "RESULT": ("r",), "RETAIN": ("1",), "PAYLOAD": ("p",), "FORCE": ()}),
    Call("CONSUME", WORKER, {"OUTPUT": CHUNK, "META": META, "IF": ("QUEUE", "q"), **COST}),
    Call("MCONSUME", ("w1", "1", "j"), {"META": META, "IF": ("QUEUE", "q")}),
    Call(
        "CONSUME",
        (*WORKER, "NEXT", "q"),
        {**TOKEN, "PAYLOAD": ("p",), "OUTPUT": CHUNK, "AWAIT": ("1", "s"), **ONWARD},
    ),
    Call("MCONSUME", ("w1", "1", "j", "NEXT", "q"), {**TOKENS, **ONWARD, **COST}),
    Call("MCONSUME", ("w1", "1", "j"), {**TOKENS, "RESULT": ("r",), "RETAIN": ("1",), "FORCE": ()}),
    Call("MCONSUME", ("w1", "ALL"), {"RESULT": ("r",), "RETAIN": ("1",), "FORCE": ()}),
    Call("FAIL", (*WORKER, "kind", "message"), {**TOKEN, **FAILURE, **SPEND, "PAYLOAD": ("p",)}),
    Call("ABANDON", WORKER, {**TOKEN, "DELAY": ("1",), "REASON": ("r",), "META": META, **SPEND}),
    Call("MFAIL", ("w1", "k", "m", "1", "j"), {**TOKENS, **FAILURE, **SPEND}),
    Call("MFAIL", ("w1", "k", "m", "ALL"), FAILURE),
    Call("MTRASH", ("w1", "1", "j"), {**TOKENS, "REASON": ("r",), "META": META, **COST}),
    Call("MTRASH", ("w1", "ALL"), {"REASON": ("r",), "META": META}),
    Call("MABANDON", ("w1", "1", "j"), {**TOKENS, "DELAY": ("1",), "REASON": ("r",), "META": META, **SPEND}),
    Call("MABANDON", ("w1", "ALL"), {"DELAY": ("1",), "REASON": ("r",), "META": META}),
    Call("TRASH", WORKER, {**TOKEN, "REASON": ("r",), "META": META, **COST}),
    Call("CANCEL", ONE_ID, {"BY": ("u",), "FORCE": ()}),
    Call("CANCEL", WHERE, {**SLICE, "BY": ("u",), "FORCE": ()}),
    Call("RELEASE", ONE_ID, {"FRONT": ()}),
    Call("RELEASE", WHERE, {**SLICE, "FRONT": ()}),
    Call("REQUEUE", ONE_ID, {"QUEUE": ("q",), "PAYLOAD": ("x",), "FRESH": ()}),
    Call("REQUEUE", ONE_ID, {"ORIGIN": ()}),
    Call("REQUEUE", WHERE, {**SLICE, "TO": ("q",), "FRESH": ()}),
    Call("REQUEUE", (*WHERE, "ORIGIN"), {**SLICE}),
    Call("DELETE", ONE_ID, {"RETURN": ()}),
    Call("DELETE", WHERE, {**SLICE, "RETURN": ()}),
    Call("DELETE", (*ONE_ID, "RETURN"), {"FIELDS": FIELDS}),
    Call(
        "UPDATE",
        (*ONE_ID, "SET"),
        {
            "PRIORITY": ("1",),
            "QUEUE": ("q",),
            "DELAY": ("1",),
            "AT": ("1",),
            "PAYLOAD": ("p",),
            "RETRIES": ("1",),
            "LEASE": ("60000",),
            "META": META,
            "LOG": ("l",),
            "PROGRESS": ("1",),
            "UNSTEP": ("1", "s"),
            "TAG": ("1", "t"),
            "UNTAG": ("1", "u"),
            "TRACK": (),
            "UNTRACK": (),
        },
    ),
    Call("PAUSE", (), {"QUEUE": ("q",), "FOR": ("1",), "RELEASE": ()}),
    Call("PAUSE", ("QUEUE", "q"), {"GROUP": ("g",)}),
    Call("PAUSE", (), {"LIMIT": ("l",)}),
    Call("RESUME", (), {"QUEUE": ("q",)}),
    Call("RESUME", ("QUEUE", "q"), {"GROUP": ("g",)}),
    Call("RESUME", (), {"LIMIT": ("l",)}),
    Call("GET", ("j",), {"FIELDS": FIELDS, "CHILDREN": (), "PACKED": ()}),
    Call("GET", ("j", "CHILDREN"), {"CURSOR": ("1",), "COUNT": ("1",), "PACKED": ()}),
    Call("MGET", ONE_ID, {"FIELDS": FIELDS, "PACKED": ()}),
    Call(
        "LIST",
        (),
        {
            **FILTERS,
            "REV": (),
            "CURSOR": ("0",),
            "COUNT": ("1",),
            "JUSTID": (),
            "FIELDS": FIELDS,
            "PACKED": (),
        },
    ),
    Call("COUNT", (), {**FILTERS, "CURSOR": ("0",)}),
    Call(
        "WAIT",
        ("5", "JOBS", *ONE_ID),
        {"ALL": (), "ANY": (), "CHANGED": ("1",), "FIELDS": FIELDS, "PACKED": ()},
    ),
    Call("WAIT", ("5", "FOR", "claimable"), {"QUEUE": ("q",), "QUEUES": ("1", "q")}),
    Call("OUTPUT", ("j",), {"SINCE": ("0",), "COUNT": ("1",), "BLOCK": ("1",)}),
    Call("HISTORY", ("j",), {}),
    Call("EXPLAIN", ("j",), {}),
    Call("QUEUES", (), {"CONTAINS": ("c",), "BY": ("ready",), "CURSOR": ("0",), "COUNT": ("1",)}),
    Call("GROUPS", (), {"QUEUE": ("q",), "CURSOR": ("0",), "COUNT": ("1",)}),
    Call("WORKERS", (), {"CURSOR": ("0",), "COUNT": ("1",)}),
    Call("KINDS", (), {"CURSOR": ("0",), "COUNT": ("1",)}),
    Call("TAGS", (), {"CURSOR": ("0",), "COUNT": ("1",)}),
    Call("STATS", (), {"QUEUE": ("q",), "DAY": ("0",)}),
    Call("INFO", (), {"DIGEST": ()}),
]

RANGES = {
    "POST COST": (1, INT32 - 1),
    "HEARTBEAT COST": (0, INT32 - 1),
    "STEP COST": (0, INT32 - 1),
    "CONSUME COST": (0, INT32 - 1),
    "CONSUME NEXT-COST": (1, INT32 - 1),
    "TRASH COST": (0, INT32 - 1),
    "POST PRIORITY": (-INT32, INT32 - 1),
    "POST DELAY": (0, DURATION),
    "POST AT": (0, TIME),
    "POST RETRIES": (-1, INT32 - 1),
    "POST LAPSES": (-1, INT32 - 1),
    "POST JITTER": (0, 100),
    "POST SHARE": (1, 1_000_000),
    "POST LEASE": (1, DURATION),
    "POST TIMEOUT": (-1, DURATION),
    "POST EXPIRE": (-1, DURATION),
    "POST RETAIN": (-1, DURATION),
    "POST MAXLIVE": (1, INT32 - 1),
    "POST FOR": (1, DURATION),
    "CLAIM COUNT": (1, BATCH),
    "CLAIM MIN": (1, BATCH),
    "CLAIM LINGER": (1, DURATION),
    "CLAIM LEASE": (1, DURATION),
    "CLAIM BLOCK": (0, None),
    "CLAIM SEEN": (0, None),
    "CONSUME COUNT": (1, BATCH),
    "FAIL LEASE": (1, DURATION),
    "HEARTBEAT LEASE": (1, DURATION),
    "HEARTBEAT TOKEN": (None, None),
    "MHEARTBEAT LEASE": (1, DURATION),
    "STEP LEASE": (1, DURATION),
    "STEP TOKEN": (None, None),
    "POST WITHIN": (1, DURATION),
    "AWAIT WITHIN": (1, DURATION),
    "AWAIT TOKEN": (None, None),
    "CONSUME RETAIN": (-1, DURATION),
    "CONSUME TOKEN": (None, None),
    "MCONSUME RETAIN": (-1, DURATION),
    "FAIL RETRY": (0, DURATION),
    "FAIL RETAIN": (-1, DURATION),
    "FAIL TOKEN": (None, None),
    "ABANDON DELAY": (0, DURATION),
    "ABANDON TOKEN": (None, None),
    "MFAIL RETRY": (0, DURATION),
    "MFAIL RETAIN": (-1, DURATION),
    "MABANDON DELAY": (0, DURATION),
    "TRASH TOKEN": (None, None),
    "UPDATE PRIORITY": (-INT32, INT32 - 1),
    "UPDATE DELAY": (0, DURATION),
    "UPDATE AT": (0, TIME),
    "UPDATE RETRIES": (-1, INT32 - 1),
    "UPDATE LEASE": (1, DURATION),
    "PAUSE FOR": (1, DURATION),
    "CANCEL COUNT": (1, BATCH),
    "DELETE COUNT": (1, BATCH),
    "GET CURSOR": (0, 2**48 - 1),
    "GET COUNT": (1, BATCH),
    "LIST COUNT": (1, BATCH),
    "LIST SINCE": (0, 2**48 - 1),
    "GROUPS COUNT": (1, BATCH),
    "TAGS COUNT": (1, BATCH),
    "QUEUES COUNT": (1, BATCH),
    "WORKERS COUNT": (1, BATCH),
    "KINDS COUNT": (1, BATCH),
    "WAIT CHANGED": (0, 2**48 - 1),
    "OUTPUT SINCE": (0, 2**48 - 1),
    "OUTPUT COUNT": (1, BATCH),
    "OUTPUT BLOCK": (0, None),
}
"""The integers of options: least and greatest; None where the contract names no bound."""


def find(name: str, option: str) -> Call:
    """The call of this command that takes this option."""
    return next(call for call in CALLS if call.name == name and option in call.options)
