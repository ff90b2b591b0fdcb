"""What the first job of an absent board costs the server, beside the first element of an absent list, when
many clients wait for it.

    .venv/bin/python benches/first_post.py [--server=valkey91] [--waiters=9000]
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "python"))

from harness import KINDS, Server  # noqa: E402
from sampling import main_thread_seconds  # noqa: E402
from waiters import allow_connections, blocked_clients  # noqa: E402
from wire import Wire, encode  # noqa: E402

PLAYS = {
    "JOB.CLAIM": (("JOB.CLAIM", "q", "w", "BLOCK", 0), ("JOB.POST", "q", "x")),
    "BLPOP": (("BLPOP", "q", 0), ("RPUSH", "q", "x")),
}


def play(kind: str, count: int, wait: tuple, come: tuple) -> float:
    """Milliseconds of the server's CPU from the first to come until a PING after it is answered."""
    server = Server(kind, config=[f"maxclients {count + 100}"])
    try:
        control = Wire(server.port)
        waiters = [Wire(server.port) for _ in range(count)]
        for waiter in waiters:
            waiter.socket.sendall(encode(*wait))
        while blocked_clients(control) < count:
            time.sleep(0.01)
        before = main_thread_seconds(control)
        control.call(*come)
        control.call("PING")
        took = main_thread_seconds(control) - before
        for waiter in waiters:
            waiter.socket.close()
        return took * 1000
    finally:
        server.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", action="append", choices=KINDS)
    parser.add_argument("--waiters", action="append", type=int)
    arguments = parser.parse_args()
    for kind in arguments.server or KINDS:
        for count in arguments.waiters or [1_000, 9_000]:
            fits = allow_connections(count)
            told = [f"{name} {play(kind, fits, *words):.2f} ms" for name, words in PLAYS.items()]
            print(f"{kind}, {fits:,} wait: {', '.join(told)}", flush=True)


if __name__ == "__main__":
    main()
