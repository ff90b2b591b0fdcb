"""The site of `make site`, made once for a run of the tests: their processes share it."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

import pytest
from documents import ROOT

PYTHON = ROOT / "target" / "tools" / "site" / "bin" / "python"


def made(temporary: pytest.TempPathFactory) -> Path:
    """The folder of the site; skips where the generator is not installed."""
    if not PYTHON.exists():
        pytest.skip(f"{PYTHON} is missing: scripts/site installs the generator")
    here = temporary.getbasetemp()
    folder = here.parent if "PYTEST_XDIST_WORKER" in os.environ else here
    with (folder / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "site" / "llms.txt").exists():
            words = [PYTHON, ROOT / "website" / "build.py", folder]
            done = subprocess.run(words, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"
