"""The worker: claims the jobs of a board and runs their handlers."""

import logging

from ..visible import Visible
from .worker import Worker

__all__ = ["Worker"]

logging.getLogger("jobboard.worker").addFilter(Visible())
