"""The tests of the TypeScript package, by node's test runner. scripts/languages compiles them."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from harness.kinds import executable
from harness.server import MODULE, ROOT

pytestmark = pytest.mark.long

PACKAGE = ROOT / "clients" / "typescript"
FILES = sorted(path.stem.removesuffix(".test") for path in (PACKAGE / "test").glob("*.test.ts"))
OF_A_SERVER = ("board", "steps", "worker")
"""Those that run on every server."""


@pytest.mark.every_server
@pytest.mark.parametrize("file", OF_A_SERVER)
def test_on_every_server(file: str, server_kind: str) -> None:
    run(file, server_kind)


@pytest.mark.parametrize("file", [file for file in FILES if file not in OF_A_SERVER])
def test_on_one_server(file: str) -> None:
    run(file, "valkey91")


def run(file: str, kind: str) -> None:
    program = PACKAGE / "build" / "test" / f"{file}.test.js"
    assert program.exists(), f"{program} is missing: run scripts/typescript build"
    environment = {
        **os.environ,
        "JOBBOARD_MODULE": str(MODULE),
        "JOBBOARD_SERVER": str(executable(kind)),
        "NODE_OPTIONS": "--conditions=jobboard-tests",  # examples import the package by its name
    }
    words = ["node", "--test", "--test-reporter=tap", str(program)]
    found = subprocess.run(words, cwd=PACKAGE, env=environment, capture_output=True, text=True, timeout=280)
    assert found.returncode == 0, found.stdout + found.stderr
    assert re.search(r"^# pass [1-9]", found.stdout, re.MULTILINE), "no test has run"
