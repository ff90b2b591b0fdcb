"""Pages that change while they are open: lists of jobs, holding a page still, and plots that one reads."""

from __future__ import annotations

import datetime
import re

from harness import Board, Server
from playwright.sync_api import Page, expect

from .process import Console
from .test_times import line


def live(page: Page) -> None:
    expect(page.locator("#pulse")).to_have_text("live")


def test_a_list_of_jobs_changes_by_itself(page: Page, writing: Console, board: Board):
    """A row that has the focus keeps it; while one is ticked the list stands still."""
    board.post(id="a")
    page.goto(writing.at("/jobs", b=board.key, state="ready", rev="1"))
    live(page)
    page.get_by_role("link", name="a", exact=True).focus()
    board.post(id="b")
    rows = page.locator("#list tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("b")
    expect(page.locator("#count")).to_have_text("2 jobs.")
    expect(page.get_by_role("link", name="a", exact=True)).to_be_focused()
    page.get_by_label("Choose a").check()
    board.post(id="c")
    expect(page.locator("#pulse")).to_have_text("waits: jobs are chosen")
    expect(rows).to_have_count(2)
    page.get_by_label("Choose a").uncheck()
    expect(rows).to_have_count(3)
    live(page)
    board.delete("b")
    expect(rows).to_have_count(2)
    assert rows.evaluate_all("all => all.map(one => one.dataset.row)") == ["c", "a"]


def test_further_pages_and_costly_lists_stand_still(page: Page, reading: Console, board: Board):
    board.post_many(60)
    page.goto(reading.at("/jobs", b=board.key))
    live(page)
    page.get_by_role("link", name="Next page").click()
    expect(page.locator("#list tbody tr")).to_have_count(10)
    expect(page.locator("#pulse")).to_have_count(0)
    page.goto(reading.at("/jobs", b=board.key, text="x"))
    expect(page.locator("#pulse")).to_have_count(0)


def test_a_page_is_held_still(page: Page, reading: Console, board: Board):
    """By the button or its key, until the same again."""
    board.post(id="a")
    page.goto(reading.at("/jobs", b=board.key))
    live(page)
    hold = page.get_by_role("button", name="Hold still")
    hold.click()
    expect(hold).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#pulse")).to_have_text("held")
    expect(page.locator("[aria-live=polite]")).to_have_text("The page is held still.")
    board.post(id="b")
    page.wait_for_timeout(4000)
    expect(page.locator("#list tbody tr")).to_have_count(1)
    page.locator("main").click(position={"x": 5, "y": 5})
    page.keyboard.press("h")
    expect(hold).to_have_attribute("aria-pressed", "false")
    expect(page.locator("#list tbody tr")).to_have_count(2)
    live(page)


def sampled(board: Board, folder, done: list[int]) -> list[int]:
    """Samples of the last minutes, one a minute, as `--history` writes them; their times."""
    now = int(datetime.datetime.now().timestamp() * 1000)
    times = [now - (len(done) - number) * 60_000 for number in range(len(done))]
    for at, count in zip(times, done, strict=True):
        day = datetime.datetime.fromtimestamp(at / 1000, datetime.timezone.utc).strftime("%Y-%m-%d")
        with (folder / f"jobboard-{day}.jsonl").open("a") as file:
            file.write(line(board, at, count))
    return times


def test_the_values_of_a_plot_are_read(page: Page, consoles, store: Server, board: Board, tmp_path):
    """Under the pointer and by the arrow keys, also after the plot was drawn anew."""
    board.post()
    times = sampled(board, tmp_path, [0, 5, 35, 235])
    console = consoles(store, "--history", str(tmp_path), "--history-pace", "3600", "--board", board.key)
    page.goto(console.at("/board", b=board.key))
    live(page)
    plot = page.locator("#day svg").first
    done = page.locator("#day .legend").first.locator(".key b").first
    expect(plot).to_have_attribute("data-times", re.compile(r"^\d+( \d+){4}$"))
    last = done.inner_text()
    clock = page.evaluate("at => new Date(at).toTimeString().slice(0, 8)", times[2])
    all = [int(step) for step in plot.get_attribute("data-times").split()]
    share = (times[2] - all[0]) / sum(all[1:])
    left, right, _, _ = map(float, plot.get_attribute("data-frame").split())
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    x = box["x"] + (left + share * (right - left)) / 520 * box["width"]
    page.mouse.move(x, box["y"] + 60)
    expect(done).to_have_text("30")
    moment = page.locator("#day .moment")
    expect(moment).to_have_text(clock)
    expect(plot.locator("line.cursor")).to_have_count(1)
    page.mouse.move(5, 5)
    expect(moment).to_have_count(0)
    expect(done).to_have_text(last)
    expect(plot.locator("line.cursor")).to_have_count(0)
    plot.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    expect(done).to_have_text("5")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(done).to_have_text("200")
    page.keyboard.press("ArrowLeft")
    expect(done).to_have_text("30")
    expect(moment).to_have_text(clock)
    # A plot that grows keeps the moment that one reads.
    pace = page.locator("#pace svg").first
    pace.focus()
    page.keyboard.press("ArrowLeft")
    read = page.locator("#pace .moment").inner_text()
    points = pace.get_attribute("data-times")
    expect(pace).not_to_have_attribute("data-times", points)
    expect(page.locator("#pace .moment")).to_have_text(read)
    page.get_by_role("button", name="Keys").focus()
    expect(page.locator("#pace .moment")).to_have_count(0)


def test_with_history_the_first_page_opens_with_lines(
    page: Page, consoles, store: Server, board: Board, tmp_path
):
    board.post()
    sampled(board, tmp_path, [0, 5, 35, 235])
    console = consoles(store, "--history", str(tmp_path), "--history-pace", "3600", "--board", board.key)
    first = console.ask("/").body
    assert "The lines grow while" not in first
    page.goto(console.url)
    chart = page.locator("#activity svg")
    assert len(re.findall("[ML]", chart.locator("path.line0").get_attribute("d"))) >= 3
    values = chart.locator("path.line0").get_attribute("data-values").split(",")
    assert values[:3] == ["5", "30", "200"]
    expect(page.locator("#boards tbody .spark path.line0")).to_have_attribute("d", re.compile("^M.+L"))
    assert "–" not in re.search(r'<span class="figure">([^<]*)</span> done a minute', first).group(1)
