"""What users of Baserow's jobs rely on: long jobs of a user, with progress, limits and a state to show.

A job type is the name, the job's user USER, `max_count` MAXLIVE, the human-readable state the stage.
Children of a progress builder are jobs with PARENT and SHARE. `pending`, `started`, `finished` are ready,
claimed, complete.
"""

from __future__ import annotations

import json
import threading

import lives
import pytest
from expect import refused, refused_like
from harness import Board
from lives import LONG

HOUR = 3_600_000


@pytest.fixture
def board(clocked_board) -> Board:
    clocked_board.set(retries=0, retain_complete=HOUR, lease=HOUR)
    return clocked_board


def start(board: Board, id: str = "j", user: str = "ann", name: str = "export", **options):
    return board.post(json.dumps({"user": user}), id=id, user=user, name=name, **options)


def run(board: Board, id: str = "j") -> int:
    return lives.claim(board, id)


# Starting


def test_a_new_job_is_pending_with_no_progress(board):
    start(board)
    job = board.get("j")
    assert (job["state"], job["name"], job["user"]) == ("ready", "export", "ann")
    assert "progress" not in job and "stage" not in job


def test_a_job_may_be_run_by_its_own_process_at_once(board):
    start(board, queue="sync")
    assert board.claim_one("me", id="j")["id"] == "j"


def test_one_live_job_of_a_type_for_a_user(board):
    start(board, "a", maxlive=1)
    with refused("LIMIT maxlive", board):
        start(board, "b", maxlive=1)


@pytest.mark.parametrize("state", ["scheduled", "claimed"])
def test_the_limit_counts_jobs_in_every_live_state(board, state):
    start(board, "a", delay=LONG if state == "scheduled" else None)
    if state == "claimed":
        run(board, "a")
    with refused("LIMIT maxlive", board):
        start(board, "b", maxlive=1)


def test_the_limit_is_for_each_user_and_each_type(board):
    start(board, "a", maxlive=1)
    start(board, "b", user="bob", maxlive=1)
    start(board, "c", name="import", maxlive=1)
    assert board.count() == 3


@pytest.mark.parametrize("end", ["consume", "fail", "cancel"])
def test_the_next_may_come_when_the_last_has_ended(board, end):
    start(board, "a", maxlive=1)
    if end == "cancel":
        board.cancel("a")
    else:
        run(board, "a")
        getattr(board, end)("w1", "a")
    start(board, "b", maxlive=1)


def test_a_higher_limit_lets_that_many_live(board):
    for n in range(3):
        start(board, f"j{n}", maxlive=3)
    with refused("LIMIT maxlive", board):
        start(board, "j3", maxlive=3)


