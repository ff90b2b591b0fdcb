"""README.md: its programs run, its numbers stand in the reports, and it stays short."""

from __future__ import annotations

import re

import pytest
from documents import README, ROOT, blocks, run_typescript
from harness import Server


def block(info: str) -> str:
    [found] = [block.text for block in blocks(README) if block.info == info]
    assert len([line for line in found.splitlines() if line.strip()]) <= 10
    return found


def test_it_is_short_and_shows_the_console_early() -> None:
    lines = README.splitlines()
    assert len(lines) <= 200
    [picture] = [number for number, line in enumerate(lines) if line.startswith("![")]
    assert picture < 60
    assert (ROOT / re.findall(r"\]\((\S+)\)", lines[picture])[0]).exists()


def test_the_program_in_python(server: Server, capsys, monkeypatch) -> None:
    monkeypatch.setenv("JOBBOARD_URL", f"redis://127.0.0.1:{server.port}")
    exec(compile(block("python"), "README.md", "exec"), {"__name__": "app"})
    assert capsys.readouterr().out == "Hello ann\n"


def test_the_program_in_typescript(server: Server) -> None:
    assert run_typescript(block("ts"), f"redis://127.0.0.1:{server.port}") == "Hello ann\n"


@pytest.mark.parametrize(
    "line",
    [
        line
        for line in README.splitlines()
        if re.search(r"\d(\*\*)? \|$|polls \|$", line) and "Valkey" not in line
    ],
)
def test_numbers_of_speed_stand_in_the_report(line: str) -> None:
    report = "".join((ROOT / f"docs/reports/{name}.md").read_text() for name in ("benchmarks", "streams"))
    name, *cells = [cell.strip() for cell in line.strip("|").split("|")]
    for cell in cells:
        if re.search(r"\d", cell):
            assert f" {cell} " in report, f"{name}: {cell}"


def test_ways_to_start_name_what_there_is() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"(?:`|^    )make ([a-z-]+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
