"""The rooms of the package use each other as their comments say, and never in a circle."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import jobboard

PACKAGE = Path(jobboard.__file__).parent
ROOMS = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}


def imported(path: Path) -> Iterator[str]:
    """Which rooms of the package, or files beside them, a file imports, be it for types alone."""
    here = path.relative_to(PACKAGE.parent).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = ".".join(here[: len(here) - node.level + 1]) + "." if node.level else ""
            module = f"{start}{node.module or ''}".strip(".")
            names = [f"{module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = [*name.split("."), ""]
            if parts[0] == "jobboard":
                there = PACKAGE / parts[1]
                yield parts[1] if there.is_dir() or there.with_suffix(".py").exists() else "__init__"


def of_room(room: str) -> set[str]:
    return {other for path in (PACKAGE / room).rglob("*.py") for other in imported(path)} - {room}


def test_rooms_use_what_they_say() -> None:
    assert len(ROOMS) > 3
    for room in ROOMS:
        text = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text()))
        found = re.search(r"^Uses (.*)\.$", text, re.MULTILINE)
        assert found, f"{room}/__init__.py does not say which rooms it uses"
        assert set(re.findall(r"`(\w+)`", found[1])) == of_room(room) & ROOMS, room


def test_imports_go_one_way() -> None:
    """A file beside the rooms counts as one: what rooms use uses no room."""
    uses = {path.stem: set(imported(path)) - {path.stem} for path in PACKAGE.glob("*.py")}
    uses.update({room: of_room(room) for room in ROOMS})
    while free := [name for name, used in uses.items() if not used & uses.keys()]:
        for name in free:
            del uses[name]
    assert not uses, f"in a circle, or behind one: {uses}"
