"""A copy that misses a change, or does not know one, says so: in its answers, in INFO, in the log."""

from __future__ import annotations

import time

import lives
import pytest
import redis
from aof import commands, errors, log_of, pipe
from crc64 import sealed
from expect import check_consistent, error_text, ids, refused_like
from harness import wait_until
from lives import LONG
from primary import Primary, encoded, snapshot
from waiters import Parked, Waiter

BROKEN = "BROKEN .+"


@pytest.fixture(scope="module")
def log(server_kind):
    """The commands of a log that makes a board of ten jobs, five of them claimed."""
    from harness import Server

    source = Server(server_kind, appendonly=True, config=["aof-use-rdb-preamble no"])
    board = source.board()
    board.mpost([f"payload {n}" for n in range(10)])
    board.claim("w1", count=5, lease=LONG)
    for n in range(6):
        board.post(id=f"j{n}")
    source.stop()
    effects = [command for command in commands(log_of(source)) if command.is_effect]
    source.close()
    assert len(effects) == 8
    return effects


@pytest.fixture
def primary():
    primary = Primary()
    yield primary
    primary.close()


@pytest.fixture
def replica(fresh_server, primary):
    server = fresh_server(config=[f"replicaof 127.0.0.1 {primary.port}"])
    wait_until(lambda: server.info("replication")["master_link_status"] == "up", what="the link is up")
    return server


def said(log: list) -> bytes:
    return b"".join(command.bytes for command in log)


def with_batch(command, change) -> bytes:
    """The command with another batch."""
    batch = bytearray(command.words[2])
    change(batch)
    return encoded(*command.words[:2], bytes(batch))


def broken_boards(server) -> int:
    return server.info("jobboard")["jobboard_broken_boards"]


def await_broken_boards(server, count: int) -> None:
    """Waits until the server counts this many broken boards. Valkey frees a large board on another thread,
    and counts it until then.
    """
    wait_until(lambda: broken_boards(server) == count, what=f"{count} broken boards")


def says_so(server, why: str, times: int = 1) -> None:
    """The board is broken, and the server answers, counts and logs it."""
    board = server.board()
    assert board.info()["broken"] == 1
    assert broken_boards(server) == 1
    for read in ["GET j0", "MGET 1 j0", "LIST", "COUNT", "HISTORY j0", "QUEUES", "STATS", "WAIT 5 JOBS 1 j0"]:
        with refused_like(BROKEN, board):
            board.call(*read.split())
    assert server.log.count(f"board board is broken from now on: {why}") == times
    other = server.board("other")
    assert other.count() == 0 and other.info() is None


HEAD = 16
"""Where the first effect of a batch stands."""


def unknown(batch: bytearray) -> None:
    batch[HEAD] = 127


def longer(batch: bytearray) -> None:
    """One field more than this version knows, as a later version may write."""
    assert 0x80 <= batch[HEAD + 1] < 0x8F, "a map of less than 15 fields"
    batch[HEAD + 1] += 1
    batch.extend([126, 0xC0])


def shorter(batch: bytearray) -> None:
    del batch[-3:]


def late(batch: bytearray) -> None:
    """A batch that begins at a revision far ahead."""
    batch[3] = 1


def no_batch(batch: bytearray) -> None:
    batch[0] = 0x81


