"""Makes the pictures of docs/guides/console.md: python -m console.screenshots docs/guides/console

A server with the board of `seed.shop`, a console, Chromium; 1200 pixels wide.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from pathlib import Path

from harness import Board, Server
from playwright.sync_api import Page, sync_playwright

from . import seed
from .conftest import address, chromium
from .process import Console

WATCHED = 45
"""Seconds of work before the picture of the plots."""


def work(board: Board, until: float) -> None:
    """Posts and ends mails, so that there are rates and plots."""
    chance = random.Random(1)
    while time.monotonic() < until:
        board.post_many(chance.randint(2, 9), queue="mail", name="send-receipt", group="acme")
        time.sleep(chance.random() / 2)
        for job in board.claim("mailer-3", queues=["mail"], count=chance.randint(2, 9), lease=seed.HOUR):
            time.sleep(chance.random() / 30)
            board.consume("mailer-3", job["id"], token=job["token"])


def shoot(
    page: Page, console: Console, folder: Path, name: str, path: str, height: int, **query: object
) -> None:
    page.set_viewport_size({"width": 1200, "height": height})
    page.goto(console.at(path, **query))
    if page.locator("#pulse").count():
        page.wait_for_function("document.getElementById('pulse').textContent === 'live'")
    page.screenshot(path=folder / f"{name}.png")


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    server = Server("redis70")
    console = None
    try:
        board = server.board("shop")
        seed.shop(board)
        for name, jobs in [("newsletter", 1200), ("thumbnails", 37)]:
            server.board(name).post_many(jobs)
        console = Console(address(server), "--write")
        worker = threading.Thread(target=work, args=(server.board("shop"), time.monotonic() + WATCHED))
        worker.start()
        with sync_playwright() as playwright:
            sandbox = [] if os.getuid() else ["--no-sandbox"]
            browser = playwright.chromium.launch(executable_path=chromium(), args=sandbox)
            light = browser.new_page(color_scheme="light")
            dark = browser.new_page(color_scheme="dark")
            light.goto(console.at("/board", b="shop"))
            worker.join()
            shoot(light, console, folder, "boards", "/", 380)
            shoot(light, console, folder, "board", "/board", 900, b="shop")
            shoot(dark, console, folder, "board-dark", "/board", 900, b="shop")
            shoot(light, console, folder, "job", "/job", 1180, b="shop", id="ship-42")
            shoot(light, console, folder, "confirm", "/confirm", 560, b="shop", verb="cancel",
                  id=["ship-42", "pack-42", "mail-42"])  # fmt: skip
            shoot(light, console, folder, "stats", "/stats", 760, b="shop")
            browser.close()
    finally:
        if console:
            console.close()
        server.close()
    for picture in sorted(folder.glob("*.png")):
        print(f"{picture}: {picture.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
