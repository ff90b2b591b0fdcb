"""What beside.py has found, as tables and plots."""

from __future__ import annotations

import statistics
from pathlib import Path

from beside import FEW
from report import number, table


def text(found: dict[str, dict], many: int, durable: bool) -> str:
    measured = [result for result in found.values() if "missing" not in result]
    parts = [
        ("Append-only file, everysec, and one replica." if durable else "No persistence, no replica.")
        + f" Payloads of 100 bytes. Many: {many:,} jobs, fewer where it says so. CPU is that of the server's"
        " main thread (of beanstalkd its process) in"
        " microseconds a job; in brackets the smallest and largest round."
    ]
    parts.append(cpu_table(measured, "few", f"{FEW:,} waiting"))
    parts.append(growth_table(measured))
    parts.append(memory_table(measured, durable))
    parts.append(stall_table(measured))
    parts.append(latency_table(measured))
    absent = [f"- {result['title']}: {result['missing']}" for result in found.values() if "missing" in result]
    if absent:
        parts.append("Not measured:\n\n" + "\n".join(absent))
    parts.append("Versions: " + "; ".join(f"{r['title']}: {r['version']}" for r in measured) + ".")
    return "\n\n".join(parts)


def spread(values: list[float]) -> str:
    return f"{number(statistics.median(values))} ({number(min(values))} to {number(max(values))})"


def whole(lives_of: dict[str, list[float]]) -> list[float]:
    """A whole life, round by round."""
    return [sum(verbs) for verbs in zip(*lives_of.values())]


def cpu_table(measured: list[dict], phase: str, head: str) -> str:
    base = {r["title"]: statistics.median(whole(r[phase])) for r in measured}
    rows = []
    for r in measured:
        verbs = r[phase]
        columns = [spread(verbs[verb]) if verb in verbs else "-" for verb in ("post", "claim", "end")]
        if "claim and end" in verbs:
            columns[2] = "both: " + spread(verbs["claim and end"])
        streams = base.get("Redis Streams")
        ratio = number(base[r["title"]] / streams) if streams else "-"
        rows.append([r["title"], *columns, spread(whole(verbs)), ratio])
    return table([f"{head}, µs of CPU", "post", "claim", "end", "whole life", "of Streams"], rows)


def growth_table(measured: list[dict]) -> str:
    """Counts that are not those of the head stand in their cells; why, below the table."""
    phases = [("waiting", "many"), ("most waiting", "most"), ("claimed", "many claimed")]
    phases = [(phase, count) for phase, count in phases if any(phase in r for r in measured)]
    heads = {count: max(r[count] for r in measured if count in r) for _, count in phases}
    rows, reasons = [], []
    for r in measured:
        few, columns = statistics.median(whole(r["few"])), []
        for phase, count in phases:
            cell = "-"
            if phase in r:
                median = statistics.median(whole(r[phase]))
                cell = f"{number(median)} ({number(median / few)})"
                cell += f" at {r[count]:,}" if r[count] != heads[count] else ""
            columns.append(cell)
        rows.append([r["title"], number(few), *columns, f"{r.get('bytes most', r['bytes waiting']):.0f}"])
        if r.get("why"):
            reasons.append(f"- {r['title']}: {r['why']}.")
    names = {"waiting": "wait", "most waiting": "wait", "claimed": "claimed"}
    columns = [f"{heads[count]:,} {names[phase]}" for phase, count in phases]
    head = ["whole life, µs of CPU", f"{FEW:,} wait", *columns, "bytes a job at the most"]
    parts = ["One job a command unless it says so; in brackets the ratio to a thousand waiting."]
    parts.append(table(head, rows))
    if reasons:
        parts.append("Where there are no more:\n\n" + "\n".join(reasons))
    return "\n\n".join(parts)


