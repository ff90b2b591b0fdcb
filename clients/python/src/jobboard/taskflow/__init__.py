"""A TaskFlow jobboard on a board of the module: the entry point `jobboard` in `taskflow.jobboards`.

    from taskflow.jobs import backends

    with backends.backend("mails", {"board": "jobboard", "host": "127.0.0.1", "namespace": "mails"}) as board:
        board.post("welcome", details={"to": "ann"})

The key of the board is `namespace`. Options of the connection are those of TaskFlow's own redis board.

Uses no other room.
"""

from .board import JobBoard
from .job import Job

__all__ = ["Job", "JobBoard"]
