"""The site of `make site`, in the browser of these tests: pages are whole, and the search finds."""

from __future__ import annotations

import functools
import http.server
import re
import threading
from collections.abc import Iterator

import pytest
import site_pages
from playwright.sync_api import Page

SHOWN = ["index", "guides/first-job", "guides/console", "commands/job-post", "operate/backup", "reports/soak"]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of the site."""
    folder = str(site_pages.made(tmp_path_factory))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture
def wrong(page: Page, address: str) -> list[str]:
    """Errors of a page, and whatever it asks of other servers."""
    found: list[str] = []
    page.on("console", lambda one: found.append(one.text) if one.type == "error" else None)
    page.on("request", lambda one: None if one.url.startswith(address) else found.append(one.url))
    page.on("response", lambda one: found.append(one.url) if one.status >= 400 else None)
    return found


def test_the_search_finds_a_command(page: Page, address: str, wrong: list[str]) -> None:
    page.goto(f"{address}/index.html")
    field = page.locator("input.md-search__input")
    field.click()
    ready = page.locator(".md-search-result__meta", has_text="Type to start searching")
    ready.wait_for(state="attached")  # before that the page's script does not hear what is typed
    field.press_sequentially("heartbeat")
    found = page.locator("a.md-search-result__link", has_text="JOB.HEARTBEAT").first
    found.wait_for()
    found.click()
    page.wait_for_url(re.compile(r"/commands/.*heartbeat"))
    assert wrong == []


@pytest.mark.parametrize("name", SHOWN)
def test_pages_are_shown_whole(page: Page, address: str, wrong: list[str], name: str) -> None:
    """With their pictures, and nothing from elsewhere."""
    page.goto(f"{address}/{name}.html")
    article = page.locator("article")
    assert article.locator("h1").count() == 1
    pictures = article.locator("img")
    for number in range(pictures.count()):
        width = "picture => picture.decode().then(() => picture.naturalWidth)"
        assert pictures.nth(number).evaluate(width) > 0
    assert "```" not in article.inner_text()
    assert wrong == []
