"""Runs tests on a module with AddressSanitizer in it, in a server whose memory is the sanitizer's.

    make asan [K=expression] [FILES="test_post.py test_claim.py"] [PROCESSES=2]

The sanitizer's runtime is loaded before Debian's redis-server, whose allocator is a library: so each block
that the server or the module asks for is fenced, and the module's code looks at the fences at every access.
Servers are some times slower: tests that measure time may fail, and are not what is judged. Ends with 1 when
the sanitizer has reported anything, or when the tests did not run to their end.
"""

from __future__ import annotations

import ctypes.util
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import memcheck

QUICK_ENOUGH = {"cluster", "truthful"}
"""Files that memcheck leaves out because it is slow."""


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
    parser = memcheck.words("The test suite with AddressSanitizer.")
    parser.add_argument("--module", required=True, help="built with it")
    arguments = parser.parse_args()
    files = arguments.files or memcheck.chosen(set(memcheck.LEFT_OUT) - QUICK_ENOUGH)
    with tempfile.TemporaryDirectory(prefix="asan-") as name:
        folder = Path(name)
        # Servers are killed at the end of most tests: what they had is no leak. Each says that it began.
        options = f"detect_leaks=0:log_path={folder}/report:verify_asan_link_order=0:verbosity=1"
        wrap = {
            "JOBBOARD_WRAP": f"env LD_PRELOAD={runtime()} ASAN_OPTIONS={options}",
            "JOBBOARD_MODULE": str(Path(arguments.module).resolve()),
        }
        ended = memcheck.run(arguments, files, "redis70", "worksteal", wrap)
        processes = len(list(folder.iterdir()))
        found = reports(folder)
    print(f"\n{len(files)} files, {processes} processes, pytest ended with {ended}")
    print(f"reports: {len(found) or 'none'}")
    print("".join(f"  {line}\n" for line in found), end="")
    if not processes:
        print("no server has run with the sanitizer")
    return int(bool(found) or not processes or ended not in memcheck.RAN_THROUGH)


if __name__ == "__main__":
    sys.exit(main())
