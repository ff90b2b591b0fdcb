"""AFTER and JOB.DEPEND: a job waits for others, and what becomes of it when they end."""

from __future__ import annotations

import lives
import pytest
from expect import check_consistent, drain, ids, refused, refused_like
from harness import wait_until
from lives import LONG
from waiters import Waiter


def end(board, id, how="complete"):
    token = board.claim_one("w9", id_=id)["token"]
    if how == "complete":
        board.consume("w9", id, token=token)
    elif how == "failed":
        board.fail("w9", id, token=token, noretry=True)
    else:
        board.trash("w9", id, token=token)


def pair(board, on_failure=None):
    board.post(id_="a")
    board.post(id_="b", after=["a"], onfailure=on_failure)
    assert board.state("b") == "blocked"


def test_a_job_waits_until_all_are_complete(board):
    board.mpost(["1", "2"], ids=["a", "b"])
    assert board.post(id_="c", after=["b", "a"]) == "c"
    assert board.get("c")["after"] == ["a", "b"]
    assert ids(board.claim("w1", count=9, lease=LONG)) == ["a", "b"]
    board.consume("w1", "a")
    assert board.state("c") == "blocked"
    board.consume("w1", "b")
    assert board.state("c") == "ready"
    assert "after" not in board.get("c")
    assert board.get("a") is None
    check_consistent(board)


def test_a_blocked_job_is_listed_and_counted(board):
    pair(board)
    assert board.list(state="blocked", justid=True) == ("0", ["b"])
    assert (board.count(state="blocked"), board.queues()["default"]["blocked"]) == (1, 1)
    with refused("NOTREADY blocked", board):
        board.claim(id_="b")
    check_consistent(board)


def test_a_dependency_that_goes_with_a_replaced_job_refuses_none_of_the_others(clocked_board, clock):
    """Its record was kept for the replaced one alone. When the command came, all ids were known."""
    clocked_board.post(id="c")
    clocked_board.post(id="a", after=["c"])
    clocked_board.claim("w1", id="c")
    clocked_board.fail("w1", "c", noretry=True, retain=1)
    clock.advance(10)
    posted = clocked_board.mpost(
        ["1", "2"], ids=["a", "n"], replace=True, after=["c"], onfailure="run", strict=True
    )
    assert (posted, clocked_board.get("c")) == (["a", "n"], None)
    assert (clocked_board.state("a"), clocked_board.state("n")) == ("ready", "ready")


def test_unknown_ids_count_as_met_unless_strict(board):
    board.post(id_="a", after=["nobody"])
    assert board.state("a") == "ready"
    with refused("NOJOB no such job nobody", board):
        board.post(id_="b", after=["a", "nobody"], strict=True)
    with refused("NOJOB no such job nobody", board):
        board.mpost(["1", "2"], after=["nobody"], strict=True)
    with refused("NOJOB no such job nobody", board):
        board.depend("ADD", "a", ["nobody"], strict=True)


@pytest.mark.parametrize(
    ("on_failure", "state"),
    [(None, "blocked"), ("hold", "blocked"), ("cancel", "cancelled"), ("FAIL", "failed"), ("run", "ready")],
)
@pytest.mark.parametrize("how", ["failed", "trashed"])
def test_a_failure_decides(board, on_failure, state, how):
    pair(board, on_failure)
    end(board, "a", how)
    assert board.state("b") == state
    job = board.get("b")
    if state == "failed":
        assert (job["kind"], job["message"]) == ("dependency", f"a {how}")
    if state == "cancelled":
        assert job["reason"] == f"a {how}"
    check_consistent(board)


def test_each_after_has_its_own_onfailure(board):
    board.mpost(["1", "2"], ids=["a", "b"])
    board.call("POST", "x", "ID", "c", "AFTER", 1, "a", "ONFAILURE", "run", "AFTER", 1, "b")
    end(board, "a", "failed")
    end(board, "b", "failed")
    assert (board.state("c"), board.get("c")["after"]) == ("blocked", ["b"])
    board.requeue("b")
    end(board, "b")
    assert board.state("c") == "ready"


