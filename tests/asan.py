"""Runs tests on a module with AddressSanitizer in it, in a server whose memory is the sanitizer's.

    make asan [K=expression] [FILES="test_post.py test_claim.py"] [PROCESSES=2]

The sanitizer's runtime is loaded before Debian's redis-server, whose allocator is a library: so each block
that the server or the module asks for is fenced, and the module's code looks at the fences at every access.
Servers are some times slower: tests that measure time may fail, and are not what is judged. Ends with 1 when
the sanitizer has reported anything, or when the tests did not run to their end.
"""

from __future__ import annotations

import argparse
import ctypes.util
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import memcheck

MEASURES = {"bench", "chaos", "defrag", "demo", "docs", "examples", "languages", "roles", "soak"}
"""Files that are not run: those of `memcheck.LEFT_OUT` but for the ones that need a quick server only."""


def runtime() -> str:
    """The sanitizer's library, as gcc has it."""
    found = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    path = Path(found.stdout.strip())
    return str(path.resolve()) if path.is_file() else ctypes.util.find_library("asan") or "libasan.so"


def reports(folder: Path) -> list[str]:
    """The first lines of all reports."""
    texts = (file.read_text(errors="replace") for file in sorted(folder.iterdir()))
    return [
        line for text in texts for line in re.findall(r"ERROR: AddressSanitizer.*|.*runtime error.*", text)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="The test suite with AddressSanitizer.")
    parser.add_argument("--module", required=True, help="built with it")
    parser.add_argument("-k", help="only these tests, as for pytest")
    parser.add_argument("-n", default="2", help="how many at once")
    parser.add_argument("files", nargs="*", help="files of tests/python; all but those that measure")
    arguments = parser.parse_args()
    all_files = (path.name for path in sorted(memcheck.TESTS.glob("test_*.py")))
    files = arguments.files or [name for name in all_files if name[5:-3] not in MEASURES]
    with tempfile.TemporaryDirectory(prefix="asan-") as name:
        folder = Path(name)
        # Servers are killed at the end of most tests: what they had is no leak.
        options = f"detect_leaks=0:log_path={folder}/report:verify_asan_link_order=0"
        wrap = {
            "JOBBOARD_WRAP": f"env LD_PRELOAD={runtime()} ASAN_OPTIONS={options}",
            "JOBBOARD_MODULE": str(Path(arguments.module).resolve()),
        }
        words = [sys.executable, "-m", "pytest", "-q", "-n", arguments.n, "--dist", "worksteal"]
        words += ["--timeout", "600", "--tb", "line", "--server=redis70"]
        words += ["-k", arguments.k] if arguments.k else []
        words += [str(memcheck.TESTS / file) for file in files]
        done = subprocess.run(words, cwd=memcheck.ROOT, env={**os.environ, **wrap})
        found = reports(folder)
    print(f"\n{len(files)} files, pytest ended with {done.returncode}; reports: {len(found) or 'none'}")
    print("".join(f"  {line}\n" for line in found), end="")
    return int(bool(found) or done.returncode not in (0, 1))


if __name__ == "__main__":
    sys.exit(main())
