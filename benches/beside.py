"""The peers beside each other: every phase of every peer in one run. tables.py shows what it finds.

Each peer has a server of its own. Its phases, in order:

1. a thousand jobs wait: rounds of a thousand posts, claims and ends, CPU by verb;
2. latency of a blocked worker, of a killed worker's job, of delayed jobs; two workers with the real client;
3. it is filled: bytes of a waiting job, the longest command and answer to a PING meanwhile; the rounds again;
   restart; filled on to ten times as many, and the rounds again;
4. of what waits as many are claimed as in 3: bytes of a claimed job; the rounds again.

A phase that takes longer than one has patience for ends early, and its row says how far it came.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import cores
import peers
import sampling

FEW = 1000
PART = 10_000
OURS = ("jobboard", "batches")
PATIENCE = 4.0
"""Seconds that the rounds of one phase may take; what is slower does fewer jobs."""
FILLING = 150.0
"""Seconds that filling or claiming may take."""


@dataclass
class Sizes:
    """How much a run measures: jobs that wait and are claimed, those of the growth (0: none)."""

    many: int
    most: int
    rounds: int
    samples: int


def measure(kind: str, names: list[str], sizes: Sizes, durable: bool) -> dict[str, dict]:
    """Results by the name of the peer; a result is {"missing": reason} or its numbers."""
    found = {}
    for name in names:
        start = time.monotonic()
        try:
            found[name] = one(peers.find(name), kind, sizes, durable)
        except peers.Missing as reason:
            found[name] = {"title": name, "missing": str(reason)}
        except Exception as error:  # a peer that fails costs its rows, not the run
            if name in OURS:
                raise
            found[name] = {"title": name, "missing": f"it failed: {error!r}"}
        finally:
            cores.share()
        print(f"  {name}: {found[name].get('missing') or f'{time.monotonic() - start:.0f} s'}", flush=True)
    return found


def one(kind_of_peer: type[peers.Peer], kind: str, sizes: Sizes, durable: bool) -> dict:
    peer = kind_of_peer(kind, durable)
    try:
        peer.part()
        peer.empty()
        many, rounds = min(sizes.many, peer.most), sizes.rounds
        result = {"title": peer.title, "version": peer.version(), "verbs": peer.verbs, "many": many}
        if peer.chained:
            result["bytes waiting"] = grow(peer, lambda: peer.post(many), many)
            peer.empty()
            result["few"] = lives(peer, peer.most, rounds, refill=True)
            result["jobs/s"] = together(peer, many)
            result["why"] = peer.why
            return result
        peer.post(FEW)
        peer.end(peer.claim(FEW))
        peer.post(FEW)
        result["few"] = lives(peer, FEW, rounds)
        peer.empty()
        for name, sample in (("pick up", peer.pick_ups), ("recovery", peer.recoveries), ("late", peer.late)):
            with cores.preferred():
                result[name] = sample(sizes.samples)
            peer.empty()
        result["jobs/s"] = together(peer, min(many, 20_000))
        peer.empty()
        full(peer, result, sizes)
        return result
    finally:
        peer.close()


def full(peer: peers.Peer, result: dict, sizes: Sizes) -> None:
    """The phases with many jobs."""
    stalls, empty, rounds = {}, peer.memory(), sizes.rounds
    result["stalls"] = stalls
    many = watched(peer, stalls, "fill", lambda: in_parts(peer.post, result["many"]))
    result["many"], result["bytes waiting"] = many, (peer.memory() - empty) / many
    result["waiting"] = lives(peer, FEW, rounds)
    watched(peer, stalls, "work", lambda: lives(peer, 100, 10))
    if hasattr(peer, "find"):
        result["find"] = peer.find()
    result["restart"] = peer.restart()
    peer.part()
    if sizes.most > many:
        result["why"] = fill_up(peer, many, min(sizes.most, peer.most), (peer.memory() - empty) / many)
        if not result["why"]:
            result["most"] = sizes.most
            result["bytes most"] = (peer.memory() - empty) / sizes.most
            result["most waiting"] = lives(peer, FEW, rounds)
    held: list = []
    before = peer.memory()
    claimed = watched(peer, stalls, "claim all", lambda: in_parts(peer.claim, many, held))
    result["many claimed"] = claimed
    result["bytes claimed"] = result["bytes waiting"] + (peer.memory() - before) / claimed
    peer.post(FEW)
    result["claimed"] = lives(peer, FEW, rounds)
    watched(peer, stalls, "end", lambda: end_some(peer, held))


def fill_up(peer: peers.Peer, there: int, most: int, bytes_each: float) -> str:
    """Fills from `there` to `most`, in parts; or says why not, and has filled a little."""
    if most <= there:
        return peer.why
    [free] = re.findall(r"^MemAvailable: +(\d+)", Path("/proc/meminfo").read_text(), re.M)
    if (most - there) * bytes_each > int(free) * 1024 * 0.6:
        return f"{most:,} would take {most * bytes_each / 1e9:.0f} GB"
    start = time.monotonic()
    in_parts(peer.fill, PART)
    expected = (time.monotonic() - start) / PART * (most - there)
    if expected > FILLING:
        return f"{most:,} would take {expected / 60:.0f} minutes to fill"
    in_parts(peer.fill, most - there - PART)
    return ""


def end_some(peer: peers.Peer, held: list) -> None:
    """A tenth of what is claimed, or what one has patience for."""
    start = time.monotonic()
    for at in range(0, max(len(held) // 10, 1), 100):
        peer.end(held[at : at + 100])
        if time.monotonic() - start > PATIENCE:
            break


def in_parts(work, count: int, into: list | None = None) -> int:
    """Some at once, to hold the client's memory down, and as long as one has patience; how many."""
    start = time.monotonic()
    for at in range(0, count, PART):
        done = work(min(PART, count - at))
        if into is not None:
            into += done
        if time.monotonic() - start > FILLING:
            return min(at + PART, count)
    return count


def grow(peer: peers.Peer, work, count: int) -> float:
    """Bytes of the server's memory that each job takes more afterwards."""
    before = peer.memory()
    work()
    return (peer.memory() - before) / count


def watched(peer: peers.Peer, stalls: dict, phase: str, work):
    """Runs `work` in short pipelines with a PING loop beside it."""
    word = b"PING\r\n" if peer.server is not peer else b"peek 0\r\n"
    peer.forget_commands()
    loop, depth = sampling.Stalls(peer.server.port, word), peer.depth
    peer.depth = 20
    try:
        return work()
    finally:
        peer.depth = depth
        stalls[phase] = (loop.longest(), peer.longest_command())


def lives(peer: peers.Peer, jobs: int, rounds: int, refill: bool = False) -> dict[str, list[float]]:
    """Microseconds of server CPU a job, by verb and round. Slow ones have fewer jobs and rounds."""
    spent: dict[str, list[float]] = {verb: [] for verb in peer.verbs}
    start = time.monotonic()
    if not refill:
        life(peer, 100)
        jobs = jobs if (time.monotonic() - start) * jobs / 100 < PATIENCE else 100
    while len(spent[peer.verbs[0]]) < rounds:
        if refill:
            peer.empty()
        for verb, cost in life(peer, jobs).items():
            spent[verb].append(cost)
        if time.monotonic() - start > PATIENCE:
            break
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
    cores.share(*peer.processes())
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
        peer.part()
