"""The tests of the TypeScript package, by node's test runner. scripts/languages compiles them."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from documents import PACKAGE, blocks, run_typescript
from harness import Server
from harness.kinds import executable
from harness.server import MODULE

pytestmark = pytest.mark.long

FILES = sorted(path.stem.removesuffix(".test") for path in (PACKAGE / "test").glob("*.test.ts"))


@pytest.mark.parametrize("file", FILES)
def test_the_package(file: str, server_kind: str) -> None:
    program = PACKAGE / "build" / "test" / f"{file}.test.js"
    assert program.exists(), f"{program} is missing: run scripts/typescript build"
    environment = {
        **os.environ,
        "JOBBOARD_MODULE": str(MODULE),
        "JOBBOARD_SERVER": str(executable(server_kind)),
        "NODE_OPTIONS": "--conditions=jobboard-tests",  # examples import the package by its name
    }
    words = ["node", "--test", "--test-reporter=tap", str(program)]
    found = subprocess.run(words, cwd=PACKAGE, env=environment, capture_output=True, text=True, timeout=280)
    assert found.returncode == 0, found.stdout + found.stderr
    assert re.search(r"^# pass [1-9]", found.stdout, re.MULTILINE), "no test has run"


def test_the_typescript_of_all_documents_compiles_for_a_user() -> None:
    """Strictly, and as it stands in the page."""
    done = subprocess.run(
        ["node", "scripts/pages.mjs"], cwd=PACKAGE, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"[1-9]\d* programs of the documents compiled\n", done.stdout)


def test_what_does_not_compile_is_named_by_page_and_line(tmp_path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```ts\nimport { Board } from 'jobboard';\n```\n\n```ts\nnew Board(1);\n```\n")
    words = ["node", "scripts/pages.mjs", str(page)]
    done = subprocess.run(words, cwd=PACKAGE, capture_output=True, text=True, timeout=280)
    assert done.returncode == 1
    assert re.search(r"page\.md:6: .*number.* is not assignable", done.stderr), done.stderr


def test_the_readme_runs(server: Server) -> None:
    """The blocks that are no files; the files are those of the package's own tests."""
    found = {}
    for block in blocks((PACKAGE / "README.md").read_text()):
        if block.info == "ts" and not block.text.startswith("// "):
            found[block.heading] = run_typescript(block.text, f"redis://127.0.0.1:{server.port}").splitlines()
    assert len(found["Tasks"]) == 5  # the list of three ids
    watched = found["Results, watching, events"]
    assert watched[-3:] == ["complete 100 second pass", "alien: the second pass begins", "completed true"]
    assert len(found) == 2
