"""Finding jobs: by id, name, tag, user, state, queue and more, a page at a time."""

from __future__ import annotations

import re

import pytest
from harness import Board, Server
from playwright.sync_api import Page, expect

from .process import Console


@pytest.fixture
def mixed(board: Board) -> Board:
    board.set(retain_complete=3_600_000)
    for number in range(130):
        board.post(
            f"job-{number}", id=f"j{number:03}", name=["mail", "sms"][number % 2], queue=f"q{number % 5}",
            user=f"u{number % 3}", tags=["even"] if number % 2 == 0 else ["odd"], group=f"g{number % 4}",
        )  # fmt: skip
    token = board.claim_one("w1", id="j005")["token"]
    board.fail("w1", "j005", "IOError", "broken", token=token, noretry=True)
    board.claim_one("w2", id="j006")
    board.update("j007", track=True)
    return board


def shown(page: Page) -> list[str]:
    page.wait_for_load_state()  # a click waits for the begin of the next page only
    return [text.strip() for text in page.locator("tbody th").all_inner_texts()]


@pytest.mark.parametrize(
    ("fields", "filters"),
    [
        ({"state": ["failed", "claimed"]}, {"state": ["failed", "claimed"]}),
        ({"queue": "q1"}, {"queue": "q1"}),
        ({"name": "sms", "user": "u1"}, {"name": "sms", "user": "u1"}),
        ({"tag": "even"}, {"tag": "even"}),
        ({"group": "g2", "state": "ready"}, {"group": "g2", "state": "ready"}),
        ({"worker": "w2"}, {"worker": "w2"}),
        ({"kind": "IOError"}, {"kind": "IOError"}),
        ({"tracked": "1"}, {"tracked": True}),
        ({"name": "mail", "rev": "1"}, {"name": "mail", "rev": True}),
    ],
)
def test_lists_are_those_of_the_server(page: Page, reading: Console, mixed: Board, fields, filters):
    page.goto(reading.at("/jobs", b=mixed.key, **fields))
    found = shown(page)
    while page.get_by_role("link", name="Next page").count():
        assert len(found) % 50 == 0
        page.get_by_role("link", name="Next page").click()
        found += shown(page)
    assert found == [job["id"] for job in mixed.list_all(fields=["id"], **filters)]


def test_the_form_asks_for_what_is_filled_in(page: Page, reading: Console, mixed: Board):
    page.goto(reading.at("/jobs", b=mixed.key))
    expect(page.locator("#count")).to_have_text("130 jobs, ended ones included.")
    page.get_by_text("All filters").click()
    form = page.get_by_role("form", name="Filters")
    form.get_by_label("failed").check()
    form.get_by_label("queue").fill("q0")
    form.get_by_role("button", name="Show").click()
    assert shown(page) == ["j005"]
    expect(page.locator("#count")).to_have_text("1 job.")
    page.get_by_text("All filters").click()
    expect(form.get_by_label("failed")).to_be_checked()
    form.get_by_label("id").fill("j001")
    form.get_by_role("button", name="Show").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Job j001")


FOUND = {
    "sms": "65 jobs with the name sms",
    "even": "65 jobs with the tag even",
    "q3": "26 jobs with the queue q3",
    "u2": "43 jobs with the user u2",
    "IOError": "1 job with the kind of failure IOError",
}


def test_one_field_finds_ids_names_tags_users_and_queues(page: Page, reading: Console, mixed: Board):
    page.goto(reading.at("/board", b=mixed.key))
    find = page.get_by_role("banner").get_by_role("combobox")
    find.fill("j042")
    find.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Job j042")
    for word, text in FOUND.items():
        find.fill(word)
        find.press("Enter")
        expect(page.get_by_role("link", name=text)).to_have_count(1)
    page.get_by_role("link", name="1 job with the kind of failure IOError").click()
    assert shown(page) == ["j005"]
    find.fill("nothing")
    find.press("Enter")
    expect(page.locator("#found")).to_contain_text("Nothing is called nothing")
    expect(page.locator("#found").get_by_role("link", name=re.compile("queue"))).to_have_count(0)
    find.fill("Q")
    find.press("Enter")
    page.get_by_role("link", name="5 queues whose names contain it").click()
    expect(page.locator("#queues tbody tr")).to_have_count(5)


SEARCHES = {
    "failed": ["j005"],
    "failed since 1h kind:IOError": ["j005"],
    "failed since 1h name:mail": [],
    "running by:w2": ["j006"],
    "user:u1 sms q:q2": [f"j{number:03}" for number in range(130) if number % 30 == 7],
    "tracked": ["j007"],
    "id:j042": "Job j042",
    "id:j04*": [f"j{number:03}" for number in range(40, 50)],
    "failed message:roke": ["j005"],
    "failed message:other": [],
    "text:job-37": ["j037"],
    "name:nobody": [],
}


