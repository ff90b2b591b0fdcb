"""Pages of those who operate: queues, workers, types of jobs, limits and groups, schedules, settings."""

from __future__ import annotations

import re

import pytest
from harness import Board
from playwright.sync_api import Locator, Page, expect

from . import seed
from .process import Console
from .test_pages import row


@pytest.fixture
def shop(board: Board) -> Board:
    seed.shop(board)
    return board


def test_queues_by_name_and_by_need(page: Page, reading: Console, shop: Board):
    page.goto(reading.at("/queues", b=shop.key))
    for queue, counts in shop.queues().items():
        expect(row(page, queue).locator("td[data-label=ready]")).to_have_text(str(counts["ready"]))
    expect(row(page, "reports")).to_contain_text("paused")
    page.get_by_label("Sorted by").select_option("most ready")
    page.get_by_role("button", name="Show").click()
    page.wait_for_load_state()
    counts = [int(text) for text in page.locator("td[data-label=ready]").all_inner_texts()]
    assert counts == sorted(counts, reverse=True) and counts[0] > 0
    page.get_by_role("searchbox", name="Name").fill("pay")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#queues tbody tr")).to_have_count(1)


def test_many_queues_come_by_pages(page: Page, reading: Console, board: Board, store):
    names = [f"{number:0>200}" for number in range(130)]
    for name in names:
        board.post(queue=name)
    with store.configured(jobboard__max_reply=4096):
        page.goto(reading.at("/queues", b=board.key))
        expect(page.locator("#queues tbody tr")).to_have_count(100)
        page.get_by_role("link", name="Next page").click()
        expect(page.locator("#queues tbody tr")).to_have_count(30)


def test_what_each_worker_does_now(page: Page, reading: Console, shop: Board):
    page.goto(reading.at("/workers", b=shop.key))
    packer = row(page, "packer-1")
    for text in ["pack", "pack-42", "since", "25 %", "looking for a box"]:
        expect(packer).to_contain_text(text)
    expect(row(page, "mailer-1")).to_contain_text("host: web-1")
    shop.post(id="now", queue="new", name="tidy")
    shop.claim_one("new-worker", id="now")
    expect(row(page, "new-worker").locator("td[data-label='does now']")).to_contain_text("tidy now, since")


def test_who_is_registered_is_known_on_every_page(page: Page, reading: Console, board: Board):
    """Whoever holds jobs without a registration comes behind all others."""
    for number in range(120):
        board.worker("REGISTER", f"w{number:03}", role="r")
    board.post_many(2)
    board.claim_one("w119")
    board.claim_one("a")
    page.goto(reading.at("/workers", b=board.key))
    rows = page.locator("#workers tbody tr")
    expect(rows).to_have_count(100)
    expect(rows.filter(has_text="not registered")).to_have_count(0)
    page.get_by_role("link", name="More").click()
    expect(rows).to_have_count(21)
    expect(rows.filter(has_text="not registered")).to_have_count(1)
    expect(rows.last.locator("th")).to_have_text("a")
    expect(page.get_by_role("link", name="More")).to_have_count(0)


def test_a_worker_is_made_quiet_and_resumed(page: Page, writing: Console, reading: Console, board: Board):
    """Only a registered one, and only where actions are on."""
    board.worker("REGISTER", "w 1")
    board.post_many(2)
    board.claim_one("lone")
    page.goto(writing.at("/workers", b=board.key))
    expect(row(page, "lone").get_by_role("link", name="Make quiet")).to_have_count(0)
    row(page, "w 1").get_by_role("link", name="Make quiet").click()
    expect(page.locator("#command")).to_have_text(f'JOB.WORKER QUIET {board.key} "w 1"')
    page.get_by_role("button", name="Make quiet").click()
    expect(page.get_by_role("status")).to_have_text("Make quiet: done.")
    expect(row(page, "w 1").locator(".badge")).to_have_text("quiet")
    assert board.claim("w 1") == []
    row(page, "w 1").get_by_role("link", name="Resume").click()
    page.get_by_role("button", name="Resume the worker").click()
    expect(row(page, "w 1").locator(".badge")).to_have_count(0)
    assert board.claim_one("w 1")
    page.goto(reading.at("/workers", b=board.key))
    expect(row(page, "w 1")).to_be_visible()
    expect(page.get_by_role("link", name="Make quiet")).to_have_count(0)


def cell(page: Page, name: str, head: str) -> Locator:
    return row(page, name).locator(f"td[data-label='{head}']")


