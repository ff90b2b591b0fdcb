"""How the console reaches the server, and how it stands behind a proxy."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from harness import Board, Server
from harness.server import free_port
from playwright.sync_api import Page, expect

from . import seed
from .process import Console


def tls(folder: Path, port: int) -> list[str]:
    return [
        f"tls-port {port}", f"tls-cert-file {folder}/server.pem", f"tls-key-file {folder}/server.key",
        f"tls-ca-cert-file {folder}/ca.pem", "tls-auth-clients yes",
    ]  # fmt: skip


def test_a_private_ca_and_a_certificate_of_our_own(consoles, fresh_server, certificates: Path):
    port = free_port()
    server: Server = fresh_server(kind="redis70", config=tls(certificates, port))  # the others have no TLS
    server.board("jobs").post()
    url = f"rediss://127.0.0.1:{port}"
    ca = ["--cacert", str(certificates / "ca.pem")]
    own = ["--cert", str(certificates / "client.pem"), "--key", str(certificates / "client.key")]
    assert consoles(url, *ca, *own).ask("/board?b=jobs").status == 200
    # Neither an unknown server nor an unknown client is trusted.
    assert consoles(url, *own).ask("/").status == 502
    assert consoles(url, *ca).ask("/").status == 502


@pytest.mark.parametrize(
    ("url", "options", "text"),
    [
        ("rediss://127.0.0.1", ["--cacert", "/nowhere"], "--cacert /nowhere: No such file"),
        ("redis://127.0.0.1", ["--cacert", "{}/ca.pem"], "must begin with rediss://"),
        ("rediss://127.0.0.1", ["--cert", "{}/client.pem"], "--key"),
        ("redis://127.0.0.1", ["--base-path", "jobs"], "write it as /jobs"),
        ("redis://127.0.0.1", ["--proxy", "proxy.example"], "--proxy"),
    ],
)
def test_what_makes_no_sense_is_said(certificates: Path, url: str, options: list[str], text: str):
    with pytest.raises(AssertionError, match=re.escape(text)):
        Console(url, *[option.format(certificates) for option in options])


def test_a_unix_socket(consoles, fresh_server, tmp_path: Path):
    server: Server = fresh_server(kind="redis70", config=[f"unixsocket {tmp_path}/s"])
    server.board("jobs").post()
    assert consoles(f"redis+unix://{tmp_path}/s").ask("/board?b=jobs").status == 200


def test_all_addresses_stand_under_the_base_path(page: Page, consoles, store: Server, board: Board):
    seed.shop(board)
    console: Console = consoles(store, "--write", "--base-path", "/under/it/", "--board", board.key)
    for path in ["/", "/board", "/underwater", "/under"]:
        answer = console.ask(path)
        assert answer.status == 404 and "/under/it/" in answer.body
    cookie = console.ask("/under/it/").headers["Set-Cookie"]
    assert "; Path=/under/it/;" in cookie
    seen: set[str] = set()
    left = ["/under/it/"]
    while left:
        path = left.pop()
        answer = console.ask(path, headers={"Cookie": cookie.split(";")[0]})
        assert answer.status == 200, path
        found = re.findall(r' (href|src|action|data-live)="([^"#]+)', answer.body)
        for attribute, address in found:
            assert address.startswith("/under/it/"), f"{path}: {address}"
            kind = address.split("?")[0]
            if attribute in ("href", "src") and kind not in seen:
                seen.add(kind)
                left.append(unescape(address))
    for name in ["board", "failures", "job", "jobs", "queues", "schedule/edit", "static/console.js"]:
        assert f"/under/it/{name}" in seen
    page.goto(f"{console.url}/under/it/job?b={board.key}&id=mail-42")
    expect(page.locator("#pulse")).to_have_text("live")
    page.get_by_role("link", name="Cancel", exact=True).click()
    page.get_by_role("button", name="Cancel", exact=True).click()
    expect(page.locator("#now .state-line")).to_contain_text("cancelled")
    page.wait_for_load_state()
    find = page.get_by_role("banner").get_by_role("combobox")
    find.fill("smtp")
    expect(page.locator("#suggestions option")).to_have_count(1)
    find.fill("failed")
    find.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Jobs of")
    page.wait_for_load_state()
    page.get_by_role("button", name="Change between light and dark").click()
    theme = page.locator("html").get_attribute("data-theme")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", theme)


def test_signing_in_under_the_base_path(page: Page, consoles, store: Server, board: Board):
    board.post(id="j")
    console: Console = consoles(store, "--host", "jobs.example", "--base-path", "/jobs")
    with store.connect() as client:
        client.execute_command("ACL", "SETUSER", "ann", "reset", "on", ">secret", "+@all", "~*")
        try:
            page.goto(f"{console.url}/jobs/job?b={board.key}&id=j")
            page.get_by_label("User").fill("ann")
            page.get_by_label("Password").fill("secret")
            page.get_by_role("button", name="Sign in").click()
            expect(page.get_by_role("heading", level=1)).to_have_text("Job j")
            page.get_by_role("button", name="Sign out").click()
            expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
        finally:
            client.execute_command("ACL", "DELUSER", "ann")
