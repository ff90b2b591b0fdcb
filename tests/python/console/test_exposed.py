"""A console that others can reach: who is let in, and what half a request, or too many, can do."""

from __future__ import annotations

import contextlib
import http.client
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from harness import Board, Server, wait_until
from harness.waiting import PATIENCE

from .process import Console
from .test_security import user

EXPOSED = ["--host", "jobs.example"]
FORWARDED = [
    {"Forwarded": "for=10.0.0.1"},
    {"Via": "1.1 proxy"},
    {"X-Forwarded-For": "10.0.0.1"},
    {"X-Forwarded-Proto": "https"},
    {"X-Real-IP": "10.0.0.1"},
    {"Host": "10.0.0.9"},
]


def sign_in(console: Console, name: str, password: str, **headers: str) -> int:
    return console.ask("/sign-in", "POST", {"user": name, "password": password}, headers).status


# Who needs no password


def test_a_user_who_needs_no_password_is_not_let_in(consoles, store: Server):
    with user(store, "ann", "+@all", "~*"), user(store, "anybody", "nopass", "+@all", "~*"):
        console = consoles(store, *EXPOSED)
        for name in ("default", "anybody"):
            for password in ("x", "secret"):
                answer = console.ask("/sign-in", "POST", {"user": name, "password": password})
                assert answer.status == 403 and "with any password" in answer.body, answer
                assert not answer.cookie
        assert sign_in(console, "ann", "secret") == 303
        assert sign_in(console, "ann", "wrong") == 401
        # Another task says it.
        assert any("default user needs no password" in line for line in console.process.stderr)


@pytest.mark.parametrize("headers", FORWARDED, ids=str)
def test_what_a_proxy_passes_on_may_be_anybodys(reading: Console, headers: dict):
    """On loopback, without a word on the command line."""
    answer = reading.ask("/", headers=headers)
    assert (answer.status, answer.cookie) == (303, "")
    assert reading.ask("/metrics", headers=headers).status == 403
    assert sign_in(reading, "default", "", **headers) == 403
    assert sign_in(reading, "default", "x", **headers) == 403
    own = reading.ask("/").cookie
    assert reading.ask("/", headers={"Cookie": own}).status == 200
    assert reading.ask("/", headers={"Cookie": own, **headers}).status == 303


def test_old_http_is_a_proxys(reading: Console):
    with socket.create_connection(("127.0.0.1", reading.port), timeout=30 * PATIENCE) as link:
        link.sendall(b"GET / HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
        assert link.recv(12) == b"HTTP/1.0 303"


# Half a request


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n",
        b"GET /static/style.css HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    ],
    ids=["nothing", "half a head", "nothing after an answer"],
)
def test_a_connection_that_asks_no_more_is_closed(reading: Console, sent: bytes):
    with socket.create_connection(("127.0.0.1", reading.port), timeout=60 * PATIENCE) as link:
        link.sendall(sent)
        while link.recv(65536):
            pass


def test_a_request_of_which_the_rest_does_not_come_is_ended(reading: Console):
    with socket.create_connection(("127.0.0.1", reading.port), timeout=60 * PATIENCE) as link:
        link.sendall(b"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\nuser=")
        assert link.recv(12) == b"HTTP/1.1 408"


def test_a_request_that_is_too_large_is_refused(reading: Console):
    assert sign_in(reading, "default", "x" * (1 << 20)) == 413


def test_a_connection_that_takes_no_answer_is_closed(consoles, store: Server):
    """Clients that ask again and again and never read hold no connection for long."""
    console = consoles(store, "--connections", "4")
    asked = b"GET /static/style.css HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 500
    with contextlib.ExitStack() as held:
        for _ in range(4):
            link = held.enter_context(socket.socket())
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            link.connect(("127.0.0.1", console.port))
            link.setblocking(False)
            # Until the console reads no more: it cannot write either.
            with contextlib.suppress(BlockingIOError, ConnectionError):
                while True:
                    link.send(asked)
        wait_until(lambda: console.ask("/static/style.css").status == 200, 60)


# Too many


def test_too_many_connections_are_told_so(consoles, store: Server):
    console = consoles(store, "--connections", "4")

    def is_told() -> bool:
        """Whether one more than may be is told; those before it are closed by the console after a while."""
        with contextlib.ExitStack() as held:
            for _ in range(4):
                held.enter_context(socket.create_connection(("127.0.0.1", console.port)))
            answer = console.ask("/static/style.css")
            return answer.status == 503 and "--connections" in answer.body

    wait_until(is_told, 60)
    wait_until(lambda: console.ask("/static/style.css").status == 200, 30)


@contextlib.contextmanager
def live(console: Console, cookie: str, page: str = "boards") -> Iterator[http.client.HTTPResponse]:
    """A page that is told anew."""
    connection = http.client.HTTPConnection("127.0.0.1", console.port, timeout=30 * PATIENCE)
    connection.request("GET", f"/live/{page}", headers={"Cookie": cookie})
    try:
        yield connection.getresponse()
    finally:
        connection.close()


def first_event(response: http.client.HTTPResponse) -> str:
    for line in response:
        if line.startswith(b"event:"):
            return line.decode().split(":", 1)[1].strip()
    raise AssertionError("no event came")


