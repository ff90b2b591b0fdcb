"""The shape of every reply in RESP2 and RESP3, byte by byte where clients depend on it."""

from __future__ import annotations

import lives
import pytest
from harness import EPOCH, from_pairs
from lives import LONG


@pytest.fixture
def talk(clocked, protocol):
    """A board over a client of this protocol."""
    return clocked.board(protocol=protocol)


def exchange(server, protocol: int, *words: str) -> bytes:
    """The raw reply to one command that answers with a single line or a null."""
    with server.socket() as connection:
        if protocol == 3:
            connection.sendall(b"HELLO 3\r\n")
            read_reply(connection)
        encoded = [f"${len(word)}\r\n{word}\r\n" for word in words]
        connection.sendall((f"*{len(words)}\r\n" + "".join(encoded)).encode())
        return read_reply(connection)


def read_reply(connection) -> bytes:
    """What comes until nothing more comes."""
    data = connection.recv(65536)
    connection.settimeout(0.05)
    try:
        while more := connection.recv(65536):
            data += more
    except TimeoutError:
        pass
    finally:
        connection.settimeout(15)
    return data


def null(protocol: int) -> bytes:
    return b"_\r\n" if protocol == 3 else b"$-1\r\n"


def null_array(protocol: int) -> bytes:
    return b"_\r\n" if protocol == 3 else b"*-1\r\n"


def is_map(reply, protocol: int) -> bool:
    return isinstance(reply, dict if protocol == 3 else list)


# Nulls


def test_nothing_to_claim_is_a_null_array(clocked, protocol):
    assert exchange(clocked, protocol, "JOB.CLAIM", "board", "w1") == null_array(protocol)


def test_a_claim_that_waited_in_vain_is_a_null_array(clocked, protocol):
    assert exchange(clocked, protocol, "JOB.CLAIM", "board", "w1", "BLOCK", "10") == null_array(protocol)


@pytest.mark.parametrize(
    "words",
    [("JOB.GET", "board", "j"), ("JOB.POST", "board", "x", "ID", "j", "XX"), ("JOB.INFO", "board")],
    ids=str,
)
def test_what_does_not_exist_is_a_null(clocked, protocol, words):
    assert exchange(clocked, protocol, *words) in (null(protocol), null_array(protocol))


def test_a_skipped_post_is_a_plain_null(clocked, protocol):
    lives.ready(clocked.board())
    assert exchange(clocked, protocol, "JOB.POST", "board", "x", "ID", "j", "NX") == null(protocol)


def test_nulls_inside_arrays(talk, protocol):
    lives.ready(talk)
    assert talk.call("MGET", 2, "nowhere", "j")[0] is None
    assert talk.call("MPOST", 2, "x", "y", "IDS", 2, "j", "k", "NX") == [None, "k"]
    assert talk.call("CANCEL", 2, "nowhere", "j") == [None, "cancelled"]


def test_an_unknown_history_is_a_null(talk):
    assert talk.call("HISTORY", "j") is None


# Texts and numbers


def test_an_id_is_a_bulk_string(clocked, protocol):
    assert exchange(clocked, protocol, "JOB.POST", "board", "x", "ID", "j") == b"$1\r\nj\r\n"


def test_a_count_is_an_integer(clocked, protocol):
    assert exchange(clocked, protocol, "JOB.COUNT", "board") == b":0\r\n"


@pytest.mark.parametrize("verb", ["ABANDON", "TRASH"])
def test_ok_is_a_simple_string(clocked, protocol, verb):
    lives.claimed(clocked.board())
    assert exchange(clocked, protocol, f"JOB.{verb}", "board", "w1", "j") == b"+OK\r\n"


def test_settings_answer_ok(clocked, protocol):
    assert exchange(clocked, protocol, "JOB.SETTINGS", "SET", "board", "lease", "5") == b"+OK\r\n"
    assert exchange(clocked, protocol, "JOB.SETTINGS", "RESET", "board") == b"+OK\r\n"


def test_a_consume_answers_with_the_state(clocked, protocol):
    lives.claimed(clocked.board())
    reply = exchange(clocked, protocol, "JOB.CONSUME", "board", "w1", "j")
    assert reply in (b"+complete\r\n", b"$8\r\ncomplete\r\n")


def test_an_error_is_one_line(clocked, protocol):
    assert exchange(clocked, protocol, "JOB.CONSUME", "board", "w1", "j") == b"-NOJOB no such job\r\n"


# Records


def test_a_claimed_record(talk, protocol):
    talk.post("hello", id="j", name="n", queue="q")
    [record] = talk.call("CLAIM", "w1", "QUEUES", 1, "q", "LEASE", 1000)
    assert is_map(record, protocol)
    values = from_pairs(record)
    types = {
        "id": str,
        "token": int,
        "attempt": int,
        "deadline": int,
        "name": str,
        "queue": str,
        "payload": str,
    }
    assert {field: type(value) for field, value in values.items()} == types


