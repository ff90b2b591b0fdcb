"""Light and dark, by keys alone, and for those who listen to a page."""

from __future__ import annotations

import pytest
from axe_playwright_python import base
from harness import Board
from playwright.sync_api import Browser, Page, expect

from .process import Console

AXE = base.AXE_FILE_PATH.read_text()

PAGES = [
    "/", "/board", "/failures", "/jobs", "/job", "/stats", "/schedules", "/settings", "/audit", "/post",
    "/confirm", "/queues", "/workers", "/types", "/limits", "/schedule", "/schedule/edit",
]  # fmt: skip


@pytest.fixture
def some(board: Board) -> Board:
    """A board with something of everything: see JOBS."""
    board.set(queue="mails", dead_queue="unsent")
    board.set(limit="l", concurrency=1)
    board.set(limit="tokens", rate=1, rate_period=3_600_000, burst=100)
    board.set(queue="metered", limits=["tokens"])
    board.post(id="j", queue="q", group="g", tags=["t"])
    board.post(id="k", after=["j"])
    board.call("POST", "x", "ID", "waits", "AWAIT", 2, "approved", "paid", "WITHIN", "1h")
    board.client.execute_command("JOB.SCHEDULE", "SET", board.key, "s", "x", "EVERY", 3_600_000)
    board.client.execute_command("JOB.SCHEDULE", "RUN", board.key, "s")
    board.worker("REGISTER", "w1", role="mailer", meta={"host": "web-1"})
    for id, queue in [("broken", "default"), ("dead", "mails")]:
        board.post(id=id, queue=queue)
        token = board.claim_one("w1", id=id)["token"]
        trace = "Traceback (most recent call last):\n  x\nIOError: m"
        board.heartbeat("w1", id, token=token, log=trace)
        board.fail("w1", id, "IOError", "m", token=token, noretry=True)
    board.post(id="dear", queue="metered")
    token = board.claim_one("w1", id="dear")["token"]
    board.heartbeat("w1", "dear", token=token, costs=(1, "tokens", 150))
    assert board.limits()["tokens"]["debt"] > 0
    board.post('{"order": 7}', id="rich", name="order", user="ann", meta={"region": "eu"})
    token = board.claim_one("w1", id="rich")["token"]
    board.step("w1", "rich", "reserve", '{"shelf": 7}', token=token)
    board.heartbeat("w1", "rich", token=token, progress=40, stage="packing", log="box 1", output=(1, "one\n"))
    board.mpost(["x", "x"], ids=["part-1", "part-2"], parent="rich", name="part")
    board.signal("early", "rich", value='{"ok": true}', sender="ann")
    board.wait_for("w1", "rich", ["approved", "paid"], token=token, within="1h")
    board.pause(queue="q")
    return board


JOBS = ["j", "waits", "broken", "dead", "dear", "rich", "part-1"]
"""Ready, waiting for signals, failed, dead, running at a cost, with steps and children, and a child."""

CONFIRMED = [
    {"verb": "signal", "id": "waits", "signal": "paid", "value": "true"},
    {"verb": "return", "id": "dead"},
    {"verb": "update", "id": "j"},
    {"verb": "pause", "queue": "mails"},
    {"verb": "aside", "kind": "IOError", "alike": "m"},
    {"verb": "requeue", "where": "1", "state": "failed"},
]
"""Actions whose questions look different."""


def ground(page: Page) -> int:
    """How light the page is, 0 to 765."""
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(int(part) for part in colour[4:-1].split(","))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_systems_wish_and_the_toggle(browser: Browser, reading: Console, scheme: str):
    with browser.new_context(color_scheme=scheme) as context:
        page = context.new_page()
        page.goto(reading.url)
        first = ground(page)
        assert (first > 600) == (scheme == "light")
        page.get_by_role("button", name="Change between light and dark").click()
        second = ground(page)
        assert (second > 600) == (scheme == "dark")
        page.goto(reading.at("/sign-in"))
        assert ground(page) == second
        page.keyboard.press("Control+Home")
        page.locator("main").click()
        page.keyboard.press("t")
        assert ground(page) == first


