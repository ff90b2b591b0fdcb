"""Which rights each command needs: every one is tried by everybody, against the table in rights.py."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import lives
import pytest
import redis
from calls import CALLS
from expect import error_text, refused_like
from harness import Server
from lives import LONG
from rights import FORMS, ROLES, TABLE, call, of_role, roles, verbs

SECRET = "s3cret"
PERMISSIONS = {"": [], "r": ["%R~board"], "w": ["%W~board"], "rw": ["~board"]}


@pytest.fixture
def user(server: Server) -> Iterator[Callable[..., redis.Redis]]:
    """Makes a user with these rules and gives a client of its."""

    def make(*rules: str) -> redis.Redis:
        server.client().execute_command("ACL", "SETUSER", "ann", "reset", "on", ">secret", *rules)
        return server.client(username="ann", password="secret", encoding_errors="replace")

    yield make
    server.client().execute_command("ACL", "DELUSER", "ann")


def tried(client: redis.Redis, words: list) -> Any:
    """The reply as it came; an error as its text."""
    connection = client.connection_pool.get_connection()
    try:
        connection.send_command(*words)
        return connection.read_response()
    except redis.ResponseError as error:
        return error_text(error)
    finally:
        client.connection_pool.release(connection)


def is_refused(reply: Any) -> bool:
    return isinstance(reply, str) and reply.startswith("NOPERM")


def every_call() -> list[list]:
    """Each form of each command alone, and with each of its options."""
    calls = [call(verb, row.words) for verb, row in TABLE.items()]
    calls += [call(verb, words) for verb, words, _ in FORMS]
    for one in CALLS:
        head = [f"JOB.{one.name}", "board", *one.head]
        calls += [head, *([*head, option, *words] for option, words in one.options.items())]
    return calls


def test_the_table_knows_every_command(server):
    assert set(TABLE) == set(verbs(server))


@pytest.mark.parametrize("permission", PERMISSIONS)
@pytest.mark.parametrize("role", [*ROLES, "everybody"])
def test_a_call_needs_its_command_and_its_rights_on_the_key(server, user, role, permission):
    rules = ["+@all"]
    if role in ROLES:
        rules = [rule for rule in roles()[role] if rule[0] not in "~%>" and rule != "on"]
    client = user(*rules, *PERMISSIONS[permission])
    own = of_role(role) if role in ROLES else set(TABLE)
    calls = [(verb, row.words, row.needs) for verb, row in TABLE.items()] + FORMS
    for verb, words, needs in calls:
        may = verb in own and set(needs) <= set(permission)
        reply = tried(client, call(verb, words))
        assert is_refused(reply) != may, (verb, words, reply)


def test_a_transaction_needs_the_same_rights(board, user):
    client = user("+@all", *PERMISSIONS["w"])
    for verb, words, needs in FORMS:
        assert tried(client, ["MULTI"]) == "OK"
        reply = tried(client, call(verb, words))
        tried(client, ["DISCARD"])
        assert is_refused(reply) == (needs != "w"), (words, reply)


def test_a_script_needs_the_same_rights(board, user):
    client = user("+@all", *PERMISSIONS["w"])
    for verb, words, needs in FORMS:
        reply = tried(client, ["EVAL", "return redis.call(unpack(ARGV))", "0", *call(verb, words)])
        # Each server has words of its own for that.
        refused = re.search("NOPERM|ACL failure|permission|can.t access", str(reply))
        assert bool(refused) == (needs != "w"), (words, reply)


def fill(server: Server) -> None:
    """A board whose every text but the ids is secret."""
    board, other = server.board(), f"{SECRET}-other"
    full = {"queue": f"{SECRET}-queue", "group": f"{SECRET}-group", "user": SECRET, "name": SECRET}
    board.post(SECRET, id="failed", meta={SECRET: SECRET}, tags=[SECRET], retries=0, **full)
    board.claim("s3cret-worker", queues=[full["queue"]])
    board.fail("s3cret-worker", "failed", kind=SECRET, message=SECRET)
    board.post(SECRET, id="j", meta={SECRET: SECRET}, tags=[SECRET], **full)
    board.post(SECRET, id="k", unique="k", queue=other)
    board.post(SECRET, id="x", after=["j"])
    for words in (
        ["SCHEDULE", "SET", "board", "s", SECRET, "EVERY", LONG],
        ["SETTINGS", "SET", "board", "QUEUE", SECRET, "concurrency", 1],
        ["WORKER", "REGISTER", "board", "w1", "ROLE", SECRET, "META", 1, SECRET, SECRET],
    ):
        board.client.execute_command(f"JOB.{words[0]}", *words[1:])


def test_who_may_only_write_reads_nothing(server, user):
    client, seen = user("+@all", *PERMISSIONS["w"]), set()
    for words in every_call():
        server.flush()
        fill(server)
        reply = tried(client, words)
        if not is_refused(reply):
            seen.add(words[0])
            assert SECRET.encode() not in repr(reply).encode(), words
    assert {"JOB.POST", "JOB.MPOST", "JOB.DELETE"} <= seen


def test_who_may_only_read_changes_nothing(server, board, user):
    fill(server)
    client, seen, before = user("+@all", *PERMISSIONS["r"]), set(), board.digest()
    for words in every_call():
        if not is_refused(tried(client, words)):
            seen.add(words[0])
            assert board.digest() == before, words
    assert {"JOB.GET", "JOB.LIST", "JOB.WAIT", "JOB.INFO"} <= seen


def test_each_board_that_is_named_needs_its_right(server, user):
    client = user("+@all", "%R~board")
    assert not is_refused(tried(client, ["JOB.METRICS"]))
    assert is_refused(tried(client, ["JOB.METRICS", "board", "other"]))


def test_numbers_of_the_server_name_no_board(server, user):
    server.board("other").post(queue="elsewhere")
    text = str(tried(user("+@all", "%R~board"), ["JOB.METRICS"]))
    assert "jobboard_boards" in text and "other" not in text and "elsewhere" not in text


@contextlib.contextmanager
def full(server: Server) -> Iterator[None]:
    with server.configured(maxmemory_policy="noeviction", maxmemory=0):
        server.client().config_set("maxmemory", 1)
        yield
        server.client().config_set("maxmemory", 0)


def test_a_full_server_refuses_what_adds_and_nothing_else(server, board):
    lives.ready(board)
    board.client.execute_command("JOB.WORKER", "REGISTER", "board", "w1")
    with full(server):
        for verb, row in TABLE.items():
            reply = tried(board.client, call(verb, row.words))
            assert str(reply).startswith("OOM") == row.adds, (verb, reply)


def test_a_full_server_takes_no_new_worker_and_lets_none_go(server, board):
    def register(*words: Any) -> Any:
        return board.client.execute_command("JOB.WORKER", "REGISTER", "board", *words)

    register("w1", "ROLE", "mail", "META", 1, "host", "north")
    with full(server):
        for words in (["w2"], ["w1", "META", 1, "rack", "7"], ["w1", "ROLE", "mailer"]):
            with refused_like("OOM .+", board):
                register(*words)
        assert register("w1", "META", 1, "host", "south", "ROLE", "mail", "FOR", LONG)["expires"] > 0
    assert register("w2")
