"""Numbers and tables as text, and what a report says of its making."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def commit() -> str:
    """The short name of the commit that is measured."""
    words = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True).stdout.strip()


def cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def number(value: float) -> str:
    """Three digits that count."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def percentiles(values: list[float]) -> list[str]:
    """p50, p99 and the largest."""
    values = sorted(values)
    chosen = (values[len(values) // 2], values[len(values) * 99 // 100], values[-1])
    return [f"{value:.2f}" for value in chosen]


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; all columns but the first are numbers."""
    rows = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
