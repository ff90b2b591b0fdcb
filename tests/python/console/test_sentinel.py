"""A console that asks Sentinels shows the primary that they name, also after a failover."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from harness import Server, wait_until
from harness.server import free_port
from playwright.sync_api import Page, expect
from sentinels import Watched
from servers import NAME, Sentinel

from .process import Console
from .test_actions import act
from .test_connections import tls
from .test_exposed import EXPOSED, sign_in

ANSWER = 90_000
"""A frozen server keeps who has asked it for ten seconds."""


@pytest.fixture
def sentinel() -> Iterator[Callable[..., Sentinel]]:
    """Starts a Sentinel: alone, it names a primary and replaces none."""
    started: list[Sentinel] = []

    def start(server: Server, *config: str, port: int | None = None) -> Sentinel:
        started.append(Sentinel(server.kind, port or server.port, config))
        one = started[-1]
        wait_until(lambda: one.primary(), 20, what="the Sentinel answers")
        return one

    yield start
    for one in started:
        one.close()


def cancel(page: Page, console: Console, server: Server, id: str) -> None:
    page.goto(console.at("/job", b="jobs", id=id))
    act(page, "Cancel")
    expect(page.locator("#now .state-line")).to_contain_text("cancelled")
    assert server.board("jobs").state(id) == "cancelled"


@pytest.mark.parametrize("how", ["kill", "freeze"])
def test_pages_and_actions_follow_a_failover(page: Page, consoles, watched: Watched, how: str):
    old, new = watched.servers
    for id in "abc":
        old.board("jobs").post(id=id)
    console = consoles(watched.url, "--write")
    cancel(page, console, old, "a")
    new.wait_synced(old)
    watched.sentinels[0].close()  # the first that is asked
    cancel(page, console, old, "b")
    new.wait_synced(old)
    page.goto(console.at("/board", b="jobs"))
    ready = page.locator("#overview .figures li").filter(has_text="ready").locator(".figure")
    expect(ready).to_have_text("1")
    expect(page.locator("#pulse")).to_have_text("live")
    watched.fail_over(how)
    new.board("jobs").post_many(11)
    # The page that was open goes on by itself, without loading anew.
    expect(ready).to_have_text("12", timeout=ANSWER)
    expect(page.locator("#pulse")).to_have_text("live", timeout=ANSWER)
    cancel(page, console, new, "c")
    assert "jobs" in console.ask("/").body and console.ask("/metrics").status == 200


def test_a_new_session_is_one_of_the_new_primary(consoles, watched: Watched):
    watched.fail_over("kill")
    watched.servers[1].board("jobs").post()
    answer = consoles(watched.url).ask("/")
    assert answer.status == 200 and "jobs" in answer.body


def test_who_signed_in_stays_so_and_nobody_comes_without_password(consoles, watched: Watched):
    for server in watched.servers:
        with server.connect() as client:
            client.execute_command("ACL", "SETUSER", "ann", "on", ">secret", "+@all", "~*")
            client.execute_command("ACL", "SETUSER", "anybody", "on", "nopass", "+@all", "~*")
    watched.servers[0].board("jobs").post()
    watched.servers[1].wait_synced(watched.servers[0])
    console = consoles(watched.url, *EXPOSED)

    def check() -> None:
        assert (sign_in(console, "anybody", "x"), sign_in(console, "default", "x")) == (403, 403)
        assert sign_in(console, "ann", "wrong") == 401

    check()
    cookie = console.ask("/sign-in", "POST", {"user": "ann", "password": "secret"}).cookie
    watched.fail_over("kill")
    wait_until(lambda: console.ask("/", headers={"Cookie": cookie}).status == 200, 60)
    assert console.ask(console.at("/board", b="jobs"), headers={"Cookie": cookie}).status == 200
    assert console.ask("/").status == 303
    check()


def test_a_primary_that_has_become_a_replica_is_left(page: Page, consoles, fresh_server, sentinel):
    """Its connection stands; it refuses what would change something."""
    old = fresh_server()
    new = fresh_server(replicaof=old)
    one = sentinel(old)
    old.board("jobs").post(id="a")
    new.wait_synced(old)
    console = consoles(f"redis+sentinel://127.0.0.1:{one.port}/{NAME}", "--write")
    page.goto(console.at("/job", b="jobs", id="a"))
    with redis.Redis(port=one.port) as watching, new.connect() as to_new, old.connect() as to_old:
        watching.execute_command("SENTINEL", "REMOVE", NAME)
        to_new.execute_command("REPLICAOF", "NO", "ONE")
        to_old.execute_command("REPLICAOF", "127.0.0.1", new.port)
        watching.execute_command("SENTINEL", "MONITOR", NAME, "127.0.0.1", new.port, 2)
    old.wait_synced(new)
    act(page, "Cancel")
    expect(page.locator("#now .state-line")).to_contain_text("cancelled")
    assert new.board("jobs").state("a") == "cancelled"


def test_what_was_asked_is_named_when_no_primary_is_found(consoles, fresh_server, sentinel):
    server, dead = fresh_server(), free_port()
    one = sentinel(server)
    console = consoles(
        f"sentinel://:hushhush@127.0.0.1:{dead},127.0.0.1:{server.port},127.0.0.1:{one.port}/nobody"
    )
    answer = console.ask("/")
    assert answer.status == 502 and "primary of &quot;nobody&quot;" in answer.body
    for told in [f"{dead} does not answer", f"{server.port} is no Sentinel", f"{one.port} does not know"]:
        assert f"127.0.0.1:{told}" in answer.body
    assert console.process.stderr is not None
    told = console.process.stderr.readline()
    assert "nobody" in told and "hushhush" not in told + answer.body


def test_a_replica_is_not_taken_for_the_primary(consoles, fresh_server, sentinel):
    """What a Sentinel says may be out of date."""
    one = sentinel(fresh_server(replicaof=fresh_server()))
    answer = consoles(f"sentinel://127.0.0.1:{one.port}/{NAME}").ask("/")
    assert answer.status == 502 and "It is a replica now" in answer.body


def test_who_is_not_signed_in_learns_no_addresses(consoles):
    console = consoles(f"sentinel://127.0.0.1:{free_port()}/nobody", *EXPOSED)
    answer = console.ask("/sign-in", "POST", {"user": "ann", "password": "secret"})
    assert answer.status == 502 and "cannot be reached" in answer.body and "127.0.0.1" not in answer.body


def test_sentinels_have_users_of_their_own(consoles, fresh_server, sentinel):
    server = fresh_server()
    server.board("jobs").post()
    with server.connect() as client:
        client.execute_command("ACL", "SETUSER", "prometheus", "on", ">p%/w", "+job.metrics", "+scan", "%R~*")
    one = sentinel(server)
    with redis.Redis(port=one.port) as watching:
        watching.execute_command("ACL", "SETUSER", "console", "on", ">s&n", "+@all")
        watching.execute_command("ACL", "SETUSER", "default", "off")
    url = f"redis+sentinel://prometheus:p%25%2Fw@127.0.0.1:{one.port}/{NAME}"
    assert "sentinel_password" in consoles(url).ask("/").body
    console = consoles(f"{url}?sentinel_username=console&sentinel_password=s%26n")
    assert console.ask("/").status == 200
    assert 'board="jobs"' in console.ask("/metrics").body


def test_tls_of_sentinel_and_server(consoles, fresh_server, sentinel, tmp_path: Path):
    subprocess.run(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key -out ca -days 2 "
        "-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:false",
        shell=True, check=True, cwd=tmp_path, capture_output=True,
    )  # fmt: skip
    port, other = free_port(), free_port()
    tls = [f"tls-cert-file {tmp_path}/ca", f"tls-key-file {tmp_path}/key", f"tls-ca-cert-file {tmp_path}/ca"]
    tls += ["tls-auth-clients no"]
    server = fresh_server(kind="redis70", config=[f"tls-port {port}", *tls])  # the others have no TLS
    server.board("jobs").post()
    sentinel(server, f"tls-port {other}", "tls-replication yes", *tls, port=port)
    url = f"rediss+sentinel://127.0.0.1:{other}/{NAME}"
    trusted = {"SSL_CERT_FILE": f"{tmp_path}/ca"}
    assert consoles(url, environment=trusted).ask("/board?b=jobs").status == 200
    # Whoever is not known is not trusted.
    assert consoles(url).ask("/").status == 502


def test_a_sentinel_and_a_server_that_ask_for_a_certificate(
    consoles,
    fresh_server,
    sentinel,
    certificates: Path,
):
    port, other = free_port(), free_port()
    server = fresh_server(kind="redis70", config=tls(certificates, port))  # the others have no TLS
    server.board("jobs").post()
    sentinel(server, "tls-replication yes", *tls(certificates, other), port=port)
    url = f"rediss+sentinel://127.0.0.1:{other}/{NAME}"
    ca = ["--cacert", str(certificates / "ca.pem")]
    own = ["--cert", str(certificates / "client.pem"), "--key", str(certificates / "client.key")]
    assert consoles(url, *ca, *own).ask("/board?b=jobs").status == 200
    assert consoles(url, *ca).ask("/").status == 502
    assert consoles(url, *own).ask("/").status == 502


def test_a_wrong_address_is_told_without_its_password():
    with pytest.raises(AssertionError, match="not an address like redis.sentinel://") as told:
        Console("redis+sentinel://user:hushhush@one,two")
    assert "hushhush" not in str(told.value)
