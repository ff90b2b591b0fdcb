"""What the pages of the console cost with a million jobs in 10,000 queues: `make bench-console`.

For each page the CPU time of the server and the time to the first paint in Chromium; then the share of a
core that 50 open pages of one user cost the server. Writes docs/reports/console.md.
"""

from __future__ import annotations

import argparse
import http.client
import os
import platform
import statistics
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests" / "python"))

from console.conftest import address, chromium  # noqa: E402
from console.process import BINARY, Console  # noqa: E402
from harness import KINDS, Board, Server  # noqa: E402
from playwright.sync_api import Page, sync_playwright  # noqa: E402
from report import commit, table  # noqa: E402

PAGES: dict[str, tuple[str, dict[str, str]]] = {
    "Boards": ("/", {}),
    "Board": ("/board", {}),
    "Failed": ("/failures", {}),
    "Jobs": ("/jobs", {}),
    "Jobs by name and user": ("/jobs", {"name": "mail", "user": "u7"}),
    "Jobs failed since 1h": ("/jobs", {"state": "failed", "since": "1h"}),
    "Job that failed": ("/job", {"id": "broken-7"}),
    "Queues": ("/queues", {}),
    "Queues, most ready first": ("/queues", {"sort": "ready"}),
    "Queues without a worker": ("/queues", {"only": "unserved"}),
    "Workers": ("/workers", {}),
    "Types": ("/types", {}),
    "Limits and groups": ("/limits", {}),
    "Schedules": ("/schedules", {}),
    "Statistics": ("/stats", {}),
    "Settings": ("/settings", {}),
    "Find": ("/find", {"q": "mail"}),
}

ROUNDS = 5
LIVE = 50
WATCHED = 30


def fill(board: Board, jobs: int, queues: int) -> None:
    step = 100
    for queue in range(queues):
        count = jobs // queues
        for start in range(0, count, step):
            board.mpost(
                ["{}"] * min(step, count - start), queue=f"queue-{queue:05}", name=["mail", "sms"][queue % 2],
                user=f"u{queue % 100}", tags=[f"t{queue % 50}"],
            )  # fmt: skip
    board.post_many(2000, queue="queue-00000")
    for job in board.claim("w1", queues=["queue-00000"], count=1000):
        board.fail("w1", job["id"], "IOError", "disk 7 is full", token=job["token"], noretry=True)
    for number in range(20):
        board.post(id=f"broken-{number}")
        token = board.claim_one("w2", id=f"broken-{number}")["token"]
        board.heartbeat("w2", f"broken-{number}", token=token, log="Traceback\n  a\nIOError: b")
        board.fail("w2", f"broken-{number}", "IOError", "b", token=token, noretry=True)
    board.claim("w3", queues=["queue-00001"], count=100, lease=3_600_000)


def painted(page: Page, url: str) -> float:
    page.goto(url)
    return page.evaluate(
        """() => new Promise(done => new PerformanceObserver(list => {
            const found = list.getEntriesByName('first-contentful-paint')[0];
            if (found) done(found.startTime);
        }).observe({type: 'paint', buffered: true}))"""
    )


def measure(server: Server, console: Console, page: Page) -> list[list[str]]:
    rows = []
    for name, (path, query) in PAGES.items():
        url = console.at(path, b="big", **query)
        costs, paints = [], []
        for _ in range(ROUNDS):
            before = server.cpu()
            (cookie,) = page.context.cookies()
            answer = console.ask(url, headers={"Cookie": f"{cookie['name']}={cookie['value']}"})
            assert answer.status == 200, (name, answer.status)
            costs.append((server.cpu() - before) * 1000)
            paints.append(painted(page, url))
            page.goto("about:blank")
        rows.append([name, f"{statistics.median(costs):.0f}", f"{statistics.median(paints):.0f}"])
        print(*rows[-1], flush=True)
    return rows


def live(server: Server, console: Console, browser) -> float:
    """The share of a core, percent; every page is the same board's, each in a tab of its own."""
    cookie = console.ask("/").cookie
    connections = []
    for _ in range(LIVE):
        connection = http.client.HTTPConnection("127.0.0.1", console.port, timeout=60)
        connection.request("GET", "/live/board?b=big", headers={"Cookie": cookie})
        reply = connection.getresponse()
        threading.Thread(target=drain, args=(reply,), daemon=True).start()
        connections.append(connection)
    time.sleep(10)
    before = server.cpu()
    time.sleep(WATCHED)
    return (server.cpu() - before) / WATCHED * 100


def drain(reply) -> None:
    try:
        while reply.read1(65536):
            pass
    except (OSError, http.client.HTTPException):
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", choices=KINDS, default="redis82")
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--queues", type=int, default=10_000)
    parser.add_argument("--to", type=Path, default=ROOT / "docs" / "reports" / "console.md")
    arguments = parser.parse_args()
    server = Server(arguments.server)
    console = None
    try:
        board = server.board("big")
        fill(board, arguments.jobs, arguments.queues)
        console = Console(address(server), "--write", "--connections", "400")
        with sync_playwright() as playwright:
            sandbox = [] if os.getuid() else ["--no-sandbox"]
            browser = playwright.chromium.launch(executable_path=chromium(), args=sandbox)
            page = browser.new_page()
            page.goto(console.url)
            rows = measure(server, console, page)
            browser.close()
            share = live(server, console, browser)
        write(arguments, rows, share)
    finally:
        if console:
            console.close()
        server.close()


def write(arguments: argparse.Namespace, rows: list[list[str]], share: float) -> None:
    build = "release" if "release" in str(BINARY) else "checked, which is not optimised"
    text = f"""# What the console costs

Made by `make bench-console` at {commit()}: {arguments.server}, {platform.machine()}, \
{os.cpu_count()} cores, build {build}.
A board of {arguments.jobs:,} jobs in {arguments.queues:,} queues, 1,020 of them failed. Load of the machine \
at the end: {os.getloadavg()[0]:.1f}.

Server: CPU time of its main thread for one page, ms, the median of {ROUNDS}; aim 50. First paint: in
Chromium on the same machine, ms, the median of {ROUNDS}; aim 300.

{table(["page", "server", "first paint"], rows)}

{LIVE} open pages of that board, all of one user, take {share:.1f} % of a core of the server; aim 2 %.
"""
    arguments.to.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
