"""Failed jobs: what failed together, the error of one, another payload and a new try."""

from __future__ import annotations

import re
import signal

import pytest
from harness import Board
from playwright.sync_api import Page, expect

from .process import Console

TRACE = """Traceback (most recent call last):
  File "/app/mails.py", line 12, in send
    server.login()
ConnectionError: mail server 7 said no
"""


def fail(board: Board, id: str, kind: str, message: str, trace: str = "", payload: str = "{}") -> None:
    board.post(payload, id=id, name="send-mail", queue="mails")
    token = board.claim_one("w1", id=id)["token"]
    if trace:
        board.heartbeat("w1", id, token=token, log=trace)
    board.fail("w1", id, kind, message, token=token, noretry=True)


@pytest.fixture
def failures(board: Board) -> Board:
    """Three that are the same, one of the kind with another message, and `last`, of another kind."""
    for number in range(3):
        fail(board, f"same-{number}", "ConnectionError", f"mail server {number} said no")
    fail(board, "other", "ConnectionError", "no route")
    fail(board, "last", "ValueError", "no number", TRACE, '{"to": "ann@example.com"}')
    return board


def test_newest_first_with_message_and_payload(page: Page, reading: Console, failures: Board):
    page.goto(reading.at("/failures", b=failures.key))
    cards = page.locator("#jobs > li")
    expect(cards).to_have_count(5)
    for text in [
        "last",
        "ValueError: no number",
        '{"to": "ann@example.com"}',
        "send-mail",
        "mails",
        "1 attempt",
    ]:
        expect(cards.first).to_contain_text(text)
    ids = page.locator("#jobs .id").all_inner_texts()
    assert ids == ["last", "other", "same-2", "same-1", "same-0"]
    expect(page.get_by_role("link", name=re.compile("Requeue|Delete"))).to_have_count(0)


def test_a_long_list_goes_on(page: Page, reading: Console, board: Board):
    board.post_many(120)
    for job in board.claim("w1", count=120):
        board.fail("w1", job["id"], "IOError", "broken", token=job["token"], noretry=True)
    page.goto(reading.at("/failures", b=board.key))
    expect(page.locator("#jobs > li")).to_have_count(50)
    expect(page.locator("#alike .figure")).to_have_text("120")
    found = page.locator("#jobs .id").all_inner_texts()
    while page.get_by_role("link", name="Next page").count():
        page.get_by_role("link", name="Next page").click()
        page.wait_for_load_state()
        found += page.locator("#jobs .id").all_inner_texts()
    assert found == [job["id"] for job in board.list_all(state="failed", rev=True, fields=["id"])]


def test_what_is_the_same_stands_together(page: Page, reading: Console, failures: Board):
    page.goto(reading.at("/failures", b=failures.key))
    groups = page.locator("#alike li")
    expect(groups).to_have_count(3)
    expect(groups.first.locator(".figure")).to_have_text("3")
    expect(groups.first).to_contain_text("ConnectionError: mail server 2 said no")
    groups.first.get_by_role("link").click()
    expect(page.get_by_role("heading", level=2)).to_have_text("3 jobs with this failure")
    page.wait_for_load_state()
    assert page.locator("#jobs .id").all_inner_texts() == ["same-2", "same-1", "same-0"]
    page.get_by_role("link", name="any message").click()
    expect(page.locator("#jobs > li")).to_have_count(4)
    page.get_by_role("link", name="show all failures").click()
    expect(page.locator("#jobs > li")).to_have_count(5)


def test_groups_come_and_go_while_the_page_is_open(page: Page, reading: Console, board: Board):
    page.goto(reading.at("/failures", b=board.key))
    expect(page.locator("#pulse")).to_have_text("live")
    for id in ["a", "b"]:
        fail(board, id, "IOError", "broken")
    expect(page.locator(".groups li")).to_have_count(1)
    expect(page.locator("#alike")).to_contain_text("The same failure")
    board.requeue("a", "b")
    expect(page.locator("#list")).to_contain_text("There is no failed job.")
    expect(page.locator("#alike")).to_have_text("")