def memory_table(measured: list[dict], durable: bool) -> str:
    rows = []
    for r in measured:
        restart = r.get("restart")
        rows.append(
            [
                r["title"],
                f"{r['many']:,}",
                f"{r['bytes waiting']:.0f}",
                f"{r['bytes claimed']:.0f}" if "bytes claimed" in r else "-",
                f"{restart:.2f}" if restart else "-",
                f"{r['many'] / restart / 1000:.0f}" if restart and r["many"] >= 10_000 else "-",
            ]
        )
    source = "append-only file" if durable else "snapshot"
    head = [
        "memory and restart",
        "jobs",
        "bytes waiting",
        "bytes claimed",
        f"restart from {source}, s",
        "thousand jobs/s",
    ]
    return table(head, rows)


def stall_table(measured: list[dict]) -> str:
    phases = ("fill", "work", "claim all", "end")
    rows = []
    for r in measured:
        if "stalls" in r:
            found = [r["stalls"][phase] for phase in phases]
            rows.append(
                [r["title"], *(f"{turn:.2f}" for turn, _ in found), *(f"{ping:.2f}" for _, ping in found)]
            )
    head = [*(f"turn, {phase}" for phase in phases), *(f"PING, {phase}" for phase in phases)]
    return (
        "The longest turn of the server: CPU of its process for a write of 20 commands (by the hundred: of "
        "one). Each phase is played twice and the shorter turn for each write counts, so that what the "
        "machine does drops out. Beside it the longest answer to a PING, one each tenth of a millisecond, "
        "the shorter one of both plays; it holds the way through the system.\n\n"
        + table(["longest, ms", *head], rows)
    )


def latency_table(measured: list[dict]) -> str:
    def shown(values: list[float] | None) -> str:
        if not values:
            return "-"
        values = sorted(values)
        return f"{values[len(values) // 2]:.2f} / {values[min(len(values) * 99 // 100, len(values) - 1)]:.2f}"

    rows = [
        [r["title"], shown(r.get("pick up")), shown(r.get("recovery")), shown(r.get("late")),
         f"{r['jobs/s']:,.0f}" if r.get("jobs/s") else "-"]
        for r in measured
    ]  # fmt: skip
    return table(
        ["p50 / p99, ms", "pick-up", "after a dead worker's lease", "late when delayed", "jobs/s, 2 workers"],
        rows,
    )


PLOTS = {
    "cpu": ("Server CPU of a whole job, µs", lambda r: statistics.median(whole(r["few"]))),
    "memory": ("Bytes of a waiting job", lambda r: r["bytes waiting"]),
}


def plots(found: dict[str, dict], folder: Path) -> list[str]:
    """SVG files; their names. Nothing when matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        return []
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "jobboard"
    import matplotlib.pyplot as pyplot

    folder.mkdir(parents=True, exist_ok=True)
    measured = [result for result in found.values() if "missing" not in result]
    names = []
    for name, (title, value) in PLOTS.items():
        figure, axes = pyplot.subplots(figsize=(7, 0.4 * len(measured) + 1))
        values = [value(r) for r in measured]
        bars = axes.barh([r["title"] for r in measured], values, color="#4878a8")
        axes.bar_label(bars, [number(one) for one in values], padding=3)
        axes.set_title(title + " (logarithmic)")
        axes.set_xscale("log")
        axes.set_xlim(min(values) / 2, max(values) * 3)
        axes.invert_yaxis()
        figure.tight_layout()
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        names.append(f"{name}.svg")
    figure, axes = pyplot.subplots(figsize=(7, 4))
    for r in measured:
        sizes = [(FEW, "few"), (r["many"], "waiting"), (r.get("most"), "most waiting")]
        sizes = [(count, statistics.median(whole(r[phase]))) for count, phase in sizes if phase in r]
        axes.plot(*zip(*sizes), marker="o", label=r["title"])
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("jobs waiting")
    axes.set_title("Growth: µs of CPU of a whole job")
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(folder / "growth.svg", metadata={"Date": None})
    return [*names, "growth.svg"]
