"""Free ports, and who holds one that is not."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

from .cannot import CannotServe

HOST = "127.0.0.1"


def choose(port: int, argument: str, *, other: bool = False) -> int:
    """The port, or a free one for 0; `other`: also in place of one that is taken."""
    if port and not is_free(port):
        if not other:
            raise CannotServe(
                f"port {port} is taken by {holder(port)}: stop that, or choose another with {argument} "
                f"({argument} 0 takes a free one)"
            )
        port = 0
    return port or any_free()


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except PermissionError:
            raise CannotServe(
                f"port {port} is for the system's own programs: choose one above 1023"
            ) from None
        except OSError:
            return False
    return True


def any_free() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        found: int = probe.getsockname()[1]
        return found


def holder(port: int) -> str:
    """The process that listens on a port, as far as this system and this user may see it."""
    inodes = set(_listening(port))
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            for link in (folder / "fd").iterdir():
                if os.readlink(link) in inodes:
                    return f"{(folder / 'comm').read_text().strip()} (process {folder.name})"
    return "another program"


def _listening(port: int) -> list[str]:
    """The sockets that listen on it, as the names of their file descriptors."""
    found = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                cells = line.split()
                if cells[3] == LISTEN and int(cells[1].rpartition(":")[2], 16) == port:
                    found.append(f"socket:[{cells[9]}]")
    return found


LISTEN = "0A"
