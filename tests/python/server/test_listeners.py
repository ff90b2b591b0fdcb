"""Nothing is sent while nobody listens, and nobody who begins to listen misses anything."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator

import lives
import pytest
import redis
from aof import commands, log_of
from expect import check_consistent
from harness import Board, Server, now, wait_until
from harness.cluster import Cluster
from lives import LONG
from primary import Primary
from sentinels import Watched

pytestmark = [pytest.mark.long, pytest.mark.one_server]

LIBRARY = """#!lua name=jobs
redis.register_function('two', function(keys)
    redis.call('JOB.POST', keys[1], 'by a function', 'DELAY', 3)
    return redis.call('JOB.POST', keys[1], 'by a function')
end)
"""
SCRIPT = """
redis.call('JOB.POST', KEYS[1], 'by a script')
return redis.call('JOB.CLAIM', KEYS[1], 's', 'LEASE', 3600000)
"""
SLOW = ["rdb-key-save-delay 300"]
"""Saving takes 0.3 ms longer for each key."""


def listeners(server: Server) -> str:
    return server.info("jobboard")["jobboard_listeners"]


def heard(server: Server) -> bool:
    """Whether somebody listens: asked by a change, as the module does."""

    def known() -> str:
        server.board("asks").post()
        word = listeners(server)
        return "" if word == "unknown" else word

    return {"nobody": False, "somebody": True}[wait_until(known)]


class Load:
    """Clients that change a board: singly, in batches, transactions, scripts, functions.

    Each rests for `pause` seconds after each turn: with none, they take all of the machine's time.
    """

    def __init__(self, server: Server, clients: int = 3, pause: float = 0) -> None:
        self.server, self.done, self.pause = server, 0, pause
        with server.connect() as client:
            client.function_load(LIBRARY, replace=True)
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(n,), daemon=True) for n in range(clients)]
        for thread in self._threads:
            thread.start()

    def _work(self, number: int) -> None:
        turn = number
        while not self._stop.is_set():
            with contextlib.suppress(redis.RedisError, OSError), self.server.connect() as client:
                board = Board(client)
                while not self._stop.is_set():
                    turn += 1
                    self._turn(board, turn, f"w{number}")
                    self.done += 1
                    time.sleep(self.pause)
            time.sleep(0.01)

    def _turn(self, board: Board, turn: int, worker: str) -> None:
        match turn % 6:
            case 0:
                pipe = board.client.pipeline()
                pipe.execute_command("JOB.POST", "board", "x", "QUEUE", "multi")
                pipe.execute_command("JOB.CLAIM", "board", worker, "LEASE", LONG, "QUEUES", 1, "multi")
                pipe.execute_command("JOB.POST", "board", "x", "DELAY", 2)
                pipe.execute()
            case 1:
                board.client.eval(SCRIPT, 1, "board")
            case 2:
                board.client.fcall("two", 1, "board")
            case 3:
                board.mpost("abc", queue="batch", priority=turn % 5)
            case _:
                board.post("x" * 200)
        for job in board.claim(worker, queues=[], count=4, lease=LONG):
            with contextlib.suppress(redis.ResponseError):
                match turn % 3:
                    case 0:
                        board.fail(worker, job["id"], "k", "m", token=job["token"], retry=turn % 2)
                    case _:
                        board.consume(worker, job["id"], token=job["token"])

    def goes_on(self, turns: int = 60) -> None:
        """Waits for so many more turns of its clients."""
        before = self.done
        wait_until(lambda: self.done >= before + turns, what="the load goes on")

    def stop(self) -> None:
        """Ends it, and waits for what it has left to the timer."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        board = self.server.board()

        def rests() -> bool:
            return all(job["due"] > now() + LONG / 2 for job in board.list_all(state="scheduled"))

        wait_until(rests, what="nothing is due soon")


