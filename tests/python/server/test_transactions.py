"""Boards in MULTI, WATCH, Lua scripts and functions: as any key."""

from __future__ import annotations

import lives
import pytest
import redis
from expect import error_text, ids, refused, refused_like
from harness import SOON
from lives import LONG
from waiters import Waiter

# MULTI


def test_a_transaction_does_a_whole_life(board):
    pipe = board.client.pipeline()
    pipe.execute_command("JOB.POST", "board", "x", "ID", "j")
    pipe.execute_command("JOB.CLAIM", "board", "w1")
    pipe.execute_command("JOB.HEARTBEAT", "board", "w1", "j", "STAGE", "s")
    pipe.execute_command("JOB.CONSUME", "board", "w1", "j", "RETAIN", LONG)
    pipe.execute_command("JOB.GET", "board", "j", "FIELDS", 1, "state")
    posted, claimed, beat, consumed, record = pipe.execute()
    assert (posted, ids(claimed), beat["cancel"], consumed) == ("j", ["j"], 0, "complete")
    assert record == {"state": "complete"}


@pytest.mark.parametrize("how", [("COPY", "board", "board", "DB", 1), ("MOVE", "board", 1)])
def test_a_board_that_a_transaction_puts_into_another_database_is_served_there(server, how):
    board, other = server.board(), server.board(db=1)
    board.post(id="later", delay=SOON)
    waiter = Waiter(server, db=1)
    pipe = board.client.pipeline()
    pipe.execute_command(*how)
    pipe.execute()
    assert waiter.job() == "later"
    assert other.state("later") == "claimed"


def test_a_waiter_gets_the_job_of_a_board_that_a_transaction_moves_to_it(server):
    lives.ready(server.board())
    waiter = Waiter(server, db=1)
    pipe = server.board().client.pipeline()
    pipe.execute_command("MOVE", "board", 1)
    pipe.execute()
    assert waiter.job() == "j"


def test_an_error_in_a_transaction_does_not_undo_the_rest(board):
    pipe = board.client.pipeline()
    pipe.execute_command("JOB.POST", "board", "x", "ID", "a")
    pipe.execute_command("JOB.CONSUME", "board", "w1", "nowhere")
    pipe.execute_command("JOB.POST", "board", "x", "ID", "b")
    first, error, last = pipe.execute(raise_on_error=False)
    assert (first, last) == ("a", "b")
    assert error_text(error).startswith("NOJOB no such job")
    assert board.count() == 2


def test_a_discarded_transaction_changes_nothing(board):
    connection = board.client.connection_pool.get_connection()
    for words in [("MULTI",), ("JOB.POST", "board", "x"), ("DISCARD",)]:
        connection.send_command(*words)
        connection.read_response()
    assert not board.client.exists("board")


def test_a_board_moves_to_another_key_in_a_transaction_with_other_data(board):
    lives.ready(board)
    pipe = board.client.pipeline()
    pipe.set("order", "paid")
    pipe.execute_command("JOB.CANCEL", "board", 1, "j")
    pipe.rename("board", "archive")
    assert pipe.execute() == [True, ["cancelled"], True]
    board.key = "archive"
    assert board.state("j") == "cancelled"


def test_a_board_that_is_created_and_deleted_in_one_transaction_leaves_nothing(server):
    board = server.board()
    pipe = board.client.pipeline()
    for _ in range(3):
        pipe.execute_command("JOB.POST", "board", "x", "ID", "j", "DELAY", 10)
        pipe.delete("board")
    pipe.execute()
    assert not board.client.exists("board")


def test_wrong_arity_refuses_the_transaction(board):
    pipe = board.client.pipeline()
    pipe.execute_command("JOB.POST", "board", "x")
    pipe.execute_command("JOB.POST")
    with pytest.raises(redis.RedisError):
        pipe.execute()
    assert not board.client.exists("board")


# WATCH


def watched(board, change) -> bool:
    """Whether a transaction that watches the board goes through when `change` happens meanwhile."""
    with board.client.pipeline() as pipe:
        pipe.watch("board")
        change()
        pipe.multi()
        pipe.set("went", "through")
        try:
            pipe.execute()
        except redis.WatchError:
            return False
        return True


