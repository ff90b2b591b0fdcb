"""Instructions of the hot verbs in a real server, which do not depend on the machine's mood.

    python benches/instructions.py [--write]

Starts Redis 7.0 under callgrind, sends each verb some hundred times, and counts what the server's main thread
spends in the module's commands, their replies and their effects included, for each job.
`docs/reports/instructions.md` holds the numbers of record: a verb that takes 3 % more fails. `--write` notes
new numbers; a growth goes with a line in the changelog.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TypeVar

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "python"))

from callgrind import Counter  # noqa: E402
from harness.kinds import executable  # noqa: E402
from harness.server import MODULE, free_port  # noqa: E402
from wire import Wire, encode, fields  # noqa: E402

RECORD = HERE.parent / "docs" / "reports" / "instructions.md"
JOBS = 300
ROUNDS = 5
"""Every verb is counted so often, and the least counts: now and then a table grows within a command."""
SERVERS = 3
"""The same with each of so many servers: where one has its commands in its tables is chance."""
BATCH = 100
PAYLOAD = b"x" * 100
WINDOW = 20
"""Commands in one packet: as many as have replies that fit into a client's buffer, however they are read."""
SLACK = 0.03
"""What a verb may take more before it fails."""
BESIDE = "\n## Beside the peers\n"
"""Where the part of the document begins that instructions_beside.py writes."""

PARTS = {
    "sending on": ("RM_Replicate",),
    "reply": ("RM_Reply",),
    "key": ("RM_OpenKey", "RM_CloseKey", "RM_KeyType", "RM_ModuleType", "RM_SignalModified"),
    "memory": ("RM_Alloc", "RM_Calloc", "RM_Realloc", "RM_Free"),
}
"""The server's functions that the module calls for most."""
Verb = TypeVar("Verb")
Numbers = dict[tuple[str, str], list[int]]
"""Instructions a job by kind of job and verb: all, then those of the parts, then the rest."""


