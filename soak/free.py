"""How long the server is silent while a board of many jobs is freed: a PING loop beside it.

    .venv/bin/python soak/free.py [--jobs 10000000] [--server redis82]

Three loops: nothing else happens; the board is deleted by UNLINK; one of the same size by a DEL that frees it
at once (`lazyfree-lazy-user-del no`). The first tells what the machine itself adds.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
for folder in ("tests/python", "chaos", "soak"):
    sys.path.insert(0, str(ROOT / folder))

from harness import KINDS, Server, wait_until  # noqa: E402
from verdicts import percentile  # noqa: E402

BATCH = 10_000


def fill(server: Server, jobs: int) -> float:
    """Posts that many jobs of 60 bytes, in pipelines. Returns the bytes that they take."""
    client = server.client(socket_timeout=60)
    before = client.info("memory")["used_memory"]
    words = ["JOB.MPOST", "board", BATCH, *["x" * 60] * BATCH]
    for _ in range(0, jobs, BATCH):
        client.execute_command(*words)
    return client.info("memory")["used_memory"] - before


def pings(server: Server, act: Callable[[], None]) -> tuple[list[float], float]:
    """Round trips (ms) of a PING loop while it is done and freed, and how long the deed took (s)."""
    found: list[float] = []
    over = threading.Event()

    def loop() -> None:
        with server.connect(socket_timeout=60) as client:
            while not over.is_set():
                begin = time.perf_counter()
                client.ping()
                found.append((time.perf_counter() - begin) * 1000)
                time.sleep(0.0005)

    thread = threading.Thread(target=loop)
    thread.start()
    time.sleep(0.2)
    begin = time.perf_counter()
    act()
    took = time.perf_counter() - begin
    wait_until(lambda: not server.info("memory")["lazyfree_pending_objects"], 300, what="all is freed")
    over.set()
    thread.join()
    return found, took


def main() -> None:
    parser = argparse.ArgumentParser(description="PING while a large board is freed.")
    parser.add_argument("--jobs", type=int, default=10_000_000)
    parser.add_argument("--server", choices=KINDS, default="redis82")
    arguments = parser.parse_args()
    server = Server(arguments.server, config=["lazyfree-lazy-user-del no"])
    client, size = server.client(socket_timeout=120), 0.0
    try:
        print("| a PING loop while | p50 ms | p99 ms | largest ms | the command, ms |")
        print("| --- | ---: | ---: | ---: | ---: |")
        for what, act in (
            ("nothing else happens", lambda: time.sleep(5)),
            ("UNLINK", lambda: client.unlink("board")),
            ("DEL, not lazy", lambda: client.delete("board")),
        ):
            if not client.exists("board"):
                size = fill(server, arguments.jobs)
            found, took = pings(server, act)
            cells = [percentile(found, p) for p in (50, 99, 100)] + [took * 1000]
            print(f"| {what} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |", flush=True)
        print(f"\n{arguments.jobs:,} jobs, {size / 2**30:.2f} GiB.")
        server.check_health()
    finally:
        server.close()


if __name__ == "__main__":
    main()
