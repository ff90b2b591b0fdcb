"""Job boards inside Redis and Valkey: post jobs, work on them, watch them.

board = Board("mails", redis.Redis())

@board.task("welcome")
def welcome(to: str) -> None: ...

welcome.post(to="ann")
Worker(board).run()
"""

from .board import AsyncBoard, Board, Requests
from .board.context import Context
from .board.events import Event
from .board.family import Slice
from .board.flows import Flow, chain, group
from .board.hooks import Hook, Hooks
from .board.posting import After, Await, Node
from .board.sending import Page
from .board.sharded import AsyncShardedBoard, ShardedBoard
from .board.tasks import AsyncTask, Task
from .codecs import Codec, Json, Msgpack, PayloadError, Raw
from .durations import FOREVER
from .errors import (
    BoardError,
    Broken,
    Cancelled,
    Claimed,
    Cycle,
    Depended,
    Ended,
    Exists,
    Gap,
    JobFailed,
    JobUnknown,
    Limit,
    NoBoard,
    NoJob,
    NoModule,
    NoResult,
    NoSchedule,
    NotClaimed,
    NotEnded,
    NotOwner,
    NotReady,
    NoWorker,
    Refused,
    ResultDropped,
    Stale,
    WrongQueue,
)
from .handlers import Handlers, NoHandler
from .jobs import Job
from .layers import Compressed, Encrypted, Files, Offloaded
from .outcomes import (
    Abandon,
    CancelRequested,
    Complete,
    GoHome,
    Lost,
    Next,
    NoRetry,
    RateLimited,
    Retry,
    Stopped,
    Trash,
)
from .signatures import ArgumentError
from .worker import Worker

__version__ = "0.2.3"

__all__ = [
    "Abandon",
    "After",
    "Await",
    "ArgumentError",
    "AsyncBoard",
    "AsyncShardedBoard",
    "AsyncTask",
    "Board",
    "BoardError",
    "Broken",
    "CancelRequested",
    "Cancelled",
    "Claimed",
    "Codec",
    "Complete",
    "Compressed",
    "Context",
    "Cycle",
    "Gap",
    "Depended",
    "Encrypted",
    "Ended",
    "Event",
    "Exists",
    "FOREVER",
    "Files",
    "Flow",
    "GoHome",
    "Handlers",
    "Hook",
    "Hooks",
    "Job",
    "JobFailed",
    "JobUnknown",
    "Json",
    "Limit",
    "Lost",
    "Msgpack",
    "Next",
    "NoBoard",
    "NoHandler",
    "NoJob",
    "NoModule",
    "NoResult",
    "NoRetry",
    "NoSchedule",
    "NoWorker",
    "Node",
    "NotClaimed",
    "NotEnded",
    "NotOwner",
    "NotReady",
    "Page",
    "Offloaded",
    "Page",
    "PayloadError",
    "Raw",
    "Refused",
    "Requests",
    "ResultDropped",
    "RateLimited",
    "Retry",
    "ShardedBoard",
    "Slice",
    "Stale",
    "Stopped",
    "Task",
    "Trash",
    "Worker",
    "WrongQueue",
    "chain",
    "group",
]
