"""The rules of examples/alerts.yml, evaluated by Prometheus's own tool over numbers that servers gave."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from documents import ROOT

FOLDER = ROOT / "target" / "tools" / "prometheus" / "usr" / "bin"
PROMTOOL = FOLDER / "promtool"
EXPORTER = FOLDER / "prometheus-redis-exporter"
RULES = ROOT / "examples" / "alerts.yml"
GROUPS = {
    group["name"]: [rule["alert"] for rule in group["rules"]]
    for group in yaml.safe_load(RULES.read_text())["groups"]
}
"""The alerts of each group."""

Scrape = dict[str, float]
"""Values by name and labels, as in the text that Prometheus reads."""


def needed(program: Path) -> Path:
    if not program.exists():
        pytest.skip(f"{program} is missing: scripts/prometheus unpacks it")
    return program


def read(text: str, prefix: str) -> Scrape:
    """The values of the families with that prefix; buckets of histograms are left out."""
    lines = re.findall(rf"^({prefix}\S+?(?:\{{.*\}})?) (\S+)$", text, re.MULTILINE)
    return {name: float(value) for name, value in lines if "_bucket{" not in name}


def series(scrapes: list[Scrape]) -> list[dict[str, str]]:
    """As promtool reads them. What a scrape has no more is stale at once, as in Prometheus."""
    names = {name for scrape in scrapes for name in scrape}
    return [
        {
            "series": name,
            "values": " ".join(f"{scrape[name]:.12g}" if name in scrape else "stale" for scrape in scrapes),
        }
        for name in sorted(names)
    ]


def check_firing(folder: Path, scrapes: list[Scrape], interval: int, alerts: set[str]) -> None:
    """Fails unless these alerts fire at the last scrape, and no others. `interval`: of scrapes, minutes."""
    firing = {
        "expr": 'group by (alertname) (ALERTS{alertstate="firing"})',
        "eval_time": f"{(len(scrapes) - 1) * interval}m",
        "exp_samples": [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in sorted(alerts)],
    }
    test = {
        "rule_files": ["alerts.yml"],
        "evaluation_interval": f"{interval}m",
        "tests": [
            {"interval": f"{interval}m", "input_series": series(scrapes), "promql_expr_test": [firing]}
        ],
    }
    (folder / "alerts.yml").write_bytes(RULES.read_bytes())
    (folder / "test.yml").write_text(yaml.safe_dump(test))
    words = [needed(PROMTOOL), "test", "rules", "test.yml"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
