"""JOB.FLOW: a whole graph of jobs in one command, or nothing of it."""

from __future__ import annotations

import pytest
from expect import check_consistent, drain, ids, refused
from harness import wait_until
from harness.board import records, text
from lives import LONG
from waiters import Waiter


def node(label, *options):
    return ["NODE", label, f"payload of {label}", *map(str, options)]


def flow(board, *nodes):
    return [text(id) for id in board.call("FLOW", len(nodes), *[word for node in nodes for word in node])]


def after(*others, onfailure=None):
    return ["AFTER", len(others), *others, *(["ONFAILURE", onfailure] if onfailure else [])]


def do(board, id, **keywords):
    board.claim_one("w9", id_=id)
    board.consume("w9", id, **keywords)


def test_a_chain_runs_one_by_one_however_it_is_named(board):
    made = flow(board, node("c", *after("b")), node("b", *after("a")), node("a"))
    assert [board.state(id) for id in made] == ["blocked", "blocked", "ready"]
    assert board.get(made[0])["after"] == [made[1]]
    for id in reversed(made):
        assert ids(board.claim("w1", lease=LONG)) == [id]
        board.consume("w1", id)
    assert board.count() == 0
    check_consistent(board)


def test_fan_out_and_fan_in_with_results(board):
    parts = [node(n, "PARENT", "sum", "AFTER", 1, "split", "QUEUE", "parts") for n in range(10)]
    made = flow(
        board,
        node("split", "ID", "s"),
        *parts,
        node("sum", "ID", "sum", *after(*range(10)), "QUEUE", "sums"),
        node("tell", "ID", "t", *after("sum")),
    )
    assert (made[0], made[-2], made[-1]) == ("s", "sum", "t")
    assert board.count(queue="parts", state="blocked") == 10
    do(board, "s")
    for job in board.claim("w1", queues=["parts"], count=10, lease=LONG):
        board.consume("w1", job["id"], result=job["payload"], retain=1)
    assert (board.state("sum"), float(board.get("sum")["progress"])) == ("ready", 100)
    found = records(board.call("GET", "sum", "CHILDREN")[2])
    assert [text(job["result"]) for job in found] == [f"payload of {n}" for n in range(10)]
    do(board, "sum")
    do(board, "t")
    wait_until(lambda: board.count(state="complete") == 0)
    check_consistent(board)


def test_each_edge_has_its_own_policy(board):
    flow(
        board,
        node("a", "ID", "a"),
        *[node(how, "ID", how, *after("a", onfailure=how)) for how in ("hold", "cancel", "fail", "run")],
        node("mixed", "ID", "mixed", *after("hold"), *after("a", onfailure="run")),
    )
    board.claim_one("w1", id_="a")
    board.fail("w1", "a", noretry=True)
    states = {how: board.state(how) for how in ("hold", "cancel", "fail", "run", "mixed")}
    assert list(states.values()) == ["blocked", "cancelled", "failed", "ready", "blocked"]
    assert board.get("mixed")["after"] == ["hold"]
    check_consistent(board)


def test_labels_go_before_ids(board):
    board.post(id_="x")
    board.post(id_="old")
    flow(
        board,
        node("last", "ID", "last", *after("x", "by id", "old")),
        node("x", "ID", "n"),
        node("m", "ID", "by id"),
    )
    assert board.get("last")["after"] == ["old", "n", "by id"]
    assert board.state("x") == "ready"


def test_options_belong_to_their_node(board):
    made = flow(
        board,
        node("NODE", "QUEUE", "node", "PRIORITY", 7, "META", 1, "NODE", "NODE", "DELAY", LONG),
        node("b", "NAME", "node"),
    )
    first, second = board.get(made[0]), board.get(made[1])
    assert (first["queue"], first["priority"], first["state"]) == ("node", 7, "scheduled")
    assert (second["queue"], second["name"], "meta" in second) == ("default", "node", False)


