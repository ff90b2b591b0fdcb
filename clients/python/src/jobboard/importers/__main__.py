"""`python -m jobboard.importers import …`: the command without the others of the package."""

from __future__ import annotations

import argparse
import sys

from .command import add_command

parser = argparse.ArgumentParser(prog="python -m jobboard.importers")
add_command(parser.add_subparsers(required=True, metavar="import"))
arguments = parser.parse_args()
sys.exit(arguments.run(arguments))
