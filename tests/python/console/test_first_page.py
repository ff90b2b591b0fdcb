"""The first page: how the boards go, line by line, and what needs a person."""

from __future__ import annotations

import re
import time

import pytest
import redis
from aof import commands, log_of
from harness import Board, Server, wait_until
from playwright.sync_api import Locator, Page, expect

from .process import Console

LATER = 3_600_000
"""A delay, ms. A job that is ready for ten seconds needs a worker, and a busy machine may take that long."""


def figure(page: Page, word: str) -> Locator:
    return (
        page.locator("#activity li")
        .filter(has_text=re.compile(rf"^\s*\S+( \S+)? {word}$"))
        .locator(".figure")
    )


def needs(page: Page) -> Locator:
    return page.locator("#needs li")


def test_what_is_done_and_fails_a_minute(page: Page, reading: Console, board: Board):
    """Drawn look by look while the page is open, for all boards and for each."""
    board.post_many(40)
    page.goto(reading.at("/", q=board.key))
    expect(figure(page, "ready")).to_have_text("40")
    expect(figure(page, "done a minute")).to_have_text("–")
    for job in board.claim("w1", count=30):
        board.consume("w1", job["id"], token=job["token"])
    for job in board.claim("w1", count=10):
        board.fail("w1", job["id"], "IOError", "m", token=job["token"], noretry=True)
    line = page.locator("#activity svg")
    drawn = re.compile(r"done: \S+ now, [1-9]\S* at most; failed: \S+ now, [1-9]\S* at most")
    expect(line).to_have_attribute("aria-label", drawn)
    expect(page.locator("#boards svg.spark")).to_have_attribute("aria-label", drawn)
    expect(figure(page, "failed")).to_have_text("10")
    expect(line.locator("path.line")).to_have_count(2)


def test_a_list_of_some_boards_draws_these_alone(reading: Console, store: Server, board: Board):
    idle = store.board(f"idle-{board.key}")
    idle.post()
    headers = {"Cookie": reading.ask("/").cookie}
    for _ in range(3):
        board.post_many(50)
        for job in board.claim("w1", count=50):
            board.consume("w1", job["id"], token=job["token"])
        assert reading.ask(f"/?q={board.key}", headers=headers).status == 200
        time.sleep(4.1)  # no two samples are nearer
    address = f"/?q={idle.key}"
    drawn = lambda: re.findall(r'data-values="([^"]*)"', reading.ask(address, headers=headers).body)  # noqa: E731
    done = wait_until(drawn, what="two samples of the idle board")[0]
    idle.client.delete(idle.key)
    assert set(done.split(",")) <= {"", "0"}, done


def test_nothing_needs_a_person(page: Page, reading: Console, board: Board):
    board.post(delay=LATER)
    page.goto(reading.at("/", q=board.key))
    expect(page.locator("#needs")).to_contain_text("Nothing needs you.")


def test_pauses_failures_and_bounds(page: Page, reading: Console, board: Board):
    board.set(max_jobs=10)
    board.post_many(9, queue="q")
    board.pause(queue="q")
    page.goto(reading.at("/", q=board.key))
    told = needs(page)
    expect(told).to_have_count(2)
    expect(told.filter(has_text="The queue q is paused, 9 ready")).to_have_count(1)
    expect(told.filter(has_text="9 of 10 that max-jobs allows")).to_have_count(1)
    board.resume(queue="q")
    for job in board.claim("w1", queues=["q"], count=3):
        board.fail("w1", job["id"], "IOError", f"disk {job['id']} is full", token=job["token"], noretry=True)
    board.claim("w1", queues=["q"])
    growing = told.filter(has_text="3 in the last 15 minutes, none in the 15 before")
    expect(growing).to_contain_text("IOError: disk")
    board.pause()
    expect(told.filter(has_text="The board is paused")).to_have_count(1)
    growing.get_by_role("link", name="Failed jobs").click()
    expect(page.locator("#jobs > li")).to_have_count(3)


def test_the_page_of_a_board_has_all_that_the_first_page_cuts(page: Page, reading: Console, board: Board):
    for number in range(9):
        fail_some(board, 1, f"Error{number}")
    page.goto(reading.at("/", q=board.key))
    expect(needs(page)).to_have_count(8)
    expect(page.locator("#needs")).to_contain_text("1 more, on the pages of their boards.")
    page.goto(reading.at("/board", b=board.key))
    expect(needs(page)).to_have_count(9)


