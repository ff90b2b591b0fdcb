"""A board as a program has it: its verbs, how they are sent, and what handlers of its jobs are given.

Each family of verbs has a file, which says what to send and what the reply means. sending.py makes the verbs
methods of a `Board` and coroutines of an `AsyncBoard`.

Uses no other room.
"""

from .board import AsyncBoard, Board, Requests
from .sharded import AsyncShardedBoard, ShardedBoard

__all__ = ["AsyncBoard", "AsyncShardedBoard", "Board", "Requests", "ShardedBoard"]
