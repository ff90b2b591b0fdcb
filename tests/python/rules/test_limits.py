"""Users of jobs, and limits on posting."""

from __future__ import annotations

import lives
import pytest
from expect import refused
from harness import Board
from harness.board import from_pairs

# Users


def test_a_job_has_the_user_that_it_was_posted_for(board):
    board.post(id="a", user="eve")
    board.post(id="b")
    assert board.get("a")["user"] == "eve"
    assert "user" not in board.get("b")
    assert board.claim_one("w1", id="a", fields=["user"]) == {"user": "eve"}


def test_every_job_of_a_batch_has_the_user(board):
    board.mpost(["x", "y"], ids=["a", "b"], user="\u00fc\0\n")
    assert [board.get(id)["user"] for id in "ab"] == ["\u00fc\0\n"] * 2


@pytest.mark.parametrize("mode", ["replace", "xx"])
def test_a_replacing_post_keeps_the_user_unless_it_names_another(board, mode):
    board.post(id="a", user="eve")
    board.post(id="a", **{mode: True})
    assert board.get("a")["user"] == "eve"
    board.post(id="a", user="fay", **{mode: True})
    assert board.get("a")["user"] == "fay"


def test_a_child_has_the_user_of_its_schedule(board):
    board.call("SCHEDULE SET", "s", "x", "EVERY", 3_600_000, "USER", "eve")
    board.call("SCHEDULE SET", "s", "x", "EVERY", 1_800_000)
    assert from_pairs(board.call("SCHEDULE GET", "s"))["user"] == "eve"
    assert board.get(board.call("SCHEDULE RUN", "s"))["user"] == "eve"


@pytest.mark.parametrize("user", ["", "u" * 256])
def test_a_user_has_a_length_that_names_have(board, user):
    with refused("ERR USER must be 1 to 255 bytes long", board):
        board.post(user=user)
    with refused("ERR BY must be 1 to 255 bytes long", board):
        board.cancel("j", by=user)


def test_a_user_cancels_jobs_of_its_own(board):
    board.post(id="a", user="eve")
    lives.claimed(board, "b", user="eve")
    assert board.cancel("a", "nobody", "b", by="eve") == ["cancelled", None, "requested"]
    assert board.cancel("a", "b", by="eve", force=True) == ["already", "cancelled"]


@pytest.mark.parametrize("other", [{"user": "fay"}, {}])
def test_a_selection_with_a_job_of_anothers_is_refused_whole(board: Board, other: dict) -> None:
    board.mpost(["x", "y"], ids=["a", "b"], user="eve")
    board.post(id="c", **other)
    with refused(f"NOTOWNER {other.get('user', '-')} c", board):
        board.cancel("a", "c", "b", by="eve")
    assert board.count(state="ready") == 3


def test_a_selection_by_filter_with_a_job_of_anothers_is_refused_whole(board):
    board.mpost(["x", "y"], ids=["a", "b"], user="eve", queue="q")
    board.post(id="c", user="fay", queue="q")
    with refused("NOTOWNER fay c", board):
        board.call("CANCEL", "WHERE", "QUEUE", "q", "BY", "eve")
    board.delete("c")
    assert board.call("CANCEL", "WHERE", "QUEUE", "q", "BY", "eve") == [2, "0", []]


def test_no_job_is_cancelled_that_was_due_too_late_to_be_asked_about(clocked_board, clock):
    """A command settles a part of what is due: what it checks is what it cancels."""
    clocked_board.post_many(64, user="eve", delay=1000)
    clocked_board.post_many(64, user="fay", delay=1001)
    with clocked_board.client.pipeline(transaction=True) as pipe:
        pipe.execute_command("JOB.CLOCK", "ADVANCE", 2000)
        pipe.execute_command("JOB.CANCEL", clocked_board.key, "WHERE", "STATE", "ready", "BY", "eve")
        _, [count, *_] = pipe.execute()
    assert count == clocked_board.count(user="eve", state="cancelled") > 0
    assert clocked_board.count(user="fay", state="cancelled") == 0


def test_the_user_is_asked_for_before_the_state(board):
    lives.failed(board, "a", user="fay")
    with refused("NOTOWNER fay a", board):
        board.cancel("a", by="eve")
    with refused("ENDED failed a", board):
        board.cancel("a", by="fay")


