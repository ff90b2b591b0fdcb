"""Errors of redis-py and of the module as those of TaskFlow.

| of the module                            | of TaskFlow                                    |
|------------------------------------------|------------------------------------------------|
| NOJOB, ENDED, NOTCLAIMED                 | NotFound                                       |
| CLAIMED, NOTREADY, LIMIT                 | UnclaimableJob when claiming, else JobFailure  |
| NOTOWNER, STALE, everything else         | JobFailure                                     |
| no connection, time out                  | JobFailure                                     |
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import redis
from taskflow import exceptions as exc

GONE = {"NOJOB", "ENDED", "NOTCLAIMED"}
TAKEN = {"CLAIMED", "NOTREADY", "LIMIT"}
LOST = GONE | {"NOTOWNER", "STALE", "CANCELLED", "LIMIT"}
"""Codes that say: this claim is no more."""


def code(error: redis.ResponseError) -> str:
    """The first word of an error."""
    return str(error).partition(" ")[0]


@contextlib.contextmanager
def translated(what: str, claiming: bool = False) -> Iterator[None]:
    """Raises TaskFlow's exceptions for what goes wrong in a block; `what` begins their texts."""
    try:
        yield
    except redis.ResponseError as error:
        kind = exc.JobFailure
        if code(error) in GONE:
            kind = exc.NotFound
        elif claiming and code(error) in TAKEN:
            kind = exc.UnclaimableJob
        exc.raise_with_cause(kind, f"{what}: {error}", cause=error)
    except redis.TimeoutError as error:
        exc.raise_with_cause(exc.JobFailure, f"{what}: the server did not answer in time", cause=error)
    except redis.RedisError as error:
        exc.raise_with_cause(exc.JobFailure, f"{what}: {error}", cause=error)
