"""PARENT and SHARE: whose part a job is, how far a parent is, and which records stay."""

from __future__ import annotations

import lives
import pytest
from expect import check_consistent, refused
from harness import wait_until
from harness.board import record, records, text
from lives import LONG


def trio(board):
    """`p` with the children `a`, of weight 1, and `b`, of weight 3."""
    board.post(id_="p", queue="parents")
    board.post(id_="a", parent="p")
    board.post(id_="b", parent="p", share=3)


def work(board, id, progress):
    if board.state(id) != "claimed":
        board.claim_one("w1", id_=id, lease=LONG)
    board.heartbeat("w1", id, progress=progress)


def finish(board, id, **keywords):
    if board.state(id) != "claimed":
        board.claim_one("w1", id_=id, lease=LONG)
    board.consume("w1", id, **keywords)


def progress(board, id="p"):
    return float(board.get(id)["progress"])


def children(board, id="p", **keywords):
    parent, cursor, found = board.call("GET", id, "CHILDREN", **keywords)
    return record(parent), text(cursor), records(found)


def test_a_parent_is_as_far_as_the_weighted_mean_of_its_children(board):
    trio(board)
    assert (board.get("p")["children"], progress(board)) == (2, 0)
    assert {name: board.get("b")[name] for name in ("parent", "share")} == {"parent": "p", "share": 3}
    work(board, "a", 50)
    work(board, "b", 10)
    assert progress(board) == 20
    finish(board, "b")
    assert (board.get("b"), progress(board)) == (None, 87.5)
    finish(board, "a")
    assert (progress(board), board.state("p"), board.get("p")["children"]) == (100, "ready", 2)
    check_consistent(board)


def test_progress_goes_up_through_the_generations(board):
    board.post(id_="0")
    for n in range(1, 33):
        board.post(id_=n, parent=n - 1)
    work(board, "32", 40)
    assert (progress(board, "0"), progress(board, "31")) == (40, 40)
    with refused("LIMIT generations 32", board):
        board.post(parent="32")
    check_consistent(board)


def test_many_posts_share_a_parent(board):
    board.post(id_="p", queue="parents")
    assert len(board.mpost(range(100), parent="p", share=7, retain=-1)) == 100
    board.claim("w1", count=25, lease=LONG)
    board.call("MCONSUME", "w1", "ALL", retain=-1)
    assert (board.get("p")["children"], progress(board)) == (100, 25)
    check_consistent(board)


def test_a_parent_collects_the_results_of_its_children(board):
    trio(board)
    board.post(id_="c", parent="p")
    finish(board, "a", result="one", retain=1)
    finish(board, "b")
    board.claim_one("w1", id_="c")
    board.fail("w1", "c", kind="io", message="gone", noretry=True)
    board.client.execute_command("PING")
    parent, cursor, found = children(board, fields=["id", "state", "result", "kind"])
    assert (parent["state"], cursor) == ("ready", "0")
    assert [(job["id"], job["state"]) for job in found] == [("a", "complete"), ("c", "failed")]
    assert (text(found[0]["result"]), text(found[1]["kind"])) == ("one", "io")
    finish(board, "p")
    wait_until(lambda: board.get("a") is None)
    assert "parent" not in board.get("c")
    check_consistent(board)


def test_children_are_paged_in_the_order_of_their_posts(board):
    board.post(id_="p")
    made = board.mpost(range(250), parent="p")
    seen, cursor = [], "0"
    while True:
        _, cursor, page = children(board, cursor=cursor, count=99)
        seen += [job["id"] for job in page]
        if cursor == "0":
            break
    assert seen == made
    assert len(children(board)[2]) == 100
    assert board.call("GET", "nobody", "CHILDREN") is None


def test_a_parent_must_be_posted_first_and_live(board):
    with refused("NOJOB no such job p", board):
        board.post(id_="a", parent="p")
    lives.failed(board, "p")
    for call in (lambda: board.post(id_="a", parent="p"), lambda: board.mpost(["1", "2"], parent="p")):
        with refused("ENDED failed p", board):
            call()
    with refused("ENDED failed p", board):
        board.call("SCHEDULE SET", "s", "tick", "EVERY", "1000", "PARENT", "p")
    board.requeue("p")
    board.post(id_="a", parent="p")
    with refused("CYCLE a job would be its own ancestor a", board):
        board.post(id_="p", parent="a", replace=True)
    check_consistent(board)


