"""What all importers share: slices, kills, conflicts, dry runs; on items of redis-work-queue."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import redis
from harness import Server
from jobboard.importers import moving
from jobboard.importers.moving import Board, Busy, Item, Mover, Section
from jobboard.importers.postings import Posting
from jobboard.importers.work_queue import WorkQueue
from redis_work_queue import Item as Work
from redis_work_queue import KeyPrefix
from redis_work_queue import WorkQueue as Theirs
from waiters import Waiter


@pytest.fixture
def theirs(source: redis.Redis) -> Theirs:
    return Theirs(KeyPrefix("work"))


def add(source: redis.Redis, theirs: Theirs, count: int, size: int = 10) -> list[str]:
    """Adds items and gives their ids in the order in which they would be taken."""
    pipeline = source.pipeline()
    items = [Work("x" * size, id=f"{number:05}") for number in range(count)]
    for item in items:
        theirs.add_item_to_pipeline(pipeline, item)
    pipeline.execute()
    return [item.id() for item in items]


def mover(source: redis.Redis, size: int = 10, **options) -> Mover:
    return Mover(WorkQueue(source, ["work"], **options), Board(source, "board", "test"), size)


WAITING = [Section("waiting", "work")]


DEADLY = """
import os, runpy, signal, sys, redis
packets, after = int(sys.argv.pop(1)), int(sys.argv.pop(1))
real = redis.Connection.send_packed_command

def send(self, *words, **options):
    global packets
    packets -= 1
    if packets or after:
        real(self, *words, **options)
    if not packets:
        os.kill(os.getpid(), signal.SIGKILL)

