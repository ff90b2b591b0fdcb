"""JOB.LIST with SINCE: what has changed and gone since a revision of the board."""

from __future__ import annotations

import random

import lives
import pytest
from expect import refused
from harness import Board
from lives import LONG


def revision(board: Board) -> int:
    info = board.info()
    return info["revision"] if info else 0


def since(board: Board, version: int, *words) -> tuple:
    """Ids that changed, ids that have gone (None: not known), and the revision."""
    cursor, changed, gone, now = board.call("LIST", "SINCE", version, "JUSTID", "COUNT", 1000, *words)
    assert cursor == "0"
    return changed, gone, now


class Copy:
    """Keeps the records of a board in step by asking what has changed."""

    def __init__(self) -> None:
        self.version = 0
        self.records: dict = {}
        self.anew = 0

    def step(self, board: Board, count: int = 3) -> None:
        cursor, found, gone, now = board.call("LIST", "SINCE", self.version, "COUNT", count)
        if gone is None:
            self.records.clear()
            self.anew += 1
            cursor, found, _, now = board.call("LIST", "SINCE", 0, "COUNT", count)
        asked = self.version if gone is not None else 0
        self.version = now
        self.records.update({record["id"]: record for record in found})
        while cursor != "0":
            cursor, found, none, _ = board.call("LIST", "SINCE", asked, "COUNT", count, "CURSOR", cursor)
            assert none == []
            self.records.update({record["id"]: record for record in found})
        for id in gone or []:
            self.records.pop(id, None)


def test_what_changed_and_what_went_is_told(board):
    for id in "abcd":
        lives.ready(board, id)
    then = revision(board)
    assert since(board, then) == ([], [], then)
    board.update("b", priority=2)
    lives.claim(board, "c")
    board.consume("w1", "c")
    board.delete("d")
    assert since(board, then) == (["b"], ["c", "d"], then + 4)
    assert since(board, 0)[0] == ["b", "a"]


def test_other_filters_hold_as_well(board):
    for id in "abc":
        lives.ready(board, id, queue=id)
    then = revision(board)
    for id in "ab":
        board.update(id, priority=1)
    assert since(board, then, "QUEUE", "a", "QUEUE", "c")[0] == ["a"]
    assert since(board, then, "STATE", "claimed")[0] == []
    assert board.count(since=then) == 2
    assert board.count(not_since=then) == 1
    # Without what has changed nothing is said of what has gone.
    assert board.call("LIST", "NOT", "SINCE", then, "JUSTID") == ["0", ["c"]]


def test_labels_keep_their_order_and_their_cursors(board):
    for id in "abcd":
        board.call("POST", "x", "ID", id, "TAGS", 1, "odd" if id in "ac" else "even")
    then = since(board, 0)[2]
    for id in "cba":
        board.call("UPDATE", 1, id, "SET", "PRIORITY", 1)
    assert since(board, then, "TAG", "odd")[0] == ["a", "c"]
    cursor, first, gone, now = board.call("LIST", "SINCE", then, "TAG", "odd", "COUNT", 1, "REV", "JUSTID")
    assert (first, gone, now) == (["c"], [], then + 3)
    rest = board.call("LIST", "SINCE", then, "TAG", "odd", "COUNT", 1, "REV", "JUSTID", "CURSOR", cursor)
    assert rest == ["0", ["a"], [], then + 3]
    assert board.call("COUNT", "SINCE", then, "TAG", "odd", "TAG", "even") == 3


def test_what_operators_select_may_have_changed_since(board):
    for id in "ab":
        lives.ready(board, id)
    then = revision(board)
    board.update("a", priority=1)
    assert board.call("CANCEL", "WHERE", "SINCE", then)[0] == 1
    assert board.state("b") == "ready"


def test_both_protocols_tell_the_same(server, protocol):
    board = server.board(protocol=protocol)
    lives.ready(board)
    board.client.execute_command("JOB.SETTINGS", "SET", "board", "tombstones", 0)
    lives.ready(board, "k")
    board.delete("k")
    assert board.call("LIST", "SINCE", 0, "JUSTID") == ["0", ["j"], None, 4]
    assert board.call("LIST", "SINCE", 4, "JUSTID") == ["0", [], [], 4]


def test_a_deleted_id_may_be_posted_again_at_once(board):
    lives.ready(board)
    then = revision(board)
    board.delete("j")
    assert since(board, then)[1] == ["j"]
    lives.ready(board)
    assert since(board, then)[:2] == (["j"], [])


