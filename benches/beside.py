"""The peers beside each other: every phase of every peer in one run. tables.py shows what it finds.

Each peer has a server of its own. Its phases, in order:

1. a thousand jobs wait: rounds of a thousand posts, claims and ends, CPU by verb;
2. latency of a blocked worker, of a killed worker's job, of delayed jobs; two workers with the real client;
3. it is filled, works, all is claimed and ended, twice: the longest turns and answers to a PING meanwhile;
4. it is filled: bytes of a waiting job; the rounds again; restart; filled on to ten times as many, and the
   rounds again;
5. of what waits as many are claimed as in 4: bytes of a claimed job; the rounds again.

A phase that takes longer than one has patience for ends early, and its row says how far it came.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from contextlib import nullcontext
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
FILLING = 120.0
"""Seconds that filling may take."""
CLAIMING = 40.0
"""Seconds that claiming may take."""
PLAYING = 8.0
"""The same where turns are measured."""


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
        result["stalls"] = stalls(peer, many)
        peer.empty()
        full(peer, result, sizes)
        return result
    finally:
        peer.close()


def full(peer: peers.Peer, result: dict, sizes: Sizes) -> None:
    """The phases with many jobs."""
    peer.shorten()
    empty, rounds, start = peer.memory(), sizes.rounds, time.monotonic()
    many = result["many"] = in_parts(peer.post, result["many"])
    seconds_each, bytes_each = (time.monotonic() - start) / many, (peer.memory() - empty) / many
    result["bytes waiting"] = bytes_each
    result["waiting"] = lives(peer, FEW, rounds)
    if hasattr(peer, "find"):
        result["find"] = peer.find()
    result["restart"] = peer.restart()
    peer.part()
    if sizes.most > many:
        more = min(sizes.most, peer.most) - many
        result["why"] = too_much(more * seconds_each, more * bytes_each) if more > 0 else peer.why
        if not result["why"]:
            result["most"] = many + in_parts(peer.fill, more)
            result["bytes most"] = (peer.memory() - empty) / result["most"]
            result["most waiting"] = lives(peer, FEW, rounds)
    before = peer.memory()
    result["many claimed"] = in_parts(peer.claim, many, patience=CLAIMING)
    result["bytes claimed"] = result["bytes waiting"] + (peer.memory() - before) / result["many claimed"]
    peer.post(FEW)
    result["claimed"] = lives(peer, FEW, rounds)


def stalls(peer: peers.Peer, many: int) -> dict[str, tuple[float, float]]:
    """By phase, in milliseconds: the server's longest turn, and the longest answer to a PING.

    A turn is what it does for a write of 20 commands, by the CPU clock of its process. Each phase is played
    twice on an emptied server, and the shorter one of each write counts, as of the answers: what the server
    does comes again with the same write, what the machine does to it does not.
    """
    plays: list[dict] = [{}, {}]
    for found in plays:
        held: list = []
        peer.empty()
        found["fill"] = watched(peer, in_parts, peer.post, many, None, PLAYING)
        found["work"] = watched(peer, lives, peer, 100, 10)
        found["claim all"] = watched(peer, in_parts, peer.claim, min(many, peer.left()), held, PLAYING)
        found["end"] = watched(peer, end_some, peer, held)
    return {
        phase: (max(map(min, first, plays[1][phase][0])), min(answer, plays[1][phase][1]))
        for phase, (first, answer) in plays[0].items()
    }


def end_some(peer: peers.Peer, held: list) -> None:
    """Ends a tenth of what is claimed, as long as one has patience."""
    start = time.monotonic()
    for at in range(0, max(len(held) // 10, 1), 100):
        peer.end(held[at : at + 100])
        if time.monotonic() - start > PLAYING:
            break


def watched(peer: peers.Peer, work, *words: object) -> tuple[list[float], float]:
    """Calls `work` in short pipelines with a PING loop beside it: its turns, and the longest answer."""
    loop = sampling.Stalls(peer.server.port, b"PING\r\n" if peer.server is not peer else b"peek 0\r\n")
    turns, depth = sampling.Turns(peer.processes()[0]), peer.depth
    peer.depth, peer.wire.watch = 20, turns.write
    try:
        work(*words)
    finally:
        peer.depth, peer.wire.watch = depth, nullcontext
        answer = loop.longest()
    return turns.spent, answer


def too_much(seconds: float, memory: float) -> str:
    """Why nothing is filled that takes so long and so much memory; empty when it is bearable."""
    [free] = re.findall(r"^MemAvailable: +(\d+)", Path("/proc/meminfo").read_text(), re.M)
    if memory > int(free) * 1024 * 0.6:
        return f"{memory / 1e9:.0f} GB more would be needed, which are not free"
    if seconds > FILLING:
        return f"filling on would take {seconds / 60:.0f} minutes"
    return ""


def in_parts(work, count: int, into: list | None = None, patience: float = FILLING) -> int:
    """Some at once, to hold the client's memory down, and as long as one has patience; how many."""
    start = time.monotonic()
    for at in range(0, count, PART):
        done = work(min(PART, count - at))
        if into is not None:
            into += done
        if time.monotonic() - start > patience:
            return min(at + PART, count)
    return count


def grow(peer: peers.Peer, work, count: int) -> float:
    """Bytes of the server's memory that each job takes more afterwards."""
    before = peer.memory()
    work()
    return (peer.memory() - before) / count


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
