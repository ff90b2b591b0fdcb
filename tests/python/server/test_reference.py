"""The reference has each command with its syntax and facts, as the server has them; links lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from command_docs import CATEGORIES, ask, command_info, command_names, module_docs, render_arguments
from documents import COMMANDS, CONTRIBUTING, ROOT, blocks
from harness import Server


def documented() -> set[str]:
    return set(re.findall(r"^### (JOB\.[A-Z]+)", COMMANDS, re.MULTILINE))


def test_commands_md_has_a_section_for_each_command_and_no_other(clocked: Server) -> None:
    assert sorted(documented()) == sorted(command_names(clocked))


def test_each_section_has_a_syntax_line_and_an_example() -> None:
    infos: dict[str, set[str]] = {}
    for block in blocks(COMMANDS):
        infos.setdefault(block.heading, set()).add(block.info.split()[0] if block.info else "")
    for name in documented():
        assert {"syntax", "redis-cli"} <= infos.get(name, set()), name


SUBCOMMANDS = (
    "GET|SET|RESET|ADVANCE|LIST|DEL|PAUSE|RESUME|RUN|ADD|REMOVE|CLEAR|REGISTER|DEREGISTER|QUIET|HELP"
)


def syntax_lines() -> dict[str, str]:
    """Command (with its subcommand) to its syntax line, joined to one line."""
    found = {}
    for block in blocks(COMMANDS):
        if block.info == "syntax":
            for entry in re.split(r"\n(?=JOB\.)", block.text):
                line = " ".join(entry.split())
                name = re.match(rf"JOB\.[A-Z]+(?: (?:{SUBCOMMANDS})\b)?", line)
                assert name, line
                found[name.group()] = line
    return found


def comparable(syntax: str) -> str:
    """COMMAND DOCS has no `< >`, and tells of a repeated group its last word."""
    return re.sub(r"\[(?:[a-z-]+ )+([a-z-]+) \.\.\.\]", r"[\1 ...]", re.sub("[<>]", "", syntax))


def test_syntax_lines_name_every_command_and_subcommand(clocked: Server) -> None:
    assert sorted(syntax_lines()) == sorted(module_docs(clocked))


def test_syntax_lines_are_those_of_command_docs(clocked: Server) -> None:
    lines = {name: comparable(line) for name, line in syntax_lines().items()}
    docs = module_docs(clocked)
    told = {name: f"{name} {render_arguments(doc.get('arguments', []))}" for name, doc in docs.items()}
    assert lines == {name: comparable(line).strip() for name, line in told.items()}


def test_the_tables_of_post_have_each_option_once() -> None:
    _, _, rest = COMMANDS.partition("\n### JOB.POST\n")
    options = re.findall(r"^\| `([A-Z]+)` \|", rest.partition("\n### ")[0], re.MULTILINE)
    words = re.findall(r"\b[A-Z]{2,}\b", syntax_lines()["JOB.POST"].removeprefix("JOB.POST"))
    assert sorted(options) == sorted(set(words) - {"FIXED", "EXPONENTIAL", "CHILDREN"})


class Facts(NamedTuple):
    """The line under a command's syntax."""

    complexity: str
    categories: dict[str, set[str]]
    """Of the subcommands that it names; of all others under the empty name."""
    since: str

    def of(self, subcommand: str) -> set[str]:
        return self.categories.get(subcommand, self.categories[""])


def facts() -> dict[str, Facts]:
    syntax = r"^### (JOB\.[A-Z]+)\n\n```syntax\n[^`]*```\n\n"
    line = rf"{syntax}\*\*Complexity\*\* (.+) · \*\*ACL\*\* (.+) · \*\*Since\*\* (.+)\n\n"
    found = {}
    for name, complexity, listed, since in re.findall(line, COMMANDS, re.MULTILINE):
        categories = {}
        for part in listed.split("; "):
            named, _, words = part.rpartition(": ")
            categories.update({sub.strip("`"): set(words.split()) for sub in named.split(", ")})
        found[name] = Facts(complexity, categories, since)
    return found