def test_a_board_says_when_it_no_longer_knows(board):
    board.client.execute_command("JOB.SETTINGS", "SET", "board", "tombstones", 10)
    board.mpost(["x"] * 20, ids=[f"j{n}" for n in range(20)])
    then = revision(board)
    board.delete(*[f"j{n}" for n in range(20)])
    assert since(board, then)[1] is None
    assert since(board, then + 10)[1] == [f"j{n}" for n in range(10, 20)]
    assert since(board, then + 21)[1] is None


def test_a_board_made_anew_has_not_reached_the_old_revision(board):
    board.post_many(5)
    then = revision(board)
    board.client.delete("board")
    lives.ready(board)
    assert since(board, then)[1] is None


def test_retention_is_told_too(clocked, clock):
    board = clocked.board()
    lives.ready(board)
    then = revision(board)
    lives.claim(board)
    board.consume("w1", "j", retain=100_000)
    clock.advance(100_000)
    assert since(board, then)[:2] == ([], ["j"])


def test_an_absent_board_has_no_changes(server):
    board = server.board("absent")
    assert since(board, 0) == ([], [], 0)
    assert since(board, 1)[1] is None


@pytest.mark.parametrize("count", [1, 7, 1000])
def test_a_copy_stays_in_step(board, count):
    chance = random.Random(count)
    copy = Copy()
    board.set(lease=LONG)
    for _ in range(60):
        for _ in range(chance.randrange(8)):
            ids = [record["id"] for record in board.list_all(fields=["id"])] or ["none"]
            act = chance.choice(["post", "post", "claim", "consume", "cancel", "delete", "requeue", "update"])
            id = chance.choice(ids)
            state = board.state(id)
            if act == "post":
                board.post()
            elif act == "claim":
                board.claim("w1")
            elif act == "consume" and state == "claimed":
                board.consume("w1", id, retain=chance.choice([0, LONG]))
            elif act == "cancel" and state == "ready":
                board.cancel(id)
            elif act == "delete" and state:
                board.delete(id)
            elif act == "requeue" and state == "cancelled":
                board.requeue(id)
            elif act == "update" and state in ("ready", "claimed"):
                board.update(id, priority=chance.randrange(9))
        copy.step(board, count)
        assert copy.records == {record["id"]: record for record in board.list_all()}
    assert copy.anew == 0


def test_more_changes_than_are_remembered_are_found(board):
    ids = board.post_many(3)
    then = since(board, 0)[2]
    board.update(ids[0], priority=1)
    for start in range(0, 17_000, 1000):
        more = [f"n{n}" for n in range(start, start + 1000)]
        board.mpost(["x"] * 1000, ids=more)
        board.delete(*more)
    assert since(board, then)[0] == [ids[0]]


def test_it_survives_a_restart_and_travels_to_replicas(fresh_server):
    primary = fresh_server(appendonly=True)
    replica = fresh_server(replicaof=primary)
    board = primary.board()
    board.set(tombstone_ttl=LONG)
    for id in "abc":
        lives.ready(board, id)
    then = revision(board)
    lives.claim(board, "a")
    board.consume("w1", "a")
    board.delete("b")
    told = ([], ["a", "b"], then + 3)
    replica.wait_synced(primary)
    assert since(replica.board(), then) == since(board, then) == told
    assert replica.board().digest() == board.digest()
    primary.client().execute_command("DEBUG", "RELOAD")
    assert since(primary.board(), then) == told
    primary.restart()
    assert since(primary.board(), then) == told


def test_a_question_changes_nothing(board):
    lives.ready(board)
    before = board.digest()
    since(board, 0)
    assert board.digest() == before


@pytest.mark.parametrize("value", ["-1", "x", str(2**48), ""])
def test_what_is_no_revision_is_refused(board, value):
    lives.ready(board)
    with refused("ERR SINCE must be an integer from 0 to 281474976710655", board):
        board.call("LIST", "SINCE", value)


def test_a_board_that_is_made_again_is_another_one(clocked_board, clock):
    board = clocked_board
    board.post("x", id="a")
    created = board.info()["created"]
    clock.advance(5)
    board.post("x", id="b")
    assert board.info()["created"] == created == clock.now() - 5
    dump = board.client.execute_command("DUMP", "board", NEVER_DECODE=True)
    board.client.delete("board")
    board.post("x", id="a")
    assert board.info()["created"] == created + 5
    board.client.restore("board", 0, dump, replace=True)
    assert board.info()["created"] == created
