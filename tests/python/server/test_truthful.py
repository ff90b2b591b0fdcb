"""When the server cannot write, it says so: clients get a true answer, nothing changes, nothing is decided.

A lease that ends meanwhile ends when the server can write again, and blocked claims wait until then.
"""

from __future__ import annotations

import contextlib
import threading
import time

import lives
import pytest
import redis
from calls import CALLS
from expect import check_consistent, error_text, refused_like
from harness import SOON, now, past, wait_until
from lives import LONG
from waiters import Parked, Waiter, blocked_clients

OTHERS = [
    ("FLOW", "board", 1, "NODE", "a", "x"),
    ("SETTINGS", "SET", "board", "lease", 5),
    ("SETTINGS", "RESET", "board", "lease"),
    ("SCHEDULE", "SET", "board", "s", "x", "EVERY", LONG),
    ("SCHEDULE", "RUN", "board", "tick"),
    ("SCHEDULE", "PAUSE", "board", "tick"),
    ("SCHEDULE", "DEL", "board", "tick"),
    ("DEPEND", "ADD", "board", "r", 1, "s"),
    ("DEPEND", "CLEAR", "board", "r"),
    ("WORKER", "REGISTER", "board", "w9"),
    ("WORKER", "QUIET", "board", "w9"),
    ("WORKER", "DEREGISTER", "board", "w9"),
]
"""Commands with subcommands, which write."""


def flags_of(server, command: str) -> set:
    info = server.client(protocol=2).execute_command("COMMAND", "INFO", command)
    [facts] = info.values() if isinstance(info, dict) else info
    return {str(flag) for flag in (facts["flags"] if isinstance(facts, dict) else facts[2])}


def every_call() -> list:
    """A call of every command, in each of its forms, as words."""
    calls = [(call.name, "board", *call.head) for call in CALLS]
    whole = [words if words[-1] != "SET" else (*words, "PRIORITY", 1) for words in calls]
    return whole + OTHERS


def writes(server, flag: str = "write") -> list:
    """One call of every command with that flag, as words."""
    found = {call.name: (call.name, "board", *call.head) for call in reversed(CALLS)}
    calls = [words for words in found.values() if flag in flags_of(server, f"JOB.{words[0]}")]
    assert len(calls) >= (2 if flag == "denyoom" else 15)
    return calls + (OTHERS if flag == "write" else OTHERS[:2] + OTHERS[3:5])


def all_refused(board, calls: list, code: str) -> None:
    """Each call alone, in a transaction and in a script."""
    before = board.digest()
    for words in calls:
        words = (f"JOB.{words[0]}", *words[1:])
        with refused_like(f"{code}.+"):
            board.client.execute_command(*words)
    [name, *rest] = [f"JOB.{calls[0][0]}", *calls[0][1:]]
    connection = board.client.connection_pool.get_connection()
    answers = []
    for sent in [("MULTI",), (name, *rest), ("EXEC",)]:
        connection.send_command(*sent)
        try:
            answers.append(connection.read_response())
        except redis.ResponseError as error:
            answers.append(error_text(error))
    board.client.connection_pool.release(connection)
    assert str(answers[1]).startswith(code) and str(answers[2]).startswith("EXECABORT"), answers
    script = "return redis.call(unpack(ARGV))"
    with refused_like(f".*{code}.+"):
        board.client.eval(script, 1, "board", name, *rest)
    assert board.digest() == before


@contextlib.contextmanager
def short_of_replicas(server):
    server.client().config_set("min-replicas-to-write", 1)
    yield
    server.client().config_set("min-replicas-to-write", 0)


@contextlib.contextmanager
def log_cannot_be_written(server):
    """The disk is full when the append-only file is to grow."""
    [log] = server.folder.glob("appendonlydir/*.incr.aof")
    wait_until(lambda: log.stat().st_size > 0)
    server.limit_files(log.stat().st_size + 50)
    other = server.board("other")

    def is_told() -> bool:
        with contextlib.suppress(redis.ResponseError):
            other.post("x" * 100)
            return False
        return True

    wait_until(is_told, what="the server has noticed")
    yield
    server.limit_files(None)
    wait_until(lambda: server.info("persistence")["aof_last_write_status"] == "ok")