def test_users_come_back_after_a_restart(server):
    board = server.board()
    board.post(id="a", user="eve")
    before = board.digest()
    board.client.execute_command("DEBUG", "RELOAD")
    server.spoil()
    assert board.digest() == before
    with refused("NOTOWNER eve a", board):
        board.cancel("a", by="fay")


# Live jobs of a user


def export(board: Board, id_: str, most: int = 1, **keywords) -> str:
    return board.post(id=id_, name="export", user="eve", maxlive=most, **keywords)


def test_a_user_has_one_live_job_of_a_name(board):
    export(board, "a")
    with refused("LIMIT maxlive", board):
        export(board, "b")
    board.post(name="import", user="eve", maxlive=1)
    board.post(name="export", user="fay", maxlive=1)
    lives.claim(board, "a")
    with refused("LIMIT maxlive", board):
        export(board, "b")
    board.consume("w1", "a")
    assert export(board, "b") == "b"


def test_a_batch_counts_all_its_jobs(board):
    with refused("LIMIT maxlive"):
        board.mpost(["x"] * 3, user="eve", maxlive=2)
    assert board.info() is None
    board.mpost(["x"] * 2, ids=["a", "b"], user="eve", maxlive=2)
    board.mpost(["y"] * 2, ids=["a", "b"], user="eve", maxlive=2, replace=True)
    with refused("LIMIT maxlive", board):
        board.mpost(["y"] * 3, ids=["a", "b", "c"], user="eve", maxlive=2, replace=True)
    assert board.mpost(["y"] * 2, ids=["a", "b"], user="eve", maxlive=2, nx=True) == [None, None]


def test_a_requeued_job_counts_and_is_not_refused(board):
    lives.failed(board, "a", user="eve", name="export")
    export(board, "b")
    assert board.requeue("a").count == 1
    board.delete("b")
    with refused("LIMIT maxlive", board):
        export(board, "c")