def test_a_record_with_everything(talk, protocol):
    lives.claimed(talk, meta={"k": "v"}, name="n")
    talk.heartbeat("w1", "j", progress=12.34, stage="s")
    record = talk.call("GET", "j")
    assert is_map(record, protocol)
    values = from_pairs(record)
    for field in "seq priority attempt left token deadline posted claimed version".split():
        assert type(values[field]) is int, field
    for field in "id state queue name payload worker stage".split():
        assert type(values[field]) is str, field
    assert is_map(values["meta"], protocol)
    assert from_pairs(values["meta"]) == {"k": "v"}
    assert values["progress"] == (12.34 if protocol == 3 else "12.34")


@pytest.mark.parametrize(
    ("progress", "text"), [("0", "0"), ("100", "100"), ("33.33", "33.33"), ("0.1", "0.1"), ("99.99", "99.99")]
)
def test_progress_is_a_double_or_its_text(talk, protocol, progress, text):
    lives.claimed(talk)
    talk.heartbeat("w1", "j", progress=progress)
    found = from_pairs(talk.call("GET", "j", "FIELDS", 1, "progress"))["progress"]
    assert found == (float(text) if protocol == 3 else text)
    assert isinstance(found, float if protocol == 3 else str)


def test_records_are_maps_wherever_they_stand(talk, protocol):
    lives.ready(talk)
    cursor, listed = talk.call("LIST")
    assert (cursor, len(listed)) == ("0", 1)
    assert is_map(listed[0], protocol)
    assert is_map(talk.call("MGET", 1, "j")[0], protocol)
    assert talk.call("LIST", "JUSTID") == ["0", ["j"]]


# Maps of other commands


def test_a_heartbeat(talk, protocol):
    lives.claimed(talk)
    reply = talk.call("HEARTBEAT", "w1", "j", "LEASE", 5)
    assert is_map(reply, protocol)
    assert from_pairs(reply) == {"deadline": EPOCH + 5, "cancel": 0}


def test_heartbeats(talk, protocol):
    token = lives.claimed(talk)
    [reply, error] = talk.call("MHEARTBEAT", "w1", 2, "j", "nowhere")
    assert is_map(reply, protocol)
    assert list(from_pairs(reply)) == ["deadline", "cancel"]
    assert error == ["NOJOB", "no such job"]
    [reply] = talk.call("MHEARTBEAT", "w1", "ALL")
    assert is_map(reply, protocol)
    assert list(from_pairs(reply)) == ["id", "token", "deadline", "cancel"]
    assert from_pairs(reply)["token"] == token


def test_consumes(talk):
    lives.claimed(talk)
    assert talk.call("MCONSUME", "w1", 2, "nowhere", "j") == [["NOJOB", "no such job"], "complete"]
    lives.claimed(talk, "k")
    assert talk.call("MCONSUME", "w1", "ALL") == [["k", "complete"]]


def test_abandons(talk):
    lives.claimed(talk)
    assert talk.call("MABANDON", "w1", 2, "nowhere", "j") == [["NOJOB", "no such job"], "OK"]
    lives.claim(talk)
    assert talk.call("MABANDON", "w1", "ALL") == [["j", "OK"]]


def test_failures(talk, protocol):
    lives.claimed(talk, retries=1)
    reply = talk.call("FAIL", "w1", "j", "k", "m", "RETRY", 5)
    assert is_map(reply, protocol)
    assert from_pairs(reply) == {"state": "scheduled", "due": EPOCH + 5, "left": 0}
    lives.claimed(talk, "k")
    reply = talk.call("FAIL", "w1", "k", "k", "m", "NORETRY")
    assert from_pairs(reply).keys() == {"state", "left"}


@pytest.mark.parametrize("verb", ["RELEASE", "REQUEUE", "DELETE"])
def test_selections(talk, verb):
    {"RELEASE": lives.claimed, "REQUEUE": lives.failed, "DELETE": lives.ready}[verb](talk)
    assert talk.call(verb, 2, "j", "nowhere") == [1, "0", ["nowhere"]]


def test_updates(talk):
    lives.ready(talk)
    assert talk.call("UPDATE", 2, "j", "nowhere", "SET", "PRIORITY", 1) == [1, "0", ["nowhere"]]


def test_a_history(talk, protocol):
    lives.claimed(talk)
    posted, claimed = talk.call("HISTORY", "j")
    assert is_map(posted, protocol)
    assert from_pairs(posted) == {"at": EPOCH, "event": "posted"}
    assert from_pairs(claimed) == {"at": EPOCH, "event": "claimed", "worker": "w1"}


