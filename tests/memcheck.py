"""Runs tests with every server under valgrind's memcheck; finds the reports in which the module has a part.

    make memcheck [K=expression] [SERVER=redis70] [FILES="test_post.py test_claim.py"] [PROCESSES=2]

Servers are many times slower: tests that measure time may fail, and are not what is judged here. Ends with 1
when memcheck has reported a wrong access, a jump that depends on what nobody wrote, or memory that is lost,
with a frame of the module anywhere in its stack; or when the tests did not run to their end.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Container
from pathlib import Path
from xml.sax.saxutils import unescape

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests" / "python"
sys.path.insert(0, str(TESTS))

from harness import MODULE  # noqa: E402

LEFT_OUT = {
    "clock_steps": "preloads a library of its own",
    "cluster": "needs servers that answer in time",
    "defrag": "needs Redis's own jemalloc",
    "docs": "looks at documents",
    "largest": "counts what is allocated",
    "reference": "looks at documents",
    "roles": "asks the server alone",
    "truthful": "needs servers that answer in time",
}
"""Files that are not run, and why."""
SUPPRESSIONS = ROOT / "tests" / "memcheck.supp"
VALGRIND = (
    "valgrind --tool=memcheck --soname-synonyms=somalloc=*jemalloc* --error-limit=no --num-callers=30 "
    "--leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite "
    "--suppressions={suppressions} --xml=yes --xml-file={folder}/%p.xml"
)


RAN_THROUGH = (0, 1)
"""Exit codes of pytest when no test was kept from running, whether or not some failed."""


def chosen(left_out: Container[str] = LEFT_OUT) -> list[str]:
    """The files of the folders `rules` and `server` that are worth it."""
    files = [path for folder in ("rules", "server") for path in sorted((TESTS / folder).glob("test_*.py"))]
    return [str(path.relative_to(TESTS)) for path in files if path.stem.removeprefix("test_") not in left_out]


def reports(folder: Path) -> tuple[Counter, Counter]:
    """Reports in which the module has a part, by kind and its innermost frames; the others, by kind."""
    ours: Counter = Counter()
    others: Counter = Counter()
    for file in folder.glob("*.xml"):
        for error in re.findall(r"<error>.*?</error>", file.read_text(errors="replace"), re.S):
            kind = re.search(r"<kind>([^<]*)", error)[1]
            frames = re.findall(r"<frame>(.*?)</frame>", error, re.S)
            own = [frame for frame in frames if f"/{MODULE.name}<" in frame]
            names = [re.search(r"<fn>([^<]*)", frame) for frame in own]
            told = [unescape(name[1]) for name in names if name and "alloc" not in name[1]]
            if own:
                ours[f"{kind}: {' < '.join(told[:4])}"] += 1
            else:
                others[kind] += 1
    return ours, others


def words(description: str) -> argparse.ArgumentParser:
    """What is asked of a run of the suite in servers that are looked at."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("-k", help="only these tests, as for pytest")
    parser.add_argument("-n", default="2", help="how many at once")
    parser.add_argument("files", nargs="*", help="files of tests/python; those of rules and server")
    return parser


def run(
    arguments: argparse.Namespace, files: list[str], server: str, dist: str, environment: dict[str, str]
) -> int:
    """Runs the tests of these files, and gives pytest's exit code."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", arguments.n, "--dist", dist]
    command += ["--timeout", "600", "--tb", "line", f"--server={server}"]
    command += ["-k", arguments.k] if arguments.k else []
    command += [str(path) for file in files for path in TESTS.rglob(file)]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}).returncode


def main() -> int:
    parser = words("The test suite under memcheck.")
    parser.add_argument("--server", default="redis70")
    arguments = parser.parse_args()
    files = arguments.files or chosen()
    with tempfile.TemporaryDirectory(prefix="memcheck-") as name:
        folder = Path(name)
        wrap = {"JOBBOARD_WRAP": VALGRIND.format(folder=folder, suppressions=SUPPRESSIONS)}
        ended = run(arguments, files, arguments.server, "loadfile", wrap)
        servers = len(list(folder.glob("*.xml")))
        ours, others = reports(folder)
    print(f"\n{len(files)} files, {servers} servers, pytest ended with {ended}")
    print(f"reports without the module: {dict(others) or 'none'}")
    print(f"reports with it: {sum(ours.values()) or 'none'}")
    for what, count in ours.most_common():
        print(f"  {count} {what}")
    if not servers:
        print("no server has run under memcheck")
    return int(bool(ours) or not servers or ended not in RAN_THROUGH)


if __name__ == "__main__":
    sys.exit(main())
