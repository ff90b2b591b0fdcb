"""JOB.GET, LIST, COUNT, HISTORY, QUEUES, WORKERS, KINDS, INFO: reading changes nothing."""

from __future__ import annotations

import lives
import pytest
from expect import check_consistent, drain, ids, refused, refused_like
from harness import EPOCH, from_pairs
from lives import LONG

STATES = ["claimed", "ready", "scheduled", "blocked", "complete", "failed", "cancelled", "trashed"]
FIELDS = (
    "id seq state queue name payload priority attempt left token worker deadline kind message stage progress"
    " posted due claimed ended modified version result meta reason tags tracked"
).split()


def test_an_absent_board_reads_as_an_empty_one(clocked_board):
    assert clocked_board.get("j") is None
    assert clocked_board.list() == ("0", [])
    assert clocked_board.list(justid=True) == ("0", [])
    assert clocked_board.count() == clocked_board.count(state="ready") == 0
    assert clocked_board.queues() == clocked_board.workers() == clocked_board.kinds() == {}
    assert clocked_board.history("j") is None
    assert clocked_board.info() is clocked_board.info(digest=True) is None
    assert not clocked_board.client.exists("board")


def test_reading_changes_nothing(server):
    board = server.board(encoding_errors="surrogateescape")
    lives.busy(board)
    before, revision = board.digest(), board.info()["revision"]
    board.client.config_resetstat()
    offset = server.info("replication")["master_repl_offset"]
    for id in board.list_all(justid=True):
        board.get(id)
        board.history(id)
    board.mget(["ready", "unknown"])
    board.list_all(rev=True)
    board.count(), board.queues(), board.workers(), board.kinds(), board.settings()
    assert (board.digest(), board.info()["revision"]) == (before, revision)
    assert server.info("replication")["master_repl_offset"] == offset


# GET


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_can_be_asked_for(clocked_board, field):
    lives.claimed(clocked_board, meta={"k": "v"}, name="n")
    job = clocked_board.get("j", fields=[field])
    assert list(job) in ([field], [])
    assert clocked_board.get("j").get(field) == job.get(field)


def test_fields_that_are_absent_are_left_out(clocked_board):
    lives.ready(clocked_board)
    found = clocked_board.get("j", fields=["state", "result", "id", "worker"])
    assert found == {"id": "j", "state": "ready"}


def test_an_unknown_field_is_refused(clocked_board):
    lives.ready(clocked_board)
    with refused_like("ERR .*'bogus'.*", clocked_board):
        clocked_board.get("j", fields=["id", "bogus"])


def test_a_running_job_has_a_full_record(clocked_board, clock):
    token = lives.claimed(clocked_board, name="n", meta={"k": "v"})
    clock.advance(5)
    clocked_board.heartbeat("w1", "j", progress=12.34, stage="half", lease=1000)
    job = clocked_board.get("j")
    expected = {
        "id": "j",
        "state": "claimed",
        "queue": "default",
        "name": "n",
        "payload": "payload",
        "priority": 0,
        "attempt": 1,
        "left": 10,
        "token": token,
        "worker": "w1",
        "deadline": EPOCH + 1005,
        "stage": "half",
        "progress": 12.34,
        "posted": EPOCH,
        "claimed": EPOCH,
        "meta": {"k": "v"},
    }
    assert {key: value for key, value in job.items() if key in expected} == expected
    for absent in ["kind", "message", "ended", "result", "reason"]:
        assert absent not in job


def test_jobs_are_numbered_in_the_order_of_their_posts(clocked_board):
    clocked_board.mpost("abc", ids=["a", "b", "c"])
    clocked_board.post(id="d")
    numbers = [job["seq"] for job in clocked_board.mget("abcd")]
    assert numbers == sorted(set(numbers))


def test_the_version_of_a_job_rises_with_every_change(clocked_board):
    versions = []
    lives.ready(clocked_board)
    for step in [
        lambda: lives.claim(clocked_board),
        lambda: clocked_board.heartbeat("w1", "j", stage="s"),
        lambda: clocked_board.abandon("w1", "j"),
        lambda: clocked_board.update("j", priority=3),
        lambda: clocked_board.cancel("j"),
    ]:
        versions.append(clocked_board.get("j")["version"])
        step()
    versions.append(clocked_board.get("j")["version"])
    assert versions == sorted(set(versions))


