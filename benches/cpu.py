"""Server CPU per job of a whole life, jobboard beside Streams, in alternating rounds of one run."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import cycles
from report import number, table
from sampling import main_thread_seconds
from wire import Wire

ROUNDS = 5

CASES: dict[str, tuple[Callable, Callable]] = {
    "three PING": (cycles.empty, cycles.empty_commands),
    "three JOB.GET of an absent board": (cycles.empty, cycles.absent_reads),
    "jobboard: POST, CLAIM, CONSUME": (cycles.empty, cycles.board_singly),
    "jobboard: POST, CONSUME with CLAIM": (cycles.empty, cycles.board_chained),
    "Streams: XADD, XREADGROUP, XACK, XDEL": (cycles.empty_stream, cycles.stream_singly),
    "jobboard, 100 in a command: MPOST, CLAIM, MCONSUME": (cycles.empty, cycles.board_in_batches),
    "jobboard, 100 in a command, records of id, token, payload": (
        cycles.empty,
        cycles.board_in_batches_as_streams,
    ),
    "Streams, 100 in a command: XREADGROUP, XACK, XDEL": (cycles.empty_stream, cycles.stream_in_batches),
}
BOARD_TO_STREAM = {
    title: "Streams, 100 in a command: XREADGROUP, XACK, XDEL"
    if "100 in a command" in title
    else "Streams: XADD, XREADGROUP, XACK, XDEL"
    for title in CASES
    if title.startswith("jobboard")
}


def measure(wire: Wire, jobs: int) -> dict[str, list[float]]:
    """Microseconds per job, by case and round; so many jobs, whole batches of them, a round."""
    spent: dict[str, list[float]] = {name: [] for name in CASES}
    for round_number in range(ROUNDS + 1):
        for name, (prepare, cycle) in CASES.items():
            prepare(wire)
            before = main_thread_seconds(wire)
            cycle(wire, jobs)
            if round_number:  # the first one warms up
                spent[name].append((main_thread_seconds(wire) - before) / jobs * 1e6)
    return spent


def ratios(spent: dict[str, list[float]]) -> dict[str, list[float]]:
    """jobboard to Streams, by case and round: rounds side by side share the machine's mood."""
    return {
        board: [ours / theirs for ours, theirs in zip(spent[board], spent[stream])]
        for board, stream in BOARD_TO_STREAM.items()
    }


def text(spent: dict[str, list[float]], jobs: int) -> str:
    """Two tables: microseconds per job, and the ratio of jobboard to Streams."""
    rows, against = (
        [
            [name, number(statistics.median(values)), f"{number(min(values))} to {number(max(values))}"]
            for name, values in by_case.items()
        ]
        for by_case in (spent, ratios(spent))
    )
    return "\n\n".join(
        [
            f"{ROUNDS} rounds of {jobs} jobs, payloads of {len(cycles.PAYLOAD)} bytes, default settings.",
            table(["one job, whole life", "µs, median", "smallest to largest"], rows),
            table(["against Streams", "ratio, median", "smallest to largest"], against),
        ]
    )