def test_a_small_bound_is_not_near_with_the_first_job(page: Page, reading: Console, board: Board):
    board.set(max_jobs=50)
    board.post_many(40, delay=LATER)
    page.goto(reading.at("/", q=board.key))
    expect(page.locator("#needs")).to_contain_text("Nothing needs you.")
    board.post(delay=LATER)
    expect(needs(page)).to_contain_text("41 of 50 that max-jobs allows")


QUARTER = 900_000


def fail_some(board: Board, count: int, kind: str, message: str = "m", **post: object) -> None:
    """Each fails for good."""
    board.post_many(count, **post)
    for job in board.claim("w1", queues=[post.get("queue", "default")], count=count):
        board.fail("w1", job["id"], kind, message, token=job["token"], noretry=True)


def test_a_failure_is_set_aside_until_it_grows(page: Page, consoles, store, board: Board, tmp_path):
    """Over a restart of the console with --history, for all users; and listed again by hand."""
    start = lambda: consoles(store, "--write", "--history", str(tmp_path), "--board", board.key)  # noqa: E731
    fail_some(board, 4, "IOError", "disk 7 is full")
    fail_some(board, 1, "Other")
    console = start()
    page.goto(console.at("/board", b=board.key))
    io = needs(page).filter(has_text="IOError")
    io.get_by_role("link", name="Set aside").click()
    expect(page.locator("#forecast")).to_contain_text("It fails 4 times in 15 minutes now.")
    expect(page.locator("#forecast")).to_contain_text("until it fails more than 6 times")
    page.get_by_role("button", name="Set aside").click()
    group = page.locator(".groups li").filter(has_text="IOError")
    expect(group).to_contain_text("set aside by default")
    page.goto(console.at("/audit", b=board.key))
    expect(page.locator("#audit")).to_contain_text("the failure IOError: disk # is full")
    console.close()
    console = start()
    page.goto(console.at("/board", b=board.key))
    expect(needs(page)).to_have_count(2)
    expect(needs(page).last).to_contain_text("A failure that goes on is set aside until it grows")
    expect(io).to_have_count(0)
    fail_some(board, 2, "IOError", "disk 8 is full")
    page.reload()
    expect(needs(page)).to_have_count(2)
    fail_some(board, 1, "IOError", "disk 9 is full")
    page.reload()
    expect(io).to_contain_text("7 in the last 15 minutes")
    expect(io).to_contain_text("default had set it aside, and it has grown")
    io.get_by_role("link", name="Set aside").click()
    page.get_by_role("button", name="Set aside").click()
    group.get_by_role("link", name="Bring back").click()
    page.get_by_role("button", name="Bring back").click()
    page.goto(console.at("/board", b=board.key))
    expect(io).to_contain_text("7 in the last 15 minutes")