def test_the_course_of_each_group(page: Page, consoles, fresh_server):
    """Bars over the time of all failures that are looked at, so that groups can be compared."""
    server = fresh_server("clock", "manual")
    board = server.board("jobs")
    for number in range(4):
        fail(board, f"a{number}", "IOError", "no disk")
        server.clock.advance(60 * 60_000)
    for number in range(3):
        fail(board, f"b{number}", "ValueError", "no number")
    page.goto(consoles(server).at("/failures", b="jobs"))
    course = page.locator("#alike svg.course")
    told = "Failures over 4 h: {} in all, at most {} in 10 min"
    expect(course.nth(0)).to_have_attribute("aria-label", told.format(4, 1))
    expect(course.nth(1)).to_have_attribute("aria-label", told.format(3, 3))
    expect(course.nth(0).locator("rect")).to_have_count(4)
    last = course.nth(1).locator("rect")
    expect(last).to_have_count(1)
    expect(last).to_have_attribute("x", "115")


def test_from_one_failure_to_the_next(page: Page, consoles, fresh_server):
    """By links and by keys, also among failures of one millisecond."""
    server = fresh_server("clock", "manual")
    board = server.board("jobs")
    for id in "abc":
        fail(board, id, "IOError", "m")
    server.clock.advance(1000)
    fail(board, "d", "IOError", "m")
    board.post(id="ready")
    console = consoles(server)
    page.goto(console.at("/job", b="jobs", id="d"))
    heading = page.get_by_role("heading", level=1)
    expect(page.get_by_role("link", name="Newer failure")).to_have_count(0)
    for id in "cba":
        page.get_by_role("link", name="Older failure").click()
        expect(heading).to_have_text(f"Job {id}")
    expect(page.get_by_role("link", name="Older failure")).to_have_count(0)
    for id in "bcd":
        page.wait_for_load_state()  # the heading is there before the script that hears the keys
        page.keyboard.press("[")
        expect(heading).to_have_text(f"Job {id}")
    page.wait_for_load_state()
    page.keyboard.press("]")
    expect(heading).to_have_text("Job c")
    page.goto(console.at("/job", b="jobs", id="ready"))
    expect(page.get_by_role("navigation", name="Failures")).to_have_count(0)


@pytest.mark.parametrize(("verb", "state"), [("Requeue", "ready"), ("Delete", None)])
def test_a_group_is_requeued_or_deleted_after_a_dry_run(
    page: Page, writing: Console, failures: Board, verb: str, state: str | None
):
    before = failures.digest()
    page.goto(writing.at("/failures", b=failures.key))
    page.locator("#alike").get_by_role("link", name=f"{verb} all 3").click()
    expect(page.locator("#fits")).to_have_text("3 of 3")
    expect(page.locator("#command")).to_contain_text(
        f"JOB.{verb.upper()} {failures.key} 3 same-2 same-1 same-0"
    )
    assert failures.digest() == before
    fail(failures, "same-late", "ConnectionError", "mail server 9 said no")
    page.get_by_role("button", name=verb).click()
    expect(page.get_by_role("status")).to_have_text(f"{verb}: 3 done.")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Failed jobs")
    assert {failures.state(f"same-{number}") for number in range(3)} == {state}
    # What came after the dry run was not shown, and is left alone.
    assert (failures.state("same-late"), failures.state("other")) == ("failed", "failed")


def test_chosen_failures(page: Page, writing: Console, failures: Board):
    page.goto(writing.at("/failures", b=failures.key))
    page.get_by_label("Choose last").check()
    page.get_by_label("Choose same-1").check()
    page.get_by_role("button", name="Requeue chosen").click()
    expect(page.locator("#fits")).to_have_text("2 of 2")
    page.get_by_role("button", name="Requeue").click()
    expect(page.get_by_role("status")).to_have_text("Requeue: 2 done.")
    assert failures.count(state="failed") == 3


def test_a_job_opens_with_its_error(page: Page, reading: Console, failures: Board):
    page.goto(reading.at("/job", b=failures.key, id="last"))
    first = page.locator("main section").first
    expect(first.get_by_role("heading", level=2)).to_have_text("ValueError: no number")
    for text in ["1 attempt", "last by w1"]:
        expect(first).to_contain_text(text)
    trace = page.locator("#traceback")
    assert trace.inner_text().strip().split("\n") == TRACE.strip().split("\n")
    assert trace.evaluate("one => getComputedStyle(one).whiteSpace") == "pre"
    expect(page.locator("#history")).not_to_contain_text("\\x0a")
    first.get_by_role("link", name="Jobs with the same failure").click()
    expect(page.locator("#jobs > li")).to_have_count(1)


