"""Who did what through `jobboard mcp`, and what came of it: a line of JSON before each action, one after it.

An action that cannot be written down is not done.
"""

from __future__ import annotations

import getpass
import json
import os
import sys
import threading
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar

from ..escaping import escaped, escaped_json

T = TypeVar("T")


def default_file() -> Path:
    """Under the state directory of the user."""
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(home) / "jobboard" / "mcp.jsonl"


class Audit:
    """The file, for this user alone. `server` and `user` say where and as whom the actions are done."""

    def __init__(self, path: Path, server: str, user: str) -> None:
        self.path = path
        self.about = {"by": _person(), "pid": os.getpid(), "server": server, "user": user}
        self._lock = threading.Lock()
        self._number = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def acted(self, tool: str, arguments: dict[str, Any], act: Callable[[], T]) -> T:
        """Does it, between its two lines."""
        with self._lock:
            self._number += 1
            number = self._number
        self._write({"action": number, "tool": tool, "arguments": arguments, **self.about})
        try:
            done = act()
        except BaseException as error:
            self._write({"action": number, "refused": f"{type(error).__name__}: {error}", **self.about})
            raise
        self._write({"action": number, "done": done, **self.about})
        return done

    def _write(self, entry: dict[str, Any]) -> None:
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        line = escaped_json(json.dumps({"at": now, **entry}, ensure_ascii=False, default=str))
        with self._lock:
            os.write(self._file, f"{line}\n".encode())
            os.fsync(self._file)
        print(escaped(f"jobboard mcp: {line}"), file=sys.stderr, flush=True)


def _person() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a number that no name stands for
        return str(os.getuid())
