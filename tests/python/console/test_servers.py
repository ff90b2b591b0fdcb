"""The console beside each kind of server, a cluster, and servers that go and come."""

from __future__ import annotations

import pytest
from harness import Board, Server, wait_until
from playwright.sync_api import Page, expect
from proxy import Proxy

from . import seed
from .process import Console


def test_each_kind_of_server(page: Page, consoles, server: Server):
    seed.shop(server.board("shop"))
    console = consoles(server, "--write")
    pages = {"/": {}, "/board": {}, "/jobs": {}, "/job": {"id": "ship-42"}, "/stats": {}, "/schedules": {},
             "/failures": {}, "/audit": {}, "/post": {}, "/queues": {}, "/workers": {}, "/types": {},
             "/limits": {}, "/schedule": {"schedule": "nightly"}, "/schedule/edit": {},
             "/settings": {"queue": "mail"}, "/confirm": {"verb": "cancel", "id": "mail-42"}}  # fmt: skip
    for path, query in pages.items():
        answer = page.goto(console.at(path, b="shop", **query))
        assert answer and answer.status == 200, path
        expect(page.locator("main .refused")).to_have_count(0)
    page.get_by_role("button", name="Cancel", exact=True).click()
    expect(page.locator("#now")).to_contain_text("cancelled")
    assert console.ask("/metrics").body.endswith("# EOF\n")


def test_a_server_that_goes_and_comes(page: Page, consoles, fresh_server):
    server = fresh_server(kind="redis70", appendonly=True)
    server.board("jobs").post(id="j")
    console = consoles(server)
    page.goto(console.at("/board", b="jobs"))
    expect(page.locator("#pulse")).to_have_text("live")
    wait_until(server.has_written, what="the append-only file has the job")
    server.kill()
    expect(page.locator("#pulse")).to_have_text("no answer")
    answer = console.ask(console.at("/board", b="jobs"))
    assert answer.status == 502 and "cannot be reached" in answer.body
    server.start()
    expect(page.locator("#pulse")).to_have_text("live")


def test_a_server_whose_old_connections_are_silent_is_reached_anew(consoles, store, board: Board):
    """As behind a host that was away: nothing ends its connections, and nothing answers on them."""
    board.post(id="x")
    proxy = Proxy(store.port)
    console = consoles(f"redis://127.0.0.1:{proxy.port}")
    cookie = console.ask("/").cookie
    job = lambda: console.ask(console.at("/job", b=board.key, id="x"), headers={"Cookie": cookie})  # noqa: E731
    assert job().status == 200
    proxy.silence()
    assert "The server cannot be reached" in job().body
    assert job().status == 200
    proxy.close()


def test_a_server_that_is_not_there_yet(consoles, fresh_server):
    server = fresh_server(kind="redis70")
    server.stop()
    console = consoles(server)
    assert console.ask("/").status == 502
    server.start()
    assert console.ask("/").status == 200


@pytest.mark.every_server
def test_a_server_without_the_module(consoles, fresh_server):
    server = fresh_server(module=False)
    console = consoles(server)
    for path in ["/", console.at("/board", b="x")]:
        answer = console.ask(path)
        assert answer.status == 502 and "libjobboard.so" in answer.body


def test_a_key_that_is_no_board(reading: Console, store: Server):
    with store.connect() as client:
        client.set("text", "x")
        answer = reading.ask(reading.at("/board", b="text"))
        client.delete("text")
    assert answer.status == 404 and "no job board" in answer.body


def test_a_wrong_address_is_told_without_its_password(store: Server):
    with pytest.raises(AssertionError, match="not an address") as told:
        Console("redis:/user:hushhush@nowhere")
    assert "hushhush" not in str(told.value)
