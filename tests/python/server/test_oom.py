"""`maxmemory` is reached and nothing may be evicted: posting is refused, everything that drains works."""

from __future__ import annotations

import lives
import pytest
from expect import drain, refused_like
from harness import wait_until
from lives import LONG
from waiters import Waiter

FULL = {"maxmemory": 1, "maxmemory_policy": "noeviction"}


@pytest.fixture
def full(server):
    """Fills the server's memory on demand, and empties it afterwards."""
    with server.configured(maxmemory_policy="noeviction", maxmemory=0):
        control = server.connect()
        yield lambda: control.config_set("maxmemory", 1)
        control.config_set("maxmemory", 0)
        control.close()


@pytest.mark.parametrize(
    "words", [["POST", "x"], ["POST", "x", "ID", "j", "REPLACE"], ["MPOST", 1, "x"]], ids=str
)
def test_posting_is_refused(board, full, words):
    lives.ready(board)
    full()
    with refused_like("OOM .+", board):
        board.call(*words)


def test_settings_are_refused(board, full):
    full()
    with refused_like("OOM .+"):
        board.set(lease=5)
    assert not board.client.exists("board")


def test_everything_that_drains_works(board, full):
    for id in "abcdefgh":
        lives.ready(board, id)
    lives.failed(board, "failed")
    full()
    tokens = {job["id"]: job["token"] for job in board.claim("w1", count=7)}
    assert list(tokens) == list("abcdefg")
    assert board.heartbeat("w1", "a", token=tokens["a"], progress=5)["cancel"] == 0
    assert board.mheartbeat("w1", "ALL")
    assert board.consume("w1", "a", token=tokens["a"]) == "complete"
    assert board.mconsume("w1", ["b"]) == ["complete"]
    assert board.fail("w1", "c", retry=LONG)["state"] == "scheduled"
    assert board.abandon("w1", "d") == "OK"
    assert board.trash("w1", "e") == "OK"
    assert board.cancel("f", force=True) == ["cancelled"]
    assert board.release("g").count == 1
    assert board.requeue("failed").count == 1
    assert board.delete("e").count == 1
    assert board.mabandon("w1", "ALL") == []
    assert drain(board) == ["d", "g", "h", "failed"]


def test_everything_can_be_read(board, full):
    lives.ready(board)
    full()
    assert (board.get("j")["state"], board.count(), board.list()[0]) == ("ready", 1, "0")
    assert board.history("j") and board.queues() and board.info(digest=True) and board.settings()
    assert board.workers() == board.kinds() == {}


def test_time_goes_on(board, full):
    lives.claimed(board, "lapses", lease=50)
    lives.claimed(board, "times out", timeout=50, retries=0)
    board.post(id="due", delay=50)
    board.post(id="expires", expire=50, queue="q")
    full()
    wait_until(lambda: board.state("lapses") == board.state("due") == "ready")
    wait_until(lambda: board.state("times out") == board.state("expires") == "failed")


def test_waiters_are_served(server, board, full):
    lives.claimed(board)
    waiter = Waiter(server, "w2")
    full()
    board.abandon("w1", "j")
    assert waiter.job() == "j"


def test_a_claim_may_wait(server, board, full):
    board.post(id="j", delay=100)
    full()
    assert Waiter(server, "w2", await_block=False).job() == "j"


def test_draining_scripts_work(board, full):
    lives.ready(board)
    full()
    script = """#!lua flags=allow-oom
        return redis.call('JOB.CLAIM', KEYS[1], 'w1', 'FIELDS', 1, 'id')[1][2]
    """
    assert board.client.eval(script, 1, "board") == "j"


def test_posting_works_again_when_there_is_memory(server, board):
    with server.configured(**FULL):
        with refused_like("OOM .+"):
            board.post()
    assert board.post(id="j") == "j"


def fill(board):
    """Posts jobs of 10,000 bytes until the server refuses them; their ids."""
    ids = []
    with refused_like("OOM .+"):
        while True:
            ids.append(board.post("x" * 10_000))
    return ids


@pytest.fixture
def bounded(fresh_server):
    """A board with room for some hundred jobs of 10,000 bytes. The server is a new one: after a test with
    many clients that wait, a server returns what it had for them a little at a time.
    """
    server = fresh_server(config=["maxmemory-policy noeviction"])
    board = server.board()
    board.client.config_set("maxmemory", server.info("memory")["used_memory"] + 6_000_000)
    return board