@contextlib.contextmanager
def snapshots_fail(server):
    client = server.client()
    client.config_set("save", "3600 1000000")

    def saved(status: str) -> None:
        with contextlib.suppress(redis.ResponseError):
            client.bgsave()
        wait_until(lambda: client.info("persistence")["rdb_bgsave_in_progress"] == 0)
        assert client.info("persistence")["rdb_last_bgsave_status"] == status

    server.limit_files(10)
    saved("err")
    yield
    server.limit_files(None)
    saved("ok")


CONDITIONS = {
    "short of replicas": ("NOREPLICAS", short_of_replicas, {}),
    "full disk": ("MISCONF", log_cannot_be_written, {"appendonly": True}),
    "failing snapshots": ("MISCONF", snapshots_fail, {}),
}


@pytest.fixture(params=CONDITIONS)
def unable(request, fresh_server):
    """A server, how it refuses, and what makes it unable to write."""
    code, begin, arguments = CONDITIONS[request.param]
    server = fresh_server("recovery-grace", 0, **arguments)
    return server, code, lambda: begin(server)


@pytest.mark.long
def test_a_server_that_cannot_write_refuses_and_decides_nothing(unable):
    server, code, cannot_write = unable
    board = server.board()
    board.client.execute_command("JOB.SCHEDULE", "SET", "board", "tick", "x", "EVERY", LONG)
    for id in ("r", "j"):
        lives.ready(board, id, queue="q")
    calls = writes(server)
    claim, chained = Waiter(server, "w2", queues=["none"]), lives.claimed(board, "e", "w4")
    ended = Parked(
        server,
        ("JOB.CONSUME", "board", "w4", "e", "TOKEN", chained, "CLAIM", "QUEUES", 1, "none", "BLOCK", 0),
    )
    brief = Waiter(server, "w3", block=5 * SOON, queues=["none"])
    token = lives.claimed(board, "c", lease=5 * SOON)
    board.post(id="s", delay=5 * SOON, queue="none")
    end = now() + 5 * SOON
    wait = Parked(server, ("JOB.WAIT", "board", 0, "JOBS", 1, "c"))
    with cannot_write():
        all_refused(board, calls, code)
        past(end)
        before = board.digest()
        assert (board.state("c"), board.state("s")) == ("claimed", "scheduled")
        assert board.call("EXPLAIN", "c") is not None and board.count(state="ready") == 2
        assert claim.still_waits() and ended.still_waits() and wait.still_waits()
        assert brief.reply() is None, "a wait ends, with the truth"
        time.sleep(0.3)
        assert board.digest() == before
        with refused_like(f"{code}.+", board):
            board.consume("w1", "c", token=token)
    wait_until(lambda: board.state("c") == "ready", what="the lease ends")
    assert claim.job() == "s"
    assert ended.still_waits()
    board.post(id="t", queue="none")
    done, [job] = ended.answer()
    assert (done, job["id"]) == ("complete", "t")
    wait.close()
    assert board.consume("w1", "c", token=token) == "complete", "nobody has claimed it since"
    check_consistent(board)


def test_a_session_that_ends_meanwhile_ends_later(unable):
    server, code, cannot_write = unable
    board = server.board()
    lives.ready(board)
    holder = server.client(single_connection_client=True)
    holder.execute_command("JOB.CLAIM", "board", "w1", "SESSION", "LEASE", LONG)
    with cannot_write():
        holder.close()
        time.sleep(0.3)
        assert board.state("j") == "claimed"
    wait_until(lambda: board.state("j") == "ready", what="the session's claim ends")


def test_a_client_that_goes_meanwhile_takes_nothing_with_it(unable):
    server, code, cannot_write = unable
    board = server.board()
    lives.claimed(board)
    gone, stays = Waiter(server, "w2"), Waiter(server, "w3")
    with cannot_write():
        gone.close()
        wait_until(lambda: blocked_clients(server) == 1)
    board.abandon("w1", "j")
    assert stays.job() == "j"


def test_who_waits_for_what_a_transaction_has_posted_gets_it_when_the_server_can_write_again(fresh_server):
    """The transaction may write, and at its end the server may not: nobody else would wake the waiter."""
    server = fresh_server()
    board = server.board()
    waiter = Waiter(server, "w1")
    pipe = board.client.pipeline()
    pipe.execute_command("JOB.POST", "board", "x", "ID", "j")
    pipe.execute_command("CONFIG", "SET", "min-replicas-to-write", 1)
    pipe.execute()
    time.sleep(0.2)
    assert waiter.still_waits() and board.state("j") == "ready"
    server.client().config_set("min-replicas-to-write", 0)
    assert waiter.job() == "j"