@pytest.fixture
def timed(fresh_server) -> Board:
    """A board whose clock stands 25 minutes before the real one, by which the console counts."""
    server: Server = fresh_server("clock", "manual")
    server.clock.set(time.time_ns() // 1_000_000 - 1_500_000)
    board = server.board("jobs")
    board.server = server
    return board


def test_kinds_of_failure_that_grow(page: Page, consoles, timed: Board):
    """Beside the quarter of an hour before: those that grow or are new come first, others below all else."""
    fail_some(timed, 3, "Grows", "m 3")
    fail_some(timed, 5, "Shrinks")
    fail_some(timed, 2, "Stays")
    fail_some(timed, 9, "Ended")
    timed.server.clock.advance(QUARTER + 60_000)
    fail_some(timed, 5, "Grows", "m 7")
    fail_some(timed, 4, "Shrinks")
    fail_some(timed, 2, "Stays")
    fail_some(timed, 1, "New")
    timed.post_many(1, queue="odd")
    timed.pause(queue="odd")
    page.goto(consoles(timed.server).url)
    expect(needs(page)).to_have_text([
        re.compile("The queue odd is paused"),
        re.compile("Grows: m 7 – 5 in the last 15 minutes, 3 in the 15 before Failed jobs$"),
        re.compile("New: m – 1 in the last 15 minutes, none in the 15 before Failed jobs$"),
        re.compile(r"Shrinks: m – 4 in the last 15 minutes, 5 in the 15 before \(not growing\)"),
        re.compile(r"Stays: m – 2 in the last 15 minutes, 2 in the 15 before \(not growing\)"),
    ])  # fmt: skip
    # A quarter of an hour later none of them fails any more.
    timed.server.clock.advance(QUARTER + 60_000)
    expect(needs(page)).to_have_count(1)


def test_more_failures_than_are_read_are_at_least_as_many(page: Page, consoles, timed: Board):
    """Of each quarter the newest 200 are read, and the server counts the others."""
    for _ in range(30):
        fail_some(timed, 10, "Storm")
        timed.server.clock.advance(10_000)
    timed.server.clock.advance(QUARTER)
    for _ in range(31):
        fail_some(timed, 10, "Storm")
        timed.server.clock.advance(1_000)
    page.goto(consoles(timed.server).url)
    storm = needs(page).filter(has_text="Storm")
    expect(storm).to_contain_text("at least 200 in the last 15 minutes, at least 200 in the 15 before Failed")
    fail_some(timed, 199, "Other")
    expect(storm).to_contain_text("at least 1 in the last 15 minutes, at least 200 in the 15 before Failed")
    expect(needs(page).filter(has_text="Other")).to_contain_text(
        "at least 199 in the last 15 minutes, none of the newest 200 in the 15 before"
    )


def test_a_failure_that_comes_in_bursts_stays_aside(page: Page, consoles, timed: Board):
    """A burst of a second says nothing about a quarter of an hour, whose failures the server counts."""
    for _ in range(40):
        fail_some(timed, 10, "Storm")
        timed.server.clock.advance(10_000)
    console = consoles(timed.server, "--write")
    page.goto(console.at("/board", b=timed.key))
    needs(page).filter(has_text="Storm").get_by_role("link", name="Set aside").click()
    expect(page.locator("#forecast")).to_contain_text("It fails 400 times in 15 minutes now.")
    page.get_by_role("button", name="Set aside").click()
    fail_some(timed, 200, "Storm")
    page.goto(console.at("/board", b=timed.key))
    expect(needs(page)).to_contain_text("A failure that goes on is set aside until it grows")
    fail_some(timed, 1, "Storm")
    page.reload()
    expect(needs(page)).to_contain_text("had set it aside, and it has grown")


def test_failures_in_dead_queues_count(page: Page, consoles, timed: Board):
    """Whichever dead queue they are in, with those that stayed where they failed."""
    for queue in ["mails", "faxes"]:
        timed.set(queue=queue, dead_queue=f"unsent-{queue}")
    fail_some(timed, 3, "SMTPError", "mailbox 7 is full", queue="mails")
    timed.server.clock.advance(QUARTER + 60_000)
    fail_some(timed, 5, "SMTPError", "mailbox 8 is full", queue="mails")
    fail_some(timed, 2, "FaxError", queue="faxes")
    fail_some(timed, 1, "FaxError")
    page.goto(consoles(timed.server).url)
    mails = needs(page).filter(has_text="SMTPError")
    expect(mails).to_contain_text("5 in the last 15 minutes, 3 in the 15 before; 5 moved to a dead queue")
    expect(needs(page).filter(has_text="FaxError")).to_contain_text(
        "3 in the last 15 minutes, none in the 15 before; 2 moved to a dead queue"
    )
    mails.get_by_role("link", name="Jobs", exact=True).click()
    expect(page.locator("table.jobs tbody tr")).to_have_count(8)


def test_a_dead_queue_is_found_behind_other_jobs_and_queues(page: Page, consoles, timed: Board):
    """The queues name their dead queues: neither what else waits there nor other idle queues hide it."""
    for number in range(20):
        timed.post(queue=f"a{number:02}")
    timed.set(queue="mails", dead_queue="unsent")
    timed.post_many(3, queue="unsent", priority=9)
    fail_some(timed, 2, "SMTPError", queue="mails")
    page.goto(consoles(timed.server).at("/board", b=timed.key))
    dead = needs(page).filter(has_text="2 dead jobs wait in the queue unsent: 5 ready")
    expect(dead).to_have_count(1)
    # A worker that takes them is at it.
    timed.claim("w2", queues=["unsent"])
    expect(dead).to_have_count(0)


def test_a_queue_that_nobody_serves(page: Page, consoles, fresh_server):
    server: Server = fresh_server("clock", "manual")
    board = server.board("jobs")
    board.post_many(268, queue="lost")
    board.post_many(5, queue="served")
    server.clock.advance(540_000)
    board.claim("w1", queues=["served"])
    page.goto(consoles(server).url)
    expect(needs(page)).to_have_count(1)
    expect(needs(page)).to_contain_text(
        "No worker takes jobs of the queue lost: 268 ready, the oldest for 9 min"
    )
    board.claim("w1", queues=["lost"])
    expect(page.locator("#needs")).to_contain_text("Nothing needs you.")


def test_many_queues_that_need_the_same_hide_nothing_else(page: Page, consoles, fresh_server):
    """Three have a line each, the others share one that leads to them; also behind the first thousand."""
    server: Server = fresh_server("clock", "manual")
    board = server.board("jobs")
    for number in range(1010):
        board.post(queue=f"lost-{number:04}")
    board.post_many(9, queue="z")
    for number in range(6):
        board.pause(queue=f"held-{number}")
    server.clock.advance(60_000)
    board.call("POST", "x", "ID", "gate", "AWAIT", 1, "approved")
    fail_some(board, 2, "IOError", queue="default")
    page.goto(consoles(server, "--write").at("/board", b="jobs"))
    told = needs(page)
    expect(told).to_have_count(11)
    expect(told.nth(3)).to_have_text(re.compile("^3 further queues are paused, 0 ready Queues$"))
    expect(told.nth(4)).to_contain_text("No worker takes jobs of the queue z: 9 ready, the oldest for 1 min")
    further = told.nth(7)
    expect(further).to_contain_text(re.compile("No worker takes jobs of (99|100)[0-9] further queues"))
    expect(told.nth(8)).to_contain_text("1 job waits for the signal approved")
    expect(told.nth(9)).to_contain_text("IOError")
    expect(told.nth(10)).to_contain_text("others may have ready jobs as well")
    further.get_by_role("link", name="Queues").click()
    rows = page.locator("#queues tbody tr")
    expect(rows).to_have_count(100)
    expect(rows.filter(has_text="no worker")).to_have_count(100)
    page.get_by_label("Sorted by").select_option("most ready")
    page.get_by_role("button", name="Show").click()
    expect(rows.first.locator("th")).to_have_text(re.compile(r"^z\s"))
    page.get_by_label("Only").select_option("paused")
    page.get_by_role("searchbox", name="Name").fill("HELD-4")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#queues > p")).to_contain_text("1 queue, among 1")
    expect(rows).to_have_count(1)


@pytest.mark.parametrize("right", ["+scan", ""])
def test_without_scan_boards_are_opened_by_name(
    page: Page, consoles, store: Server, board: Board, right: str
):
    board.post()
    rules = [f"%R~{board.key}*", "-@all", "+job.info", *([right] if right else [])]
    console = consoles(store, "--bind", "0.0.0.0")
    with store.connect() as client:
        client.execute_command("ACL", "SETUSER", "obs", "reset", "on", ">secret", *rules)
        try:
            page.goto(console.url)
            page.get_by_label("User").fill("obs")
            page.get_by_label("Password").fill("secret")
            page.get_by_role("button", name="Sign in").click()
            if not right:
                expect(page.locator("main")).to_contain_text("may not look for boards")
            else:
                expect(page.locator("#needs")).to_contain_text("something may be missing here")
            page.get_by_label("Open the board").fill(board.key)
            page.get_by_role("button", name="Open").click()
            expect(page.get_by_role("heading", level=1)).to_have_text(f"Board {board.key}")
        finally:
            client.execute_command("ACL", "DELUSER", "obs")


def test_dead_jobs_wait_and_are_sent_back(page: Page, consoles, fresh_server):
    """From the first page to all of them back in their queue."""
    server: Server = fresh_server("clock", "manual")
    board = server.board("jobs")
    board.set(queue="mails", dead_queue="unsent")
    board.post_many(3, queue="mails")
    for job in board.claim("w1", queues=["mails"], count=3):
        board.fail("w1", job["id"], "SMTPError", "mailbox full", token=job["token"], noretry=True)
    board.post(queue="unsent", id="fresh", priority=-1)
    server.clock.advance(540_000)
    page.goto(consoles(server, "--write").url)
    dead = needs(page).filter(has_text="3 dead jobs wait in the queue unsent: 4 ready, the oldest for 9 min")
    dead.get_by_role("link", name="Jobs", exact=True).click()
    page.locator("table.jobs tbody a").first.click()
    expect(page.locator("#record")).to_contain_text("mails, 1 attempts, until")
    # Its attempts count anew in the dead queue.
    expect(page.locator("#now .failure p").first).to_contain_text(
        "It failed in the queue mails and moved here, w1, 20"
    )
    expect(page.locator("#now .failure p").first).to_contain_text("10 retries left.")
    expect(page.locator("#history")).to_contain_text("An earlier attempt w1")
    expect(page.get_by_role("link", name="Send back")).to_be_visible()
    page.go_back()
    page.get_by_role("link", name="Send back").click()
    expect(page.locator("#command")).to_contain_text("ORIGIN")
    page.get_by_role("button", name="Send back").click()
    expect(page.locator("main")).to_contain_text("3")
    assert board.count(queue="mails") == 3 and board.get("fresh")["queue"] == "unsent"


def test_jobs_that_wait_for_a_signal(page: Page, reading: Console, board: Board):
    """Counted by signal, and listed by it."""
    signal = "<b>approved</b>"
    for id in ["a", "b"]:
        board.call("POST", "x", "ID", id, "AWAIT", 1, signal)
    board.call("POST", "x", "ID", "c", "AWAIT", 1, "paid")
    page.goto(reading.at("/", q=board.key))
    expect(needs(page)).to_have_count(2)
    told = needs(page).filter(has_text=f"2 jobs wait for the signal {signal}, the oldest since 20")
    told.get_by_role("link", name="Jobs", exact=True).click()
    expect(page.locator("table.jobs tbody tr")).to_have_count(2)
    page.goto(reading.at("/", q=board.key))
    board.signal("paid", "c")
    expect(needs(page)).to_have_count(1)


def test_a_signal_is_seen_behind_many_blocked_jobs(page: Page, reading: Console, board: Board):
    """Of more than are looked at, the page says how many."""
    board.post(id="first")
    board.mpost(["x"] * 2500, after=["first"])
    board.call("POST", "x", "ID", "last", "AWAIT", 1, "approved")
    page.goto(reading.at("/", q=board.key))
    expect(needs(page)).to_contain_text("1 job waits for the signal approved")
    board.mpost(["x"] * 8000, after=["first"])
    told = needs(page).filter(has_text=re.compile(r"in the first 10.000 of 10.501 blocked jobs"))
    expect(told).to_have_count(1)
    told.get_by_role("link", name="Jobs", exact=True).click()
    expect(page.locator(".chip.on")).to_contain_text("blocked")


def test_a_broken_copy(page: Page, consoles, fresh_server):
    """A copy that missed a change comes before all else; that it refuses to list more is said too."""
    source: Server = fresh_server(appendonly=True, config=["aof-use-rdb-preamble no"])
    board = source.board("jobs")
    for number in range(4):
        board.post(id=f"j{number}", delay=LATER)
    source.stop()
    effects = [command.words for command in commands(log_of(source)) if command.is_effect]
    copy: Server = fresh_server("foreign-effects", "yes")
    console = consoles(copy)
    raw = copy.raw_client()
    for words in effects[:2]:
        raw.execute_command(*words)
    page.goto(console.url)
    expect(page.locator("#needs")).to_contain_text("Nothing needs you.")
    with pytest.raises(redis.ResponseError, match="BROKEN"):
        raw.execute_command(*effects[3])
    expect(needs(page).first).to_contain_text("This copy of the board is broken")
    expect(needs(page).last).to_contain_text("something may be missing here")
    expect(page.locator("#boards")).to_contain_text("broken")
    needs(page).first.get_by_role("link", name="Board", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("This copy of the board is broken")


def test_a_timer_that_lags(page: Page, consoles, timed: Board):
    timed.post()
    timed.claim("w1", lease=1000)
    page.goto(consoles(timed.server).url)
    expect(page.locator("#needs")).to_contain_text("Nothing needs you.")
    timed.server.clock.advance(6000)
    timed.claim("w1")
    lag = "Timer lag: today the server handled 1 % of deadlines 5.0 s late or later"
    expect(needs(page)).to_have_count(1)
    expect(needs(page)).to_contain_text(lag)
    needs(page).get_by_role("link", name="Statistics").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Statistics of")


def test_bytes_near_their_bound(page: Page, reading: Console, board: Board):
    board.set(max_bytes=12_000)
    board.post("x" * 5000, delay=LATER)
    page.goto(reading.at("/", q=board.key))
    expect(page.locator("#needs")).to_contain_text("Nothing needs you.")
    board.post("x" * 5000, delay=LATER)
    expect(needs(page)).to_have_count(1)
    expect(needs(page)).to_contain_text(
        "9.9 KiB of 11.7 KiB that max-bytes allows: the server refuses posts above"
    )
    needs(page).get_by_role("link", name="Settings").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Settings of")


def test_who_may_act_does_it_from_the_list(page: Page, reading: Console, writing: Console, board: Board):
    """Each with its dry run first; who only reads has no buttons."""
    board.set(queue="mails", dead_queue="unsent")
    fail_some(board, 2, "IOError")
    fail_some(board, 3, "SMTPError", queue="mails")
    board.post(queue="late")
    board.pause(queue="late")
    board.call("POST", "x", "ID", "gate", "AWAIT", 1, "approved")
    page.goto(reading.at("/", q=board.key))
    expect(needs(page)).to_have_count(5)
    expect(needs(page).locator(".button")).to_have_count(0)

    def act(text: str, button: str, shown: str) -> None:
        page.goto(writing.at("/", q=board.key))
        needs(page).filter(has_text=text).get_by_role("link", name=re.compile(f"^{button} ")).click()
        expect(page.locator("#fits")).to_have_text(shown)
        page.get_by_role("button", name=button).click()

    act("The queue late is paused", "Resume", "1 ready")
    expect(page.locator("#overview")).to_contain_text("Not paused")
    assert board.queues()["late"]["paused"] == 0
    act("IOError", "Requeue", "2 of 2")
    expect(page.get_by_role("status")).to_have_text("Requeue: 2 done.")
    assert board.count(state="ready", queue="default") == 2
    act("dead jobs wait", "Send back", "3")
    expect(page.locator("#outcome")).to_have_text("All done.")
    assert board.count(state="ready", queue="mails") == 3
    board.pause()
    act("The board is paused", "Resume", "6 ready")
    expect(page.locator("#overview")).to_contain_text("Not paused")
    page.goto(writing.at("/", q=board.key))
    needs(page).filter(has_text="approved").get_by_role("link", name="Job", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Job gate")
    expect(page.get_by_role("button", name="Approve", exact=True)).to_be_visible()


def test_a_phone_shows_first_what_needs_a_person(browser, reading: Console, board: Board):
    """Find stands in the header beside the name; the forms come last."""
    board.post()
    with browser.new_context(viewport={"width": 390, "height": 800}) as context:
        page = context.new_page()
        page.goto(reading.at("/", q=board.key))
        order = ["h1", "#needs", "#activity", "#boards", ".bar"]
        for one in order:
            expect(page.locator(f"main > {one}").first).to_be_visible()
        # At once: one after the other they may be of a page that is drawn anew meanwhile.
        top = "all => all.map(one => document.querySelector(`main > ${one}`).getBoundingClientRect().top)"
        tops = page.evaluate(top, order)
        assert tops == sorted(tops) and tops[1] < 200, tops
        page.goto(reading.at("/board", b=board.key))
        box = page.locator(".banner .find input[type=search]").bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390, box


def test_the_memory_of_the_server(page: Page, consoles, fresh_server):
    """Near its bound, and with a policy that deletes boards."""
    server: Server = fresh_server()
    board = server.board("jobs")
    board.post(delay=LATER)
    used = server.info("memory")["used_memory"]
    page.goto(consoles(server).url)
    expect(figure(page, "server memory")).to_contain_text("MiB")
    expect(page.locator("#needs")).to_contain_text("Nothing needs you.")
    with server.connect() as client:
        client.config_set("maxmemory", int(used * 1.15))
        expect(needs(page)).to_contain_text("that maxmemory allows: the server refuses posts above it")
        client.config_set("maxmemory", used * 100)
        expect(page.locator("#needs")).to_contain_text("Nothing needs you.")
        client.config_set("maxmemory-policy", "allkeys-lru")
        expect(needs(page)).to_contain_text("maxmemory-policy is allkeys-lru, set it to noeviction")
