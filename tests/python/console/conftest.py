"""Fixtures of the console's tests.

store      a server of the kind that the suite chooses, shared by the tests of a process; tests use boards of
           their own names
reading    a console of `store`, read-only as by default
writing    one that lets its users act
page       a page of Chromium; the test fails when a script failed or the page's policy was broken
board      a board on `store` with a name of its own
certificates  a folder with a private CA and what it has signed
consoles   a factory: consoles(server, "--write"), or of an address; they are ended with the test

Chromium is Debian's. A test fails, and is not skipped, where it is missing: `make setup` installs it.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import Board, Server
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from .process import Console

expect.set_options(timeout=150_000)
NUMBERS = itertools.count()
REQUEST = "openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"


def chromium() -> str:
    """The build without a window where there is one: it takes a third of the time for a page."""
    found = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    assert found, "chromium is not installed: run `make setup`"
    return found


class Shared:
    """Servers and their consoles, one of each sort, started when first asked for and closed at the end."""

    def __init__(self) -> None:
        self.servers: dict[str, Server] = {}
        self.consoles: dict[tuple[str, ...], Console] = {}

    def server(self, kind: str) -> Server:
        if kind not in self.servers:
            self.servers[kind] = Server(kind)
        return self.servers[kind]

    def console(self, kind: str, *arguments: str) -> Console:
        key = (kind, *arguments)
        if key not in self.consoles:
            self.consoles[key] = Console(address(self.server(kind)), *arguments)
        return self.consoles[key]

    def close(self) -> None:
        for console in self.consoles.values():
            console.close()
        try:
            for server in self.servers.values():
                server.check_health()
        finally:
            for server in self.servers.values():
                server.close()


@pytest.fixture(scope="session")
def shared() -> Iterator[Shared]:
    shared = Shared()
    yield shared
    shared.close()


@pytest.fixture
def store(shared: Shared, server_kind: str) -> Server:
    return shared.server(server_kind)


def address(server: Server | str) -> str:
    return server if isinstance(server, str) else f"redis://127.0.0.1:{server.port}"


@pytest.fixture
def reading(shared: Shared, server_kind: str) -> Console:
    return shared.console(server_kind)


@pytest.fixture
def writing(shared: Shared, server_kind: str) -> Console:
    return shared.console(server_kind, "--write")


@pytest.fixture
def consoles() -> Iterator[Callable[..., Console]]:
    started: list[Console] = []

    def start(server: Server | str, *arguments: str, **more: dict) -> Console:
        started.append(Console(address(server), *arguments, **more))
        return started[-1]

    yield start
    for console in started:
        console.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # Its own sandbox needs a user who is not root.
        sandbox = [] if os.getuid() else ["--no-sandbox"]
        options = [*sandbox, "--in-process-gpu"]  # a process less, which takes a tenth of the time
        browser = playwright.chromium.launch(executable_path=chromium(), args=options)
        new_context = browser.new_context

        def patient(**arguments: Any) -> BrowserContext:
            context = new_context(**arguments)
            context.set_default_timeout(120_000)
            return context

        browser.new_context = patient
        yield browser
        browser.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(f"script: {error}"))
    page.on("dialog", lambda dialog: (faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    # Chromium reports refused answers (403, 404) there as well; those are what some tests ask for.
    page.on(
        "console",
        lambda told: faults.append(told.text) if "Content Security Policy" in told.text else None,
    )
    yield page
    assert faults == []


class Held(Board):
    """A board whose claims last longer than any test, unless told otherwise."""

    def claim(self, worker: Any = "w1", **keywords: Any) -> list:
        return super().claim(worker, **{"lease": 3_600_000, **keywords})


@pytest.fixture
def board(store: Server) -> Iterator[Board]:
    board = Held(store.client(), f"board-{next(NUMBERS)}")
    yield board
    board.client.delete(board.key)
    store.close_clients()


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    """A folder with a private CA, and what it has signed: `server` and `client`, each with a key."""
    run = lambda command: subprocess.run(  # noqa: E731
        command, shell=True, check=True, cwd=tmp_path, capture_output=True
    )
    run(f"{REQUEST} -x509 -keyout ca.key -out ca.pem -days 2 -subj /CN=ours")
    (tmp_path / "ext").write_text("subjectAltName=IP:127.0.0.1\n")
    for name in ["server", "client"]:
        run(f"{REQUEST} -keyout {name}.key -out {name}.csr -subj /CN={name}")
        run(f"openssl x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -out {name}.pem -days 2 -extfile ext")
    return tmp_path