def test_what_a_full_disk_has_refused_is_not_there_after_a_restart(fresh_server):
    server = fresh_server(appendonly=True)
    board = server.board()
    posted = [board.post(id=f"j{n}") for n in range(5)]
    with log_cannot_be_written(server):
        for n in range(5, 10):
            with refused_like("MISCONF .+"):
                board.post(id=f"j{n}")
        with refused_like("MISCONF .+"):
            board.mpost(["x"] * 3)
    posted.append(board.post(id="after"))
    digest = board.digest()
    server.restart()
    board = server.board()
    assert board.digest() == digest
    assert board.list_all(justid=True) == posted


def test_with_every_command_on_disk_a_full_disk_loses_nothing_that_was_answered(fresh_server):
    """The server ends rather than to answer what is not written."""
    server = fresh_server(appendonly=True, config=["appendfsync always"])
    board = server.board()
    [log] = server.folder.glob("appendonlydir/*.incr.aof")
    server.limit_files(log.stat().st_size + 2000)
    posted, claimed = [], {}
    with pytest.raises(redis.ConnectionError):
        for n in range(1000):
            posted.append(board.post(id=f"j{n}"))
            claimed.update({job["id"]: job["token"] for job in board.claim("w1", lease=LONG)})
    assert 3 < len(posted) < 1000
    wait_until(lambda: not server.alive)
    server.process.wait()
    server.process = None
    server.start()
    board = server.board()
    for id in posted:
        job = board.get(id)
        assert job is not None
        assert id not in claimed or (job["state"], job["token"]) == ("claimed", claimed[id])
    assert board.count() - len(posted) in (0, 1), "one may have been written and not answered"
    check_consistent(board)


# Memory


def test_what_adds_is_refused_wherever_it_stands_when_memory_is_full(fresh_server):
    server = fresh_server(config=["maxmemory-policy noeviction"])
    board = server.board()
    lives.ready(board)
    board.client.execute_command("JOB.SCHEDULE", "SET", "board", "tick", "x", "EVERY", LONG)
    calls = writes(server, "denyoom")
    server.client().config_set("maxmemory", 1)
    all_refused(board, calls, "OOM")


def test_memory_that_ends_between_queueing_and_exec_refuses_the_whole_transaction(fresh_server):
    server = fresh_server(config=["maxmemory-policy noeviction"])
    board = server.board()
    lives.ready(board)
    before = board.digest()
    connection = board.client.connection_pool.get_connection()

    def ask(*words):
        connection.send_command(*words)
        return connection.read_response()

    assert ask("MULTI") == "OK"
    for id in ("a", "b"):
        assert ask("JOB.POST", "board", "x", "ID", id) == "QUEUED"
    assert ask("JOB.CLAIM", "board", "w1") == "QUEUED"
    server.client().config_set("maxmemory", 1)
    with refused_like("(EXECABORT .*)?OOM .+"):
        ask("EXEC")
    server.client().config_set("maxmemory", 0)
    assert board.digest() == before


def test_a_batch_that_fills_memory_comes_whole_or_not_at_all(fresh_server):
    server = fresh_server(config=["maxmemory-policy noeviction"])
    board = server.board()
    client = server.client()
    client.config_set("maxmemory", client.info("memory")["used_memory"] + 5_000_000)
    came = 0
    with refused_like("OOM .+"):
        for _ in range(100):
            came += len(board.mpost(["x" * 1000] * 1000))
            assert board.count() == came
    assert came > 0 and board.count() == came
    before = board.digest()
    client.config_set("maxmemory", 1)
    script = "for n = 1, 5 do redis.call('JOB.POST', KEYS[1], 'x') end"
    with refused_like(".*OOM.+", board):
        client.eval(script, 1, "board")
    assert board.digest() == before
    check_consistent(board)


def test_a_script_that_began_with_memory_ends_with_what_it_was_told(fresh_server):
    server = fresh_server(config=["maxmemory-policy noeviction"])
    board = server.board()
    client = server.client()
    client.config_set("maxmemory", client.info("memory")["used_memory"] + 3_000_000)
    script = """
        local posted = 0
        for n = 1, 10 do
            local done = redis.pcall('JOB.MPOST', KEYS[1], 2, string.rep('x', 500000), 'y')
            if done.err then return {posted, done.err} end
            posted = posted + #done
        end
        return {posted, ''}
    """
    posted, _ = client.eval(script, 1, "board")
    assert board.count() == posted and posted % 2 == 0
    check_consistent(board)


