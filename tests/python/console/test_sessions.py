"""How many sessions there may be, and which of them end by themselves."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator

import pytest
from harness import Board, Server, wait_until
from harness.server import free_port
from playwright.sync_api import Page, expect

from .process import Answer, Console
from .test_exposed import live
from .test_security import user

RULES = ("+@all", "~*")


def sign_in(console: Console, name: str) -> Answer:
    return console.ask("/sign-in", "POST", {"user": name, "password": "secret"})


def is_in(console: Console, signed_in: Answer) -> bool:
    """Whether the session is known: else there is a new one, or the page to sign in."""
    answer = console.ask("/nowhere", headers={"Cookie": signed_in.cookie})
    return answer.status == 404 and not answer.cookie


def test_a_user_ends_no_session_of_another(consoles, store: Server):
    """Of 20 sessions each user has two: a third ends the user's own oldest."""
    with user(store, "ann", *RULES), user(store, "bob", *RULES):
        console = consoles(store, "--sessions", "20")
        ann = sign_in(console, "ann")
        bobs = [sign_in(console, "bob") for _ in range(30)]
        assert is_in(console, ann)
        assert [is_in(console, one) for one in bobs] == [False] * 28 + [True] * 2


def test_no_session_ends_for_a_new_one_of_another_user(consoles, store: Server):
    with contextlib.ExitStack() as users:
        names = [f"user-{number}" for number in range(11)]
        for name in names:
            users.enter_context(user(store, name, *RULES))
        console = consoles(store, "--sessions", "10")
        known = [sign_in(console, name) for name in names[:10]]
        refused = sign_in(console, names[10])
        assert refused.status == 503 and "Too many users are signed in" in refused.body
        assert not refused.cookie
        assert all(is_in(console, one) for one in known)
        # Who is signed in may do so again, and without a password others still come in.
        again = sign_in(console, names[0])
        assert is_in(console, again) and not is_in(console, known[0])
        assert console.ask("/").status == 200
        assert all(is_in(console, one) for one in known[1:])


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    """Programs that are started begin with a soft limit below the hard one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, hard - 1), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_console_may_open_as_many_files_as_the_system_lets_it(few_descriptors, consoles, store: Server):
    soft, hard = resource.prlimit(consoles(store).process.pid, resource.RLIMIT_NOFILE)
    assert soft == hard


@pytest.mark.parametrize("change", [("off",), ("resetpass", ">other")], ids=" ".join)
def test_a_session_ends_when_the_server_no_longer_takes_its_user(consoles, store: Server, change: tuple):
    """Also one whose page is open, over a connection that the server has not closed."""
    with user(store, "ann", *RULES), user(store, "bob", *RULES), store.connect() as client:
        console = consoles(store, "--recheck", "1")
        ann, bob = sign_in(console, "ann"), sign_in(console, "bob")
        with live(console, bob.cookie) as page:
            assert is_in(console, bob)
            client.execute_command("ACL", "SETUSER", "bob", *change)
            assert "You are signed out" in page.read().decode()
        assert not is_in(console, bob)
        assert is_in(console, ann)


def test_those_without_a_password_are_out_when_one_is_asked_for(consoles):
    """A server of its own: others use the default user."""
    with contextlib.closing(Server("redis70")) as server, server.connect() as client:
        console = consoles(server, "--recheck", "1")
        visitor = console.ask("/")
        assert is_in(console, visitor)
        client.execute_command("CONFIG", "SET", "requirepass", "secret")
        wait_until(lambda: not is_in(console, visitor), 30)
        assert console.ask("/").status == 303


def test_a_page_outlives_a_restart_of_the_console(page: Page, consoles, store: Server, board: Board):
    """Where nobody needs a password it goes on; who has signed in is told to do so again."""
    board.post()
    port = ["--port", str(free_port())]
    console = consoles(store, *port)
    page.goto(console.at("/board", b=board.key))
    expect(page.locator("#pulse")).to_have_text("live")
    console.close()
    expect(page.locator("#pulse")).to_have_text("not connected")
    console = consoles(store, *port)
    expect(page.locator("#pulse")).to_have_text("live")
    with user(store, "ann", *RULES):
        page.goto(console.at("/sign-in", to=f"/board?b={board.key}"))
        page.get_by_label("User").fill("ann")
        page.get_by_label("Password").fill("secret")
        page.get_by_role("button", name="Sign in").click()
        expect(page.locator("#pulse")).to_have_text("live")
        with store.connect() as client:
            client.execute_command("ACL", "SETUSER", "default", "resetpass", ">hidden")
            try:
                console.close()
                consoles(store, *port)
                expect(page.locator("#pulse")).to_have_text("ended")
                expect(page.locator("#told")).to_have_text("You are signed out.")
            finally:
                client.execute_command("ACL", "SETUSER", "default", "nopass")