@pytest.fixture
def loaded(fresh_server, thorough) -> Iterator:
    """A factory: a server at work to which nobody listens, and the work; `thorough`, without a pause."""
    loads = []

    def start(*module_args: object, config: tuple = (), keys: int = 0) -> tuple:
        server = fresh_server(*module_args, config=[*SLOW, *config])
        lives.busy(server.board())
        if keys:
            server.client().mset({f"key-{n}": n for n in range(keys)})
        loads.append(Load(server, pause=0 if thorough else 0.002))
        loads[-1].goes_on()
        assert listeners(server) == "nobody"
        return server, loads[-1]

    yield start
    for load in loads:
        load._stop.set()


def same(copy: Server, server: Server, key: str = "board") -> None:
    copy.wait_synced(server)
    board = copy.board(key)
    assert not board.info()["broken"]
    assert board.digest() == server.board(key).digest() is not None


def whole(server: Server, key: str = "board") -> None:
    board = server.board(key)
    assert not board.info()["broken"]
    check_consistent(board)


def rewritten(server: Server) -> None:
    """Waits until the append-only file is there, and nothing rewrites it."""

    def done() -> bool:
        info = server.info("persistence")
        busy = info["aof_rewrite_in_progress"] or info["aof_rewrite_scheduled"]
        return not busy and info["aof_last_bgrewrite_status"] == "ok"

    wait_until(done, what="the rewrite")


# The state


def test_info_says_whether_anybody_listens(fresh_server):
    server = fresh_server()
    assert listeners(server) == "unknown", "nobody has asked yet"
    assert not heard(server)
    client = server.client()
    client.config_set("appendonly", "yes")
    assert heard(server)
    rewritten(server)
    assert heard(server)
    client.config_set("appendonly", "no")
    assert not heard(server)
    replica = fresh_server(replicaof=server)
    replica.wait_synced(server)
    assert heard(server)


def test_a_server_with_an_append_only_file_sends_from_its_first_change(fresh_server):
    server = fresh_server(appendonly=True)
    server.board().post()
    assert listeners(server) == "somebody"
    server.survive()


def test_a_snapshot_by_itself_does_not_listen(fresh_server):
    server = fresh_server()
    for how in ["BGSAVE", "SAVE", "BGREWRITEAOF"]:
        server.board().post()
        server.client().execute_command(how)
        wait_until(lambda: not server.info("persistence")["rdb_bgsave_in_progress"])
        rewritten(server)
        assert not heard(server)


def test_a_node_of_a_cluster_always_sends(cluster):
    board = cluster.board()
    board.post()
    assert listeners(cluster.owner("board")) == "somebody"
    assert not cluster.owner("board").info("replication")["connected_slaves"]


def test_a_backlog_listens_until_the_server_gives_it_up(fresh_server):
    server = fresh_server(config=["repl-backlog-ttl 3600", "hz 100"])
    replica = fresh_server(replicaof=server)
    replica.wait_synced(server)
    assert heard(server)
    replica.kill()
    wait_until(lambda: not server.info("replication")["connected_slaves"])
    assert heard(server), "the backlog is kept for it"
    server.client().config_set("repl-backlog-ttl", 1)
    wait_until(lambda: not server.info("replication")["repl_backlog_active"], what="the end of the backlog")
    wait_until(lambda: not heard(server), what="the server is asked again")
    lives.busy(server.board())
    another = fresh_server(replicaof=server)
    same(another, server)
    server.board().post()
    same(another, server)


def test_changes_that_nobody_listens_to_count_for_save_points(fresh_server):
    server = fresh_server()
    board = server.board()
    lives.claimed(board, "a")

    def dirty() -> int:
        return server.info("persistence")["rdb_changes_since_last_save"]

    assert (listeners(server), dirty()) == ("nobody", 2)
    board.post(id="b", delay=100)  # after 1 ms the post itself may find the job due
    wait_until(lambda: dirty() > 3, what="the timer's change counts too")
    assert (dirty(), board.state("b")) == (4, "ready")
    board.client.eval(SCRIPT, 1, "board")
    assert dirty() == 6
    board.claim("w1", queues=["nowhere"])
    assert dirty() == 6