def test_an_explanation(talk, protocol):
    lives.claimed(talk)
    talk.call("POST", "x", "ID", "k", "AFTER", 1, "j", "DELAY", 1000)
    told = talk.call("EXPLAIN", "k")
    assert is_map(told, protocol)
    told = from_pairs(told)
    waits, delayed = told.pop("reasons")
    assert told == {"id": "k", "state": "blocked", "queue": "default", "claimable": 0, "waiting": 0}
    assert is_map(waits, protocol) and is_map(delayed, protocol)
    waits, delayed = from_pairs(waits), from_pairs(delayed)
    [job] = waits.pop("jobs")
    assert is_map(job, protocol)
    assert from_pairs(job) == {"id": "j", "state": "claimed", "onfailure": "hold"}
    assert (waits.pop("text")[-1], delayed.pop("text")[-1]) == (".", ".")
    assert (waits, delayed) == (
        {"reason": "dependencies", "count": 1},
        {"reason": "delayed", "due": EPOCH + 1000},
    )


def test_queues_workers_and_kinds(talk, protocol):
    lives.claimed(talk)
    lives.failed(talk, "failed", kind="net")
    cursor, [queue] = talk.call("QUEUES")
    assert cursor == "0"
    assert is_map(queue, protocol)
    queue = from_pairs(queue)
    rates = [queue.pop(name) for name in ["arrival-rate", "completion-rate"]]
    assert all(isinstance(rate, float if protocol == 3 else str) and float(rate) > 0 for rate in rates)
    assert queue.pop("record-bytes") > 0
    assert queue == {
        "queue": "default",
        "scheduled": 0,
        "blocked": 0,
        "ready": 0,
        "claimed": 1,
        "complete": 0,
        "failed": 1,
        "cancelled": 0,
        "trashed": 0,
        "paused": 0,
        "concurrency": -1,
        "limits": [],
        "dead-queue": "",
        "oldest": -1,
        "drain": 0,
        "lateness-p99": 0,
        "lateness-max": 0,
    }
    cursor, [worker] = talk.call("WORKERS")
    assert cursor == "0"
    assert is_map(worker, protocol)
    assert list(from_pairs(worker))[:2] == ["worker", "claimed"]
    cursor, [kind] = talk.call("KINDS")
    assert cursor == "0"
    assert is_map(kind, protocol)
    assert from_pairs(kind) == {"kind": "net", "jobs": 1}


def test_a_board_about_itself(talk, protocol):
    lives.ready(talk)
    reply = talk.call("INFO", "DIGEST")
    assert is_map(reply, protocol)
    info = from_pairs(reply)
    assert (
        list(info)
        == (
            "jobs scheduled blocked ready claimed complete failed cancelled trashed queues workers schedules"
            " limits tombstones created revision token next overdue broken bytes record-bytes blocked-posts"
            " blocked-post-bytes paused"
            " oldest arrival-rate completion-rate drain lease-lateness-p99 lease-lateness-max"
            " due-lateness-p99 due-lateness-max fire-lateness-p99 fire-lateness-max digest"
        ).split()
    )
    others = ["digest", "arrival-rate", "completion-rate"]
    assert all(type(value) in (int, bool) for name, value in info.items() if name not in others)
    assert "digest" not in from_pairs(talk.call("INFO"))


def test_settings(talk, protocol):
    talk.set(lease=5)
    reply = talk.client.execute_command("JOB.SETTINGS", "GET", "board", "lease")
    assert is_map(reply, protocol)
    assert from_pairs(reply) == {"lease": [5, "board"]}


def test_the_clock(talk):
    client = talk.client
    assert client.execute_command("JOB.CLOCK", "GET") == EPOCH
    assert client.execute_command("JOB.CLOCK", "ADVANCE", 5) == EPOCH + 5
    assert client.execute_command("JOB.CLOCK", "SET", EPOCH) == "OK"


def test_empty_collections(talk, protocol):
    assert talk.call("LIST") == talk.call("QUEUES") == talk.call("WORKERS") == ["0", []]
    assert talk.call("KINDS") == ["0", []]
    assert talk.call("MCONSUME", "w1", "ALL") == []


def test_binary_values_come_back_as_they_were(clocked, protocol):
    board = clocked.board(protocol=protocol, decode_responses=False)
    everything = bytes(range(256))
    board.post(
        everything,
        id=everything[1:],
        name=everything[:255],
        queue=everything[:255],
        meta={everything[1:]: everything},
    )
    job = board.claim_one(everything[1:], queues=[everything[:255]], lease=LONG)
    assert (job["payload"], job["id"], job["name"]) == (everything, everything[1:], everything[:255])
    record = board.call("GET", everything[1:])
    assert from_pairs(record)["worker"] == everything[1:]
    meta = from_pairs(record)["meta"]
    assert (meta if isinstance(meta, dict) else dict(zip(meta[::2], meta[1::2]))) == {
        everything[1:]: everything
    }
