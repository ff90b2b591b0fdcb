"""Events by pub/sub, what workers are told in any case, and keyspace notifications."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import lives
import pytest
from expect import refused, refused_like
from harness import Server, wait_until
from lives import LONG
from waiters import Waiter

COMMON = ["event", "db", "board", "id", "version", "at"]


class Listener:
    """A subscriber of its own connection."""

    def __init__(self, server: Server, *channels: Any, patterns: tuple = ()) -> None:
        self.pubsub = server.raw_client().pubsub()
        if channels:
            self.pubsub.subscribe(*channels)
        if patterns:
            self.pubsub.psubscribe(*patterns)
        for _ in (*channels, *patterns):
            assert self.pubsub.get_message(timeout=30)["type"] in ("subscribe", "psubscribe")
        self.server = server

    def raw(self) -> list:
        """(channel, data) of what has come so far: all before a message of our own."""
        self.server.client().publish("end", "")
        found = []
        while True:
            message = self.pubsub.get_message(timeout=30)
            assert message, "no message"
            if message["channel"] == b"end":
                return found
            found.append((message["channel"], message["data"]))

    def messages(self) -> list:
        return [json.loads(data) for _, data in self.raw()]

    def events(self) -> list:
        return [message["event"] for message in self.messages()]


def listen(server: Server, events: str = "all", key: str = "board") -> Listener:
    """Turns events on and hears them."""
    server.client().execute_command("JOB.SETTINGS", "SET", key, "events", events)
    return Listener(server, f"job.events:{key}", "end")


# What is told


def test_a_life_is_told_from_beginning_to_end(server):
    board = server.board()
    listener = listen(server)
    board.post("x", id="j", name="mail", queue="q", priority=4)
    [job] = board.claim("w1", queues=["q"])
    board.heartbeat("w1", "j", progress=12.5, stage="half")
    board.consume("w1", "j", token=job["token"])
    posted, ready, claimed, progress, completed = listener.messages()
    assert list(posted)[:6] == COMMON
    assert posted | {"at": 0, "version": 0} == {
        **{"event": "posted", "db": 0, "board": "board", "id": "j", "version": 0, "at": 0},
        **{"queue": "q", "name": "mail", "priority": 4},
    }
    assert (ready["event"], ready["queue"], ready["version"]) == ("ready", "q", posted["version"])
    assert (claimed["event"], claimed["worker"], claimed["token"]) == ("claimed", "w1", job["token"])
    assert (claimed["attempt"], claimed["deadline"]) == (1, job["deadline"])
    assert (progress["progress"], progress["stage"], progress["worker"]) == (12.5, "half", "w1")
    assert (completed["event"], completed["worker"], completed["kept"]) == ("completed", "w1", False)
    assert completed["version"] == board.info()["revision"]


def told(server: Server, act) -> list:
    """The events of what `act` does to a claimed job."""
    board = server.board()
    lives.claimed(board)
    listener = listen(server)
    act(board)
    return listener.messages()


@pytest.mark.parametrize(
    ("act", "events"),
    [
        (lambda b: b.fail("w1", "j", "kind", "text", retry=LONG), ["retried"]),
        (lambda b: b.fail("w1", "j", "kind", "text", retry=0), ["retried", "ready"]),
        (lambda b: b.fail("w1", "j", "kind", "text", noretry=True), ["failed"]),
        (lambda b: b.abandon("w1", "j", reason="home"), ["abandoned", "ready"]),
        (lambda b: b.abandon("w1", "j", delay=LONG), ["abandoned"]),
        (lambda b: b.trash("w1", "j", reason="bad"), ["trashed"]),
        (lambda b: b.cancel("j"), []),
        (lambda b: b.cancel("j", force=True), ["lost", "cancelled"]),
        (lambda b: b.release("j"), ["lost", "ready"]),
        (lambda b: b.delete("j"), ["lost", "deleted"]),
        (lambda b: b.post(id="j", replace=True), ["lost", "posted", "ready"]),
        (lambda b: b.update("j", progress=3), ["progress", "updated"]),
        (lambda b: b.update("j", priority=3), ["updated"]),
        (lambda b: b.update("j", track=True), ["updated"]),
        (lambda b: b.update("j", priority=3, untag=["none"]), ["updated"]),
        (lambda b: b.heartbeat("w1", "j"), []),
        (lambda b: b.pause(release=True), ["settings", "lost", "ready"]),
        (lambda b: b.pause(queue="q"), ["settings"]),
        (lambda b: (b.trash("w1", "j"), b.requeue("j")), ["trashed", "retried", "ready"]),
        (lambda b: (b.trash("w1", "j"), b.delete("j")), ["trashed", "deleted"]),
    ],
)
def test_each_verb_tells_what_it_did(server, act, events):
    assert [message["event"] for message in told(server, act)] == events


def test_messages_add_what_there_is_to_know(server):
    [retried] = told(server, lambda b: b.fail("w1", "j", "Timeout", "it took", retry=LONG))
    assert (retried["kind"], retried["message"], retried["worker"]) == ("Timeout", "it took", "w1")
    assert retried["due"] == retried["at"] + LONG
    server.flush()
    [trashed] = told(server, lambda b: b.trash("w1", "j", reason="bad"))
    assert (trashed["reason"], trashed["kept"]) == ("bad", True)
    server.flush()
    lost, _ = told(server, lambda b: b.release("j"))
    assert (lost["worker"], lost["reason"]) == ("w1", "released")


@pytest.mark.parametrize(
    ("options", "reason", "events"),
    [
        ({"lapses": 5}, "lapsed", ["lost", "ready"]),
        ({"lapses": 0}, "lapsed", ["lost", "failed"]),
        ({"timeout": 500, "retries": 0}, "timeout", ["lost", "failed"]),
        ({"timeout": 500}, "timeout", ["lost", "retried"]),
    ],
)
def test_what_time_does_is_told(clocked, clock, options, reason, events):
    board = clocked.board()
    lives.claimed(board, lease=1000, **options)
    listener = listen(clocked)
    clock.advance(1000)
    messages = listener.messages()
    assert [message["event"] for message in messages] == events
    assert messages[0]["reason"] == reason


def test_due_jobs_expiry_and_retention_are_told(clocked, clock):
    board = clocked.board()
    listener = listen(clocked)
    board.post(id="j", delay=1000, expire=1000)
    clock.advance(1000)
    clock.advance(1000)
    board.client.execute_command("JOB.SETTINGS", "SET", "board", "keep-failed", 0)
    clock.advance(1)
    *_, last = messages = listener.messages()
    events = ["posted", "ready", "failed", "settings", "deleted"]
    assert [message["event"] for message in messages] == events
    assert (messages[2]["kind"], last["by"], last["state"]) == ("expired", "retention", "failed")


def test_settings_and_pauses_are_told(server):
    board = server.board()
    listener = listen(server, "settings")
    board.client.execute_command("JOB.SETTINGS", "SET", "board", "QUEUE", "q", "lease", 7)
    board.client.execute_command("JOB.SETTINGS", "RESET", "board", "QUEUE", "q")
    board.pause()
    board.resume()
    board.pause(queue="q", for_=LONG)
    told = [[message.get(name) for name in ("setting", "queue", "value")] for message in listener.messages()]
    assert told[:4] == [["lease", "q", 7], ["lease", "q", None], ["paused", None, -1], ["paused", None, 0]]
    assert told[4][:2] == ["paused", "q"] and told[4][2] > LONG


def test_only_the_events_asked_for_are_told(server):
    board = server.board()
    listener = listen(server, "completed,posted")
    lives.claimed(board)
    board.consume("w1", "j")
    assert listener.events() == ["posted", "completed"]
    board.client.execute_command("JOB.SETTINGS", "SET", "board", "events", 0)
    lives.claimed(board, "k")
    assert listener.events() == []


def test_of_jobs_only_tracked_ones_are_told_when_it_is_said_so(server):
    board = server.board()
    board.set(events="all")
    for id in "ab":
        lives.claimed(board, id)
    assert board.client.execute_command("JOB.SETTINGS", "SET", "board", "events-tracked", "yes") == "OK"
    board.update("b", track=True)
    listener = Listener(server, "job.events:board", "job.worker:board:w1", "end")
    for id in "ab":
        board.release(id)
        board.delete(id)
    board.client.execute_command("JOB.SETTINGS", "RESET", "board", "events-tracked")
    lives.ready(board)
    heard = [(channel, json.loads(data)) for channel, data in listener.raw()]
    told = [(told["event"], told.get("id")) for channel, told in heard if b"events" in channel]
    assert told == [
        *[("lost", "b"), ("ready", "b"), ("deleted", "b")],
        *[("settings", None), ("posted", "j"), ("ready", "j")],
    ]
    assert [told["id"] for channel, told in heard if b"worker" in channel] == ["a", "b"]


def test_whether_tracked_ones_alone_are_told_may_be_the_modules(server):
    with server.configured(jobboard__events=524287, jobboard__events_tracked=1):
        board = server.board()
        assert board.settings("events-tracked") == {"events-tracked": [1, "module"]}
        listener = Listener(server, "job.events:board", "end")
        for id in "ab":
            lives.ready(board, id)
        board.update("b", track=True)
        lives.claim(board, "a")
        lives.claim(board, "b")
        assert [(message["event"], message["id"]) for message in listener.messages()] == [
            ("updated", "b"),
            ("claimed", "b"),
        ]


def test_the_module_has_a_default(server):
    with server.configured(jobboard__events=4096):
        board = server.board()
        listener = Listener(server, "job.events:board", "end")
        lives.ready(board)
        board.delete("j")
        assert listener.events() == ["deleted"]


def test_a_batch_is_told_job_by_job_in_order(server):
    board = server.board()
    listener = listen(server, "posted,completed,deleted")
    posted = board.mpost(["x"] * 500)
    board.claim("w1", count=500)
    board.mconsume("w1", "ALL")
    messages = listener.messages()
    assert [message["id"] for message in messages] == [*posted, *posted]
    versions = [message["version"] for message in messages]
    assert versions == sorted(versions) and len(set(versions)) == 1000


def test_a_refused_command_tells_nothing(server):
    board = server.board()
    listener = listen(server)
    lives.ready(board)
    assert listener.events() == ["posted", "ready"]
    with refused("EXISTS j"):
        board.post(id="j")
    with refused("NOTCLAIMED ready"):
        board.consume("w1", "j")
    assert listener.events() == []


def test_a_served_waiter_and_a_transaction_tell_in_order(server):
    waiter = Waiter(server)
    listener = listen(server)
    server.board().post(id="j")
    assert waiter.job() == "j"
    assert listener.events() == ["posted", "ready", "claimed"]
    pipe = server.client().pipeline()
    pipe.execute_command("JOB.POST", "board", "x", "ID", "k")
    pipe.execute_command("JOB.CANCEL", "board", 1, "k")
    pipe.execute()
    assert listener.events() == ["posted", "ready", "cancelled"]
    server.client().eval("return redis.call('JOB.DELETE', KEYS[1], 1, 'k')", 1, "board")
    assert listener.events() == ["deleted"]


def test_databases_and_boards_are_named(server):
    board = server.board("other", db=3)
    board.client.execute_command("JOB.SETTINGS", "SET", "other", "events", "posted")
    listener = Listener(server, "job.events:other", "job.events:board", "end")
    board.post(id="j")
    server.board().post(id="j")
    [message] = listener.messages()
    assert (message["db"], message["board"]) == (3, "other")


NAMES = [
    b"plain",
    'quotes " and \\ and / \u2028 \U0001f600'.encode(),
    bytes(range(32)) + b"\x7f",
    b"\xff\xfe\x00",
    b"\xed\xa0\x80",
    b"\xc3",
    b"a\xff",
    b"ab\xff",
]


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_any_bytes_are_told_truly(server, name):
    client = server.raw_client()
    client.execute_command("JOB.SETTINGS", "SET", name, "events", "all")
    listener = Listener(server, b"job.events:" + name, b"job.worker:" + name + b":" + name, "end")
    client.execute_command("JOB.POST", name, "x", "ID", name, "QUEUE", name, "NAME", name)
    client.execute_command("JOB.CLAIM", name, name, "QUEUES", 0)
    client.execute_command("JOB.RELEASE", name, 1, name)
    messages = listener.messages()
    assert [message["event"] for message in messages] == [
        "posted",
        "ready",
        "claimed",
        "lost",
        "lost",
        "ready",
    ]

    def told(message: dict, what: str) -> bytes:
        if what + "64" in message:
            return base64.b64decode(message[what + "64"], validate=True)
        return message[what].encode()

    for message in messages:
        assert [told(message, what) for what in ("board", "id", "queue")] == [name] * 3
    assert [told(message, "worker") for message in messages[2:5]] == [name] * 3


# Workers


def test_a_worker_is_told_whatever_the_setting(server):
    board = server.board()
    listener = Listener(server, "job.worker:board:w1", "job.worker:board:w2", "job.events:board", "end")
    token = lives.claimed(board)
    board.cancel("j")
    board.cancel("j", force=True)
    cancel, lost = listener.messages()
    assert (cancel["event"], cancel["id"], cancel["token"]) == ("cancel", "j", token)
    assert (lost["event"], lost["reason"], lost["token"]) == ("lost", "cancelled", token)


@pytest.mark.parametrize("how", ["lapsed", "timeout", "released", "replaced", "deleted", "paused", "grace"])
def test_each_loss_is_told_to_the_worker_alone(clocked, clock, how):
    board = clocked.board()
    listener = Listener(clocked, patterns=("job.*",))
    listener.pubsub.subscribe("end")
    assert listener.pubsub.get_message(timeout=30)
    token = lives.claimed(board, lease=1000, timeout=500 if how == "timeout" else -1)
    acts = {
        "lapsed": lambda: clock.advance(1000),
        "timeout": lambda: clock.advance(500),
        "released": lambda: board.release("j"),
        "replaced": lambda: board.post(id="j", replace=True),
        "deleted": lambda: board.delete("j"),
        "paused": lambda: board.pause(release=True),
        "grace": lambda: (
            board.client.execute_command("JOB.SETTINGS", "SET", "board", "cancel-grace", 10),
            board.cancel("j"),
            clock.advance(10),
        ),
    }
    acts[how]()
    *before, (channel, data) = listener.raw()
    message = json.loads(data)
    reasons = {"paused": "released", "grace": "cancelled"}
    assert channel == b"job.worker:board:w1"
    assert (message["event"], message["id"], message["token"]) == ("lost", "j", token)
    assert message["reason"] == reasons.get(how, how)
    assert [json.loads(data)["event"] for _, data in before] == (["cancel"] if how == "grace" else [])


def test_a_worker_that_ends_its_claim_itself_is_not_told(server):
    board = server.board()
    listener = Listener(server, "job.worker:board:w1", "end")
    for end in [
        lambda: board.consume("w1", "j"),
        lambda: board.fail("w1", "j"),
        lambda: board.abandon("w1", "j"),
        lambda: board.trash("w1", "j"),
    ]:
        board.post(id="j", replace=True)
        lives.claim(board)
        end()
    assert listener.events() == []


# Other servers


def test_subscribers_of_a_replica_hear_the_same(fresh_server):
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    board = primary.board()
    board.client.execute_command("JOB.SETTINGS", "SET", "board", "events", "all")
    replica.wait_synced(primary)
    channels = ("job.events:board", "job.worker:board:w1", "end")
    here, there = Listener(primary, *channels), Listener(replica, *channels)
    lives.claimed(board)
    board.release("j")
    board.client.execute_command("JOB.SETTINGS", "SET", "board", "lease", 9)
    heard = here.raw()
    # A message of its own goes from the primary to its replicas too; what comes after it is another's.
    replica.wait_synced(primary)
    assert [channel for channel, _ in heard].count(b"job.worker:board:w1") == 1
    assert there.raw() == heard
    assert len(heard) == 7


def test_nothing_is_told_of_what_is_loaded(fresh_server):
    server = fresh_server(appendonly=True)
    board = server.board()
    board.client.execute_command("JOB.SETTINGS", "SET", "board", "events", "all")
    lives.claimed(board)
    board.release("j")
    listener = Listener(server, "job.events:board", "job.worker:board:w1", "end")
    board.client.execute_command("DEBUG", "LOADAOF")
    server.client().execute_command("DEBUG", "RELOAD")
    assert listener.raw() == []
    assert server.board().state("j") == "ready"


# Keyspace notifications


@pytest.mark.parametrize("flags", ["Kd", "Ed", "KEA"])
def test_keyspace_notifications_name_what_happened(server, flags):
    with server.configured(notify_keyspace_events=flags):
        listener = Listener(server, patterns=("__key*__:*",))
        listener.pubsub.subscribe("end")
        assert listener.pubsub.get_message(timeout=30)
        board = server.board(db=2)
        board.post_many(3)
        board.claim("w1", count=3)
        board.mconsume("w1", "ALL")
        found = [pair for pair in listener.raw() if b"job." in pair[0] + pair[1]]
        names = [b"job.posted", b"job.ready", b"job.claimed", b"job.completed"]
        by_key = [(b"__keyspace@2__:board", name) for name in names]
        by_event = [(b"__keyevent@2__:" + name, b"board") for name in names]
        if flags == "KEA":
            assert sorted(found) == sorted(by_key + by_event)
        else:
            assert found == (by_key if "K" in flags else by_event)


@pytest.mark.parametrize("flags", ["", "KEg", "d"])
def test_there_are_none_when_they_are_not_asked_for(server, flags):
    with server.configured(notify_keyspace_events=flags):
        listener = Listener(server, patterns=("__key*__:*",))
        listener.pubsub.subscribe("end")
        assert listener.pubsub.get_message(timeout=30)
        lives.ready(server.board())
        assert [pair for pair in listener.raw() if b"job." in pair[0] + pair[1]] == []


def test_a_replica_notifies_as_well(fresh_server):
    primary = fresh_server()
    replica = fresh_server(replicaof=primary, config=["notify-keyspace-events Kd"])
    primary.client().set("first", "write")
    replica.wait_synced(primary)
    listener = Listener(replica, "__keyspace@0__:board", "end")
    lives.ready(primary.board())
    replica.wait_synced(primary)
    wait_until(lambda: replica.board().state("j") == "ready")
    assert [data for _, data in listener.raw()] == [b"job.posted", b"job.ready"]


# Refusals


@pytest.mark.parametrize("value", ["loud", "posted,", "", "posted ready", "\r\n"])
def test_names_of_no_event_are_refused(board, value):
    lives.ready(board)
    last = value.split(",")[-1].replace("\r\n", "??")
    with refused_like(
        f"ERR unknown event '{re.escape(last)}': it must be one of posted, .+, all, none", board
    ):
        board.client.execute_command("JOB.SETTINGS", "SET", "board", "events", value)


@pytest.mark.parametrize("value", ["-1", "524288"])
def test_numbers_of_no_events_are_refused(board, value):
    lives.ready(board)
    with refused("ERR events must be an integer from 0 to 524287", board):
        board.client.execute_command("JOB.SETTINGS", "SET", "board", "events", value)


def test_names_are_told_as_their_sum(board):
    board.client.execute_command("JOB.SETTINGS", "SET", "board", "events", "Posted,READY,posted")
    assert board.client.execute_command("JOB.SETTINGS", "GET", "board", "events")["events"] == [3, "board"]
    board.client.execute_command("JOB.SETTINGS", "SET", "board", "events", "all")
    assert board.client.execute_command("JOB.SETTINGS", "GET", "board", "events")["events"][0] == 524287
    board.client.execute_command("JOB.SETTINGS", "SET", "board", "events", "none")
    assert board.client.execute_command("JOB.SETTINGS", "GET", "board", "events")["events"][0] == 0


def test_the_worker_is_told_that_its_grace_has_begun(clocked, clock):
    board = clocked.board()
    board.set(grace=500)
    token = lives.claimed(board, lease=1000)
    board.client.execute_command("JOB.SETTINGS", "SET", "board", "events", "grace,lost")
    listener = Listener(clocked, "job.worker:board:w1", "job.events:board", "end")
    clock.advance(1000)
    public, mine = listener.messages()
    assert public == mine
    assert (mine["event"], mine["token"], mine["until"]) == ("grace", token, clock.now() + 500)
    clock.advance(500)
    assert listener.events() == ["lost", "lost"]


def test_an_update_says_what_it_changed_and_whether_the_job_is_tracked(server):
    board = server.board()
    listener = listen(server, "updated")
    lives.ready(board)
    board.update("j", priority=3, meta={"a": "1"}, track=True, tag=["red"])
    board.update("j", log="looked at")
    board.call("UPDATE", 1, "j", "SET", "UNTRACK")
    board.update("j", log="again")
    told = [(message["changed"], message.get("tracked", False)) for message in listener.messages()]
    assert told == [
        ("priority,meta", False),
        ("tags,track", True),
        ("log", True),
        ("untrack", True),
        ("log", False),
    ]
