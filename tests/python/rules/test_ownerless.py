"""The setting `ownerless`: `*` speaks for whoever holds a job, or nobody; exactly one caller is the first."""

from __future__ import annotations

import threading

import lives
import pytest
from expect import MS, refused, refused_like
from harness import Board, wait_until
from lives import LONG
from waiters import Waiter

NOT_HERE = "ERR worker must not be '*' on a board that is not ownerless"
WAYS = {
    "scheduled": lives.scheduled,
    "ready": lives.ready,
    "claimed": lives.claimed,
    "abandoned": lives.abandoned,
    "retrying": lives.retrying,
    "blocked": lambda board: board.post(id="j", after=[1, board.post(id="first")]),
}


def ownerless(board: Board) -> Board:
    board.set(ownerless="yes")
    return board


def test_the_setting_is_off_and_takes_yes_and_no(board):
    assert board.settings("ownerless") == {"ownerless": [0, "default"]}
    for word, value in [("yes", 1), ("no", 0), ("YES", 1), (0, 0), (1, 1)]:
        board.set(ownerless=word)
        assert board.settings("ownerless") == {"ownerless": [value, "board"]}
    with refused("ERR ownerless must be an integer from 0 to 1", board):
        board.set(ownerless="maybe")
    with refused("ERR 'ownerless' is a setting of the whole board", board):
        board.set(queue="mail", ownerless=1)
    with refused(f"ERR lease must be an integer from 1 to 1099511627776{MS}", board):
        board.set(lease="yes")


def test_star_is_refused_where_jobs_have_owners(board):
    lives.claimed(board)
    calls = [
        lambda: board.heartbeat("*", "j"),
        lambda: board.mheartbeat("*", ["j"]),
        lambda: board.consume("*", "j"),
        lambda: board.mconsume("*", ["j"]),
        lambda: board.fail("*", "j"),
        lambda: board.abandon("*", "j"),
        lambda: board.mabandon("*", ["j"]),
        lambda: board.trash("*", "j"),
    ]
    for call in calls:
        with refused(NOT_HERE, board):
            call()
    for words in [["MHEARTBEAT"], ["MCONSUME"], ["MFAIL", "k", "m"], ["MABANDON"], ["MTRASH"]]:
        with refused("ERR worker must not be '*' with ALL", board):
            board.call(words[0], "*", *words[1:], "ALL")


def test_star_does_not_claim_and_holds_nothing(board):
    ownerless(board)
    lives.claimed(board)
    for options in [{}, {"id": "j"}]:
        with refused("ERR worker must not be '*'", board):
            board.claim("*", **options)
    with refused("ERR worker must not be '*' with ALL", board):
        board.mconsume("*", "ALL")


@pytest.mark.parametrize("retain", [0, LONG])
@pytest.mark.parametrize("way", WAYS)
def test_the_first_to_complete_a_job_is_told_so_and_all_others_that_it_has_ended(board, way, retain):
    ownerless(board)
    token = WAYS[way](board)
    token = token if isinstance(token, int) else None
    assert board.consume("*", "j", retain=retain) == "complete"
    again = [{"worker": "*"}, {"worker": "w1"}, {"worker": "w2"}]
    if token:
        again += [{"worker": "w1", "token": token}, {"worker": "*", "token": token}]
    for who in again:
        with refused("ENDED complete", board):
            board.consume(id="j", **who)
    assert board.mconsume("*", ["j"]) == [["ENDED", "complete"]]


def test_of_many_callers_at_once_one_is_the_first(server):
    board = ownerless(server.board())
    board.post(id="j")
    answers: list = []

    def finish() -> None:
        with server.connect() as client:
            try:
                answers.append(Board(client).consume("*", "j"))
            except Exception as error:
                answers.append(str(error))

    threads = [threading.Thread(target=finish) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers.count("complete") == 1 and len(answers) == 8


def test_a_resent_consume_is_answered_as_before_only_with_the_token_of_the_claim(board):
    ownerless(board)
    token = lives.claimed(board)
    assert board.consume("*", "j", token=token) == "complete"
    assert board.consume("*", "j", token=token) == "complete"
    assert board.consume("w1", "j", token=token) == "complete"
    with refused("ENDED complete", board):
        board.consume("*", "j")
    board.post(id="k")
    assert board.consume("*", "k", token=0) == "complete"
    with refused("ENDED complete", board):
        board.consume("*", "k", token=0)


def test_a_lapsed_job_is_completed_by_the_other(clocked_board, clock):
    board = ownerless(clocked_board)
    token = lives.lapsed(board)
    assert board.consume("*", "j") == "complete"
    with refused("ENDED complete", board):
        board.consume("w1", "j", token=token)
    clock.advance(60_000)
    with refused("NOJOB no such job"):
        board.consume("w1", "j", token=token)


def test_the_holder_is_told_by_his_next_heartbeat(board):
    ownerless(board)
    token = lives.claimed(board)
    board.fail("*", "j", retry=0)
    with refused("NOTCLAIMED ready", board):
        board.heartbeat("w1", "j", token=token)
    lives.claim(board, worker="w2")
    with refused("NOTOWNER w2", board):
        board.heartbeat("w1", "j", token=token)
    board.consume("*", "j")
    with refused("ENDED complete", board):
        board.heartbeat("w2", "j")


def test_a_token_is_checked_while_the_job_is_claimed(board):
    ownerless(board)
    old = lives.abandoned(board)
    token = lives.claim(board, worker="w2")
    with refused_like("STALE .+", board):
        board.consume("*", "j", token=old)
    assert board.heartbeat("*", "j", token=token)["cancel"] == 0
    assert board.abandon("*", "j", token=token) == "OK"
    assert board.consume("*", "j", token=old) == "complete"


def test_anybody_may_give_back_and_put_aside_what_is_held(board):
    ownerless(board)
    lives.claimed(board)
    assert board.mabandon("*", ["j", "x"]) == ["OK", ["NOJOB", "no such job"]]
    with refused("NOTCLAIMED ready", board):
        board.abandon("*", "j")
    with refused("NOTCLAIMED ready", board):
        board.heartbeat("*", "j")
    assert board.trash("*", "j", reason="rubbish") == "OK"
    assert board.events("j")[-1] == "trashed"


def test_what_was_handed_to_a_waiter_and_done_by_another_in_one_transaction_is_not_told_to_it(server):
    board = ownerless(server.board())
    waiter = Waiter(server)
    with board.client.pipeline() as pipe:
        pipe.execute_command("JOB.POST", "board", "x", "ID", "j")
        pipe.execute_command("JOB.CONSUME", "board", "*", "j")
        assert pipe.execute()[1] == "complete"
    assert waiter.still_waits()
    board.post(id="k")
    assert waiter.job() == "k"


def test_ownerless_ends_travel_to_a_replica_and_outlive_a_restart(fresh_server):
    primary = fresh_server(appendonly=True)
    replica = fresh_server(replicaof=primary)
    board = ownerless(primary.board())
    board.set(tombstone_ttl=LONG)
    for id, retain in [("gone", 0), ("kept", LONG)]:
        lives.claimed(board, id)
        board.consume("*", id, retain=retain)
    board.fail("*", board.post(id="failed"), noretry=True)
    replica.wait_synced(primary)
    assert replica.board().digest() == board.digest()
    primary.restart()
    board = primary.board()
    wait_until(lambda: board.client.ping())
    for id in ["gone", "kept"]:
        with refused("ENDED complete", board):
            board.consume("*", id)
