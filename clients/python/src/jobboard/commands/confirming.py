"""Whether a command over many jobs is meant: what nothing brings back is asked for once more."""

from __future__ import annotations

import argparse
import contextlib
import sys
from typing import Any

import redis

from ..board import ShardedBoard
from .common import say

ASKED = 1000
"""A deletion, or a cancel, of more jobs than that by filters is asked for once more."""


def is_meant(arguments: argparse.Namespace, board: Any, total: int) -> bool:
    """Whether to delete or cancel this many jobs. Above `ASKED`, `--yes` or a person has to confirm it."""
    if total <= ASKED or arguments.yes:
        return True
    what = f"this {arguments.verb}s {total} jobs of {arguments.board}{costs(arguments.verb, board, total)}"
    if not sys.stdin.isatty():
        raise ValueError(f"{what}: add --yes, or --dry-run to see which they are")
    say(f"{what[0].upper()}{what[1:]}. Write yes to {arguments.verb} them:")
    return sys.stdin.readline().strip().lower() in ("yes", "y")


def costs(verb: str, board: Any, total: int) -> str:
    """What nothing brings back, as the end of a sentence."""
    if verb == "delete":
        return ", which nothing brings back"
    lost = beyond(board, total)
    if lost is None:
        return ", which `jobboard requeue` brings back as far as they are kept (setting keep-cancelled)"
    return beyond_words(*lost) if lost[0] else ", which `jobboard requeue` brings back while they are kept"


def beyond_words(lost: int, kept: int) -> str:
    return (
        f", and the board drops the {lost} oldest cancelled jobs for good, since it keeps {kept} (setting "
        "keep-cancelled)"
    )


def beyond(board: Any, total: int) -> tuple[int, int] | None:
    """How many cancelled jobs go for good when this many more are cancelled, and how many the board keeps.
    None when this user may not ask."""
    with contextlib.suppress(redis.exceptions.NoPermissionError):
        parts = board.boards if isinstance(board, ShardedBoard) else [board]
        info = board.info() or {}
        kept = len(parts) * int(parts[0].settings_get("keep-cancelled")["keep-cancelled"].value)
        return max(int(info.get("cancelled", 0)) + total - kept, 0), kept
    return None