CHANGES = {
    "post": lambda board: board.post(),
    "claim": lambda board: board.claim_one(),
    "heartbeat": lambda board: board.heartbeat("w1", "held"),
    "consume": lambda board: board.consume("w1", "held"),
    "fail": lambda board: board.fail("w1", "held"),
    "abandon": lambda board: board.abandon("w1", "held"),
    "trash": lambda board: board.trash("w1", "held"),
    "cancel": lambda board: board.cancel("j"),
    "release": lambda board: board.release("held"),
    "requeue": lambda board: board.requeue("failed"),
    "delete": lambda board: board.delete("j"),
    "update": lambda board: board.update("j", priority=1),
    "set": lambda board: board.set(lease=1),
    "reset": lambda board: board.reset("retries"),
}

NO_CHANGES = {
    "get": lambda board: board.get("j"),
    "list": lambda board: board.list(),
    "info": lambda board: board.info(digest=True),
    "history": lambda board: board.history("j"),
    "settings": lambda board: board.settings(),
    "nothing to claim": lambda board: board.claim(queues=["nowhere"]),
    "nothing to post": lambda board: board.post(id="j", nx=True),
    "nothing to release": lambda board: board.release("nowhere"),
    "nothing to delete": lambda board: board.delete("nowhere"),
    "already cancelled": lambda board: board.cancel("cancelled"),
    "nothing held": lambda board: board.mheartbeat("nobody", "ALL"),
}


def watched_board(server):
    board = server.board()
    board.set(retries=3)
    lives.ready(board)
    lives.claimed(board, "held")
    lives.failed(board, "failed")
    lives.cancelled(board, "cancelled")
    return board


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_fails_the_transaction_of_who_watches(server, change):
    board, other = watched_board(server), server.board()
    assert not watched(board, lambda: CHANGES[change](other))


@pytest.mark.parametrize("change", NO_CHANGES)
def test_what_changes_nothing_lets_the_transaction_through(server, change):
    board, other = watched_board(server), server.board()
    assert watched(board, lambda: NO_CHANGES[change](other))


def test_a_refused_command_lets_the_transaction_through(server):
    board, other = watched_board(server), server.board()

    def refuse() -> None:
        with refused("NOTOWNER w1"):
            other.consume("w2", "held")
        with refused("EXISTS j"):
            other.post(id="j")

    assert watched(board, refuse)


def test_the_end_of_a_lease_fails_the_transaction_of_who_watches(clocked, clock):
    board = clocked.board()
    lives.claimed(board, lease=10)
    assert not watched(board, lambda: clock.advance(10))


def test_a_served_waiter_fails_the_transaction_of_who_watches(server):
    board, other = server.board(), server.board()
    waiter = Waiter(server)

    def serve() -> None:
        other.post()
        waiter.reply()

    assert not watched(board, serve)


# Lua


def test_a_script_does_a_whole_life(board):
    script = """
        local id = redis.call('JOB.POST', KEYS[1], 'hello', 'ID', 'j')
        local record = redis.call('JOB.CLAIM', KEYS[1], 'w1')[1]
        local job = {}
        for n = 1, #record, 2 do job[record[n]] = record[n + 1] end
        return {id, job.payload, redis.call('JOB.CONSUME', KEYS[1], 'w1', id, 'TOKEN', job.token)}
    """
    reply = board.client.eval(script, 1, "board")
    assert reply[:2] == ["j", "hello"]
    assert reply[2] in ("complete", {"ok": "complete"})
    assert board.info()["jobs"] == 0


def test_a_token_keeps_its_digits_in_a_script(board):
    """Lua numbers are doubles: a token is below 2^53."""
    script = """
        redis.call('JOB.POST', KEYS[1], 'hello', 'ID', 'j')
        local claimed = redis.call('JOB.CLAIM', KEYS[1], 'w1', 'FIELDS', 1, 'token')
        return string.format('%.0f', claimed[1][2])
    """
    assert int(board.client.eval(script, 1, "board")) == board.get("j")["token"]


