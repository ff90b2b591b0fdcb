"""Boards in a cluster: routing, failover, and slots that move with live leases, timers and blocked claims."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import lives
import pytest
import redis
from expect import check_consistent, ids
from harness import SOON, Board, Server, now, past, wait_until
from harness.cluster import Cluster, asking
from lives import LONG

pytestmark = pytest.mark.long

GRACE = 15_000
"""A `recovery-grace` in which a failover is over."""
KEYS = ["board", "b1", "b2", "b3", "jobs:{ann}", "jobs:{bob}"]


@pytest.fixture
def replicated(server_kind: str) -> Iterator[Cluster]:
    cluster = Cluster(server_kind, replicas=1)
    yield cluster
    try:
        cluster.check_health()
    finally:
        cluster.close()


def other_than(cluster: Cluster, server):
    return next(primary for primary in cluster.primaries if primary is not server)


def test_the_cluster_client_finds_the_board_of_every_command(cluster):
    client = cluster.client()
    assert len({cluster.owner(key).port for key in KEYS}) == 3
    for key in KEYS:
        board = Board(client, key)
        lives.busy(board)
        assert board.info()["jobs"] > 50
        board.pause(queue="mail")
        board.resume(queue="mail")
        board.depend("ADD", board.post(after=["claimed"]), ["ready"])
        client.execute_command("JOB.SCHEDULE", "SET", key, "s", "x", "EVERY", 1000)
        client.execute_command("JOB.SCHEDULE", "DEL", key, "s")
        assert board.settings("lease", queue="mail")["lease"] == [LONG, "queue"]
        board.reset("lease", queue="mail")
        assert board.history("claimed") and board.list_all(justid=True) and board.queues() and board.workers()
        check_consistent(board)
    for key in KEYS:
        with cluster.owner(key).connect() as direct:
            assert Board(direct, key).digest() == Board(client, key).digest()


def test_a_node_that_does_not_own_the_slot_says_where_it_is(cluster):
    owner = cluster.owner("board")
    with other_than(cluster, owner).connect() as client:
        for words in (
            ["JOB.POST", "board", "x"],
            ["JOB.CLAIM", "board", "w"],
            ["JOB.SETTINGS", "GET", "board"],
        ):
            with pytest.raises(redis.RedisError, match=f"{cluster.slot('board')} .*:{owner.port}"):
                client.execute_command(*words)


def test_leases_end_and_wake_on_each_node(cluster):
    client = cluster.client()
    for key in KEYS:
        board = Board(client, key)
        board.post("x", id="j")
        board.claim("dead", lease=50)
    for key in KEYS:
        [job] = Board(client, key).claim("alive", block=20_000)
        assert (job["id"], job["attempt"]) == ("j", 2)


def test_a_replica_serves_reads_and_sends_writers_away(replicated):
    board = replicated.board()
    board.post("x", id="j")
    primary = replicated.owner("board")
    replica = replicated.replica_of(primary)
    replica.wait_synced(primary)
    with replica.connect() as client:
        with pytest.raises(redis.RedisError, match=str(primary.port)):
            Board(client).get("j")
        client.execute_command("READONLY")
        assert Board(client).state("j") == "ready"
        with pytest.raises(redis.RedisError, match=str(primary.port)):
            Board(client).claim("w1")


def test_claims_and_times_outlive_a_failover(replicated):
    board = replicated.board()
    primary = replicated.owner("board")
    replica = replicated.replica_of(primary)
    replicated.ask(replica, "CONFIG", "SET", "jobboard.recovery-grace", GRACE)
    board.post("x", id="held")
    held = board.claim_one("w1", lease=LONG)
    board.post("x", id="later", delay=300)
    board.post("x", id="lost", lapses=-1)
    lost = board.claim_one("dead", id="lost", lease=GRACE - 1000)
    replica.wait_synced(primary)
    before = now()
    replicated.failover(replica)
    with replica.connect() as client:
        new = Board(client)
        assert new.consume("w1", "held", token=held["token"]) == "complete"
        found = {}
        while len(found) < 2:
            [job] = new.claim("w2", lease=LONG, block=30_000)
            found[job["id"]] = job["token"]
        assert found["lost"] > lost["token"] and "later" in found
        # After a promotion no lease ends for the recovery grace: live workers find their way first.
        [lapsed] = [entry["at"] for entry in new.history("lost") if entry["event"] == "lapsed"]
        assert lapsed >= before + GRACE > lost["deadline"]
        check_consistent(new)


def test_a_blocked_claim_is_sent_to_the_new_primary(replicated):
    primary = replicated.owner("board")
    replica = replicated.replica_of(primary)
    answers: list = []

    def wait() -> None:
        with primary.connect() as client:
            try:
                answers.append(Board(client).claim("w1", block=0))
            except redis.RedisError as error:
                answers.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    wait_until(lambda: primary.info("clients")["blocked_clients"] == 1, what="it waits")
    replica.wait_synced(primary)
    replicated.failover(replica)
    thread.join(120)
    assert len(answers) == 1 and isinstance(answers[0], redis.RedisError), answers


def test_posts_that_wait_for_room_are_neither_lost_nor_doubled_by_a_failover(replicated):
    client = replicated.client()
    Board(client).set(max_jobs=5)
    primary = replicated.owner("board")
    replica = replicated.replica_of(primary)
    done: list = []

    def produce(name: str) -> None:
        board = replicated.board(socket_timeout=30)
        for n in range(20):
            while True:
                try:
                    board.post(id=f"{name}-{n}", nx=True, retain=LONG, block=1000)
                    break
                except redis.RedisError:
                    time.sleep(0.05)
        done.append(name)

    producers = [threading.Thread(target=produce, args=(f"p{n}",)) for n in range(10)]
    for producer in producers:
        producer.start()
    board, moved = replicated.board(socket_timeout=30), False
    while len(done) < 10 or board.count():
        try:
            for job in board.claim("w1", count=2, block=100):
                board.consume("w1", job["id"], token=job["token"], retain=LONG)
            if not moved and board.count(state="complete") > 50:
                wait_until(lambda: primary.info("clients")["blocked_clients"] > 0, what="posts wait")
                replica.wait_synced(primary)
                replicated.failover(replica)
                moved = True
        except redis.RedisError:
            time.sleep(0.05)
    for producer in producers:
        producer.join(120)
    assert moved
    posted = sorted(board.list_all(justid=True, state="complete"))
    assert posted == sorted(f"p{n}-{m}" for n in range(10) for m in range(20))


def test_work_goes_on_over_a_failover_and_nothing_is_lost(replicated):
    total = 300
    client = replicated.client()
    Board(client).post_many(total, lapses=-1)
    primary = replicated.owner("board")
    replica = replicated.replica_of(primary)
    replica.wait_synced(primary)
    done: dict = {}
    stop = threading.Event()

    def work(worker: str) -> None:
        board = replicated.board(socket_timeout=30)
        while not stop.is_set():
            try:
                for job in board.claim(worker, count=3, lease=2000):
                    token = job["token"]
                    if board.consume(worker, job["id"], token=token) == "complete":
                        done[job["id"]] = done.get(job["id"], 0) + 1
            except redis.RedisError:
                time.sleep(0.02)

    threads = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(3)]
    [thread.start() for thread in threads]
    wait_until(lambda: len(done) > 20, what="work has begun")
    replicated.failover(replica)
    try:
        board = replicated.board()
        wait_until(lambda: board.count() == 0, what="all is done")
    finally:
        stop.set()
        [thread.join() for thread in threads]
    # A reply lost with its connection may leave a job done and not noted, never noted twice.
    assert set(done.values()) <= {1} and len(done) >= total - 9


# Slots that move


def test_a_board_moves_with_its_slot(cluster):
    board = cluster.board()
    lives.busy(board)
    digest, source = board.digest(), cluster.owner("board")
    target, slot = other_than(cluster, source), cluster.slot("board")
    cluster.begin_migration(slot, source, target)
    cluster.move("board", source, target)
    cluster.end_migration(slot, target)
    with target.connect() as client:
        moved = Board(client)
        assert moved.digest() == digest
        check_consistent(moved)
        assert moved.post("x")
    assert cluster.ask(source, "DBSIZE") == 0
    assert cluster.board().info()["jobs"] == moved_jobs(target)


def moved_jobs(server) -> int:
    with server.connect() as client:
        return Board(client).info()["jobs"]


def test_a_slot_that_is_being_imported_ends_no_lease_before_it_is_owned(cluster):
    board = cluster.board()
    board.post("x", id="j")
    token = board.claim_one("w1", lease=LONG)["token"]
    board.post("x", id="due", delay=LONG)
    source = cluster.owner("board")
    target, slot = other_than(cluster, source), cluster.slot("board")
    cluster.begin_migration(slot, source, target)
    with source.connect() as client, client.pipeline(transaction=False) as pipe:
        # In one packet: the board has gone before the source ends anything.
        pipe.execute_command("JOB.UPDATE", "board", 1, "due", "SET", "DELAY", SOON)
        pipe.execute_command("JOB.HEARTBEAT", "board", "w1", "j", "LEASE", SOON)
        pipe.execute_command("MIGRATE", "127.0.0.1", target.port, "board", 0, 60_000)
        assert pipe.execute()[-1] == "OK"
    end = now() + SOON
    guest = Board(asking(target))
    before = guest.info()["revision"]
    past(end)
    assert guest.info()["revision"] == before
    assert (guest.state("j"), guest.state("due")) == ("claimed", "scheduled")
    cluster.end_migration(slot, target)
    with target.connect() as client:
        moved = Board(client)
        wait_until(
            lambda: moved.state("j") == "ready" and moved.state("due") == "ready",
            what="the new owner ends the lease and the delay",
        )
        [one, two] = moved.claim("w2", count=2)
        assert {one["id"], two["id"]} == {"j", "due"} and min(one["token"], two["token"]) > token


def test_commands_find_a_board_in_the_middle_of_its_move(cluster):
    board = cluster.board()
    board.post("x", id="a")
    token = board.claim_one("w1", lease=LONG)["token"]
    source = cluster.owner("board")
    target, slot = other_than(cluster, source), cluster.slot("board")
    cluster.begin_migration(slot, source, target)
    assert board.heartbeat("w1", "a", token=token)["cancel"] == 0  # still at the source
    cluster.move("board", source, target)
    assert board.heartbeat("w1", "a", token=token)["cancel"] == 0  # ASK leads to the target
    assert board.consume("w1", "a", token=token) == "complete"
    board.post("y", id="b")
    cluster.end_migration(slot, target)
    assert ids(board.claim("w2")) == ["b"]


def moved_while(cluster, wait) -> list:
    """What `wait` returns, whose client waits while the slot moves, and gets a job at the new place."""
    source = cluster.owner("board")
    target, slot = other_than(cluster, source), cluster.slot("board")
    answers: list = []
    thread = threading.Thread(target=lambda: answers.append(wait(cluster.board(socket_timeout=150))))
    thread.start()
    wait_until(lambda: source.info("clients")["blocked_clients"] == 1, what="it waits")
    cluster.begin_migration(slot, source, target)
    cluster.move("board", source, target)
    cluster.end_migration(slot, target)
    wait_until(lambda: target.info("clients")["blocked_clients"] == 1, what="it waits at the new place")
    cluster.board().post("x", id="n")
    thread.join(120)
    return answers


def test_a_blocked_claim_is_sent_after_a_slot_that_has_moved(cluster):
    cluster.board().set(lease=LONG)  # the board is there
    assert moved_while(cluster, lambda board: ids(board.claim("w1", block=120_000))) == [["n"]]


def test_a_post_that_waits_for_room_follows_a_slot_and_makes_no_board_where_it_was(cluster):
    board = cluster.board()
    board.set(max_jobs=1)
    board.post(id="old")
    source = cluster.owner("board")
    target, slot = other_than(cluster, source), cluster.slot("board")
    answers: list = []
    waits = cluster.board(socket_timeout=150)
    thread = threading.Thread(target=lambda: answers.append(waits.post(id="new", block=120_000)))
    thread.start()
    wait_until(lambda: source.info("clients")["blocked_clients"] == 1, what="it waits")
    cluster.begin_migration(slot, source, target)
    cluster.move("board", source, target)
    # The key has gone from there, but its slot has not: nothing may be posted to an empty board.
    past(now() + 300)
    assert source.info("jobboard")["jobboard_boards"] == 0 and not answers
    cluster.end_migration(slot, target)
    wait_until(lambda: target.info("clients")["blocked_clients"] == 1, what="it waits at the new place")
    cluster.board().delete("old")
    thread.join(120)
    assert answers == ["new"]
    assert cluster.board().list_all(justid=True) == ["new"]


def test_an_end_that_waits_for_the_next_is_repeated_where_the_slot_has_moved(cluster):
    """The client sends the whole command again there: with its token the end is answered as before."""
    token = lives.claimed(cluster.board())
    words = ("w1", "j", "TOKEN", token, "CLAIM", "BLOCK", 120_000, "FIELDS", 1, "id")
    assert moved_while(cluster, lambda board: board.call("CONSUME", *words)) == [["complete", [{"id": "n"}]]]


def test_atomic_slot_migration_takes_boards_along(cluster, server_kind):
    if not server_kind.startswith("valkey"):
        pytest.skip("only Valkey has CLUSTER MIGRATESLOTS")
    source = cluster.owner("board")
    target, slot = other_than(cluster, source), cluster.slot("board")
    board = cluster.board()
    lives.busy(board)
    board.post("x", id="due-soon", delay=1500, queue="soon")
    cluster.ask(source, "CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", cluster.id(target))
    held = [job["id"] for job in board.list_all(state="claimed", worker="w3")]
    wait_until(lambda: cluster.owner("board") is target, what="the slot has moved")
    with target.connect() as client:
        moved = Board(client)
        assert [job["id"] for job in moved.list_all(state="claimed", worker="w3")] == held
        assert ids(moved.claim("w9", queues=["soon"], lease=LONG, block=30_000)) == ["due-soon"]
        check_consistent(moved)  # nothing is due any more
    wait_until(lambda: cluster.ask(source, "DBSIZE") == 0, what="the source has let go")


def taken(cluster: Cluster, slot: int, source: Server, target: Server) -> None:
    """A node takes a slot for itself, as after a split: its owner deletes what it has there."""
    for words in [("IMPORTING", cluster.id(source)), ("NODE", cluster.id(target))]:
        cluster.ask(target, "CLUSTER", "SETSLOT", slot, *words)
    cluster.ask(target, "CLUSTER", "BUMPEPOCH")
    wait_until(lambda: cluster.ask(source, "DBSIZE") == 0, what="the source has let go")
    wait_until(lambda: cluster.owner("board") is target, what="the slot is the other's")


def test_a_board_in_a_slot_that_was_taken_and_came_back_is_the_new_one_on_every_copy(server_kind):
    cluster = Cluster(server_kind, primaries=2, replicas=1, config=["appendonly yes"])
    try:
        node = cluster.owner("board")
        other, replica, slot = other_than(cluster, node), cluster.replica_of(node), cluster.slot("board")
        node.board().post_many(5)
        taken(cluster, slot, node, other)
        taken(cluster, slot, other, node)
        board = node.board()
        made = [board.post("new") for _ in range(8)]
        replica.wait_synced(node)
        with replica.connect() as client:
            client.execute_command("READONLY")
            assert ids(Board(client).list_all()) == made and Board(client).digest() == board.digest()
        node.restart(kill=True)
        wait_until(lambda: cluster.state(node)["cluster_state"] == "ok", what="it is back")
        assert ids(node.board().list_all()) == made
        cluster.check_health()
    finally:
        cluster.close()


def test_work_goes_on_while_a_slot_moves_to_and_fro(cluster):
    total = 400
    board = cluster.board()
    board.post_many(total, lapses=-1)
    done: dict = {}
    stop = threading.Event()

    def work(worker: str) -> None:
        mine = cluster.board(socket_timeout=30)
        while not stop.is_set():
            try:
                for job in mine.claim(worker, count=2, lease=2000, block=50):
                    if mine.consume(worker, job["id"], token=job["token"]) == "complete":
                        done[job["id"]] = done.get(job["id"], 0) + 1
            except redis.RedisError:
                time.sleep(0.01)

    threads = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(3)]
    [thread.start() for thread in threads]
    try:
        slot = cluster.slot("board")
        for _ in range(6):
            source = cluster.owner("board")
            target = other_than(cluster, source)
            cluster.begin_migration(slot, source, target)
            cluster.move("board", source, target)
            time.sleep(0.05)
            cluster.end_migration(slot, target)
        wait_until(lambda: board.count() == 0, what="all is done")
    finally:
        stop.set()
        [thread.join() for thread in threads]
    assert set(done.values()) <= {1} and len(done) >= total - 6


# JOB.WAIT where slots move


WAITS = [
    ["JOBS", 1, "j"],
    ["FOR", "empty"],
    ["FOR", "claimable", "QUEUES", 1, "none"],
]


def waits_at(server, words: list, readonly: bool = False) -> tuple[threading.Thread, list]:
    """A client of that node alone that waits in JOB.WAIT, and what it is answered."""
    answers: list = []
    before = server.info("clients")["blocked_clients"]

    def wait() -> None:
        with server.connect(socket_timeout=60, single_connection_client=True) as client:
            try:
                if readonly:
                    client.execute_command("READONLY")
                answers.append(client.execute_command("JOB.WAIT", "board", 50_000, *words))
            except redis.RedisError as error:
                answers.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    wait_until(lambda: server.info("clients")["blocked_clients"] == before + 1, what="it waits")
    return thread, answers


def sent_to(target, waiting: list[tuple[threading.Thread, list]]) -> None:
    """Each is told where the slot is."""
    for thread, answers in waiting:
        thread.join(120)
        assert len(answers) == 1 and isinstance(answers[0], redis.RedisError), answers
        assert str(answers[0].args[0]).endswith(f":{target.port}"), answers


def move_by_keys(cluster, source, target) -> None:
    slot = cluster.slot("board")
    cluster.begin_migration(slot, source, target)
    cluster.move("board", source, target)
    # Time for the source to tell its clients something else.
    time.sleep(0.5)
    cluster.end_migration(slot, target)


def move_at_once(cluster, source, target) -> None:
    slot = cluster.slot("board")
    cluster.ask(source, "CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", cluster.id(target))
    wait_until(lambda: cluster.owner("board") is target, what="the slot has moved")


MOVES = {"by keys": move_by_keys, "at once": move_at_once}


def move(cluster, how: str) -> tuple:
    """The nodes between which the board moves, and how."""
    if how == "at once" and not cluster.kind.startswith("valkey"):
        pytest.skip("only Valkey has CLUSTER MIGRATESLOTS")
    source = cluster.owner("board")
    return source, other_than(cluster, source), MOVES[how]


@pytest.mark.parametrize("how", MOVES)
def test_a_client_that_waits_is_sent_after_a_slot_that_has_moved(cluster, how):
    source, target, moves = move(cluster, how)
    lives.claimed(cluster.board(), lease=LONG)
    waiting = [waits_at(source, words) for words in WAITS]
    moves(cluster, source, target)
    sent_to(target, waiting)


@pytest.mark.parametrize("how", MOVES)
def test_a_client_that_waits_on_a_replica_is_sent_after_a_slot_that_has_moved(replicated, how):
    source, target, moves = move(replicated, how)
    lives.claimed(replicated.board(), lease=LONG)
    replica = replicated.replica_of(source)
    replica.wait_synced(source)
    waiting = [waits_at(replica, words, readonly=True) for words in WAITS]
    moves(replicated, source, target)
    sent_to(target, waiting)


def test_a_client_that_waits_is_told_of_a_board_that_is_deleted(replicated):
    lives.claimed(replicated.board(), lease=LONG)
    source = replicated.owner("board")
    replica = replicated.replica_of(source)
    replica.wait_synced(source)
    waiting = [waits_at(source, WAITS[0]), waits_at(source, WAITS[1])]
    waiting += [waits_at(replica, WAITS[0], readonly=True), waits_at(replica, WAITS[1], readonly=True)]
    replicated.ask(source, "DEL", "board")
    for thread, _ in waiting:
        thread.join(120)
    assert [answers for _, answers in waiting] == [[[None]], ["OK"], [[None]], ["OK"]]


def test_a_client_that_waits_is_told_when_a_move_is_given_up_without_its_board(cluster):
    lives.claimed(cluster.board(), lease=LONG)
    source, target, _ = move(cluster, "by keys")
    thread, answers = waits_at(source, WAITS[0])
    slot = cluster.slot("board")
    cluster.begin_migration(slot, source, target)
    cluster.move("board", source, target)
    time.sleep(0.5)
    assert answers == []
    cluster.ask(source, "CLUSTER", "SETSLOT", slot, "STABLE")
    thread.join(120)
    assert answers == [[None]]