def test_types_of_jobs(page: Page, reading: Console, board: Board):
    board.set(retain_complete=3_600_000)
    for number in range(6):
        board.post(id=f"m{number}", name="mail")
        token = board.claim_one("w1", id=f"m{number}")["token"]
        if number < 4:
            board.consume("w1", f"m{number}", token=token)
        elif number == 4:
            board.fail("w1", "m4", "IOError", "m", token=token, noretry=True)
    board.post()
    page.goto(reading.at("/types", b=board.key))
    for head, text in [
        ("all jobs", "6"),
        ("running", "1"),
        ("done", "4"),
        ("failed", "1"),
        ("ready", "0"),
    ]:
        expect(cell(page, "mail", head)).to_have_text(text)
    expect(cell(page, "mail", "run 95 %")).to_contain_text("s")
    expect(cell(page, "without a name", "ready")).to_have_text("1")
    cell(page, "mail", "failed").get_by_role("link").click()
    expect(page.locator("table.jobs tbody tr")).to_have_count(1)


def test_types_are_counted_while_somebody_looks(page: Page, reading: Console, board: Board):
    """A second end counts again, and a job that the server has dropped meanwhile stays counted."""
    board.set(retain_complete=3_600_000)
    board.post(id="m", name="mail")
    page.goto(reading.at("/types", b=board.key))
    expect(cell(page, "mail", "ready")).to_have_text("1")
    token = board.claim_one("w1", id="m")["token"]
    board.fail("w1", "m", "IOError", "m", token=token, noretry=True)
    expect(cell(page, "mail", "failed")).to_have_text("1")
    board.requeue("m")
    token = board.claim_one("w1", id="m")["token"]
    board.consume("w1", "m", token=token)
    expect(cell(page, "mail", "done")).to_have_text("1")
    board.delete("m")
    board.post(name="mail")
    expect(cell(page, "mail", "ready")).to_have_text("1")
    expect(cell(page, "mail", "done")).to_have_text("1")
    expect(cell(page, "mail", "failed")).to_have_text("1")
    # Paces and shares need ten seconds.
    expect(cell(page, "mail", "failed %")).to_have_text(re.compile(r"^\d+ %$"))
    expect(cell(page, "mail", "done a minute")).to_have_text(re.compile(r"^(0\.[1-9]|[1-9])"))
    drawn = re.compile("done: [0-9]+ now, 1 at most; failed: [0-9]+ now, 1 at most")
    expect(cell(page, "mail", "15 minutes").locator("svg")).to_have_attribute("aria-label", drawn)


def test_done_jobs_that_the_server_does_not_keep_are_missed_aloud(page: Page, reading: Console, board: Board):
    """Without a result they go at once, as `retain-complete` has it; those with one are seen."""
    board.post_many(3, name="mail")
    page.goto(reading.at("/types", b=board.key))
    expect(page.locator("#pulse")).to_have_text("live")
    expect(page.locator("#unseen")).to_have_count(0)
    [one, two, three] = board.claim("w1", count=3)
    for job in [one, two]:
        board.consume("w1", job["id"], token=job["token"])
    board.consume("w1", three["id"], token=three["token"], result="sent")
    expect(page.locator("#unseen")).to_contain_text("Of 3 jobs done since ")
    expect(page.locator("#unseen")).to_contain_text(" 1 were seen.")
    expect(page.locator("#unseen")).to_contain_text("retain-complete, here 0 ms")
    expect(cell(page, "mail", "done")).to_have_text("1")


def test_what_limits_and_groups_hold_back(page: Page, reading: Console, board: Board):
    board.set(limit="api", concurrency=2)
    board.set(limit="slow", rate=1, rate_period=600_000, burst=1)
    board.set(queue="q", limits=["api"])
    board.set(queue="r", limits=["slow"])
    board.set(queue="q", group="acme", concurrency=1)
    board.post_many(3, queue="q", group="acme")
    board.post_many(3, queue="r")
    board.claim("w1", queues=["q"])
    board.claim("w1", queues=["r"])
    page.goto(reading.at("/limits", b=board.key))
    expect(row(page, "api", "#limits").locator("td[data-label='holds back']")).to_have_text("nothing")
    expect(row(page, "slow", "#limits")).to_contain_text("2 ready jobs: no permits until 20")
    expect(row(page, "acme", "#groups")).to_contain_text("full")
    board.post(queue="q", group="other")
    board.claim("w1", queues=["q"])
    expect(row(page, "api", "#limits")).to_contain_text("full")
    row(page, "api", "#limits").get_by_role("link", name="2 ready jobs").click()
    expect(page.locator("table.jobs tbody tr")).to_have_count(2)


