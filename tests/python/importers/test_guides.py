"""The guides of docs/guides/migrate: what they show is run, for each guide on an empty server.

```python before     makes jobs of the other library (```js before: in node)
```console           `$ jobboard …` and what it prints
```python after      run until there is no job (```js after: in node)
```output            the lines that the block before it prints, in any order
```js theirs         a program of the other library, on a server of its own; ```js ours: the same on a board
```python shown      not run
Blocks of node that import jobboard are modules, and use the package of clients/typescript.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from harness import KINDS, Server
from jobboard.importers.command import LIBRARIES

from .test_bullmq import NODE, PEERS
from .test_qless import Theirs

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "docs" / "guides" / "migrate"
INDEX = FOLDER / "README.md"
CELERY = FOLDER / "celery.md"
"""It moves no jobs: programs/test_guides.py runs it."""
GUIDES = sorted(path for path in FOLDER.glob("*.md") if path not in (INDEX, CELERY))


class Block(NamedTuple):
    kind: str
    text: str


def blocks(path: Path) -> Iterator[Block]:
    for found in re.finditer(r"^```(.+)\n((?:.*\n)*?)```$", path.read_text(), re.MULTILINE):
        yield Block(found[1], found[2])


@pytest.fixture
def server(pool, guide: Path, request: pytest.FixtureRequest) -> Iterator[Server]:
    """The kinds of servers by turns, a guide on each."""
    kinds = request.config.getoption("--server") or KINDS
    server = pool.borrow(kinds[GUIDES.index(guide) % len(kinds)])
    yield server
    server.check_health()
    server.close_clients()


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_what_a_guide_shows_is_so(server: Server, guide: Path):
    found = list(blocks(guide))
    kinds = [block.kind for block in found]
    assert {"console", "output"} < set(kinds), "each guide has a session and an example"
    if guide.stem == "qless":
        make_qless(server)
    for order in ("theirs", "ours", "before", "console", "after"):
        for number, block in enumerate(found):
            if order not in block.kind.split():
                continue
            if order == "console":
                run_session(server, block.text)
                continue
            printed = run(server, block)
            after = found[number + 1 :]
            if order == "theirs":
                after = after[1:]  # the same program of ours prints the same
            if after and after[0].kind == "output":
                assert sorted(printed.splitlines()) == sorted(after[0].text.splitlines())
            if order in ("theirs", "ours"):
                server.flush()


def run(server: Server, block: Block) -> str:
    """Runs a block against the server of the test; what it prints."""
    if block.kind.startswith("js"):
        text = block.text.replace("port: 6379", f"port: {server.port}")
        environment = {**os.environ, "NODE_PATH": str(PEERS / "node_modules")}
        words, folder = [NODE, "-e", text], None
        if "from 'jobboard'" in text:
            folder = ROOT / "clients" / "typescript"
            words.insert(1, "--input-type=module")
            environment["NODE_OPTIONS"] = "--conditions=jobboard-tests"
        done = subprocess.run(
            words, cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=True
        )
        assert done.stderr == ""
        return done.stdout
    text = block.text.replace("redis.Redis()", f"redis.Redis(port={server.port})")
    text = text.replace('"port": 6379', f'"port": {server.port}')
    text = text.replace(").run()", ").run(burst=True, signals=False)")
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(text, block.kind, "exec"), {"__name__": "example"})
    return output.getvalue()


def run_session(server: Server, text: str) -> None:
    environment = {**os.environ, "JOBBOARD_URL": f"redis://127.0.0.1:{server.port}"}
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        program, *words = command.split()
        assert program == "jobboard"
        done = subprocess.run(
            [sys.executable, "-m", "jobboard", *words],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.stdout == expected, command + done.stderr
        assert done.returncode == 0


def make_qless(server: Server) -> None:
    """What the guide shows with qless-py, and a failure and a recurring job."""
    theirs = Theirs(server.raw_client())
    theirs.put("mails", "broken", {"to": "ann"})
    theirs("fail", theirs.pop("mails")["jid"], "their-worker", "SMTPError", "no", "{}")
    theirs("recur", "mails", "daily", "mail.Digest", "{}", "interval", 86400, 3600)
    words = ("priority", 5, "tags", '["new"]')
    theirs("put", "mails", "welcome-ann", "mail.Welcome", '{"to": "ann"}', 0, *words)
    theirs("put", "mails", "survey-ann", "mail.Survey", '{"to": "ann"}', 86400)


def test_the_index_names_every_guide_and_every_importer():
    index = INDEX.read_text()
    assert set(re.findall(r"\]\(([\w-]+\.md)\)", index)) == {path.name for path in [*GUIDES, CELERY]}
    for library in LIBRARIES:
        assert any(f"jobboard import {library} " in path.read_text() for path in GUIDES), library


def test_the_options_are_those_of_the_command():
    helped = subprocess.run(
        [sys.executable, "-m", "jobboard", "import", "streams", "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    known = set(re.findall(r"(?<=\s)--[a-z-]+", helped)) | {"--prefix"}
    index = INDEX.read_text() + (FOLDER / "streams.md").read_text()
    told = set(re.findall(r"^\| `(--[a-z-]+)", index, re.MULTILINE))
    assert told == known - {"--help"}
