"""What a job writes while it runs can be searched, and its line of time shows the lives of its children."""

from __future__ import annotations

import json

from harness import Board
from playwright.sync_api import Browser, Page, expect

from .process import Console
from .test_exposed import live


def test_log_and_output_are_searched(page: Page, reading: Console, board: Board):
    """Whatever the case, also in what is longer than the page shows, and in what is written meanwhile."""
    board.set(output_bytes=200_000)
    board.post(id="j")
    page.goto(reading.at("/job", b=board.key, id="j"))
    expect(page.get_by_label("Find in log and output")).to_have_count(0)
    token = board.claim_one("w1", id="j")["token"]
    lines = "".join(f"row {number}\n" for number in range(5000))
    board.heartbeat("w1", "j", token=token, log="no Route to <b>host</b>\nroute two", output=(1, lines))
    field = page.get_by_label("Find in log and output")
    field.fill("ROUTE")
    field.press("Enter")
    hits = page.locator("#found .hits li")
    expect(hits).to_have_count(2)
    expect(hits.nth(0)).to_contain_text("no Route to <b>host</b>")
    expect(hits.nth(0).locator("mark")).to_have_text("Route")
    expect(hits.nth(0)).to_contain_text("Log")
    page.goto(reading.at("/job", b=board.key, id="j", find="row 17"))
    # The page itself shows the end alone.
    expect(page.locator("#output pre")).not_to_contain_text("row 17\n")
    expect(page.locator("#found")).to_contain_text("111 lines of log and output have row 17")
    expect(hits).to_have_count(111)
    expect(hits.nth(0)).to_have_text("Output row 17")
    expect(page.locator("#pulse")).to_have_text("live")
    board.heartbeat("w1", "j", token=token, output=(2, "row 17 again\n"))
    expect(hits).to_have_count(112)
    page.goto(reading.at("/job", b=board.key, id="j", find="nowhere"))
    expect(page.locator("#found")).to_contain_text("No line of log and output has nowhere")


def test_what_is_written_between_loading_and_looking_is_found(reading: Console, board: Board):
    """A page that looks takes the answers that another has just got, but not for newer than they are."""
    board.post(id="j")
    token = board.claim_one("w1", id="j")["token"]
    board.heartbeat("w1", "j", token=token, output=(1, "row one\n"))
    page = reading.ask(reading.at("/job", b=board.key, id="j", find="row"))
    assert "1 line of log and output has" in page.body
    board.heartbeat("w1", "j", token=token, output=(2, "row two\n"))
    with live(reading, page.cookie, f"job?b={board.key}&id=j&find=row") as events:
        assert any(b"2 lines of log and output have" in line for line in events)


def test_log_lines_are_found_when_earlier_ones_had_to_go(page: Page, reading: Console, board: Board):
    board.set(history_first=1, history_last=3)
    board.post(id="j")
    token = board.claim_one("w1", id="j")["token"]
    for number in range(4):
        board.heartbeat("w1", "j", token=token, log=f"row {number}")
    page.goto(reading.at("/job", b=board.key, id="j", find="row"))
    hits = page.locator("#found .hits li")
    expect(hits).to_contain_text(["row 1", "row 2", "row 3"])
    expect(page.locator("#pulse")).to_have_text("live")
    board.heartbeat("w1", "j", token=token, log="row 4")
    expect(hits).to_contain_text(["row 2", "row 3", "row 4"])


def test_output_of_many_small_chunks_is_shown_to_its_end(page: Page, reading: Console, board: Board):
    """A server tells no more than 1,000 chunks at once."""
    board.set(output_bytes=200_000)
    board.post(id="j")
    token = board.claim_one("w1", id="j")["token"]
    with board.client.pipeline(transaction=False) as pipeline:
        for number in range(1, 2001):
            words = ["TOKEN", token, "OUTPUT", number, f"row {number}\n"]
            pipeline.execute_command("JOB.HEARTBEAT", board.key, "w1", "j", *words)
        pipeline.execute()
    # Without scripts: what the page has when it comes.
    body = reading.ask(reading.at("/job", b=board.key, id="j", find="row 2000")).body
    assert "1 line of log and output has" in body
    assert "row 1999\nrow 2000\n</pre>" in body


def test_children_show_their_attempts_on_request(browser: Browser, reading: Console, board: Board):
    """Without scripts as well: waits and attempts of each, with outcomes, behind its line."""
    board.set(backoff_base=0, jitter=0, retain_complete=3_600_000)
    board.post(id="p")
    board.claim_one("w1", id="p")
    board.mpost(["x", "x"], ids=["c1", "c2"], parent="p", name="part", retries=3)
    token = board.claim_one("w2", id="c1")["token"]
    board.fail("w2", "c1", "IOError", "no disk", token=token)
    token = board.claim_one("w3", id="c1")["token"]
    board.consume("w3", "c1", token=token)
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(reading.at("/job", b=board.key, id="p"))
        inner = page.locator("ol.timeline li.inner")
        expect(inner).to_have_count(0)
        page.get_by_role("link", name="Show the attempts of children").click()
        expect(inner).to_have_count(4)
        for number, text in enumerate(["In the queue", "Attempt 1 w2", "Back-off and queue", "Attempt 2 w3"]):
            expect(inner.nth(number)).to_contain_text(text)
        expect(inner.nth(1)).to_contain_text("failed: IOError: no disk")
        expect(inner.nth(3)).to_contain_text("done")
        rows = page.locator("ol.timeline li")
        texts = rows.all_inner_texts()
        first = next(number for number, text in enumerate(texts) if "part c1" in text)
        assert "Attempt 2" in texts[first + 4], texts
        page.get_by_role("link", name="Hide the attempts of children").click()
        expect(inner).to_have_count(0)


def test_jobs_are_found_by_fields_of_their_payloads(page: Page, writing: Console, board: Board):
    """At any depth, however the program wrote its JSON; suggested; and never changed all at once."""
    for number in range(60):
        order = {"order": {"id": number, "note": f"é {number}"}, "items": [{"sku": f"s{number % 3}"}]}
        text = (
            json.dumps(order) if number % 2 else json.dumps(order, separators=(",", ":"), ensure_ascii=False)
        )
        board.post(text, id=f"j{number:02}")
    board.post('{"order": "other", "count": 7}', id="not")
    ids = lambda: [text.strip() for text in page.locator("tbody th").all_inner_texts()]  # noqa: E731
    find = page.get_by_role("banner").get_by_role("combobox")
    for search, wanted in [
        ("payload.order.id:7", ["j07"]),
        ('payload.order.note:"é 8"', ["j08"]),
        ('payload.order.note:"é 9" payload.items.sku:s0', ["j09"]),
        ("payload.items.sku:s1 id:j1*", ["j10", "j13", "j16", "j19"]),
    ]:
        page.goto(writing.at("/board", b=board.key))
        find.fill(search)
        find.press("Enter")
        expect(page.locator("tbody th")).to_have_count(len(wanted))
        assert sorted(ids()) == wanted
    expect(page.locator(".chip.on").first).to_contain_text("id:j1*")
    expect(page.get_by_text("All matching:")).to_have_count(0)
    answer = page.goto(writing.at("/confirm", b=board.key, verb="delete", where="1", payload="order.id:7"))
    assert answer and answer.status == 400
    expect(page.locator("main")).to_contain_text("choose them in the list")
    page.goto(writing.at("/board", b=board.key))
    find.press_sequentially("payload.order.id:59")
    offered = page.locator("#suggestions option")
    expect(offered.first).to_have_attribute("value", "payload.order.id:59")