def test_from_the_first_page_to_the_traceback_in_two_clicks(page: Page, reading: Console, failures: Board):
    page.goto(reading.at("/", q=failures.key))
    failed = page.locator("#boards").get_by_role("row").filter(has_text=failures.key)
    failed.get_by_role("link", name="5", exact=True).click()
    page.get_by_role("link", name="last", exact=True).click()
    expect(page.locator("#traceback")).to_contain_text("ConnectionError: mail server 7 said no")


def test_a_job_that_is_done_after_a_failure_has_no_error(page: Page, reading: Console, board: Board):
    board.set(retain_complete=3_600_000)
    fail(board, "a", "IOError", "broken")
    board.requeue("a")
    board.consume("w1", "a", token=board.claim_one("w1", id="a")["token"])
    page.goto(reading.at("/job", b=board.key, id="a"))
    expect(page.locator("#now .state-line")).to_contain_text("done")
    expect(page.locator(".failure")).to_have_count(0)


def test_only_what_applies_is_offered(page: Page, writing: Console, failures: Board):
    failures.post(id="fresh")
    for id, there, absent in [
        ("last", ["Requeue", "Delete", "Edit and requeue", "Duplicate"], ["Cancel", "Release", "Change"]),
        ("fresh", ["Cancel", "Delete", "Change", "Edit payload", "Duplicate"], ["Requeue", "Release"]),
    ]:
        page.goto(writing.at("/job", b=failures.key, id=id))
        actions = page.locator("#now p.actions")
        for name in there:
            expect(actions.get_by_role("link", name=name, exact=True)).to_have_count(1)
        for name in absent:
            expect(actions.get_by_role("link", name=name, exact=True)).to_have_count(0)


def test_another_payload_and_a_new_try(page: Page, writing: Console, failures: Board):
    page.goto(writing.at("/job", b=failures.key, id="last"))
    page.get_by_role("link", name="Edit and requeue").click()
    payload = page.get_by_label("Payload")
    expect(payload).to_have_value('{"to": "ann@example.com"}')
    payload.fill('{"to":\n  "bob@example.com"}')
    before = failures.digest()
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#forecast .refused")).to_have_count(0)
    expect(page.locator("#command")).to_contain_text("bob@example.com")
    expect(page.locator("#command")).to_contain_text("1 last PAYLOAD")
    assert failures.digest() == before
    page.get_by_role("button", name="Requeue with this payload").click()
    expect(page.get_by_role("status")).to_have_text("Edited and requeued.")
    expect(page.locator("#now .state-line")).to_contain_text("ready")
    job = failures.get("last")
    assert job["payload"] == '{"to":\n  "bob@example.com"}'
    assert (job["name"], job["queue"]) == ("send-mail", "mails")


def test_a_mended_job_does_no_step_again(page: Page, writing: Console, board: Board):
    token = board.claim_one("w1", id=board.post('{"sum": "3O"}', id="refund"))["token"]
    board.step("w1", "refund", "charge", "receipt", token=token)
    board.fail("w1", "refund", "ValueError", "3O is no number", token=token, noretry=True)
    page.goto(writing.at("/job", b=board.key, id="refund"))
    page.get_by_role("link", name="Edit and requeue").click()
    page.get_by_label("Payload").fill('{"sum": 30')
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#forecast .refused")).to_contain_text("was JSON, and is no longer")
    page.go_back()
    page.get_by_label("Payload").fill('{"sum": 30}')
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#forecast .refused")).to_have_count(0)
    page.get_by_role("button", name="Requeue with this payload").click()
    expect(page.locator("#now .state-line")).to_contain_text("ready")
    job = board.get("refund", fields=["payload", "steps"])
    assert (job["payload"], job["steps"]["charge"]["value"]) == ('{"sum": 30}', "receipt")