def test_words_that_do_not_fit_are_refused(board):
    with refused("ERR ONFAILURE must follow AFTER"):
        board.post(onfailure="run")
    with refused("ERR STRICT needs AFTER"):
        board.post(strict=True)
    with refused("ERR ONFAILURE must be hold, cancel, fail or run"):
        board.post(after=["a"], onfailure="stop")
    with refused("ERR ONFAILURE is given twice"):
        board.call("POST", "x", "AFTER", 1, "a", "ONFAILURE", "run", "ONFAILURE", "run")
    with refused("NOJOB no such job"):
        board.depend("CLEAR", "nobody")
    with refused_like("ERR syntax error near 'x'|ERR wrong number.+"):
        board.client.execute_command("JOB.DEPEND", "CLEAR", "board", "a", "x")


def test_delay_and_dependency_must_both_be_met(clocked_board, clock):
    board = clocked_board
    board.mpost(["1", "2"], ids=["a", "b"])
    board.post(id_="c", after=["a"], delay=1000)
    board.post(id_="d", after=["b"], delay=1000)
    end(board, "a")
    assert board.state("c") == "scheduled"
    clock.advance(1000)
    assert (board.state("c"), board.state("d")) == ("ready", "blocked")
    end(board, "b")
    assert board.state("d") == "ready"


def test_cycles_are_refused(board):
    pair(board)
    with refused("CYCLE a job would wait for itself", board):
        board.depend("ADD", "a", ["b"])
    with refused("CYCLE a job would wait for itself", board):
        board.post(id_="a", replace=True, after=["b"])
    with refused("CYCLE a job would wait for itself", board):
        board.mpost(["1", "2"], ids=["x", "y"], after=["y"])


def test_depend_adds_removes_and_clears(board):
    board.mpost(["1", "2", "3"], ids=["a", "b", "c"])
    assert board.depend("ADD", "c", ["a", "b"]) == "blocked"
    assert board.depend("REMOVE", "c", ["a", "nobody"]) == "blocked"
    assert board.depend("CLEAR", "c") == "ready"
    lives.failed(board, "f")
    assert board.depend("ADD", "c", ["f"], onfailure="cancel") == "cancelled"
    with refused("ENDED cancelled", board):
        board.depend("CLEAR", "c")
    lives.claimed(board, "j")
    with refused("CLAIMED w1", board):
        board.depend("ADD", "j", ["a"])


def test_what_others_wait_for_is_taken_away_only_with_them(board):
    pair(board)
    for call in [board.cancel, board.delete]:
        with refused("DEPENDED b a", board):
            call("a")
    assert board.cancel("a", "b") == ["cancelled", "cancelled"]
    pair_two = board.requeue("a", "b")
    assert pair_two.count == 2
    board.depend("ADD", "b", ["a"])
    assert board.delete("a", "b").count == 2
    assert board.info()["jobs"] == 0


def test_many_dependencies_are_taken_away_slice_by_slice(board):
    layers = [[f"{layer}-{n}" for n in range(230)] for layer in range(3)]
    board.mpost([""] * 230, ids=layers[0])
    for before, layer in zip(layers, layers[1:]):
        board.mpost([""] * 230, ids=layer, after=before)
    every = [id for layer in layers for id in layer]
    for call in [board.cancel, board.delete]:
        with refused("LIMIT named dependencies", board):
            call(*every)
    assert set(board.cancel(*layers[2][:200])) == {"cancelled"}
    cursor, cancelled = None, 0
    while cursor != "0":
        count, cursor, held = board.call(
            "CANCEL", "WHERE", "STATE", "blocked", *(["CURSOR", cursor] if cursor else [])
        )
        cancelled += count
        assert held == []
    assert cancelled == 260
    check_consistent(board)


