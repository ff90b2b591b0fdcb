"""The whole life of many jobs: each function takes `count` jobs from post to end, in pipelines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wire import Wire, encode, fields

PAYLOAD = b"x" * 100
BATCH = 100
AS_STREAMS = ("FIELDS", 3, "id", "token", "payload")
"""A claim's record with what a stream's entry has, and the token: half of the default record's fields."""


def empty_commands(wire: Wire, count: int) -> None:
    """The floor: three commands a job that do nothing."""
    wire.pipeline([encode("PING")] * 3 * count)


def absent_reads(wire: Wire, count: int) -> None:
    """The floor of a module command: three reads a job of a board that does not exist."""
    wire.pipeline([encode("JOB.GET", "absent", "x")] * 3 * count)


def board_singly(wire: Wire, count: int) -> None:
    wire.pipeline([encode("JOB.POST", "bench", PAYLOAD)] * count)
    claims = wire.pipeline([encode("JOB.CLAIM", "bench", "w")] * count)
    jobs = [fields(claim[0]) for claim in claims]
    wire.pipeline(encode("JOB.CONSUME", "bench", "w", job[b"id"], "TOKEN", job[b"token"]) for job in jobs)


def board_chained(wire: Wire, count: int) -> None:
    """Each end takes the next. In a pipeline the ids are known beforehand, and the tokens are not."""
    ids = wire.pipeline([encode("JOB.POST", "bench", PAYLOAD)] * count)
    wire.call("JOB.CLAIM", "bench", "w")
    wire.pipeline(encode("JOB.CONSUME", "bench", "w", id, "CLAIM") for id in ids)


def jobs_of(claim: list) -> list[dict[bytes, Any]]:
    """The records of a claim's reply."""
    return [fields(one) for one in claim]


def board_in_batches(
    wire: Wire,
    count: int,
    *record: object,
    read: Callable[[Any], list] = jobs_of,
    board: str = "bench",
) -> None:
    """A claim answers with the fields that `record` names, or those of the default; `read` parses it."""
    batches = count // BATCH
    wire.pipeline([encode("JOB.MPOST", board, BATCH, *[PAYLOAD] * BATCH)] * batches, 10)
    claims = wire.pipeline([encode("JOB.CLAIM", board, "w", "COUNT", BATCH, *record)] * batches, 10)
    commands = []
    for claim in claims:
        jobs = read(claim)
        ids, tokens = [job[b"id"] for job in jobs], [job[b"token"] for job in jobs]
        commands.append(encode("JOB.MCONSUME", board, "w", len(ids), *ids, "TOKENS", len(tokens), *tokens))
    wire.pipeline(commands, 10)


def board_in_batches_as_streams(wire: Wire, count: int) -> None:
    board_in_batches(wire, count, *AS_STREAMS)


def stream_singly(wire: Wire, count: int, ackdel: bool = False) -> None:
    wire.pipeline([encode("XADD", "bench", "*", "d", PAYLOAD)] * count)
    reads = wire.pipeline([encode(*_read(1))] * count)
    ids = [read[0][1][0][0] for read in reads]
    wire.pipeline(command for id in ids for command in stream_ends([id], ackdel))


def stream_in_batches(wire: Wire, count: int, ackdel: bool = False) -> None:
    """XADD has no form for many: its commands are pipelined; the others take 100 ids each."""
    batches = count // BATCH
    wire.pipeline([encode("XADD", "bench", "*", "d", PAYLOAD)] * count)
    commands = []
    for read in wire.pipeline([encode(*_read(BATCH))] * batches, 10):
        commands += stream_ends([entry[0] for entry in read[0][1]], ackdel)
    wire.pipeline(commands, 10 if ackdel else 20)


def stream_ends(ids: list[bytes], ackdel: bool) -> list[bytes]:
    """The commands that acknowledge and delete entries: one where the server has XACKDEL."""
    if ackdel:
        return [encode("XACKDEL", "bench", "g", "IDS", len(ids), *ids)]
    return [encode("XACK", "bench", "g", *ids), encode("XDEL", "bench", *ids)]


def _read(count: int) -> tuple:
    return ("XREADGROUP", "GROUP", "g", "c", "COUNT", count, "STREAMS", "bench", ">")


def empty(wire: Wire) -> None:
    wire.call("FLUSHALL")


def empty_stream(wire: Wire) -> None:
    """Empties the server and makes the consumer group that the functions of Streams read with."""
    wire.call("FLUSHALL")
    wire.call("XGROUP", "CREATE", "bench", "g", "$", "MKSTREAM")
