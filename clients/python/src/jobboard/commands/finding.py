"""What `jobboard doctor` has found."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    """`level` is ok, warn, bad, or skip where it could not be told."""

    level: str
    about: str
    text: str
    advice: str = ""
