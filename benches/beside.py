"""The peers beside each other: every phase of every peer in one run, as tables and plots.

Each peer has a server of its own. Its phases, in order:

1. a thousand jobs wait: rounds of a thousand posts, claims and ends, CPU by verb;
2. latency of a blocked worker, of a killed worker's job, of delayed jobs; two workers with the real client;
3. it is filled: bytes of a waiting job, the longest answer to a PING meanwhile; the rounds again; restart;
4. what waits is claimed: bytes of a claimed job; the rounds again.
"""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import time
from pathlib import Path

import peers
import sampling
from report import number, table

FEW = 1000
OURS = ("jobboard", "batches")
PATIENCE = 4.0
"""Seconds that the rounds of one phase may take; what is slower does fewer jobs."""


def measure(
    kind: str, names: list[str], many: int, rounds: int, samples: int, durable: bool
) -> dict[str, dict]:
    """Results by the name of the peer; a result is {"missing": reason} or its numbers."""
    found = {}
    for name in names:
        start = time.monotonic()
        try:
            found[name] = one(peers.find(name), kind, many, rounds, samples, durable)
        except peers.Missing as reason:
            found[name] = {"title": name, "missing": str(reason)}
        except Exception as error:  # a peer that fails costs its rows, not the run
            if name in OURS:
                raise
            found[name] = {"title": name, "missing": f"it failed: {error!r}"}
        print(f"  {name}: {found[name].get('missing') or f'{time.monotonic() - start:.0f} s'}", flush=True)
    return found


def one(
    kind_of_peer: type[peers.Peer], kind: str, many: int, rounds: int, samples: int, durable: bool
) -> dict:
    peer = kind_of_peer(kind, durable)
    try:
        peer.empty()
        many = min(many, peer.most)
        result = {"title": peer.title, "version": peer.version(), "verbs": peer.verbs, "many": many}
        if peer.chained:
            result["bytes waiting"] = grow(peer, lambda: peer.post(many), many)
            peer.empty()
            result["few"] = lives(peer, peer.most, rounds, refill=True)
            result["jobs/s"] = together(peer, many)
            return result
        peer.post(FEW)
        peer.end(peer.claim(FEW))
        peer.post(FEW)
        result["few"] = lives(peer, FEW, rounds)
        peer.empty()
        for name, sample in (("pick up", peer.pick_ups), ("recovery", peer.recoveries), ("late", peer.late)):
            result[name] = sample(samples)
            peer.empty()
        result["jobs/s"] = together(peer, min(many, 20_000))
        peer.empty()
        full(peer, result, many, rounds)
        return result
    finally:
        peer.close()


