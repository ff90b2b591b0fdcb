"""Boards on disk and as bytes: what is loaded is what was there, shown by the digest."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import lives
import pytest
import redis
from aof import commands, errors, log_of, pipe
from expect import check_consistent, drain, ids, refused_like
from harness import SOON, Board, Server, now, past, wait_until
from lives import LONG

RDB = ["save 3600 1000000"]
"""A shutdown saves, nothing else does."""

AOF = {
    "rewritten with a preamble": ("yes", True),
    "rewritten without a preamble": ("no", True),
    "as it was written": ("no", False),
}


def same(server: Server, digest: str, key: str = "board", db: int = 0) -> Board:
    """The board has this digest, agrees with itself, and works."""
    board = server.board(key, db=db)
    assert board.digest() == digest
    check_consistent(board)
    return board


def still_works(board: Board) -> None:
    """A job goes through its life on it, and nothing that it held is lost."""
    waiting = board.count(state="ready")
    board.post("hello", id="new", queue="of its own")
    [job] = board.claim("new worker", queues=["of its own"])
    assert board.consume("new worker", "new", token=job["token"]) == "complete"
    assert len(drain(board, lease=LONG)) == waiting
    check_consistent(board)


# Restarts


def test_a_restart_from_a_snapshot_changes_nothing(fresh_server):
    server = fresh_server(config=RDB)
    lives.busy(server.board())
    lives.busy(server.board("elsewhere", db=3))
    before = [server.board().digest(), server.board("elsewhere", db=3).digest()]
    server.restart()
    board = same(server, before[0])
    same(server, before[1], "elsewhere", 3)
    still_works(board)


@pytest.mark.parametrize("way", AOF)
def test_a_restart_from_an_append_only_file_changes_nothing(fresh_server, way):
    preamble, rewrite = AOF[way]
    server = fresh_server(appendonly=True, config=[f"aof-use-rdb-preamble {preamble}"])
    board = server.board()
    lives.busy(board)
    lives.busy(server.board("elsewhere", db=3))
    if rewrite:
        rewrite_aof(server)
        lives.ready(board, "after the rewrite")
        board.claim("w9", queues=[], count=2, lease=LONG)
    before = [board.digest(), server.board("elsewhere", db=3).digest()]
    server.restart()
    same(server, before[1], "elsewhere", 3)
    still_works(same(server, before[0]))


def rewrite_aof(server: Server) -> None:
    client = server.client()
    client.bgrewriteaof()
    wait_until(
        lambda: (
            not client.info("persistence")["aof_rewrite_in_progress"]
            and not client.info("persistence")["aof_rewrite_scheduled"]
        ),
        what="rewrite of the append-only file",
    )
    assert client.info("persistence")["aof_last_bgrewrite_status"] == "ok"


def test_an_append_only_file_of_large_boards_is_rewritten_in_parts(fresh_server):
    server = fresh_server(appendonly=True, config=["aof-use-rdb-preamble no"])
    board = server.board()
    board.post_many(20_000, "x" * 100, meta={"k": "v"})
    board.post("y" * 3_000_000)
    board.claim("w1", count=1000, lease=LONG)
    before = board.digest()
    rewrite_aof(server)
    server.restart()
    still_works(same(server, before))


def test_changes_during_a_rewrite_are_kept(fresh_server):
    server = fresh_server(appendonly=True, config=["aof-use-rdb-preamble no"])
    board = server.board()
    board.post_many(20_000)
    server.client().bgrewriteaof()
    for n in range(200):
        board.post(id=f"during-{n}")
        board.claim("w1", lease=LONG)
    wait_until(lambda: not server.info("persistence")["aof_rewrite_in_progress"])
    before = board.digest()
    server.restart()
    still_works(same(server, before))


def test_a_second_restart_changes_nothing_either(fresh_server):
    server = fresh_server(appendonly=True)
    lives.busy(server.board())
    server.restart()
    board = server.board()
    board.post_many(10, queue="second")
    board.claim("w1", queues=["second"], count=5, lease=LONG)
    before = board.digest()
    server.restart()
    still_works(same(server, before))


def test_posts_count_for_save_points(fresh_server):
    server = fresh_server(config=["save 1 3"])
    pipe = server.client().pipeline()
    for _ in range(4):
        pipe.execute_command("JOB.POST", "board", "x")
    pipe.info("persistence")
    assert pipe.execute()[-1]["rdb_changes_since_last_save"] == 4
    wait_until(lambda: Path(server.folder / "dump.rdb").exists())


def test_what_changes_nothing_does_not_count_for_save_points(fresh_server):
    server = fresh_server()
    board = server.board()
    lives.ready(board)
    before = server.info("persistence")["rdb_changes_since_last_save"]
    board.claim(queues=["nowhere"])
    board.post(id="j", nx=True)
    board.list(), board.info(digest=True), board.settings()
    assert server.info("persistence")["rdb_changes_since_last_save"] == before


def test_time_that_has_passed_while_the_server_was_down_is_caught_up(fresh_server):
    server = fresh_server("recovery-grace", 0, config=RDB)
    board = server.board()
    board.post(id="due", delay=SOON)
    lives.claimed(board, "lapses", lease=SOON)
    lives.claimed(board, "dropped", retain=SOON)
    board.consume("w1", "dropped")
    end = now() + SOON
    server.stop()
    past(end)
    server.start()
    board = server.board()
    wait_until(lambda: board.state("due") == board.state("lapses") == "ready")
    wait_until(lambda: board.get("dropped") is None)


# A killed server


def test_a_killed_server_with_everything_synced_loses_nothing_acknowledged(fresh_server):
    server = fresh_server(appendonly=True, config=["appendfsync always"])
    server.board().set(tombstone_ttl=LONG)
    acknowledged: dict = {"posted": [], "consumed": [], "claimed": {}}
    stop = threading.Event()

    def produce() -> None:
        with server.connect() as client:
            board = Board(client)
            while not stop.is_set():
                try:
                    acknowledged["posted"].append(board.post())
                except redis.ConnectionError:
                    return

    def work() -> None:
        with server.connect() as client:
            board = Board(client)
            while not stop.is_set():
                try:
                    for job in board.claim("worker", lease=LONG):
                        acknowledged["claimed"][job["id"]] = job["token"]
                        if len(acknowledged["claimed"]) % 3:
                            board.consume("worker", job["id"], token=job["token"])
                            acknowledged["consumed"].append(job["id"])
                except redis.ConnectionError:
                    return

    threads = [threading.Thread(target=produce) for _ in range(3)] + [threading.Thread(target=work)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(acknowledged["consumed"]) > 100)
    server.process.kill()
    for thread in threads:
        thread.join()
    stop.set()
    server.restart(kill=True)
    board = server.board()
    consumed = set(acknowledged["consumed"])
    for id in acknowledged["posted"]:
        job = board.get(id)
        if id in consumed:
            assert job is None
            assert board.consume("worker", id, token=acknowledged["claimed"][id]) == "complete"
        elif id in acknowledged["claimed"] and job is not None:
            assert (job["state"], job["token"]) == ("claimed", acknowledged["claimed"][id])
        elif id not in acknowledged["claimed"]:
            assert job is None or job["state"] in ("ready", "claimed")
    unclaimed = set(acknowledged["posted"]) - set(acknowledged["claimed"])
    assert sum(board.get(id) is None for id in unclaimed) <= 1, "only one claim can have been on its way"
    check_consistent(board)


def test_an_append_only_file_that_was_cut_short_loads_to_its_last_whole_command(fresh_server):
    server = fresh_server(appendonly=True, config=["aof-load-truncated yes", "appendfsync always"])
    board = server.board()
    for n in range(20):
        board.post(id=f"j{n}")
    server.kill()
    [log] = sorted(server.folder.glob("appendonlydir/*.incr.aof"))
    whole = log.read_bytes()
    log.write_bytes(whole[:-7])
    server.start()
    board = server.board()
    assert board.list_all(justid=True) == [f"j{n}" for n in range(19)]
    still_works(board)


# As bytes


@pytest.fixture
def busy_board(server):
    board = server.board()
    lives.busy(board)
    return board


def test_a_reload_changes_nothing(fresh_server):
    server = fresh_server()
    board = server.board()
    lives.busy(board)
    before = board.digest()
    board.client.execute_command("DEBUG", "RELOAD")
    still_works(same(server, before))


def test_a_reload_from_the_append_only_file_changes_nothing(fresh_server):
    server = fresh_server(appendonly=True)
    board = server.board()
    lives.busy(board)
    before = board.digest()
    board.client.execute_command("DEBUG", "LOADAOF")
    still_works(same(server, before))


def test_a_dump_restored_is_the_same_board(server, busy_board):
    raw = server.raw_client()
    raw.restore("copy", 0, raw.dump("board"))
    still_works(same(server, busy_board.digest(), "copy"))


def test_the_dump_of_a_restored_dump_is_the_same(server, busy_board):
    raw = server.raw_client()
    raw.restore("copy", 0, raw.dump("board"))
    assert raw.dump("copy") == raw.dump("board")


def test_a_copy_is_a_board_of_its_own(server, busy_board):
    before = busy_board.digest()
    busy_board.client.copy("board", "copy")
    copy = same(server, before, "copy")
    still_works(copy)
    copy.client.delete("copy")
    assert busy_board.digest() == before
    still_works(busy_board)


def test_a_copy_may_go_to_another_database_and_over_another_board(server, busy_board):
    lives.ready(server.board("copy", db=2))
    busy_board.client.copy("board", "copy", destination_db=2, replace=True)
    same(server, busy_board.digest(), "copy", 2)


def test_a_renamed_board_is_the_same(server, busy_board):
    before = busy_board.digest()
    busy_board.client.rename("board", "other")
    still_works(same(server, before, "other"))
    assert not busy_board.client.exists("board")


def test_a_moved_board_is_the_same(server, busy_board):
    before = busy_board.digest()
    busy_board.client.move("board", 6)
    still_works(same(server, before, db=6))
    assert not busy_board.client.exists("board")


def test_swapped_databases_swap_their_boards(server, busy_board):
    before = busy_board.digest()
    busy_board.client.swapdb(0, 6)
    still_works(same(server, before, db=6))


def test_a_board_may_have_a_time_to_live(server):
    board = server.board()
    lives.ready(board)
    board.client.pexpire("board", LONG)
    board.post(id="k")
    assert 0 < board.client.pttl("board") <= LONG, "a post must not take the time to live away"
    board.client.pexpire("board", 20)
    wait_until(lambda: not board.client.exists("board"))
    assert board.get("j") is None
    assert board.post(id="j") == "j"
    assert board.client.pttl("board") == -1


def test_a_verb_on_a_board_whose_time_is_over_finds_nothing(server):
    board = server.board()
    lives.claimed(board)
    board.client.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
    try:
        board.client.pexpire("board", 1)
        time.sleep(0.01)
        with refused_like("NOJOB no such job"):
            board.consume("w1", "j")
        assert board.post() and board.count() == 1
    finally:
        board.client.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 1)


@pytest.mark.parametrize("command", ["DEL", "UNLINK", "FLUSHALL", "FLUSHALL ASYNC"])
def test_a_large_board_is_freed(server, command):
    board = server.board()
    board.post_many(20_000, "x" * 100)
    board.claim("w1", count=1000, lease=LONG)
    board.client.execute_command(*command.split(), *(["board"] if "FLUSH" not in command else []))
    wait_until(lambda: server.info("memory")["lazyfree_pending_objects"] == 0)
    assert not board.client.exists("board")
    still_works(board)


def test_a_board_overwritten_by_another_type_is_gone(server):
    board = server.board()
    lives.claimed(board, lease=20)
    board.client.set("board", "text")
    time.sleep(0.05)
    assert board.client.get("board") == "text"


def test_the_type_has_a_name(server):
    lives.ready(server.board())
    assert server.client().type("board") == "jobboard1"


# Effects of another server


@pytest.fixture
def source(fresh_server):
    """A server that writes commands only; `log_of` reads them when it is stopped."""
    return fresh_server(appendonly=True, config=["aof-use-rdb-preamble no"])


def test_an_append_only_file_can_be_piped_into_a_server_that_allows_it(fresh_server, source):
    lives.busy(source.board())
    digest = source.board().digest()
    source.stop()
    target = fresh_server("foreign-effects", "yes")
    assert errors(pipe(target, log_of(source))) == []
    same(target, digest)


def test_a_rewritten_append_only_file_can_be_piped_as_well(fresh_server, source):
    lives.busy(source.board())
    digest = source.board().digest()
    rewrite_aof(source)
    source.stop()
    target = fresh_server("foreign-effects", "yes")
    assert errors(pipe(target, log_of(source))) == []
    same(target, digest)


def test_effects_of_another_server_are_refused_by_default(fresh_server, source):
    lives.ready(source.board())
    source.stop()
    target = fresh_server()
    assert any(line.startswith(b"-ERR internal command") for line in errors(pipe(target, log_of(source))))
    assert not target.client().exists("board")


def test_effects_apply_once(fresh_server, source):
    """A log that is piped in twice is skipped the second time."""
    board = source.board()
    board.mpost(["x"] * 10)
    board.claim("w1", count=5, lease=LONG)
    digest = board.digest()
    source.stop()
    target = fresh_server("foreign-effects", "yes")
    pipe(target, log_of(source) * 2)
    same(target, digest)


def test_a_gap_in_the_effects_breaks_the_copy_and_says_so(fresh_server, source):
    board = source.board()
    for n in range(3):
        board.post(id=f"j{n}")
    source.stop()
    log = commands(log_of(source))
    second = [command for command in log if command.is_effect][1]
    target = fresh_server("foreign-effects", "yes")
    pipe(target, b"".join(command.bytes for command in log if command is not second))
    broken = target.board()
    assert broken.info()["broken"] == 1
    for refuse in [lambda: broken.post(), lambda: broken.claim(), lambda: broken.cancel("j0")]:
        with refused_like("BROKEN .+", broken):
            refuse()


def test_a_claim_of_many_survives_exactly(fresh_server):
    """The tokens, attempts and deadlines after a restart are those that the workers were told."""
    server = fresh_server(appendonly=True)
    board = server.board()
    board.post_many(100)
    told = {job["id"]: job for job in board.claim("w1", count=100, lease=LONG)}
    server.restart()
    for job in server.board().mget(ids(told.values())):
        assert {field: job[field] for field in ("token", "attempt", "deadline")} == {
            field: told[job["id"]][field] for field in ("token", "attempt", "deadline")
        }


# Replies before the sync


def told_of(server) -> int:
    return server.info("jobboard")["jobboard_replies_before_sync"]


def test_io_threads_that_answer_before_the_sync_are_told(fresh_server):
    server = fresh_server(appendonly=True, config=["appendfsync always", "io-threads 2"])
    wait_until(lambda: told_of(server) == 1, what="INFO tells")
    assert server.log.count("io-threads is above 1") == 1
    server.client().config_set("appendfsync", "everysec")
    wait_until(lambda: told_of(server) == 0, what="nothing is promised any more")
    server.client().config_set("appendfsync", "always")
    wait_until(lambda: told_of(server) == 1, what="INFO tells again")
    assert server.log.count("io-threads is above 1") == 2


@pytest.mark.parametrize(
    "config",
    [
        ["appendonly yes", "appendfsync always"],
        ["appendonly yes", "io-threads 2"],
        ["appendfsync always", "io-threads 2"],
    ],
)
def test_what_promises_less_or_keeps_its_promise_is_not_warned_of(fresh_server, config):
    server = fresh_server(config=config)
    server.board().post()
    assert told_of(server) == 0
    assert "io-threads is above 1" not in server.log
