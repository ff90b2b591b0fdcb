"""A run as a page of Markdown."""

from __future__ import annotations

from collections import Counter

from client import JOBS
from verdicts import LAGS, ROUND_TRIPS, Quarters, Verdict, percentile
from watch import SIZES, VERBS

ROWS = 13
MIB = 1 << 20
HEAD = ["first quarter", "second", "third", "last"]


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def course(quarters: Quarters) -> str:
    """The run from one moment to the next."""
    samples = quarters.samples
    chosen = [samples[round(i * (len(samples) - 1) / (ROWS - 1))] for i in range(min(ROWS, len(samples)))]
    rows = [
        [
            f"{sample.at / 60:.1f}",
            f"{sample.numbers['records']:,.0f}",
            f"{sample.numbers['used_memory'] / MIB:.2f}",
            f"{sample.numbers['bytes each']:.0f}",
            f"{sample.numbers['rss'] / MIB:.1f}",
            f"{sample.numbers.get('fragmentation', 0):.3f}",
            f"{sample.numbers['boards']:.0f}",
            f"{sample.numbers['timer_boards']:.0f}",
        ]
        for sample in chosen
    ]
    return table(
        [
            "minute",
            "records",
            "used MiB",
            "bytes each",
            "RSS MiB",
            "active / allocated",
            "boards",
            "with timer",
        ],
        rows,
    )


def sizes(quarters: Quarters) -> str:
    rows = []
    for size in SIZES:
        rows.append([f"`{size}` of {JOBS}", *(f"{n:,.0f}" for n in quarters.medians(f"{JOBS} {size}"))])
    rows.append(["load of the machine", *(f"{n:.1f}" for n in quarters.medians("load"))])
    rows.append(["commands", *(f"{n:,.0f}" for n in quarters.growth("commands"))])
    rows.append(["CPU of the server, µs a command", *(f"{n:.1f}" for n in quarters.cost())])
    rows.append(["CPU of the server, s", *(f"{n:.1f}" for n in quarters.growth("cpu"))])
    return table(["median", *HEAD], rows)


def times(quarters: Quarters) -> str:
    rows = []
    for what in (*ROUND_TRIPS, *LAGS):
        parts = ([percentile(part, p) / 1000 for p in (50, 99, 100)] for part in quarters.times(what))
        rows.append([what, *(f"{p50:.2f} / {p99:.2f} / {most:.1f}" for p50, p99, most in parts)])
    return table(["ms: p50 / p99 / largest", *HEAD], rows)


def in_server(quarters: Quarters) -> str:
    rows = [[verb, *(f"{n:.1f}" for n in quarters.per_call(verb))] for verb in VERBS]
    return table(["µs in the server, a call", *HEAD], rows)


def counted(counts: Counter) -> str:
    return table(
        ["counted", ""], [[f"{what} {key}".strip(), f"{n:,}"] for (what, key), n in sorted(counts.items())]
    )


def page(title: str, quarters: Quarters, counts: Counter, verdicts: list[Verdict], wrong: list[str]) -> str:
    """Everything, the verdicts first."""
    failed = [verdict for verdict in verdicts if not verdict.good]
    said = "Every verdict is good." if not failed and not wrong else f"**{len(failed) + len(wrong)} bad.**"
    rows = [[verdict.question, "good" if verdict.good else "**bad**", verdict.found] for verdict in verdicts]
    parts = [
        f"{title}\n\n{said}\n",
        *(f"- {line}\n" for line in wrong),
        "## Verdicts\n",
        table(["question", "", "found"], rows),
        "## Course\n",
        course(quarters),
        "## Sizes\n",
        sizes(quarters),
        "## Times\n",
        "Round trips as a client sees them, and how late something that time does reaches a blocked claim.\n",
        times(quarters),
        in_server(quarters),
        "## What was done\n",
        counted(counts),
    ]
    return "\n".join(parts)