@pytest.fixture
def many_edges(board):
    """11 jobs that wait for 9,999 others each."""
    ids = [f"x{n}" for n in range(9_999)]
    board.mpost([""] * len(ids), ids=ids)
    waiters = [f"w{n}" for n in range(11)]
    for id in waiters:
        board.post(id=id, after=ids)
    return waiters


@pytest.mark.parametrize("options", [{"after": []}, {}])
def test_one_command_replaces_jobs_with_100000_dependencies_at_most(board, many_edges, options):
    with refused("LIMIT named dependencies", board):
        board.mpost(["y"] * 11, ids=many_edges, replace=True, **options)
    assert board.mpost(["y"] * 10, ids=many_edges[:10], replace=True, **options) == many_edges[:10]
    # What the command of several jobs has used up is nothing to the next ones.
    assert board.post(id=many_edges[10], replace=True, after=["x0"]) == many_edges[10]
    check_consistent(board)


@pytest.mark.parametrize("verb", ["mconsume", "mtrash", "mfail"])
def test_one_command_ends_waiting_jobs_with_100000_dependencies_at_most(board, many_edges, verb):
    board.set(ownerless=1)
    options = {"noretry": True} if verb == "mfail" else {}
    *done, last = getattr(board, verb)("*", many_edges, **options)
    assert last == ["LIMIT", "named dependencies"]
    assert not any(isinstance(one, list) and one[0] == "LIMIT" for one in done)
    assert board.count(state="blocked") == 1
    assert getattr(board, verb)("*", many_edges[10:], **options) != [last]
    check_consistent(board)


def chain(board, name, length, after=()):
    """Jobs of which each waits for the one before it; returns the id of the last."""
    words = []
    for n in range(length):
        before = [f"{name}{n - 1}"] if n else list(after)
        words += ["NODE", f"{name}{n}", "", "ID", f"{name}{n}", "AFTER", len(before), *before]
    board.call("FLOW", length, *words)
    return f"{name}{length - 1}"


@pytest.mark.parametrize("command", ["replace", "next"])
def test_the_searches_for_cycles_of_one_command_have_a_bound_together(board, command):
    firsts = [f"f{n}" for n in range(40)]
    board.mpost([""] * 40, ids=firsts, priority=1)
    chain(board, "behind", 2_000, firsts)
    last = chain(board, "ahead", 2_000)
    if command == "replace":
        with refused("LIMIT dependency chain", board):
            board.mpost(["y"] * 40, ids=firsts, replace=True, after=[last])
        assert board.mpost(["y"] * 10, ids=firsts[:10], replace=True, after=[last]) == firsts[:10]
        assert board.post("y", id=firsts[30], replace=True, after=[last]) == firsts[30]
    else:
        board.claim("w1", count=40)
        done = board.mconsume("w1", firsts, next="q", after=[last])
        n = done.index(["LIMIT", "dependency chain"])
        assert set(done[:n]) == {"blocked"} and 20 <= n <= 30
        assert all(one == ["LIMIT", "dependency chain"] for one in done[n:])
        assert board.mconsume("w1", firsts[n : n + 10], next="q", after=[last]) == ["blocked"] * 10
    check_consistent(board)


@pytest.mark.parametrize("verb", ["REMOVE", "CLEAR"])
def test_all_of_ten_thousand_are_removed_at_once(board, verb):
    ids = [f"x{n}" for n in range(10_000)]
    board.mpost([""] * len(ids), ids=ids)
    board.post(id="j", after=ids)
    assert board.depend(verb, "j", ids if verb == "REMOVE" else []) == "ready"
    assert board.cancel(*ids[:5]) == ["cancelled"] * 5
    check_consistent(board)


def test_a_replacing_post_keeps_dependencies_unless_named(board):
    pair(board)
    board.post("new", id_="b", replace=True)
    assert board.state("b") == "blocked"
    board.call("POST", "x", "ID", "b", "REPLACE", "AFTER", 0)
    assert board.state("b") == "ready"


