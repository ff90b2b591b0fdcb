"""Dead queues: where jobs go in place of failing for good, and how they come back."""

from __future__ import annotations

import pytest
from expect import refused
from harness import EPOCH, from_pairs


@pytest.fixture
def mails(clocked_board):
    """A board whose queue `mails` has the dead queue `unsent`, with a job `a` that has one try."""
    clocked_board.set(queue="mails", dead_queue="unsent")
    clocked_board.post("to ann", id="a", queue="mails", retries=0)
    return clocked_board


def dies(board, id="a"):
    board.claim(id=id)
    return board.fail("w1", id, "Refused", "no such mailbox")


def place(board, id="a"):
    job = board.get(id)
    return job["state"], job["queue"]


def test_a_job_that_fails_for_good_is_ready_in_the_dead_queue(mails):
    assert dies(mails) == {"state": "ready", "left": 0, "dead": "unsent"}
    job = mails.get("a")
    assert (job["state"], job["queue"], job["attempt"]) == ("ready", "unsent", 0)
    assert (job["kind"], job["message"], job["payload"]) == ("Refused", "no such mailbox", "to ann")
    assert from_pairs(job["origin"]) == {"queue": "mails", "attempts": 1, "at": EPOCH}
    assert [entry["event"] for entry in mails.history("a")][-2:] == ["failed", "dead"]
    assert mails.count(state="failed") == 0


def test_queues_to_which_jobs_go_back_are_counted_together(board):
    """All of them, or by filter those for which there is room."""
    for queue in ["q1", "q2"]:
        board.set(queue=queue, dead_queue="unsent")
        board.post(id=queue, queue=queue, retries=0)
        board.claim(id=queue)
        board.fail("w1", queue, "Refused", "m")
    for queue in ["q1", "q2"]:
        board.reset("dead-queue", queue=queue)
    board.set(max_queues=2)
    with refused("LIMIT max-queues", board):
        board.call("REQUEUE", 2, "q1", "q2", "ORIGIN")
    assert board.call("REQUEUE", "WHERE", "QUEUE", "unsent", "ORIGIN") == [1, "0", ["q2"]]
    assert (place(board, "q1"), place(board, "q2")) == (("ready", "q1"), ("ready", "unsent"))


def test_it_goes_back_by_id_and_by_filter(mails, clock):
    dies(mails)
    assert mails.call("REQUEUE", 1, "a", "ORIGIN") == [1, "0", []]
    assert place(mails) == ("ready", "mails")
    assert "origin" not in mails.get("a")
    dies(mails)
    where = ("WHERE", "QUEUE", "unsent", "MESSAGE", "mailbox", "ORIGIN")
    assert mails.call("REQUEUE", *where, "DRYRUN") == [1, "0", []]
    assert place(mails) == ("ready", "unsent")
    assert mails.call("REQUEUE", *where) == [1, "0", []]
    assert place(mails) == ("ready", "mails")


def test_one_that_waits_for_another_goes_back_by_filter_and_waits_on(mails):
    mails.post("", id="other")
    dies(mails)
    mails.client.execute_command("JOB.DEPEND", "ADD", mails.key, "a", 1, "other")
    assert place(mails) == ("blocked", "unsent")
    where = ("WHERE", "QUEUE", "unsent", "STATE", "blocked", "ORIGIN")
    assert mails.call("REQUEUE", *where, "DRYRUN") == [1, "0", []]
    assert mails.call("REQUEUE", *where) == [1, "0", []]
    assert place(mails) == ("blocked", "mails") and "origin" not in mails.get("a")


def test_one_that_an_update_moves_stays_dead(mails):
    dies(mails)
    mails.call("UPDATE", 1, "a", "SET", "QUEUE", "mails")
    assert place(mails) == ("ready", "mails") and "origin" in mails.get("a")
    assert mails.call("REQUEUE", 1, "a", "ORIGIN") == [1, "0", []]
    assert "origin" not in mails.get("a")


def test_a_worker_sends_it_back_when_it_has_mended_it(mails):
    dies(mails)
    mails.claim(id="a")
    mails.call("CONSUME", "w1", "a", "PAYLOAD", "to bob", "NEXT", "mails")
    assert place(mails) == ("ready", "mails")
    assert mails.get("a")["payload"] == "to bob" and "origin" not in mails.get("a")


def test_what_is_held_or_alive_elsewhere_does_not_go_back(mails):
    dies(mails)
    mails.claim(id="a")
    with refused("NOTENDED claimed a", mails):
        mails.call("REQUEUE", 1, "a", "ORIGIN")
    mails.post("", id="b")
    with refused("NOTENDED ready b", mails):
        mails.call("REQUEUE", 1, "b", "ORIGIN")


def test_the_failure_counts_where_it_happened(mails):
    dies(mails)

    def failures(queue):
        return from_pairs(mails.call("STATS", "QUEUE", queue))["failed"]

    assert (failures("mails"), failures("unsent")) == (1, 0)


def test_the_setting_is_shown_reset_and_checked(mails):
    assert mails.settings("dead-queue", queue="mails") == {"dead-queue": ["unsent", "queue"]}
    assert mails.settings("dead-queue", queue="other") == {"dead-queue": [None, "default"]}
    assert {name: row["dead-queue"] for name, row in mails.queues().items()} == {"mails": "unsent"}
    error = "ERR dead-queue must be another queue: its dead jobs would die there again"
    with refused(error, mails):
        mails.set(queue="mails", dead_queue="mails")
    with refused("ERR dead-queue must be 1 to 255 bytes long", mails):
        mails.set(queue="mails", dead_queue="x" * 256)
    for words in (["dead-queue", "x"], ["QUEUE", "q", "GROUP", "g", "dead-queue", "x"]):
        with refused("ERR 'dead-queue' is a setting of queues", mails):
            mails.client.execute_command("JOB.SETTINGS", "SET", mails.key, *words)
    mails.set(queue="mails", dead_queue="")
    assert mails.settings("dead-queue", queue="mails") == {"dead-queue": [None, "default"]}
    mails.set(queue="mails", dead_queue="unsent")
    mails.reset("dead-queue", queue="mails")
    assert dies(mails) == {"state": "failed", "left": 0}


@pytest.mark.parametrize(
    ("words", "option"), [((1, "a", "QUEUE", "q"), "QUEUE"), (("WHERE", "TO", "q"), "TO")]
)
def test_two_places_to_go_to_are_refused(mails, words, option):
    dies(mails)
    words = ("WHERE", "STATE", "ready", "TO", "q") if option == "TO" else words
    with refused(f"ERR {option} and ORIGIN exclude each other", mails):
        mails.call("REQUEUE", *words, "ORIGIN")


def test_a_dead_queue_survives_a_restart_of_the_file(mails, clocked):
    dies(mails)
    before = mails.digest()
    dump = clocked.raw_client().dump("board")
    clocked.raw_client().delete("board")
    clocked.raw_client().restore("board", 0, dump)
    assert mails.digest() == before
    assert mails.call("REQUEUE", 1, "a", "ORIGIN") == [1, "0", []]
    assert dies(mails)["dead"] == "unsent"
