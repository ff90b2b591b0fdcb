"""The documents of this repository, as the tests read them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "clients" / "typescript"
COMMANDS = (ROOT / "commands.md").read_text()
README = (ROOT / "README.md").read_text()
TOUR = (ROOT / "docs/guides/tour.md").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
REDIS_CONF = (ROOT / "redis.conf").read_text()


class Block(NamedTuple):
    """A fenced block: the heading it stands under, its info string, and its lines."""

    heading: str
    info: str
    text: str
    line: int


def blocks(document: str) -> Iterator[Block]:
    heading, info, opened, lines = "", None, 0, []
    for number, line in enumerate(document.splitlines(), 1):
        if line.startswith("```"):
            if info is None:
                info, opened, lines = line[3:].strip(), number, []
            else:
                yield Block(heading, info, "\n".join(lines), opened)
                info = None
        elif info is not None:
            lines.append(line)
        elif line.startswith("#"):
            heading = line.lstrip("#").strip()


def sessions(document: str, info: str) -> dict[str, list[Block]]:
    """The blocks marked `info`, by heading."""
    found: dict[str, list[Block]] = {}
    for block in blocks(document):
        if block.info == info:
            found.setdefault(block.heading, []).append(block)
    return found


def table(document: str, heading: str) -> list[dict[str, str]]:
    """The rows of the first table under a heading, as dicts from column title to cell."""
    _, _, text = document.partition(f"\n## {heading}\n")
    assert text, f"no heading {heading!r}"
    lines = iter(text.splitlines())
    rows = []
    for line in lines:
        if line.startswith("## "):
            break
        if line.startswith("|"):
            rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
        elif rows:
            break
    titles, _, *cells = rows
    return [dict(zip(titles, row)) for row in cells]


def run_typescript(text: str, url: str | None = None) -> str:
    """Runs a block in TypeScript with the package of this repository; what it prints."""
    here = {} if url is None else {"JOBBOARD_URL": url}
    done = subprocess.run(
        ["node", "scripts/pages.mjs", "run"],
        input=text,
        cwd=PACKAGE,
        env={**os.environ, "NODE_OPTIONS": "--conditions=jobboard-tests", **here},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout
