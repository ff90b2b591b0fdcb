"""A worker on plain redis-py: a job's payload is the path of a file, its result the SHA-256 of that file.

    python examples/checksum_worker.py --port 6379 --board checksums --name worker-1

What a worker should do, and where it stands here:

- register with ANEW before its first claim (`run`): what an earlier process of its name held lapses, and
  comes back with a new token and one lapse more, so a job that kills its worker each time ends
- claim with BLOCK below redis-py's socket timeout of 5 s (`claim`), so that no wait is cut and resent
- pass SEEN 0 only after a claim without an answer (`claim`): it holds no job then, so what comes back are the
  jobs of a lost reply
- send each command until it is answered (`send`), which SEEN and TOKEN make safe
- keep its leases with a heartbeat thread while it works, for all jobs that it holds (`Heartbeat`)
- pass the TOKEN in every verb: whoever has lost a job cannot end it for its new owner
- stop on SIGTERM: finish the file at hand, abandon the rest, which costs those jobs nothing (`run`)
"""

from __future__ import annotations

import argparse
import hashlib
import signal
import threading
import time
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

BLOCK = 2000
"""Milliseconds that one claim waits for a job."""

CHUNK = 1 << 20
"""Bytes read between two looks at whether the job is still ours."""

AWAY = (redis.ConnectionError, redis.TimeoutError, redis.ReadOnlyError, redis.exceptions.MasterDownError)
"""No answer, or that of a server which will come round. So says the code UNBLOCKED, too."""

GONE = {"STALE", "NOTOWNER", "NOTCLAIMED", "NOJOB", "ENDED"}
"""Codes that say: this job is no longer ours. There is nothing left to do for it."""


def connect(port: int, name: str) -> redis.Redis:
    """A client with text replies; paths that are not UTF-8 go there and back unharmed. It sends nothing again
    by itself, so that the worker knows which claim had no answer.
    """
    return redis.Redis(
        port=port,
        client_name=name,
        decode_responses=True,
        encoding_errors="surrogateescape",
        retry=Retry(NoBackoff(), 0),
    )


def as_dict(reply: dict | list) -> dict:
    """A map reply: a dict with RESP3, a flat list with RESP2."""
    return reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2]))


def code(error: redis.ResponseError) -> str:
    return str(error).split(" ", 1)[0]


class Heartbeat(threading.Thread):
    """Keeps the leases of all held jobs, three times within each lease, and notes which ones are lost."""

    def __init__(self, client: redis.Redis, board: str, worker: str, lease: int) -> None:
        super().__init__(daemon=True)
        self.client, self.board, self.worker, self.lease = client, board, worker, lease
        self.tokens: dict[str, int] = {}
        self.cancelled: set[str] = set()
        self.lock = threading.Lock()
        self.stopping = threading.Event()

    def hold(self, jobs: list[dict]) -> None:
        with self.lock:
            self.tokens.update((job["id"], job["token"]) for job in jobs)

    def drop(self, job: dict) -> None:
        with self.lock:
            if self.tokens.get(job["id"]) == job["token"]:
                del self.tokens[job["id"]]
                self.cancelled.discard(job["id"])

    def holds(self, job: dict) -> bool:
        with self.lock:
            return self.tokens.get(job["id"]) == job["token"] and job["id"] not in self.cancelled

    def run(self) -> None:
        while not self.stopping.wait(self.lease / 3000):
            try:
                self.beat()
            except redis.RedisError as error:
                print(f"{self.worker}: no heartbeat: {error}", flush=True)

    def beat(self) -> None:
        with self.lock:
            held = list(self.tokens.items())
        if not held:
            return
        ids, tokens = zip(*held)
        replies = self.client.execute_command(
            "JOB.MHEARTBEAT", self.board, self.worker, len(ids), *ids,
            "TOKENS", len(tokens), *tokens, "LEASE", self.lease,
        )  # fmt: skip
        for (id, token), reply in zip(held, replies):
            if isinstance(reply, dict) or reply[0] == "deadline":
                if as_dict(reply)["cancel"]:
                    with self.lock:
                        self.cancelled.add(id)
            else:  # [code, detail]: the job is not ours any more
                self.drop({"id": id, "token": token})


class ChecksumWorker:
    """Claims `batch` jobs at a time under a lease of `lease` ms; rests `pause` seconds before each file."""

    def __init__(
        self, client: redis.Redis, board: str, name: str, lease: int, batch: int, pause: float
    ) -> None:
        self.client, self.board, self.name = client, board, name
        self.lease, self.batch, self.pause = lease, batch, pause
        self.stop_by: float | None = None
        """Set by `stop`: until when commands are sent again."""
        self.heartbeat = Heartbeat(client, board, name, lease)

    def stop(self) -> None:
        if self.stop_by is None:
            self.stop_by = time.monotonic() + self.lease / 1000

    def run(self) -> None:
        """Works until `stop` is called; then gives back what it has not begun."""
        self.heartbeat.start()
        self.send("JOB.WORKER", "REGISTER", self.board, self.name, "ANEW")
        while self.stop_by is None:
            self.work_off(self.claim())
        self.heartbeat.stopping.set()
        self.send("JOB.WORKER", "DEREGISTER", self.board, self.name)

    def send(self, *words: object, again: tuple[object, ...] = ()) -> Any:
        """Sends a command until it is answered, the second time and later with the words `again`, too."""
        all_words = words
        while True:
            try:
                return self.client.execute_command(*all_words)
            except (*AWAY, redis.ResponseError) as error:
                refused = not isinstance(error, AWAY) and code(error) != "UNBLOCKED"
                if refused or (self.stop_by is not None and time.monotonic() > self.stop_by):
                    raise
                print(f"{self.name}: {error}", flush=True)
            all_words = (*words, *again)
            time.sleep(0.2)

    def work_off(self, jobs: list[dict]) -> None:
        for job in jobs:
            if self.stop_by is not None:
                self.end(job, "ABANDON", "REASON", "the worker stops")
            else:
                self.work(job)

    def claim(self) -> list[dict]:
        words = ("COUNT", self.batch, "LEASE", self.lease, "BLOCK", BLOCK)
        reply = self.send("JOB.CLAIM", self.board, self.name, *words, again=("SEEN", 0))
        jobs = [as_dict(one) for one in reply or []]
        self.heartbeat.hold(jobs)
        return jobs

    def work(self, job: dict) -> None:
        time.sleep(self.pause)
        try:
            digest = self.checksum(job)
        except OSError as error:
            self.end(job, "FAIL", "unreadable", str(error), "NORETRY")
            return
        if digest is not None:
            self.end(job, "CONSUME", "RESULT", digest)
        elif job["id"] in self.heartbeat.cancelled:
            self.end(job, "ABANDON", "REASON", "cancelled")

    def checksum(self, job: dict) -> str | None:
        """The digest of the file; None as soon as the job is lost or is to be cancelled."""
        digest = hashlib.sha256()
        with open(job["payload"], "rb") as file:
            while self.heartbeat.holds(job):
                chunk = file.read(CHUNK)
                if not chunk:
                    return digest.hexdigest()
                digest.update(chunk)
        return None

    def end(self, job: dict, verb: str, *words: str) -> None:
        """Ends the claim with one verb. A job that is no longer ours is somebody else's: no harm done."""
        try:
            self.send(f"JOB.{verb}", self.board, self.name, job["id"], *words, "TOKEN", job["token"])
        except redis.ResponseError as error:
            if code(error) == "CANCELLED" and verb == "CONSUME":
                self.end(job, "ABANDON", "REASON", "cancelled")
            elif code(error) not in GONE | {"CANCELLED"}:
                raise
        finally:
            self.heartbeat.drop(job)


def main() -> None:
    parser = argparse.ArgumentParser(description="Consumes checksum jobs until SIGTERM.")
    parser.add_argument("--port", type=int, default=6379)
    parser.add_argument("--board", default="checksums")
    parser.add_argument("--name", required=True, help="unique among the workers that live")
    parser.add_argument("--lease", type=int, default=30000, help="milliseconds (default: 30000)")
    parser.add_argument("--batch", type=int, default=8, help="jobs taken by one claim (default: 8)")
    parser.add_argument("--pause", type=float, default=0, help="seconds before each file (default: 0)")
    arguments = parser.parse_args()

    client = connect(arguments.port, arguments.name)
    worker = ChecksumWorker(
        client, arguments.board, arguments.name, arguments.lease, arguments.batch, arguments.pause
    )
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    signal.signal(signal.SIGINT, lambda *_: worker.stop())
    worker.run()


if __name__ == "__main__":
    main()
