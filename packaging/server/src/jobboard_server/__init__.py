"""The module and the console, as files of this package; `jobboard serve` finds them here."""

import os
import sys
from pathlib import Path

MODULE = Path(__file__).with_name("libjobboard.so")
CONSOLE = Path(__file__).with_name("jobboard-console")


def run_console() -> None:
    """Becomes the console."""
    if not CONSOLE.exists():
        sys.exit("jobboard-console: there is none for this kind of machine, only the module")
    os.execv(CONSOLE, [str(CONSOLE), *sys.argv[1:]])
