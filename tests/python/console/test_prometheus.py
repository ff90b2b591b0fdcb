"""/metrics, and what reads it: the alert rules name metrics that really come out."""

from __future__ import annotations

import re

import lives
import pytest
import yaml
from harness import Server
from harness.server import ROOT
from openmetrics import parse, values

from .process import Console


@pytest.fixture(scope="module")
def served() -> Server:
    server = Server("redis70")
    yield server
    server.close()


def scrape(console: Console, **headers: str) -> dict:
    answer = console.ask("/metrics", headers=headers)
    assert answer.status == 200, answer.body
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    return parse(answer.body.encode())


def samples(told: dict) -> dict[str, set[str]]:
    """Names of samples and of their labels."""
    return {one.name: set(one.labels) for family in told.values() for one in family.samples}


def test_the_numbers_of_every_board(consoles, served: Server):
    """More boards than one command names, and one key that is none."""
    keys = [f"jobs-{number:03}" for number in range(230)]
    for number, key in enumerate(keys):
        served.board(key).post_many(number % 3 + 1)
    served.client().set("text", "x")
    told = scrape(consoles(served))
    ready = [one for one in told["jobboard_jobs"].samples if one.labels["state"] == "ready"]
    assert {one.labels["board"]: one.value for one in ready} == {
        key: number % 3 + 1 for number, key in enumerate(keys)
    }
    assert values(told["jobboard_boards"], "jobboard_boards") == [230]
    named = scrape(consoles(served, "--board", "jobs-007", "--board", "absent"))
    assert {one.labels["board"] for one in named["jobboard_jobs"].samples} == {"jobs-007"}


def test_boards_that_the_scraper_may_not_read_are_left_out(served: Server):
    served.board("own").post()
    served.board("theirs").post()
    with served.connect() as client:
        client.execute_command(
            "ACL", "SETUSER", "prom", "reset", "on", ">secret", "%R~own", "-@all", "+scan", "+job.metrics"
        )
    console = Console(f"redis://prom:secret@127.0.0.1:{served.port}")
    try:
        assert {one.labels["board"] for one in scrape(console)["jobboard_jobs"].samples} == {"own"}
        # The scraper's user is nobody's session.
        assert "?b=theirs" in console.ask("/?q=theirs").body
    finally:
        console.close()


def test_a_token_guards_it(consoles, served: Server):
    console = consoles(served, environment={"JOBBOARD_METRICS_TOKEN": "t0ken"})
    assert console.ask("/metrics").status == 401
    assert console.ask("/metrics", headers={"Authorization": "Bearer t0ke"}).status == 401
    assert "jobboard_boards" in scrape(console, Authorization="Bearer t0ken")


def test_without_a_server_it_says_so(consoles, fresh_server):
    server = fresh_server(kind="redis70")
    console = consoles(server)
    assert "jobboard_boards" in scrape(console)
    server.stop()
    assert console.ask("/metrics").status == 503
    server.start()
    assert "jobboard_boards" in scrape(console)


def test_the_alerts_read_metrics_that_exist(consoles, served: Server):
    board = served.board("alerts")
    board.set(queue="many", concurrency=100)
    lives.busy(board)
    board.client.config_set("maxmemory", "1gb")
    there = samples(scrape(consoles(served, "--board", "alerts")))
    rules = yaml.safe_load((ROOT / "examples" / "alerts.yml").read_text())
    [group] = [group for group in rules["groups"] if group["name"] == "jobboard"]
    assert len(group["rules"]) >= 8 and len({rule["alert"] for rule in group["rules"]}) == len(group["rules"])
    events = {
        one.labels["event"]
        for one in scrape(consoles(served))["jobboard_events"].samples
        if "event" in one.labels
    }
    for rule in group["rules"]:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert re.fullmatch(r"\d+[smhd]", rule.get("for", "1m")), rule
        assert rule["labels"]["severity"] in ("info", "warning", "critical")
        selectors = re.findall(r"(jobboard_[a-z_]+)(?:\{([^}]*)\})?", rule["expr"])
        assert selectors, rule
        labels = set()
        for name, filters in selectors:
            assert name in there, f"{name} of {rule['alert']}"
            labels |= there[name]
            asked = dict(re.findall(r'(\w+)="([^"]*)"', filters))
            assert set(asked) <= there[name]
            assert asked.get("event", "failed") in events
        grouped = re.findall(r"(?:by|on) \(([^)]*)\)", rule["expr"])
        assert {label for some in grouped for label in some.split(", ")} <= labels
        for text in rule["annotations"].values():
            assert set(re.findall(r"\$labels\.(\w+)", text)) <= labels