# LIST and COUNT


def fill(board) -> None:
    """Two jobs of each state, in two queues."""
    for queue in ["a", "b"]:
        for life in ["scheduled", "ready", "claimed", "complete", "failed", "cancelled", "trashed"]:
            lives.LIVES[life](board, f"{life}-{queue}", queue=queue, name=f"name-{queue}")


def test_a_list_goes_through_the_states_in_order(clocked_board):
    fill(clocked_board)
    states = [job["state"] for job in clocked_board.list_all()]
    assert states == [state for state in STATES if state != "blocked" for _ in range(2)]
    backwards = [job["id"] for job in clocked_board.list_all(rev=True)]
    assert backwards == ids(clocked_board.list_all())[::-1]


def test_claimed_jobs_are_listed_by_deadline(clocked_board):
    for id, lease in [("b", 2000), ("c", 3000), ("a", 1000)]:
        lives.claimed(clocked_board, id, lease=lease)
    assert clocked_board.list_all(state="claimed", justid=True) == ["a", "b", "c"]
    clocked_board.heartbeat("w1", "a", lease=9000)
    assert clocked_board.list_all(state="claimed", justid=True) == ["b", "c", "a"]
    assert clocked_board.list_all(state="claimed", justid=True, rev=True) == ["a", "c", "b"]


def test_ready_jobs_are_listed_in_the_order_in_which_they_are_claimed(clocked_board):
    for n, priority in enumerate([0, 5, -5, 0, 5, 2]):
        clocked_board.post(id=f"j{n}", priority=priority)
    listed = clocked_board.list_all(state="ready", justid=True)
    assert listed == ["j1", "j4", "j5", "j0", "j3", "j2"]
    assert drain(clocked_board) == listed


def test_ready_jobs_of_one_queue_are_listed_in_the_order_in_which_they_are_claimed(clocked_board):
    for n, priority in enumerate([0, 5, -5]):
        clocked_board.post(id=f"a{n}", priority=priority, queue="a")
        clocked_board.post(id=f"b{n}", priority=priority, queue="b")
    listed = clocked_board.list_all(state="ready", queue="b", justid=True)
    assert listed == ["b1", "b0", "b2"]
    assert ids(clocked_board.claim(queues=["b"], count=9)) == listed


def test_scheduled_jobs_are_listed_by_due_time(clocked_board):
    for id, delay in [("b", 20), ("a", 10), ("c", 30)]:
        clocked_board.post(id=id, delay=delay)
    assert clocked_board.list_all(state="scheduled", justid=True) == ["a", "b", "c"]
    assert clocked_board.list_all(state="scheduled", justid=True, rev=True) == ["c", "b", "a"]


@pytest.mark.parametrize("life", lives.ENDED)
def test_ended_jobs_are_listed_by_the_time_of_their_end(clocked_board, clock, life):
    for id in "bca":
        lives.LIVES[life](clocked_board, id)
        clock.advance(1)
    assert clocked_board.list_all(state=life, justid=True) == ["b", "c", "a"]


def test_filters_choose(clocked_board):
    fill(clocked_board)

    def listed(**filters):
        found = clocked_board.list_all(justid=True, **filters)
        assert len(found) == clocked_board.count(**filters), filters
        return sorted(found)

    assert listed(state="ready") == ["ready-a", "ready-b"]
    assert listed(state="READY", queue="a") == ["ready-a"]
    assert listed(state=["ready", "failed"], queue="b") == ["failed-b", "ready-b"]
    assert listed(name="name-a", state="claimed") == ["claimed-a"]
    assert listed(worker="w1", state="claimed") == ["claimed-a", "claimed-b"]
    assert listed(queue=["a", "b"], not_state=["ready", "claimed", "failed", "complete"]) == sorted(
        f"{life}-{queue}" for life in ["scheduled", "cancelled", "trashed"] for queue in "ab"
    )
    assert listed(not_queue="a", state="trashed") == ["trashed-b"]
    assert listed(not_name="name-b", state="trashed") == ["trashed-a"]
    assert listed(worker="nobody") == listed(queue="nowhere") == listed(name="none") == []
    assert listed(state="blocked") == []
    assert len(listed(queue="a")) == 7


