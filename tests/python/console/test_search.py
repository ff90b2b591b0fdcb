"""Finding jobs: by id, name, tag, user, state, queue and more, a page at a time."""

from __future__ import annotations

import pytest
from harness import Board, Server
from playwright.sync_api import Page, expect

from .process import Console


@pytest.fixture
def mixed(board: Board) -> Board:
    board.set(retain_complete=3_600_000)
    for number in range(130):
        board.post(
            id=f"j{number:03}", name=["mail", "sms"][number % 2], queue=f"q{number % 5}",
            user=f"u{number % 3}", tags=["even"] if number % 2 == 0 else ["odd"], group=f"g{number % 4}",
        )  # fmt: skip
    token = board.claim_one("w1", id="j005")["token"]
    board.fail("w1", "j005", "IOError", "broken", token=token, noretry=True)
    board.claim_one("w2", id="j006")
    board.update("j007", track=True)
    return board


def shown(page: Page) -> list[str]:
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
    form = page.get_by_role("form", name="Filters")
    form.get_by_label("failed").check()
    form.get_by_label("queue").fill("q0")
    form.get_by_role("button", name="Show").click()
    assert shown(page) == ["j005"]
    expect(page.locator("#count")).to_have_text("1 jobs.")
    expect(form.get_by_label("failed")).to_be_checked()
    form.get_by_label("id").fill("j001")
    form.get_by_role("button", name="Show").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Job j001")


FOUND = {
    "sms": "65 with this name",
    "even": "65 with this tag",
    "q3": "26 with this queue",
    "u2": "43 with this user",
    "IOError": "1 with this kind",
    "failed": "1 with this state",
}


def test_one_field_finds_ids_names_tags_users_and_queues(page: Page, reading: Console, mixed: Board):
    page.goto(reading.at("/board", b=mixed.key))
    find = page.get_by_role("searchbox")
    find.fill("j042")
    find.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Job j042")
    for word, text in FOUND.items():
        find.fill(word)
        find.press("Enter")
        expect(page.get_by_role("link", name=text)).to_have_count(1)
    page.get_by_role("link", name="1 with this state").click()
    assert shown(page) == ["j005"]
    find.fill("nothing like it")
    find.press("Enter")
    expect(page.locator("#found")).to_contain_text("No job has this name")


@pytest.mark.long
def test_a_page_is_quick_with_many_jobs(reading: Console, server: Server, board: Board):
    """Each page of a board with 200,000 jobs, also with filters that few jobs pass.

    None may cost the server as much as the posts did.
    """
    empty = server.cpu()
    for start in range(0, 200_000, 10_000):
        board.mpost(["x"] * 10_000, queue=f"q{start % 3}", name="bulk", tags=["t"])
    board.post(id="needle", name="rare", group="g")
    filled = server.cpu() - empty
    pages = {
        "/board": {}, "/jobs": {}, "/stats": {}, "/job": {"id": "needle"}, "/find": {"q": "bulk"},
    }  # fmt: skip
    slow = [("/jobs", {"group": "g"}), ("/jobs", {"name": "bulk", "user": "nobody"}), *pages.items()]
    for path, query in slow:
        before = server.cpu()
        answer = reading.ask(reading.at(path, b=board.key, **query))
        took = server.cpu() - before
        assert answer.status == 200 and took < filled, f"{path} {query}: {took:.2f} s of {filled:.2f}"
        assert answer.body.count("<tr") < 120
