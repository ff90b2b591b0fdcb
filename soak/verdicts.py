"""Decides from the samples and measurements of a run whether the server stays as it was.

The first quarter is for warming up. The second is compared with the last.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import median

from watch import STANDING, VERBS, Sample

Measured = dict[str, list[tuple[float, float]]]
"""By what was measured: (seconds since the beginning, microseconds)."""

LAGS = ("due job", "ended lease", "schedule")
ROUND_TRIPS = ("PING", "JOB.POST", "JOB.CLAIM", "JOB.CONSUME")


@dataclass
class Verdict:
    """One question: whether the answer is good, and what was found. `steady`: it compares two quarters."""

    question: str
    good: bool
    found: str
    steady: bool = True


def percentile(values: list[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * percent / 100), len(ordered) - 1)] if ordered else 0.0


class Quarters:
    """A run in four equal parts."""

    def __init__(self, samples: list[Sample], measured: Measured, seconds: float) -> None:
        self.samples, self.measured, self.seconds = samples, measured, seconds

    def number(self, at: float) -> int:
        return min(int(at / self.seconds * 4), 3)

    def of(self, name: str) -> list[list[float]]:
        """The values of a number, by quarter."""
        parts: list[list[float]] = [[], [], [], []]
        for sample in self.samples:
            if name in sample.numbers:
                parts[self.number(sample.at)].append(sample.numbers[name])
        return parts

    def medians(self, name: str) -> list[float]:
        return [median(part) if part else 0.0 for part in self.of(name)]

    def growth(self, name: str) -> list[float]:
        """By how much a number that only grows has grown in each quarter."""
        return [part[-1] - part[0] if part else 0.0 for part in self.of(name)]

    def times(self, what: str) -> list[list[float]]:
        """Measured microseconds, by quarter."""
        parts: list[list[float]] = [[], [], [], []]
        for at, value in self.measured.get(what, []):
            parts[self.number(at)].append(value)
        return parts

    def windows(self, what: str) -> list[float]:
        """For each quarter the median of the p99 of short windows: one bad moment does not decide."""
        width = min(10.0, self.seconds / 40)
        windows: dict[int, list[float]] = defaultdict(list)
        for at, value in self.measured.get(what, []):
            windows[int(at / width)].append(value)
        parts: list[list[float]] = [[], [], [], []]
        for number, values in windows.items():
            parts[self.number(number * width)].append(percentile(values, 99))
        return [median(part) if part else 0.0 for part in parts]

    def cost(self) -> list[float]:
        """Microseconds of the server's CPU for each command, all that time does included, by quarter."""
        commands, spent = self.growth("commands"), self.growth("cpu")
        return [total * 1e6 / max(n, 1) for n, total in zip(commands, spent)]

    def per_call(self, verb: str) -> list[float]:
        """Microseconds that the server spent in a call, by quarter."""
        calls, spent = self.growth(f"calls {verb}"), self.growth(f"usec {verb}")
        return [total / max(n, 1) for n, total in zip(calls, spent)]


def not_above(question: str, values: list[float], factor: float, extra: float = 0, unit: str = "") -> Verdict:
    """The last quarter is not above the second by more than that."""
    second, last = values[1], values[3]
    change = f"{(last / second - 1) * 100:+.1f} %" if second else "no change"
    found = f"{second:,.4g}{unit} in the second quarter, {last:,.4g}{unit} in the last: {change}"
    return Verdict(question, last <= second * factor + extra, found)


def steady(quarters: Quarters) -> list[Verdict]:
    """What must not change while the population does not."""
    records = quarters.medians("records")
    verdicts = [
        Verdict(
            "the population is steady, within 10 %",
            0.9 * records[1] <= records[3] <= 1.1 * records[1],
            f"{records[1]:,.0f} records in the second quarter, {records[3]:,.0f} in the last",
        ),
        not_above("used_memory for each record: at most 3 % up", quarters.medians("bytes each"), 1.03),
        not_above(
            "`bytes` of JOB.INFO for each record: at most 3 % up", quarters.medians("board bytes each"), 1.03
        ),
        not_above("resident memory: at most 5 % up", quarters.medians("rss"), 1.05),
    ]
    if any(quarters.medians("fragmentation")):
        verdicts.append(
            not_above(
                "fragmentation (active / allocated): at most 0.05 up",
                quarters.medians("fragmentation"),
                1,
                0.05,
            )
        )
    for size in ("queues", "workers", "schedules", "tombstones"):
        values = [sum(row) for row in zip(*(quarters.medians(f"{key} {size}") for key in STANDING))]
        verdicts.append(not_above(f"{size}: at most 10 % up", values, 1.1, 5))
    for name in ("boards", "blocked_claims", "waiting_clients"):
        verdicts.append(not_above(f"`{name}` of INFO: not up", quarters.medians(name), 1.1, 5))
    hints, boards = max(quarters.of("timer_boards")[3]), max(quarters.of("boards")[3])
    verdicts.append(
        Verdict(
            "`timer_boards` of INFO: what it still knows of boards that have gone is bounded",
            hints <= 100 + 2 * boards,
            f"{hints:,.0f} at most, with {boards:,.0f} boards",
        )
    )
    for what in ROUND_TRIPS:
        verdicts.append(
            not_above(
                f"{what}, p99 of a client: at most half more and 1 ms",
                quarters.windows(what),
                1.5,
                1000,
                " µs",
            )
        )
    verdicts.append(
        not_above(
            "CPU of the server for each command: at most a quarter more", quarters.cost(), 1.25, 1, " µs"
        )
    )
    for verb in VERBS:
        verdicts.append(
            not_above(
                f"{verb}, time in the server: at most a quarter more", quarters.per_call(verb), 1.25, 1, " µs"
            )
        )
    for what in LAGS:
        middles = [median(part) if part else 0.0 for part in quarters.times(what)]
        verdicts.append(not_above(f"lag of a {what}, median: at most 1 ms up", middles, 1, 1000, " µs"))
    return verdicts


def equal(question: str, ours: float, theirs: float) -> Verdict:
    return Verdict(question, ours == theirs, f"{ours:,.0f} and {theirs:,.0f}", steady=False)


def at_most(question: str, value: float, limit: float) -> Verdict:
    return Verdict(question, value <= limit, f"{value:,.0f}, allowed {limit:,.0f}", steady=False)