def test_a_flow_comes_whole_or_not_at_all(board):
    board.post(id_="there")
    board.post(id_="over")
    board.cancel("over")
    fine = node("fine", "ID", "fine")
    for others, error in [
        ([node("b", "ID", "there")], "EXISTS there in node 'b'"),
        ([node("b", "ID", "fine")], "EXISTS fine in node 'b'"),
        ([node("fine")], "EXISTS fine in node 'fine'"),
        ([node("b", *after("nobody"), "STRICT")], "NOJOB no such job nobody in node 'b'"),
        ([node("b", "PARENT", "nobody")], "NOJOB no such job nobody in node 'b'"),
        ([node("b", "PARENT", "over")], "ENDED cancelled over in node 'b'"),
        ([node("b", *after("b"))], "CYCLE a job would wait for itself in node 'b'"),
        ([node("b", *after("c")), node("c", *after("b"))], "CYCLE a job would wait for itself in node 'b'"),
        ([node("b", "PARENT", "b")], "CYCLE a job would be its own ancestor in node 'b'"),
        (
            [node("b", "PRIORITY", "x")],
            "ERR PRIORITY must be an integer from -2147483648 to 2147483647 in node 'b'",
        ),
        ([node("b", "SHARE", 2)], "ERR SHARE needs PARENT in node 'b'"),
        ([node("b", "ID", "there", "REPLACE")], "ERR syntax error near 'REPLACE' in node 'b'"),
        ([node("", "ID", "b")], "ERR label must be 1 to 255 bytes long"),
        ([["EDGE", "b", "payload"]], "ERR syntax error near 'EDGE' in node 'fine'"),
    ]:
        with refused(error, board):
            flow(board, fine, *others)
    with refused("ERR n names 3 but fewer follow", board):
        board.call("FLOW", 3, *fine, *node("b"))
    with refused("ERR syntax error near 'NODE'", board):
        board.call("FLOW", 1, *fine, *node("b"))
    with refused("ERR n must be an integer from 1 to 10000", board):
        board.call("FLOW", 0, *fine)
    check_consistent(board)


def test_a_large_flow_comes_at_once(board):
    n = 3000
    chain = [node(i, *(after(i + 1) if i < n - 1 else [])) for i in range(n)]
    made = flow(board, *chain)
    assert (len(made), board.count(state="blocked"), board.state(made[-1])) == (n, n - 1, "ready")
    check_consistent(board)


def test_a_flow_wakes_a_worker_for_each_job_that_is_ready(server, board):
    first, second = Waiter(server, "w1", lease=LONG), Waiter(server, "w2", lease=LONG)
    made = flow(board, node("b", *after("a")), node("a"))
    assert first.job() == made[1]
    assert not second.answered(within=0.2)
    board.consume("w1", made[1])
    assert second.job() == made[0]


@pytest.mark.parametrize("config", [["appendonly yes", "appendfsync always"], []], ids=["aof", "rdb"])
def test_a_flow_survives_a_restart(fresh_server, config):
    server = fresh_server(config=config)
    board = server.board()
    made = flow(
        board,
        node("sum", *after("a", "b")),
        node("a", "PARENT", "sum"),
        node("b", "PARENT", "sum", "SHARE", 3),
    )
    do(board, made[2])
    board = server.survive()
    assert float(board.get(made[0])["progress"]) == 75
    drain(board)


def test_a_replica_follows(fresh_server):
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    board = primary.board()
    for _ in range(20):
        made = flow(
            board, node("sum", *after("a", "b")), node("a", "PARENT", "sum"), node("b", "PARENT", "sum")
        )
        do(board, made[1])
    replica.wait_synced(primary)
    assert replica.board().digest() == board.digest()
    assert not replica.board().info()["broken"]


def test_a_key_that_is_taken_refuses_the_flow_and_one_that_is_free_is_taken(board):
    job = node("a", "ID", "a", "UNIQUE", "k", "UNTIL", "start")
    flow(board, job, node("b", *after("a")))
    with refused("EXISTS a in node 'c'"):
        flow(board, node("x", "ID", "x"), node("c", "UNIQUE", "k"))
    assert board.get("x") is None
    do(board, "a")
    assert len(flow(board, node("c", "UNIQUE", "k"))) == 1
    with refused("EXISTS two in node 'd'"):
        flow(board, node("c", "UNIQUE", "two"), node("d", "UNIQUE", "two", "FOR", 5))
    with refused("ERR UNTIL needs UNIQUE in node 'c'"):
        flow(board, node("c", "UNTIL", "start"))
    with refused("ERR syntax error near 'ONCONFLICT' in node 'c'"):
        flow(board, node("c", "UNIQUE", "new", "ONCONFLICT", "return"))
    check_consistent(board)


def test_live_jobs_of_a_user_are_counted_in_the_order_of_the_posts(board):
    def export(label, most, *more):
        return node(label, "NAME", "export", "USER", "eve", "MAXLIVE", most, *more)

    board.post(name="export", user="eve")
    with refused("LIMIT maxlive in node 'b'"):
        flow(board, export("a", 2), export("b", 2))
    # b comes before a, which waits for it.
    with refused("LIMIT maxlive in node 'a'"):
        flow(board, export("a", 2, *after("b")), export("b", 2))
    assert board.count() == 1
    assert len(flow(board, export("a", 3, *after("b")), export("b", 2), node("c", "USER", "eve"))) == 3
    with refused("ERR MAXLIVE needs USER in node 'a'"):
        flow(board, node("a", "MAXLIVE", 2))
    check_consistent(board)
