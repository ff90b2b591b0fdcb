"""The main job before one's eyes: SHA-256 of every file of a folder, one job a file, one worker killed.

1. posts one job for each file, in batches
2. starts the workers (checksums.py) with a lease of 2 s
3. kills one with SIGKILL while it holds jobs; the server gives these to the others when their leases end
4. compares every result with what `sha256sum` says, and prints a table
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import redis

from ..board import Board
from ..durations import FOREVER
from ..escaping import escaped
from ..jobs import Job
from ..progress import progress
from .cannot import CannotServe
from .checksums import NAME as BOARD

T = TypeVar("T")
SKIPPED = {".git", "target", ".venv", "__pycache__", ".pytest_cache", ".ruff_cache", "node_modules"}
SHOW_FOR = 2.5
"""Seconds that a run should last, so that one can watch: workers rest before each of few files."""
BATCH = 1000
"""Jobs in one command, files of one sha256sum."""


class Demo:
    """One run over the files of `folder`, on the board of the demo, which is emptied before.

    `check` raises when somebody wants it to end.
    """

    def __init__(self, url: str, folder: Path, workers: int, *, check: Callable[[], None]) -> None:
        self.url, self.folder, self.check = url, folder, check
        self.board = Board(BOARD, redis.Redis.from_url(url, client_name="demo"), codec="raw")
        self.stamps = {path: stamp(path) for path in files_of(folder)}
        self.paths: dict[str, Path] = {}
        """Of each job, by its id."""
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.worker_count = workers
        self.lost_claims: dict[str, Job] = {}
        """What the killed worker held, by id."""

    def run(self) -> bool:
        """Whether nothing was lost or differs, and the jobs of the killed worker were picked up."""
        if not self.stamps:
            raise CannotServe(f"--demo: there is no file in {self.folder}")
        self.post()
        try:
            # The first one is there to be killed while it holds jobs.
            self.start_worker("worker-1", int(len(self.stamps) / self.worker_count / 2))
            while not self.held_by("worker-1"):
                self.look_after_workers()
            for number in range(2, self.worker_count + 1):
                self.start_worker(f"worker-{number}")
            self.watch()
        finally:
            self.stop_workers()
        return self.report()

    def post(self) -> None:
        total = len(self.stamps)
        self.board.client.delete(BOARD)
        self.board.settings_set({"retain-result": FOREVER, "keep-complete": total, "keep-failed": total})
        ids = self.board.post_many([os.fsencode(path) for path in self.stamps], name="sha256")
        self.paths = {id: path for id, path in zip(ids, self.stamps) if id is not None}
        say(f"Posted {total} jobs, one for each file of {self.folder}")

    def start_worker(self, name: str, *jobs: int) -> None:
        """Starts a worker in a session of its own: Ctrl-C reaches the demo alone, which stops its workers.
        With `jobs`, the worker ends only so many, then holds its next claims until it is killed.
        """
        share = len(self.stamps) / self.worker_count
        batch, pause = max(1, min(4, int(share / 2))), min(0.05, SHOW_FOR / share)
        words = [name, str(batch), f"{pause:.6f}", *map(str, jobs)]
        self.processes[name] = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.checksums", *words],
            env={**os.environ, "JOBBOARD_URL": self.url},
            start_new_session=True,
        )

    def watch(self) -> None:
        """Waits until every job has ended; kills one worker after half of the jobs."""
        total, killed = len(self.stamps), False
        with progress("Checksums", total) as show:
            while True:
                ended = self.board.count(state=["complete", "failed"])
                show(ended)
                if ended >= total:
                    return
                if not killed and ended >= total // 2:
                    killed = self.kill_one()
                self.look_after_workers()

    def kill_one(self) -> bool:
        """Kills a worker that holds jobs; False when none held any.

        It is halted before it is asked for, so that it cannot end its last job between the look and the kill.
        """
        for name, process in self.processes.items():
            process.send_signal(signal.SIGSTOP)
            if held := self.held_by(name):
                process.kill()
                process.wait()
                break
            process.send_signal(signal.SIGCONT)
        else:
            return False
        self.wait_disconnected(name)
        # The second look knows of heartbeats that were on their way, the first of what has lapsed since.
        self.lost_claims = {job.id: job for job in [*held, *self.held_by(name)]}
        del self.processes[name]
        say(f"Killed {name} (SIGKILL) while it held {len(self.lost_claims)} jobs")
        if not self.processes:
            self.start_worker(f"worker-{self.worker_count + 1}")
        return True

    def held_by(self, worker: str) -> list[Job]:
        return list(self.board.list(state="claimed", worker=worker, fields=["id", "token", "deadline"]))

    def wait_disconnected(self, name: str) -> None:
        """Until the server has read all that the killed worker had sent."""
        client = self.board.client
        while any(one["name"] == name for one in client.client_list()):
            time.sleep(0.005)

    def look_after_workers(self) -> None:
        """Sleeps for 20 ms; raises CannotServe when a worker has ended by itself."""
        self.check()
        time.sleep(0.02)
        for name, process in self.processes.items():
            if process.poll() is not None:
                raise CannotServe(f"{name} of the demo ended by itself with {process.returncode}")

    def stop_workers(self) -> None:
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def report(self) -> bool:
        """Prints the table."""
        records = list(self.records())
        results = {self.paths[job.id]: job.result.decode() for job in records if job.state == "complete"}
        failed = [job for job in records if job.state == "failed"]
        changed = {path for path in results if stamp(path) != self.stamps[path]}
        expected = sha256sums([path for path in results if path not in changed])
        differing = [path for path, digest in expected.items() if results[path] != digest]
        unread = [path for path in results if path not in changed and path not in expected]
        lost = len(self.paths) - len(results) - len(failed)
        late, picked_up = self.pick_ups()
        compared = f"{len(expected) - len(differing)} of {len(results) - len(changed)}"
        rows = [
            ("posted", len(self.paths)),
            ("consumed", len(results)),
            ("held by the killed worker", len(self.lost_claims)),
            ("picked up again", len(picked_up)),
            ("  lease ended late by", spread(late)),
            ("  claimed again, after the end of the lease", spread(picked_up)),
            ("lost", lost),
            ("checksums equal to sha256sum's", compared),
        ]
        rows += [("files changed meanwhile, not compared", len(changed))] if changed else []
        rows += [("failed", f"{len(failed)}: {failed[0].message}")] if failed else []
        for name, value in rows:
            say(f"  {name:45}{value}")
        for path in differing + unread:
            say(f"differs: {path}")
        if not picked_up:
            say("No job was taken from a killed worker.")
        return not (lost or failed or differing or unread) and len(picked_up) == len(self.lost_claims) > 0

    def records(self) -> Iterator[Job]:
        for ids in batches(list(self.paths)):
            found = self.board.get_many(ids, fields=["id", "state", "result", "message"])
            yield from (job for job in found if job is not None)

    def pick_ups(self) -> tuple[list[int], list[int]]:
        """For each job of the killed worker: ms from its deadline to the lapse, and to the next claim."""
        late, picked_up = [], []
        for claim in self.lost_claims.values():
            history = self.board.history(claim.id) or []
            lapse = next((n for n, event in enumerate(history) if event["event"] == "lapsed"), len(history))
            after = [event for event in history[lapse:] if event["event"] == "claimed"]
            if after:
                late.append(history[lapse]["at"] - claim.deadline)
                picked_up.append(after[0]["at"] - claim.deadline)
        return late, picked_up


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


def sha256sums(paths: Sequence[Path]) -> dict[Path, str]:
    """By the program sha256sum, which shares no code with the workers."""
    sums = {}
    for some in batches(paths):
        done = subprocess.run(["sha256sum", "--zero", "--", *some], stdout=subprocess.PIPE, check=False)
        for line in os.fsdecode(done.stdout).split("\0")[:-1]:
            digest, path = line.split("  ", 1)
            sums[Path(path)] = digest
    return sums


def batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]


def spread(values: list[int]) -> str:
    """Median, smallest and largest of some milliseconds."""
    if not values:
        return "-"
    values = sorted(values)
    return f"{values[len(values) // 2]} ms (smallest {values[0]}, largest {values[-1]})"


def say(text: str) -> None:
    print(escaped(text), flush=True)
