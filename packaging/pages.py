"""The documents that the packages bring: all of them, with the programs of the examples in Python.

They lie in the folders of the repository, so that alert rules, redis.conf and the pages themselves find each
other. A link to what no package brings becomes its text, and so does a picture.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"!?\[([^\[\]]+)\]\((?!https?:)([^()#\s]*)(#[^()\s]*)?\)")


def names() -> list[str]:
    """The pages, by their places in the repository."""
    found = ["README.md", "SECURITY.md", "clients/python/README.md", "clients/typescript/README.md"]
    return found + [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").rglob("*.md"))]


def brought() -> list[str]:
    """With the reference, the changes and the programs, which every package brings too."""
    return [*names(), "commands.md", "CHANGELOG.md", *programs()]


def programs() -> list[str]:
    """The examples in Python. The exporter is a program of the packages: jobboard-exporter."""
    found = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "examples").glob("*.py"))]
    return [name for name in found if not name.endswith("/exporter.py")]


def page(name: str) -> str:
    """The text of a page or a program, as a package brings it. No page links to the changes: Debian's package
    packs them.
    """
    if name.endswith(".py"):
        return (ROOT / name).read_text()
    return _with(name, {*names(), "commands.md", *programs()})


def alone(name: str) -> str:
    """The text of a page that is read where no other one is."""
    return _with(name, set())


def _with(name: str, there: set[str]) -> str:
    folder = posixpath.dirname(name)

    def link(found: re.Match[str]) -> str:
        text, target, _ = found.groups()
        leads = not target or posixpath.normpath(posixpath.join(folder, target)) in there
        return found[0] if leads else text

    return LINK.sub(link, (ROOT / name).read_text())