DAMAGES = {
    "unknown": (unknown, "this version knows no effect 127"),
    "longer": (longer, "an effect 1 does not fit"),
    "shorter": (shorter, "an effect 1 does not fit"),
    "no batch": (no_batch, "batch is not a batch of effects"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_replica_that_cannot_take_a_change_says_so(replica, primary, log, damage):
    change, why = DAMAGES[damage]
    primary.say(said(log[:3]))
    primary.followed_by(replica)
    assert replica.board().count() == 11 and broken_boards(replica) == 0
    waits = [
        Parked(replica, ("JOB.WAIT", "board", 0, "JOBS", 1, "j0")),
        Parked(replica, ("JOB.WAIT", "board", 0, "JOBS", 1, "j0", "CHANGED", 10_000)),
        Parked(replica, ("JOB.WAIT", "board", 0, "FOR", "empty")),
        Parked(replica, ("JOB.WAIT", "board", 0, "FOR", "claimable", "QUEUES", 1, "q")),
    ]
    primary.say(with_batch(log[3], change))
    primary.followed_by(replica)
    for wait in waits:
        with refused_like(BROKEN):
            wait.answer()
    says_so(replica, why)
    primary.say(said(log[4:]))
    primary.followed_by(replica)
    says_so(replica, why)


def test_a_replica_that_misses_a_change_says_so(replica, primary, log):
    primary.say(said(log[:4]) + said(log[5:]))
    primary.followed_by(replica)
    says_so(replica, "it is at revision 17, the next change at 18: some are missing")


def test_a_replica_that_misses_the_first_change_says_so(replica, primary, log):
    primary.say(said(log[1:]))
    primary.followed_by(replica)
    says_so(replica, "it is at revision 0, the next change at 10: some are missing")


def created_later(batch: bytearray) -> None:
    """The first batch of a board that was created at another time."""
    batch[HEAD - 2] ^= 1


def test_a_board_whose_deletion_was_not_told_goes_when_another_begins(replica, primary, log):
    primary.say(said(log))
    primary.followed_by(replica)
    board = replica.board()
    old = board.info()
    waiter = Parked(replica, ("JOB.WAIT", "board", 0, "JOBS", 1, "j5"))
    primary.say(with_batch(log[0], created_later) + said(log[1:3]))
    primary.followed_by(replica)
    assert waiter.answer() == [None]
    assert board.info()["created"] ^ 1 == old["created"] and board.info()["revision"] < old["revision"]
    assert broken_boards(replica) == 0 and board.get("j5") is None
    primary.say(said(log[3:]) * 2)
    primary.followed_by(replica)
    assert board.count() == 16 and broken_boards(replica) == 0
    check_consistent(board)


def test_a_board_that_a_reload_has_left_out_goes_when_another_begins(fresh_server):
    """The server does not tell of expired keys that it left out. Their time to live goes with the board."""
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    board, client = primary.board(), primary.client()
    board.post_many(6)
    client.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
    # Nothing may look at the key afterwards: a look deletes it, and tells.
    client.pexpire("board", 50)
    replica.wait_synced(primary)
    time.sleep(0.1)
    client.execute_command("DEBUG", "RELOAD")
    made = [board.post("new") for _ in range(3)]
    replica.wait_synced(primary)
    assert replica.board().digest() == board.digest() and broken_boards(replica) == 0
    replica.client().execute_command("REPLICAOF", "NO", "ONE")
    assert ids(replica.board().list_all()) == made and replica.client().ttl("board") == -1


def test_what_breaks_one_board_leaves_the_others(replica, primary, log):
    other = [encoded(b"JOB.APPLY", b"second", command.words[2]) for command in log]
    primary.say(said(log[:3]) + b"".join(other[:3]) + with_batch(log[3], unknown) + b"".join(other[3:]))
    primary.followed_by(replica)
    assert replica.board().info()["broken"] == 1 and broken_boards(replica) == 1
    assert replica.board("second").count() == 16
    check_consistent(replica.board("second"))


@pytest.mark.parametrize("end", ["DEL board", "UNLINK board", "FLUSHALL", "SET board text"])
def test_a_broken_board_can_be_taken_away(replica, primary, log, end):
    primary.say(said(log[1:]))
    primary.send(*end.split())
    primary.followed_by(replica)
    await_broken_boards(replica, 0)
    if end.startswith("SET"):
        primary.send("DEL", "board")
    primary.say(said(log))
    primary.followed_by(replica)
    assert replica.board().count() == 16
    check_consistent(replica.board())


@pytest.mark.parametrize("appendonly", [False, True], ids=["rdb", "aof"])
def test_a_broken_board_is_broken_after_a_restart(fresh_server, primary, log, appendonly):
    """And the server starts, however little of the board can be read."""
    config = [f"replicaof 127.0.0.1 {primary.port}", "save 3600 1000000", "aof-use-rdb-preamble no"]
    replica = fresh_server(config=config, appendonly=appendonly)
    wait_until(lambda: replica.info("replication")["master_link_status"] == "up", what="the link is up")
    primary.say(said(log[:2]) + with_batch(log[2], unknown))
    primary.followed_by(replica)
    if appendonly:
        wait_until(lambda: not replica.info("persistence")["aof_rewrite_in_progress"])
        rewritten(replica)
        assert replica.info("persistence")["aof_last_bgrewrite_status"] == "ok"
    replica.restart(config=[line for line in replica.config if "replicaof" not in line])
    assert broken_boards(replica) == 1
    board = replica.board()
    assert board.info()["broken"] == 1
    with refused_like(BROKEN, board):
        board.claim()


def test_a_broken_copy_that_is_promoted_refuses_everything(replica, primary, log):
    primary.say(said(log[:3]) + with_batch(log[3], unknown))
    primary.followed_by(replica)
    replica.client().execute_command("REPLICAOF", "NO", "ONE")
    board = replica.board()
    writes = [
        ("POST", "x"),
        ("CLAIM", "w1"),
        ("CONSUME", "w1", "j0"),
        ("HEARTBEAT", "w1", "j0"),
        ("CANCEL", 1, "j0"),
        ("DELETE", "WHERE", "STATE", "ready"),
        ("PAUSE",),
    ]
    for words in writes:
        with refused_like(BROKEN, board):
            board.call(*words)
    wait_until(lambda: replica.info("jobboard")["jobboard_timer_overdue_ms"] == 0)
    board.client.delete("board")
    board.post(id="j0")
    assert board.claim_one()["id"] == "j0"
    await_broken_boards(replica, 0)


def test_a_gap_on_a_real_link_and_a_new_synchronisation_that_mends_it(fresh_server):
    primary = fresh_server()
    lives.busy(primary.board())
    replica = fresh_server(replicaof=primary, config=["replica-read-only no"])
    replica.wait_synced(primary)
    assert replica.board().digest() == primary.board().digest()
    replica.client().delete("board")
    primary.board().post(id="next")
    replica.wait_synced(primary)
    revision = primary.board().info()["revision"] - 1
    says_so(replica, f"it is at revision 0, the next change at {revision}: some are missing")
    client = replica.client()
    client.execute_command("REPLICAOF", "NO", "ONE")
    client.execute_command("REPLICAOF", "127.0.0.1", primary.port)
    wait_until(lambda: replica.info("replication").get("master_link_status") == "up", what="the link")
    replica.wait_synced(primary)
    assert replica.board().digest() == primary.board().digest()
    await_broken_boards(replica, 0)


def test_a_replica_that_clients_may_write_to_refuses_changes_of_boards(fresh_server):
    """Its change would take the revision of one of the primary's, which the copy then passed over."""
    primary = fresh_server()
    lives.busy(primary.board())
    replica = fresh_server(replicaof=primary, config=["replica-read-only no"])
    replica.wait_synced(primary)
    board = replica.board()
    replica.client().set("other", "may be written")
    for words in (
        ("POST", "x"),
        ("CLAIM", "w1"),
        ("PAUSE",),
        ("DELETE", "WHERE", "STATE", "ready"),
        ("RESUME",),
    ):
        with refused_like("READONLY this server is a replica.*", board):
            board.call(*words)
    with refused_like("READONLY .*", board):
        board.client.eval("return redis.call('JOB.POST', KEYS[1], 'x')", 1, "board")
    primary.board().post(id="next")
    replica.wait_synced(primary)
    assert board.state("next") == "ready"
    assert board.digest() == primary.board().digest() and broken_boards(replica) == 0
    replica.client().execute_command("REPLICAOF", "NO", "ONE")
    assert board.post(id="promoted") == "promoted"


# Parts of snapshots


@pytest.fixture(scope="module")
def parts(server_kind):
    """The commands of a rewritten log: a board of several parts."""
    from harness import Server

    source = Server(server_kind, appendonly=True, config=["aof-use-rdb-preamble no"])
    board = source.board()
    board.mpost(["x" * 10_000] * 12)
    source.client().bgrewriteaof()
    wait_until(lambda: not source.info("persistence")["aof_rewrite_in_progress"], what="rewrite")
    wait_until(lambda: not source.info("persistence")["aof_rewrite_scheduled"], what="rewrite")
    source.stop()
    found = [command for command in commands(log_of(source)) if command.words[0].upper() == b"JOB.LOAD"]
    source.close()
    assert len(found) >= 3
    return found


PARTS = {
    "the first is damaged": (lambda parts: [with_batch(parts[0], no_batch), *[p.bytes for p in parts[1:]]]),
    "the first is missing": (lambda parts: [p.bytes for p in parts[1:]]),
    "one is missing": (lambda parts: [parts[0].bytes, *[p.bytes for p in parts[2:]]]),
    "the second is damaged": (
        lambda parts: [parts[0].bytes, with_batch(parts[1], shorter), *[p.bytes for p in parts[2:]]]
    ),
    "the last is missing": (lambda parts: [p.bytes for p in parts[:-1]]),
    "all come twice": (lambda parts: [p.bytes for p in parts * 2]),
}


@pytest.mark.parametrize("case", PARTS)
def test_parts_of_a_snapshot_that_do_not_fit_leave_a_broken_board(replica, primary, parts, case):
    """Never an empty one, and never a part of one."""
    primary.say(b"".join(PARTS[case](parts)))
    primary.followed_by(replica)
    board = replica.board()
    assert board.info()["broken"] == 1 and broken_boards(replica) == 1
    with refused_like(BROKEN, board):
        board.count()
    if case != "the last is missing":
        assert replica.log.count("board board is broken from now on: ") == 1
    copy = replica.raw_client().dump("board")
    primary.send("DEL", "board")
    primary.say(said(parts))
    primary.followed_by(replica)
    assert board.count() == 12
    await_broken_boards(replica, 0)
    check_consistent(board)
    primary.send("RESTORE", "board", 0, copy, "REPLACE")
    primary.followed_by(replica)
    assert board.info()["broken"] == 1 and broken_boards(replica) == 1


def test_a_log_with_a_damaged_part_is_loaded_as_a_broken_board(fresh_server, parts):
    server = fresh_server(appendonly=True, config=["aof-use-rdb-preamble no"])
    server.stop()
    [file] = server.folder.glob("appendonlydir/*.base.aof")
    file.write_bytes(b"".join(PARTS["the first is damaged"](parts)))
    server.start()
    assert server.board().info()["broken"] == 1 and broken_boards(server) == 1


def rewritten(server) -> None:
    server.client().bgrewriteaof()
    for what in ("aof_rewrite_scheduled", "aof_rewrite_in_progress"):
        wait_until(lambda what=what: not server.info("persistence")[what], what="rewrite")


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_a_file_that_is_rewritten_between_two_parts_of_a_board_has_the_whole_board(
    fresh_server, parts, preamble
):
    """As while a slot is imported: the parts come from another node, and may take long."""
    config = ["jobboard.foreign-effects yes", f"aof-use-rdb-preamble {preamble}"]
    server = fresh_server(appendonly=True, config=config)
    pipe(server, said(parts[:-1]))
    rewritten(server)
    pipe(server, parts[-1].bytes)
    before = server.board().digest()
    server.restart(kill=True)
    board = server.board()
    assert board.count() == 12 and board.digest() == before and broken_boards(server) == 0
    check_consistent(board)
    board.post(id="next")
    assert server.survive().state("next") == "ready"


def test_a_replica_that_comes_between_two_parts_of_a_board_gets_the_whole_board(fresh_server, target, parts):
    pipe(target, said(parts[:2]))
    replica = fresh_server(replicaof=target)
    replica.wait_synced(target)
    pipe(target, said(parts[2:-1]))
    chained = fresh_server(replicaof=replica)
    chained.wait_synced(target)
    pipe(target, parts[-1].bytes)
    target.board().post(id="next")
    for server in (replica, chained):
        server.wait_synced(target)
        board = server.board()
        assert board.digest() == target.board().digest() and broken_boards(server) == 0
        check_consistent(board)


def test_a_board_that_is_saved_between_two_parts_stays_broken_without_the_others(fresh_server, parts):
    """What has come is kept for the parts that may follow; a change that does not fit ends that."""
    server = fresh_server(config=["jobboard.foreign-effects yes"])
    pipe(server, said(parts[:2]))
    server.client().execute_command("DEBUG", "RELOAD")
    assert server.board().info()["broken"] == 1
    await_broken_boards(server, 1)
    with refused_like(BROKEN, server.board()):
        server.board().count()
    assert errors(pipe(server, parts[0].bytes)), "the head comes once"
    assert server.board().info()["broken"] == 1 and broken_boards(server) == 1
    server.client().delete("board")
    assert errors(pipe(server, said(parts))) == [] and server.board().count() == 12


# Snapshots of a later version


def later(part: bytes) -> bytes:
    """A part as a later version may write it: before the end stands an item of a sort that nobody knows."""
    assert part[-4:-1] == b"\x04\x81\x01", "the end says how many came before it"
    return part[:-4] + bytes([100, 0x81, 1, 5, 4, 0x81, 1, part[-1] + 1])


@pytest.fixture(scope="module")
def later_part(server_kind):
    """The only part of a board of three jobs, one of them claimed."""
    from harness import Server

    source = Server(server_kind, "clock", "manual", appendonly=True, config=["aof-use-rdb-preamble no"])
    lives.claimed(source.board(), "j0")
    source.board().mpost(["a", "b"])
    source.client().bgrewriteaof()
    wait_until(lambda: not source.info("persistence")["aof_rewrite_in_progress"], what="rewrite")
    wait_until(lambda: not source.info("persistence")["aof_rewrite_scheduled"], what="rewrite")
    source.stop()
    [part] = [command for command in commands(log_of(source)) if command.words[0].upper() == b"JOB.LOAD"]
    source.close()
    return later(part.words[2])


def dump_of(parts: list, like: bytes) -> bytes:
    """A DUMP of a board of these parts."""

    def string(content: bytes) -> bytes:
        return b"\x05\x80" + len(content).to_bytes(4, "big") + content

    return sealed(like[:10] + b"".join(string(part) for part in [*parts, b""]) + b"\x00", like)


def written(server) -> bytes:
    """What the server writes of the board when it rewrites its log as commands."""
    client = server.client()
    client.config_set("appendonly", "no")
    client.config_set("aof-use-rdb-preamble", "no")
    client.config_set("appendonly", "yes")
    for state in ("aof_rewrite_scheduled", "aof_rewrite_in_progress"):
        wait_until(lambda state=state: not server.info("persistence")[state], what="the rewrite")
    loads = [c for c in commands(log_of(server)) if c.words[:2] == [b"JOB.LOAD", b"board"]]
    client.config_set("appendonly", "no")
    return b"".join(load.words[2] for load in loads)


def from_rdb(fresh_server, part):
    server = fresh_server()
    server.board("other").post(id="here")
    server.board().post(id="x")
    dumps = {"board": dump_of([part], server.raw_client().dump("board"))}
    dumps["other"] = server.raw_client().dump("other")
    server.stop()
    (server.folder / "dump.rdb").write_bytes(snapshot(dumps))
    server.start()
    return server


def from_base(fresh_server, base: bytes, preamble: str):
    """A server with this file below its log."""
    server = fresh_server(appendonly=True, config=[f"aof-use-rdb-preamble {preamble}"])
    server.board("other").post(id="here")
    server.stop()
    [file] = server.folder.glob("appendonlydir/*.base.*")
    file.write_bytes(base)
    server.start()
    return server


def from_log(fresh_server, part):
    return from_base(fresh_server, encoded("JOB.LOAD", "board", part), "no")


def from_log_with_preamble(fresh_server, part):
    model = fresh_server()
    model.board().post(id="x")
    base = snapshot({"board": dump_of([part], model.raw_client().dump("board"))})
    return from_base(fresh_server, base, "yes")


def from_primary(fresh_server, part):
    model = fresh_server()
    model.board().post(id="x")
    model.board("other").post(id="here")
    dumps = {"board": dump_of([part], model.raw_client().dump("board"))}
    dumps["other"] = model.raw_client().dump("other")
    primary = Primary(dumps)
    try:
        server = fresh_server(config=[f"replicaof 127.0.0.1 {primary.port}"])
        wait_until(lambda: server.info("replication")["master_link_status"] == "up", what="the link is up")
        server.client().execute_command("REPLICAOF", "NO", "ONE")
    finally:
        primary.close()
    return server


WAYS = [from_rdb, from_log, from_log_with_preamble, from_primary]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_board_of_a_later_version_is_broken_and_kept_as_it_is(fresh_server, later_part, way):
    """A server starts with it, its other boards work, and the later version finds it whole."""
    server = way(fresh_server, later_part)
    board = server.board()
    assert board.info()["broken"] == 1 and broken_boards(server) == 1
    with refused_like(BROKEN, board):
        board.count()
    with refused_like(BROKEN, board):
        board.post()
    assert server.log.count("an item that this version does not know") == 1
    assert server.board("other").count() == 1
    dump = server.raw_client().dump("board")
    server.client().copy("board", "copy")
    assert server.raw_client().dump("copy") == dump and broken_boards(server) == 2
    assert written(server) == later_part
    server.client().save()
    server.restart(config=[])
    assert server.raw_client().dump("board") == dump and broken_boards(server) == 2
    assert written(server) == later_part


def test_a_board_of_a_later_version_is_not_restored(fresh_server, later_part):
    server = fresh_server()
    server.board().post(id="x")
    raw = server.raw_client()
    for name in ("board", "absent"):
        with refused_like("ERR Bad data format"):
            raw.execute_command("RESTORE", name, 0, dump_of([later_part], raw.dump("board")), "REPLACE")
    assert server.board().count() == 1 and not raw.exists("absent") and broken_boards(server) == 0


def test_what_is_kept_of_a_board_is_dropped_when_something_is_applied_to_it(
    replica, primary, later_part, log
):
    primary.send("JOB.LOAD", "board", later_part)
    primary.followed_by(replica)
    assert broken_boards(replica) == 1 and written(replica) == later_part
    primary.say(with_batch(log[0], late))
    primary.followed_by(replica)
    assert broken_boards(replica) == 1 and b"payload" not in written(replica)


# Effects of another server


@pytest.fixture
def target(fresh_server):
    return fresh_server("foreign-effects", "yes")


def test_a_log_with_a_gap_is_refused_from_there_on(target, log):
    waiter = Waiter(target, "w2", queues=["q"])
    found = errors(pipe(target, said(log[:3]) + said(log[4:])))
    assert len(found) == len(log) - 4 and all(line.startswith(b"-BROKEN ") for line in found)
    with refused_like(BROKEN):
        waiter.answer()
    assert target.board().info()["broken"] == 1 and broken_boards(target) == 1
    assert "some are missing" in target.log


def test_a_batch_that_is_none_changes_nothing(target, log):
    pipe(target, said(log[:3]))
    board = target.board()
    with refused_like("ERR batch is not a batch of effects", board):
        board.client.execute_command("JOB.APPLY", "board", b"\x81")
    with refused_like("ERR batch is not a batch of effects"):
        board.client.execute_command("JOB.APPLY", "absent", b"\x81")
    assert not board.client.exists("absent") and broken_boards(target) == 0
    pipe(target, said(log[3:]))
    assert board.count() == 16
    check_consistent(board)


def test_a_part_that_is_none_changes_nothing(target, parts):
    client = target.client()
    for words in [("absent", b"\x00"), ("absent", parts[1].words[2])]:
        with refused_like("ERR part: .+"):
            client.execute_command("JOB.LOAD", *words)
    assert not client.exists("absent")
    pipe(target, said(parts))
    with refused_like("ERR there is a board already", target.board()):
        client.execute_command("JOB.LOAD", "board", parts[0].words[2])
    assert target.board().count() == 12 and broken_boards(target) == 0


def test_a_board_is_broken_until_all_its_parts_are_there(target, parts):
    board = target.board()
    for part in parts[:-1]:
        pipe(target, part.bytes)
        assert board.info()["broken"] == 1 and broken_boards(target) == 1
        with refused_like(BROKEN, board):
            board.post()
    pipe(target, parts[-1].bytes)
    assert board.count() == 12 and broken_boards(target) == 0


def test_a_board_whose_parts_still_come_counts_those_that_have_come(target, parts):
    board = target.board()
    payloads = 0
    for part in parts:
        pipe(target, part.bytes)
        payloads += len(part.words[2])
        assert board.client.memory_usage("board") > payloads * 0.9


def test_who_waits_for_a_board_waits_until_all_its_parts_are_there(target, parts):
    claim = Waiter(target, "w1")
    wait = Parked(target, ("JOB.WAIT", "board", 0, "FOR", "present"))
    for part in parts:
        pipe(target, part.bytes)
    assert claim.job() and wait.answer() == "OK"


def test_replicas_of_a_server_into_which_a_log_is_piped_follow(fresh_server, target, log):
    replica = fresh_server(replicaof=target)
    replica.wait_synced(target)
    assert errors(pipe(target, said(log[:5]))) == []
    replica.wait_synced(target)
    assert replica.board().digest() == target.board().digest()
    target.board().consume("w1", target.board().list(state="claimed", count=1)[1][0]["id"])
    replica.wait_synced(target)
    assert replica.board().digest() == target.board().digest()
    pipe(target, said(log[7:]))
    replica.wait_synced(target)
    assert (broken_boards(target), broken_boards(replica)) == (1, 1)


def test_an_effect_of_another_type_of_key_is_refused(target, log):
    client = target.client()
    client.set("board", "text")
    try:
        client.execute_command("JOB.APPLY", *log[0].words[1:])
        raise AssertionError("accepted")
    except redis.ResponseError as error:
        assert error_text(error).startswith("WRONGTYPE")
    assert client.get("board") == "text"
