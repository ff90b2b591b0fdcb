"""Makes packaging/jobboard.profdata: which branches the module takes in real use.

    make profile

Compiles the module so that it counts what it executes, in a target folder of its own; lets boards live on it
as in use, on servers to which nobody listens and on one with an append-only file and a replica; and merges
the counts. Every build that is shipped is compiled with the file (scripts/rustc-with-profile).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT / "tests" / "python"))

TARGET = ROOT / "target" / "profile"
COUNTS = TARGET / "counts"
MODULE = TARGET / "release" / "libjobboard.so"
PROFILE = ROOT / "packaging" / "jobboard.profdata"
os.environ["JOBBOARD_MODULE"] = str(MODULE)

import cycles  # noqa: E402
import msgpack  # noqa: E402
from harness import Server  # noqa: E402
from wire import Wire, encode, fields  # noqa: E402

JOBS = 3000
PAYLOAD = cycles.PAYLOAD
PACKED = ("PACKED",)


def main() -> None:
    tool = profdata_tool()
    build()
    for kind, more in (("redis70", []), ("valkey91", []), ("redis82", ["appendonly yes"])):
        live(kind, more)
    PROFILE.unlink(missing_ok=True)
    words = [str(tool), "merge", "--sparse", "-o", str(PROFILE), *map(str, sorted(COUNTS.glob("*.profraw")))]
    subprocess.run(words, check=True)
    print(f"{PROFILE.relative_to(ROOT)}: {PROFILE.stat().st_size:,} bytes")


def profdata_tool() -> Path:
    """The one of the compiler's own release: others may not read what it counts."""
    host = next(line.split()[1] for line in output("rustc", "-vV").splitlines() if line.startswith("host: "))
    tool = Path(output("rustc", "--print", "sysroot").strip(), f"lib/rustlib/{host}/bin/llvm-profdata")
    if not tool.exists():
        subprocess.run(["rustup", "component", "add", "llvm-tools"], check=False)
    if not tool.exists():
        raise SystemExit("profile: llvm-profdata is missing: `rustup component add llvm-tools` installs it")
    return tool


def output(*words: str) -> str:
    return subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def build() -> None:
    """In a folder of its own: Cargo does not see what the wrapper adds."""
    shutil.rmtree(COUNTS, ignore_errors=True)
    environment = {
        **os.environ,
        "RUSTC_WRAPPER": str(ROOT / "scripts" / "rustc-with-profile"),
        "JOBBOARD_COLLECT": str(COUNTS),
    }
    words = ["cargo", "build", "--release", "--locked", "-p", "jobboard", "--target-dir", str(TARGET)]
    subprocess.run(words, cwd=ROOT, env=environment, check=True)


def live(kind: str, config: list[str]) -> None:
    """One server's life, and that of a replica where there is a file; each writes its counts as it ends."""
    server = Server(kind, config=config)
    servers = [Server(kind, replicaof=server), server] if config else [server]
    try:
        wire = Wire(server.port)
        for depth in (500, 1):
            plain(wire, depth)
            tended(wire, depth)
        batches(wire)
        blocked(wire, server.port)
        limited(wire)
        remembered(wire)
        read(wire)
        wire.close()
        for each in servers[:-1]:
            each.wait_synced(server)
        for each in servers:
            each.stop()
    finally:
        for each in servers:
            each.close()