class Counted:
    """A server under callgrind that counts instructions within the module's commands only."""

    def __init__(self, folder: Path) -> None:
        within = ("--collect-atstart=no", "--toggle-collect=RedisModuleCommandDispatcher")
        self.counter = Counter(folder, *within)
        port = free_port()
        self.process = subprocess.Popen(
            [
                *self.counter.command,
                *(str(executable("redis70")), "--port", str(port), "--save", "", "--hz", "1"),
                *("--enable-debug-command", "yes"),
                *(
                    "--jemalloc-bg-thread",
                    "no",
                    "--loglevel",
                    "warning",
                    "--dir",
                    str(folder),
                    "--loadmodule",
                    str(MODULE),
                ),
            ],
            # Else the allocator gives pages back whenever some time has passed.
            env={**os.environ, "MALLOC_CONF": "dirty_decay_ms:-1,muzzy_decay_ms:-1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.wire = self._connect(port)
        # Else a client's buffer becomes smaller when it was little used for some time.
        self.wire.call("DEBUG", "REPLYBUFFER", "RESIZING", 0)

    def _connect(self, port: int) -> Wire:
        for _ in range(600):
            try:
                return Wire(port)
            except OSError:
                time.sleep(0.1)
        raise RuntimeError("the server did not start under valgrind")

    def forget(self) -> None:
        """Counts from here on."""
        self.counter.count(self.process.pid)

    def counted(self, jobs: int) -> list[int]:
        """Instructions a job: all, those of the parts, and the rest."""
        counts = [self.counter.count(self.process.pid)]
        counts += [self.counter.within(*names) for names in PARTS.values()]
        counts.append(counts[0] - sum(counts[1:]))
        return [count // jobs for count in counts]

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()


def lives(server: Counted, board: str, groups: int = 0) -> dict[str, list[int]]:
    """Post, claim, heartbeat and consume one by one, jobs of so many groups: the instructions of each."""
    wire, rounds = server.wire, []

    def count(verb: str, commands: list[bytes]) -> list:
        server.forget()
        replies = wire.pipeline(commands, WINDOW)
        rounds[-1][verb] = server.counted(JOBS)
        return replies

    def ends(claims: list, *more: object) -> list[bytes]:
        jobs = [fields(claim[0]) for claim in claims]
        return [encode("JOB.CONSUME", board, "w", job[b"id"], "TOKEN", job[b"token"], *more) for job in jobs]

    def posts(count: int) -> list[bytes]:
        options = [["GROUP", f"tenant-{n % groups}"] if groups else [] for n in range(count)]
        return [encode("JOB.POST", board, PAYLOAD, *words) for words in options]

    claim = encode("JOB.CLAIM", board, "w")
    # What is new the first time, and tables that are small, are not what is measured.
    wire.pipeline(posts(3000))
    wire.pipeline(ends(wire.pipeline([claim] * 1000)))
    for _ in range(ROUNDS):
        rounds.append({})
        count("post", posts(JOBS))
        claims = count("claim", [claim] * JOBS)
        jobs = [fields(claim[0]) for claim in claims]
        beats = [encode("JOB.HEARTBEAT", board, "w", job[b"id"], "TOKEN", job[b"token"]) for job in jobs]
        count("heartbeat", beats)
        count("consume", ends(claims))
        claims = wire.pipeline([claim] * JOBS)
        both = count("consume and claim", ends(claims, "CLAIM"))
        # The next round finds as many jobs as this one has.
        wire.pipeline(ends([claims for _, claims in both]) + posts(2 * JOBS))
    return least(rounds)


def least(rounds: list[dict[Verb, list[int]]]) -> dict[Verb, list[int]]:
    """Of each verb the counts of the round that took least."""
    return {verb: min(taken[verb] for taken in rounds) for verb in rounds[0]}


def batches(server: Counted) -> dict[str, list[int]]:
    """The same, a hundred in a command: instructions a job."""
    wire, rounds = server.wire, []
    posts = [encode("JOB.MPOST", "many", BATCH, *[PAYLOAD] * BATCH)]
    wire.pipeline(posts * 20, 1)
    for _ in range(ROUNDS):
        taken = {}
        for verb, commands in [
            ("post", posts * 3),
            ("claim", [encode("JOB.CLAIM", "many", "w", "COUNT", BATCH)] * 3),
        ]:
            server.forget()
            replies = wire.pipeline(commands, 1)
            taken[verb] = server.counted(3 * BATCH)
        ends = []
        for claim in replies:
            jobs = [fields(one) for one in claim]
            ids, tokens = [job[b"id"] for job in jobs], [job[b"token"] for job in jobs]
            ends.append(encode("JOB.MCONSUME", "many", "w", BATCH, *ids, "TOKENS", BATCH, *tokens))
        server.forget()
        wire.pipeline(ends, 1)
        taken["consume"] = server.counted(3 * BATCH)
        rounds.append(taken)
    return least(rounds)


def measure() -> Numbers:
    """What each verb takes."""
    return least([measure_one() for _ in range(SERVERS)])


def measure_one() -> Numbers:
    with tempfile.TemporaryDirectory() as folder:
        server = Counted(Path(folder))
        try:
            wire = server.wire
            wire.call(
                "JOB.SETTINGS",
                "SET",
                "limited",
                "QUEUE",
                "default",
                "rate",
                1 << 20,
                "burst",
                1 << 20,
                "concurrency",
                1 << 20,
            )
            kinds = {
                "plain": lives(server, "plain"),
                "of a thousand groups": lives(server, "grouped", 1000),
                "under a rate and a concurrency limit": lives(server, "limited"),
                "a hundred in a command": batches(server),
            }
            return {(kind, verb): counts for kind, verbs in kinds.items() for verb, counts in verbs.items()}
        finally:
            server.close()


HEAD = """# Instructions

What the hot verbs take of the server's main thread, in instructions a job: the module's command with its
reply and its effect, without the network. Counted by callgrind on Redis 7.0, the least of 15 rounds;
payloads of 100 bytes, 2,000 jobs waiting. `make instructions` counts them again and fails when one has grown
by 3 %.

Nobody listens to this server, so no effect is sent (`jobboard_listeners` in `INFO jobboard`). With replicas
or an append-only file each command also encodes its effect and hands it to the server.

Where the instructions go: sending the effect on, the server's functions that write the reply, those that open
and close the key, and those that give and take memory. The rest is the module itself, with copies of
bytes and the server's dispatch.

"""


def table(numbers: Numbers) -> str:
    """The document."""
    heads = ["jobs", "verb", "instructions", *PARTS, "rest"]
    lines = [heads, ["---", "---", *["---:"] * (len(heads) - 2)]]
    lines += [[kind, verb, *(f"{count:,}" for count in counts)] for (kind, verb), counts in numbers.items()]
    return HEAD + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def read(text: str) -> dict[tuple[str, str], int]:
    """All instructions by kind of job and verb, as the document has them."""
    rows = re.findall(r"^\| (.*?) \| (.*?) \| ([\d,]+) \|", text.partition(BESIDE)[0], re.M)
    return {(kind, verb): int(count.replace(",", "")) for kind, verb, count in rows}


def grown(now: Numbers, record: dict[tuple[str, str], int]) -> list[str]:
    """The verbs that take `SLACK` more than the record says, or that it does not know."""
    return [
        f"{verb} ({kind}): {count:,}, was {record.get((kind, verb), 0):,}"
        for (kind, verb), [count, *_] in now.items()
        if count > (1 + SLACK) * record.get((kind, verb), 0)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="note the numbers as those of record")
    write = parser.parse_args().write
    now = measure()
    record = {} if write else read(RECORD.read_text())
    for (kind, verb), [count, *_] in now.items():
        before = record.get((kind, verb))
        print(f"{kind}: {verb} {count:,}" + (f" ({count / before - 1:+.1%})" if before else ""))
    if write:
        _, section, more = RECORD.read_text().partition(BESIDE)
        RECORD.write_text(table(now) + section + more)
    elif more := grown(now, record):
        sys.exit("\n".join([f"these take more instructions than {RECORD.name} says:", *more]))


if __name__ == "__main__":
    main()