def test_a_record_that_is_waited_for_stays(clocked_board, clock):
    board = clocked_board
    pair(board)
    board.set(retain_failed=10)
    end(board, "a", "failed")
    clock.advance(1000)
    assert board.state("a") == "failed"
    assert board.depend("CLEAR", "b") == "ready"
    assert board.get("a") is None


def test_blocked_claimers_wake_when_a_job_goes_on(server, board):
    pair(board)
    token = board.claim_one("w1", lease=LONG)["token"]
    waiter = Waiter(server, "w2")
    board.consume("w1", "a", token=token)
    assert waiter.job() == "b"


def test_all_in_one_transaction(board):
    pair(board)
    with board.client.pipeline(transaction=True) as pipe:
        pipe.execute_command("JOB.CLAIM", "board", "w1", "FIELDS", 1, "id")
        pipe.execute_command("JOB.CONSUME", "board", "w1", "a")
        pipe.execute_command("JOB.CLAIM", "board", "w1", "ID", "b")
        assert len(pipe.execute()) == 3
    assert board.state("b") == "claimed"


def test_twenty_thousand_are_told_in_turns_of_the_timer(server, board):
    board.post(id_="a", queue="first")
    for _ in range(20):
        board.mpost(["x"] * 1000, after=["a"])
    waiter = Waiter(server, "w2")
    token = board.claim_one("w1", queues=["first"], lease=LONG)["token"]
    # In one packet, so that the timer has no turn in between: the command has told 64.
    pipe = board.client.pipeline(transaction=False)
    pipe.execute_command("JOB.CONSUME", "board", "w1", "a", "TOKEN", token)
    pipe.execute_command("JOB.COUNT", "board", "STATE", "blocked")
    assert pipe.execute() == ["complete", 20_000 - 64]
    assert waiter.reply()
    wait_until(lambda: board.count(state="blocked") == 0)
    assert board.get("a") is None
    seqs = [job["seq"] for job in board.claim("w3", count=10_000, fields=["seq"], lease=LONG)]
    assert seqs == sorted(seqs) and len(seqs) == 10_000
    check_consistent(board)


def busy(board):
    lives.busy(board)
    pair(board)
    lives.failed(board, "f")
    board.post(id_="held", after=["f"])
    board.post(id_="deep", after=["b", "held"], onfailure="cancel", delay=LONG)
    board.post_many(500, queue="many", after=["a"])


def test_dependencies_survive_reload_and_dump(fresh_server):
    """On a server of its own: after a reload no lease ends for the recovery grace."""
    board = fresh_server().board()
    busy(board)
    before = board.digest()
    board.client.execute_command("DEBUG", "RELOAD")
    assert board.digest() == before
    board.client.restore("copy", 0, board.client.dump("board"))
    end(board, "a")
    wait_until(lambda: board.count(state="blocked") == 2)
    assert (board.state("b"), board.state("held"), board.state("deep")) == ("ready", "blocked", "blocked")
    check_consistent(board)


@pytest.mark.parametrize("config", [["appendonly yes", "appendfsync always"], []], ids=["aof", "rdb"])
def test_dependencies_survive_a_restart(fresh_server, config):
    server = fresh_server(config=config)
    board = server.board()
    busy(board)
    end(board, "a")
    wait_until(lambda: board.count(state="blocked") == 2)
    board = server.survive()
    board.requeue("f")
    end(board, "f")
    assert board.state("held") == "ready"
    drain(board)


def test_a_replica_follows(fresh_server):
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    board = primary.board()
    busy(board)
    end(board, "a")
    board.depend("ADD", "b", ["held"], onfailure="fail")
    board.requeue("f")
    end(board, "f", "trashed")
    board.post("again", id_="held", replace=True)
    wait_until(lambda: board.count(state="blocked") == 3)
    replica.wait_synced(primary)
    assert replica.board().digest() == board.digest()
    assert not replica.board().info()["broken"]
