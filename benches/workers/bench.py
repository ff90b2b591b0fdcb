"""What a worker adds to a job that does nothing, beside those of other libraries: docs/reports/workers.md.

    make bench-workers [JOBS=5000]

For each: jobs are posted by the library's own client, then one worker of it is started. From the moment when
a tenth of the jobs are done until all are, the time, the CPU of the worker's processes and that of the server
are taken. Each round measures all, the medians are reported. The text between the `kept` marks is written by
hand and stays.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path += [str(ROOT / "tests" / "python"), str(ROOT / "benches")]

from harness import KINDS, Server  # noqa: E402
from report import commit, cpu_model  # noqa: E402

REPORT = ROOT / "docs" / "reports" / "workers.md"
PLACE = ROOT / "target" / "bench" / "workers"
KEPT = ("<!-- kept -->", "<!-- /kept -->")
WITHIN = 60.0
"""Seconds that a worker has: what it has done by then counts."""
TICK = os.sysconf("SC_CLK_TCK")


class Peer(NamedTuple):
    """A worker of a library: its names in the report, the program that posts, the command that works."""

    package: str
    title: str
    how: str
    post: list[str]
    work: list[str]
    share: float = 1.0
    """Of the jobs: slow ones do fewer."""
    venv: str = "venv"
    broker: str = "redis"
    """Of Celery: the scheme of its URL."""


OURS = ["-m", "jobboard", "worker", "jobboard_app:board", "--log-level", "warning"]
CELERY = ["-m", "celery", "-A", "celery_app", "worker", "-l", "ERROR", "-c", "1"]
DRAMATIQ = ["-m", "dramatiq", "dramatiq_app", "-p", "1"]
PEERS = [
    *(
        Peer("jobboard", "jobboard", f"`{words}`", ["jobboard_app.py", name], [*OURS, *words.split()])
        for name, words in (
            ("nothing", "--threads 1"),
            ("nothing", "--threads 1 --prefetch 100"),
            ("nothing", "--threads 8"),
            ("nothing", "--threads 8 --prefetch 100"),
            ("nothing", "--processes 1"),
            ("nothing", "--processes 1 --prefetch 100"),
            ("nothing-async", "--tasks 10"),
            ("nothing-async", "--tasks 10 --prefetch 100"),
        )
    ),
    Peer("rq", "RQ", "`rq worker`, a fork for each job", ["rq_app.py"], ["-m", "rq.cli", "worker"], 0.1),
    Peer(
        *("rq", "RQ", "`rq worker -w SimpleWorker`", ["rq_app.py"]),
        ["-m", "rq.cli", "worker", "-w", "rq.SimpleWorker"],
    ),
    Peer(
        *("arq", "arq", "`arq`, 10 tasks", ["arq_app.py"]),
        ["-m", "arq", "arq_app.WorkerSettings"],
        venv="arq",
    ),
    *(
        Peer(
            *("celery", f"Celery, `{broker}://`", f"`--pool {pool} -c 1`"),
            *(["celery_app.py"], [*CELERY, "--pool", pool]),
            broker=broker,
        )
        for broker in ("redis", "jobboard")
        for pool in ("solo", "prefork")
    ),
    *(
        Peer("dramatiq", "Dramatiq", f"`-p 1 -t {n}`", ["dramatiq_app.py"], [*DRAMATIQ, "-t", str(n)])
        for n in (1, 8)
    ),
]


class Found(NamedTuple):
    """Of one worker: jobs a second, and µs of CPU for each job, of its processes and of the server."""

    rate: float
    worker: float
    server: float


def measure(peer: Peer, server: Server, jobs: int, folder: Path) -> Found:
    server.flush()
    count = folder / "count"
    count.unlink(missing_ok=True)
    jobs = max(int(jobs * peer.share), 100)
    python = str(PLACE / peer.venv / "bin" / "python")
    environment = {
        **os.environ,
        "BENCH_COUNT": str(count),
        "BENCH_PORT": str(server.port),
        "BENCH_BROKER": peer.broker,
        "PYTHONPATH": str(HERE),
    }
    program, *words = peer.post
    subprocess.run([python, program, str(jobs), *words], cwd=HERE, env=environment, check=True)
    tail = ["bench", "--url", f"redis://127.0.0.1:{server.port}", "--quiet"] if peer.package == "rq" else []
    with (folder / "log").open("wb") as log:
        worker = subprocess.Popen(
            [python, *peer.work, *tail],
            cwd=HERE,
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        first = await_count(count, jobs // 10, worker, folder)
        begin = time.perf_counter(), cpu_of_tree(worker.pid), cpu_of_server(server)
        last = await_count(count, jobs, worker, folder)
        end = time.perf_counter(), cpu_of_tree(worker.pid), cpu_of_server(server)
    finally:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()
    done = last - first
    seconds, own, servers = (after - before for after, before in zip(end, begin))
    return Found(done / seconds, own / done * 1e6, servers / done * 1e6)


def await_count(path: Path, wanted: int, worker: subprocess.Popen, folder: Path) -> int:
    deadline = time.monotonic() + WITHIN
    while True:
        found = path.stat().st_size if path.exists() else 0
        if found >= wanted:
            return found
        if worker.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{found} of {wanted} jobs done\n{(folder / 'log').read_text()[-2000:]}")
        time.sleep(0.002)


def cpu_of_tree(pid: int) -> float:
    """CPU seconds of a process, its children, and theirs; the ended ones count with who waited for them."""
    user, system, ended_user, ended_system = (
        Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]
    )
    total = sum(map(int, (user, system, ended_user, ended_system))) / TICK
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            total += cpu_of_tree(int(child))
    return total


def cpu_of_server(server: Server) -> float:
    used = server.info("cpu")
    return used["used_cpu_user"] + used["used_cpu_sys"]


def version(peer: Peer) -> str:
    code = f"import importlib.metadata as m; print(m.version('{peer.package}'), m.version('redis'))"
    python = str(PLACE / peer.venv / "bin" / "python")
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    own, redis = done.stdout.split()
    return f"{own}, redis-py {redis}"


def report(found: list[tuple[Peer, Found]], head: str) -> str:
    lines = [
        "| library | worker | jobs a second | CPU of the worker, µs a job | CPU of the server, µs a job |",
        "|---|---|---:|---:|---:|",
    ]
    for peer, one in found:
        numbers = f"{one.rate:,.0f} | {one.worker:,.0f} | {one.server:,.0f}"
        lines.append(f"| {peer.title} | {peer.how} | {numbers} |")
    versions = {peer.title.partition(",")[0]: version(peer) for peer, _ in found}
    said = "; ".join(f"{title} {text}" for title, text in versions.items())
    return "\n".join([head, *lines, "", f"Versions: {said}.", "", kept()])


def kept() -> str:
    """The part of the last report that is written by hand."""
    text = REPORT.read_text() if REPORT.exists() else ""
    begin, end = (text.find(mark) for mark in KEPT)
    return text[begin : end + len(KEPT[1])] + "\n" if 0 <= begin < end else "\n".join([*KEPT, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures what workers add to jobs that do nothing.")
    parser.add_argument("--server", choices=KINDS, default="redis82")
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="comma-separated packages; prints only")
    arguments = parser.parse_args()
    peers = [one for one in PEERS if not arguments.only or one.package in arguments.only.split(",")]
    rounds: dict[int, list[Found]] = {}
    with tempfile.TemporaryDirectory(prefix="jobboard-bench-") as folder:
        server = Server(arguments.server)
        try:
            for number in range(arguments.rounds):
                for place, peer in enumerate(peers):
                    try:
                        one = measure(peer, server, arguments.jobs, Path(folder))
                    except Exception as error:
                        print(f"{peer.title} {peer.how}: {error}", flush=True)
                        continue
                    rounds.setdefault(place, []).append(one)
                    numbers = f"{one.rate:9,.0f} {one.worker:9,.0f} {one.server:7,.0f}"
                    print(f"{number} {peer.title:10} {peer.how:40} {numbers}", flush=True)
            name = server.info("server")["redis_version"]
        finally:
            server.close()
    by_place = {
        place: Found(*(statistics.median(values) for values in zip(*all))) for place, all in rounds.items()
    }
    found = [(peers[place], one) for place, one in sorted(by_place.items())]
    command = f"make bench-workers SERVER={arguments.server} JOBS={arguments.jobs}"
    head = f"""# Workers

What a worker adds to a job that does nothing, measured by `{command}`
at {commit()}, on Redis {name}: medians of {arguments.rounds} rounds. Each library's own
client has posted the jobs; one worker of it does them.
Machine: {cpu_model()}, {os.cpu_count()} cores, Python {platform.python_version()}.
"""
    if not arguments.only:
        REPORT.write_text(report(found, head))
        print(f"Written to {REPORT.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
