"""A server of one's own: found, started on a data folder, watched, stopped. serve.py is its map.

Uses `board`, `worker`.
"""

from .cannot import CannotServe
from .parts import Program, find_console, find_module, find_server
from .process import ServerProcess

__all__ = ["CannotServe", "Program", "ServerProcess", "find_console", "find_module", "find_server"]
