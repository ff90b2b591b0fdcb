"""Who may see and do what, and what a hostile job, page or program may not."""

from __future__ import annotations

import contextlib
import re
import urllib.parse
from collections.abc import Iterator

import pytest
from daily import left_to_ci
from harness import Board, Server, wait_until
from harness.server import ROOT
from playwright.sync_api import Page, expect
from proxy import Proxy

from .process import Console

ACTIONS = [
    {"verb": "requeue", "id": "j"},
    {"verb": "cancel", "id": "j"},
    {"verb": "release", "id": "j"},
    {"verb": "now", "id": "j"},
    {"verb": "now", "where": "1", "state": "scheduled"},
    {"verb": "delete", "id": "j"},
    {"verb": "update", "id": "j", "priority": "5"},
    {"verb": "delete", "where": "1", "state": "ready"},
    {"verb": "requeue", "kind": "IOError", "alike": "m"},
    {"verb": "pause"},
    {"verb": "resume"},
    {"verb": "settings", "s.lease": "5"},
    {"verb": "signal", "id": "j", "signal": "approved", "value": "true"},
    {"verb": "worker-quiet", "worker": "w1"},
    {"verb": "worker-resume", "worker": "w1"},
    {"verb": "schedule-run", "schedule": "s"},
    {"verb": "schedule-del", "schedule": "s"},
]


@contextlib.contextmanager
def user(server: Server, name: str, *rules: str) -> Iterator[None]:
    """A user of the server with the password "secret"."""
    with server.connect() as client:
        client.execute_command("ACL", "SETUSER", name, "reset", "on", ">secret", *rules)
        try:
            yield
        finally:
            client.execute_command("ACL", "DELUSER", name)


def sign_in(page: Page, name: str, password: str = "secret") -> None:
    page.get_by_label("User").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


def csrf(console: Console, path: str, cookie: str) -> str:
    found = re.search(r'name="csrf" value="([0-9a-f]+)"', console.ask(path, headers={"Cookie": cookie}).body)
    assert found
    return found.group(1)


# Read-only


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action["verb"])
def test_a_read_only_console_refuses_actions(reading: Console, board: Board, action: dict):
    board.post(id="j")
    before = board.digest()
    query = {"b": board.key, **action}
    assert reading.ask(reading.at("/confirm", **query)).status == 403
    cookie = reading.ask("/").cookie
    for form in [{}, {"csrf": "0" * 64}]:
        answer = reading.ask(reading.at("/act", **query), "POST", form, {"Cookie": cookie})
        assert answer.status == 403 and "read-only" in answer.body
    assert board.digest() == before


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/post", {}),
        ("/post", {"from": "j"}),
        ("/post", {"from": "j", "edit": "1"}),
        ("/schedule/edit", {}),
        ("/schedule/edit", {"schedule": "s"}),
    ],
    ids=str,
)
def test_forms_that_write_need_write_and_the_secret(
    reading: Console, writing: Console, board: Board, path: str, query: dict
):
    board.post(id="j")
    before = board.digest()
    form = {"payload": "x", "id": "s", "every": "1h", "sure": "1"}
    assert reading.ask(reading.at(path, b=board.key, **query)).status == 403
    cookie = reading.ask("/").cookie
    own = csrf(writing, writing.at(path, b=board.key, **query), writing.ask("/").cookie)
    for console, session in [(reading, cookie), (writing, writing.ask("/").cookie)]:
        for secret in [{}, {"csrf": own}]:
            address = console.at(path, b=board.key, **query)
            assert console.ask(address, "POST", {**form, **secret}, {"Cookie": session}).status == 403
    assert board.digest() == before