@pytest.mark.parametrize("search", SEARCHES)
def test_one_field_understands_a_search(page: Page, reading: Console, mixed: Board, search: str):
    page.goto(reading.at("/board", b=mixed.key))
    find = page.get_by_role("banner").get_by_role("combobox")
    find.fill(search)
    find.press("Enter")
    if isinstance(SEARCHES[search], str):
        expect(page.get_by_role("heading", level=1)).to_have_text(SEARCHES[search])
        return
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Jobs of {mixed.key}")
    assert shown(page) == SEARCHES[search]


def test_what_a_search_does_not_know_is_said(page: Page, reading: Console, mixed: Board):
    for search, text in [
        ("state:gone", "no state"),
        ("id:j999", "no job with the id j999"),
        ("xyz mail", "xyz"),
    ]:
        page.goto(reading.at("/find", b=mixed.key, q=search))
        expect(page.locator("#found")).to_contain_text(text)
        expect(page.locator("#found")).to_contain_text("failed since 2h kind:IOError")
    page.goto(reading.at("/find", b=mixed.key, q="j04"))
    page.get_by_role("link", name="the beginnings of ids").click()
    assert shown(page) == [f"j{number:03}" for number in range(40, 50)]


def test_since_leaves_out_what_is_older(page: Page, reading: Console, mixed: Board):
    page.goto(reading.at("/jobs", b=mixed.key, name="sms", since="1h"))
    expect(page.locator("#count")).to_contain_text("50 or more, newest first.")
    assert shown(page)[:2] == ["j129", "j127"]
    page.wait_for_timeout(1100)
    page.goto(reading.at("/jobs", b=mixed.key, state="failed", since="1s"))
    expect(page.locator("#count")).to_have_text("0 jobs, newest first.")


def test_what_failed_since_with_this_text_is_sent_back(page: Page, writing: Console, mixed: Board):
    page.goto(writing.at("/find", b=mixed.key, q="failed since 2h message:broken"))
    page.locator("p.actions").get_by_role("link", name="Requeue").click()
    expect(page.locator("#fits")).to_have_text("1")
    expect(page.locator("#command")).to_contain_text("WHERE STATE failed MESSAGE broken ENDED")
    assert mixed.state("j005") == "failed"
    page.get_by_role("button", name="Requeue").click()
    expect(page.locator("#outcome")).to_have_text("All done.")
    assert mixed.state("j005") == "ready"


def test_the_form_keeps_every_filter(page: Page, reading: Console, board: Board):
    for id, tag in [("a", "red"), ("b", "dark"), ("c", "blue")]:
        board.post(id=id, tags=[tag])
    page.goto(reading.at("/jobs", b=board.key, tag=["red", "dark"]))
    page.get_by_text("All filters").click()
    page.get_by_label("newest first").check()
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page).to_have_url(re.compile("rev=1"))
    assert shown(page) == ["b", "a"]


@pytest.mark.parametrize(
    ("field", "text"), [("since=2hours", "2hours is no time"), ("state=faild", "faild is no")]
)
def test_no_filter_of_an_action_is_left_out(writing: Console, board: Board, field: str, text: str):
    """An address by hand: without the filter the action would be about more jobs."""
    board.post(id="a", tags=["red"])
    answer = writing.ask(f"/confirm?b={board.key}&verb=delete&where=1&tag=red&{field}")
    assert answer.status == 400 and text in answer.body


def test_filters_are_chips_of_the_address(page: Page, reading: Console, mixed: Board):
    page.goto(reading.at("/find", b=mixed.key, q="name:sms user:u1"))
    chips = page.locator(".chip.on")
    assert [text.split(" ×")[0] for text in chips.all_inner_texts()] == ["name:sms", "user:u1"]
    page.locator(".chip", has_text="failed").click()
    expect(page.get_by_role("search", name="Jobs").get_by_role("combobox")).to_have_value(
        "failed name:sms user:u1"
    )
    page.locator(".chip.on", has_text="user:u1").click()
    expect(chips).to_have_count(2)
    assert shown(page) == ["j005"]


def test_jobs_of_several_filters_are_counted_where_one_has_few(page: Page, reading: Console, mixed: Board):
    """A label of few jobs makes the count cheap; texts do not."""
    both = mixed.count(name="sms", user="u1")
    assert both > 1
    for query, text in [
        ({"state": "failed", "kind": "IOError"}, "1 job."),
        ({"name": "sms", "user": "u1"}, f"{both} jobs."),
        ({"name": "sms", "text": "job"}, "Not counted: the server would have to look at each job."),
    ]:
        page.goto(reading.at("/jobs", b=mixed.key, **query))
        expect(page.locator("#count")).to_have_text(text)