def test_words_that_do_not_fit_are_named(board):
    board.post(id_="p")
    for words, error in [
        (["SHARE", "2"], "SHARE needs PARENT"),
        (["PARENT", "p", "SHARE", "0"], "SHARE must be an integer from 1 to 1000000"),
        (["PARENT", ""], "PARENT must be 1 to 255 bytes long"),
        (["PARENT", "p", "PARENT", "p"], "PARENT is given twice"),
    ]:
        with refused(f"ERR {error}", board):
            board.call("POST", "x", *words)
    with refused("ERR SHARE needs PARENT", board):
        board.call("SCHEDULE SET", "s", "x", "EVERY", "1000", "SHARE", "2")
    with refused("ERR syntax error near 'COUNT'", board):
        board.call("GET", "p", "COUNT", "1")


def test_a_replacing_post_keeps_the_parent_or_moves_the_job(board):
    trio(board)
    board.post(id_="q")
    board.post("again", id_="b", replace=True)
    assert (board.get("b")["parent"], board.get("b")["share"]) == ("p", 3)
    board.post("again", id_="b", replace=True, parent="q")
    assert (board.get("b")["parent"], board.get("b")["share"]) == ("q", 3)
    assert (board.get("p")["children"], board.get("q")["children"]) == (1, 1)
    work(board, "a", 50)
    assert (progress(board), progress(board, "q")) == (50, 0)
    check_consistent(board)


def test_progress_goes_back_by_an_operator_alone(board):
    trio(board)
    work(board, "a", 80)
    work(board, "a", 10)
    assert progress(board) == 20
    board.update("a", progress=40)
    assert (progress(board, "a"), progress(board)) == (40, 10)
    board.claim_one("w2", id_="p", lease=LONG)
    board.heartbeat("w2", "p", progress=99)
    assert progress(board) == 10
    check_consistent(board)


def test_the_record_of_a_parent_stays_while_a_child_lives(board):
    trio(board)
    finish(board, "p")
    with refused("DEPENDED a p"):
        board.delete("p")
    finish(board, "a")
    assert board.state("p") == "complete"
    assert board.delete("b", "p").count == 2
    assert board.count() == 0
    check_consistent(board)


def test_a_deletion_takes_what_one_of_them_kept(board):
    """The last that keeps a record goes before it in the same command."""
    board.post(id_="child slot")
    board.post(id_="p", retain=0)
    board.delete("child slot")
    board.post(id_="a", parent="p")
    finish(board, "p")
    assert board.delete("a", "p").count == 2
    assert (board.get("p"), board.get("a")) == (None, None)
    assert board.post(id_="p") == "p"
    check_consistent(board)


def test_jobs_of_a_schedule_have_its_parent(board):
    board.post(id_="p")
    board.call("SCHEDULE SET", "s", "tick", "EVERY", str(1 << 40), "PARENT", "p", "SHARE", "9")
    board.call("SCHEDULE RUN", "s")
    assert (board.get("@s@1")["parent"], board.get("@s@1")["share"]) == ("p", 9)
    schedule = record(board.call("SCHEDULE GET", "s"))
    assert (schedule["parent"], schedule["share"]) == ("p", 9)
    finish(board, "p")
    board.call("SCHEDULE RUN", "s")
    assert "parent" not in board.get("@s@2")
    check_consistent(board)


def busy(board):
    lives.busy(board)
    trio(board)
    board.post(id_="deep", parent="a", share=5)
    board.post_many(500, queue="many", parent="b")
    work(board, "deep", 33)
    board.post(id_="ending")
    board.post_many(500, queue="kept", parent="ending")
    board.claim("w7", queues=["kept"], count=500, lease=LONG)
    board.call("MCONSUME", "w7", "ALL", result="r", retain=1)
    lives.failed(board, "f")


def test_families_survive_reload_and_dump(fresh_server):
    board = fresh_server().board()
    busy(board)
    before = board.digest()
    board.client.execute_command("DEBUG", "RELOAD")
    assert board.digest() == before
    board.client.restore("copy", 0, board.client.dump("board"))
    board.client.copy("board", "again")
    finish(board, "deep")
    assert progress(board) == 25
    finish(board, "ending")
    assert board.get("ending") is None
    wait_until(lambda: board.count(queue="kept", state="complete") == 0)
    check_consistent(board)


@pytest.mark.parametrize("config", [["appendonly yes", "appendfsync always"], []], ids=["aof", "rdb"])
def test_families_survive_a_restart(fresh_server, config):
    server = fresh_server(config=config)
    board = server.board()
    busy(board)
    assert board.count(queue="kept") == 500
    finish(board, "ending")
    wait_until(lambda: board.count(queue="kept", state="complete") == 0)
    board = server.survive()
    finish(board, "deep")
    assert progress(board) == 25


def test_a_replica_follows(fresh_server):
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    board = primary.board()
    busy(board)
    board.post("again", id_="a", replace=True, parent="b")
    finish(board, "deep")
    finish(board, "ending")
    board.update("a", progress=1)
    board.delete("a", "deep")
    replica.wait_synced(primary)
    assert replica.board().digest() == board.digest()
    assert not replica.board().info()["broken"]
