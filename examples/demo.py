"""The main job before your eyes: SHA-256 of every file of a folder, one job a file, one worker killed.

    python examples/demo.py [--port 6379] [--workers 4] [--once] [folder]

1. starts a server with the repository's redis.conf, the module and a folder of its own
2. posts one job for each file, in batches
3. starts the workers (checksum_worker.py) with a lease of 2 s
4. kills one with SIGKILL while it holds jobs; the server gives these to the others when their leases end
5. compares every result with `sha256sum`, and prints a table

Ends with 1 when a job is lost, a checksum differs, or no worker could be killed with jobs in hand. Without
--once the server then stays up until Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import redis
from checksum_worker import as_dict, connect
from demo_server import DemoServer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

BOARD = "checksums"
SKIPPED = {".git", "target", ".venv", "__pycache__", ".pytest_cache", ".ruff_cache"}
LEASE = 2000
BATCH = 1000
"""Jobs in one MPOST or MGET."""

SHOW_FOR = 2.5
"""Seconds that a run should last, so that one can watch: workers rest before each of few files."""

WORKER = Path(__file__).with_name("checksum_worker.py")
console = Console(highlight=False)


def main() -> None:
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with ExitStack() as stack:
            server = stack.enter_context(DemoServer(arguments.port, arguments.executable))
            if server.port != arguments.port:
                console.print(f"Port {arguments.port} is taken.")
            console.print(f"Server: {server.version} on port {server.port}, data in {server.folder}")
            demo = Demo(server.port, arguments.folder.resolve(), arguments.workers)
            try:
                succeeded = demo.run()
            except redis.RedisError as error:
                sys.exit(f"demo: {error}\n{server.last_words()}")
            if succeeded and not arguments.once:
                stay(server, demo)
    except KeyboardInterrupt:
        console.print("\nStopped.")
        sys.exit(130)
    sys.exit(0 if succeeded else 1)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Checksums of a folder by way of a job board.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path("."))
    parser.add_argument(
        "--port", type=int, default=6379, help="another free one is taken when it is not free"
    )
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--once", action="store_true", help="end after the table")
    parser.add_argument("--executable", default="redis-server", help="of Redis 7+ or Valkey 8+")
    arguments = parser.parse_args()
    if not arguments.folder.is_dir():
        parser.error(f"{arguments.folder} is not a folder")
    if arguments.workers < 1:
        parser.error("--workers must be at least 1")
    return arguments


class Demo:
    """One run over the files of `folder`."""

    def __init__(self, port: int, folder: Path, workers: int) -> None:
        self.port, self.folder = port, folder
        self.client = connect(port, "demo")
        self.stamps = {str(path): stamp(path) for path in files_of(folder)}
        self.ids: dict[str, str] = {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.worker_count = workers
        self.lost_claims: dict[str, dict] = {}
        """Id to id, token and deadline of each job that the killed worker held."""

    def run(self) -> bool:
        if not self.stamps:
            console.print(f"There is no file in {self.folder}.")
            return False
        self.post()
        try:
            for number in range(1, self.worker_count + 1):
                self.start_worker(f"worker-{number}")
            self.watch()
        finally:
            self.stop_workers()
        return self.report()

    # Posting

    def post(self) -> None:
        total = len(self.stamps)
        self.client.execute_command(
            "JOB.SETTINGS", "SET", BOARD, "retain-result", -1, "keep-complete", total, "keep-failed", total
        )
        for paths in batches(list(self.stamps)):
            ids = self.client.execute_command("JOB.MPOST", BOARD, len(paths), *paths, "NAME", "sha256")
            self.ids.update(zip(ids, paths))
        console.print(f"Posted {total} jobs, one for each file of {self.folder}")

    # Working

    def start_worker(self, name: str) -> None:
        """A worker process of its own session: Ctrl-C reaches this program alone, which then stops it."""
        per_worker = len(self.stamps) / self.worker_count
        self.processes[name] = subprocess.Popen(
            [
                *(sys.executable, str(WORKER), "--port", str(self.port), "--board", BOARD, "--name", name),
                *("--lease", str(LEASE), "--batch", str(max(1, min(4, int(per_worker / 2))))),
                *("--pause", f"{min(0.05, SHOW_FOR / per_worker):.6f}"),
            ],
            start_new_session=True,
        )

    def watch(self) -> None:
        """Shows the progress until every job has ended; kills one worker after half of the jobs."""
        columns = (TextColumn("{task.description}"), BarColumn(50), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console, refresh_per_second=20) as progress:
            task = progress.add_task("Checksums", total=len(self.stamps))
            killed = False
            while True:
                ended = self.ended()
                progress.update(task, completed=ended)
                if ended >= len(self.stamps):
                    return
                if not killed and ended >= len(self.stamps) // 2:
                    killed = self.kill_one(progress, task)
                self.check_workers()
                time.sleep(0.02)

    def ended(self) -> int:
        return self.client.execute_command("JOB.COUNT", BOARD, "STATE", "complete", "STATE", "failed")

    def kill_one(self, progress: Progress, task: TaskID) -> bool:
        """Kills a worker that holds jobs; False when none held any.

        It is halted before it is asked for, so that it cannot end its last job between the look and the kill.
        """
        for name, process in self.processes.items():
            process.send_signal(signal.SIGSTOP)
            if self.held_by(name):
                process.kill()
                process.wait()
                break
            process.send_signal(signal.SIGCONT)
        else:
            return False
        self.wait_disconnected(name)
        self.lost_claims = {claim["id"]: claim for claim in self.held_by(name)}
        del self.processes[name]
        progress.console.print(f"Killed {name} (SIGKILL) while it held {len(self.lost_claims)} jobs")
        if not self.processes:
            self.start_worker(f"worker-{self.worker_count + 1}")
        return bool(self.lost_claims)

    def held_by(self, worker: str) -> list[dict]:
        held, cursor = [], "0"
        while True:
            cursor, page = self.client.execute_command(
                "JOB.LIST", BOARD, "STATE", "claimed", "WORKER", worker, "CURSOR", cursor,
                "FIELDS", 3, "id", "token", "deadline",
            )  # fmt: skip
            held += [as_dict(one) for one in page]
            if cursor == "0":
                return held

    def wait_disconnected(self, name: str) -> None:
        """Until the server has read all that the killed worker had sent."""
        while any(client["name"] == name for client in self.client.client_list()):
            time.sleep(0.005)

    def check_workers(self) -> None:
        for name, process in self.processes.items():
            if process.poll() is not None:
                raise SystemExit(f"{name} ended by itself with {process.returncode}")

    def stop_workers(self) -> None:
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    # Reporting

    def report(self) -> bool:
        """Prints the table. True when nothing is lost or differs and jobs of a dead worker were picked up."""
        records = self.records()
        complete = {job["id"]: job for job in records if job["state"] == "complete"}
        failed = [job for job in records if job["state"] == "failed"]
        results = {self.ids[id]: job["result"] for id, job in complete.items()}
        changed = {path for path in results if stamp(Path(path)) != self.stamps[path]}
        expected = sha256sums([path for path in results if path not in changed])
        equal = sum(results[path] == digest for path, digest in expected.items())
        differing = [path for path, digest in expected.items() if results[path] != digest]
        unreadable = [path for path in results if path not in changed and path not in expected]
        lost = len(self.ids) - len(complete) - len(failed)
        returned, picked_up = self.pick_ups()

        table = Table(show_header=False, title="Checksums of every file", title_justify="left")
        table.add_row("posted", str(len(self.ids)))
        table.add_row("consumed", str(len(complete)))
        table.add_row("held by the killed worker", str(len(self.lost_claims)))
        table.add_row("picked up again", str(len(picked_up)))
        table.add_row("  lease ended late by", spread(returned))
        table.add_row("  claimed again, after the end of the lease", spread(picked_up))
        table.add_row("lost", str(lost))
        table.add_row("checksums equal to sha256sum's", f"{equal} of {len(complete) - len(changed)}")
        if changed:
            table.add_row("files changed meanwhile, not compared", str(len(changed)))
        if failed:
            table.add_row("failed", f"{len(failed)}: {failed[0]['message']}")
        console.print(table)
        for path in differing + unreadable:
            console.print(f"differs: {path}")
        if not picked_up:
            console.print("No job was taken from a killed worker.")
        return not (lost or failed or differing or unreadable) and len(picked_up) == len(self.lost_claims) > 0

    def records(self) -> list[dict]:
        found = []
        for ids in batches(list(self.ids)):
            found += self.client.execute_command(
                "JOB.MGET", BOARD, len(ids), *ids, "FIELDS", 4, "id", "state", "result", "message"
            )
        return [as_dict(one) for one in found if one is not None]

    def pick_ups(self) -> tuple[list[int], list[int]]:
        """For each job of the killed worker: ms from its deadline to the lapse, and to the next claim."""
        returned, picked_up = [], []
        for claim in self.lost_claims.values():
            history = [as_dict(one) for one in self.client.execute_command("JOB.HISTORY", BOARD, claim["id"])]
            lapse = next((n for n, event in enumerate(history) if event["event"] == "lapsed"), len(history))
            after = [event for event in history[lapse:] if event["event"] == "claimed"]
            if after:
                returned.append(history[lapse]["at"] - claim["deadline"])
                picked_up.append(after[0]["at"] - claim["deadline"])
        return returned, picked_up


def files_of(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - SKIPPED)
        for name in sorted(names):
            path = Path(parent, name)
            if path.is_file() and not path.is_symlink():
                yield path


def stamp(path: Path) -> tuple[int, int] | None:
    """What changes when the file does; None when it is gone."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def sha256sums(paths: list[str]) -> dict[str, str]:
    """Path to checksum by the program sha256sum, which shares no code with the workers."""
    sums = {}
    for some in batches(paths):
        done = subprocess.run(["sha256sum", "--zero", "--", *some], stdout=subprocess.PIPE, check=False)
        for line in os.fsdecode(done.stdout).split("\0")[:-1]:
            digest, path = line.split("  ", 1)
            sums[path] = digest
    return sums


