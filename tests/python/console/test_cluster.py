"""A console of a cluster shows the boards of every primary."""

from __future__ import annotations

import pytest
from harness.cluster import Cluster
from openmetrics import parse, values
from playwright.sync_api import Page, expect

from .process import Console


@pytest.fixture
def spread() -> Cluster:
    cluster = Cluster("redis70")
    yield cluster
    try:
        cluster.check_health()
    finally:
        cluster.close()


def test_boards_of_every_primary(page: Page, spread: Cluster):
    keys = [f"jobs-{number}" for number in range(12)]
    assert len({spread.owner(key).port for key in keys}) == 3
    for number, key in enumerate(keys):
        spread.board(key).post(id="j")
        spread.board(key).post_many(number)
    console = Console(f"redis://127.0.0.1:{spread.primaries[1].port}", "--write")
    try:
        page.goto(console.url)
        for number, key in enumerate(keys):
            head = page.get_by_role("rowheader", name=key, exact=True)
            row = page.get_by_role("row").filter(has=head)
            expect(row.get_by_role("cell").first).to_have_text(str(number + 1))
        for key in keys[:6]:
            page.goto(console.at("/job", b=key, id="j"))
            page.get_by_role("link", name="Cancel", exact=True).click()
            page.get_by_role("button", name="Cancel", exact=True).click()
            expect(page.locator("#now")).to_contain_text("cancelled")
            for path in ["/board", "/jobs", "/stats", "/schedules", "/settings"]:
                answer = page.goto(console.at(path, b=key))
                assert answer and answer.status == 200
        told = parse(console.ask("/metrics").body.encode())
        assert {one.labels["board"] for one in told["jobboard_jobs"].samples} == set(keys)
        assert sum(values(told["jobboard_boards"], "jobboard_boards")) == 12
        assert len({one.labels["server"] for one in told["jobboard_boards"].samples}) == 3
    finally:
        console.close()