# Roles and rights


def test_a_replica_refuses_what_writes_and_answers_what_reads(fresh_server):
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    board = primary.board()
    for id in ("r", "j", "s"):
        lives.ready(board, id)
    replica.wait_synced(primary)
    copy = replica.board()
    all_refused(copy, writes(replica), "READONLY")
    assert copy.count() == 3 and copy.get("r")["state"] == "ready"
    wait = Parked(replica, ("JOB.WAIT", "board", 0, "JOBS", 1, "r"))
    board.cancel("r")
    assert wait.answer()[0]["state"] == "cancelled"


def test_a_replica_that_must_not_be_stale_says_that_its_primary_is_gone(fresh_server):
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    lives.ready(primary.board())
    replica.wait_synced(primary)
    replica.client().config_set("replica-serve-stale-data", "no")
    copy = replica.board()
    wait = Parked(replica, ("JOB.WAIT", "board", 900, "JOBS", 1, "j"))
    primary.stop()
    wait_until(lambda: replica.info("replication")["master_link_status"] == "down")
    for words in [("GET", "j"), ("LIST",), ("COUNT",), ("INFO",), ("WAIT", 1, "JOBS", 1, "j")]:
        with refused_like("MASTERDOWN .+"):
            copy.call(*words)
    assert wait.answer() is None


NOPERM = "NOPERM.+"
REFUSED_IN_SCRIPT = ".*(NOPERM|ACL failure|can't access|can't run).*"


def test_a_key_that_is_refused_is_not_touched(fresh_server):
    server = fresh_server()
    board = server.board()
    lives.ready(board)
    admin = server.client()
    admin.execute_command("ACL", "SETUSER", "ann", "on", ">pw", "~mine*", "+@all")
    limited = server.board(username="ann", password="pw")
    before = board.digest()
    for words in [*every_call(), ("METRICS", "mine", "board")]:
        with refused_like(NOPERM):
            limited.client.execute_command(f"JOB.{words[0]}", *words[1:])
    script = "return redis.call('JOB.POST', 'board', 'x')"
    with refused_like(REFUSED_IN_SCRIPT):
        limited.client.eval(script, 0)
    connection = limited.client.connection_pool.get_connection()
    connection.send_command("MULTI")
    connection.read_response()
    for words in [("JOB.POST", "mine", "x"), ("JOB.POST", "board", "x"), ("EXEC",)]:
        connection.send_command(*words)
        with contextlib.suppress(redis.ResponseError):
            assert connection.read_response() == "QUEUED"
    assert board.digest() == before and not admin.exists("mine")
    limited.key = "mine"
    limited.post(id="m")
    admin.execute_command("ACL", "SETUSER", "ann", "-job.claim")
    with refused_like(NOPERM, server.board("mine")):
        limited.claim()
    with refused_like(REFUSED_IN_SCRIPT, server.board("mine")):
        limited.client.eval("return redis.call('JOB.CLAIM', KEYS[1], 'w')", 1, "mine")


def test_a_blocked_claim_of_a_user_who_is_deleted_takes_nothing(fresh_server):
    server = fresh_server()
    board = server.board()
    admin = server.client()
    admin.execute_command("ACL", "SETUSER", "ann", "on", ">pw", "~*", "+@all")
    waiting = server.client(username="ann", password="pw", single_connection_client=True)

    def block():
        with contextlib.suppress(redis.RedisError):
            waiting.execute_command("JOB.CLAIM", "board", "w1", "BLOCK", 0)

    thread = threading.Thread(target=block, daemon=True)
    thread.start()
    wait_until(lambda: server.info("jobboard")["jobboard_blocked_claims"] == 1)
    admin.execute_command("ACL", "DELUSER", "ann")
    thread.join(60)
    assert not thread.is_alive()
    wait_until(lambda: server.info("jobboard")["jobboard_blocked_claims"] == 0)
    lives.ready(board)
    assert board.state("j") == "ready"


def test_another_type_under_the_key_is_told_and_left(fresh_server):
    server = fresh_server()
    board = server.board()
    lives.ready(board, queue="q")
    waiter = Waiter(server, "w1")
    client = server.client()
    client.set("board", "text")
    for words in every_call():
        with refused_like("WRONGTYPE .+"):
            client.execute_command(f"JOB.{words[0]}", *words[1:])
    assert client.get("board") == "text" and waiter.still_waits()
    client.delete("board")
    board.post(id="new")
    assert waiter.job() == "new"


