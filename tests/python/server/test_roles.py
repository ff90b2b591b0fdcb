"""The ACL roles of redis.conf: each may do its part, on its own boards, and nothing else."""

from __future__ import annotations

import re

import pytest
import redis
from harness import Board, Server
from harness.server import ROOT
from rights import ROLES, of_role, roles, verbs

PASSWORD = "choose-a-password"


@pytest.fixture(scope="module")
def with_roles(server_kind):
    server = Server(server_kind)
    with server.connect() as client:
        for name, rules in roles().items():
            client.execute_command("ACL", "SETUSER", name, *rules)
    yield server
    server.check_health()
    server.close()


def permitted(server, user: str, verb: str, key: str) -> bool:
    """Whether the server would let the user call it on that key."""
    name, _, sub = f"job.{verb}".partition("|")
    client = server.client()
    for more in range(9):
        words = [name, *([sub] if sub else []), key, *["1"] * more]
        try:
            reply = client.execute_command("ACL", "DRYRUN", user, *words)
        except redis.ResponseError as error:
            assert "wrong number of arguments" in str(error)
            continue
        assert reply == "OK" or "no permissions" in reply, (verb, reply)
        return reply == "OK"
    raise AssertionError(f"{verb} takes no number of words")


def test_every_role_of_the_configuration_is_known_here():
    assert set(roles()) == set(ROLES)


def test_the_security_page_lists_every_role():
    page = (ROOT / "SECURITY.md").read_text()
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == list(ROLES)
    numbers = {4: "four", 5: "five", 6: "six"}
    for text in (page, (ROOT / "docs" / "guides" / "install.md").read_text()):
        assert f"redis.conf has {numbers[len(ROLES)]}" in text.replace(
            "[redis.conf](redis.conf)", "redis.conf"
        )


def test_every_command_belongs_to_a_role(with_roles):
    assert set(verbs(with_roles)) == set().union(*map(of_role, ROLES))


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_do_its_part_and_nothing_else(with_roles, role):
    may = {verb for verb in verbs(with_roles) if permitted(with_roles, role, verb, "jobs:mail")}
    assert may == of_role(role)


@pytest.mark.parametrize("role", ROLES)
def test_a_role_ends_at_its_boards(with_roles, role):
    for verb in verbs(with_roles):
        assert not permitted(with_roles, role, verb, "other:mail"), verb


@pytest.mark.parametrize(
    "words",
    [["GET", "jobs:mail"], ["FLUSHALL"], ["CONFIG", "GET", "*"], ["KEYS", "*"], ["SELECT", "3"]],
    ids=str,
)
@pytest.mark.parametrize("role", ROLES)
def test_no_role_may_do_what_is_not_of_boards(with_roles, role, words):
    assert with_roles.client().execute_command("ACL", "DRYRUN", role, *words) != "OK"


WORKERS = ["job.worker:jobs:mail:w1", "job.worker:jobs:mail:host:7"]
EVENTS = ["job.events:jobs:mail", "job.events:jobs:mail:more"]
HEARD = {
    "producer": [],
    "worker": WORKERS,
    "operator": WORKERS + EVENTS,
    "approver": EVENTS,
    "observer": WORKERS + EVENTS,
    "metrics": [],
}
"""Channels that a role may subscribe to."""
UNHEARD = ["job.events:other", "job.events:jobs", "job.worker:other:w1", "job.worker:jobs:w1", "job.", "mail"]
"""Those of other boards, and what is no board's: nobody may."""


@pytest.mark.parametrize("role", ROLES)
def test_a_role_hears_its_boards_alone(with_roles, role):
    channels = {*WORKERS, *EVENTS, *UNHEARD}
    client = with_roles.client()
    tried = {
        channel: client.execute_command("ACL", "DRYRUN", role, "SUBSCRIBE", channel) for channel in channels
    }
    assert {channel for channel, reply in tried.items() if reply == "OK"} == set(HEARD[role])


@pytest.mark.parametrize("pattern", ["job.*", "*", "job.worker:*", "job.events:*"])
@pytest.mark.parametrize("role", ROLES)
def test_a_role_hears_no_boards_at_large(with_roles, role, pattern):
    assert with_roles.client().execute_command("ACL", "DRYRUN", role, "PSUBSCRIBE", pattern) != "OK"


@pytest.mark.parametrize("user", ["default", *ROLES])
@pytest.mark.parametrize("verb", ["apply", "load"])
def test_nobody_may_call_what_is_internal(with_roles, user, verb):
    login = {} if user == "default" else {"username": user, "password": PASSWORD}
    client = with_roles.client(**login)
    with pytest.raises(redis.RedisError):
        client.execute_command(f"JOB.{verb}", "jobs:mail", b"\x93\x00\x00\x00")
    assert with_roles.client().exists("jobs:mail") == 0


def test_the_roles_work_together(with_roles):
    producer, worker, operator, observer = (
        Board(with_roles.client(username=role, password=PASSWORD), "jobs:team")
        for role in ("producer", "worker", "operator", "observer")
    )
    producer.post("x", id="a")
    producer.post("x", id="b")
    token = worker.claim_one("w1", id="a")["token"]
    assert observer.state("a") == "claimed" and observer.count() == 2
    assert operator.cancel("b") == ["cancelled"]
    assert worker.consume("w1", "a", token=token) == "complete"
    with pytest.raises(redis.exceptions.NoPermissionError):
        observer.cancel("b")
    with pytest.raises(redis.exceptions.NoPermissionError):
        producer.claim("w1")
    operator.delete("b")


def test_an_approver_sees_what_waits_and_signals_it(with_roles):
    worker, approver = (
        Board(with_roles.client(username=role, password=PASSWORD), "jobs:pay")
        for role in ("worker", "approver")
    )
    with_roles.client().execute_command("JOB.POST", "jobs:pay", "x", "ID", "a")
    worker.claim_one("w1")
    assert worker.wait_for("w1", "a", ["approved"]) == {"state": "blocked"}
    [job] = approver.list_all(awaits="approved")
    assert approver.signal("approved", job["id"], value="yes", sender="eve") == ["woken"]
    with pytest.raises(redis.exceptions.NoPermissionError):
        approver.cancel("a")
    with pytest.raises(redis.exceptions.NoPermissionError):
        worker.signal("approved", "a")


def test_an_observer_who_may_only_read_changes_nothing(with_roles):
    with_roles.client().execute_command("JOB.POST", "jobs:read", "x", "ID", "a")
    observer = Board(with_roles.client(username="observer", password=PASSWORD), "jobs:read")
    before = observer.digest()
    observer.list(), observer.queues(), observer.history("a"), observer.info()
    assert observer.digest() == before
