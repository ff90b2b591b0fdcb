"""The guides of docs/guides: the blocks of a page run in their order, on a private server of the page's own.

```python          the program of the page: its blocks share one namespace, and `Board("mails")` is there
```python test     tests with the fixtures of the package's plugin for pytest: each on the emptied server
```ts              a program in strict TypeScript, on the emptied server
```output          the lines that the block before it prints
```console         `$ jobboard …`, and what it prints, on what the block before has left
```python shown    not run, like every other kind

The server has the manual clock, so that hours pass at once.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from documents import ROOT, Block, blocks, run_typescript
from harness import KINDS, MODULE
from harness.kinds import executable
from jobboard.testing import InlineWorker, TestServer

FOLDER = ROOT / "docs" / "guides"
FILES = [*sorted(FOLDER.glob("*.md")), FOLDER / "migrate" / "celery.md"]
"""Those that move jobs are run by importers/test_guides.py."""
PAGES = {
    path.relative_to(FOLDER).with_suffix("").as_posix(): list(blocks(path.read_text())) for path in FILES
}
GUIDES = {name: found for name, found in PAGES.items() if any(one.info == "python test" for one in found)}
"""The pages that have tests of their own in them."""


@pytest.fixture
def server(guide: str, request: pytest.FixtureRequest, monkeypatch) -> Iterator[TestServer]:
    """The kinds of servers by turns, a guide on each."""
    kinds = request.config.getoption("--server") or KINDS
    kind = kinds[[*GUIDES].index(guide) % len(kinds)]
    server = TestServer(server=str(executable(kind)), module=str(MODULE))
    server.start()
    monkeypatch.setenv("JOBBOARD_URL", server.url)
    monkeypatch.setenv("JOBBOARD_SERVER", str(executable(kind)))  # for what a guide starts itself
    monkeypatch.setenv("JOBBOARD_MODULE", str(MODULE))
    yield server
    server.stop()


@pytest.mark.parametrize("guide", GUIDES)
def test_what_a_guide_shows_is_so(server: TestServer, guide: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": guide}
    found = GUIDES[guide]
    for block, following in zip(found, [*found[1:], None]):
        printed = run(server, block, names)
        if following is not None and following.info == "output":
            assert printed is not None, f"{guide}.md, line {following.line}: nothing has run before"
            assert printed.splitlines() == following.text.splitlines(), f"{guide}.md, line {following.line}"
        elif printed and block.info != "console":
            raise AssertionError(f"{guide}.md, line {block.line} prints, and no output follows: {printed}")


def run(server: TestServer, block: Block, names: dict[str, object]) -> str | None:
    """Runs a block; what it prints, or None when it is not run."""
    if block.info == "ts":
        server.empty()
        return run_typescript(block.text)
    if block.info == "console":
        run_session(block.text)
        return None
    if block.info not in ("python", "python test"):
        return None
    output, before = io.StringIO(), set(names)
    with contextlib.redirect_stdout(output):
        exec(compile("\n" * block.line + block.text, f"{names['__name__']}.md", "exec"), names)
        if block.info == "python test":
            tests = [names[name] for name in names if name.startswith("test_") and name not in before]
            assert tests, f"line {block.line}: no test"
            for test in tests:
                server.empty()
                run_test(server, test)
    return output.getvalue()


def run_test(server: TestServer, test) -> None:
    """As pytest does it with the fixtures of the package."""
    fixtures = {"jobboard": server, "jobboard_worker": InlineWorker(server), "capsys": None}
    test(**{name: fixtures[name] for name in inspect.signature(test).parameters})
    server.release()


def run_session(text: str) -> None:
    """Commands that nothing follows print what they like; the others what stands there."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        program, *words = shlex.split(command)
        assert program == "jobboard", command
        done = subprocess.run(
            [sys.executable, "-m", "jobboard", *words], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        assert not expected.strip() or done.stdout.strip() == expected.strip(), f"{command}\n{done.stdout}"


def test_every_guide_of_a_task_runs() -> None:
    """A page that shows a program of Python has tests, or is one that other tests run."""
    others = {"celery", "django", "payloads", "tour"}
    shown = {name for name, found in PAGES.items() if any(one.info.startswith("python") for one in found)}
    assert shown - set(GUIDES) <= others, "give the page a block `python test`, or name what runs it above"
    assert len(GUIDES) >= 19