def of_each_command(server: Server) -> Iterator[tuple[str, str, str]]:
    """Each command's full name, its name, and its subcommand, `HELP` excepted, which the conventions have."""
    for name in module_docs(server):
        command, _, subcommand = name.partition(" ")
        if subcommand != "HELP":
            yield name, command, subcommand


def test_each_command_has_its_facts_under_its_syntax() -> None:
    assert set(facts()) == documented()


def test_complexities_and_versions_are_those_of_command_docs(clocked: Server) -> None:
    docs, told = module_docs(clocked), facts()
    for name, command, _ in of_each_command(clocked):
        found = docs[name]["complexity"], docs[name]["since"]
        assert (told[command].complexity, told[command].since) == found, name


def test_categories_are_those_of_command_info(kind: str, clocked: Server) -> None:
    told, info = facts(), command_info(clocked)
    for name, command, subcommand in of_each_command(clocked):
        found = info[name.lower().replace(" ", "|")]["categories"]
        assert found == (told[command].of(subcommand) | {"@jobs"} if CATEGORIES[kind] else set()), name


def test_facts_name_no_subcommand_that_there_is_not(clocked: Server) -> None:
    known = {(command, subcommand) for _, command, subcommand in of_each_command(clocked)}
    named = {(command, sub) for command, row in facts().items() for sub in row.categories if sub}
    assert named <= known


class Row(NamedTuple):
    """A row of the index: under which title, the command, what it does."""

    title: str
    name: str
    text: str


def index() -> list[Row]:
    rows, title = [], ""
    for line in COMMANDS.partition("\n## ")[0].splitlines():
        if found := re.fullmatch(r"\*\*\[(.+)\]\(#(.+)\)\*\*", line):
            title = found[1]
        elif found := re.fullmatch(r"\| \[(JOB\.[A-Z]+)\]\(#(.+)\) \| (.+) \|", line):
            name, anchor, text = found.groups()
            assert anchor == name.lower().replace(".", "")
            rows.append(Row(title, name, text))
    return rows


def test_the_index_has_a_short_row_for_each_command_in_the_order_of_the_sections() -> None:
    sections, title = [], ""
    for line in COMMANDS.splitlines():
        if line.startswith("## "):
            title = line[3:]
        elif line.startswith("### JOB."):
            sections.append((title, line[4:]))
    assert [(row.title, row.name) for row in index()] == sections
    assert not [row for row in index() if len(row.text.split()) > 10]


def test_the_index_says_what_command_docs_say(clocked: Server) -> None:
    docs = ask(clocked, "COMMAND DOCS", *command_names(clocked))
    told = {row.name: f"{row.text[0].upper()}{row.text[1:]}." for row in index()}
    assert told == {name.upper(): doc["summary"] for name, doc in docs.items()}


def test_paths_of_the_map_exist() -> None:
    [layout] = re.findall(r"## Where things are\n\n(.*?)\n\n", CONTRIBUTING, re.DOTALL)
    paths = [line.split()[0] for line in layout.splitlines()]
    assert len(paths) > 5
    assert not [path for path in paths if not (ROOT / path).exists()]


PACKAGES = [ROOT / "clients" / name / "README.md" for name in ("python", "typescript")]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *PACKAGES]


def anchors(page: Path) -> set[str]:
    """What a link to a heading of the page may say behind its `#`."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_between_documents_lead_to_files_and_headings(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_the_map_of_the_documents_names_every_one() -> None:
    page = ROOT / "docs" / "README.md"
    named = {(page.parent / link).resolve() for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text())}
    migrate = ROOT / "docs" / "guides" / "migrate" / "README.md"
    kept = {each for each in ROOT.glob("docs/**/*.md") if each.parent != migrate.parent} | {migrate}
    assert kept - {page} <= named
