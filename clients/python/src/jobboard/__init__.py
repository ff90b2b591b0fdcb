"""Job boards inside Redis and Valkey: post jobs, work on them, watch them.

board = Board("mails", redis.Redis())

@board.handler("welcome")
def welcome(context, payload): ...

board.post({"to": "ann"}, name="welcome")
Worker(board).run()
"""

from .board import AsyncBoard, Board, Requests
from .board.context import Context
from .board.family import Slice
from .board.hooks import Hook
from .board.posting import After, Exponential, Fixed, Node
from .board.sending import Page
from .board.sharded import AsyncShardedBoard, ShardedBoard
from .codecs import Codec, Json, Msgpack, PayloadError, Raw
from .errors import (
    BoardError,
    Broken,
    Cancelled,
    Claimed,
    Cycle,
    Depended,
    Ended,
    Exists,
    JobFailed,
    Limit,
    NoJob,
    NoModule,
    NoSchedule,
    NotClaimed,
    NotEnded,
    NotOwner,
    NotReady,
    NoWorker,
    Refused,
    Stale,
)
from .handlers import Handlers, NoHandler
from .jobs import Job
from .outcomes import Abandon, CancelRequested, Complete, GoHome, Lost, Next, NoRetry, Retry, Stopped, Trash
from .times import FOREVER
from .worker import Worker

__version__ = "0.1.0"

__all__ = [
    "Abandon",
    "After",
    "AsyncBoard",
    "AsyncShardedBoard",
    "Board",
    "BoardError",
    "Broken",
    "CancelRequested",
    "Cancelled",
    "Claimed",
    "Codec",
    "Complete",
    "Context",
    "Cycle",
    "Depended",
    "Ended",
    "Exists",
    "Exponential",
    "FOREVER",
    "Fixed",
    "GoHome",
    "Handlers",
    "Hook",
    "Job",
    "JobFailed",
    "Json",
    "Limit",
    "Lost",
    "Msgpack",
    "Next",
    "NoHandler",
    "NoJob",
    "NoModule",
    "NoRetry",
    "NoSchedule",
    "NoWorker",
    "Node",
    "NotClaimed",
    "NotEnded",
    "NotOwner",
    "NotReady",
    "Page",
    "PayloadError",
    "Raw",
    "Refused",
    "Requests",
    "Retry",
    "ShardedBoard",
    "Slice",
    "Stale",
    "Stopped",
    "Trash",
    "Worker",
]
