"""The command line of the package: `jobboard <command> …`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns what the process ends with."""
    parser = argparse.ArgumentParser(prog="jobboard", description="Job boards inside Redis and Valkey.")
    parser.parse_args(arguments)
    parser.print_help()
    return 2


if __name__ == "__main__":
    sys.exit(main())