# Replicas that come


def ways(kind: str) -> dict:
    """How a full resync goes: lines of configuration, and what the log of one of the two then says."""
    streamed = ["repl-diskless-sync yes", "repl-diskless-load on-empty-db"]
    return {
        "streamed": ([*streamed, "repl-diskless-sync-delay 0"], "EOF"),
        "streamed after a delay": ([*streamed, "repl-diskless-sync-delay 1"], "Delay next BGSAVE"),
        "on disk": (["repl-diskless-sync no", "repl-diskless-load disabled"], "target: disk"),
        "over two channels": {
            "redis82": ([*streamed, "repl-rdb-channel yes"], "RDB channel"),
            "valkey91": ([*streamed, "dual-channel-replication-enabled yes"], "[Dd]ual[- ]channel"),
        }.get(kind),
    }


@pytest.mark.every_server
@pytest.mark.parametrize("way", ways(""))
def test_replicas_that_come_under_load_miss_nothing(loaded, fresh_server, kind, way):
    how = ways(kind)[way]
    if how is None:
        pytest.skip("this server has one channel")
    config, said = how
    primary, load = loaded(config=tuple(config), keys=2000)
    first = fresh_server(replicaof=primary, config=config)
    load.goes_on()
    first.wait_ready()
    second = fresh_server(replicaof=primary, config=config)
    wait_until(lambda: primary.info("replication")["connected_slaves"] == 2)
    load.goes_on()
    for replica in (first, second):
        wait_until(lambda r=replica: r.info("replication")["master_link_status"] == "up")
    load.goes_on()
    assert listeners(primary) == "somebody"
    load.stop()
    assert any(re.search(said, server.log) for server in (primary, first, second)), "another way was taken"
    for replica in (first, second):
        same(replica, primary)
        whole(replica)


def test_a_replica_that_is_cut_off_under_load_goes_on(loaded, fresh_server):
    primary, load = loaded(config=("repl-backlog-size 64mb",))
    replica = fresh_server(replicaof=primary)
    replica.wait_synced(primary)
    for _ in range(5):
        before = primary.info("stats")["sync_partial_ok"]
        primary.client().execute_command("CLIENT", "KILL", "TYPE", "replica")
        load.goes_on(20)
        wait_until(lambda before=before: primary.info("stats")["sync_partial_ok"] > before)
    load.stop()
    same(replica, primary)


def test_a_replica_that_is_cut_off_in_its_resync_begins_anew(loaded, fresh_server):
    primary, load = loaded(keys=3000, config=("repl-diskless-sync yes",))
    replica = fresh_server(replicaof=primary)
    for _ in range(3):
        wait_until(lambda: primary.info("replication")["connected_slaves"] == 1)
        load.goes_on(10)
        primary.client().execute_command("CLIENT", "KILL", "TYPE", "replica")
    load.goes_on()
    wait_until(lambda: replica.info("replication")["master_link_status"] == "up")
    load.stop()
    same(replica, primary)


def test_replicas_come_and_are_killed_under_load(loaded, fresh_server):
    primary, load = loaded(keys=500)
    for turn in range(4):
        replica = fresh_server(replicaof=primary)
        if turn % 2:
            replica.wait_synced(primary)
        load.goes_on(20)
        replica.kill()
    last = fresh_server(replicaof=primary)
    load.goes_on()
    load.stop()
    same(last, primary)


def test_a_chain_of_replicas_under_load(loaded, fresh_server):
    primary, load = loaded(keys=500)
    middle = fresh_server(replicaof=primary)
    last = fresh_server(replicaof=middle)
    load.goes_on()
    middle.wait_synced(primary)
    load.goes_on()
    load.stop()
    same(middle, primary)
    same(last, middle)
    primary.kill()
    middle.client().replicaof("NO", "ONE")
    load = Load(middle)
    load.goes_on()
    load.stop()
    assert listeners(middle) == "somebody"
    same(last, middle)


