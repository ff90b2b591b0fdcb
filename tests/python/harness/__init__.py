"""What the tests stand on: servers of three kinds, boards, a clock moved by hand, waiting for a condition.

- `Server` (server.py): one running server with the module loaded; start, stop, restart, kill, read its log.
- `Board` (board.py): JOB.* commands of one key as methods; keywords become options, records become dicts.
- `Clock` (clock.py): JOB.CLOCK of a server started with `clock manual`.
- `WallClock` (wall.py): the machine's clock as servers of one's own see it, for steps of it.
- `wait_until` (waiting.py): poll a condition instead of sleeping; `past`: until a time has come.
- `SOON` (waiting.py): a lease or delay that a test has prepared for before it ends.
- `KINDS`, `executable` (kinds.py): which servers there are and where their executables lie.
"""

from .board import Board, Selection, from_pairs, options, record
from .clock import EPOCH, Clock
from .kinds import KINDS, executable
from .server import MODULE, Server
from .waiting import SOON, now, past, wait_until
from .wall import WallClock

__all__ = [
    "Board",
    "Clock",
    "EPOCH",
    "KINDS",
    "MODULE",
    "SOON",
    "Selection",
    "Server",
    "WallClock",
    "executable",
    "from_pairs",
    "now",
    "options",
    "past",
    "record",
    "wait_until",
]
