"""Copy buttons: the whole of what is shown, also where the page shows only a part."""

from __future__ import annotations

import pytest
from harness import Board, wait_until
from playwright.sync_api import Browser, Page, expect

from .process import Console
from .test_timeline import TRACE


@pytest.fixture
def broken(board: Board) -> Board:
    """`order-7` has failed, with a payload that is longer than what the page shows."""
    board.post('{"order":7,"note":"' + "ö" * 20_000 + '"}', id="order-7")
    token = board.claim_one("w1", id="order-7")["token"]
    board.heartbeat("w1", "order-7", token=token, log=TRACE)
    board.fail("w1", "order-7", "IOError", "m", token=token, noretry=True)
    return board


def copied(page: Page, what: str) -> str:
    # What an earlier copy said does not count.
    page.locator("[aria-live=polite]").evaluate("region => { region.textContent = ''; }")
    page.get_by_role("button", name=f"Copy {what}", exact=True).click()
    expect(page.locator("[aria-live=polite]")).to_have_text("Copied.")
    return page.evaluate("navigator.clipboard.readText()")


def test_id_payload_traceback_and_command(page: Page, writing: Console, broken: Board):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(writing.at("/job", b=broken.key, id="order-7"))
    expect(page.locator("#pulse")).to_have_text("live")
    page.get_by_role("button", name="Hold still").click()
    assert copied(page, "the id") == "order-7"
    assert copied(page, "the traceback") == TRACE
    assert copied(page, "the payload") == broken.get("order-7", fields=["payload"])["payload"]
    ids = [f"job-{number:04}" for number in range(300)]
    broken.mpost(["x"] * 300, ids=ids)
    page.goto(writing.at("/confirm", b=broken.key, verb="delete", id=ids))
    expect(page.locator("#command")).to_contain_text("…")
    command = copied(page, "the command")
    assert command == f"JOB.DELETE {broken.key} 300 {' '.join(ids)}"


def test_without_the_clipboard_of_the_browser(page: Page, reading: Console, broken: Board):
    """Over plain HTTP there is only the old way."""
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page.goto(reading.at("/job", b=broken.key, id="order-7"))
    page.evaluate("addEventListener('copy', () => (window.heard = document.activeElement.value))")
    page.get_by_role("button", name="Copy the id").click()
    page.wait_for_function("window.heard === 'order-7'")


def test_the_page_to_sign_in_is_not_copied(page: Page, consoles, fresh_server):
    server = fresh_server(kind="redis70")
    server.board("jobs").post("payload", id="a")
    console = consoles(server, "--recheck", "1")
    page.goto(console.at("/job", b="jobs", id="a"))
    # A page that refreshes itself says that it is signed out, perhaps after the button has spoken.
    page.get_by_role("button", name="Hold still").click()
    server.client().config_set("requirepass", "secret")
    wait_until(lambda: console.ask("/").status == 303, 30)
    page.get_by_role("button", name="Copy the payload", exact=True).click()
    expect(page.locator("[aria-live=polite]")).to_have_text(
        "The console did not give it out: load this page again."
    )


def test_without_scripts_there_is_no_button(browser: Browser, reading: Console, broken: Board):
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(reading.at("/job", b=broken.key, id="order-7"))
        expect(page.locator(".copy").first).to_be_hidden()
