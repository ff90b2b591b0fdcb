"""Which cases of a test run each day, and which `make ci` alone runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def left_to_ci(values: Iterable[Any]) -> list[Any]:
    """Cases for `parametrize` that take long, and seldom fail where the others pass."""
    return [pytest.param(value, marks=pytest.mark.thorough) for value in values]
