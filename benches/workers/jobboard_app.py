"""jobboard: posts and handler."""

from __future__ import annotations

import sys

import job
import redis
from jobboard import Board

board = Board("bench", redis.Redis(port=job.port()))


@board.handler("nothing")
def nothing(context, payload):
    job.nothing()


@board.handler("nothing-async")
async def nothing_async(context, payload):
    job.nothing()


if __name__ == "__main__":
    board.post_many([None] * int(sys.argv[1]), name=sys.argv[2])
