"""`make site`: all documents, a page a command, no dead link.

tests/python/console/test_site.py looks at it in a browser.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
import site_pages
from documents import COMMANDS, ROOT


def module(name: str) -> ModuleType:
    """Of website/, which is no package."""
    spec = importlib.util.spec_from_file_location(f"website_{name}", ROOT / "website" / f"{name}.py")
    assert spec and spec.loader
    found = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


PAGES = module("pages")
CHECK = module("check")


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return PAGES.Site().pages()


def test_each_document_and_each_command_has_a_page(pages: dict[str, str]) -> None:
    for path in [*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md")]:
        if path.name != "commands.md":
            assert PAGES.documents()[path.relative_to(ROOT).as_posix()] in pages
    for name in re.findall(r"^### (JOB\.[A-Z]+)", COMMANDS, re.MULTILINE):
        text = pages[f"commands/{name.lower().replace('.', '-')}.md"]
        assert text.startswith(f"# {name}\n\n```text\n{name} ")


def test_nothing_of_the_reference_is_lost(pages: dict[str, str]) -> None:
    """Each line of commands.md that is no link or fence stands on a page of the commands."""
    there = {
        line for page, text in pages.items() if page.startswith("commands/") for line in text.splitlines()
    }
    for line in COMMANDS.splitlines():
        if "](" not in line and not line.startswith(("```", "#")):
            assert line in there, line


def test_each_page_is_in_the_menu_and_in_llms_txt(pages: dict[str, str]) -> None:
    site = PAGES.Site()
    assert {entry.to for entry in PAGES.leaves(site.nav())} == set(pages)
    listed = re.findall(r"^- \[.+?\]\((\S+)\)", site.llms(pages), re.MULTILINE)
    assert sorted([*listed, "index.md"]) == sorted(pages)


def test_links_between_pages_lead_to_pages_files_and_headings(pages: dict[str, str]) -> None:
    site = PAGES.Site()
    site.pages()
    files = {f"{PAGES.FILES}/{name}" for name in site.files}
    for page, text in pages.items():
        for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)):
            if "://" in link:
                continue
            name, _, anchor = link.partition("#")
            target = PAGES.normal(Path(page).parent / name) if name else page
            assert target in pages or target in files, f"{page}: {link}"
            assert not anchor or anchor in PAGES.anchors(pages[target]), f"{page}: {link}"


def test_dead_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "b.html").write_text('<h1 id="there">b</h1>')
    good = '<a href="b.html#there">b</a> <a href="https://example.org/x">elsewhere</a>'
    (tmp_path / "a.html").write_text(good)
    assert CHECK.dead_links(tmp_path) == []
    bad = '<a href="c.html">c</a><a href="b.html#gone">b</a><script src="https://example.org/x.js"></script>'
    (tmp_path / "a.html").write_text(bad)
    assert len(CHECK.dead_links(tmp_path)) == 3


# The site itself


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return site_pages.made(tmp_path_factory)


@pytest.mark.long
def test_no_link_is_dead(site: Path) -> None:
    assert CHECK.dead_links(site) == []
    assert (site / "llms.txt").exists() and (site / "commands" / "job-post.md").exists()