redis.Connection.send_packed_command = send
runpy.run_module("jobboard.importers", run_name="__main__", alter_sys=True)
"""
"""An import that is killed after so many packets sent; the last of them goes out when the next word is 1."""


class Killed(BaseException):
    """Stands for a kill: nothing of ours catches it."""


def test_slices_of_any_size_give_the_same(server: Server, source: redis.Redis, theirs: Theirs):
    for size in (1, 7, 100):
        ids = add(source, theirs, 25)
        report = mover(source, size).move(WAITING)
        assert (report.found["waiting"], report.moved["waiting"]) == (25, 25)
        board = server.board()
        assert [job["id"] for job in board.claim("w1", count=100)] == ids
        board.mconsume("w1", "ALL")
        assert not theirs.queue_len(source)
        server.flush()


def test_a_slice_is_split_when_it_is_heavy(server: Server, source: redis.Redis, theirs: Theirs, monkeypatch):
    monkeypatch.setattr(moving, "BYTES", 5000)
    add(source, theirs, 20, size=1000)
    source.config_resetstat()
    mover(source, 20).move(WAITING)
    assert server.board().count() == 20
    stats = server.info("commandstats")
    scripts = sum(stats.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("eval", "evalsha"))
    assert 4 <= scripts <= 7, "about four of 1200 bytes in each"


def test_a_kill_between_posting_and_removing_repeats_nothing(
    server: Server, source: redis.Redis, theirs: Theirs, monkeypatch
):
    ids = add(source, theirs, 30)
    board = server.board()
    board.set(tombstones=0)  # else these would refuse a second post
    killed = mover(source)
    remove, removed = killed.source.remove, []

    def kill_at_the_second(section: Section, refs: list) -> None:
        removed.append(refs)
        if len(removed) == 2:
            raise Killed
        remove(section, refs)

    monkeypatch.setattr(killed.source, "remove", kill_at_the_second)
    with pytest.raises(Killed):
        killed.move(WAITING)
    assert [job["id"] for job in board.claim("w1", count=100)] == ids[:20]
    board.mconsume("w1", "ALL")
    assert board.count(state=["complete"]) == 0, "nothing on the board remembers them"

    again = mover(source)
    assert again.recover() == 10
    again.move(WAITING)
    assert [job["id"] for job in board.claim("w1", count=100)] == ids[20:]
    assert again.recover() == 0
    assert not source.keys("*import*")


def test_a_kill_before_posting_loses_nothing(
    server: Server, source: redis.Redis, theirs: Theirs, monkeypatch
):
    ids = add(source, theirs, 30)
    killed = mover(source)
    post, posted = killed.board.post, []

    def kill_at_the_second(section: Section, items: list) -> list:
        posted.append(items)
        if len(posted) == 2:
            raise Killed
        return post(section, items)

    monkeypatch.setattr(killed.board, "post", kill_at_the_second)
    with pytest.raises(Killed):
        killed.move(WAITING)
    again = mover(source)
    again.recover()
    again.move(WAITING)
    assert [job["id"] for job in server.board().claim("w1", count=100)] == ids


@pytest.mark.long
def test_an_import_that_is_killed_again_and_again_moves_each_job_once(
    server: Server, source: redis.Redis, theirs: Theirs
):
    ids = add(source, theirs, 150)
    board = server.board()
    board.set(tombstones=0)
    done: list[str] = []
    ended = threading.Event()

    def work() -> None:
        worker = server.board()
        while not (ended.is_set() and not worker.count()):
            jobs = worker.claim("w1", count=50, block=100)
            done.extend(job["id"] for job in jobs)
            if jobs:
                worker.mconsume("w1", [job["id"] for job in jobs])

    thread = threading.Thread(target=work)
    thread.start()
    words = ["import", "work-queue", "board", "work", "--slice", "3"]
    words += ["--url", f"redis://127.0.0.1:{server.port}"]
    chance = random.Random(7)
    kills, code = 0, -signal.SIGKILL
    while code == -signal.SIGKILL:
        # Killed after so many packets sent, before or after the last of them.
        packets = (chance.randrange(10, 40), chance.randrange(2))
        code = subprocess.run([sys.executable, "-c", DEADLY, *map(str, packets), *words]).returncode
        kills += code == -signal.SIGKILL
    ended.set()
    thread.join(60)
    assert code == 0
    assert kills >= 2, "150 jobs in slices of three need more packets than 80"
    assert sorted(done) == ids


def test_jobs_that_are_on_the_board_already_stay(
    server: Server, source: redis.Redis, theirs: Theirs, imported
):
    add(source, theirs, 3)
    server.board().post("mine", id="00001")
    code, output = imported("work-queue", "board", "work")
    assert code == 1
    assert "stays: 00001: EXISTS 00001" in output
    assert theirs.queue_len(source) == 1
    assert server.board().get("00001")["payload"] == "mine"
    server.board().delete("00001")
    assert imported("work-queue", "board", "work")[0] == 0
    assert theirs.queue_len(source) == 0


def test_what_the_board_refuses_stays(server: Server, source: redis.Redis, theirs: Theirs, imported):
    add(source, theirs, 5)
    server.board().set(**{"max-jobs": 3})
    code, output = imported("work-queue", "board", "work", "--slice", "2")
    assert code == 1
    assert f"{'waiting':>12}{5:>12}{3:>12}{2:>12}" in output
    assert "LIMIT max-jobs" in output
    assert theirs.queue_len(source) == 2


def test_a_job_that_cannot_be_brought_into_its_state_is_not_posted(server: Server, source: redis.Redis):
    board = Board(source, "board", "test")
    server.board().pause()
    posting = Posting("j", "x", failure=("ValueError", "no"))
    [refusal] = board.post(Section("failed", "q"), [Item(b"j", posting)])
    assert refusal == "NOTREADY paused"
    assert server.board().get("j") is None
    assert board.noted()[1] == []
    server.board().resume()
    assert board.post(Section("failed", "q"), [Item(b"j", posting)]) == [""]
    assert board.noted()[1] == [b"j"]


def test_a_job_of_too_many_words_stays_and_the_others_go(server: Server, source: redis.Redis):
    """Lua hands over less than 8,000 of them."""
    board = Board(source, "board", "test")
    long = Posting("long", "x", after=[f"j{number}" for number in range(9000)])
    items = [Item(b"a", Posting("a", "x")), Item(b"long", long), Item(b"b", Posting("b", "x"))]
    refusals = board.post(Section("waiting", "q"), items)
    assert [bool(one) for one in refusals] == [False, True, False]
    assert "too many" in refusals[1]
    assert board.noted()[1] == [b"a", b"b"]


def test_a_slice_that_is_sent_again_is_moved_once(
    server: Server, cluster, source, theirs, imported, monkeypatch
):
    """redis-py does so by itself in a cluster when the connection breaks before the answer."""
    ids = add(source, theirs, 30)
    real, lost = redis.Connection.read_response, []

    def read_response(self, *words, **options):
        found = real(self, *words, **options)
        if found == [b""] * 10 and not lost:
            lost.append(found)
            self.disconnect()
            raise redis.ConnectionError("lost")
        return found

    monkeypatch.setattr(redis.Connection, "read_response", read_response)
    url = f"redis://127.0.0.1:{cluster.primaries[0].port}"
    code, output = imported("work-queue", "again", "work", "--url", url, "--cluster", "--slice", "10")
    assert lost and code == 0, output
    assert not theirs.queue_len(source)
    assert cluster.client().execute_command("JOB.COUNT", "again") == len(ids)


@pytest.mark.parametrize("field", ["ref", "id", "name", "tag"])
def test_what_is_no_text_holds_up_no_other_job(server: Server, source: redis.Redis, field: str):
    """Bytes go as they are; half of a surrogate pair, which JSON may have, cannot go."""
    odd = Item(b"odd", Posting("odd", "x"))
    if field == "ref":
        odd.ref = b"\xff"
    elif field == "id":
        odd.posting.id = "odd-\udcff"
    elif field == "name":
        odd.posting.name = "\ud800"
    else:
        odd.posting.tags = ["\ud800"]
    board = Board(source, "board", "test")
    refusals = board.post(Section("waiting", "q"), [odd, Item(b"b", Posting("b", "x"))])
    assert [bool(one) for one in refusals] == [field not in ("ref", "id"), False]
    assert b"b" in board.noted()[1]


def test_a_failed_job_is_handed_to_nobody(server: Server, source: redis.Redis):
    """Also not to a worker that waits."""
    waiter = Waiter(server)
    posting = Posting("j", "x", failure=("ValueError", "é" * 5000))
    Board(source, "board", "test").post(Section("failed", "q"), [Item(b"j", posting)])
    assert waiter.still_waits()
    job = server.board().get("j")
    assert (job["state"], job["kind"]) == ("failed", "ValueError")
    assert job["message"].startswith("... éé"), "the end of what is too long"


def test_two_imports_of_the_same_jobs_exclude_each_other(source: redis.Redis, theirs: Theirs, monkeypatch):
    add(source, theirs, 30)
    first, second = mover(source), mover(source)
    remove = first.source.remove

    def meanwhile(section: Section, refs: list) -> None:
        remove(section, refs)
        second.recover()
        assert second.board.post(WAITING[0], [Item(b"x", Posting("x", "x"))]) == [""]

    monkeypatch.setattr(first.source, "remove", meanwhile)
    with pytest.raises(Busy):
        first.move(WAITING)


def test_a_dry_run_changes_nothing(server: Server, source: redis.Redis, theirs: Theirs, imported):
    add(source, theirs, 30)
    theirs.lease(source, 60)
    before = {key: source.dump(key) for key in source.keys()}
    code, output = imported("work-queue", "board", "work", "--dry-run", "--slice", "7")
    assert code == 0
    assert f"{'state':>12}{'found':>12}{'stay':>12}\n{'waiting':>12}{29:>12}{0:>12}\n" in output
    assert "not asked for: 1 running of work" in output
    assert {key: source.dump(key) for key in source.keys()} == before


def test_another_server_can_have_the_board(server: Server, fresh_server, source, theirs, imported):
    add(source, theirs, 5)
    other = fresh_server()
    assert imported("work-queue", "jobs", "work", "--url", f"redis://127.0.0.1:{other.port}")[0] == 0
    assert other.board("jobs").count() == 5
    assert server.board("jobs").count() == theirs.queue_len(source) == 0


def test_a_board_in_a_cluster_can_be_moved_to(server: Server, cluster, source, theirs, imported):
    add(source, theirs, 25)
    url = f"redis://127.0.0.1:{cluster.primaries[0].port}"
    for board in ("mails", "texts"):  # in slots of different nodes
        assert imported("work-queue", board, "work", "--url", url, "--cluster", "--slice", "10")[0] == 0
        assert theirs.queue_len(source) == 0
        add(source, theirs, 25)
    client = cluster.client()
    assert [client.execute_command("JOB.COUNT", board) for board in ("mails", "texts")] == [25, 25]
    assert imported("work-queue", "mails", "work", "--cluster")[0] == 2, "where from?"


def test_the_rights_that_the_guide_names_are_enough(server: Server, source, theirs, imported):
    add(source, theirs, 5)
    guide = (Path(__file__).resolve().parents[3] / "docs" / "guides" / "migrate" / "README.md").read_text()
    [line] = [line for line in guide.splitlines() if line.startswith("Needed rights")]
    commands = [name for name in re.findall(r"`([A-Z. ]+)`", line)]
    words = [f"+{name.lower().replace(' ', '|')}" for name in commands]
    client = server.client()
    reading = ["+@read", "+lrem", "+multi", "+exec", "+discard", "+hello", "+client"]
    client.execute_command(
        "ACL",
        "SETUSER",
        "mover",
        "on",
        ">secret",
        "~work*",
        "~board",
        "~{board}.import.*",
        "~jobboard-import.*",
        *words,
        *reading,
    )
    try:
        client.execute_command("ACL", "DRYRUN", "mover", "JOB.POST", "board", "x")
        url = f"redis://mover:secret@127.0.0.1:{server.port}"
        code, output = imported("work-queue", "board", "work", "--url", url, "--from", url)
        assert code == 0, output
        assert server.board().count() == 5
    finally:
        client.execute_command("ACL", "DELUSER", "mover")


def test_the_note_is_in_the_slot_of_its_board(source: redis.Redis):
    assert Board(source, "mails", "rq").note == "{mails}.import.rq"
    assert Board(source, "{a}:mails", "rq").note == "{a}:mails.import.rq"


@pytest.fixture
def killed_at(monkeypatch):
    """killed_at(2): an import is killed when it has posted its second slice and not yet removed it."""

    def kill(number: int) -> None:
        remove, calls = WorkQueue.remove, []

        def deadly(self, section: Section, refs: list) -> None:
            calls.append(refs)
            if len(calls) == number:
                raise Killed
            remove(self, section, refs)

        monkeypatch.setattr(WorkQueue, "remove", deadly)

    return kill


def test_a_note_that_outlives_its_board_is_not_believed(
    server: Server, source, theirs, imported, killed_at, capsys
):
    ids = add(source, theirs, 30)
    killed_at(2)
    with pytest.raises(Killed):
        imported("work-queue", "board", "work", "--slice", "10")
    source.delete("board")
    assert imported("work-queue", "board", "work", "--slice", "10")[0] == 0
    assert {job["id"] for job in server.board().claim("w1", count=100)} == set(ids[10:])
    assert not source.keys("*import*")


def test_a_board_that_came_back_is_not_taken_for_the_old_one(
    server: Server, source, theirs, imported, killed_at
):
    """Another import of the same jobs made it meanwhile, or a backup brought it back."""
    ids = add(source, theirs, 30)
    killed_at(2)
    assert not source.exists("board")
    server.board().post("x", id_="first")
    backup = source.dump("board")
    with pytest.raises(Killed):
        imported("work-queue", "board", "work", "--slice", "10")
    source.restore("board", 0, backup, replace=True)
    assert imported("work-queue", "board", "work", "--slice", "10")[0] == 0
    assert {job["id"] for job in server.board().claim("w1", count=100)} == {"first", *ids[10:]}


@pytest.mark.parametrize(
    "spelling", ["redis://localhost:{}", "redis://127.0.0.1:{}/0", "redis://127.0.0.1:{}/?db=0"]
)
def test_a_url_may_be_spelled_otherwise_the_second_time(
    server: Server, source, theirs, imported, killed_at, spelling
):
    ids = add(source, theirs, 30)
    board = server.board()
    board.set(tombstones=0)
    killed_at(2)
    with pytest.raises(Killed):
        imported("work-queue", "board", "work", "--slice", "10")
    done = [job["id"] for job in board.claim("w1", count=100)]
    board.mconsume("w1", "ALL")
    url = spelling.format(server.port)
    assert imported("work-queue", "board", "work", "--slice", "10", "--url", url, "--from", url)[0] == 0
    done += [job["id"] for job in board.claim("w1", count=100)]
    assert sorted(done) == sorted(ids)


def test_states_can_be_chosen(server: Server, source, theirs, imported):
    add(source, theirs, 2)
    theirs.lease(source, 60)
    assert imported("work-queue", "board", "work", "--only", "running", "--running")[0] == 0
    assert server.board().count() == 1
    assert imported("work-queue", "board", "work", "--only", "wating")[0] == 2
    assert imported("work-queue", "board", "work", "--running")[0] == 0
    assert server.board().count() == 2


def test_progress_is_told(source: redis.Redis, theirs: Theirs):
    add(source, theirs, 25)
    told: list[int] = []
    moving_on = mover(source)
    moving_on.told = told.append
    moving_on.move(WAITING)
    assert told == [10, 20, 25]


def test_an_import_that_cannot_be_done_says_so(imported, source):
    source.set("board", "x")
    source.lpush("work:queue", "a")
    source.set("work:item:a", json.dumps({}))
    code, output = imported("work-queue", "board", "work")
    assert (code, source.llen("work:queue")) == (1, 1)
    assert "WRONGTYPE" in output
    source.set("work:queue", "no list")
    assert imported("work-queue", "board", "work")[0] == 2
