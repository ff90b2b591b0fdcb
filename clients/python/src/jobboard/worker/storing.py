"""What a handler has on its way to the server: a step, a wait for signals, output."""

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

    def take(self, found: dict[bytes, Any]) -> str | None:
        """Takes the answer; why the job is ours no more, if it is not."""
        self.value = found.get(b"value")
        return None if found[b"deadline"] else "its lease has ended, and another job has its place"

    def words(self, lease: list[Any]) -> list[Any]:
        options: list[Any] = [*lease, *(["REPLACE"] if self.replace else [])]
        return self.run.words("JOB.STEP", [self.run.id, self.name, self.data], options)


class Writing:
    """What a handler has written since its last chunk of output was sent. It gets its number when it is sent,
    and keeps both when it has to be sent again, so that the server knows it.
    """

    MOST = 16_384
    """Bytes."""

    def __init__(self, data: bytes) -> None:
        self.data, self.number = data, 0

    def takes(self, data: bytes) -> bool:
        """Adds to it, where it has no number yet and is not too long."""
        fits = not self.number and len(self.data) + len(data) <= self.MOST
        if fits:
            self.data += data
        return fits


class Awaiting(Storing):
    """What a handler waits for while the server says whether all that it asks for is there: `found`, or
    `error`.
    """

    def __init__(self, run: Run, wait: list[Any]) -> None:
        super().__init__(run, "a wait", b"", False)
        self.wait = wait
        self.found: dict[bytes, Any] = {}

    def take(self, found: dict[bytes, Any]) -> str | None:
        self.found = found
        return None

    def words(self, lease: list[Any]) -> list[Any]:
        return self.run.words("JOB.AWAIT", [self.run.id, *self.wait], [])
