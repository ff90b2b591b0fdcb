"""What documents tell people to type exists: commands, options of the console, targets of make, methods."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import jobboard
import pytest
from console.process import BINARY
from documents import ROOT
from jobboard.cli import build_parser

PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("clients/*/README.md")]
PAGES = sorted(page for page in PAGES if page.name != "CHANGELOG.md")


def typed(program: str) -> Iterator[tuple[Path, str]]:
    """What stands in a line of its own or between backticks, and begins with the name of the program."""
    for page in PAGES:
        text = page.read_text()
        for found in re.findall(rf"^(?:    |\$ )({program} .*)$|`({program} [^`\n]*)`", text, re.MULTILINE):
            yield page, re.split(r"\s#|\s{2,}|&&|;", found[0] or found[1])[0].strip()


@pytest.fixture
def parser(monkeypatch):
    monkeypatch.setenv("JOBBOARD_URL", "redis://127.0.0.1:1")
    return build_parser()


def test_commands_of_jobboard_are_understood(parser) -> None:
    """Where only a board or an id is missing, the text speaks of the command as such."""
    count = 0
    for page, line in typed("jobboard"):
        if "|" in line:
            continue
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            with contextlib.suppress(SystemExit):
                parser.parse_args(shlex.split(line)[1:])
        wrong = re.findall(r"error: (.*)", said.getvalue())
        assert not wrong or "arguments are required" in wrong[0], f"{page.name}: {line}: {wrong}"
        count += not wrong
    assert count > 50


def glued(text: str) -> list[str]:
    """Text that stands directly under a table: it would be shown as a row of it."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"^\|.*\|\n([^|\n<].*)$", text, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_text_slips_into_a_table(page: Path) -> None:
    assert not glued(page.read_text())


def test_text_in_a_table_is_found() -> None:
    assert glued("| a | b |\n|---|---|\n| 1 | 2 |\nThen this.\n") == ["Then this."]
    assert not glued("| a |\n|---|\n| 1 |\n\nThen this.\n```\n| x |\ny\n```\n")


def test_options_of_the_console_exist() -> None:
    helped = subprocess.run([BINARY, "--help"], capture_output=True, text=True, check=True).stdout
    known = set(re.findall(r"--[a-z-]+", helped))
    lines = list(typed("jobboard-console"))
    assert lines
    for page, line in lines:
        assert set(re.findall(r"--[a-z-]+", line)) <= known, f"{page.name}: {line}"


def test_targets_of_make_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page, line in typed("make"):
        name = line.split()[1]
        assert name in targets or "=" in name, f"{page.name}: {line}"


def test_methods_of_python_that_the_pages_name_exist() -> None:
    kinds = (jobboard.Board, jobboard.ShardedBoard, jobboard.Context)
    for page in PAGES:
        if page.stem == "bullmq" or page.parent.name == "typescript":
            continue  # they speak of the package for Node
        for name in re.findall(r"`(?:board|context)\.(\w+)\(", page.read_text()):
            assert any(hasattr(kind, name) for kind in kinds), f"{page.name}: {name}"