def test_lapsed_jobs_can_be_told_from_others(clocked_board):
    lives.ready(clocked_board, "never", queue="other")
    lives.lapsed(clocked_board, "lapsed")
    assert clocked_board.list_all(lapsed=True, justid=True) == ["lapsed"]
    assert clocked_board.list_all(not_lapsed=True, justid=True) == ["never"]
    assert clocked_board.count(lapsed=True, state="ready") == 1


@pytest.mark.parametrize("words", ["STATE bogus", "STATE ''", "NOT", "NOT bogus", "NOT COUNT 1", "LAPSED x"])
def test_a_strange_filter_is_refused(clocked_board, words):
    lives.ready(clocked_board)
    for command in ["LIST", "COUNT"]:
        with refused_like("ERR .+", clocked_board):
            clocked_board.call(command, *words.replace("''", "").split(" "))


def test_a_count_without_filters_is_of_jobs_that_have_not_ended(clocked_board):
    fill(clocked_board)
    assert clocked_board.count() == 6
    assert clocked_board.count(state=STATES) == 14


def test_a_list_gives_ids_only_when_asked(clocked_board):
    lives.ready(clocked_board)
    assert clocked_board.list(justid=True) == ("0", ["j"])
    [job] = clocked_board.list()[1]
    assert job == clocked_board.get("j")
    assert clocked_board.list(fields=["id", "state"])[1] == [{"id": "j", "state": "ready"}]


def test_a_page_has_100_jobs_unless_told_otherwise(clocked_board):
    posted = clocked_board.post_many(150)
    cursor, first = clocked_board.list(justid=True)
    assert first == posted[:100]
    assert cursor != "0"
    assert clocked_board.list(justid=True, cursor=cursor) == ("0", posted[100:])


@pytest.mark.parametrize("page", [1, 2, 7, 1000])
@pytest.mark.parametrize("rev", [False, True])
def test_all_pages_together_are_the_whole(clocked_board, page, rev):
    fill(clocked_board)
    clocked_board.post_many(30, queue="a")
    whole = clocked_board.list_all(justid=True, rev=rev, count=1000)
    assert len(whole) == 44
    assert clocked_board.list_all(justid=True, rev=rev, count=page) == whole
    of_one_queue = clocked_board.list_all(justid=True, rev=rev, count=page, queue="b")
    assert len(of_one_queue) == 7


@pytest.mark.parametrize("page", [1, 3])
def test_many_jobs_of_the_same_moment_are_paged_without_loss(clocked_board, page):
    scheduled = clocked_board.post_many(20, delay=5)
    held = ids(
        clocked_board.post_many(20, queue="q") and clocked_board.claim(queues=["q"], count=20, lease=5)
    )
    assert sorted(clocked_board.list_all(count=page, state="scheduled", justid=True)) == sorted(scheduled)
    assert sorted(clocked_board.list_all(count=page, state="claimed", justid=True)) == sorted(held)


def test_a_job_that_stays_is_listed_once_while_others_come_and_go(clocked_board):
    staying = clocked_board.post_many(60)
    cursor, seen = clocked_board.list(count=10, justid=True)
    while cursor != "0":
        gone = clocked_board.post(priority=1)
        clocked_board.delete(gone)
        clocked_board.post(queue="new", id=f"new-{len(seen)}")
        cursor, more = clocked_board.list(count=10, justid=True, cursor=cursor)
        seen += more
    assert [id for id in seen if id in set(staying)] == staying


def test_a_page_goes_on_after_the_last_listed_job_has_gone(clocked_board):
    posted = clocked_board.post_many(10)
    cursor, first = clocked_board.list(count=3, justid=True)
    clocked_board.delete(*first)
    assert clocked_board.list(cursor=cursor, justid=True) == ("0", posted[3:])


@pytest.mark.parametrize("cursor", ["x", "-1", "", "1", "99999999999999999999", "0 ", "%s"])
def test_a_strange_cursor_is_refused_or_gives_a_page(clocked_board, cursor):
    lives.ready(clocked_board)
    try:
        next_cursor, found = clocked_board.list(cursor=cursor)
    except Exception as error:
        assert "CURSOR" in str(error)
    else:
        assert isinstance(next_cursor, str)
        assert ids(found) in ([], ["j"])


def test_a_filter_over_many_jobs_ends(clocked_board):
    clocked_board.post_many(5000, name="common")
    clocked_board.post(id="rare", name="rare")
    assert clocked_board.list_all(name="rare", justid=True) == ["rare"]
    assert clocked_board.count(name="rare") == 1