def test_a_hundred_posts_at_once_and_one_is_let_in(server):
    answers: list = []

    def post(n: int) -> None:
        board = server.board()
        for m in range(10):
            try:
                answers.append(start(board, f"{n}-{m}", maxlive=1))
            except Exception:
                answers.append(None)

    threads = [threading.Thread(target=post, args=(n,)) for n in range(10)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(answers) == 100 and len([id for id in answers if id]) == 1


# Progress and state


def test_progress_and_a_readable_state_are_seen_while_it_runs(board):
    start(board)
    token = run(board)
    board.heartbeat("w1", "j", token=token, progress=25, stage="importing rows")
    job = board.get("j")
    assert (job["progress"], job["stage"], job["state"]) == (25.0, "importing rows", "claimed")


def test_progress_does_not_go_back(board):
    start(board)
    token = run(board)
    for told, seen in ((50, 50.0), (20, 50.0), (51, 51.0)):
        board.heartbeat("w1", "j", token=token, progress=told)
        assert board.get("j")["progress"] == seen


@pytest.mark.parametrize("progress", [-1, 100.5, "half"])
def test_progress_outside_0_and_100_is_refused(board, progress):
    start(board)
    run(board)
    with refused_like("ERR PROGRESS must be .*", board):
        board.heartbeat("w1", "j", progress=progress)


def test_progress_of_children_makes_that_of_the_parent(board):
    start(board, "whole")
    start(board, "first", parent="whole", share=1)
    start(board, "second", parent="whole", share=3)
    token = run(board, "second")
    board.heartbeat("w1", "second", token=token, progress=50)
    assert board.get("whole")["progress"] == 37.5
    board.consume("w1", "second", token=token)
    assert board.get("whole")["progress"] == 75.0


def test_progress_reaches_the_parent_through_any_depth(board):
    start(board, "a")
    start(board, "b", parent="a")
    start(board, "c", parent="b")
    start(board, "d", parent="c", share=2)
    board.heartbeat("w1", "d", token=run(board, "d"), progress=40)
    assert [board.get(id)["progress"] for id in "cba"] == [40.0] * 3


def test_a_finished_job_tells_when_and_with_what(board, clock):
    start(board)
    token = run(board)
    clock.advance(500)
    board.consume("w1", "j", token=token, result='{"file": "x.csv"}')
    job = board.get("j")
    assert (job["state"], job["ended"], job["result"]) == ("complete", clock.now(), '{"file": "x.csv"}')


# Errors


def test_a_failed_job_keeps_the_error_for_people_and_its_class(board):
    start(board)
    board.fail("w1", "j", "ValueError", "The file is not a table.", token=run(board))
    job = board.get("j")
    assert (job["state"], job["kind"], job["message"]) == ("failed", "ValueError", "The file is not a table.")


def test_a_job_that_runs_too_long_fails_by_itself(board, clock):
    start(board, timeout=60_000)
    token = run(board)
    clock.advance(60_000)
    job = board.get("j")
    assert (job["state"], job["kind"]) == ("failed", "timeout")
    with refused("ENDED failed", board):
        board.consume("w1", "j", token=token)


def test_the_job_of_a_killed_worker_is_not_pending_for_ever(board, clock):
    start(board, lapses=0, lease=1000)
    board.claim_one("killed")
    clock.advance(1000)
    assert board.get("j")["kind"] == "lapsed"


# Cancelling


def test_a_pending_job_is_cancelled_at_once_and_never_runs(board):
    start(board)
    assert board.cancel("j") == ["cancelled"]
    assert board.claim("w1") == [] and board.state("j") == "cancelled"


def test_a_running_job_is_asked_to_stop_and_stops(board):
    start(board)
    token = run(board)
    assert board.cancel("j") == ["requested"]
    assert board.heartbeat("w1", "j", token=token)["cancel"] == 1
    board.abandon("w1", "j", token=token)
    assert board.state("j") == "cancelled"


def test_a_cancelled_job_does_not_finish_all_the_same(board):
    start(board)
    token = run(board)
    board.cancel("j")
    with refused("CANCELLED cancel was requested", board):
        board.consume("w1", "j", token=token)
    assert board.state("j") == "claimed"


def test_a_finished_job_cannot_be_cancelled(board):
    start(board)
    board.consume("w1", "j", token=run(board))
    with refused("ENDED complete j", board):
        board.cancel("j")


def test_cancelling_twice_is_no_error(board):
    start(board)
    assert [board.cancel("j"), board.cancel("j")] == [["cancelled"], ["already"]]


def test_only_its_user_cancels_a_job(board):
    start(board)
    with refused_like("NOTOWNER .*", board):
        board.cancel("j", by="bob")
    assert board.cancel("j", by="ann") == ["cancelled"]


def test_a_worker_that_does_not_react_is_cut_off(board, clock):
    board.set(cancel_grace=5000)
    start(board)
    token = run(board)
    board.cancel("j")
    clock.advance(5000)
    assert board.state("j") == "cancelled"
    with refused("CANCELLED the job was cancelled", board):
        board.consume("w1", "j", token=token)


# Listing and cleaning up


def test_the_jobs_of_a_user_newest_first(board):
    for n in range(4):
        start(board, f"j{n}", user="ann" if n % 2 else "bob")
    assert board.list(user="ann", justid=True, rev=True)[1] == ["j3", "j1"]


def test_the_jobs_of_a_user_by_state_and_type(board):
    start(board, "a")
    start(board, "b", name="import")
    start(board, "c")
    run(board, "c")
    assert board.list(user="ann", name="export", state=["ready", "claimed"], justid=True)[1] == ["a", "c"]
    assert board.count(user="ann", state="claimed") == 1


def test_several_jobs_by_their_ids_with_gaps(board):
    start(board)
    assert [job and job["id"] for job in board.mget(["j", "unknown"])] == ["j", None]


def test_finished_jobs_go_after_their_time_by_themselves(board, clock):
    start(board)
    board.consume("w1", "j", token=run(board))
    clock.advance(HOUR - 1)
    assert board.state("j") == "complete"
    clock.advance(1)
    assert board.get("j") is None


def test_files_of_removed_jobs_can_be_cleaned_up(board):
    for n in range(3):
        start(board, f"j{n}", meta={"file": f"{n}.csv"})
        board.consume("w1", f"j{n}", token=run(board, f"j{n}"))
    reply = board.call("DELETE", "WHERE", "STATE", "complete", "RETURN")
    removed = str(reply)
    assert reply[0] == 3 and all(f"{n}.csv" in removed for n in range(3))
    assert board.info()["jobs"] == 0