def test_a_script_may_ask_for_maps(board):
    lives.ready(board)
    script = "redis.setresp(3); return redis.call('JOB.GET', KEYS[1], 'j')['map']['state']"
    assert board.client.eval(script, 1, "board") == "ready"


def test_a_script_sees_an_error_and_goes_on(board):
    lives.ready(board)
    script = """
        local reply = redis.pcall('JOB.CONSUME', KEYS[1], 'w1', 'j')
        redis.call('JOB.UPDATE', KEYS[1], 1, 'j', 'SET', 'PRIORITY', 3)
        return reply['err']
    """
    assert board.client.eval(script, 1, "board").startswith("NOTCLAIMED ready")
    assert board.get("j")["priority"] == 3


def test_an_error_ends_a_script(board):
    lives.ready(board)
    with refused_like("NOTCLAIMED ready.*", board):
        board.client.eval("return redis.call('JOB.CONSUME', KEYS[1], 'w1', 'j')", 1, "board")


def test_a_null_is_false_in_a_script(board):
    script = """
        local job, claimed = redis.call('JOB.GET', KEYS[1], 'j'), redis.call('JOB.CLAIM', KEYS[1], 'w')
        return {tostring(job), tostring(claimed)}
    """
    assert board.client.eval(script, 1, "board") == ["false", "false"]


def test_a_reading_script_may_not_write(board):
    lives.ready(board)
    assert board.client.execute_command("EVAL_RO", "return redis.call('JOB.COUNT', KEYS[1])", 1, "board") == 1
    with refused_like(".*Write commands are not allowed.*", board):
        board.client.execute_command("EVAL_RO", "return redis.call('JOB.CLAIM', KEYS[1], 'w')", 1, "board")


def test_internal_commands_are_refused_in_a_script(board):
    lives.ready(board)
    with refused_like(".*internal command.*", board):
        board.client.eval("return redis.call('JOB.APPLY', KEYS[1], ARGV[1])", 1, "board", b"x")


def test_a_function_posts_and_claims(server):
    client = server.client()
    client.function_load(
        """#!lua name=jobs
        redis.register_function('post_twice', function(keys, args)
            return {redis.call('JOB.POST', keys[1], args[1]), redis.call('JOB.POST', keys[1], args[1])}
        end)
        redis.register_function{function_name='how_many', callback=function(keys)
            return redis.call('JOB.COUNT', keys[1])
        end, flags={'no-writes'}}
        """
    )
    first, second = client.fcall("post_twice", 1, "board", "x")
    assert first != second
    assert client.fcall_ro("how_many", 1, "board") == 2


# What travels to replicas


def test_a_transaction_travels_as_one(fresh_server):
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    board = primary.board()
    lives.ready(board)
    replica.wait_synced(primary)
    pipe = board.client.pipeline()
    pipe.execute_command("JOB.CLAIM", "board", "w1")
    pipe.set("other", "data")
    pipe.execute_command("JOB.CONSUME", "board", "w1", "j", "RETAIN", LONG)
    pipe.execute()
    board.client.eval("redis.call('JOB.POST', KEYS[1], 'x'); redis.call('SET', 'y', 1)", 1, "board")
    replica.wait_synced(primary)
    copy = replica.board()
    assert copy.digest() == board.digest()
    assert (copy.state("j"), copy.client.get("other"), copy.client.get("y")) == ("complete", "data", "1")


def test_one_command_travels_as_one_effect(fresh_server):
    """One replicated command per command and board, and none for what changes nothing."""
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    replica.wait_synced(primary)
    board = primary.board()
    board.mpost([str(n) for n in range(100)])
    held = board.claim(count=50)
    board.mconsume("w1", ids(held))
    id = board.post()
    board.claim("w2", queues=["nowhere"])
    board.post(id=id, nx=True)
    board.delete("nowhere")
    replica.wait_synced(primary)
    stats = {name.lower(): calls for name, calls in replica.info("commandstats").items()}
    assert stats["cmdstat_job.apply"]["calls"] == 4
    assert not {name for name in stats if name.startswith("cmdstat_job.")} - {"cmdstat_job.apply"}
    assert replica.board().digest() == board.digest()
