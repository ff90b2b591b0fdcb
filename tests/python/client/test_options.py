"""The methods of the package name each option that commands.md documents, so that none is forgotten.

The words of a method are those of its own source, of the functions that it calls, and of the classes and
constants that it names; keyword arguments count as the options that they are called after.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import jobboard
import pytest
from documents import COMMANDS, blocks

CHAIN = "CLAIM QUEUE QUEUES ORDER COUNT MIN LINGER LEASE BLOCK SEEN SESSION FIELDS PACKED"
"""A claim at the end of another verb: `Worker` alone says it."""
WITHOUT = {
    **dict.fromkeys("ABANDON AWAIT CONSUME FAIL MCONSUME MFAIL MTRASH TRASH".split(), CHAIN),
    "CLAIM": "QUEUE",
    "WAIT": "QUEUE ANY ALL",
    "LIST": "JUSTID",
    "OUTPUT": "COUNT",
    "SCHEDULE": "ALL ALLOW ONE SKIP",
}
"""What has another name in Python, is a value there, or is not there on purpose."""
NOT_FOR_PROGRAMS = {"CLOCK"}
FILES = [*Path(jobboard.__file__).parent.glob("board/*.py"), Path(jobboard.__file__).parent / "arguments.py"]


def documented() -> dict[str, set[str]]:
    """The options of each command, by its name without `JOB.`."""
    found: dict[str, set[str]] = {}
    for block in blocks(COMMANDS):
        for line in re.split(r"\n(?=JOB\.)", block.text) if block.info == "syntax" else ():
            name, _, syntax = line.removeprefix("JOB.").partition(" ")
            options = re.findall(r"\b[A-Z][A-Z-]+\b", syntax)
            found.setdefault(name, set()).update({*options} - {"HELP"})
    return found


def definitions() -> dict[str, list[ast.AST]]:
    """What the package defines, by name."""
    found: dict[str, list[ast.AST]] = {}
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                found.setdefault(node.name, []).append(node)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name) and target.id.isupper():
                        found.setdefault(target.id, []).append(node)
    return found


def inside(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a definition: of a function all but its decorators, of a class what it is made with."""
    parts: list[ast.AST] = [node]
    if isinstance(node, ast.FunctionDef):
        parts = [*node.body, node.args]
    elif isinstance(node, ast.ClassDef):
        made = [part for part in node.body if getattr(part, "name", "") == "__init__"]
        parts = [*node.bases, *made, *(part for part in node.body if isinstance(part, ast.AnnAssign))]
    for part in parts:
        yield from ast.walk(part)


def words_of(node: ast.AST) -> set[str]:
    """The words that a definition itself names."""
    words: set[str] = set()
    for part in inside(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            words.update(part.value.split())
        elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            words.add(part.target.id.strip("_").replace("_", "-").upper())
        elif isinstance(part, ast.arg):
            words.add(part.arg.strip("_").replace("_", "-").upper())
    return words


def uses(node: ast.AST) -> Iterator[str]:
    """The functions of its own module or class that a definition calls, the classes and constants that it
    names, and all that a constant names.
    """
    table = not isinstance(node, (ast.FunctionDef, ast.ClassDef))
    for part in inside(node):
        if isinstance(part, ast.Name) and (table or part.id[0].isupper()):
            yield part.id
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
            yield part.func.id
        elif isinstance(part, ast.Attribute):
            owner = getattr(part.value, "id", "")
            if owner == "self" or owner[:1].isupper() or part.attr.startswith("_"):
                yield part.attr


def reached(start: ast.AST, known: dict[str, list[ast.AST]]) -> set[str]:
    """The words of a definition and of all that it uses."""
    words, ahead, seen = words_of(start), [*uses(start)], set()
    while ahead:
        name = ahead.pop()
        if name not in seen:
            seen.add(name)
            for node in known.get(name, []):
                words |= words_of(node)
                ahead += uses(node)
    return words


@pytest.mark.long
def test_the_methods_of_each_command_name_its_options() -> None:
    known = definitions()
    nodes = [node for group in known.values() for node in group if isinstance(node, ast.FunctionDef)]
    options = documented()
    assert len(options) > 40
    for command in options.keys() - NOT_FOR_PROGRAMS:
        methods = [node for node in nodes if f"JOB.{command}" in words_of(node)]
        assert methods, command
        hidden = {node.name for node in methods if node.name.startswith("_")}
        methods += [node for node in nodes if hidden & {*uses(node)}]
        words = set().union(*(reached(method, known) for method in methods))
        assert options[command] - words == {*WITHOUT.get(command, "").split()} - words, command
