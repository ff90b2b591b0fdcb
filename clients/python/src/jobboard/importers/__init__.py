"""Ways over from other libraries: `jobboard import rq|bullmq|qless|work-queue|taskflow|streams`.

Uses `board`, `commands` and `taskflow`.
"""

from .command import add_command

__all__ = ["add_command"]
