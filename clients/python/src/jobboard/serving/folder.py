"""The data folder of a server: who holds it, what is in it, and the password."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import secrets
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import __version__
from .cannot import CannotServe

LAYOUT = 1
"""Of the files in the folder. Raised when an older jobboard would misread them."""
ROOM = 16 << 20
"""Bytes that have to be free on its disk at the start."""

MARK = "jobboard.json"


def default_folder() -> Path:
    """In the user's data directory."""
    usual = "~/Library/Application Support" if sys.platform == "darwin" else "~/.local/share"
    try:
        return Path(os.environ.get("XDG_DATA_HOME") or usual).expanduser() / "jobboard"
    except RuntimeError:
        raise CannotServe("this user has no home directory: say with --dir where the jobs are kept") from None


class DataFolder:
    """A folder that this process holds, alone, from `open` to `close`.

    jobboard.json   which versions wrote the data
    lock            who holds the folder; the server inherits it, so that it is held while either lives
    password        the server's, for its user alone
    url             where the server is, with the password, while it runs; likewise
    server.log      of the server, from its last start; console.log likewise
    appendonlydir/  the data, as the server writes them
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.abspath(path))
        self.lock = -1

    def open(self) -> None:
        """Makes the folder when it is missing, and takes it. Changes nothing in one that cannot be served."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._check_data()
            self.lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise CannotServe(self._sentence(error)) from None
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotServe(self._held()) from None
        except OSError as error:
            raise CannotServe(
                f"{self.path} cannot be locked ({error.strerror}): choose another --dir"
            ) from None
        self._check_room()

    def close(self) -> None:
        if self.lock >= 0:
            os.close(self.lock)
            self.lock = -1

    def say(self, about: Mapping[str, Any]) -> None:
        """Writes who holds the folder, for those who come second."""
        os.ftruncate(self.lock, 0)
        os.pwrite(self.lock, json.dumps(about).encode(), 0)

    def mark(self, server: str) -> None:
        """Notes which versions serve the data, once they do."""
        text = json.dumps({"layout": LAYOUT, "jobboard": __version__, "server": server})
        self._write(MARK, text + "\n")

    @property
    def written_by(self) -> str | None:
        """The server that wrote the data."""
        return self._mark().get("server")

    def password(self) -> str:
        """The one in the file, which is made at the first start."""
        path = self.password_file
        try:
            text = path.read_text().strip()
            if path.stat().st_mode & 0o077:
                path.chmod(0o600)
        except FileNotFoundError:
            text = secrets.token_urlsafe(18)
            self._write(path.name, text + "\n")
        except (OSError, UnicodeDecodeError) as error:
            raise CannotServe(
                f"{path} cannot be read ({error}): remove it to have a new password made"
            ) from None
        if not text or not text.isprintable():
            raise CannotServe(f"{path} must hold one line of text: remove it to have a new password made")
        return text

    @property
    def password_file(self) -> Path:
        return self.path / "password"

    @property
    def url_file(self) -> Path:
        return self.path / "url"

    def say_url(self, url: str) -> None:
        """Keeps it for those who may read the password."""
        self._write(self.url_file.name, url + "\n")

    def forget_url(self) -> None:
        with contextlib.suppress(OSError):
            self.url_file.unlink(missing_ok=True)

    def _check_data(self) -> None:
        mark = self._mark()
        if mark.get("layout", 0) > LAYOUT or newer(mark.get("jobboard", ""), __version__):
            raise CannotServe(
                f"{self.path} was written by jobboard {mark.get('jobboard')}, and {__version__} may not know "
                "all of it: pip install -U --find-links FOLDER 'jobboard[server]' with the newer wheels, or "
                "choose another --dir"
            )
        if (self.path / "dump.rdb").exists() and not (self.path / "appendonlydir").exists():
            raise CannotServe(
                f"{self.path} has the snapshot of another server (dump.rdb), which would not be read here: "
                "choose another --dir"
            )

    def _check_room(self) -> None:
        """Writes and removes a file: so a full disk, a quota and a read-only volume are found alike."""
        try:
            with tempfile.TemporaryFile(dir=self.path) as file:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, ROOM)
                else:
                    file.write(bytes(ROOM))
                    file.flush()
        except OSError as error:
            raise CannotServe(self._sentence(error)) from None

    def _mark(self) -> dict[str, Any]:
        try:
            found = json.loads((self.path / MARK).read_text())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise CannotServe(f"{self.path / MARK} cannot be read ({error}): choose another --dir") from None
        return found if isinstance(found, dict) else {}

    def _held(self) -> str:
        """Who holds it, by what `say` wrote."""
        about: dict[str, Any] = {}
        with contextlib.suppress(OSError, ValueError):
            about = json.loads(os.pread(self.lock, 4096, 0))
        self.close()
        who = "another jobboard server, which is about to start or to end"
        if about:
            console = f", console {about['console']}" if about.get("console") else ""
            who = f"process {about['process']}, which serves it at {about['address']}{console}"
        return f"{self.path} is held by {who}: use that server, stop it, or choose another --dir and --port"

    def _sentence(self, error: OSError) -> str:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            room = f"free {ROOM >> 20} MB there"
            return f"there is no room on the disk of {self.path}: {room}, or choose another --dir"
        if error.errno == errno.EROFS:
            return f"{self.path} is on a read-only volume: mount it for writing, or choose another --dir"
        if error.errno in (errno.EACCES, errno.EPERM):
            return f"{self.path} cannot be written by this user: choose another --dir"
        if error.errno in (errno.ENOTDIR, errno.EEXIST):
            return f"{self.path} is no folder: choose another --dir"
        return f"{self.path} cannot be used ({error.strerror}): choose another --dir"

    def _write(self, name: str, text: str) -> None:
        """The file whole or not at all, for this user alone."""
        try:
            handle, temporary = tempfile.mkstemp(dir=self.path)
            with os.fdopen(handle, "w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.path / name)
        except OSError as error:
            raise CannotServe(self._sentence(error)) from None


def newer(one: str, other: str) -> bool:
    return _numbers(one) > _numbers(other)


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]
