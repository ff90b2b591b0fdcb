"""README, the guides and the pages for operators can be followed by who has the packages, and no source."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from documents import ROOT

OPERATE = sorted(ROOT.glob("docs/operate/*.md"))
GUIDES = sorted(ROOT.glob("docs/guides/**/*.md"))
PAGES = [ROOT / "README.md", *GUIDES, *OPERATE]

SOURCE = {
    "README.md": ("From source", "From wheels", "Into a server of yours", "How mature it is"),
    "docs/guides/install.md": ("From source",),
}
"""Sections, or points of a list by their bold beginning, for who has the source tree."""
LINK = re.compile(r"!?\[([^\]]*)\]\(([^()\s]+)\)")
PATHS = re.compile(
    r"(?<![\w/.-])(?:\.venv|benches|board|chaos|clients|fuzz|packaging|scripts|soak|src|target|tests|website)/"
)
TOOLS = re.compile(r"(?:^ {4}|`)(?:make [a-z]|cargo )|`make`", re.MULTILINE)
EXAMPLE = re.compile(r"(?<![\w/.-])examples/[\w/.-]*")


def for_users(page: str, text: str) -> str:
    """The page without its parts for who has the source tree."""
    for title in SOURCE.get(page, ()):
        section = re.compile(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
        point = re.compile(rf"^- \*\*{re.escape(title)}\*\*.*\n", re.MULTILINE)
        text, sections = section.subn("", text)
        text, points = point.subn("", text)
        assert sections + points == 1, f"{page} has no part {title}"
    return text


def not_there(page: str, text: str) -> Iterator[str]:
    """What a page names that no package and no page of the site has."""
    text = for_users(page, text)
    shown = LINK.sub(lambda link: link[1], text)
    yield from (found[0] for found in PATHS.finditer(shown))
    yield from (found[0].strip() for found in TOOLS.finditer(shown))
    without_links = LINK.sub("", text)
    yield from (found[0] for found in EXAMPLE.finditer(without_links) if page != "docs/guides/examples.md")
    for _, target in LINK.findall(text):
        if not re.match(r"[a-z]+:", target) and not leads(page, target.partition("#")[0]):
            yield f"({target})"


def leads(page: str, target: str) -> bool:
    """Whether the site has what a link leads to. Operators may read the copies that the packages bring, and
    then have no README of a client."""
    if not target:
        return True
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
    if path.startswith("clients/"):
        known = path.endswith("README.md") or path == "clients/typescript/examples"
        return known and not page.startswith("docs/operate/")
    return path.startswith(("docs/", "examples")) or "/" not in path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_it_names_nothing_that_only_the_source_tree_has(page: Path) -> None:
    assert not list(not_there(page.relative_to(ROOT).as_posix(), page.read_text()))


@pytest.mark.parametrize(
    "text, found",
    [
        ("tried by `tests/python/server`", "tests/"),
        ("    make dist\n", "make d"),
        ("`make`", "`make`"),
        ("`cargo build`", "`cargo"),
        ("    .venv/bin/jobboard list mails\n", ".venv/"),
        ("see `examples/outbox.py`", "examples/outbox.py"),
        ("see [the package](../../clients/python/README.md#modes)", "(../../clients/python/README.md#modes)"),
        ("[packaging/keda](../../packaging/keda/worker.yaml)", "packaging/"),
        ("[here](../../tests/fixtures/FROZEN)", "(../../tests/fixtures/FROZEN)"),
    ],
)
def test_such_names_are_found(text: str, found: str) -> None:
    assert found in list(not_there("docs/operate/x.md", text))


@pytest.mark.parametrize(
    "text",
    [
        "`/srv/mails/.venv/bin/jobboard`",
        "[examples/outbox.py](../../examples/outbox.py)",
        "[more](../guides/cron.md#x), [conf](../../redis.conf), [site](https://example.com/tests/x)",
        "they make a board",
    ],
)
def test_others_are_not(text: str) -> None:
    assert not list(not_there("docs/operate/x.md", text))