def test_what_waits_behind_a_limit_in_very_many_queues(page: Page, reading: Console, board: Board):
    """Not all of them are looked at, and the page says so."""
    board.set(limit="api", concurrency=0)
    board.post(queue="a")
    board.set(queue="a", limits=["api"])
    page.goto(reading.at("/limits", b=board.key))
    expect(row(page, "api", "#limits")).to_contain_text(re.compile("(?<!at least )1 ready job: full"))
    for number in range(1000):
        board.post(queue=f"q{number}")
    page.goto(reading.at("/limits", b=board.key))
    expect(row(page, "api", "#limits")).to_contain_text("at least 1 ready job: full")
    page.goto(reading.at("/board", b=board.key))
    expect(page.locator("#needs li").last).to_contain_text("others may have ready jobs as well")
    board.claim("w1", queues=[], count=2)
    page.goto(reading.at("/limits", b=board.key))
    expect(row(page, "api", "#limits")).to_contain_text(re.compile("(?<!at least )1 ready job: full"))


def test_a_schedule_is_made_and_edited(page: Page, writing: Console, board: Board):
    page.goto(writing.at("/schedules", b=board.key))
    page.get_by_role("link", name="New schedule").click()
    page.get_by_role("textbox", name="id", exact=True).fill("nightly")
    page.get_by_label("cron").fill("30 2 * * *")
    page.get_by_label("tz").fill("Europe/Berlin")
    page.get_by_role("textbox", name="queue", exact=True).fill("reports")
    page.get_by_label("Payload").fill("{}")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#command")).to_contain_text('CRON "30 2 * * *" TZ Europe/Berlin QUEUE reports')
    assert board.info() is None or board.info()["schedules"] == 0
    page.get_by_role("button", name="Save the schedule").click()
    expect(page.get_by_role("status")).to_have_text("The schedule is made.")
    coming = page.locator("#coming time")
    expect(coming).to_have_count(5)
    assert len(set(coming.evaluate_all("all => all.map(one => one.dateTime)"))) == 5
    page.get_by_role("link", name="Edit").click()
    expect(page.get_by_label("cron")).to_have_value("30 2 * * *")
    page.get_by_role("textbox", name="queue", exact=True).fill("other")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#command")).to_have_text(f"JOB.SCHEDULE SET {board.key} nightly {{}} QUEUE other")
    page.get_by_role("button", name="Save the schedule").click()
    expect(page.locator("#record")).to_contain_text("other")
    page.get_by_role("link", name="Run now").click()
    page.get_by_role("button", name="Run the schedule now").click()
    runs = page.locator("#runs tbody tr")
    expect(runs).to_have_count(1)
    token = board.claim_one("w1", id="@nightly@1")["token"]
    board.fail("w1", "@nightly@1", "IOError", "no disk", token=token, noretry=True)
    expect(runs).to_contain_text("failed")
    expect(runs).to_contain_text("IOError: no disk")
    page.goto(writing.at("/schedules", b=board.key))
    expect(row(page, "nightly").locator("td[data-label='last run']")).to_contain_text("failed")


def test_an_emptied_field_of_a_schedule_is_refused(page: Page, writing: Console, board: Board):
    """It would stay as it is: the times that were shown would not be those of the schedule."""
    board.client.execute_command(
        "JOB.SCHEDULE",
        "SET",
        board.key,
        "s",
        "{}",
        "CRON",
        "30 2 * * *",
        "TZ",
        "Europe/Berlin",
        "QUEUE",
        "a\nb",
    )
    page.goto(writing.at("/schedule/edit", b=board.key, schedule="s"))
    page.get_by_label("tz").fill("")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("alert")).to_contain_text("Without a value tz would stay Europe/Berlin")
    page.go_back()
    page.get_by_label("tz").fill("UTC")
    page.get_by_role("button", name="Preview").click()
    # The queue, whose name a form cannot hold, stays.
    expect(page.locator("#command")).to_have_text(f"JOB.SCHEDULE SET {board.key} s {{}} TZ UTC")


def test_a_schedule_that_others_change_is_shown_again(page: Page, writing: Console, board: Board):
    command = ["JOB.SCHEDULE", "SET", board.key, "s", "{}"]
    board.client.execute_command(*command, "EVERY", "1h", "QUEUE", "a")
    page.goto(writing.at("/schedule/edit", b=board.key, schedule="s"))
    page.get_by_label("priority").fill("7")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#command")).to_have_text(f"JOB.SCHEDULE SET {board.key} s {{}} PRIORITY 7")
    board.client.execute_command(*command, "QUEUE", "b")
    page.get_by_role("button", name="Save the schedule").click()
    expect(page.get_by_role("alert")).to_contain_text("Something has changed since this was shown")
    expect(page.locator("#command")).to_contain_text("QUEUE a")
    page.get_by_role("button", name="Save the schedule").click()
    expect(page.get_by_role("status")).to_have_text("The schedule is changed.")