def test_long_ids_and_old_progress_do_not_widen_a_list(browser, reading: Console, board: Board):
    id = "order-" + "x" * 120
    board.post(id=id, name="import-file", queue="imports")
    token = board.claim_one("w1", id=id)["token"]
    board.heartbeat("w1", id, token=token, progress=33.33)
    with browser.new_context(viewport={"width": 1440, "height": 900}) as context:
        page = context.new_page()
        page.goto(reading.at("/jobs", b=board.key))
        expect(page.locator("table.jobs .percent")).to_have_text("33 %")
        board.fail("w1", id, "CsvError", "row 4 has 7 columns, not 4", token=token, noretry=True)
        page.reload()
        expect(page.locator("table.jobs")).to_contain_text("CsvError")
        expect(page.locator("table.jobs progress")).to_have_count(0)
        expect(page.locator("table.jobs a.id")).to_have_attribute("title", id)
        assert page.locator(".wide").evaluate("one => one.scrollWidth <= one.clientWidth")


def test_what_exists_is_suggested(page: Page, reading: Console, mixed: Board):
    page.goto(reading.at("/board", b=mixed.key))
    for typed, expected in [
        ("ioe", "kind:IOError"),
        ("failed ev", "failed tag:even"),
        ("failed\u3000ev", "failed\u3000tag:even"),
        ("q1", "queue:q1"),
        ("w2", "worker:w2"),
    ]:
        check_suggestion(page, typed, expected)


def check_suggestion(page: Page, typed: str, expected: str) -> None:
    """What is typed into Find has one suggestion, this one."""
    page.get_by_role("banner").get_by_role("combobox").fill(typed)
    offered = page.locator("#suggestions option")
    expect(offered).to_have_count(1)
    expect(offered.first).to_have_attribute("value", expected)


def test_what_the_newest_jobs_have_is_suggested(page: Page, reading: Console, mixed: Board):
    """Names, users, groups, signals and meta; fields and texts of payloads when nothing else fits."""
    mixed.post('{"to": {"mail": "ann@example.com"}, "order": 4711}', id="o", meta={"region": "eu west"})
    mixed.post("plain note")
    mixed.call("POST", "x", "ID", "gate", "AWAIT", 1, "approved")
    page.goto(reading.at("/board", b=mixed.key))
    find = page.get_by_role("banner").get_by_role("combobox")
    for typed, expected in [
        ("sms", "name:sms"),
        ("user:u2", "user:u2"),
        ("failed U1", "failed user:u1"),
        ("g3", "group:g3"),
        ("appr", "awaits:approved"),
        ("meta.", 'meta.region:"eu west"'),
        ("region", 'meta.region:"eu west"'),
        ("ann@", "payload.to.mail:ann@example.com"),
        ("payload.t", "payload.to.mail:ann@example.com"),
        ("plain", 'text:"plain note"'),
        ("running 4711", "running payload.order:4711"),
    ]:
        check_suggestion(page, typed, expected)
    for search in ['meta.region:"eu west"', "text:ann@example.com", "payload.to.mail:ann@example.com"]:
        find.fill(search)
        find.press("Enter")
        expect(page.locator(".chip.on")).to_contain_text(search)
        assert shown(page) == ["o"]


def test_five_tabs_to_the_first_job(page: Page, writing: Console, mixed: Board):
    for path in ["/jobs", "/failures"]:
        page.goto(writing.at(path, b=mixed.key))
        keys = ["Tab", "Tab", "Enter"] + ["Tab"] * 3
        for key in keys:
            page.keyboard.press(key)
            if page.evaluate("document.activeElement.matches('a.id')"):
                break
        else:
            raise AssertionError(f"{path}: no job after {keys}")


@pytest.mark.long
def test_a_page_is_quick_with_many_jobs(reading: Console, store: Server, board: Board):
    """Each page of a board with 200,000 jobs, also with filters that few jobs pass.

    None may cost the server as much as the posts did.
    """
    empty = store.cpu()
    for start in range(0, 200_000, 10_000):
        board.mpost(["x"] * 10_000, queue=f"q{start % 3}", name="bulk", tags=["t"])
    board.post(id="needle", name="rare", group="g")
    filled = store.cpu() - empty
    pages = {
        "/board": {}, "/jobs": {}, "/stats": {}, "/job": {"id": "needle"}, "/find": {"q": "bulk"},
    }  # fmt: skip
    slow = [("/jobs", {"group": "g"}), ("/jobs", {"name": "bulk", "user": "nobody"}), *pages.items()]
    for path, query in slow:
        before = store.cpu()
        answer = reading.ask(reading.at(path, b=board.key, **query))
        took = store.cpu() - before
        assert answer.status == 200 and took < filled, f"{path} {query}: {took:.2f} s of {filled:.2f}"
        assert answer.body.count("<tr") < 120
