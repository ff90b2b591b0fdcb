"""The ACL roles of redis.conf: each may do its part, on its own boards, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import redis
from harness import Board, Server

CONFIG = Path(__file__).resolve().parents[3] / "redis.conf"
PASSWORD = "choose-a-password"
INTERNAL = {"job.apply", "job.load", "job.probe"}

READS = set(
    "get mget list count history explain queues groups limits workers tags kinds info stats metrics".split()
    + ["wait"]
)
ENDS = set("heartbeat mheartbeat consume mconsume fail abandon mabandon trash".split())
RIGHTS = {
    "producer": {"post", "mpost", "flow", "get", "mget", "wait"},
    "worker": {"claim", *ENDS, "get", "mget", "history", "wait", "worker|register", "worker|deregister"},
    "operator": READS
    | set("cancel release requeue delete update pause resume".split())
    | {"depend|add", "depend|remove", "depend|clear", "settings|get", "settings|set", "settings|reset"}
    | {f"schedule|{verb}" for verb in "set get list del pause resume run".split()}
    | {f"worker|{verb}" for verb in "register deregister list quiet resume".split()},
    "observer": READS | {"settings|get", "schedule|get", "schedule|list", "worker|list"},
}
"""What each role may call, beside what every connection needs."""


def roles() -> dict[str, list[str]]:
    """The rules of each role, as redis.conf has them."""
    found = re.findall(r"^# user (\w+) (.+)$", CONFIG.read_text(), re.M)
    return {name: rules.split() for name, rules in found}


@pytest.fixture(scope="module")
def with_roles(server_kind):
    server = Server(server_kind)
    with server.connect() as client:
        for name, rules in roles().items():
            client.execute_command("ACL", "SETUSER", name, *rules)
    yield server
    server.check_health()
    server.close()


def verbs(server) -> list[str]:
    """The commands of the module without their prefix, a subcommand as parent|name."""
    connection = server.client(protocol=2).connection_pool.get_connection()

    def ask(*words: str) -> list:
        connection.send_command(*words)
        return connection.read_response()

    names = ask("COMMAND", "LIST", "FILTERBY", "MODULE", "jobboard")
    parents = {name.split("|")[0] for name in names if "|" in name}
    docs = ask("COMMAND", "DOCS", *[name for name in names if "|" not in name])
    docs = dict(zip(docs[::2], docs[1::2]))
    found = []
    for name, facts in docs.items():
        facts = dict(zip(facts[::2], facts[1::2]))
        subs = facts.get("subcommands")
        if subs:
            found += subs[::2]
        elif name not in parents and name not in INTERNAL:
            found.append(name)
    return sorted(name.lower().removeprefix("job.") for name in found)


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
    assert set(roles()) == set(RIGHTS)


def test_every_command_belongs_to_a_role(with_roles):
    assert set(verbs(with_roles)) == set().union(*RIGHTS.values())


@pytest.mark.parametrize("role", RIGHTS)
def test_a_role_may_do_its_part_and_nothing_else(with_roles, role):
    may = {verb for verb in verbs(with_roles) if permitted(with_roles, role, verb, "jobs:mail")}
    assert may == RIGHTS[role]


@pytest.mark.parametrize("role", RIGHTS)
def test_a_role_ends_at_its_boards(with_roles, role):
    for verb in verbs(with_roles):
        assert not permitted(with_roles, role, verb, "other:mail"), verb


@pytest.mark.parametrize(
    "words", [["GET", "jobs:mail"], ["FLUSHALL"], ["CONFIG", "GET", "*"], ["KEYS", "*"]], ids=str
)
@pytest.mark.parametrize("role", RIGHTS)
def test_no_role_may_do_what_is_not_of_boards(with_roles, role, words):
    assert with_roles.client().execute_command("ACL", "DRYRUN", role, *words) != "OK"


@pytest.mark.parametrize("user", ["default", *RIGHTS])
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


def test_an_observer_who_may_only_read_changes_nothing(with_roles):
    with_roles.client().execute_command("JOB.POST", "jobs:read", "x", "ID", "a")
    observer = Board(with_roles.client(username="observer", password=PASSWORD), "jobs:read")
    before = observer.digest()
    observer.list(), observer.queues(), observer.history("a"), observer.info()
    assert observer.digest() == before