def test_too_many_live_pages_are_told_so(consoles, store: Server, board: Board):
    board.post()
    console = consoles(store, "--connections", "8")
    cookie = console.ask("/").cookie
    with contextlib.ExitStack() as open_pages:
        for _ in range(4):
            response = open_pages.enter_context(live(console, cookie))
            assert first_event(response) in ("part", "look")
        with live(console, cookie) as one_more:
            assert "the most that --connections allows are open" in one_more.read().decode()

    # Those that were closed make room.
    def has_room() -> bool:
        with live(console, cookie) as again:
            return first_event(again) != "over"

    wait_until(has_room, 30)


def test_the_pages_of_one_user_share_answers(reading: Console, store: Server, board: Board):
    """Ten pages that look at the same time ask the server no more than one does."""

    def asked() -> int:
        with store.connect() as client:
            return int(client.info("commandstats").get("cmdstat_job.info", {"calls": 0})["calls"])

    def look() -> None:
        with live(reading, cookie, f"board?b={board.key}") as page:
            while first_event(page) != "look":
                pass

    cookie = reading.ask("/").cookie
    board.post()
    before = asked()
    look()
    alone = asked() - before
    assert alone
    with ThreadPoolExecutor(10) as pages:
        time.sleep(2)  # until the answers of the first look are too old
        # An answer that took seconds is shared for far longer than ten pages need to ask for it.
        store.process.send_signal(signal.SIGSTOP)
        try:
            looks = [pages.submit(look) for _ in range(10)]
            time.sleep(5)
        finally:
            store.process.send_signal(signal.SIGCONT)
        for one in looks:
            one.result()
    assert asked() - before <= alone * 2


def test_whoever_waits_for_a_server_that_hangs_is_told_at_the_same_time(
    consoles, store: Server, board: Board
):
    """Pages that ask the same wait together for the ten seconds, and not one after the other."""
    board.post()
    console = consoles(store)
    headers = {"Cookie": console.ask("/").cookie}
    paths = [path for path in ("/", f"/board?b={board.key}", f"/jobs?b={board.key}") for _ in range(3)]

    def took(path: str) -> float:
        assert console.ask(path, headers=headers).status == 502
        return time.monotonic() - began

    time.sleep(2)  # until the console looks for boards again
    store.process.send_signal(signal.SIGSTOP)
    began = time.monotonic()
    try:
        with ThreadPoolExecutor(len(paths)) as visitors:
            waits = list(visitors.map(took, paths))
    finally:
        store.process.send_signal(signal.SIGCONT)
    # Those who wait for two answers in turn, or for another page first, wait for twice ten seconds.
    assert min(waits) < 18 and max(waits) < 1.8 * min(waits), waits
    assert console.ask("/", headers=headers).status == 200


def test_large_answers_are_not_kept(consoles, store: Server, board: Board):
    """Each search looks into seven megabytes of payloads, and none is the same as another."""
    for _ in range(120):
        board.post('{"pad": "' + "p" * 60_000 + '"}')
    console = consoles(store)
    headers = {"Cookie": console.ask("/").cookie}
    sizes = []
    for number in range(60):
        path = f"/jobs?b={board.key}&payload=pad:{'p' * (number + 1)}"
        assert console.ask(path, headers=headers).status == 200
        sizes.append(resident(console))
    assert sizes[-1] - sizes[9] < 64 << 20, sizes


def resident(console: Console) -> int:
    pages = (Path("/proc") / str(console.process.pid) / "statm").read_text().split()[1]
    return int(pages) * 4096


# Guessing passwords


def test_a_heap_of_wrong_passwords_locks_nobody_out(consoles, store: Server):
    with user(store, "ann", "+@all", "~*"):
        console = consoles(store)
        found: list[int] = []
        guessing = [
            threading.Thread(target=lambda: found.append(sign_in(console, "ann", "wrong"))) for _ in range(60)
        ]
        for one in guessing:
            one.start()
        # The oldest are sent away as soon as there are too many.
        wait_until(lambda: 429 in found, 30)
        wait_until(lambda: sign_in(console, "ann", "secret") == 303, 30)
        for one in guessing:
            one.join(60)
        assert set(found) == {401, 429} and len(found) == 60
        assert sign_in(console, "ann", "secret") == 303


def test_who_hangs_up_early_has_used_a_turn(consoles, store: Server):
    """Guesses whose sender does not stay for the answer are not tried any faster: half a second for two."""
    guesses = 12
    with user(store, "ann", "+@all", "~*"), store.connect() as client:
        console = consoles(store)
        client.execute_command("ACL", "LOG", "RESET")
        body = b"user=ann&password=wrong"
        head = b"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % len(body)

        def tried() -> int:
            log = client.execute_command("ACL", "LOG")
            return sum(int(one["count"]) for one in log if one["reason"] == "auth")

        began = time.monotonic()
        for number in range(guesses):
            with socket.create_connection(("127.0.0.1", console.port)) as link:
                link.sendall(head + body)
                wait_until(lambda number=number: tried() > number, 30)
        assert time.monotonic() - began >= (guesses - 2) / 2 * 0.5
