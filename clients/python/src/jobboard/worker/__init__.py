"""The worker: claims the jobs of a board and runs their handlers."""

from .worker import Worker

__all__ = ["Worker"]