def test_a_snapshot_for_another_program_misses_nothing(loaded, fresh_server):
    """`redis-cli --rdb` takes a full resync and leaves."""
    command = shutil.which("redis-cli")
    assert command, "redis-cli is part of Debian's redis-tools"
    server, load = loaded(keys=500)
    for stops in (False, True):
        load.stop() if stops else load.goes_on(10)
        target = server.folder / "fetched.rdb"
        subprocess.run(
            [command, "-p", str(server.port), "--rdb", str(target)], check=True, capture_output=True
        )
        folder = server.folder / f"copy-{stops}"
        folder.mkdir()
        (folder / "dump.rdb").write_bytes(target.read_bytes())
        copy = fresh_server(folder=folder)
        whole(copy)
        assert copy.board().count() > 0
        if stops:
            assert copy.board().digest() == server.board().digest()
        else:
            load.goes_on(10)


# Changes of role


def test_a_failover_under_load_loses_nothing(loaded, fresh_server):
    primary, load = loaded()
    replica = fresh_server(replicaof=primary)
    replica.wait_synced(primary)
    for old, new in ((primary, replica), (replica, primary)):
        load.goes_on(20)
        old.fail_over_to(new)
        wait_until(lambda new=new: new.info("replication")["role"] == "master")
        load.server = new
        load.goes_on(20)
        wait_until(lambda old=old: old.info("replication").get("master_link_status") == "up")
    load.stop()
    same(replica, primary)
    whole(primary)


def test_a_failover_that_is_given_up_loses_nothing(loaded, fresh_server):
    primary, load = loaded()
    replica = fresh_server(replicaof=primary)
    primary.wait_online(replica)
    assert replica.process is not None
    replica.process.send_signal(signal.SIGSTOP)
    try:
        load.goes_on(10)
        primary.client().execute_command("FAILOVER", "TO", "127.0.0.1", replica.port, "TIMEOUT", 300)
        wait_until(lambda: primary.info("replication")["master_failover_state"] == "no-failover")
    finally:
        replica.process.send_signal(signal.SIGCONT)
    load.goes_on()
    load.stop()
    assert primary.info("replication")["role"] == "master"
    same(replica, primary)


def test_a_replica_promoted_by_hand_goes_on_with_its_own(loaded, fresh_server):
    primary, load = loaded()
    replica = fresh_server(replicaof=primary)
    replica.wait_synced(primary)
    load.goes_on(10)
    replica.client().replicaof("NO", "ONE")
    load.server = replica
    primary.kill()
    load.goes_on()
    late = fresh_server(replicaof=replica)
    load.goes_on()
    load.stop()
    same(late, replica)
    whole(replica)


def test_an_old_primary_that_nobody_listened_to_follows(loaded, fresh_server):
    """Its own changes were sent to nobody; it takes the other's whole."""
    primary, load = loaded()
    other = fresh_server()
    lives.busy(other.board())
    primary.client().replicaof("127.0.0.1", other.port)
    load.server = other
    load.goes_on()
    load.stop()
    same(primary, other)
    primary.client().replicaof("NO", "ONE")
    load = Load(primary)
    load.goes_on()
    third = fresh_server(replicaof=primary)
    load.goes_on()
    load.stop()
    same(third, primary)


def test_a_promotion_by_sentinels_under_load(fresh_server, kind):
    watched = Watched(fresh_server, kind)
    try:
        old, new = watched.servers
        load = Load(old)
        load.goes_on()
        watched.fail_over("kill")
        watched.close()  # or they may promote the next one as well
        load.server = new
        wait_until(lambda: new.info("replication")["role"] == "master")
        load.goes_on()
        late = fresh_server(replicaof=new)
        load.goes_on()
        load.stop()
        same(late, new)
        whole(new)
    finally:
        watched.close()


# Files


