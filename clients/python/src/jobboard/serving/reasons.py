"""What the log of a server that has ended means, as one sentence."""

from __future__ import annotations

import re
import shlex
import signal
from pathlib import Path
from typing import NamedTuple

STAMP = re.compile(r"^\d+:\w+ \d+ \w+ \d+ [\d:.]+ \S ")
"""What stands before each line of a server's log: process, role, time, level."""
UNREADABLE = re.compile(r"Can't handle RDB format version|Bad file format reading the append only file")


class Ended(NamedTuple):
    """A server that has ended by itself."""

    program: Path
    version: str
    status: int
    log: str
    log_file: Path
    folder: Path
    written_by: str | None
    """Which server wrote the data, where that is known."""


def reason(ended: Ended) -> str:
    """Why it has ended, and what to do about it. Its data are as they were."""
    if UNREADABLE.search(ended.log) and ended.written_by not in (None, ended.version):
        return (
            f"the data in {ended.folder} were written by {ended.written_by}, and {ended.version} cannot read "
            f"them; they are unchanged: give --server that {ended.written_by}, or choose another --dir"
        )
    if ended.status < 0:
        memory = ": the kernel does that when memory is full (dmesg says so)" if ended.status == -9 else ""
        return f"{ended.version} was killed ({_signal(-ended.status)}){memory} (log: {ended.log_file})"
    for pattern, sentence in REASONS:
        found = re.search(pattern, ended.log)
        if found:
            said = sentence.format(
                found=found, folder=ended.folder, version=ended.version, repair=_repair(ended, found)
            )
            return said if sentence in TELL_ALL else f"{said} (log: {ended.log_file})"
    last = _last_words(ended.log)
    return f"{ended.version} ended with status {ended.status}: {last} (log: {ended.log_file})"


CONFIGURATION = [
    (
        r"at line \d+\s*>>> '([^\n]*)'\s*([^\n]*)",
        "the server does not understand a line of its configuration, {found[1]!r}: {found[2]}",
    ),
    (
        r"Unused Module Configuration: (\S+)",
        "no module has the setting {found[1]!r} of the configuration: see `jobboard.…` in commands.md",
    ),
    (
        r"Issue during loading of configuration (\S+) : ([^\n]*)",
        "the value of the setting {found[1]!r} in the configuration is none that it takes: {found[2]}",
    ),
    (
        r"Module Configuration detected without",  # Redis 7.0 does not name it
        "no module has one of the settings of the configuration that have a point in their name: compare "
        "`jobboard.…` with commands.md",
    ),
]
TELL_ALL = {sentence for _, sentence in CONFIGURATION}
"""Sentences that need no log."""

REASONS = [
    *CONFIGURATION,
    (
        r"Can't handle RDB format version (\d+)",
        "the data in {folder} were written by another server, in a format ({found[1]}) that {version} cannot "
        "read; they are unchanged: give --server the one that wrote them, or choose another --dir",
    ),
    (
        r"module data (?:I can't load|for the module type)",
        "the data in {folder} are of a newer version of the module, and unchanged: pip install -U "
        "--find-links FOLDER 'jobboard[server]' with the newer wheels, or choose another --dir",
    ),
    (
        r"[Rr]eading the append only file ([^\s:,]+)",
        "the append-only file {folder}/appendonlydir/{found[1]} is damaged, and nothing of it was changed: "
        "restore the folder, or copy it and cut off what is damaged with {repair}",
    ),
    (
        r"(?i)((?:invalid aof manifest|the aof file|error reading manifest|found a non-)[^\n]*)",
        "the append-only file in {folder}/appendonlydir is not whole ({found[1]}), and nothing of it was "
        "changed: restore the folder, or choose another --dir",
    ),
    (r"No space left on device|Disk quota exceeded", "there is no room on the disk of {folder}: free some"),
    (r"Read-only file system", "{folder} is on a read-only volume: mount it for writing"),
    (r"Address already in use", "another program has taken the port: choose another one with --port"),
    (
        r"failed to load: [^\n]*version [`']([^'\n]+)' not found",
        "the module needs another C library than this machine has ({found[1]}): take one that fits",
    ),
    (
        r"failed to load: [^\n]*\blibc\.so: (?:invalid ELF header|cannot open)",
        "the module is for musl, and this {version} is for glibc: take the module for glibc",
    ),
    (
        r"failed to load: Error (?:loading shared library|relocating)",
        "the module is for glibc, and this {version} is for musl: take the module for musl",
    ),
    (
        r"failed to load: ([^\n]*): invalid ELF header",
        "{found[1]} is no module for this system: name a libjobboard.so that was made for it",
    ),
    (r"failed to load: ([^\n]*)", "{version} cannot load the module: {found[1]}"),
    (r"<jobboard> ([^\n]*)\n[^\n]*initialization failed", "{version} refuses the module: {found[1]}"),
    (
        r"does not export",
        "what --module names is no module of Redis or Valkey: name a libjobboard.so",
    ),
    (r"initialization failed. Module not loaded", "{version} refuses the module: give --server another one"),
]
"""What to look for in a log, the most telling first, with what it means."""


def _repair(ended: Ended, found: re.Match[str]) -> str:
    """A server is its own tool for that, under another name."""
    file = ended.folder / "appendonlydir" / (found[1] if found.groups() else "")
    words = f"exec -a redis-check-aof {shlex.quote(str(ended.program))} --fix {shlex.quote(str(file))}"
    return f"bash -c {shlex.quote(words)}"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_words(log: str) -> str:
    lines = [STAMP.sub("", line).strip() for line in log.splitlines()]
    return next((line for line in reversed(lines) if line), "it wrote nothing")
