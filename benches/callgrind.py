"""Instructions that a server executes, counted by callgrind: they do not depend on the machine's mood."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

CACHES = ("--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=33554432,16,64")
"""Options for a counter that is asked for `missed`: the first cache of code is of the size that most have."""


class Counter:
    """Counts what a process executes that is started with `command` before its own words."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        out = f"--callgrind-out-file={folder}/%p"
        self.command = ["valgrind", "--tool=callgrind", "--dump-line=no", out, *options]
        self.sum = 0
        self.missed = 0
        """Lines of code that were not in the first cache."""
        self.last = ""

    def count(self, pid: int) -> int:
        """Instructions that the process `pid` has executed since the last call, all threads."""
        command = ["callgrind_control", "--dump", str(pid)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        dumps = sorted(self.folder.glob(f"{pid}.*"), key=lambda path: int(path.suffix[1:]))
        self.last = dumps[-1].read_text()
        names = re.search(r"^events: (.+)$", self.last, re.M)[1].split()
        totals = re.search(r"^(?:totals|summary): (.+)$", self.last, re.M)[1].split()
        counted = dict(zip(names, map(int, totals)))
        self.sum += counted["Ir"]
        self.missed += counted.get("I1mr", 0)
        return counted["Ir"]

    def within(self, *names: str) -> int:
        """Of those last counted, how many in functions whose names begin so, with all that they call."""
        known = dict(re.findall(r"^c?fn=(\(\d+\)) (.+)$", self.last, re.M))
        calls = re.findall(r"^cfn=(\(\d+\)).*\ncalls=.*\n\S+ (\d+)$", self.last, re.M)
        return sum(int(count) for number, count in calls if known.get(number, "").startswith(names))

    def total(self, pid: int) -> int:
        """Instructions that the process has executed since the first call of `count` or `total`."""
        self.count(pid)
        return self.sum