# Forms of others


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action["verb"])
def test_an_action_needs_the_secret_of_its_session(writing: Console, board: Board, action: dict):
    board.post(id="j")
    board.client.execute_command("JOB.SCHEDULE", "SET", board.key, "s", "x", "EVERY", 3_600_000)
    before = board.digest()
    cookie = writing.ask("/").cookie
    other = writing.ask("/").cookie
    path = writing.at("/act", b=board.key, **action)
    own = csrf(writing, writing.at("/confirm", b=board.key, verb="pause"), cookie)
    strange = csrf(writing, writing.at("/confirm", b=board.key, verb="pause"), other)
    for form in [{}, {"csrf": ""}, {"csrf": strange}, {"csrf": own[:-1]}]:
        assert writing.ask(path, "POST", form, {"Cookie": cookie}).status == 403
    assert writing.ask(path, "POST", {"csrf": own}).status == 403
    assert writing.ask(path, headers={"Cookie": cookie}).status == 405
    assert board.digest() == before


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_other_sites_cannot_act_even_with_the_secret(writing: Console, board: Board, headers: dict):
    cookie = writing.ask("/").cookie
    path = writing.at("/act", b=board.key, verb="pause")
    form = {"csrf": csrf(writing, writing.at("/confirm", b=board.key, verb="pause"), cookie)}
    assert writing.ask(path, "POST", form, {"Cookie": cookie, **headers}).status == 403
    assert writing.ask("/sign-in", "POST", {"user": "a", "password": "b"}, headers).status == 403
    assert board.client.exists(board.key) == 0
    own = {"Cookie": cookie, "Origin": writing.url, "Sec-Fetch-Site": "same-origin"}
    assert writing.ask(path, "POST", form, own).status == 303
    assert board.info()["paused"] == -1