def test_jobs_that_leave_nothing_make_room_for_posts(bounded):
    ids = fill(bounded)
    bounded.claim("w1", count=len(ids) // 2)
    bounded.mconsume("w1", ids[: len(ids) // 2])
    assert bounded.post("x" * 10_000)


def test_kept_results_hold_the_memory(bounded):
    """As docs/operate/memory.md says: consuming does not help there, deleting what has ended does."""
    ids = fill(bounded)
    bounded.claim("w1", count=len(ids))
    for id in ids:
        bounded.consume("w1", id, result="r" * 20)
    assert bounded.count(state="complete") == len(ids)
    assert fill(bounded) == []
    bounded.call("DELETE", "WHERE", "STATE", "complete")
    assert bounded.post("x" * 10_000)


def test_a_short_retention_lets_posts_in_again(bounded):
    bounded.set(retain_result=50)
    ids = fill(bounded)
    bounded.claim("w1", count=len(ids))
    for id in ids:
        bounded.consume("w1", id, result="r" * 20)
    wait_until(lambda: bounded.count(state="complete") == 0)
    assert bounded.post("x" * 10_000)


def test_a_replica_follows_a_full_primary(fresh_server):
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    board = primary.board()
    board.post_many(10)
    lives.claimed(board, "held", lease=100, priority=5)
    replica.wait_synced(primary)
    for server in (primary, replica):
        server.client().config_set("maxmemory", 1)
    board.claim("w1", count=10, lease=LONG)
    board.mconsume("w1", "ALL")
    wait_until(lambda: board.state("held") in ("ready", None))
    replica.wait_synced(primary)
    assert replica.board().digest() == board.digest()


def test_a_flow_and_a_schedule_are_refused(board, full):
    board.client.execute_command("JOB.SCHEDULE", "SET", "board", "s", "x", "EVERY", LONG)
    full()
    for words in (["FLOW", "board", 1, "NODE", "a", "x"], ["SCHEDULE", "RUN", "board", "s"]):
        with refused_like("OOM .+", board):
            board.client.execute_command("JOB." + words[0], *words[1:])
    with refused_like("OOM .+", board):
        board.client.execute_command("JOB.SCHEDULE", "SET", "board", "s", "x", "EVERY", 5)


def test_a_schedule_goes_on_and_can_be_ended(board, full):
    board.client.execute_command("JOB.SCHEDULE", "SET", "board", "s", "x", "EVERY", 30)
    full()
    wait_until(lambda: board.count() >= 2)
    for verb in ("PAUSE", "RESUME", "DEL"):
        assert board.client.execute_command("JOB.SCHEDULE", verb, "board", "s") == "OK"


@pytest.mark.parametrize(
    ("verb", "words", "then"),
    [
        ("CONSUME", [], "complete"),
        ("FAIL", ["E", "message"], {"state": "scheduled"}),
        ("ABANDON", ["DELAY", LONG], "OK"),
        ("TRASH", [], "OK"),
    ],
)
def test_a_worker_ends_a_job_and_claims_the_next(board, full, verb, words, then):
    token = lives.claimed(board)
    lives.ready(board, "next")
    full()
    done, claimed = board.call(verb, "w1", "j", *words, "TOKEN", token, "CLAIM", "FIELDS", 1, "id")
    assert (done if isinstance(then, str) else {"state": done["state"]}) == then
    assert claimed == [{"id": "next"}]


def test_a_worker_ends_a_job_and_waits_for_the_next(board, full):
    token = lives.claimed(board)
    board.post(id="later", delay=100)
    full()
    _, claimed = board.call("CONSUME", "w1", "j", "TOKEN", token, "CLAIM", "BLOCK", 30_000, "FIELDS", 1, "id")
    assert claimed == [{"id": "later"}]


def test_a_whole_board_can_be_drained_by_its_operator(board, full):
    board.post_many(300, queue="a")
    board.post_many(300, queue="b")
    full()
    assert board.where_all("cancel", queue="a", count=100) == 300
    assert board.where_all("delete", state=["ready", "cancelled"], count=100) == 600
    assert board.info()["jobs"] == 0
    assert board.client.delete("board") == 1


def test_a_boards_own_limits_refuse_before_the_server_does(fresh_server):
    server = fresh_server(config=["maxmemory-policy noeviction"])
    board = server.board()
    board.set(max_bytes=400_000)
    board.client.config_set("maxmemory", board.client.info("memory")["used_memory"] + 8_000_000)
    with refused_like("LIMIT max-bytes"):
        board.post_many(100_000, "x" * 100)
    assert 0 < board.info()["record-bytes"] <= 400_000
    other = server.board("other")
    with refused_like("OOM .+"):
        other.post_many(200_000, "x" * 100)
    other.client.delete("other")
    wait_until(
        lambda: server.info("memory")["lazyfree_pending_objects"] == 0
    )  # Valkey deletes beside its work
    with refused_like("LIMIT max-bytes", board):
        board.mpost(["x" * 100] * 1000)


def test_memory_comes_back_as_jobs_are_consumed(fresh_server):
    """A producer that is refused can go on when workers have done something."""
    server = fresh_server(config=["maxmemory-policy noeviction"])
    board = server.board()
    board.set(tombstones=0, retain_complete=0)
    board.client.config_set("maxmemory", board.client.info("memory")["used_memory"] + 4_000_000)
    with refused_like("OOM .+"):
        board.post_many(100_000, "x" * 100)
    posted = board.count()
    while board.claim("w1", count=1000, fields=["id"]):
        board.mconsume("w1", "ALL")
    assert len(board.post_many(posted // 2, "x" * 100)) == posted // 2
