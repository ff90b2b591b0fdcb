"""A console of a cluster shows the boards of every primary, by TLS as well, and asks each about its users."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from harness import Server, wait_until
from harness.cluster import CONFIG, Cluster
from harness.server import free_port
from openmetrics import parse, values
from playwright.sync_api import Page, expect
from redis.crc import key_slot

from .process import Console
from .test_connections import tls
from .test_exposed import EXPOSED


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


def test_a_user_whom_one_node_no_longer_takes_is_signed_out(consoles, spread: Cluster):
    """Each node has users of its own: the console asks all of them, not the one in its address alone."""
    named, *others = spread.primaries
    for server in spread.primaries:
        spread.ask(server, "ACL", "SETUSER", "ann", "on", ">secret", "+@all", "~*")
    console = consoles(f"redis://127.0.0.1:{named.port}", *EXPOSED, "--recheck", "1")
    cookie = console.ask("/sign-in", "POST", {"user": "ann", "password": "secret"}).cookie
    asked = spread.ask(others[-1], "INFO", "commandstats")["cmdstat_hello"]["calls"]
    again = lambda: spread.ask(others[-1], "INFO", "commandstats")["cmdstat_hello"]["calls"] > asked  # noqa: E731
    wait_until(again, 60, what="the other node is asked")
    assert console.ask("/", headers={"Cookie": cookie}).status == 200
    spread.ask(others[-1], "ACL", "SETUSER", "ann", "off")
    wait_until(
        lambda: console.ask("/", headers={"Cookie": cookie}).status == 303, 60, what="the session ends"
    )


def test_a_node_that_is_silent_hides_its_own_boards_alone(consoles, spread: Cluster):
    keys = [f"jobs-{number}" for number in range(6)]
    for key in keys:
        spread.board(key).post(id="j")
    silent = spread.owner(keys[0])
    others = [key for key in keys if spread.owner(key) is not silent]
    console = consoles(f"redis://127.0.0.1:{spread.primaries[0].port}")
    os.kill(silent.process.pid, signal.SIGSTOP)
    try:
        says = f"127.0.0.1:{silent.port} of the cluster does not answer"
        # A list of boards that is young is shown again, and says of each of them that it does not answer.
        page = wait_until(lambda: says in (one := console.ask("/")).body and one, 60, what="it is missed")
        assert page.status == 200
        assert [key for key in keys if f"b={key}" in page.body] == others
        for key in others:
            assert console.ask(f"/board?b={key}").status == 200
        answer = console.ask("/metrics")
        assert (answer.status, answer.body) == (
            503,
            f"The server 127.0.0.1:{silent.port} of the cluster does not answer.\n",
        )
    finally:
        os.kill(silent.process.pid, signal.SIGCONT)
    wait_until(lambda: all(f"b={key}" in console.ask("/").body for key in keys), 60, what="all are back")
    wait_until(lambda: console.ask("/metrics").status == 200, 60, what="and their numbers")


@pytest.mark.long
def test_a_replica_that_takes_the_place_of_a_silent_node_is_found(consoles):
    """The one of --redis is silent, too: the console knows others from before."""
    cluster = Cluster("valkey91", replicas=1)
    keys = [f"jobs-{number}" for number in range(6)]
    for key in keys:
        cluster.board(key).post(id="j")
    for server in cluster.servers:
        cluster.ask(server, "ACL", "SETUSER", "ann", "on", ">secret", "+@all", "~*")
    silent = cluster.owner(keys[0])
    console = consoles(f"redis://127.0.0.1:{silent.port}")
    assert all(f"b={key}" in console.ask("/").body for key in keys)
    os.kill(silent.process.pid, signal.SIGSTOP)
    try:
        wait_until(lambda: all(f"b={key}" in console.ask("/").body for key in keys), 120, what="all boards")
        for key in keys:
            assert console.ask(f"/board?b={key}").status == 200
        wait_until(lambda: console.ask("/metrics").status == 200, 60, what="their numbers")
        assert console.ask("/sign-in", "POST", {"user": "ann", "password": "wrong"}).status == 401
        signed_in = console.ask("/sign-in", "POST", {"user": "ann", "password": "secret"})
        assert signed_in.status == 303
        page = console.ask(f"/board?b={keys[0]}", headers={"Cookie": signed_in.cookie})
        assert (page.status, "ann" in page.body) == (200, True)
    finally:
        os.kill(silent.process.pid, signal.SIGCONT)
        cluster.close()


def test_tls_to_each_node_with_a_private_ca_and_a_certificate(consoles, fresh_server, certificates: Path):
    """The nodes name each other's TLS ports, and ask for a certificate."""
    ports = [free_port(), free_port()]
    servers: list[Server] = []
    for port in ports:
        config = [*CONFIG, *tls(certificates, port), "tls-cluster yes"]
        servers.append(fresh_server(kind="redis70", config=config))  # the others have no TLS
    for number, server in enumerate(servers):
        with server.connect() as client:
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", 8192 * number, 8192 * number + 8191)
            client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
    with servers[0].connect() as client:
        client.execute_command("CLUSTER", "MEET", "127.0.0.1", ports[1], ports[1] + 10000)

    def is_whole(server: Server) -> bool:
        with server.connect() as client:
            state = client.execute_command("CLUSTER", "INFO")
        if not isinstance(state, dict):
            state = dict(line.split(":", 1) for line in state.split("\r\n") if ":" in line)
        return state["cluster_state"] == "ok" and int(state["cluster_known_nodes"]) == 2

    for server in servers:
        wait_until(lambda one=server: is_whole(one), 60, what="the cluster is whole")
    keys = ["a", "b"]
    assert {key_slot(key.encode()) // 8192 for key in keys} == {0, 1}
    for key in keys:
        servers[key_slot(key.encode()) // 8192].board(key).post(id="j")
    url = f"rediss://127.0.0.1:{ports[0]}"
    ca = ["--cacert", str(certificates / "ca.pem")]
    own = ["--cert", str(certificates / "client.pem"), "--key", str(certificates / "client.key")]
    console = consoles(url, *ca, *own, "--write")
    front = console.ask("/")
    for key in keys:
        assert f"/board?b={key}" in front.body
        page = console.ask(console.at("/job", b=key, id="j"), headers={"Cookie": front.cookie})
        assert page.status == 200 and "ready" in page.body
    for odd in [ca, own]:
        assert consoles(url, *odd).ask("/").status == 502
