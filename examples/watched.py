"""Work that takes its time and tells how far it is: something to look at in the console.

    jobboard worker examples.watched:board --session
    jobboard post watched 30 --name walk

A job's payload is how many seconds it takes. $JOBBOARD_URL or `--url` says where the server is.
"""

from __future__ import annotations

import time

from jobboard import Board, Context

STEPS = 50

board = Board("watched")


@board.handler("walk")
def walk(context: Context, seconds: float) -> str:
    for step in range(STEPS):
        time.sleep(seconds / STEPS)
        context.progress(100 * (step + 1) / STEPS, f"step {step + 1} of {STEPS}")
    return f"walked for {seconds} s"