def test_an_append_only_file_switched_on_off_and_on_under_load(loaded):
    server, load = loaded(keys=1000, config=("appendfsync always",))
    client = server.client()
    for turn in range(3):
        client.config_set("appendonly", "yes")
        load.goes_on(20)
        if turn == 1:
            # Off again in the middle of its rewrite.
            client.config_set("appendonly", "no")
            load.goes_on(20)
            assert listeners(server) == "nobody"
            continue
        rewritten(server)
        load.goes_on(20)
        if turn == 0:
            client.config_set("appendonly", "no")
            load.goes_on(20)
            assert listeners(server) == "nobody"
    load.goes_on()
    load.stop()
    digest = server.board().digest()
    server.restart(kill=True, config=["appendonly yes"])
    assert server.board().digest() == digest
    whole(server)


def test_a_kill_after_a_file_was_switched_on_loses_nothing_acknowledged(fresh_server):
    server = fresh_server(config=["appendfsync always"])
    board = server.board()
    lives.busy(board)
    board.client.config_set("appendonly", "yes")
    posted = [board.post() for _ in range(50)]
    rewritten(server)
    posted += [board.post() for _ in range(50)]
    server.restart(kill=True, config=["appendonly yes"])
    assert all(server.board().state(id) == "ready" for id in posted)


@pytest.mark.parametrize("way", ["one after the other", "in one transaction"])
def test_a_file_that_is_switched_on_while_a_snapshot_is_saved(fresh_server, way):
    """Its rewrite waits for the other child; what is posted meanwhile is in it."""
    server = fresh_server(config=["appendfsync always", *SLOW])
    server.client().mset({f"key-{n}": n for n in range(2000)})
    board = server.board()
    lives.busy(board)
    # In one packet: the snapshot is not done before the server has read all of it.
    with board.client.pipeline(transaction=False) as pipe:
        pipe.bgsave()
        if way == "in one transaction":
            pipe.execute_command("MULTI")
        pipe.execute_command("JOB.POST", "board", "x", "ID", "before")
        pipe.config_set("appendonly", "yes")
        pipe.execute_command("JOB.POST", "board", "x", "ID", "after")
        if way == "in one transaction":
            pipe.execute_command("EXEC")
        pipe.info("persistence")
        *_, info = pipe.execute()
    assert info["aof_rewrite_scheduled"]
    board.post(id="meanwhile")
    rewritten(server)
    board.post(id="last")
    digest = board.digest()
    server.restart(kill=True, config=["appendonly yes"])
    assert server.board().digest() == digest
    assert [server.board().state(id) for id in ("before", "after", "meanwhile", "last")] == ["ready"] * 4


def test_rewrites_and_snapshots_under_load(loaded):
    server, load = loaded(keys=1000)
    client = server.client()
    for how in ["BGSAVE", "BGREWRITEAOF"] * 2:
        client.execute_command(how)
        load.goes_on(20)
        wait_until(lambda: not server.info("persistence")["rdb_bgsave_in_progress"])
        rewritten(server)
    load.goes_on(10)
    assert listeners(server) == "nobody"
    load.stop()
    client.save()
    digest = server.board().digest()
    server.restart(kill=True)
    assert server.board().digest() == digest


def test_a_file_that_is_rewritten_under_load_has_everything(loaded):
    server, load = loaded(keys=1000, config=("appendfsync always", "aof-use-rdb-preamble no"))
    server.client().config_set("appendonly", "yes")
    for _ in range(3):
        rewritten(server)
        server.client().bgrewriteaof()
        load.goes_on(20)
    rewritten(server)
    load.goes_on(20)
    load.stop()
    digest = server.board().digest()
    server.restart(kill=True, config=["appendonly yes"])
    assert server.board().digest() == digest