def batches(items: list) -> Iterator[list]:
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]


def spread(values: list[int]) -> str:
    """Median, smallest and largest of some milliseconds."""
    if not values:
        return "-"
    values = sorted(values)
    return f"{values[len(values) // 2]} ms (smallest {values[0]}, largest {values[-1]})"


def stay(server: DemoServer, demo: Demo) -> None:
    """Leaves the server to the user until Ctrl-C."""
    port, some_id = server.port, next(iter(demo.lost_claims))
    console.print(f"""
The server is up on port {port}. In another terminal:

  redis-cli -p {port} job.info {BOARD}
  redis-cli -p {port} job.history {BOARD} {some_id}
  redis-cli -p {port} job.list {BOARD} count 3
  redis-cli -p {port} job.post {BOARD} /etc/hostname
  redis-cli -p {port} job.claim {BOARD} me lease 60000
  redis-cli -p {port} job.consume {BOARD} me <id> token <token>
  {sys.executable} {WORKER} --port {port} --name worker-9

Ctrl-C stops it.""", soft_wrap=True, markup=False)  # fmt: skip
    try:
        status = server.process.wait()
        console.print(f"The server ended with {status}.")
    except KeyboardInterrupt:
        console.print("\nStopping the server.")


if __name__ == "__main__":
    main()
