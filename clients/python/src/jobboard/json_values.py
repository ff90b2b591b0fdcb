"""Values that JSON holds as they are."""

from __future__ import annotations

import json
import math
from typing import Any


def is_json(value: Any) -> bool:
    """Whether JSON gives the same value back."""
    if value is None or isinstance(value, (bool, int)):
        return True
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, str):
        return not any("\ud800" <= one <= "\udfff" for one in value)
    if isinstance(value, list):
        return all(map(is_json, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and is_json(key) and is_json(one) for key, one in value.items())
    return False


def compact(value: Any) -> str:
    """JSON without spaces, with letters as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
