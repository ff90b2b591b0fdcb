"""Makes the pictures of docs/guides/console.md: python -m console.screenshots docs/guides/console

A server with the board of `seed.shop`, a console, Chromium: every page, 1440 and 390 pixels wide, light and
dark.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from pathlib import Path

from harness import Board, Server
from playwright.sync_api import Browser, expect, sync_playwright

from . import seed
from .conftest import address, chromium
from .process import Console

WATCHED = int(os.environ.get("WATCHED", "45"))
"""Seconds of work before the pictures, in which the plots grow."""

PAGES: dict[str, tuple[str, dict[str, object], int]] = {
    "boards": ("/", {}, 900),
    "board": ("/board", {}, 1100),
    "failed": ("/failures", {}, 1000),
    "failure": ("/job", {"id": "charge-7"}, 1000),
    "jobs": ("/jobs", {"state": "failed", "rev": "1"}, 800),
    "job": ("/job", {"id": "ship-42"}, 1000),
    "run": ("/job", {"id": "order-42"}, 1000),
    "approval": ("/job", {"id": "refund-7", "children": "1"}, 1050),
    "found": ("/job", {"id": "refund-7", "find": "order"}, 900),
    "queues": ("/queues", {}, 520),
    "workers": ("/workers", {}, 620),
    "types": ("/types", {}, 520),
    "limits": ("/limits", {}, 520),
    "schedules": ("/schedules", {}, 420),
    "schedule": ("/schedule", {"schedule": "sync"}, 900),
    "schedule-edit": ("/schedule/edit", {"schedule": "nightly"}, 800),
    "stats": ("/stats", {}, 900),
    "settings": ("/settings", {}, 1000),
    "audit": ("/audit", {}, 420),
    "post": ("/post", {"from": "charge-7", "edit": "1"}, 620),
    "confirm": ("/confirm", {"verb": "cancel", "id": ["ship-42", "pack-42", "mail-42"]}, 620),
    "find": ("/find", {"q": "mail"}, 420),
    "sign-in": ("/sign-in", {}, 520),
}
"""Path, query and height of each; all are about the board `shop`."""


PARTS = {"approval": "history", "found": "find"}
"""The parts of pages with which a picture begins."""


def work(board: Board, until: float) -> None:
    """Posts and ends mails, so that there are rates and plots."""
    chance = random.Random(1)
    while time.monotonic() < until:
        board.post_many(chance.randint(2, 9), queue="mail", name="send-receipt", group="acme")
        time.sleep(chance.random() / 2)
        for job in board.claim("mailer-3", queues=["mail"], count=chance.randint(2, 9), lease=seed.HOUR):
            time.sleep(chance.random() / 30)
            board.consume("mailer-3", job["id"], token=job["token"])


def shoot(browser: Browser, console: Console, folder: Path, width: int, scheme: str) -> None:
    with browser.new_context(color_scheme=scheme, timezone_id="Europe/Berlin") as context:
        page = context.new_page()
        for name, (path, query, height) in PAGES.items():
            page.set_viewport_size({"width": width, "height": 844 if width < 700 else height})
            page.goto(console.at(path, b="shop", **query))
            if page.locator("#pulse").count():
                expect(page.locator("#pulse")).to_have_text("live")
            if name in PARTS:
                page.locator(f"#{PARTS[name]}").evaluate("one => one.scrollIntoView()")
            page.screenshot(path=folder / f"{name}-{width}-{scheme}.png")


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for picture in folder.glob("*.png"):
        picture.unlink()
    server = Server("redis70")
    console = None
    try:
        board = server.board("shop")
        seed.shop(board)
        seed.failures(board)
        seed.approval(board)
        for name, jobs in [("newsletter", 1200), ("thumbnails", 37)]:
            server.board(name).post_many(jobs)
        console = Console(address(server), "--write")
        worker = threading.Thread(target=work, args=(server.board("shop"), time.monotonic() + WATCHED))
        worker.start()
        with sync_playwright() as playwright:
            sandbox = [] if os.getuid() else ["--no-sandbox"]
            browser = playwright.chromium.launch(executable_path=chromium(), args=sandbox)
            watching = [browser.new_page(), browser.new_page()]
            watching[0].goto(console.url)
            watching[1].goto(console.at("/confirm", b="shop", verb="pause", queue="sync"))
            watching[1].get_by_role("button", name="Pause").click()
            worker.join()
            for width in [1440, 390]:
                for scheme in ["light", "dark"]:
                    shoot(browser, console, folder, width, scheme)
            browser.close()
    finally:
        if console:
            console.close()
        server.close()
    pictures = sorted(folder.glob("*.png"))
    print(f"{len(pictures)} pictures, {sum(picture.stat().st_size for picture in pictures) // 1024} KB")


if __name__ == "__main__":
    main()