def test_bytes_are_edited_by_their_numbers(page: Page, writing: Console, store, board: Board):
    raw = Board(store.raw_client(), board.key.encode())
    raw.post(b"\x00\xff", id=b"j")
    page.goto(writing.at("/job", b=board.key, id="j"))
    page.get_by_role("link", name="Edit payload").click()
    expect(page.get_by_label("Payload, in hexadecimal")).to_have_value("00ff")
    page.get_by_label("Payload, in hexadecimal").fill("00 fg")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("alert")).to_contain_text("pairs of hexadecimal digits")
    page.go_back()
    page.get_by_label("Payload, in hexadecimal").fill("00 fe 0d 0a")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Change the payload").click()
    expect(page.get_by_role("status")).to_have_text("Edited.")
    assert raw.get(b"j")["payload"] == b"\x00\xfe\r\n"


def test_a_job_like_one_whose_names_cannot_be_typed(page: Page, writing: Console, store, board: Board):
    raw = Board(store.raw_client(), board.key.encode())
    raw.post(
        b"x", id=b"a", name=b"n\xff", queue=b"two\nlines", group=b" g ", user=b"ann", tags=[b"red", b"a\nb"],
        meta={b"why": b"it is", b"key with space": b"v", b"note": b"one\ntwo", b"\xff": b""},
    )  # fmt: skip
    page.goto(writing.at("/post", b=board.key, **{"from": "a"}))
    page.get_by_role("textbox", name="id", exact=True).fill("b")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Post").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Job b")
    fields = ["payload", "name", "queue", "group", "user", "tags", "meta"]
    like, job = raw.get(b"b", fields=fields), raw.get(b"a", fields=fields)
    assert (sorted(like.pop("tags")), like) == (sorted(job.pop("tags")), job)


def test_what_was_not_shown_is_not_done(page: Page, writing: Console, board: Board):
    """A job that ends while its change is looked at does not run again: the question is asked anew."""
    board.set(retain_complete=3_600_000)
    board.post("old", id="j")
    page.goto(writing.at("/post", b=board.key, **{"from": "j", "edit": "1"}))
    page.get_by_label("Payload").fill("new")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#command")).to_have_text(f"JOB.UPDATE {board.key} 1 j SET PAYLOAD new")
    token = board.claim_one("w1", id="j")["token"]
    board.consume("w1", "j", token=token)
    page.get_by_role("button", name="Change the payload").click()
    expect(page.get_by_role("alert")).to_contain_text("Something has changed since this was shown")
    expect(page.locator("#command")).to_have_text(f"JOB.POST {board.key} new ID j XX")
    assert board.get("j")["state"] == "complete"
    page.get_by_role("button", name="Run again with this payload").click()
    expect(page.get_by_role("status")).to_have_text("Edited and requeued.")
    assert board.get("j")["payload"] == "new"


def test_an_impatient_click_posts_one_job(page: Page, writing: Console, store, board: Board):
    board.post()
    page.goto(writing.at("/post", b=board.key))
    page.get_by_role("textbox", name="name", exact=True).fill("once")
    page.get_by_role("button", name="Preview").click()
    button = page.get_by_role("button", name="Post", exact=True)
    expect(button).to_be_visible()
    page.wait_for_load_state()  # the button is there before the script that hears the clicks
    box = button.bounding_box()
    assert box
    store.process.send_signal(signal.SIGSTOP)
    try:
        for _ in range(3):
            page.mouse.click(box["x"] + 5, box["y"] + 5)
            page.wait_for_timeout(300)
    finally:
        store.process.send_signal(signal.SIGCONT)
    expect(page.get_by_role("status")).to_have_text("Posted.")
    assert board.count(name="once") == 1


def test_a_job_like_an_earlier_one_and_a_new_one(page: Page, writing: Console, board: Board):
    board.post(
        "x\ny", id="a", name="mail", queue="q", priority=7, tags=["red", "dark blue"], meta={"why": "it is"}
    )
    page.goto(writing.at("/job", b=board.key, id="a"))
    page.get_by_role("link", name="Duplicate").click()
    page.get_by_role("textbox", name="id", exact=True).fill("b")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Post").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Job b")
    fields = ["payload", "name", "queue", "priority", "tags", "meta"]
    assert board.get("a", fields=fields) == board.get("b", fields=fields)
    page.goto(writing.at("/board", b=board.key))
    page.get_by_role("link", name="Post a job").click()
    page.get_by_label("Payload").fill("new")
    page.get_by_label("delay").fill("2h")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Post").click()
    expect(page.locator("#now .state-line")).to_contain_text("scheduled")
    [job] = board.list_all(state="scheduled", fields=["payload", "queue"])
    assert job == {"payload": "new", "queue": "default"}
