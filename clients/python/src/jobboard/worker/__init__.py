"""The worker: claims the jobs of a board, runs their handlers, and keeps their leases. engine.py is its map.

Uses `board`.
"""

import logging

from ..escaping import EscapingFilter
from .worker import Worker

__all__ = ["Worker"]

logging.getLogger("jobboard.worker").addFilter(EscapingFilter())
