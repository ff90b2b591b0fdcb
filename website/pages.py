"""The pages of the site, from the documents of the repository.

Each document becomes a page, and commands.md one page a command and one a chapter. Links between documents
lead to their pages; other files that a document names are taken along as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = "commands.md"
FILES = "files"
"""Where files that are no pages lie in the site."""

PLACES = {
    "README.md": "index.md",
    "docs/README.md": "documents.md",
    "docs/guides/migrate/README.md": "migrate/index.md",
    "docs/operate/README.md": "operate/index.md",
    "clients/python/README.md": "python.md",
    "clients/typescript/README.md": "typescript.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
"""Documents whose pages lie elsewhere than their path below docs says."""

FIRST = ("first-job", "tour", "install")
LAST = (("Contributing", "contributing.md"), ("Changelog", "changelog.md"))
"""Entries of the menu: the guides to begin with, and what those want to know who change the code."""

FENCES = {
    "python test": "python",
    "syntax": "text",
    "output": "text",
    "redis-cli": "text",
    "js": "javascript",
}


class Section(NamedTuple):
    """A part of the reference: the page that it becomes, its chapter, its title and its text."""

    page: str
    chapter: str
    title: str
    text: str


class Nav(NamedTuple):
    """An entry of the menu: a title, and a page or more entries."""

    title: str
    to: str | list[Nav]


def documents() -> dict[str, str]:
    """The documents by path, with the page of each."""
    found = dict(PLACES)
    for path in sorted((ROOT / "docs").glob("**/*.md")):
        name = path.relative_to(ROOT).as_posix()
        place = name.removeprefix("docs/").replace("guides/migrate/", "migrate/")
        found.setdefault(name, place)
    return found


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it; mkdocs.yml has the generator make the same."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-")


def anchors(text: str) -> set[str]:
    return {slug(heading) for _, heading in headings(text)}


def headings(text: str) -> Iterator[tuple[int, str]]:
    """The depth and the words of each, outside of fenced blocks."""
    fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced and (found := re.match(r"(#+) (.*)", line)):
            yield len(found[1]), found[2]


def reference() -> list[Section]:
    """commands.md in parts: what stands before the first chapter, each chapter, each command."""
    text = (ROOT / REFERENCE).read_text()
    parts = split(text)
    found, chapter, page = [], "", f"{REFERENCE.removesuffix('.md')}/index.md"
    for depth, title, part in parts:
        if depth == 2:
            chapter, page = title, f"commands/{slug(title)}.md"
        elif depth == 3 and title.startswith("JOB."):
            found.append(Section(f"commands/{title.lower().replace('.', '-')}.md", chapter, title, part))
            continue
        if found and found[-1].page == page and depth > 2:
            found[-1] = found[-1]._replace(text=found[-1].text + part)
        elif depth > 2:
            at = next(n for n, one in enumerate(found) if one.page == page)
            found[at] = found[at]._replace(text=found[at].text + part)
        else:
            found.append(Section(page, chapter, title, part))
    return found


def split(text: str) -> list[tuple[int, str, str]]:
    """Depth, title and text of each part that a heading of depth 1 to 3 begins."""
    parts: list[tuple[int, str, list[str]]] = []
    fenced = False
    for line in text.splitlines(keepends=True):
        if line.startswith("```"):
            fenced = not fenced
        found = None if fenced else re.match(r"(#{1,3}) (.*)", line)
        if found:
            parts.append((len(found[1]), found[2], []))
        parts[-1][2].append(line)
    return [(depth, title, "".join(lines)) for depth, title, lines in parts]


class Site:
    """All pages, with their links turned."""

    def __init__(self) -> None:
        self.documents = documents()
        self.reference = reference()
        self.files: set[str] = set()
        """Files of the repository that pages link to."""
        self.homes = {
            anchor: section.page for section in reversed(self.reference) for anchor in anchors(section.text)
        }
        """The page of each anchor of the reference."""

    def pages(self) -> dict[str, str]:
        """The text of each page."""
        found = {}
        for path, page in self.documents.items():
            found[page] = self.turned((ROOT / path).read_text(), path, page)
        for section in self.reference:
            text = self.turned(raised(section.text), REFERENCE, section.page).rstrip() + "\n"
            if section.title.startswith("JOB."):
                chapter = relative(f"commands/{slug(section.chapter)}.md", section.page)
                text += f"\n---\n\nMore commands: [{section.chapter}]({chapter})\n"
            elif commands := self.of_chapter(section):
                text += f"\n## Commands\n\n{commands}"
            found[section.page] = text
        return {page: legible(text) for page, text in found.items()}

    def of_chapter(self, section: Section) -> str:
        """The commands of a chapter, with their first sentences."""
        lines = []
        for one in self.reference:
            if section.title and one.chapter == section.title and one.title.startswith("JOB."):
                lines.append(f"- [{one.title}]({relative(one.page, section.page)}): {summary(one.text)}\n")
        return "".join(lines)

    def turned(self, text: str, path: str, page: str) -> str:
        """The text with its links as they are on this page."""

        def turn(found: re.Match[str]) -> str:
            words, link = found[1], found[2]
            if "://" in link or link.startswith("mailto:"):
                return found[0]
            target = self.target(link, path)
            if target is None:
                return words[1:-1] if words.startswith("[") else words
            return f"{words}({relative(target, page)})"

        return re.sub(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^)\s]+)\)", turn, text)

    def target(self, link: str, path: str) -> str | None:
        """Where in the site a link of a document leads; None to a folder, which has no page."""
        name, _, anchor = link.partition("#")
        place = normal(PurePosixPath(path).parent / name) if name else path
        if place == REFERENCE:
            if not anchor:
                return self.reference[0].page
            return f"{self.homes[anchor]}#{anchor}"
        if place in self.documents:
            return self.documents[place] + (f"#{anchor}" if anchor else "")
        if (ROOT / place).is_dir():
            return None
        self.files.add(place)
        return f"{FILES}/{place}"

    def nav(self) -> list[Nav]:
        """The menu."""
        guides = {page: Nav(self.title(path), page) for path, page in self.documents.items()}
        index = (ROOT / "docs/README.md").read_text()
        listed = [Nav("All documents", "documents.md")]
        for heading, path in re.findall(r"\n\| (.+?) \| \|\n\|---\|---\|\n((?:\|.*\n)+)", index):
            pages = [self.documents[f"docs/{one}"] for one in re.findall(r"\]\((guides/[\w/.-]+)\)", path)]
            listed.append(Nav(heading[0].upper() + heading[1:], [guides[page] for page in pages]))
        there = {entry.to for entry in leaves(listed)}
        listed += [
            entry for page, entry in guides.items() if page.startswith("guides/") and page not in there
        ]
        commands = [Nav("All commands", self.reference[0].page)]
        for section in self.reference[1:]:
            if section.title.startswith("JOB."):
                last = commands[-1]
                assert isinstance(last.to, list), section
                last.to.append(Nav(section.title, section.page))
            elif any(one.chapter == section.title != one.title for one in self.reference):
                commands.append(Nav(section.title, [Nav("About", section.page)]))
            else:
                commands.append(Nav(section.title, section.page))
        return [
            Nav("Start", [Nav("jobboard", "index.md"), *(guides[f"guides/{one}.md"] for one in FIRST)]),
            Nav("Guides", listed),
            Nav("Commands", commands),
            Nav(
                "Packages",
                [Nav("Python", "python.md"), Nav("TypeScript", "typescript.md"), guides["clients.md"]],
            ),
            Nav("Operate", self.below("operate/", guides)),
            Nav("Migrate", self.below("migrate/", guides)),
            Nav(
                "Promises",
                [guides["guarantees.md"], guides["compatibility.md"], Nav("Security", "security.md")],
            ),
            Nav("Reports", self.below("reports/", guides)),
            Nav("Inside", [guides["architecture.md"], *(Nav(*one) for one in LAST)]),
        ]

    def below(self, folder: str, all: dict[str, Nav]) -> list[Nav]:
        found = [entry for page, entry in all.items() if page.startswith(folder)]
        return sorted(found, key=lambda entry: (not str(entry.to).endswith("index.md"), entry.to))

    def title(self, path: str) -> str:
        return next(words for _, words in headings((ROOT / path).read_text()))

    def llms(self, pages: dict[str, str]) -> str:
        """llms.txt: what each page is about, for programs that read."""
        lines = ["# jobboard", "", f"> {summary(pages['index.md'])}", ""]
        lines.append("Each page is here as Markdown, too: the address with `.md` in place of `.html`.")
        listed = {"index.md"}
        for entry in self.nav():
            lines += ["", f"## {entry.title}", ""]
            for one in leaves([entry]):
                page = str(one.to)
                about = summary(pages[page])
                if page not in listed:
                    name = next(words for _, words in headings(pages[page]))
                    lines.append(f"- [{name}]({page})" + (f": {about}" if about else ""))
                listed.add(page)
        return "\n".join(lines) + "\n"


def leaves(entries: list[Nav]) -> Iterator[Nav]:
    for entry in entries:
        if isinstance(entry.to, str):
            yield entry
        else:
            yield from leaves(entry.to)


def summary(text: str) -> str:
    """The first sentence of a page, without marks."""
    fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced and re.match(r"[A-Za-z`*\[]", line) and not line.startswith(("**Complexity", "[!")):
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line).replace("**", "")
            return re.split(r"(?<=[.:?]) (?=[A-Z`])", plain)[0].strip()
    return ""


def raised(text: str) -> str:
    """A part of the reference as a page of its own: its first heading is the title."""
    depth = next(iter(headings(text)))[0]
    out, fenced = [], False
    for line in text.splitlines(keepends=True):
        if line.startswith("```"):
            fenced = not fenced
        if not fenced and line.startswith("#" * depth):
            line = line[depth - 1 :]
        out.append(line)
    return "".join(out)


def legible(text: str) -> str:
    """As the generator wants it: fences of languages that it knows, and a blank line before each list."""
    out: list[str] = []
    fenced = False
    for line in text.splitlines():
        if found := re.match(r"( *)```(.*)", line):
            fenced = not fenced
            if fenced and found[2]:
                words = found[2].split()
                name = FENCES.get(found[2], FENCES.get(words[0], words[0]))
                line = f"{found[1]}```{name}"
        elif not fenced and re.match(r"([-*]|\d+\.) ", line) and out and out[-1].strip():
            before = out[-1]
            if not re.match(r" *([-*]|\d+\.) |  +", before):
                out.append("")
        out.append(line)
    return "\n".join(out) + "\n"


def normal(path: PurePosixPath) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def relative(target: str, page: str) -> str:
    """A link from a page to a place of the site."""
    place, _, anchor = target.partition("#")
    if place == page and anchor:
        return f"#{anchor}"
    here = PurePosixPath(page).parent.parts
    there = PurePosixPath(place).parts
    same = 0
    while same < min(len(here), len(there) - 1) and here[same] == there[same]:
        same += 1
    link = "/".join([".."] * (len(here) - same) + list(there[same:]))
    return link + (f"#{anchor}" if anchor else "")
