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


def test_the_server_in_memory_has_what_the_module_asks_a_server_for():
    # Those of a start, and those of questions about users, keys and replies that are never asked there.
    elsewhere = {"OnLoad", "GetApi", "KeyAtPosWithFlags", "CallReplyArrayElement", "CallReplyStringPtr"}
    elsewhere |= {"GetModuleUserFromUserName", "ACLCheckCommandPermissions", "FreeModuleUser"}
    sources = "".join(path.read_text() for path in sorted((ROOT / "src").rglob("*.rs")))
    known = set(re.findall(r"^ *RedisModule_(\w+):", (ROOT / "fuzz/fake/src/api.rs").read_text(), re.M))
    assert set(re.findall(r"\bRedisModule_(\w+)", sources)) - known == elsewhere
    formats = set(re.findall(r'as_ptr\(\), c"(\w+)"\.as_ptr\(\)', sources))
    variadic = (ROOT / "fuzz/fake/src/variadic.c").read_text()
    assert formats and formats == {name for name in re.findall(r'need\(format, "(\w+)"\)', variadic)}
