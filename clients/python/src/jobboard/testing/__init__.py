"""For tests of programs that use boards: a private server, its clock, and a worker that runs handlers inline.

The fixtures of pytest are in jobboard_pytest.py, beside the package.

Uses `board`, `serving` and `worker`.
"""

from .clock import Clock
from .inline import InlineWorker, Killed, Ran, run_inline, run_inline_async
from .server import TestServer

__all__ = ["Clock", "InlineWorker", "Killed", "Ran", "TestServer", "run_inline", "run_inline_async"]