def full(peer: peers.Peer, result: dict, many: int, rounds: int) -> None:
    """The phases with many jobs."""
    stalls = result["stalls"] = {}
    result["bytes waiting"] = grow(
        peer, lambda: watched(peer, stalls, "fill", lambda: in_parts(peer.post, many)), many
    )
    result["many"] = many
    result["waiting"] = lives(peer, FEW, rounds)
    watched(peer, stalls, "work", lambda: lives(peer, 100, 10))
    if hasattr(peer, "find"):
        result["find"] = peer.find()
    result["restart"] = peer.restart()
    held: list = []
    grown = grow(
        peer, lambda: watched(peer, stalls, "claim all", lambda: in_parts(peer.claim, many, held)), many
    )
    result["bytes claimed"] = result["bytes waiting"] + grown
    peer.post(FEW)
    result["claimed"] = lives(peer, FEW, rounds)
    watched(peer, stalls, "end", lambda: peer.end(held[: min(len(held) // 100, 1000)]))


def in_parts(work, count: int, into: list | None = None) -> None:
    """Ten thousand at once, to hold the client's memory down."""
    for start in range(0, count, 10_000):
        done = work(min(10_000, count - start))
        if into is not None:
            into += done


def grow(peer: peers.Peer, work, count: int) -> float:
    """Bytes of the server's memory that each job takes more afterwards."""
    before = peer.memory()
    work()
    return (peer.memory() - before) / count


def watched(peer: peers.Peer, stalls: dict, phase: str, work) -> None:
    """Runs `work` in short pipelines with a PING loop beside it."""
    word = b"PING\r\n" if peer.server is not peer else b"peek 0\r\n"
    loop, depth = sampling.Stalls(peer.server.port, word), peer.depth
    peer.depth = 20
    try:
        work()
    finally:
        peer.depth = depth
        stalls[phase] = loop.longest()


def lives(peer: peers.Peer, jobs: int, rounds: int, refill: bool = False) -> dict[str, list[float]]:
    """Microseconds of server CPU a job, by verb and round. Rounds of slow ones have fewer jobs."""
    spent: dict[str, list[float]] = {verb: [] for verb in peer.verbs}
    start = time.monotonic()
    while len(spent[peer.verbs[0]]) < rounds:
        if refill:
            peer.empty()
        for verb, cost in life(peer, jobs).items():
            spent[verb].append(cost)
        passed = time.monotonic() - start
        if passed > PATIENCE:
            break
        if passed > PATIENCE / 4 and len(spent[peer.verbs[0]]) == 1 and not refill and jobs > 100:
            jobs = 100
    return spent


def life(peer: peers.Peer, jobs: int) -> dict[str, float]:
    """Microseconds of server CPU a job, by verb, of one round."""
    spent, held = {}, []
    for verb in peer.verbs:
        before = peer.cpu()
        if verb == "post":
            peer.post(jobs)
        elif verb == "end":
            peer.end(held)
        else:
            held = peer.claim(jobs)
        spent[verb] = (peer.cpu() - before) / jobs * 1e6
    return spent


def together(peer: peers.Peer, jobs: int) -> float | None:
    """Jobs a second of two processes that work with the real client, from the first tenth on."""
    command = peer.worker()
    if command is None:
        return None
    peer.empty()
    jobs = min(jobs, 5_000) if peer.title in ("TaskFlow", "qless", "RQ") else jobs
    peer.post(min(jobs, 500) if peer.title == "TaskFlow" else jobs)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent)}
    workers = [
        subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(2)
    ]
    try:
        first = before = peer.left()
        limit = time.monotonic() + 20
        while (left := peer.left()) > first * 0.9 and time.monotonic() < limit:
            time.sleep(0.005)
        start, before = time.monotonic(), left
        while (left := peer.left()) > 0 and time.monotonic() < min(limit, start + 5):
            time.sleep(0.005)
        passed = time.monotonic() - start
        return (before - left) / passed if before > left else None
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()


# The report


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
    rows = []
    for r in measured:
        if "waiting" not in r:
            continue
        few, columns = statistics.median(whole(r["few"])), []
        for phase in ("waiting", "claimed"):
            median = statistics.median(whole(r[phase]))
            columns += [number(median), number(median / few)]
        rows.append([r["title"], f"{r['many']:,}", number(few), *columns])
    return table(
        ["whole life, µs of CPU", "many", f"{FEW:,} wait", "many wait", "times", "many claimed", "times"],
        rows,
    )


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
    rows = [[r["title"], *(f"{r['stalls'][p]:.2f}" for p in phases)] for r in measured if "stalls" in r]
    return (
        "The longest answer to a PING beside each phase, in pipelines of 20 commands. It holds what the "
        "machine itself keeps the server from running.\n\n" + table(["longest answer, ms", *phases], rows)
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
    grown = [r for r in measured if "waiting" in r]
    figure, axes = pyplot.subplots(figsize=(7, 4))
    for r in grown:
        medians = [statistics.median(whole(r[phase])) for phase in ("few", "waiting", "claimed")]
        axes.plot([0, 1, 2], medians, marker="o", label=f"{r['title']} ({math.log10(r['many']):.0f})")
    axes.set_yscale("log")
    axes.set_xticks([0, 1, 2], [f"{FEW:,} wait", "many wait", "many claimed"])
    axes.set_title("Growth: µs of CPU of a whole job (in brackets: how many, as a power of ten)")
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(folder / "growth.svg", metadata={"Date": None})
    return [*names, "growth.svg"]