def test_a_server_that_was_reloaded_is_asked_again(fresh_server):
    server = fresh_server()
    lives.busy(server.board())
    server.client().execute_command("DEBUG", "RELOAD")
    assert listeners(server) == "unknown"
    replica = fresh_server(replicaof=server)
    replica.wait_synced(server)
    server.client().execute_command("DEBUG", "RELOAD")
    server.board().post()
    same(replica, server)


def test_a_primary_that_restarts_from_its_snapshot_sends_to_who_returns(fresh_server):
    """It keeps the backlog's place in its snapshot, and a replica may go on from there."""
    primary = fresh_server(config=["save 3600 1000000", "shutdown-timeout 0"])
    replica = fresh_server(replicaof=primary)
    lives.busy(primary.board())
    same(replica, primary)
    assert replica.process is not None
    replica.process.send_signal(signal.SIGSTOP)
    try:
        primary.restart()
        for _ in range(20):
            primary.board().post()
    finally:
        replica.process.send_signal(signal.SIGCONT)
    same(replica, primary)


# Around an attach


def attach(server: Server) -> socket.socket:
    """A client that asks for a full resync, and has been promised one."""
    client = server.socket()
    client.sendall(b"REPLCONF capa eof\r\n")
    assert client.recv(100) == b"+OK\r\n"
    client.sendall(b"SYNC\r\n")
    wait_until(lambda: server.info("replication")["connected_slaves"] >= 1)
    return client


def test_a_transaction_that_began_before_an_attach(fresh_server):
    server = fresh_server()
    lives.busy(server.board())
    client = server.client(single_connection_client=True)
    client.execute_command("MULTI")
    client.execute_command("JOB.POST", "board", "x", "ID", "one")
    replica = fresh_server(replicaof=server)
    client.execute_command("JOB.POST", "board", "x", "ID", "two")
    replica.wait_synced(server)
    assert client.execute_command("EXEC") == ["one", "two"]
    same(replica, server)
    assert replica.board().state("two") == "ready"


def test_posts_between_the_request_and_the_fork_are_in_the_copy(fresh_server):
    """The server waits 2 s for more replicas before it forks: nobody has been sent anything then."""
    server = fresh_server(config=["repl-diskless-sync yes", "repl-diskless-sync-delay 2"])
    board = server.board()
    lives.busy(board)
    board.post()
    assert listeners(server) == "nobody"
    replica = fresh_server(replicaof=server)
    wait_until(lambda: server.info("replication")["connected_slaves"] == 1)
    while not server.info("persistence")["rdb_bgsave_in_progress"]:
        board.post()
        board.client.eval(SCRIPT, 1, "board")
        if replica.info("replication")["master_link_status"] == "up":
            break
    board.post(id="after")
    same(replica, server)
    assert replica.board().state("after") == "ready"


@pytest.mark.parametrize("how", ["script", "function"])
def test_a_script_that_runs_while_a_replica_asks(fresh_server, how):
    """The server serves the replica when the script has ended, and forks after that."""
    server = fresh_server()
    board = server.board()
    lives.busy(board)
    body = """
        for n = 1, 400 do redis.call('JOB.POST', KEYS[1], 'x') end
        return redis.call('JOB.CLAIM', KEYS[1], 's', 'COUNT', 100, 'LEASE', 3600000)
    """
    if how == "function":
        text = body.replace("KEYS", "keys")
        board.client.function_load(
            f"#!lua name=long\nredis.register_function('long', function(keys) {text} end)"
        )
    stop = threading.Event()

    def run() -> None:
        with server.connect() as client:
            while not stop.is_set():
                client.eval(body, 1, "board") if how == "script" else client.fcall("long", 1, "board")

    thread = threading.Thread(target=run)
    thread.start()
    try:
        replica = fresh_server(replicaof=server)
        wait_until(lambda: replica.info("replication")["master_link_status"] == "up")
    finally:
        stop.set()
        thread.join()
    same(replica, server)
    whole(replica)