def plain(wire: Wire, depth: int) -> None:
    """Most of what a server does: post, claim, consume."""
    jobs = JOBS * 4 if depth > 1 else JOBS
    for record in ((), PACKED):
        wire.pipeline([encode("JOB.POST", "plain", PAYLOAD)] * jobs, depth)
        claims = wire.pipeline([encode("JOB.CLAIM", "plain", "w", *record)] * jobs, depth)
        wire.pipeline(ends("plain", claims), depth)
    wire.pipeline([encode("JOB.POST", "plain", PAYLOAD)] * jobs, depth)
    claims = wire.pipeline([encode("JOB.CLAIM", "plain", "w")] * (jobs // 2), depth)
    both = wire.pipeline(ends("plain", claims, "CLAIM"), depth)
    wire.pipeline(ends("plain", [claims for _, claims in both]), depth)


def ends(board: str, claims: list, *more: object) -> list[bytes]:
    jobs = [first(claim) for claim in claims]
    return [encode("JOB.CONSUME", board, "w", job[b"id"], "TOKEN", job[b"token"], *more) for job in jobs]


def first(claim: object) -> dict:
    """The first record of a claim, as a map, also where the records are packed."""
    return fields(claim[0]) if isinstance(claim, list) else msgpack.unpackb(claim, raw=True)[0]


def tended(wire: Wire, depth: int) -> None:
    """Ids of the poster's, queues, groups, delays, priorities, heartbeats, failures, results."""
    jobs = JOBS if depth > 1 else JOBS // 4
    posts = []
    for n in range(jobs):
        words: list[object] = ["QUEUE", f"queue-{n % 5}"]
        words += ["ID", f"job-{depth}-{n}"] if n % 2 else []
        words += ["GROUP", f"tenant-{n % 50}"] if n % 3 == 0 else []
        words += ["PRIORITY", n % 4] if n % 4 == 0 else []
        words += ["DELAY", 1 + n % 20] if n % 10 == 0 else []
        words += ["RETRIES", 3, "BACKOFF", "FIXED", 1, "TAGS", 1, "a"] if n % 10 == 1 else []
        posts.append(encode("JOB.POST", "tended", PAYLOAD, *words))
    wire.pipeline(posts, depth)
    queues = ["QUEUES", 5, *(f"queue-{n}" for n in range(5))]
    while True:
        claims = wire.pipeline([encode("JOB.CLAIM", "tended", "w", *queues)] * (jobs // 4), depth)
        held = [fields(claim[0]) for claim in claims if claim]
        if not held:
            break
        words = [("tended", "w", job[b"id"], "TOKEN", job[b"token"]) for job in held]
        wire.pipeline([encode("JOB.HEARTBEAT", *each) for each in words], depth)
        last = [
            encode("JOB.FAIL", *words[n][:3], "IOError", "it broke", *words[n][3:])
            if n % 10 == 0
            else encode("JOB.CONSUME", *words[n], "RESULT", b"done")
            for n in range(len(held))
        ]
        wire.pipeline(last, depth)


def batches(wire: Wire) -> None:
    """By the hundred."""
    for record in ((), cycles.AS_STREAMS):
        cycles.board_in_batches(wire, JOBS * 2, *record)
    wire.pipeline([encode("JOB.MPOST", "bench", 100, *[PAYLOAD] * 100)] * 20, 10)
    wire.pipeline([encode("JOB.CLAIM", "bench", "w", "COUNT", 100, *PACKED)] * 20, 10)


def blocked(wire: Wire, port: int) -> None:
    """Workers that wait, each for the next."""

    def work(name: str) -> None:
        own = Wire(port)
        while (claimed := own.call("JOB.CLAIM", "blocked", name, "BLOCK", 0)) is not None:
            job = fields(claimed[0])
            own.call("JOB.CONSUME", "blocked", name, job[b"id"], "TOKEN", job[b"token"])
            if job[b"payload"] == b"end":
                break
        own.close()

    workers = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(4)]
    for worker in workers:
        worker.start()
    for _ in range(JOBS // 3):
        wire.call("JOB.POST", "blocked", PAYLOAD)
    for worker in workers:
        while worker.is_alive():
            wire.call("JOB.POST", "blocked", "end")
            worker.join(0.01)


def limited(wire: Wire) -> None:
    """Under a rate and a concurrency limit."""
    words = ("rate", 1 << 20, "burst", 1 << 20, "concurrency", 1 << 20)
    wire.call("JOB.SETTINGS", "SET", "limited", "QUEUE", "default", *words)
    wire.pipeline([encode("JOB.POST", "limited", PAYLOAD)] * JOBS)
    claims = wire.pipeline([encode("JOB.CLAIM", "limited", "w")] * JOBS)
    wire.pipeline(ends("limited", claims))


def remembered(wire: Wire) -> None:
    """Jobs that wait for others, and jobs with steps."""
    for n in range(JOBS // 10):
        wire.call("JOB.POST", "flows", PAYLOAD, "ID", f"first-{n}")
        wire.call("JOB.POST", "flows", PAYLOAD, "AFTER", 1, f"first-{n}")
        for _ in range(2):
            [claim] = wire.call("JOB.CLAIM", "flows", "w")
            job = fields(claim)
            wire.call("JOB.STEP", "flows", "w", job[b"id"], "charge", b"42", "TOKEN", job[b"token"])
            wire.call("JOB.CONSUME", "flows", "w", job[b"id"], "TOKEN", job[b"token"])


def read(wire: Wire) -> None:
    """What consoles and monitors ask for, now and then."""
    wire.pipeline([encode("JOB.POST", "read", PAYLOAD, "ID", f"job-{n}") for n in range(JOBS)])
    wire.pipeline([encode("JOB.GET", "read", f"job-{n}") for n in range(JOBS)])
    for _ in range(20):
        wire.call("JOB.INFO", "read")
        wire.call("JOB.LIST", "read", "COUNT", 50)
        wire.call("JOB.COUNT", "read")
        wire.call("JOB.METRICS")


if __name__ == "__main__":
    main()
