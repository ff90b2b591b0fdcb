"""A step on its way to the server."""

from __future__ import annotations

from typing import Any

from .run import Run


class Storing:
    """What a handler waits for while the worker stores a step: `answered`, then `value` or `error`."""

    def __init__(self, run: Run, name: str, data: bytes, replace: bool) -> None:
        self.run, self.name, self.data, self.replace = run, name, data, replace
        self.value: bytes | None = None
        """What is stored, when that is another value than ours."""
        self.error: BaseException | None = None
        self.answered = False

    def words(self, lease: int) -> list[Any]:
        options: list[Any] = ["LEASE", lease, *(["REPLACE"] if self.replace else [])]
        return self.run.words("JOB.STEP", [self.run.id, self.name, self.data], options)
