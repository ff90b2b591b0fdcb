"""What `make fuzz` builds of the module is the module."""

from __future__ import annotations

import re

from harness.server import ROOT


def modules(path: str) -> set[str]:
    """The modules that a Rust file names."""
    return set(re.findall(r"^(?:pub )?mod (\w+);", (ROOT / path).read_text(), re.M))


def dependencies(path: str) -> dict[str, str]:
    """What a package depends on, in which version and with which features."""
    text = (ROOT / path).read_text()
    section = text.split("[dependencies]\n", 1)[1].split("\n\n", 1)[0]
    lines = dict(line.split(" = ", 1) for line in section.splitlines())
    del lines["board"]  # its path is another
    return lines


def test_the_fuzzed_module_has_all_files_of_the_module():
    assert modules("fuzz/module/src/lib.rs") == modules("src/lib.rs")


def test_the_fuzzed_module_has_the_dependencies_of_the_module():
    assert dependencies("fuzz/module/Cargo.toml") == dependencies("Cargo.toml")


def test_every_fuzz_target_is_run():
    targets = set(re.findall(r'^\[\[bin\]\]\nname = "(\w+)"', (ROOT / "fuzz/Cargo.toml").read_text(), re.M))
    listed = re.search(r"or \$\(TARGET\),([\w ]+)\)", (ROOT / "Makefile").read_text())
    assert listed and set(listed[1].split()) == targets
    assert all(any((ROOT / "fuzz/seeds" / target).iterdir()) for target in targets)