CONTRASTS = """() => {
  const light = (text) => {
    const [r, g, b] = text.match(/[\\d.]+/g).slice(0, 3).map((part) => {
      const share = part / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (one) => {
    for (; one; one = one.parentElement) {
      const colour = getComputedStyle(one).backgroundColor;
      if (!/, 0\\)$/.test(colour)) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const poor = [];
  for (const one of document.querySelectorAll("body *")) {
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.nodeValue.trim());
    if (!own || !one.offsetParent || one.closest(".unseen, dialog, svg")) continue;
    const [a, b] = [light(getComputedStyle(one).color), light(ground(one))].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5) poor.push(`${one.className} ${one.textContent.slice(0, 30)} ${contrast.toFixed(1)}`);
  }
  return poor;
}"""
"""Texts whose colour is too near to that of the ground: below 4.5."""

UNNAMED = """() => [...document.querySelectorAll(
    "input:not([type=hidden]), button, a, svg[role=img], meter, progress"
)]
  .filter((one) => !one.getAttribute("aria-hidden"))
  .filter((one) => {
    const label = one.closest("label");
    return !(one.getAttribute("aria-label") || one.textContent.trim() || label?.textContent.trim());
  }).map((one) => one.outerHTML)"""
"""What one can act on, or what shows something, without a name."""


def test_every_page_can_be_read(page: Page, writing: Console, some: Board):
    """Contrast of text in both schemes, names of what one can act on, one first heading, heads of tables."""
    for path in PAGES:
        query = {} if path == "/jobs" else {"id": "j", "verb": "cancel", "q": some.key, "schedule": "s"}
        page.goto(writing.at(path, b=some.key, **query))
        for scheme in ["light", "dark"]:
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate(CONTRASTS) == [], (path, scheme)
        assert page.evaluate(UNNAMED) == [], path
        expect(page.locator("h1")).to_have_count(1)
        expect(page.locator("html[lang=en] main")).to_have_count(1)
        assert page.locator("thead th:not([scope])").count() == 0
        assert page.locator("[id]").evaluate_all(
            "all => all.length === new Set(all.map(one => one.id)).size"
        ), f"{path} names an id twice"


DAILY = [("light", 1440), ("dark", 390)]
THOROUGH = [*DAILY, ("dark", 1440), ("light", 390)]


def violations(page: Page, thorough: bool) -> list[str]:
    """What axe finds wrong with a page in each scheme and width. Its script is given, as the pages' own
    policy allows no others. Of its rules those about colours alone depend on the scheme.
    """
    page.evaluate(AXE)
    found = []
    for scheme, width in THOROUGH if thorough else DAILY:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        only = "{type: 'rule', values: ['color-contrast', 'link-in-text-block']}"
        only = only if scheme == "dark" else "undefined"
        told = page.evaluate(f"axe.run(document, {{resultTypes: ['violations'], runOnly: {only}}})")
        found += [f"{scheme} {width} {one['id']}: {one['nodes'][0]['html']}" for one in told["violations"]]
    return found


EVERY = [*PAGES, "/sign-in", "/nowhere", "/find"]


@pytest.mark.parametrize("paths", [EVERY[start::5] for start in range(5)], ids=" ".join)
def test_axe_finds_nothing(page: Page, writing: Console, some: Board, thorough: bool, paths: list[str]):
    for path in paths:
        query = {} if path == "/jobs" else {"id": "j", "verb": "cancel", "q": some.key, "schedule": "s"}
        page.goto(writing.at(path, b=some.key, **query))
        assert violations(page, thorough) == [], path


@pytest.mark.parametrize("id", JOBS)
def test_axe_finds_nothing_on_jobs(page: Page, writing: Console, some: Board, thorough: bool, id: str):
    page.goto(writing.at("/job", b=some.key, id=id, find="b", children="1"))
    page.get_by_text("Each event").click()
    assert violations(page, thorough) == [], id