# HISTORY


def test_a_history_tells_what_happened_and_when(clocked_board, clock):
    lives.ready(clocked_board, backoff=("FIXED", 10), jitter=0)
    clock.advance(1)
    token = lives.claim(clocked_board)
    clock.advance(1)
    clocked_board.fail("w1", "j", "net", "no route", token=token)
    clock.advance(10)
    entries = clocked_board.history("j")
    assert [(entry["event"], entry["at"] - EPOCH, entry.get("worker")) for entry in entries] == [
        ("posted", 0, None),
        ("claimed", 1, "w1"),
        ("failed", 2, "w1"),
    ]
    assert (entries[2]["kind"], entries[2]["message"]) == ("net", "no route")
    assert not {"kind", "message", "queue", "signal", "final"} & set(entries[0])


def test_entries_of_a_history_say_what_they_are_about(clocked_board, clock):
    board = clocked_board
    lives.ready(board, retries=1, backoff=("FIXED", 0))
    for _ in range(2):
        lives.claim(board)
        board.fail("w1", "j", "net", "")
    board.call("REQUEUE", 1, "j", "QUEUE", "other")
    board.update("j", queue="third")
    board.call("CLAIM", "w1", "ID", "j")
    board.call("CONSUME", "w1", "j", "NEXT", "last")
    entries = [{k: v for k, v in entry.items() if k not in ("at", "worker")} for entry in board.history("j")]
    assert entries == [
        {"event": "posted"},
        {"event": "claimed"},
        {"event": "failed", "kind": "net"},
        {"event": "claimed"},
        {"event": "failed", "kind": "net", "final": 1},
        {"event": "requeued", "queue": "other"},
        {"event": "updated", "queue": "third"},
        {"event": "claimed"},
        {"event": "advanced", "queue": "last"},
    ]


def test_a_record_has_its_history_when_fields_name_it(clocked_board):
    board = clocked_board
    lives.claimed(board)
    board.call("AWAIT", "w1", "j", "SIGNALS", 2, "a", "b")
    assert "history" not in board.get("j")
    found = from_pairs(board.call("GET", "j", "FIELDS", 2, "history", "id"))
    entries = [from_pairs(entry) for entry in found["history"]]
    assert entries == board.history("j")
    assert entries[-1] == {"at": EPOCH, "event": "awaiting", "worker": "w1", "signal": "a", "signals": 2}


def test_a_record_says_how_many_retries_and_lapses_it_has(clocked_board, clock):
    board = clocked_board
    lives.ready(board)
    assert (board.get("j")["retries"], board.get("j")["lapses"]) == (10, 0)
    board.set(retries=4)
    lives.ready(board, "own", retries=-1)
    assert (board.get("j")["retries"], board.get("own")["retries"]) == (4, -1)
    board.update("own", retries=2)
    lives.claim(board)
    board.call("FAIL", "w1", "j", "net", "", "RETRY", 0)
    assert (board.get("j")["retries"], board.get("j")["left"]) == (4, 3)
    board.call("CLAIM", "w1", "ID", "j", "LEASE", 10)
    clock.advance(10)
    assert (board.get("own")["retries"], board.get("j")["lapses"]) == (2, 1)


def test_an_unknown_job_has_no_history(clocked_board):
    lives.ready(clocked_board, "other")
    assert clocked_board.history("j") is None


def test_a_long_history_keeps_its_beginning_and_its_end(clocked_board):
    lives.claimed(clocked_board)
    for n in range(50):
        clocked_board.heartbeat("w1", "j", log=str(n))
    logs = [entry["message"] for entry in clocked_board.history("j") if entry["event"] == "log"]
    assert 18 <= len(logs) <= 20
    assert logs[:3] == ["0", "1", "2"]
    assert logs[-15:] == [str(n) for n in range(35, 50)]
    assert clocked_board.events("j")[:2] == ["posted", "claimed"]


@pytest.mark.parametrize(("first", "last"), [(0, 0), (0, 3), (3, 0), (1, 1), (1000, 1000)])
def test_the_length_of_histories_is_a_setting(clocked_board, first, last):
    clocked_board.set(history_first=first, history_last=last)
    lives.claimed(clocked_board)
    for n in range(30):
        clocked_board.heartbeat("w1", "j", log=str(n))
    events = clocked_board.events("j")
    everything = ["posted", "claimed", *["log"] * 30]
    assert events == (everything if first + last > 32 else everything[:first] + everything[32 - last :])