def test_two_clients_never_have_more_than_one(server):
    """The count and the post are one command."""
    import threading

    posted = []

    def post() -> None:
        board = server.board()
        for _ in range(50):
            try:
                posted.append(export(board, None))
            except Exception as error:
                assert "maxlive" in str(error)

    threads = [threading.Thread(target=post) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(posted) == 1 == server.board().count()


def test_maxlive_needs_a_user(board):
    with refused("ERR MAXLIVE needs USER", board):
        board.post(maxlive=1)
    with refused("ERR MAXLIVE needs USER", board):
        board.call("SCHEDULE SET", "s", "x", "EVERY", 1000, "MAXLIVE", 1)


# Jobs and bytes of a board and a queue


def test_a_board_has_no_more_live_jobs_than_its_setting(board):
    board.set(**{"max-jobs": 2})
    board.mpost(["x", "y"], ids=["a", "b"])
    for id_ in (None, "c"):
        with refused("LIMIT max-jobs", board):
            board.post(id=id_)
    lives.claim(board, "a")
    with refused("LIMIT max-jobs", board):
        board.post()
    board.post(id="b", replace=True)
    board.cancel("b")
    board.post(id="c")
    with refused("LIMIT max-jobs b", board):
        board.requeue("b")
    board.consume("w1", "a")
    assert board.requeue("b").count == 1


def test_a_queue_bounds_its_own_total(board):
    board.set(queue="mail", **{"max-jobs": 1})
    board.set(**{"max-jobs": 3})
    board.post(id="a", queue="mail")
    with refused("LIMIT max-jobs", board):
        board.post(queue="mail")
    with refused("LIMIT max-jobs"):
        board.mpost(["x"] * 3)
    board.mpost(["x"] * 2, ids=["b", "c"])
    with refused("LIMIT max-jobs b", board):
        board.update("b", queue="mail")
    settings = from_pairs(board.call("SETTINGS GET", "QUEUE", "other", "max-jobs"))
    assert settings["max-jobs"] == [-1, "default"]


def test_a_group_bounds_its_own_total_and_all_groups_each_of_theirs(board):
    board.set(queue="mail", group="*", **{"max-jobs": 2})
    board.set(queue="mail", group="big", **{"max-jobs": 3})
    board.mpost(["x"] * 3, ids=["a", "b", "c"], queue="mail", group="big")
    with refused("LIMIT max-jobs", board):
        board.post(queue="mail", group="big")
    with refused("LIMIT max-jobs", board):
        board.mpost(["x"] * 3, queue="mail", group="small")
    board.mpost(["x"] * 3, queue="mail")
    board.mpost(["x"] * 3, ids=["d", "e", "f"], group="small")
    assert board.groups()["mail", "big"]["max-jobs"] == 3
    # One node of a flow too many, and one job that another queue has no room for.
    words = "node payload QUEUE mail GROUP small".split()
    with refused("LIMIT max-jobs", board):
        board.call("FLOW", 3, *(word for n in range(3) for word in ("NODE", f"{n}", *words[1:])))
    with refused("LIMIT max-jobs", board):
        board.update("d", "e", "f", queue="mail")
    assert board.where("UPDATE", "GROUP", "small", set_={"queue": "mail"})[0] == 2
    board.call("SCHEDULE SET", "s", "x", "EVERY", 1000, "QUEUE", "mail", "GROUP", "small")
    with refused("LIMIT max-jobs", board):
        board.call("SCHEDULE RUN", "s")
    # Workers are never refused, and what ends makes room.
    token = lives.claim(board, "a")
    board.cancel("b")
    board.post(queue="mail", group="big")
    with refused("LIMIT max-jobs b", board):
        board.requeue("b")
    board.consume("w1", "a", token=token)
    assert board.requeue("b").count == 1
    board.reset(queue="mail", group="*")
    board.post(queue="mail", group="small")


def test_requeues_are_refused_together(board):
    for id_ in "ab":
        lives.failed(board, id_)
    board.set(**{"max-jobs": 1})
    with refused("LIMIT max-jobs", board):
        board.requeue("a", "b")
    assert board.requeue("a").count == 1


def test_a_board_has_no_more_bytes_than_its_setting(board):
    board.post("x" * 1000, id="a", queue="mail")
    assert board.info()["record-bytes"] == board.queues()["mail"]["record-bytes"] == 1066
    board.set(**{"max-bytes": 2132})
    with refused("LIMIT max-bytes", board):
        board.post("x" * 1001, id="b")
    with refused("LIMIT max-bytes", board):
        board.post("x" * 2100, id="a", replace=True)
    board.post("x" * 1000, id="b")
    with refused("LIMIT max-bytes", board):
        board.post("")
    token = lives.claim(board, "a")
    board.heartbeat("w1", "a", token=token, payload="y" * 9000)
    assert board.queues()["mail"]["record-bytes"] > 9000
    board.consume("w1", "a", token=token)
    board.post("x" * 900)


def test_a_schedule_passes_over_times_that_would_exceed_a_limit(clocked_board, clock):
    board = clocked_board
    board.set(**{"max-jobs": 1})
    board.call("SCHEDULE SET", "s", "x", "EVERY", 1000, "BACKLOG", "all")
    clock.advance(1000)
    clock.advance(60_000)
    assert board.count() == 1
    shown = from_pairs(board.call("SCHEDULE GET", "s"))
    assert (shown["fired"], shown["refused"]) == (1, 1)
    with refused("LIMIT max-jobs", board):
        board.call("SCHEDULE RUN", "s")
    board.delete("@s@1")
    clock.advance(1000)
    assert board.state("@s@2") == "ready"


def test_limits_hold_after_a_reload_and_on_a_promoted_replica(fresh_server):
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    board = primary.board()
    board.set(**{"max-jobs": 3})
    export(board, "a")
    board.post(id="b", unique="k")
    board.client.execute_command("DEBUG", "RELOAD")
    replica.wait_synced(primary)
    assert replica.board().digest() == board.digest()
    replica.client().replicaof("NO", "ONE")
    for one in (board, replica.board()):
        with refused("LIMIT maxlive"):
            export(one, "c")
        with refused("EXISTS b"):
            one.post(unique="k")
        one.post(id="c")
        with refused("LIMIT max-jobs"):
            one.post()
