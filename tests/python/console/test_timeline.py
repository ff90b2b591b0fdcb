"""The line of time of a job: long waits are folded, times below it, and what went wrong in each attempt."""

from __future__ import annotations

import datetime
import re

import pytest
from harness import Board, Server
from playwright.sync_api import Browser, Page, expect

from .process import Console

TRACE = """Traceback (most recent call last):
  File "/app/shop/payments.py", line 88, in charge
IOError: m"""


@pytest.fixture
def waited(fresh_server) -> Server:
    """On its board "jobs" `long` waited much longer than it ran."""
    server = fresh_server("clock", "manual")
    board = server.board("jobs")
    board.post(id="long", retain=3_600_000)
    server.clock.advance(1200)
    token = board.claim_one("w1", id="long")["token"]
    server.clock.advance(50)
    board.consume("w1", "long", token=token)
    return server


def width(page: Page, bar: str) -> float:
    """Of the widest bar of this class, of 1,000."""
    bars = page.locator(f"#history rect.{bar}")
    return max(float(one) for one in bars.evaluate_all("all => all.map(one => one.getAttribute('width'))"))


def test_a_long_wait_is_folded(page: Page, consoles, waited: Server):
    """The run is wide, the fold says how long it is, and a link draws all as long as it was."""
    page.goto(consoles(waited).at("/job", b="jobs", id="long"))
    history = page.locator("#history")
    expect(history.locator(".note")).to_contain_text("Folded, as nothing ran: 1.2 s.")
    assert width(page, "running") > 900 and width(page, "waiting") <= 40
    expect(history.locator("li rect.fold")).to_have_count(2)
    expect(history.locator("rect.fold title").first).to_have_text("1.2 s folded")
    expect(history.locator(".axis .length")).to_have_text("1.2 s")
    expect(history.locator(".axis svg")).to_have_attribute("aria-label", re.compile(r"folded: 1\.2 s$"))
    history.get_by_role("link", name="Show waits as long as they were").focus()
    page.keyboard.press("Enter")
    expect(history.locator(".note")).to_contain_text("Waits are as long as they were.")
    expect(history.locator("rect.fold")).to_have_count(0)
    page.wait_for_load_state()
    assert width(page, "running") < 300 < width(page, "waiting")
    history.get_by_role("link", name="Fold long waits").click()
    expect(history.locator("rect.fold")).to_have_count(2)


def test_a_wait_alone_is_not_folded(page: Page, reading: Console, board: Board):
    board.post(id="j", delay=3_600_000)
    page.goto(reading.at("/job", b=board.key, id="j"))
    expect(page.locator("#history ol.timeline li").first).to_contain_text("Waiting for")
    expect(page.locator("#history rect.fold")).to_have_count(0)


def test_ticks_are_in_the_zone_of_the_reader(browser: Browser, consoles, waited: Server):
    """With UTC when the pointer rests on them; without scripts in UTC, with the folds."""
    console, at = consoles(waited), waited.board("jobs").get("long")["ended"]
    ended = datetime.datetime.fromtimestamp(at / 1000, datetime.timezone.utc)
    here = ended.astimezone(datetime.timezone(datetime.timedelta(hours=9)))
    told = lambda at: at.strftime("%H:%M:%S.") + f"{at.microsecond // 1000:03}"  # noqa: E731
    for scripts, shown in [(True, here), (False, ended)]:
        with browser.new_context(timezone_id="Asia/Tokyo", java_script_enabled=scripts) as context:
            page = context.new_page()
            page.goto(console.at("/job", b="jobs", id="long"))
            ticks = page.locator("#history .axis [data-at]")
            assert 3 <= ticks.count() <= 5
            last = page.locator(f"#history .axis g:has([data-at='{at}'])")
            expect(last.locator("text")).to_have_text(told(shown))
            expect(last.locator("title")).to_have_text(ended.strftime("%Y-%m-%d %H:%M:%S UTC"))
            expect(page.locator("#history rect.fold")).to_have_count(2)


def test_each_attempt_has_its_own_error(page: Page, reading: Console, board: Board):
    """With its traceback where one was written; the newest first, by keys alone."""
    board.set(backoff_base=0, jitter=0)
    board.post(id="j", retries=3)
    for attempt, kind in enumerate(["IOError", "Timeout", "ValueError"], 1):
        token = board.claim_one(f"w{attempt}", id="j")["token"]
        if attempt != 2:
            trace = f"Traceback (most recent call last):\n  line {attempt}\n{kind}: no. {attempt}"
            board.heartbeat(f"w{attempt}", "j", token=token, log=trace)
        board.fail(f"w{attempt}", "j", kind, f"no. {attempt}", token=token)
    page.goto(reading.at("/job", b=board.key, id="j"))
    card = page.locator("#now .failure")
    expect(card.get_by_role("heading", level=2)).to_have_text("ValueError: no. 3")
    expect(page.locator("#traceback")).to_contain_text("line 3")
    earlier = page.locator("#earlier")
    expect(earlier.locator("li").first).not_to_be_visible()
    earlier.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(earlier.locator("summary")).to_have_text("Earlier failures (2)")
    errors = earlier.locator("li")
    expect(errors).to_have_count(2)
    expect(errors.nth(0)).to_contain_text(re.compile("Timeout: no. 2.*Attempt 2, w2"))
    expect(errors.nth(0).locator("pre")).to_have_count(0)
    expect(errors.nth(1)).to_contain_text(re.compile("IOError: no. 1.*Attempt 1, w1"))
    expect(errors.nth(1).get_by_label("Traceback of attempt 1")).to_contain_text("line 1")
    expect(page.locator("#pulse")).to_have_text("live")
    board.update("j", log="one more")
    expect(page.locator("#history")).to_contain_text("one more")
    expect(errors.nth(1)).to_be_visible()
