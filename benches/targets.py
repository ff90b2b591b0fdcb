"""What the module is to reach, beside what this run has measured."""

from __future__ import annotations

import statistics

import cpu
from report import number, table
from tables import whole


def text(found: dict[str, dict], own: dict[str, dict]) -> str:
    """The table of targets, of the peers and of what the module measured by itself. Rows whose peers were not
    measured are left out."""
    there = {name: result for name, result in found.items() if "missing" not in result}
    if "jobboard" not in there:
        return ""
    ours, due, rows = there["jobboard"], own["due"], []

    def row(what: str, target: float, value: float, at_least: bool = False) -> None:
        met = value >= target if at_least else value <= target
        bound = f"at {'least' if at_least else 'most'} {number(target)}"
        rows.append([what, bound, number(value), "met" if met else "missed"])

    def cost(name: str) -> float:
        return statistics.median(whole(there[name]["few"]))

    def p99(name: str) -> float:
        values = sorted(ours[name])
        return values[min(len(values) * 99 // 100, len(values) - 1)]

    for name, ratios in cpu.ratios(own["cpu"]).items():
        row(f"CPU of a job against Streams, {name}", 0.4, statistics.median(ratios))
    for name, least in (("qless", 40), ("bullmq", 15)):
        if name in there:
            title = there[name]["title"]
            row(f"CPU of a job of {title} against ours", least, cost(name) / cost("jobboard"), True)
    row("bytes of a waiting job, payload of 100 included", 200, ours["bytes waiting"])
    few = {verb: statistics.median(values) for verb, values in ours["few"].items()}
    for phase, count in (("waiting", "many"), ("most waiting", "most"), ("claimed", "many claimed")):
        if phase in ours:
            dearest = max(statistics.median(ours[phase][verb]) / few[verb] for verb in few)
            row(f"dearest verb with {ours[count]:,} {phase.split()[-1]}, against a thousand", 2, dearest)
    turns = [turn for turn, _ in ours["stalls"].values()]
    row("longest turn of the server in any phase, ms", 1, max(turns))
    row("longest turn of the timer, many due at once, ms", 1, due["turn"])
    row("pick-up by a blocked worker, p99, ms", 1, p99("pick up"))
    row("end of a lease until another worker has the job, p99, ms", 5, p99("recovery"))
    row("lateness of a delayed job, p99, ms", 5, p99("late"))
    row("thousand jobs a second, loading a snapshot", 500, ours["many"] / ours["restart"] / 1000, True)
    row(f"seconds until {due['jobs']:,} jobs, due at once, are ready", 1, due["taken"])
    return "## Targets\n\n" + table(["what", "target", "measured", ""], rows) + "\n"
