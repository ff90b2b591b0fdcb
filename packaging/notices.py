"""The licences of what is linked into the module and the console, with their complete texts."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
TEXTS = re.compile(r"(licen[cs]e|copying|unlicense|notice)", re.IGNORECASE)
SAME_REPOSITORY = {"redis-module-common": "redis-module"}
"""Crates whose package has no licence file: the one in whose package that of their repository is."""


class Notice(NamedTuple):
    name: str
    version: str
    licence: str
    authors: list[str]
    texts: list[str]


def linked(crates: Mapping[str, Sequence[str]]) -> list[Notice]:
    """What is linked into any of these crates for any of its targets, and is not of this project. Fails when
    a text is missing.
    """
    words = ["-e", "normal,no-proc-macro", "--prefix", "none", "-f", "{p}"]
    tree = "".join(
        cargo("tree", "-p", crate, *words, *(f"--target={target}" for target in targets))
        for crate, targets in crates.items()
    )
    every = {f"--filter-platform={target}" for targets in crates.values() for target in targets}
    wanted = {tuple(line.split()[:2]) for line in tree.splitlines() if line.strip()}
    packages = {
        (package["name"], "v" + package["version"]): package
        for package in json.loads(cargo("metadata", "--format-version", "1", *sorted(every)))["packages"]
    }
    folders = {package["name"]: Path(package["manifest_path"]).parent for package in packages.values()}
    notices = []
    for key in sorted(wanted):
        package = packages[key]
        if package["source"] is None:  # of this workspace
            continue
        folder = Path(package["manifest_path"]).parent
        texts = texts_of(folder) or texts_of(folders[SAME_REPOSITORY.get(package["name"], package["name"])])
        if not texts and "Apache-2.0" in (package["license"] or "").split(" OR "):
            texts = [general_text("Apache-2.0")]  # its choice of licences is ours, and this text names nobody
        if not texts or not package["license"]:
            raise SystemExit(f"packaging: no licence text for {package['name']} {package['version']}")
        notices.append(
            Notice(package["name"], package["version"], package["license"], package["authors"], texts)
        )
    return [*notices, standard_library(), *zig()]


def standard_library() -> Notice:
    """Rust's own, from the documentation that comes with the compiler."""
    version = run("rustc", "--version").split()[1]
    texts = [general_text("MIT"), general_text("Apache-2.0")]
    return Notice("rust-std", version, "MIT OR Apache-2.0", ["The Rust Project Developers"], texts)


def zig() -> list[Notice]:
    """What Zig links: its help for compiled code, LLVM's unwinder, and into the console musl's C library."""
    python = ROOT / "target" / "tools" / "venv" / "bin" / "python"
    version = run(str(python), "-m", "ziglang", "version").strip()
    [folder] = (python.parents[1] / "lib").glob("python*/site-packages/ziglang")
    found = [
        ("zig-compiler-rt", "MIT", "Zig contributors", "LICENSE"),
        ("musl", "MIT", "Rich Felker, et al.", "lib/libc/musl/COPYRIGHT"),
        (
            "llvm-libunwind",
            "Apache-2.0 WITH LLVM-exception",
            "LLVM contributors",
            "lib/libunwind/LICENSE.TXT",
        ),
    ]
    return [
        Notice(name, f"zig-{version}", licence, [holder], [(folder / text).read_text().strip("\n")])
        for name, licence, holder, text in found
    ]


def general_text(licence: str) -> str:
    folder = Path(run("rustc", "--print", "sysroot").strip()) / "share" / "doc" / "rust" / "licenses"
    return (folder / f"{licence}.txt").read_text().strip("\n")


def cargo(*words: str) -> str:
    return run("cargo", *words, "--locked")


def run(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def texts_of(folder: Path) -> list[str]:
    files = sorted(path for path in folder.iterdir() if path.is_file() and TEXTS.match(path.name))
    return [path.read_text(encoding="utf-8").strip("\n") for path in files]


def holders(notice: Notice) -> list[str]:
    """Who holds the copyright, by the texts; the authors where these name nobody."""
    lines = [
        line.strip()
        for text in notice.texts
        for line in text.splitlines()
        if re.match(r"\s*Copyright( \(c\)| ©)? .*\d{4}", line, re.IGNORECASE)
    ]
    return list(dict.fromkeys(lines)) or notice.authors or [f"The {notice.name} developers"]


def plain(notices: list[Notice]) -> str:
    """One file for people."""
    head = "libjobboard.so and jobboard-console contain the following libraries, under these licences.\n"
    rule = "=" * 80
    parts = [
        f"{rule}\n{notice.name} {notice.version}: {notice.licence}\n{rule}\n\n" + "\n\n".join(notice.texts)
        for notice in notices
    ]
    return "\n\n".join([head, *parts]) + "\n"


def debian(notices: list[Notice]) -> str:
    """The same in the machine-readable format of debian/copyright."""
    own = (ROOT / "LICENSE").read_text()
    parts = [
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
        "Upstream-Name: jobboard\n"
        "Comment: Module and console contain the libraries below, each named by its crate and version.",
        f"Files: *\nCopyright: 2026 The jobboard authors\nLicense: BSD-3-Clause\n{indented(own)}",
    ]
    for notice in notices:
        name = f"{notice.name}-{notice.version}"
        copyright_lines = "\n ".join(holders(notice))
        parts.append(
            f"Files: {name}/*\nCopyright: {copyright_lines}\nLicense: {name}\n"
            + indented(f"{notice.licence}\n\n" + "\n\n".join(notice.texts))
        )
    return "\n\n".join(parts) + "\n"


def indented(text: str) -> str:
    return "\n".join(f" {line.rstrip()}" if line.strip() else " ." for line in text.strip().splitlines())
