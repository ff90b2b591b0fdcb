"""A strict reader of OpenMetrics text, version 1.0, as far as gauges, counters and histograms go."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,(?!})|(?=}))')
NUMBER = re.compile(r"[+-]?(\d+(\.\d+)?([eE][+-]?\d+)?|Inf)|NaN")
SUFFIXES = {
    "gauge": {""},
    "counter": {"_total", "_created"},
    "histogram": {"_bucket", "_count", "_sum", "_created"},
}
UNESCAPED = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


class Sample(NamedTuple):
    """One line: the whole name, labels and value."""

    name: str
    labels: dict
    value: float


class Family(NamedTuple):
    """A family: its kind, unit and help, and its samples in their order."""

    kind: str
    unit: str
    help: str
    samples: list


def parse(text: bytes) -> dict[str, Family]:
    """The families by name; fails on whatever the format forbids."""
    whole = text.decode("utf-8")
    assert whole.endswith("# EOF\n") and whole.count("# EOF") == 1
    families: dict[str, Family] = {}
    head: dict[str, str] = {}
    name = ""
    for line in whole.split("\n")[:-2]:
        if line.startswith("# "):
            word, of, rest = line[2:].split(" ", 2)
            assert word in ("TYPE", "UNIT", "HELP"), line
            if of != name:
                assert of not in families and word == "TYPE", f"{of} is in two pieces"
                name, head = of, {}
            assert word not in head and (name not in families or not families[name].samples), line
            head[word] = rest
            families[name] = Family(head["TYPE"], head.get("UNIT", ""), head.get("HELP", ""), [])
        else:
            families[name].samples.append(sample(line, name, families[name].kind))
    for name, family in families.items():
        check(name, family)
    return families


def sample(line: str, family: str, kind: str) -> Sample:
    name = NAME.match(line)
    assert name and name.group().startswith(family), line
    assert name.group()[len(family) :] in SUFFIXES[kind], line
    at, labels = name.end(), {}
    if line[at] == "{":
        at += 1
        while line[at] != "}":
            label = LABEL.match(line, at)
            assert label and label[1] not in labels, line
            labels[label[1]] = re.sub(r"\\.", lambda found: UNESCAPED[found.group()], label[2])
            at = label.end()
        at += 1
    assert line[at] == " " and NUMBER.fullmatch(line[at + 1 :]), line
    return Sample(name.group(), labels, float(line[at + 1 :]))


def key(labels: dict, without: str = "") -> tuple:
    return tuple(sorted((name, value) for name, value in labels.items() if name != without))


def check(name: str, family: Family) -> None:
    """What holds of a whole family."""
    assert family.help and family.samples, name
    assert not family.unit or name.endswith(f"_{family.unit}"), name
    seen = [(one.name, key(one.labels)) for one in family.samples]
    assert len(set(seen)) == len(seen), f"{name} has a sample twice"
    points = [key(one.labels, "le") for one in family.samples]
    runs = [point for n, point in enumerate(points) if n == 0 or points[n - 1] != point]
    assert len(set(runs)) == len(runs), f"{name}: samples of one point are apart"
    assert family.kind == "gauge" or all(one.value >= 0 for one in family.samples)
    if family.kind != "histogram":
        return
    for point in set(points):
        own = [one for one in family.samples if key(one.labels, "le") == point]
        buckets = [(float(one.labels["le"]), one.value) for one in own if "le" in one.labels]
        rest = {one.name[len(name) :]: one.value for one in own if "le" not in one.labels}
        assert buckets == sorted(buckets) and buckets[-1][0] == math.inf, name
        assert [n for _, n in buckets] == sorted(n for _, n in buckets), name
        assert buckets[-1][1] == rest["_count"] and set(rest) == {"_count", "_sum", "_created"}, name


def values(family: Family, suffix_name: str, **labels: str) -> list[float]:
    """The values of those samples that have that name and these labels."""
    has = labels.items()
    return [one.value for one in family.samples if one.name == suffix_name and has <= one.labels.items()]
