"""Instructions that a server executes, counted by callgrind: they do not depend on the machine's mood."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path


class Counter:
    """Counts what a process executes that is started with `command` before its own words."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        out = f"--callgrind-out-file={folder}/%p"
        self.command = ["valgrind", "--tool=callgrind", "--dump-line=no", out, *options]
        self.sum = 0
        self.last = ""

    def count(self, pid: int) -> int:
        """Instructions that the process `pid` has executed since the last call, all threads."""
        command = ["callgrind_control", "--dump", str(pid)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        dumps = sorted(self.folder.glob(f"{pid}.*"), key=lambda path: int(path.suffix[1:]))
        self.last = dumps[-1].read_text()
        counted = int(re.search(r"^(?:totals|summary): (\d+)", self.last, re.M)[1])
        self.sum += counted
        return counted

    def within(self, *names: str) -> int:
        """Of those last counted, how many in functions whose names begin so, with all that they call."""
        known = dict(re.findall(r"^c?fn=(\(\d+\)) (.+)$", self.last, re.M))
        calls = re.findall(r"^cfn=(\(\d+\)).*\ncalls=.*\n\S+ (\d+)$", self.last, re.M)
        return sum(int(count) for number, count in calls if known.get(number, "").startswith(names))

    def total(self, pid: int) -> int:
        """Instructions that the process has executed since the first call of `count` or `total`."""
        self.count(pid)
        return self.sum