# While the server is busy with something else


def test_a_server_that_loads_says_so_and_then_has_everything(fresh_server):
    config = ["save 3600 1000000", "loading-process-events-interval-bytes 1024"]
    server = fresh_server("recovery-grace", 800, config=config)
    board = server.board()
    lives.busy(board)
    server.client().execute_command("DEBUG", "POPULATE", 3000)
    lives.held(board, "held", "w8", lease=SOON)
    deadline = board.get("held")["deadline"]
    digest = board.digest()
    server.stop()
    server.config.append("key-load-delay 20000")
    server.start(wait=False)
    told, loading = [], 0

    def loads() -> bool:
        """Every verb has been refused, and the lease is over; then the server may be quick."""
        nonlocal loading
        with contextlib.suppress(redis.ConnectionError), server.connect() as client:
            for words in [
                ("JOB.POST", "board", "x"),
                ("JOB.GET", "board", "j"),
                ("JOB.CLAIM", "board", "w1"),
            ]:
                try:
                    begin = now()
                    client.execute_command(*words)
                    return True
                except redis.BusyLoadingError:
                    told.append(words[0])
                    loading = begin
            if now() > deadline:
                client.config_set("key-load-delay", 0)
        return False

    wait_until(loads, what="the server has loaded")
    assert {"JOB.POST", "JOB.GET", "JOB.CLAIM"} <= set(told)
    board = server.board()
    assert board.count() >= 1
    assert digest and board.info()["broken"] == 0
    wait_until(lambda: board.state("held") == "ready", what="the lease ends")
    assert board.history("held")[-1]["at"] >= loading + 800, "and not before the grace has passed"
    check_consistent(board)


def test_a_script_that_runs_on_is_told_to_others_and_stops_time(fresh_server):
    server = fresh_server("recovery-grace", 0, config=["busy-reply-threshold 50"])
    board = server.board()
    waiter = Waiter(server, "w2", queues=["none"])
    brief = Waiter(server, "w3", block=SOON, queues=["none"])
    lives.held(board, "c", lease=SOON)
    end = now() + SOON
    before = board.digest()
    board.client.config_set("min-replicas-to-write", 0)
    busy = server.client(socket_timeout=60)
    thread = threading.Thread(target=run_on, args=(busy,), daemon=True)
    thread.start()
    client = server.client()

    def is_busy() -> bool:
        try:
            client.ping()
        except redis.ResponseError as error:
            return "BUSY" in error_text(error)
        return False

    wait_until(is_busy, what="the server is busy")
    for words in [("POST", "x"), ("GET", "c"), ("CLAIM", "w1"), ("CONSUME", "w1", "c"), ("COUNT",)]:
        with refused_like("BUSY .+"):
            board.call(*words)
    past(end)
    assert waiter.connection and not waiter.answered()
    client.execute_command("SCRIPT", "KILL")
    thread.join(60)
    assert brief.reply() is None
    wait_until(lambda: board.state("c") == "ready", what="the lease ends")
    assert board.digest() != before
    board.post(id="n", queue="none")
    assert waiter.job() == "n"
    check_consistent(board)


def run_on(client) -> None:
    with contextlib.suppress(redis.RedisError):
        client.eval("while true do end", 0)


def test_writes_that_are_paused_come_later_and_time_waits(fresh_server):
    server = fresh_server("recovery-grace", 0)
    board = server.board()
    control = server.client()
    pipe = control.pipeline()
    pipe.execute_command("JOB.POST", "board", "x", "ID", "c")
    pipe.execute_command("JOB.CLAIM", "board", "w1", "LEASE", 100)
    pipe.execute_command("CLIENT", "PAUSE", LONG, "WRITE")
    pipe.execute()
    assert board.state("c") == "claimed"
    end = board.get("c")["deadline"] + 100
    posted = Parked(server, ("JOB.POST", "board", "x", "ID", "late"), await_block=False)
    past(end)
    assert not posted.answered() and board.state("c") == "claimed" and board.get("late") is None
    control.execute_command("CLIENT", "UNPAUSE")
    assert posted.answer() == "late"
    wait_until(lambda: board.state("c") == "ready")
