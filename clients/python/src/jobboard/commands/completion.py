"""`jobboard completion bash`: words that the shell completes, by argcomplete (extra `cli`)."""

from __future__ import annotations

import argparse
import os
from typing import Any

from ..errors import CannotDo
from .common import Subparsers

SHELLS = ["bash", "zsh", "fish", "tcsh", "powershell"]
MISSING = "completion needs argcomplete: pip install 'jobboard[cli]'"


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "completion",
        help="print what makes a shell complete these commands",
        description='bash: eval "$(jobboard completion bash)", into ~/.bashrc.',
    )
    parser.add_argument("shell", choices=SHELLS)
    parser.set_defaults(run=run)


def complete(parser: argparse.ArgumentParser) -> None:
    """Answers a shell that asks for words, and ends the process; else nothing."""
    if "_ARGCOMPLETE" not in os.environ:
        return
    try:
        import argcomplete
    except ImportError:
        return
    argcomplete.autocomplete(parser)


def run(arguments: argparse.Namespace) -> int:
    try:
        import argcomplete
    except ImportError:
        raise CannotDo(MISSING) from None
    shellcode: Any = argcomplete.shellcode  # type: ignore[attr-defined]
    print(shellcode(["jobboard"], shell=arguments.shell))
    return 0