def test_axe_finds_nothing_on_actions(page: Page, writing: Console, some: Board, thorough: bool):
    for action in CONFIRMED:
        page.goto(writing.at("/confirm", b=some.key, **action))
        assert violations(page, thorough) == [], action
    page.get_by_role("button", name="Requeue").click()
    expect(page.locator("#outcome")).to_be_visible()
    assert violations(page, thorough) == [], "work on many jobs"


def test_axe_sees_both_schemes_and_widths(page: Page, writing: Console, some: Board):
    """What is wrong in one of them alone is found."""
    page.goto(writing.at("/audit", b=some.key))
    page.evaluate(
        """() => {
            const sheet = new CSSStyleSheet();
            const where = "(prefers-color-scheme: dark) and (max-width: 700px)";
            sheet.replaceSync(`@media ${where} { h1 { color: #333; } }`);
            document.adoptedStyleSheets = [sheet];
        }"""
    )
    assert [one.split(":")[0] for one in violations(page, thorough=True)] == ["dark 390 color-contrast"]


def test_a_phone_shows_all_that_matters(browser: Browser, writing: Console, some: Board):
    """One line of header, no page wider than the screen, rows as cards with their heads."""
    with browser.new_context(viewport={"width": 390, "height": 800}) as context:
        page = context.new_page()
        for path in PAGES:
            query = {} if path == "/jobs" else {"id": "j", "verb": "cancel", "q": some.key, "schedule": "s"}
            page.goto(writing.at(path, b=some.key, **query))
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= 390, f"{path} is {wide} wide"
            assert page.locator(".banner").bounding_box()["height"] < 60, path
        # A card of a queue has no line for states in which it has no job.
        page.goto(writing.at("/queues", b=some.key))
        card = page.locator("#queues tbody tr").filter(has_text="metered")
        expect(card.locator("td[data-label=running]")).to_be_visible()
        expect(card.locator("td[data-label=failed]")).to_be_hidden()
        page.goto(writing.at("/jobs", b=some.key))
        card = page.locator("tbody tr").filter(has_text="broken")
        for text in ["broken", "failed", "IOError", "default"]:
            box = card.get_by_text(text).first.bounding_box()
            assert box["x"] >= 0 and box["x"] + box["width"] <= 390, text


HEADINGS = {
    "gf": "Failed jobs of",
    "gj": "Jobs of",
    "gq": "Queues of",
    "gw": "Workers of",
    "gt": "Job types of",
    "gl": "Limits and groups of",
    "gs": "Statistics of",
    "gr": "Schedules of",
    "ge": "Settings of",
    "ga": "Audit of",
    "go": "Board ",
    "gb": "Boards",
}


def test_by_keys_alone(page: Page, writing: Console, some: Board):
    page.goto(writing.at("/board", b=some.key))
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    for keys, heading in HEADINGS.items():
        page.keyboard.type(keys)
        expect(page.get_by_role("heading", level=1)).to_contain_text(heading)
        page.wait_for_load_state()  # the heading is there before the script that hears the keys
    page.goto(writing.at("/board", b=some.key))
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("/")
    expect(page.get_by_role("banner").get_by_role("combobox")).to_be_focused()
    page.keyboard.type("k?")
    expect(page.get_by_role("banner").get_by_role("combobox")).to_have_value("k?")
    page.keyboard.press("Backspace")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Job k")
    page.get_by_role("link", name="Cancel", exact=True).focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Cancel", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.locator("#now .state-line")).to_contain_text("cancelled")


def test_losing_the_console_is_said(page: Page, consoles, store, some: Board):
    console = consoles(store)
    page.goto(console.at("/board", b=some.key))
    expect(page.locator("#pulse")).to_have_text("live")
    console.close()
    expect(page.locator("#pulse")).to_have_text("not connected")
    expect(page.locator("[aria-live=polite]")).to_contain_text("The connection to the console is lost")


def test_without_scripts_all_can_be_read_and_done(browser: Browser, writing: Console, some: Board):
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(writing.at("/board", b=some.key))
        page.get_by_role("link", name="Pause the board").click()
        page.get_by_role("button", name="Pause").click()
        expect(page.locator("#overview")).to_contain_text("paused")
    assert some.info()["paused"] == -1