def test_a_client_that_asks_for_a_resync_and_leaves(fresh_server):
    server = fresh_server(config=["repl-diskless-sync yes", "repl-diskless-sync-delay 1"])
    board = server.board()
    lives.busy(board)
    for _ in range(3):
        client = attach(server)
        board.post()
        client.close()
        wait_until(lambda: server.info("replication")["connected_slaves"] == 0)
        board.post()
    replica = fresh_server(replicaof=server)
    replica.wait_synced(server)
    board.post()
    same(replica, server)


# Slots


def test_a_slot_that_moves_under_load(kind):
    cluster = Cluster(kind)
    stop = threading.Event()
    posted: list = []

    def post() -> None:
        board = cluster.board(socket_timeout=30)
        while not stop.is_set():
            with contextlib.suppress(redis.RedisError):
                posted.append(board.post())

    thread = threading.Thread(target=post)
    try:
        lives.busy(cluster.board())
        thread.start()
        source = cluster.owner("board")
        target, slot = next(one for one in cluster.primaries if one is not source), cluster.slot("board")
        wait_until(lambda: len(posted) > 50)
        if kind.startswith("valkey"):
            move = ("SLOTSRANGE", slot, slot, "NODE", cluster.id(target))
            cluster.ask(source, "CLUSTER", "MIGRATESLOTS", *move)
        else:
            cluster.begin_migration(slot, source, target)
            cluster.move("board", source, target)
            cluster.end_migration(slot, target)
        wait_until(lambda: cluster.owner("board") is target, what="the slot has moved")
        before = len(posted)
        wait_until(lambda: len(posted) > before + 50)
        stop.set()
        thread.join()
        with target.connect() as client:
            board = Board(client)
            assert not board.info()["broken"]
            assert all(board.state(id) == "ready" for id in posted)
            check_consistent(board)
        cluster.check_health()
    finally:
        stop.set()
        cluster.close()


# A client's command in place of its effects


@pytest.fixture
def primary() -> Iterator[Primary]:
    primary = Primary()
    yield primary
    primary.close()


def test_a_client_s_command_on_a_link_breaks_the_copy(fresh_server, primary):
    replica = fresh_server(config=[f"replicaof 127.0.0.1 {primary.port}"])
    primary.followed_by(replica)
    primary.send("JOB.POST", "board", "x", "ID", "j")
    primary.followed_by(replica)
    assert replica.board().client.exists("board")
    with pytest.raises(redis.ResponseError, match="BROKEN"):
        replica.board().get("j")
    assert replica.info("jobboard")["jobboard_broken_boards"] == 1
    assert "a client's command came in place of its effects" in replica.log


def test_a_client_s_command_in_a_file_breaks_the_board(fresh_server):
    server = fresh_server(appendonly=True, config=["aof-use-rdb-preamble no"])
    lives.busy(server.board())
    server.stop()
    [file] = server.folder.glob("appendonlydir/*.incr.aof")
    with file.open("ab") as log:
        log.write(b"*3\r\n$9\r\nJOB.CLAIM\r\n$5\r\nboard\r\n$1\r\nw\r\n")
        log.write(b"*3\r\n$8\r\nJOB.POST\r\n$5\r\nother\r\n$1\r\nx\r\n")
    server.start()
    for key in ("board", "other"):
        with pytest.raises(redis.ResponseError, match="BROKEN"):
            server.board(key).get("j")
    server.restart()
    assert server.info("jobboard")["jobboard_broken_boards"] == 2


def test_nothing_but_effects_is_in_a_file_that_was_switched_on_under_load(loaded):
    server, load = loaded(config=("aof-use-rdb-preamble no",))
    server.client().config_set("appendonly", "yes")
    load.goes_on()
    rewritten(server)
    load.goes_on()
    load.stop()
    server.stop()
    found = {command.words[0].upper() for command in commands(log_of(server))}
    jobs = {name for name in found if name.startswith(b"JOB.")}
    assert b"JOB.APPLY" in jobs and jobs <= {b"JOB.APPLY", b"JOB.LOAD"}