EVENTS = {
    "posted": lives.ready,
    "claimed": lives.claimed,
    "lapsed": lives.lapsed,
    "failed": lives.retrying,
    "abandoned": lives.abandoned,
    "released": lives.released,
    "cancel-requested": lives.cancel_requested,
    "cancelled": lives.cancelled,
    "trashed": lives.trashed,
    "complete": lives.complete,
}


@pytest.mark.parametrize("event", EVENTS)
def test_every_turn_of_life_is_told(clocked_board, event):
    EVENTS[event](clocked_board)
    assert clocked_board.events("j")[-1] == event


# QUEUES, WORKERS, KINDS


def test_queues_are_counted_by_state_in_the_order_of_their_names(clocked_board):
    fill(clocked_board)
    clocked_board.post_many(3, queue="B")
    queues = clocked_board.queues()
    assert list(queues) == ["B", "a", "b"]
    counts = {state: int(state != "blocked") for state in STATES}
    assert {name: queues["a"][name] for name in counts} == counts
    assert (queues["a"]["paused"], queues["a"]["concurrency"]) == (0, -1)
    assert queues["B"]["ready"] == 3
    assert sum(queues["B"][state] for state in STATES) == 3


def queue_pages(board, *words):
    """The names of the queues on each page of two."""
    found, cursor = [], "0"
    while True:
        cursor, rows = board.call("QUEUES", *words, "CURSOR", cursor, "COUNT", 2)
        found.append([from_pairs(row)["queue"] for row in rows])
        if cursor == "0":
            return found


def test_queues_can_be_sorted_by_what_they_have(clocked_board, clock):
    for queue, count in [("a", 2), ("b", 5), ("c", 2), ("d:#", 9), ("e", 0)]:
        clocked_board.set(queue=queue, lease=9000)
        count and clocked_board.post_many(count, queue=queue)
        clock.advance(1000)
    clocked_board.claim("w", queues=["d:#"], count=8)
    assert queue_pages(clocked_board, "BY", "ready") == [["b", "a"], ["c", "d:#"], ["e"]]
    assert queue_pages(clocked_board, "BY", "CLAIMED") == [["d:#", "a"], ["b", "c"], ["e"]]
    assert queue_pages(clocked_board, "BY", "oldest") == [["a", "b"], ["c", "d:#"], ["e"]]
    assert queue_pages(clocked_board) == [["a", "b"], ["c", "d:#"], ["e"]]


def test_queues_can_be_found_by_a_part_of_their_names(clocked_board):
    for queue in ["mail", "Mail-2", "E-MAIL", "sms"]:
        clocked_board.post(queue=queue)
    clocked_board.post(queue="mail")
    assert queue_pages(clocked_board, "CONTAINS", "mAil") == [["E-MAIL", "Mail-2"], ["mail"]]
    assert queue_pages(clocked_board, "CONTAINS", "mail", "BY", "ready") == [["mail", "E-MAIL"], ["Mail-2"]]
    assert queue_pages(clocked_board, "CONTAINS", "none") == [[]]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["BY", "redy"], "ERR unknown order 'redy': did you mean 'ready'?"),
        (["BY", "ready", "BY", "ready"], "ERR BY is given twice"),
        (["BY", "ready", "CURSOR", ">a"], "ERR CURSOR must be 0 or the cursor that the last call returned"),
        (["BY", "ready", "CURSOR", "#x:a"], "ERR CURSOR must be 0 or the cursor that the last call returned"),
        (["CURSOR", "#1:a"], "ERR CURSOR must be 0 or the cursor that the last call returned"),
        (["CONTAINS", ""], "ERR CONTAINS must be 1 to 255 bytes long"),
    ],
)
def test_queues_refuse_what_they_do_not_know(clocked_board, words, error):
    clocked_board.post()
    with refused(error, clocked_board):
        clocked_board.call("QUEUES", *words)


def test_workers_are_counted_in_the_order_of_their_names(clocked_board):
    for id, worker in [("1", "zoe"), ("2", "ann"), ("3", "zoe")]:
        lives.claimed(clocked_board, id, worker)
    workers = clocked_board.workers()
    assert list(workers) == ["ann", "zoe"]
    assert [row["claimed"] for row in workers.values()] == [1, 2]
    assert all(row["active"] >= 0 for row in workers.values())


