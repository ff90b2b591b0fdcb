"""Every page, read-only: what it shows, and how it is told anew while it is open."""

from __future__ import annotations

import json
import re

import pytest
from harness import Board, wait_until
from playwright.sync_api import Locator, Page, expect

from . import seed
from .process import Console


@pytest.fixture
def shop(board: Board) -> Board:
    seed.shop(board)
    return board


def row(page: Page, name: str, within: str = "main") -> Locator:
    """The row of a table that is about this name; behind it may stand more."""
    head = page.locator("th", has_text=re.compile(rf"^\s*{re.escape(name)}(\s|$)"))
    return page.locator(f"{within} tr").filter(has=head)


def begins(rows: Locator) -> list[float]:
    """Where the first bar of each row begins, all at one moment: while the job lives, the page draws the line
    of time anew, and it grows.
    """
    first = "row => row.querySelector('rect')?.getBoundingClientRect().x ?? []"
    return rows.evaluate_all(f"rows => rows.flatMap({first})")


def test_all_boards_with_depth_and_pace(page: Page, reading: Console, shop: Board):
    page.goto(reading.at("/", q=shop.key))
    expect(page).to_have_title("Boards · jobboard")
    cells = row(page, shop.key).get_by_role("cell")
    expect(cells.nth(0)).to_have_text(str(shop.count(state="ready")))
    expect(cells.nth(1)).to_have_text(str(shop.count(state="claimed")))
    expect(cells.nth(4)).to_contain_text("s")
    page.locator("#boards").get_by_role("link", name=shop.key, exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Board {shop.key}")


def test_boards_come_by_pages_and_can_be_opened_by_name(page: Page, reading: Console, board: Board, store):
    keys = [f"{board.key}-{number:03}" for number in range(60)]
    for key in keys:
        store.board(key).post()
    try:
        page.goto(reading.at("/", q=f"{board.key}-"))
        expect(page.locator("tbody tr")).to_have_count(50)
        page.get_by_role("link", name="Next").click()
        expect(page.locator("tbody tr")).to_have_count(10)
        page.get_by_label("Open the board").fill(keys[7])
        page.get_by_role("button", name="Open").click()
        expect(page.get_by_role("heading", level=1)).to_have_text(f"Board {keys[7]}")
    finally:
        store.client().delete(*keys)


def test_a_new_board_comes_to_the_list(page: Page, reading: Console, board: Board):
    page.goto(reading.at("/", q=board.key))
    expect(page.locator("#boards")).to_contain_text("No board has such a name")
    board.post()
    expect(row(page, board.key)).to_have_count(1)


def test_a_board_shows_all_that_it_has(page: Page, reading: Console, shop: Board):
    page.goto(reading.at("/board", b=shop.key))
    expect(page.locator("#overview")).to_contain_text("ready")
    for queue, counts in shop.queues().items():
        expect(row(page, queue, "#queues").get_by_role("cell").nth(2)).to_have_text(str(counts["ready"]))
    expect(page.locator("#queues")).to_contain_text("paused")
    for kind, count in shop.kinds().items():
        expect(page.locator("#kinds tr").filter(has_text=kind)).to_contain_text(str(count))
    expect(page.locator("#tags")).to_contain_text("receipts")
    expect(page.locator("svg[role=img]")).to_have_count(4)
    expect(page.get_by_role("link", name="Pause the board")).to_have_count(0)
    page.goto(reading.at("/limits", b=shop.key))
    expect(page.locator("#groups tbody tr")).to_have_count(3)
    expect(page.locator("#limits")).to_contain_text("payments-api")
    page.goto(reading.at("/workers", b=shop.key))
    for worker in ["mailer-1", "payer-1", "packer-1"]:
        expect(page.locator("#workers")).to_contain_text(worker)


def test_a_board_is_told_anew(page: Page, reading: Console, board: Board):
    board.post()
    page.goto(reading.at("/board", b=board.key))
    ready = page.locator("#overview .figures li").filter(has_text="ready").locator(".figure")
    expect(ready).to_have_text("1")
    expect(page.locator("#pulse")).to_have_text("live")
    board.post_many(11, queue="late")
    expect(ready).to_have_text("12")
    expect(page.locator("#queues")).to_contain_text("late")


def test_all_queues_workers_and_kinds_are_shown(page: Page, reading: Console, board: Board, store):
    """However many pages the server gives them in."""
    names = [f"{number:0>200}" for number in range(40)]
    for name in names:
        board.post(id=name, queue=name)
        job = board.claim_one(name, queues=[name])
        board.fail(name, job["id"], name, "m", noretry=True)
        board.post(queue=name)
        board.claim_one(name, queues=[name])
    with store.configured(jobboard__max_reply=4096):
        for path, part in [("/queues", "queues"), ("/board", "kinds"), ("/workers", "workers")]:
            page.goto(reading.at(path, b=board.key))
            expect(page.locator(f"#{part} tbody tr")).to_have_count(len(names))
        board.post_many(3, queue=names[33])
        page.goto(reading.at("/board", b=board.key))
        expect(page.locator("#queues tbody tr")).to_have_count(20)
        expect(page.locator("#queues tbody th .name").first).to_have_attribute("title", names[33])
        page.locator("#queues").get_by_role("link", name="All queues").click()
        expect(page.locator("#queues tbody tr")).to_have_count(len(names))


def test_what_has_the_focus_keeps_it(page: Page, reading: Console, board: Board):
    board.post(queue="a")
    page.goto(reading.at("/board", b=board.key))
    link = page.locator("#queues").get_by_role("link", name="a", exact=True)
    link.focus()
    board.post_many(3, queue="b")
    expect(page.locator("#queues")).to_contain_text("b")
    expect(link).to_be_focused()


def test_a_job_with_its_whole_record(page: Page, reading: Console, board: Board):
    board.post(
        json.dumps({"to": "ann", "n": [1, 2]}), id="j", name="mail", queue="q", user="ann", group="acme",
        tags=["red"], meta={"why": "because"}, priority=7, unique="u", cost=2,
    )  # fmt: skip
    token = board.claim_one("w1", queues=["q"])["token"]
    board.heartbeat("w1", "j", token=token, progress=33, stage="half way", log="a line")
    page.goto(reading.at("/job", b=board.key, id="j"))
    record = page.locator("#record")
    for text in ["running", "mail", "acme", "because", "w1", str(token)]:
        expect(record).to_contain_text(text)
    now = page.locator("#now .state-line")
    for text in ["running", "33 %", "half way"]:
        expect(now).to_contain_text(text)
    expect(page.locator("#explain")).to_contain_text("It runs: w1 holds it until 20")
    for event in ["posted", "claimed", "log"]:
        expect(page.locator("#history")).to_contain_text(event)
    expect(page.locator("#history svg rect")).not_to_have_count(0)
    expect(page.locator("#data pre")).to_contain_text('"to": "ann"')
    expect(page.locator("#graph")).to_contain_text("None")
    board.consume("w1", "j", token=token, result="it went well")
    expect(now).to_contain_text("done")
    expect(page.locator("#data")).to_contain_text("it went well")
    expect(page.locator("#history")).to_contain_text("done")


def test_a_run_along_one_line_of_time(page: Page, reading: Console, board: Board):
    """Waits, attempts with workers and outcomes, log lines, children; and told anew."""
    board.set(backoff_base=0, jitter=0)
    board.post(id="p", name="order")
    token = board.claim_one("w1", id="p")["token"]
    board.heartbeat("w1", "p", token=token, log="half way")
    board.fail("w1", "p", "IOError", "no disk", token=token)
    token = board.claim_one("w2", id="p")["token"]
    board.post(id="c", name="part", parent="p")
    page.goto(reading.at("/job", b=board.key, id="p"))
    rows = page.locator("ol.timeline > li")
    texts = [
        "In the queue",
        "Attempt 1 w1",
        "Log half way",
        "Back-off and queue",
        "Attempt 2 w2",
        "Child part c",
    ]
    for number, text in enumerate(texts):
        expect(rows.nth(number)).to_contain_text(text)
    expect(rows.nth(1)).to_contain_text("failed: IOError: no disk")
    expect(rows.nth(1).locator("rect.mark")).to_have_count(1)
    expect(rows.nth(4)).to_contain_text("running")
    board.claim_one("w3", id="c")
    expect(rows.nth(5)).to_contain_text("running")
    board.consume("w2", "p", token=token, result="x")
    expect(rows.nth(4)).to_contain_text("done")
    starts = begins(rows)[:5]
    assert len(starts) == 5 and starts == sorted(starts)


def test_steps_signals_and_output_stand_on_the_line_of_time(page: Page, reading: Console, board: Board):
    """Each where it began, with its value, while the page is open."""
    board.set(backoff_base=0, jitter=0)
    board.post(id="j", name="refund")
    token = board.claim_one("w1", id="j")["token"]
    page.goto(reading.at("/job", b=board.key, id="j"))
    rows = page.locator("ol.timeline > li")
    expect(rows).to_have_count(2)
    board.step("w1", "j", "draft", '{"amount": 20}', token=token)
    step = rows.filter(has_text="Step draft")
    expect(step).to_contain_text('{"amount": 20}')
    expect(step.locator("rect.step")).to_have_count(1)
    board.heartbeat("w1", "j", token=token, output=(1, "one\ntwo\n"))
    board.heartbeat("w1", "j", token=token, output=(2, "three"))
    expect(page.locator("ol.timeline .output pre")).to_have_text("one\ntwo\nthree")
    board.signal("early", "j", value="an early one", sender="eve")
    expect(rows.filter(has_text="Signal early")).to_contain_text("from eve: an early one")
    board.wait_for("w1", "j", ["approved"], token=token, within="1h")
    waiting = rows.filter(has_text="Waits for approved")
    expect(waiting).to_contain_text(", until 20")
    expect(waiting.get_by_role("link")).to_have_count(0)
    board.signal("approved", "j", value="fine with me", sender="ann")
    expect(waiting).to_have_count(0)
    expect(rows.filter(has_text="Signal approved")).to_contain_text("from ann: fine with me")
    token = board.claim_one("w2", id="j")["token"]
    board.step("w2", "j", "pay", "receipt 7", token=token)
    expect(rows.filter(has_text="Step pay")).to_contain_text("receipt 7")
    starts = begins(rows)
    assert len(starts) > 5 and starts == sorted(starts)
    # Output of the first attempt stays beside it, until the second writes.
    order = [text.split()[0] for text in rows.all_inner_texts()]
    assert order[order.index("Attempt") + 1] == "Output"


def test_signals_after_the_time_of_a_wait_for_several(page: Page, consoles, fresh_server):
    """The history names the first that was missing; of the others it says how many."""
    server = fresh_server("clock", "manual")
    board = server.board("jobs")
    board.call("POST", "x", "ID", "j", "AWAIT", 4, "early", "paid", "signed", "sent", "WITHIN", 1000)
    board.signal("early", "j")
    server.clock.advance(1000)
    assert board.state("j") == "ready"
    server.clock.advance(1)
    for signal in ["signed", "paid"]:
        board.signal(signal, "j")
    page.goto(consoles(server).at("/job", b="jobs", id="j"))
    rows = page.locator("ol.timeline > li")
    expect(rows.filter(has_text="Signal paid")).to_contain_text("(too late: the wait was over)")
    expect(rows.filter(has_text="Signal signed")).to_contain_text(
        "(after the time of the wait for paid and 2 more was over)"
    )
    expect(rows.filter(has_text="Signal early")).not_to_contain_text("over")


def test_signals_with_their_values(page: Page, reading: Console, board: Board):
    """Also one that came too late; a long value is cut, and can be saved whole."""
    long = "x" * 3000
    board.post(id="j")
    token = board.claim_one("w1", id="j")["token"]
    board.wait_for("w1", "j", ["approved"], token=token, within=1)
    wait_until(lambda: board.state("j") == "ready", what="the time of the wait is over")
    board.signal("approved", "j", value=long, sender="ann")
    page.goto(reading.at("/job", b=board.key, id="j"))
    expect(page.locator("ol.timeline > li").filter(has_text="Signal approved")).to_contain_text("too late")
    signals = page.locator("#data tbody tr").filter(has_text="approved")
    expect(signals).to_contain_text("ann")
    expect(signals).to_contain_text("The first 1.0 KiB")
    with page.expect_download() as saving:
        signals.get_by_role("link").click()
    assert saving.value.path().read_text() == long
    missing = reading.at("/data", b=board.key, id="j", field="signal", signal="other")
    assert reading.ask(missing, headers={"Cookie": reading.ask("/").cookie}).status == 404


def test_the_boxes_of_a_graph_hold_their_labels(page: Page, reading: Console, board: Board):
    """Ids that the server makes begin alike: the name comes first, then the end of the id."""
    first = board.post(name="a-name-that-goes-on-and-on-and-on")
    second = board.post(after=[first])
    page.goto(reading.at("/job", b=board.key, id=first))
    labels = page.locator("svg.graph .node text")
    for number in range(labels.count()):
        box = labels.nth(number).bounding_box()
        frame = labels.nth(number).locator("xpath=..").locator("rect").bounding_box()
        assert box["x"] + box["width"] <= frame["x"] + frame["width"], labels.nth(number).text_content()
    texts = labels.all_text_contents()
    assert any(first[-8:] in text for text in texts) and any(second[-8:] in text for text in texts)


def test_payload_and_result_can_be_saved(page: Page, reading: Console, board: Board):
    payload = bytes(range(256)) * 100
    board.post(payload, id="j")
    page.goto(reading.at("/job", b=board.key, id="j"))
    expect(page.locator("#data pre")).to_contain_text("000000  000102030405")
    with page.expect_download() as saving:
        page.get_by_role("link", name="Download").click()
    assert saving.value.path().read_bytes() == payload


def test_the_output_of_a_job_comes_while_it_is_written(page: Page, reading: Console, board: Board):
    board.post(id="j")
    token = board.claim_one("w1")["token"]
    page.goto(reading.at("/job", b=board.key, id="j"))
    output = page.locator("#output pre")
    expect(output).to_have_count(0)
    board.heartbeat("w1", "j", token=token, output=(1, "<b>the sky</b>\n\x1b"))
    expect(output).to_have_text("<b>the sky</b>\n\\x1b")
    expect(output.locator("b")).to_have_count(0)
    board.consume("w1", "j", token=token, output=(2, " is blue"))
    expect(output).to_contain_text("is blue")


def test_steps_of_a_job(page: Page, reading: Console, board: Board):
    board.post(id="j")
    token = board.claim_one("w1")["token"]
    board.step("w1", "j", "fetch", '{"pages": 7}', token=token)
    page.goto(reading.at("/job", b=board.key, id="j"))
    steps = page.locator("#data tbody tr")
    expect(steps).to_have_count(1)
    board.step("w1", "j", b"\x00\xff", bytes(range(256)) * 10, token=token)
    expect(steps).to_have_count(2)
    expect(steps.nth(0)).to_contain_text("000000  000102030405")
    expect(steps.nth(1)).to_contain_text('"pages": 7')
    with page.expect_download() as saving:
        steps.nth(0).get_by_role("link").click()
    assert saving.value.path().read_bytes() == bytes(range(256)) * 10


def test_a_job_that_has_gone(page: Page, reading: Console, board: Board):
    board.post(id="j")
    token = board.claim_one()["token"]
    board.consume("w1", "j", token=token)
    page.goto(reading.at("/job", b=board.key, id="j"))
    expect(page.locator("#record")).to_contain_text("no longer keeps its record")
    assert reading.ask(reading.at("/job", b=board.key, id="never")).status == 404
    assert reading.ask(reading.at("/board", b="no such board")).status == 404


def test_a_job_that_goes_while_its_page_is_open(page: Page, writing: Console, board: Board):
    """Nothing of it stays; and of another job under its id all is shown."""
    board.post("old payload", id="j")
    token = board.claim_one()["token"]
    page.goto(writing.at("/job", b=board.key, id="j"))
    expect(page.locator("#pulse")).to_have_text("live")
    board.consume("w1", "j", token=token)
    now = page.locator("#now")
    expect(page.locator("#record")).to_have_text("The server no longer keeps its record.")
    for part in ["now", "history", "graph", "data"]:
        expect(page.locator(f"#{part}")).to_have_text("")
    board.post("new payload", id="j", replace=True)
    expect(now).to_contain_text("ready")
    expect(page.locator("#data")).to_contain_text("new payload")
    board.delete("j")
    expect(page.locator("#record")).to_have_text("The server no longer keeps its record.")
    for part in ["now", "explain", "history", "graph", "data"]:
        expect(page.locator(f"#{part}")).to_have_text("")
    board.post("newest payload", id="j")
    expect(page.locator("#data")).to_contain_text("newest payload")


def test_data_of_a_job_is_read_again_when_that_failed(page: Page, reading: Console, board: Board, store):
    board.post("p" * 60_000, id="j")
    token = board.claim_one()["token"]
    page.goto(reading.at("/job", b=board.key, id="j"))
    expect(page.locator("#pulse")).to_have_text("live")
    closed = "overcoming of output buffer limits"
    before = store.log.count(closed)
    with store.configured(client_output_buffer_limit="normal 32768 0 0"):
        board.consume("w1", "j", token=token, result="all is well")
        wait_until(lambda: store.log.count(closed) > before, what="the server refuses to send it")
    expect(page.locator("#data")).to_contain_text("all is well")


def test_a_graph_that_is_cut_says_so(page: Page, reading: Console, board: Board, store):
    """Also when the server ends the list of those that wait."""
    board.post(id="first")
    names = [f"{number:0>200}" for number in range(20)]
    for name in names:
        board.post(id=name, after=["first"])
    page.goto(reading.at("/job", b=board.key, id="first"))
    expect(page.locator("#graph svg a")).to_have_count(21)
    expect(page.locator("#graph")).not_to_contain_text("There are more")
    with store.configured(jobboard__max_reply=2048):
        page.goto(reading.at("/job", b=board.key, id="first"))
        expect(page.locator("#graph")).to_contain_text("There are more")


def test_the_graph_of_a_job(page: Page, reading: Console, shop: Board):
    page.goto(reading.at("/job", b=shop.key, id="ship-42"))
    graph = page.locator("svg.graph")
    for id in ["charge-42", "pack-42", "ship-42", "order-42", "mail-42"]:
        expect(graph.get_by_role("link", name=f"{id}, ")).to_have_count(1)
    # pack and charge before ship, ship before mail: six edges with the parents.
    expect(graph.locator("path.edge.waits.head")).to_have_count(3)
    expect(graph.locator("path.edge.part.head")).to_have_count(3)
    page.get_by_text("As a table").click()
    expect(page.locator("#graph table tr").filter(has_text="mail-42")).to_contain_text("ship-42")
    graph.get_by_role("link", name="order-42").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Job order-42")
    expect(page.locator("#graph")).to_contain_text("4 children")


def test_statistics(page: Page, reading: Console, shop: Board):
    page.goto(reading.at("/stats", b=shop.key))
    posted = shop.call("STATS")["posted"]
    expect(page.locator("#days tbody tr").first.get_by_role("cell").first).to_have_text(str(posted))
    expect(page.locator("#plots svg")).to_have_count(3)
    expect(page.locator("#pace svg")).to_have_count(4)
    expect(page.locator("#today meter")).not_to_have_count(0)
    page.get_by_role("textbox", name="queue").fill("mail")
    page.get_by_role("button", name="Show").click()
    posted = shop.call("STATS", queue="mail")["posted"]
    expect(page.locator("#days tbody tr").first.get_by_role("cell").first).to_have_text(str(posted))


def percentile(page: Page, number: int, label: str) -> str:
    """What a plot of the last 15 minutes says of now."""
    return (
        page.locator("#pace svg")
        .nth(number)
        .get_attribute("aria-label")
        .split(f"{label}: ")[1]
        .split(" now")[0]
    )


@pytest.mark.parametrize("place", [{}, {"queue": "q"}], ids=["board", "queue"])
def test_plots_tell_of_what_has_happened_since(page: Page, reading: Console, board: Board, place: dict):
    """Old runs of 0 ms are in the statistics of the day, but not in the plots of what came since."""
    board.set(retain_complete=0)
    board.post_many(50, queue="q")
    for job in board.claim("w1", queues=["q"], count=50):
        board.consume("w1", job["id"], token=job["token"])
    page.goto(reading.at("/stats", b=board.key, **place))
    assert percentile(page, 3, "50 %") == "–"
    board.post(id="long", queue="q")
    token = board.claim_one(id="long")["token"]
    page.wait_for_timeout(1100)
    board.consume("w1", "long", token=token)
    plot = page.locator("#pace svg").nth(3)
    seconds = re.compile(r"50 %: [1-9][0-9.]* s now")
    expect(plot).to_have_attribute("aria-label", seconds)
    page.reload()
    expect(page.locator("#days tbody tr").first).to_contain_text("51")
    expect(plot).to_have_attribute("aria-label", seconds)


def test_schedules_with_their_next_times(page: Page, reading: Console, shop: Board):
    page.goto(reading.at("/schedules", b=shop.key))
    nightly = page.locator("tr").filter(has_text="nightly")
    expect(nightly).to_contain_text("30 2 * * *")
    expect(nightly).to_contain_text("Europe/Berlin")
    expect(nightly.locator("time")).to_have_count(1)


def test_settings_of_board_queue_group_and_limit(page: Page, reading: Console, shop: Board):
    for place, setting, value in [
        ({}, "retain-complete", "3600000"),
        ({"queue": "payments"}, "limits", "payments-api"),
        ({"queue": "mail", "group": "acme"}, "weight", "3"),
        ({"limit": "payments-api"}, "burst", "20"),
    ]:
        page.goto(reading.at("/settings", b=shop.key, **place))
        expect(row(page, setting).get_by_role("cell").first).to_have_text(value)
    expect(page.locator("td input")).to_have_count(0)


def test_every_setting_has_a_meaning(page: Page, reading: Console, shop: Board):
    for place in [{}, {"queue": "mail"}, {"queue": "mail", "group": "acme"}, {"limit": "payments-api"}]:
        page.goto(reading.at("/settings", b=shop.key, **place))
        rows = page.locator("tbody tr:not(.heading)").all_inner_texts()
        assert len(rows) == len(shop.settings(**place))
        assert all(len(text.split("\t")[-1]) > 10 for text in rows), rows