def test_an_interval_shows_its_coming_runs(page: Page, reading: Console, board: Board):
    board.client.execute_command("JOB.SCHEDULE", "SET", board.key, "tick", "x", "EVERY", "1h")
    page.goto(reading.at("/schedule", b=board.key, schedule="tick"))
    expect(page.locator("#coming time")).to_have_count(5)
    expect(page.locator("#record")).to_contain_text("1 h")
    expect(page.locator("#runs")).to_contain_text("None yet")
    assert reading.ask(reading.at("/schedule", b=board.key, schedule="no")).status == 404


def test_the_coming_runs_of_an_interval(page: Page, reading: Console, board: Board):
    """As many as may still come, each an interval after the one before it."""
    board.client.execute_command(
        "JOB.SCHEDULE", "SET", board.key, "s", "x", "EVERY", 900_000, "MAX", 3, "START", 3_600_000
    )
    page.goto(reading.at("/schedule", b=board.key, schedule="s"))
    times = page.locator("#coming li time").evaluate_all(
        "all => all.map(one => Date.parse(one.getAttribute('datetime')))"
    )
    [first, *_] = times
    assert times == [first, first + 900_000, first + 1_800_000]


def test_a_cron_expression_shows_its_times_before_it_is_saved(page: Page, writing: Console, board: Board):
    """Five, as the server will find them; a wrong one says why."""
    page.goto(writing.at("/schedule/edit", b=board.key))
    page.get_by_role("textbox", name="id", exact=True).fill("s")
    page.get_by_label("cron").fill("0 9 1 1 *")
    page.get_by_label("tz").fill("Europe/Berlin")
    page.get_by_role("button", name="Preview").click()
    times = page.locator("#foreseen time")
    expect(times).to_have_count(5)
    all = times.evaluate_all("all => all.map(one => one.dateTime)")
    assert all == sorted(all) and {at[4:] for at in all} == {"-01-01T08:00:00Z"}
    page.get_by_role("button", name="Save the schedule").click()
    expect(page.locator("#coming time")).to_have_count(5)
    assert page.locator("#coming time").evaluate_all("all => all.map(one => one.dateTime)") == all
    for cron, why in [
        ("61 * * * *", "This is no cron expression: "),
        ("0 0 30 2 *", "no time that ever comes"),
    ]:
        page.goto(writing.at("/schedule/edit", b=board.key, schedule="s"))
        page.get_by_label("cron").fill(cron)
        page.get_by_role("button", name="Preview").click()
        expect(page.locator("#forecast .refused")).to_contain_text(why)


def test_a_schedule_that_ends_shows_no_runs_behind_its_end(page: Page, reading: Console, board: Board):
    board.client.execute_command("JOB.SCHEDULE", "SET", board.key, "few", "x", "CRON", "0 * * * *", "MAX", 3)
    page.goto(reading.at("/schedule", b=board.key, schedule="few"))
    expect(page.locator("#coming time")).to_have_count(3)


def test_settings_have_groups_units_and_origins(page: Page, reading: Console, board: Board):
    board.set(lease=90_000, max_bytes=1 << 20)
    page.goto(reading.at("/settings", b=board.key))
    lease = row(page, "lease")
    expect(lease.locator("td[data-label='in words']")).to_have_text("1 min 30 s")
    expect(lease.locator("td[data-label='set by']")).to_contain_text("board")
    expect(row(page, "max-bytes").locator("td[data-label='in words']")).to_have_text("1.0 MiB")
    expect(row(page, "timeout").locator("td[data-label='in words']")).to_have_text("no limit")
    expect(row(page, "retries").locator("td[data-label='set by']")).to_contain_text("default")
    headings = page.locator("tr.heading").all_inner_texts()
    assert headings[:2] == ["Leases and time", "Retries"] and "Others" not in headings


def test_beyond_the_sample_all_jobs_of_a_type_are_counted(page: Page, reading: Console, board: Board):
    board.post_many(700, name="mail")
    page.goto(reading.at("/types", b=board.key))
    expect(cell(page, "mail", "ready")).to_have_text("≥ 500")
    expect(cell(page, "mail", "all jobs")).to_have_text("700")