def test_a_page_of_another_site_gets_no_cookie(page: Page, writing: Console, board: Board):
    board.post(id="j")
    act = writing.at("/act", b=board.key, verb="pause")
    page.goto(writing.at("/board", b=board.key))
    page.route("http://evil.example/", lambda route: route.fulfill(
        content_type="text/html",
        body=f'<form method=post action="{act}"><button>go</button></form>',
    ))  # fmt: skip
    page.goto("http://evil.example/")
    page.get_by_role("button").click()
    page.wait_for_url(f"{writing.url}/**")
    expect(page.locator("body")).to_contain_text("comes from another site")
    assert board.info()["paused"] == 0


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_part_of_a_foreign_page_begins_no_session(reading: Console, site: str):
    """An image or a script's request that another site names; a link from there is followed."""
    for part in ["image", "empty", "iframe"]:
        answer = reading.ask("/", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Dest": part})
        assert (answer.status, answer.cookie) == (403, "")
    link = reading.ask("/", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Dest": "document"})
    assert link.status == 200 and link.cookie
    own = reading.ask("/", headers={"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "empty"})
    assert own.status == 200


# Browsers are told to be strict


@pytest.mark.parametrize("path", ["/", "/sign-in", "/static/style.css", "/nowhere", "/metrics"])
def test_headers(reading: Console, path: str):
    headers = reading.ask(path).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    if not path.startswith("/static"):
        assert headers["Cache-Control"] == "no-store"


def test_the_session_is_a_random_number(consoles, store: Server):
    console = consoles(store, "--secure")
    cookies = [console.ask("/").headers["Set-Cookie"] for _ in range(3)]
    for cookie in cookies:
        assert re.fullmatch(
            rf"jobboard-console-{console.port}=[0-9a-f]{{64}}; Path=/; HttpOnly; SameSite=Strict; Secure",
            cookie,
        )
    assert len(set(cookies)) == 3


def test_a_foreign_host_name_is_not_answered(consoles, store: Server, reading: Console):
    """A name of the attacker's that leads to this machine makes their page no page of ours."""
    assert reading.ask("/", headers={"Host": "evil.example"}).status == 421
    assert reading.ask("/metrics", headers={"Host": f"evil.example:{reading.port}"}).status == 421
    named = consoles(store, "--host", "jobs.example")
    assert named.ask("/sign-in", headers={"Host": "jobs.example"}).status == 200


def test_sign_in_leads_nowhere_else(consoles, store: Server):
    with user(store, "ann", "+@all", "~*"):
        console = consoles(store)
        for to in ["https://evil.example/", "//evil.example", "/\\evil.example"]:
            answer = console.ask("/sign-in", "POST", {"user": "ann", "password": "secret", "to": to})
            assert (answer.status, answer.headers["Location"]) == (303, "/")


# Users of the server


@pytest.fixture
def guarded(rooted: Server) -> Server:
    """An empty server for tests with users; `root` with the password "secret" may do all."""
    rooted.flush()
    return rooted


@pytest.fixture(scope="module")
def rooted(server_kind: str) -> Iterator[Server]:
    server = Server(server_kind)
    with server.connect() as client:
        client.execute_command("ACL", "SETUSER", "root", "on", ">secret", "+@all", "~*", "&*")
    yield server
    server.close()


@contextlib.contextmanager
def without_default(server: Server) -> Iterator[None]:
    """Nobody gets in without a password."""
    with server.connect() as client:
        client.execute_command("ACL", "SETUSER", "default", "resetpass", ">hidden")
        try:
            yield
        finally:
            client.execute_command("ACL", "SETUSER", "default", "nopass")


def test_signing_in_and_out(page: Page, consoles, guarded: Server):
    guarded.board("jobs").post(id="j")
    console = consoles(guarded)
    with without_default(guarded):
        page.goto(console.at("/job", b="jobs", id="j"))
        expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
        sign_in(page, "root", "wrong")
        expect(page.get_by_role("alert")).to_contain_text("no such user")
        sign_in(page, "root")
        expect(page.get_by_role("heading", level=1)).to_have_text("Job j")
        expect(page.locator(".who")).to_have_text("root")
        [cookie] = [one for one in page.context.cookies() if one["name"].startswith("jobboard-console")]
        assert cookie["httpOnly"] and cookie["sameSite"] == "Strict" and "secret" not in cookie["value"]
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
        page.goto(console.at("/job", b="jobs", id="j"))
        expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
        old = {"Cookie": f"{cookie['name']}={cookie['value']}"}
        assert console.ask("/", headers=old).status == 303
        assert console.ask(console.at("/live/board", b="jobs")).status == 303
        assert console.ask(console.at("/data", b="jobs", id="j", field="payload")).status == 303


def test_a_user_who_is_deleted_is_out_at_once(page: Page, consoles, guarded: Server):
    guarded.board("jobs").post()
    console = consoles(guarded)
    with without_default(guarded), guarded.connect(username="root", password="secret") as root:
        root.execute_command("ACL", "SETUSER", "bob", "on", ">secret", "+@all", "~*")
        page.goto(console.url)
        sign_in(page, "bob")
        page.goto(console.at("/board", b="jobs"))
        expect(page.locator("#pulse")).to_have_text("live")
        root.execute_command("ACL", "DELUSER", "bob")
        expect(page.locator("#pulse")).to_have_text("ended")
        page.goto(console.at("/board", b="jobs"))
        expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


def test_a_session_has_the_rights_of_its_user(page: Page, consoles, store: Server, board: Board):
    """An observer of some boards sees these, not the others, and cannot act though the console would."""
    other = store.board(f"hidden-{board.key}")
    other.post()
    board.post(id="j")
    console = consoles(store, "--write")
    rules = [f"%R~{board.key}*", "-@all", "+scan", "+job.info", "+job.queues", "+job.get", "+job.list",
             "+job.count", "+job.explain", "+job.history", "+job.mget", "+job.stats"]  # fmt: skip
    try:
        with user(store, "eve", *rules):
            page.goto(console.at("/sign-in"))
            sign_in(page, "eve")
            page.goto(console.at("/", q=board.key))
            own = page.locator("#boards").get_by_role("link", name=board.key, exact=True)
            expect(own).to_have_count(1)
            expect(page.locator("main")).not_to_contain_text("hidden")
            expect(page.locator("main")).to_contain_text("1 that you may not read")
            page.goto(console.at("/board", b=board.key))
            expect(page.locator("#queues")).to_contain_text("default")
            expect(page.locator("#kinds")).to_contain_text("Not allowed")
            page.goto(console.at("/limits", b=board.key))
            expect(page.locator("#groups")).to_contain_text("Not allowed")
            for path in ["/board", "/jobs", "/stats"]:
                answer = page.goto(console.at(path, b=other.key))
                assert answer and answer.status == 403
            page.goto(console.at("/confirm", b=board.key, verb="cancel", id="j"))
            page.get_by_role("button", name="Cancel", exact=True).click()
            expect(page.get_by_role("alert")).to_contain_text("permission")
            assert board.state("j") == "ready"
    finally:
        other.client.delete(other.key)


@pytest.mark.parametrize("role", ["observer", "operator"])
def test_the_roles_of_redis_conf_see_every_page(page: Page, consoles, guarded: Server, role: str):
    """With +scan added, as docs/guides/console.md says, no part of a page is kept from them."""
    rules = re.search(rf"^# user {role} (.+)$", (ROOT / "redis.conf").read_text(), re.M).group(1).split()
    board = guarded.board("jobs:1")
    board.post(id="a", group="g", tags=["t"])
    board.post(id="b", after=["a"])
    board.call("POST", "x", "ID", "c", "AWAIT", 1, "approved")
    console = consoles(guarded, "--write")
    with without_default(guarded), guarded.connect(username="root", password="secret") as root:
        root.execute_command("ACL", "SETUSER", role, "reset", *rules, "+scan")
        root.execute_command("ACL", "LOG", "RESET")
        page.goto(console.url)
        sign_in(page, role, "choose-a-password")
        expect(page.locator("tbody tr")).to_have_count(1)
        for path in ["/", "/board", "/failures", "/jobs", "/job", "/stats", "/schedules", "/settings",
                     "/audit", "/post", "/queues", "/workers", "/types", "/limits", "/confirm"]:  # fmt: skip
            query = {} if path == "/jobs" else {"id": "b", "verb": "cancel"}
            answer = page.goto(console.at(path, b="jobs:1", **query))
            assert answer and answer.status == 200, path
            expect(page.locator("main .refused")).to_have_count(0)
        page.get_by_role("button", name="Cancel", exact=True).click()
        if role == "operator":
            expect(page.locator("#now")).to_contain_text("cancelled")
        else:
            expect(page.get_by_role("alert")).to_contain_text("permission")
        denied = root.execute_command("ACL", "LOG")
        assert [one["object"] for one in denied] == ([] if role == "operator" else ["job.cancel"])


@pytest.mark.parametrize("role", ["observer", "approver"])
def test_who_may_answer_a_job_that_waits(page: Page, consoles, guarded: Server, role: str):
    """The server decides: an observer is refused and nothing changes, an approver is named as the sender."""
    rules = re.search(rf"^# user {role} (.+)$", (ROOT / "redis.conf").read_text(), re.M).group(1).split()
    board = guarded.board("jobs:1")
    board.call("POST", "x", "ID", "j", "AWAIT", 1, "approved")
    console = consoles(guarded, "--write", "--board", "jobs:1")
    with without_default(guarded), guarded.connect(username="root", password="secret") as root:
        root.execute_command("ACL", "SETUSER", role, "reset", *rules)
        page.goto(console.at("/job", b="jobs:1", id="j"))
        sign_in(page, role, "choose-a-password")
        before = root.execute_command("JOB.INFO", "jobs:1", "DIGEST")["digest"]
        page.locator(".timeline").get_by_role("link", name="Approve approved").click()
        page.get_by_role("button", name="Send the signal").click()
        if role == "observer":
            expect(page.get_by_role("alert")).to_contain_text("permission")
            assert root.execute_command("JOB.INFO", "jobs:1", "DIGEST")["digest"] == before
        else:
            expect(page.locator(".timeline")).to_contain_text("Signal approved from approver: true")


def test_the_audit_is_for_those_who_may_read_jobs(consoles, store: Server, board: Board):
    """Commands have payloads, which the numbers of a board do not tell."""
    numbers = ["~*", "+job.info", "+job.stats", "+scan"]
    with (
        user(store, "ann", "+@all", "~*"),
        user(store, "eve", *numbers),
        user(store, "bob", *numbers, "+job.get"),
    ):
        console = consoles(store, "--write")
        form = {"user": "", "password": "secret"}
        cookies = {
            name: console.ask("/sign-in", "POST", {**form, "user": name}).cookie
            for name in ("ann", "eve", "bob")
        }
        path = f"/post?b={board.key}"
        body = {"csrf": csrf(console, path, cookies["ann"]), "payload": "private", "sure": "1"}
        assert console.ask(path, "POST", body, {"Cookie": cookies["ann"]}).status == 303
        seen = {
            name: console.ask(f"/audit?b={board.key}", headers={"Cookie": cookie})
            for name, cookie in cookies.items()
        }
        assert {name: answer.status for name, answer in seen.items()} == {"ann": 200, "eve": 403, "bob": 200}
        assert {name for name, answer in seen.items() if "private" in answer.body} == {"ann", "bob"}


def test_work_stops_when_its_user_signs_out(page: Page, consoles, guarded: Server):
    board = guarded.board("many")
    board.post_many(20_000)
    with (
        contextlib.closing(Proxy(guarded.port)) as proxy,
        user(guarded, "ann", "+@all", "~*"),
        without_default(guarded),
        guarded.connect(username="root", password="secret") as root,
    ):
        count = lambda: root.execute_command("JOB.COUNT", "many")  # noqa: E731
        is_in = lambda: any(one["user"] == "ann" for one in root.client_list())  # noqa: E731
        console = consoles(f"redis://127.0.0.1:{proxy.port}", "--write")
        page.goto(console.at("/confirm", b="many", verb="delete", where="1", state="ready"))
        sign_in(page, "ann")
        expect(page.locator("#fits")).to_have_text(re.compile("^more than 10.000$"))
        proxy.delay = 1.0  # each slice takes two seconds
        page.get_by_role("button", name="Delete").click()
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
        left = count()
        assert left > 0
        wait_until(lambda: not is_in(), what="the run has ended, and with it the link")
        # One slice more, when it was still on its way to the server.
        assert count() in (left, left - 1000)


def test_beyond_loopback_nobody_is_let_in_without_a_password(consoles, store: Server):
    console = consoles(store, "--bind", "0.0.0.0")
    assert console.ask("/").status == 303
    assert console.ask("/sign-in", "POST", {"user": "default", "password": ""}).status == 403
    assert console.ask("/metrics").status == 403
    assert "passwords go over the net" in console.close()


# Hostile names and payloads

EVIL = [
    'javascript:alert()//</title><script>alert(1)</script><img src=x onerror=alert()>"><svg onload=alert(1)>',
    "\u202egnp.exe a/../b?x=1&y=2#z",
    "..",
]


def pages_of(console: Console, key: str, id: str) -> list[str]:
    return [
        console.at("/", q=key), console.at("/board", b=key), console.at("/jobs", b=key),
        console.at("/job", b=key, id=id), console.at("/stats", b=key, queue=id),
        console.at("/schedules", b=key), console.at("/settings", b=key, queue=id, group=id),
        console.at("/failures", b=key), console.at("/failures", b=key, kind=id, alike=id),
        console.at("/queues", b=key), console.at("/queues", b=key, name=id), console.at("/workers", b=key),
        console.at("/types", b=key), console.at("/limits", b=key),
        console.at("/schedule", b=key, schedule=id), console.at("/schedule/edit", b=key, schedule=id),
        console.at("/schedule/edit", b=key),
        console.at("/audit", b=key), console.at("/post", b=key), console.at("/post", b=key, **{"from": id}),
        console.at("/post", b=key, **{"from": id}, edit="1"),
        console.at("/find", b=key, q=id), console.at("/find", b=key, q="no" + id),
        console.at("/jobs", b=key, name=id, tag=id, user=id, queue=id),
        console.at("/confirm", b=key, verb="cancel", id=id),
        console.at("/confirm", b=key, verb="requeue", where="1", name=id),
        console.at("/confirm", b=key, verb="signal", id=id, signal=id, value=id),
        console.at("/confirm", b=key, verb="requeue", kind=id, alike=id),
        console.at("/confirm", b=key, verb="aside", kind=id, alike=id),
        console.at("/job", b=key, id=id, find=id[:2], children="1"),
        console.at("/jobs", b=key, payload=f"{id}:{id}"),
        console.at("/sign-in", to=f"/job?b={id}"),
    ]  # fmt: skip


AFTER = {"/", "/board", "/jobs", "/job", "/failures", "/types", "/find", "/audit", "/confirm", "/post"}
"""The pages that have something new once a job has failed and actions were taken."""


def pages_that_show() -> set[str]:
    """The paths of all pages of HTML that GET answers, by the routes of the program."""
    text = (ROOT / "console" / "src" / "main.rs").read_text()
    routes = re.findall(r'\.route\("([^"]+)", (?:live|get)\(', text)
    assert len(routes) > 20
    # A stream, JSON, files and numbers are no pages; a run is looked at by itself.
    return set(routes) - {"/live/{page}", "/suggest", "/data", "/static/{file}", "/metrics", "/run"}


def look(page: Page, addresses: list[str]) -> None:
    """Opens the pages, lets each be told anew, and looks for what our pages never have."""
    for address in addresses:
        answer = page.goto(address)
        assert answer and answer.status == 200, address
        if page.locator("#pulse").count():
            expect(page.locator("#pulse")).to_have_text("live")
        assert page.locator("script:not([src]), [onerror], [onload], [style]").count() == 0
        links = page.locator("a").evaluate_all("all => all.map(one => one.getAttribute('href'))")
        assert all(re.match(r"[/#]", link) for link in links if link is not None), links
        assert page.locator("form").evaluate_all("all => all.every(one => one.action.startsWith(origin))")


@pytest.mark.parametrize("evil", [EVIL[0], *left_to_ci(EVIL[1:])])
def test_names_and_payloads_never_run(page: Page, writing: Console, store: Server, board: Board, evil: str):
    """A job all of whose texts are hostile, on a board of that name: on every page it is text."""
    hostile = store.board(f"{board.key}{evil}")
    hostile.post(
        evil,
        id=evil,
        name=evil,
        queue=evil,
        group=evil,
        user=evil,
        tags=[evil],
        meta={evil: evil},
        unique=evil,
    )
    hostile.post(evil, id="waits", after=[evil])
    hostile.post(evil, id="child", parent=evil, name=evil, queue=f"{evil}-parts")
    hostile.call("POST", evil, "ID", "gate", "QUEUE", f"{evil}-parts", "AWAIT", 2, evil, f"{evil}2")
    hostile.signal(evil, "gate", value=evil, sender=evil)
    hostile.set(limit=evil, concurrency=2)
    hostile.client.execute_command(
        "JOB.SCHEDULE", "SET", hostile.key, evil, evil, "EVERY", 3_600_000, "NAME", evil
    )
    hostile.worker("REGISTER", evil, role=evil, meta={evil: evil})
    token = hostile.claim_one(evil, id=evil)["token"]
    hostile.heartbeat(evil, evil, token=token, stage=evil, log=f"{evil}\n{evil}", output=(1, evil))
    hostile.step(evil, evil, evil, evil, token=token)
    hostile.signal(evil, evil, value=evil, sender=evil)
    try:
        addresses = pages_of(writing, hostile.key, evil)
        assert {urllib.parse.urlsplit(one).path for one in addresses} == pages_that_show()
        look(page, addresses)
        for id in ["gate", "child"]:
            look(page, [writing.at("/job", b=hostile.key, id=id)])
        for text in ["Signal", "Waits for"]:
            page.goto(writing.at("/job", b=hostile.key, id="gate"))
            expect(page.locator(".timeline")).to_contain_text(text)
        # The audit and the page of work with something in them.
        page.goto(writing.at("/confirm", b=hostile.key, verb="pause", queue=evil))
        page.get_by_role("button", name="Pause").click()
        page.goto(writing.at("/confirm", b=hostile.key, verb="cancel", where="1", name=evil, state="blocked"))
        if page.get_by_role("button", name="Cancel").count():
            page.get_by_role("button", name="Cancel").click()
        hostile.fail(evil, evil, evil, f"{evil}\n{evil}", token=token, noretry=True)
        look(page, [one for one in addresses if urllib.parse.urlsplit(one).path in AFTER])
        page.goto(writing.at("/job", b=hostile.key, id=evil))
        page.locator("#graph").get_by_role("link", name="waits").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Job waits")
    finally:
        hostile.client.delete(hostile.key)


MARKED = [
    "id", "name", "queue", "group", "user", "tag", "meta-field", "meta-value", "payload", "result", "kind",
    "message", "log", "traceback", "output", "step", "step-value", "signal", "signal-value", "sender",
    "missing", "stage", "worker", "role", "limit", "schedule", "unique", "reason", "dead-queue",
]  # fmt: skip
"""What a poster, a worker or a sender of signals names or writes."""


def mark(field: str) -> str:
    """Markup that would run, and by which one sees where the text of a field is shown."""
    return f"<img src=x onerror=alert('{field}')>"


def marked(board: Board) -> None:
    """Jobs with a mark of its own in each field: one that runs, one that failed, one that died, one that is
    done, one that was trashed, one that waits."""
    rest = {"queue": mark("queue"), "group": mark("group"), "user": mark("user"), "name": mark("name")}
    meta = {mark("meta-field"): mark("meta-value")}
    board.set(retain_complete=3_600_000)
    board.set(limit=mark("limit"), concurrency=9)
    board.client.execute_command(
        "JOB.SCHEDULE", "SET", board.key, mark("schedule"), mark("payload"), "EVERY", 3_600_000
    )
    board.worker("REGISTER", mark("worker"), role=mark("role"), meta=meta)
    board.post(mark("payload"), id=mark("id"), tags=[mark("tag")], meta=meta, unique=mark("unique"), **rest)
    token = board.claim_one(mark("worker"), id=mark("id"))["token"]
    trace = f"Traceback (most recent call last):\n  {mark('traceback')}\nE: m"
    board.heartbeat(mark("worker"), mark("id"), token=token, stage=mark("stage"), log=mark("log"))
    board.heartbeat(mark("worker"), mark("id"), token=token, output=(1, mark("output")))
    board.step(mark("worker"), mark("id"), mark("step"), mark("step-value"), token=token)
    board.signal(mark("signal"), mark("id"), value=mark("signal-value"), sender=mark("sender"))
    for id in ["broken", "dead"]:
        board.post(mark("payload"), id=id, **rest)
        token = board.claim_one("w1", id=id)["token"]
        board.heartbeat("w1", id, token=token, log=trace)
        if id == "dead":
            board.set(queue=mark("queue"), dead_queue=mark("dead-queue"))
        board.fail("w1", id, mark("kind"), mark("message"), token=token, noretry=True)
    board.post(id="done")
    board.consume("w1", "done", token=board.claim_one("w1", id="done")["token"], result=mark("result"))
    board.post(id="trashed")
    board.trash("w1", "trashed", token=board.claim_one("w1", id="trashed")["token"], reason=mark("reason"))
    board.call("POST", "x", "ID", "gate", "AWAIT", 2, mark("missing"), "other")


def test_every_hostile_text_is_shown_as_text(page: Page, writing: Console, board: Board):
    """On every page, in what each field of a job says; all of them are seen on some page."""
    marked(board)
    addresses = pages_of(writing, board.key, mark("id"))
    jobs = [mark("id"), "broken", "dead", "done", "trashed", "gate"]
    named = [
        writing.at("/schedule", b=board.key, schedule=mark("schedule")),
        writing.at("/stats", b=board.key, queue=mark("queue")),
        writing.at(
            "/jobs", b=board.key, queue=mark("queue"), meta=f"{mark('meta-field')}:{mark('meta-value')}"
        ),
        writing.at(
            "/confirm", b=board.key, verb="signal", id="gate", signal=mark("missing"), value=mark("payload")
        ),
        *(writing.at("/job", b=board.key, id=id) for id in jobs),
    ]
    # There is no schedule of that name.
    addresses = [one for one in addresses if "schedule=" not in one]
    seen: set[str] = set()
    for address in [*addresses, *named]:
        look(page, [address])
        assert page.locator("img").count() == 0, address
        texts = page.locator("body").inner_text()
        values = page.locator("input, textarea").evaluate_all("all => all.map(one => one.value).join(' ')")
        seen |= {field for field in MARKED if mark(field) in texts + values}
    page.goto(writing.at("/board", b=board.key))
    page.get_by_role("banner").get_by_role("combobox").fill("<img")
    expect(page.locator("#suggestions option")).not_to_have_count(0)
    assert page.locator("img").count() == 0
    assert seen == set(MARKED)


def test_bytes_that_are_no_text(page: Page, writing: Console, store: Server, board: Board):
    """Names of any bytes are shown, searched for and acted on."""
    raw = store.raw_client()
    key, id = board.key.encode() + b"\xff\n", b"\x00\xfe\r\n"
    odd = Board(raw, key)
    odd.post(b"\xff\x00", id=id, queue=b"\xfd")
    address = writing.at("/jobs") + "?b=" + urllib.parse.quote(key)
    page.goto(address)
    page.get_by_role("link", name="\\x00\\xfe\\x0d\\x0a").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Job \\x00\\xfe\\x0d\\x0a")
    page.get_by_role("link", name="Cancel").click()
    expect(page.locator("#command")).to_contain_text('1 "\\x00\\xfe\\x0d\\x0a"')
    page.get_by_role("button", name="Cancel", exact=True).click()
    expect(page.locator("#now")).to_contain_text("cancelled")
    page.goto(address)
    page.get_by_label("Choose \\x00\\xfe\\x0d\\x0a").check()
    page.get_by_role("button", name="Requeue").click()
    page.get_by_role("button", name="Requeue").click()
    assert odd.state(id) == "ready"
    raw.delete(key)
