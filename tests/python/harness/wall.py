"""The wall clock of a server, moved by hand while the real one goes on: for steps of the machine's clock."""

from __future__ import annotations

import functools
import mmap
import os
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import redis

SOURCE = Path(__file__).with_name("wall_clock.c")


@functools.cache
def _library() -> tuple[Path, tempfile.TemporaryDirectory[str]]:
    """The shim, compiled once by each process; the folder lives as long."""
    folder = tempfile.TemporaryDirectory(prefix="wall-clock-")
    library = Path(folder.name) / "wall_clock.so"
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE)], check=True)
    return library, folder


class WallClock:
    """What the servers started with its `environment` take for the machine's wall clock.

    Their monotonic clock is the machine's. It starts at the machine's time, and stays where it was put over
    restarts of the server.
    """

    def __init__(self) -> None:
        library, _ = _library()
        file = tempfile.NamedTemporaryFile(prefix="wall-clock-")  # noqa: SIM115
        file.truncate(16)
        self._file, self._map = file, mmap.mmap(file.fileno(), 16)
        self.environment = {"LD_PRELOAD": str(library), "WALL_CLOCK": file.name}
        self.ahead = 0.0

    def step(self, seconds: float) -> None:
        """A step ahead, or back."""
        self.ahead += seconds
        self._map[:8] = struct.pack("@q", round(self.ahead * 1_000_000))

    def flip(self, seconds: float, looks: int) -> None:
        """So far ahead for the server's next looks at it, then right."""
        self.ahead = 0.0
        self._map[:] = struct.pack("@qq", round(seconds * 1_000_000), looks)

    @property
    def flipped(self) -> bool:
        """Whether looks of the last flip are left."""
        return struct.unpack("@qq", self._map[:])[1] > 0

    def seen_by(self, client: redis.Redis) -> bool:
        """Whether the server has noticed: some ask for the time only now and then."""
        seconds, micros = client.time()
        return abs(seconds + micros / 1e6 - time.time() - self.ahead) < 0.2

    def close(self) -> None:
        self._map.close()
        self._file.close()
