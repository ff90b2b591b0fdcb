"""A signal ends programs that wait, whatever it interrupts."""

from __future__ import annotations

import subprocess
import sys

from jobboard.commands.ending import Ending

ROUNDS = """
import signal
from jobboard.commands.ending import Ending
from jobboard.copying.archive import follow

for _ in range(300):
    ending = Ending()
    signal.signal(signal.SIGALRM, ending.ask)
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    follow([], every=0.0, ended=ending.wait)
print("ended")
"""


def test_a_signal_in_the_middle_of_a_wait_ends_it() -> None:
    """A wait that holds a lock hangs within a few of these rounds."""
    done = subprocess.run(
        [sys.executable, "-c", ROUNDS], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "ended\n", done.stderr


def test_a_wait_without_a_signal_is_over_in_time() -> None:
    ending = Ending()
    assert not ending.wait(0.01)
    ending.ask()
    assert ending.wait(60) and ending.wait(60)