def test_a_worker_is_active_since_its_last_command(clocked_board, clock):
    lives.claimed(clocked_board)
    clock.advance(500)
    assert clocked_board.workers()["w1"]["active"] == 500
    clocked_board.heartbeat("w1", "j")
    assert clocked_board.workers()["w1"]["active"] == 0


def test_a_worker_that_holds_nothing_does_not_count(clocked_board):
    lives.abandoned(clocked_board)
    assert clocked_board.workers().get("w1", {}).get("claimed", 0) == 0


def test_failed_jobs_are_counted_by_kind(clocked_board):
    for id, kind in [("1", "net"), ("2", "disk"), ("3", "net")]:
        lives.failed(clocked_board, id, kind=kind)
    lives.retrying(clocked_board, "4")
    assert clocked_board.kinds() == {"net": 2, "disk": 1}
    clocked_board.requeue("1")
    clocked_board.delete("2")
    assert clocked_board.kinds() == {"net": 1}


# INFO


def test_a_board_tells_about_itself(clocked_board):
    fill(clocked_board)
    lives.gone(clocked_board, "gone")
    token = lives.claimed(clocked_board, "last")
    info = clocked_board.info()
    assert info["jobs"] == 15
    assert {state: info[state] for state in STATES} == {
        state: {"blocked": 0, "claimed": 3}.get(state, 2) for state in STATES
    }
    assert (info["queues"], info["workers"], info["tombstones"]) == (3, 1, 1)
    assert info["token"] == token
    assert info["revision"] > 0
    assert (bool(info["overdue"]), bool(info["broken"])) == (False, False)
    assert info["bytes"] > 15 * 64
    assert "digest" not in info


def test_a_board_tells_how_long_until_something_happens(clocked_board, clock):
    clocked_board.post(id="j")
    assert clocked_board.info()["next"] == -1
    clocked_board.post(id="k", delay=500)
    assert clocked_board.info()["next"] == 500
    clock.advance(200)
    assert clocked_board.info()["next"] == 300
    lives.claimed(clocked_board, "l", lease=100)
    assert clocked_board.info()["next"] == 100


def test_the_digest_is_hex_and_the_same_for_the_same_state(clocked_board):
    lives.ready(clocked_board)
    digest = clocked_board.digest()
    int(digest, 16)
    assert clocked_board.digest() == digest
    clocked_board.update("j", priority=1)
    assert clocked_board.digest() != digest


@pytest.mark.parametrize(
    "change",
    [
        lambda board: board.post(id="k"),
        lambda board: lives.claim(board),
        lambda board: board.update("j", payload="other"),
        lambda board: board.update("j", meta={"k": "v"}),
        lambda board: board.update("j", log="x"),
        lambda board: board.cancel("j"),
        lambda board: board.delete("j"),
        lambda board: board.set(lease=1),
        lambda board: board.set(lease=1, queue="q"),
    ],
)
def test_every_change_changes_the_digest(clocked_board, change):
    lives.ready(clocked_board)
    before = clocked_board.digest()
    change(clocked_board)
    assert clocked_board.digest() != before


@pytest.mark.parametrize("change", ["heartbeat", "fail", "abandon", "trash", "consume"])
def test_every_verb_of_a_worker_changes_the_digest(clocked_board, clock, change):
    lives.claimed(clocked_board)
    clock.advance(1)
    before = clocked_board.digest()
    getattr(clocked_board, change)("w1", "j")
    assert clocked_board.digest() != before


def test_all_reads_agree(server):
    board = server.board()
    lives.busy(board)
    check_consistent(board)


def test_the_bytes_of_a_board_grow_and_shrink_with_it(clocked_board):
    lives.ready(clocked_board)
    small = clocked_board.info()["bytes"]
    posted = clocked_board.post_many(1000, "x" * 1000)
    assert clocked_board.info()["bytes"] > small + 1000 * 1000
    clocked_board.delete(*posted)
    assert clocked_board.info()["bytes"] < small + 1000 * 1000


def test_listing_does_not_wait_for_the_timer(clocked_board):
    clocked_board.post(id="j", delay=LONG)
    assert clocked_board.info()["next"] == LONG
