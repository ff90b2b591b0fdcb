"""How long a test waits for the private server of `jobboard.testing`: a part of docs/reports/workers.md.

    make bench-workers

From `TestServer()` to the answer to the first post, in a process that has imported the package; then what a
test run pays once: a new interpreter with all imports, up to the same answer. Medians.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from jobboard.testing import TestServer

ROOT = Path(__file__).resolve().parents[2]
REPORT = ROOT / "docs" / "reports" / "workers.md"
MARKS = ("<!-- startup -->", "<!-- /startup -->")
TIMES = 20
AIM = 0.3
"""Seconds."""
PROGRAM = "from jobboard.testing import TestServer\nwith TestServer() as board: board.post(1)"


def main() -> None:
    os.environ.setdefault("JOBBOARD_MODULE", str(ROOT / "target" / "release" / "libjobboard.so"))
    started, stopped, emptied = zip(*(in_this_process() for _ in range(TIMES)))
    alone = [in_a_new_process() for _ in range(TIMES)]
    section = f"""{MARKS[0]}
## A private server for tests

`with TestServer() as board`, {TIMES} times; the aim is {AIM} s to the first answer.

| | median | longest |
|---|---:|---:|
| from `TestServer()` to the answer to the first post | {row(started)} |
| the same in a new Python, with its imports and its end | {row(alone)} |
| emptied between two tests | {row(emptied)} |
| stopped and removed | {row(stopped)} |
{MARKS[1]}
"""
    print(section)
    text = REPORT.read_text()
    begin = text.find(MARKS[0])
    REPORT.write_text((text if begin < 0 else text[:begin]).rstrip("\n") + "\n\n" + section)


def in_this_process() -> tuple[float, float, float]:
    begin = time.perf_counter()
    server = TestServer()
    server.start()
    server.board().post(1)
    answered = time.perf_counter()
    server.empty()
    emptied = time.perf_counter()
    server.stop()
    return answered - begin, time.perf_counter() - emptied, emptied - answered


def in_a_new_process() -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
    return time.perf_counter() - begin


def row(seconds: tuple[float, ...] | list[float]) -> str:
    return f"{statistics.median(seconds) * 1000:.0f} ms | {max(seconds) * 1000:.0f} ms"


if __name__ == "__main__":
    main()
