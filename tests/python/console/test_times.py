"""Times in the zone of the reader, plots that leave out what nobody saw, and a day of samples."""

from __future__ import annotations

import datetime
import json
import re

import pytest
from harness import Board, Server, wait_until
from playwright.sync_api import Browser, Page, expect

from .process import Console


def test_times_are_those_of_the_reader(browser: Browser, reading: Console, board: Board):
    board.post(id="j", delay=3_600_000)
    posted = datetime.datetime.fromtimestamp(board.get("j")["posted"] / 1000, datetime.timezone.utc)
    here = posted.astimezone(datetime.timezone(datetime.timedelta(hours=9)))
    with browser.new_context(timezone_id="Asia/Tokyo") as context:
        page = context.new_page()
        page.goto(reading.at("/job", b=board.key, id="j"))
        first = page.locator("#history time").first
        expect(first).to_have_text(here.strftime("%Y-%m-%d %H:%M:%S"))
        expect(first).to_have_attribute("title", posted.strftime("%Y-%m-%d %H:%M:%S UTC"))
        expect(page.locator("#explain")).not_to_contain_text("UTC")
        expect(page.locator("#pulse")).to_have_text("live")
        board.update("j", log="told anew")
        expect(page.locator("#history")).to_contain_text("told anew")
        assert all("UTC" not in text for text in page.locator("time").all_inner_texts())
        page.goto(reading.at("/jobs", b=board.key))
        expect(page.locator("tbody time")).to_have_attribute(
            "title", re.compile(r"^20\S+ \S+, 20\S+ \S+ UTC$")
        )
        page.goto(reading.at("/board", b=board.key))
        tick = page.locator("#pace [data-at]").last
        # At once: the page may draw it anew meanwhile.
        at, told = tick.evaluate("one => [Number(one.dataset.at), one.textContent]")
        at = datetime.datetime.fromtimestamp(at / 1000, datetime.timezone.utc)
        assert told == (at + datetime.timedelta(hours=9)).strftime("%H:%M:%S")
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(reading.at("/job", b=board.key, id="j"))
        expect(page.locator("#history time").first).to_have_text(posted.strftime("%Y-%m-%d %H:%M:%S UTC"))


def line(board: Board, at: int, done: int) -> str:
    key = board.key.encode().hex()
    return json.dumps({"at": at, "board": key, "ready": 1, "running": 2, "done": done, "failed": 0}) + "\n"


def test_a_day_of_samples_outlives_the_console(page: Page, consoles, store: Server, board: Board, tmp_path):
    """With a gap in it, which stays one; what is a day old goes."""
    board.post()
    now = int(datetime.datetime.now().timestamp() * 1000)
    today = datetime.datetime.fromtimestamp(now / 1000, datetime.timezone.utc)
    times = [now - 3_600_000 + step * 60_000 for step in [*range(10), *range(40, 50)]]
    days: dict[str, str] = {}
    for number, at in enumerate([now - 90_000_000, *times]):
        day = datetime.datetime.fromtimestamp(at / 1000, datetime.timezone.utc).strftime("%Y-%m-%d")
        days[day] = days.get(day, "") + line(board, at, number) + "no line\n"
    for day, text in days.items():
        (tmp_path / f"jobboard-{day}.jsonl").write_text(text)
    old = tmp_path / f"jobboard-{(today - datetime.timedelta(days=3)).strftime('%Y-%m-%d')}.jsonl"
    old.write_text("")
    console = consoles(store, "--history", str(tmp_path), "--history-pace", "1", "--board", board.key)
    page.goto(console.at("/board", b=board.key))
    chart = page.locator("#day svg").first
    path = chart.locator("path.line0")
    expect(path).to_have_attribute("d", re.compile("^M[^M]+M[^M]+"))
    expect(chart).to_have_attribute("aria-label", re.compile("done: .* at most"))
    file = tmp_path / f"jobboard-{today.strftime('%Y-%m-%d')}.jsonl"
    written = lambda: file.exists() and file.read_text().endswith("}\n")  # noqa: E731
    wait_until(written, what="a sample is written")
    last = json.loads(file.read_text().splitlines()[-1])
    assert bytes.fromhex(last["board"]) == board.key.encode() and last["ready"] == 1
    wait_until(lambda: not old.exists(), what="the old file is deleted")


def test_a_folder_that_cannot_be_written_is_said(store: Server, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(AssertionError, match="--history .*file"):
        Console(f"redis://127.0.0.1:{store.port}", "--history", str(tmp_path / "file"))


def test_the_last_days_stand_on_the_first_page_and_on_that_of_a_board(page: Page, consoles, fresh_server):
    """From the server's own statistics, without --history; a board's first day has none."""
    server = fresh_server("clock", "manual")
    board = server.board("jobs")

    def work(done: int, failed: int) -> None:
        board.post_many(done + failed)
        jobs = board.claim("w1", count=done + failed)
        for job in jobs[:done]:
            board.consume("w1", job["id"], token=job["token"])
        for job in jobs[done:]:
            board.fail("w1", job["id"], "IOError", "m", token=job["token"], noretry=True)

    work(5, 1)
    console = consoles(server)
    page.goto(console.at("/board", b="jobs"))
    expect(page.locator("#queues")).to_be_visible()
    expect(page.locator("#days")).to_have_count(0)
    server.clock.advance(86_400_000)
    work(3, 2)
    for path in ["/", "/board"]:
        page.goto(console.at(path, b="jobs"))
        chart = page.locator("#days svg")
        expect(chart).to_have_attribute(
            "aria-label", "Done and failed a day, in UTC. done: 3 now, 5 at most; failed: 2 now, 2 at most."
        )


def test_without_history_there_is_no_day(page: Page, reading: Console, board: Board):
    board.post()
    page.goto(reading.at("/board", b=board.key))
    expect(page.locator("#pace")).to_have_count(1)
    expect(page.locator("#day")).to_have_count(0)
