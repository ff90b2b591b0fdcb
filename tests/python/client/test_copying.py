"""`jobboard copy` to another kind of server, `jobboard archive`, and the commands beside them."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import KINDS, Server, wait_until
from harness.server import free_port
from jobboard import After, Board, Exists, ShardedBoard, Worker
from jobboard.cli import main
from jobboard.copying import boards
from jobboard.copying.archive import Archive
from jobboard.copying.stores import StoreError, store_of

JOBBOARD = Path(sys.executable).with_name("jobboard")


@pytest.fixture
def other(pool: Any, kind: str) -> Iterator[Server]:
    """A server of another kind."""
    server = pool.borrow(KINDS[(KINDS.index(kind) + 1) % len(KINDS)])
    yield server
    server.check_health()
    server.close_clients()


def url(server: Server) -> str:
    return f"redis://127.0.0.1:{server.port}"


def raw(server: Server) -> Board:
    return Board("board", server.client(decode_responses=False), codec="raw")


def copy(server: Server, other: Server, *words: str) -> int:
    return main(["copy", "board", "--url", url(server), "--to", url(other), *words])


def fill(jobs: Board) -> None:
    jobs.settings_set({"lease": "2m", "retries": 4})
    jobs.settings_set({"rate": 100}, limit="api")
    jobs.settings_set({"concurrency": 3, "limits": ["api"]}, queue="mails")
    jobs.schedule_set("nightly", {"a": 1}, cron="0 3 * * *", tz="Europe/Berlin", name="report", tags=["x"])
    jobs.schedule_set("often", [1], every="1h", queue="mails", backoff=("10s", "1h"), meta={"m": "n"})
    jobs.schedule_pause("often")
    jobs.post(
        {"to": "ann"},
        **{"id": "full", "name": "mail", "queue": "mails", "group": "acme", "priority": 7, "retries": 2},
        **{"tags": ["b", "a"], "meta": {"m": "ü"}, "user": "eve", "cost": 3, "unique": "key"},
    )
    jobs.update("full", track=True)
    jobs.post("later", id="later", delay="1h")
    jobs.post("parent", id="parent", after=["child", "full"])
    jobs.post("child", id="child", parent="parent", share=2)
    jobs.depend_add("parent", "child")
    jobs.post("grandchild", id="grandchild", parent="child", after=[After(["later"], "cancel")])
    jobs.post("bad", id="bad", queue="aside", retries=0)
    jobs.post("thrown", id="thrown", queue="aside")
    for _ in range(2):
        [job] = jobs.claim("w", queues=["aside"])
        if job.id == "bad":
            jobs.fail("w", "bad", "ValueError", "no\nsuch thing", job.token)
        else:
            jobs.trash("w", "thrown", job.token, reason="no image")
    jobs.post_many(range(1200), queue="many", name="n")
    jobs.post("gone", id="cancelled")
    jobs.cancel("cancelled")


FIELDS = (
    "id state queue name payload priority left kind message meta reason after tags tracked user unique "
    "parent share group cost due"
).split()


def shown(board: Board) -> dict[str, Any]:
    found = {job.id: job.as_dict() for job in board.list(fields=FIELDS, not_={"state": "cancelled"})}
    for record in found.values():
        record["after"] = sorted(record.get("after", []))
        if record["state"] in ("failed", "trashed"):
            for name in ("unique", "parent", "share"):
                record.pop(name, None)
    return found


def test_a_board_is_copied_to_another_kind_of_server(jobs, server, other, capsys) -> None:
    fill(jobs)
    before, order = shown(raw(server)), [job.id for job in jobs.list(state="ready", queue="many")]
    assert copy(server, other) == 0
    said = capsys.readouterr().out
    assert said.startswith("copied 1207 jobs, 2 schedules, 5 settings; 0 jobs were there already"), said
    there = raw(other)
    assert shown(there) == before
    assert [job.id for job in there.list(state="ready", queue="many")] == order
    rows = [{**row, "next": 0, "due": 0} for row in raw(server).schedule_list()]
    assert [{**row, "next": 0, "due": 0} for row in there.schedule_list()] == rows
    assert there.settings_get("lease")["lease"] == (120_000, "board")
    assert there.settings_get("limits", queue="mails")["limits"].value == ["api"]
    assert there.settings_get("rate", limit="api")["rate"].value == 100
    assert there.explain("grandchild")["reasons"][0]["jobs"][0]["onfailure"] == "cancel"
    assert raw(server).claim("w", queues=[]) == [], "the source stays paused"
    [job] = there.claim("w", queues=["many"])
    assert job.payload == b"0"


def test_called_again_it_doubles_nothing_and_brings_what_is_new(jobs, server, other, capsys) -> None:
    jobs.post_many(range(20), queue="q")
    assert copy(server, other) == 0
    there = raw(other)
    for job in there.claim("w", queues=["q"], count=10):
        there.consume("w", job.id, job.token)
    there.settings_set({"tombstones": 0})  # nobody remembers that they are done
    jobs.post("new", id="new")
    assert copy(server, other) == 0
    assert "copied 1 jobs" in capsys.readouterr().out
    assert there.count(queue="q") == 10 and there.get("new").payload == b'"new"'


def test_another_target_gets_all_and_what_comes_meanwhile_is_told(
    jobs, server, other, capsys, monkeypatch
) -> None:
    jobs.post_many(range(20), queue="q")
    real = boards.Copy._settings

    def posting(self: Any) -> None:
        jobs.post("meanwhile", id="late", queue="q")
        real(self)

    monkeypatch.setattr(boards.Copy, "_settings", posting)
    assert copy(server, other) == 0
    assert "1 were posted meanwhile: call it again" in capsys.readouterr().err
    monkeypatch.undo()
    assert main(["copy", "board", "second", "--url", url(server), "--to", url(other)]) == 0
    assert "copied 21 jobs" in capsys.readouterr().out
    assert copy(server, other) == 0, "the first has another note"
    assert raw(other).count(queue="q") == 21


def test_what_the_source_has_let_go_of_does_not_keep_a_job_back(jobs, server, other, capsys) -> None:
    jobs.post(1, id="first", queue="q", unique="key", for_="1ms")
    wait_until(lambda: _posted(jobs, "second"))
    jobs.settings_set({"retain-complete": "1h"})
    jobs.post("parent", id="parent", queue="p")
    jobs.post("child", id="child", parent="parent")
    [job] = jobs.claim("w", queues=["p"])
    jobs.consume("w", "parent", job.token)
    assert copy(server, other) == 0, capsys.readouterr()
    assert sorted(job.id for job in raw(other).list()) == ["child", "first", "second"]


def _posted(jobs: Board, id: str) -> bool:
    try:
        return jobs.post(2, id=id, queue="q", unique="key", for_="1ms") is not None
    except Exists:
        return False


@pytest.mark.parametrize("at", [1, 2, 3, 5, 8])
def test_a_copy_that_is_killed_anywhere_goes_on(jobs, server, other, monkeypatch, at, capsys) -> None:
    fill(jobs)
    monkeypatch.setattr(boards, "SLICE", 400)
    before, calls = shown(raw(server)), [0]

    def breaking(method: Any) -> Any:
        def call(self: Any, *words: Any) -> Any:
            calls[0] += 1
            if calls[0] == at:
                raise KeyboardInterrupt
            return method(self, *words)

        return call

    for name in ("_settings", "_set_aside", "_post", "_wait", "_schedules"):
        monkeypatch.setattr(boards.Copy, name, breaking(getattr(boards.Copy, name)))
    assert copy(server, other) == 130
    there = raw(other)
    if at > 3:
        assert there.claim("thief", queues=[]) == [], "nothing is done before all is there"
    assert copy(server, other) == 0
    assert shown(there) == before


def test_claimed_jobs_are_waited_for(jobs, server, other, capsys) -> None:
    jobs.post("x", id="x")
    [job] = jobs.claim("w")
    assert copy(server, other) == 1
    assert "1 jobs are claimed. The source is paused now" in capsys.readouterr().err
    assert copy(server, other, "--running") == 0
    assert raw(other).get("x").state == "ready"


def test_a_board_that_is_not_there(server, other, capsys) -> None:
    assert copy(server, other) == 1
    assert "there is no board 'board'" in capsys.readouterr().err


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_copy_of_a_board_onto_itself_changes_nothing(jobs, server, host, capsys) -> None:
    jobs.post_many(range(3), queue="q")
    before = jobs.info(digest=True)["digest"]
    itself = ["--url", url(server), "--to", f"redis://{host}:{server.port}/0"]
    assert main(["copy", "board", *itself]) == 2
    assert "source and target are the same board" in capsys.readouterr().err
    assert jobs.info(digest=True)["digest"] == before
    assert main(["copy", "board", "other", *itself]) == 0
    assert main(["copy", "board", "--url", url(server), "--to", f"redis://{host}:{server.port}/1"]) == 0


def test_a_copy_to_a_replica_changes_nothing(jobs, server, fresh_server, capsys) -> None:
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    replica.wait_synced(primary)
    jobs.post(1)
    assert copy(server, replica) == 1
    says = "the target is a replica, which takes no writes: name its primary in --to"
    assert says in capsys.readouterr().err
    assert not jobs.info()["paused"]


def test_another_job_of_the_same_id_is_told_and_copied_once_that_is_mended(
    jobs, server, other, capsys
) -> None:
    for id in ("same", "payload", "name", "thrown"):
        jobs.post({"to": id}, id=id, name="mail", queue="q")
    jobs.trash("w", "thrown", jobs.claim_id("w", "thrown").token)
    there = raw(other)
    there.post(b'{"to":"same"}', id="same", name="mail", queue="elsewhere")
    there.post(b"another", id="payload", name="mail")
    there.post(b'{"to":"name"}', id="name", name="letter")
    there.post(b"another", id="thrown", name="mail")
    assert copy(server, other) == 1
    out, errors = capsys.readouterr()
    assert out.startswith("copied 0 jobs, 0 schedules, 0 settings; 1 jobs were there already")
    assert "payload: the target has another job of this id, with another payload" in errors
    assert "name: the target has another job of this id, with another name" in errors
    assert "thrown: the target has another job of this id" in errors
    assert "3 were refused: mend that and call it again\n" in errors
    assert there.get("payload").payload == b"another" and not there.info()["paused"]

    [done] = [there.claim_id("w", id) for id in ("same",)]
    there.consume("w", "same", done.token)
    there.settings_set({"tombstones": 0})  # nobody remembers that it is done
    there.delete("payload", "name", "thrown")
    assert copy(server, other) == 0, capsys.readouterr()
    assert {job.id: job.payload for job in there.list()} == {
        id: json.dumps({"to": id}).replace(" ", "").encode() for id in ("payload", "name", "thrown")
    }
    assert copy(server, other) == 0
    assert "copied 0 jobs, 0 schedules, 0 settings; 0 jobs" in capsys.readouterr().out


def test_more_refusals_than_a_note_has_room_for_keep_the_target_paused(
    jobs, server, other, capsys, monkeypatch
) -> None:
    monkeypatch.setattr(boards, "AGAIN", 50)
    ids = [f"id-{number}" for number in range(10)]
    jobs.post_many(range(10), ids=ids)
    there = raw(other)
    there.post_many([b"x"] * 10, ids=ids)
    assert copy(server, other) == 1
    assert "10 were refused: mend that and call it again, the target stays paused until then" in (
        capsys.readouterr().err
    )
    assert there.info()["paused"]
    there.delete(*ids)
    assert copy(server, other) == 0
    assert sorted(job.id for job in there.list()) == ids and not there.info()["paused"]


@pytest.mark.every_server
def test_a_sharded_board_is_copied_to_a_cluster_and_archived(server, cluster, tmp_path, capsys) -> None:
    source = ShardedBoard("board", server.client(decode_responses=False), shards=3)
    source.settings_set({"retain-complete": "1h"})
    source.post_many(range(20), ids=[f"j{number}" for number in range(20)], queue="q")
    source.schedule_set("nightly", 1, cron="0 3 * * *")
    words = ["--shards", "3", "--url", url(server)]
    to = f"redis://127.0.0.1:{cluster.primaries[0].port}"
    assert main(["copy", "board", *words, "--to", to, "--to-cluster"]) == 0, capsys.readouterr()
    assert "copied 20 jobs, 1 schedules, 3 settings" in capsys.readouterr().out
    target = ShardedBoard("board", cluster.client(decode_responses=False), shards=3)
    assert sorted(job.payload for job in target.list()) == list(range(20))
    assert [job.payload for job in target.get_many(["j3", "j7"])] == [3, 7], "each is where its id leads"
    for job in target.claim("w", queues=["q"], count=20):
        target.consume("w", job.id, job.token)
    store = tmp_path / "jobs.db"
    archive = ["archive", "board", str(store), "--once", "--shards", "3", "--url", to, "--cluster"]
    done = target.count(state="complete")
    assert done > 0
    for _ in range(2):
        assert main(archive) == 0
        with sqlite3.connect(store) as db:
            assert db.execute("SELECT count(*) FROM jobs").fetchone() == (done,)
            names = {name for (name,) in db.execute("SELECT board FROM jobs")}
            assert names <= {"board:{0}", "board:{1}", "board:{2}"}


# Archives


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    pytest.importorskip("psycopg")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    initdb = shutil.which("initdb") or (folders and str(folders[-1] / "initdb"))
    if not initdb:
        pytest.skip("no PostgreSQL on this machine")
    folder, bin = Path(tempfile.mkdtemp(prefix="jobboard-postgres-")), Path(initdb).resolve().parent
    run = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.getuid() == 0 else []
    if run:
        os.chown(folder, 65534, 65534)
    data, quiet = folder / "data", {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(
        [*run, bin / "initdb", "-D", data, "-U", "me", "-A", "trust", "-E", "UTF8"], check=True, **quiet
    )
    port = free_port()
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
    control = [*run, bin / "pg_ctl", "-D", data, "-w"]
    subprocess.run([*control, "-o", options, "start"], check=True, **quiet)
    yield f"postgresql://me@127.0.0.1:{port}/postgres"
    subprocess.run([*control, "-m", "immediate", "stop"], check=True, **quiet)
    shutil.rmtree(folder)


class Place:
    """A store, and what stands in it."""

    def __init__(self, kind: str, folder: Path, postgres: str = "") -> None:
        names = {"file": str(folder / "jobs.ndjson"), "sqlite": str(folder / "jobs.db"), "postgres": postgres}
        self.kind, self.where = kind, names[kind]

    def rows(self) -> list[dict[str, Any]]:
        if self.kind == "file":
            return [json.loads(line) for line in Path(self.where).read_text().splitlines()]
        if self.kind == "sqlite":
            found = sqlite3.connect(self.where).execute("SELECT record FROM jobs").fetchall()
            return [json.loads(one) for (one,) in found]
        import psycopg

        with psycopg.connect(self.where) as db:
            return [one for (one,) in db.execute("SELECT record FROM jobs").fetchall()]


@pytest.fixture(params=["file", "sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    where = request.getfixturevalue("postgres") if request.param == "postgres" else ""
    found = Place(request.param, tmp_path, where)
    yield found
    if where:
        import psycopg

        with psycopg.connect(where) as db:
            db.execute("DROP TABLE IF EXISTS jobs, jobs_revision")


def end(jobs: Board, first: int, last: int) -> None:
    jobs.settings_set({"retain-complete": "1h"})
    for number in range(first, last):
        jobs.post(number, id=f"j{number}", name="n")
    Worker(jobs, handlers=done()).run(burst=True)


def done() -> Any:
    from jobboard import Handlers

    handlers = Handlers()
    handlers.handler("n")(lambda context, payload: None)
    return handlers


def test_ended_jobs_are_kept_and_a_second_run_goes_on(jobs, server, place, capsys) -> None:
    command = ["archive", "board", place.where, "--once", "--url", url(server)]
    end(jobs, 0, 30)
    jobs.post("ü\x00", id="waits")
    assert main(command) == 0
    assert sorted(row["id"] for row in place.rows()) == sorted(f"j{number}" for number in range(30))
    end(jobs, 30, 40)
    jobs.cancel("waits")
    assert main(command) == 0
    found = place.rows()
    assert len(found) == 41 and {row["state"] for row in found} == {"complete", "cancelled"}
    assert next(row for row in found if row["id"] == "j5")["payload"] == 5
    assert main(command) == 0
    assert len(place.rows()) == 41
    assert "archived 30 jobs" in capsys.readouterr().out


def test_a_board_that_was_made_anew_is_archived_from_its_beginning(jobs, server, place, capsys) -> None:
    command = ["archive", "board", place.where, "--once", "--url", url(server)]
    end(jobs, 0, 30)
    assert main(command) == 0
    seen = jobs.info()
    server.client().delete("board")
    end(jobs, 0, 2)
    assert jobs.info()["revision"] < seen["revision"], "it would be taken for the same one"
    assert main(command) == 0
    assert "this is another board than last time" in capsys.readouterr().err
    end(jobs, 100, 140)
    assert jobs.info()["revision"] > seen["revision"]
    assert main(command) == 0
    ids = [f"j{number}" for number in (*range(30), *range(2), *range(100, 140))]
    assert sorted(row["id"] for row in place.rows()) == sorted(ids)
    server.client().delete("board")
    end(jobs, 200, 260)
    assert jobs.info()["revision"] > seen["revision"]
    assert main(command) == 0
    assert {row["id"] for row in place.rows()} >= {f"j{number}" for number in range(200, 260)}


def test_a_board_that_is_made_anew_during_a_look_is_looked_at_again(jobs, server, place, monkeypatch) -> None:
    end(jobs, 0, 30)
    store = store_of(place.where, "board")
    archive, real = Archive(jobs, store), Board.list_changed
    made: list[int] = []

    def anew(*words: Any, **options: Any) -> Any:
        if not made:
            made.append(1)
            server.client().delete("board")
            end(jobs, 100, 110)
        return real.__get__(jobs, Board)(*words, **options)

    monkeypatch.setattr(jobs, "list_changed", anew, raising=False)
    archive.look()
    assert store.revisions() == {jobs.info()["created"]: jobs.info()["revision"]}
    store.close()
    assert {row["id"] for row in place.rows()} == {f"j{number}" for number in range(100, 110)}


def test_boards_of_one_store_may_have_jobs_of_one_id(jobs, server, place) -> None:
    for name in ("one", "two"):
        board = Board(name, server.client(decode_responses=False))
        board.post(0, id="j0")
        board.cancel("j0")  # no worker: both records have the same version
        assert main(["archive", name, place.where, "--once", "--url", url(server)]) == 0
    assert [row["id"] for row in place.rows()] == ["j0", "j0"]


def test_an_archive_that_breaks_off_hands_over_again_and_misses_nothing(jobs, place, monkeypatch) -> None:
    from jobboard.copying import archive

    monkeypatch.setattr(archive, "SLICE", 10)
    end(jobs, 0, 35)
    store = store_of(place.where, "board")
    added = []
    real = store.add

    def breaking(created: int, rows: Any, revision: Any) -> None:
        if len(added) == 2:
            raise KeyboardInterrupt
        added.append(rows)
        real(created, rows, revision)

    store.add = breaking  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        Archive(jobs, store).look()
    store.close()
    again = store_of(place.where, "board")
    Archive(jobs, again).look()
    again.close()
    found = [row["id"] for row in place.rows()]
    assert set(found) == {f"j{number}" for number in range(35)}
    assert place.kind == "file" or len(found) == 35


def test_an_archive_follows_a_board_until_it_is_told_to_end(jobs, server, place) -> None:
    end(jobs, 0, 3)
    command = [JOBBOARD, "archive", "board", place.where, "--every", "50ms", "--url", url(server)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        store = Path(place.where) if place.kind != "postgres" else None
        wait_until(lambda: (store is None or store.exists()) and _count(place) == 3, 120)
        end(jobs, 3, 5)
        wait_until(lambda: _count(place) == 5, 120)
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=60)[0] == "archived 5 jobs\n"
    finally:
        process.kill()


def _count(place: Place) -> int:
    try:
        return len(place.rows())
    except Exception:  # not yet made
        return -1


def test_what_no_store_can_keep_is_kept_as_text(jobs, server, place) -> None:
    """NUL, half a surrogate pair, NaN, and a backslash before what looks like an escape."""
    client = server.client(decode_responses=False)
    for number, data in enumerate((rb'"a\u0000b"', rb'"\ud800"', rb'"\\u0000"', b"[NaN]", b"\xff")):
        client.execute_command("JOB.POST", "board", data, "ID", f"j{number}", "META", 1, "m", b"\xff\x00")
        jobs.cancel(f"j{number}")
    assert main(["archive", "board", place.where, "--once", "--url", url(server)]) == 0
    found = {row["id"]: row["payload"] for row in place.rows()}
    assert (found["j0"], found["j2"], found["j3"]) == ("a\ufffdb", "\\u0000", ["nan"])
    assert len(found) == 5


FOREIGN = "the last line of .* is no job of an archive: name another file"


@pytest.mark.parametrize(
    "cut", ['{"boa', '{"board": "bo', '{"board": "board", "board_created": 1, "id": "ha']
)
def test_a_line_that_was_cut_off_stays_a_line_of_its_own(jobs, tmp_path, cut) -> None:
    path = tmp_path / "jobs.ndjson"
    path.write_text(cut)
    end(jobs, 0, 1)
    for _ in range(2):
        store = store_of(str(path), "board")
        Archive(jobs, store).look()
        store.close()
    first, second = path.read_text().splitlines()
    assert first == cut and json.loads(second)["id"] == "j0"


@pytest.mark.parametrize("text", ["hello\n", '{"id": 1}\n', "[]\n", "\n", "a,b\n1,2", '{"id": "ha', "{}"])
def test_a_file_of_somebody_else_is_not_written_to(jobs, tmp_path, text) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with pytest.raises(StoreError, match=FOREIGN):
        store_of(str(path), "board")
    assert path.read_text() == text


def test_a_last_line_may_be_long(jobs, tmp_path) -> None:
    jobs.post("x" * 1_000_000, id="long")
    jobs.cancel("long")
    path = tmp_path / "jobs.ndjson"
    for _ in range(2):
        store = store_of(str(path), "board")
        Archive(jobs, store).look()
        store.close()
    assert len(path.read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("store", "says"),
    [
        ("sqlite:", "'sqlite:' keeps nothing: the store is a file or a database"),
        ("sqlite::memory:", "keeps nothing"),
        (" ", "keeps nothing"),
        ("sqlite:///jobs.db", "is no store: there are jobs.ndjson"),
        ("mysql://u:secret@h/d", "'mysql://…@h/d' is no store"),
        ("missing/jobs.db", "there is no folder missing"),
        ("missing/jobs.ndjson", "missing/jobs.ndjson: No such file or directory"),
        ("folder", "folder is no file"),
        ("text.db", "text.db: file is not a database"),
        ("/dev/null", "/dev/null is no file"),
        ("noted.ndjson", "noted.ndjson.revision is no note of an archive"),
        ("postgresql://u:secret@127.0.0.1:1/d", "postgresql://…@127.0.0.1:1/d: connection "),
    ],
)
def test_stores_that_cannot_be_are_told_as_such(
    jobs, server, tmp_path, monkeypatch, capsys, store, says
) -> None:
    if store.startswith("postgresql"):
        pytest.importorskip("psycopg")
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("text.db").write_text("no database\n" * 100)
    Path("noted.ndjson.revision").write_text("[]")
    jobs.post(1)
    status = 2 if "keeps nothing" in says or "is no store" in says else 1
    assert main(["archive", "board", store, "--once", "--url", url(server)]) == status
    errors = capsys.readouterr().err
    assert says in errors and "secret" not in errors and len(errors.splitlines()) == 1


def test_psycopg_is_missing(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreError, match=r"PostgreSQL needs psycopg: pip install 'psycopg\[binary\]'"):
        store_of("postgresql://h/d", "board")


def test_an_archive_of_no_board_says_so(server, tmp_path, capsys) -> None:
    assert main(["archive", "bord", str(tmp_path / "a.db"), "--once", "--url", url(server)]) == 1
    assert "there is no board 'bord'" in capsys.readouterr().err


# Commands


@pytest.fixture
def cli(server, monkeypatch, capsys):
    monkeypatch.setenv("JOBBOARD_URL", url(server))

    def run(*words: str) -> tuple[int, str, str]:
        return (main(words), *capsys.readouterr())

    return run


def test_update(cli, jobs) -> None:
    jobs.post_many(range(3), ids=["a", "b", "c"], queue="q")
    changes = ["priority=5", "delay=1h", "tag=x", "tag=y", "meta=k=v", 'payload={"n": 1}', "track"]
    sets = [word for one in changes for word in ("--set", one)]
    assert cli("update", "board", "a", "b", *sets)[:2] == (0, "update: 2\n")
    job = jobs.get("a")
    assert (job.priority, job.state, job.tags, job.meta) == (5, "scheduled", ["x", "y"], {"k": "v"})
    assert (job.payload, job.tracked) == ({"n": 1}, True)
    assert cli("update", "board", "--queue", "q", "--set", "queue=slow")[:2] == (0, "update: 3\n")
    assert jobs.count(queue="slow") == 3
    assert cli("update", "board", "a", "--set", "meta=a=1", "--set", 'meta={"b": 2}')[0] == 0
    assert jobs.get("a").meta == {"k": "v", "a": "1", "b": "2"}
    assert cli("update", "board", "a", "--set", "at=2100-01-31T08:00Z", "--set", "track=no")[0] == 0
    assert (jobs.get("a").due, jobs.get("a").tracked) == (4_105_065_600_000, None)
    for yes, no in (("yes", "no"), ("True", "false"), ("1", "0")):
        assert cli("update", "board", "a", "--set", f"track={yes}")[0] == 0
        assert jobs.get("a").tracked
        assert cli("update", "board", "a", "--set", f"untrack={no}")[0] == 0
        assert jobs.get("a").tracked
        assert cli("update", "board", "a", "--set", f"track={no}")[0] == 0
        assert not jobs.get("a").tracked
    wrongs = {
        "colour=1": "--set colour: there are at, delay, ",
        "priority=high": "is a number, not 'high'",
        "track=maybe": "--set track is yes or no (also true, false, 1, 0), not 'maybe'",
        "track=": "--set track is yes or no",
        "meta=x": """--set meta is FIELD=VALUE, or JSON such as {"to": "ann"}, not 'x'""",
        "meta={x": "this is no JSON",
        'meta={"a": []}': "its values are texts and numbers, not []",
        "at=2100-01-31T08:00": "at is a time with its zone, such as 2030-01-31T08:00+01:00",
        "at=noon": "at is a time with its zone",
        "delay=5": "delay is text with a unit",
        "payload={": "the payload is no JSON",
        "queue=": "queue is a text of 1 to 255 bytes",
        "progress=high": "is a number",
        "retries=-2": "retries must be from -1",
    }
    for wrong, says in wrongs.items():
        status, _, errors = cli("update", "board", "a", "--set", wrong)
        assert status == 2 and says in errors, (wrong, errors)


def test_flow_and_groups(cli, jobs, tmp_path) -> None:
    file = tmp_path / "flow.json"
    rows = [
        {"label": "a", "payload": 1, "name": "n", "group": "acme"},
        {"label": "b", "payload": 2, "id": "bee", "after": ["a"], "onfailure": "cancel"},
    ]
    file.write_text(json.dumps(rows))
    status, out, _ = cli("flow", "board", str(file))
    assert status == 0 and out.splitlines()[1] == "b bee"
    assert jobs.get("bee").state == "blocked"
    _, out, _ = cli("groups", "board")
    assert out.splitlines()[0].split() == [
        "QUEUE",
        "GROUP",
        "READY",
        "CLAIMED",
        "SCHEDULED",
        "BLOCKED",
        "FAILED",
    ]
    assert out.splitlines()[1].split()[:3] == ["default", "acme", "1"]
    wrongs = {
        "{": "flow.json is no JSON",
        "[" * 100_000: "flow.json is no JSON",
        "{}": "has no list of jobs",
        "[]": "a flow has at least one job",
        '[{"colour": 1}]': "'colour'",
        '[{"label": 5}]': "label is text",
        '[{"label": "a", "onfailure": "cancel"}]': "a: onfailure goes with after",
        '[{"label": "a"}, {"after": "a"}]': "after is a list",
        '[{"label": "a"}, {"after": ["a"], "onfailure": "stop"}]': "onfailure must be one of hold, cancel",
        '[{"label": "a", "at": "noon"}]': "at is a time with its zone",
    }
    for wrong, says in wrongs.items():
        file.write_text(wrong)
        status, _, errors = cli("flow", "board", str(file))
        assert status == 2 and says in errors, (wrong[:100], errors)


def test_a_misspelt_label_is_no_id(cli, jobs, tmp_path) -> None:
    jobs.post(0, id="earlier", retries=0)
    jobs.post(0, id="done")
    done = jobs.claim_id("w", "done")
    jobs.consume("w", "done", done.token)
    assert jobs.get("done") is None
    file = tmp_path / "flow.json"
    for word, others in (("after", '["fetsh"]'), ("parent", '"fetsh"')):
        file.write_text(f'[{{"label": "fetch"}}, {{"label": "read", "{word}": {others}}}]')
        status, _, errors = cli("flow", "board", str(file))
        says = "no such job fetsh in node 'read', and no job of the flow has that label"
        assert status == 1 and f"{says}; there are fetch, read" in errors, errors
    assert jobs.count() == 1, "nothing was posted"
    file.write_text('[{"label": "a", "id": "x"}, {"after": ["a", "x", "earlier", "done"]}]')
    assert cli("flow", "board", str(file))[0] == 0
    file.write_text('[{"label": "b", "after": ["who"], "strict": false}]')
    assert cli("flow", "board", str(file))[0] == 0


def test_standard_input_is_named_so(cli, monkeypatch) -> None:
    for command in (["flow", "board", "-"], ["post", "board", "--lines", "-"]):
        monkeypatch.setattr("sys.stdin", io.StringIO("{"))
        status, _, errors = cli(*command)
        assert status == 2 and errors.startswith("jobboard: standard input"), errors


def test_completion(cli) -> None:
    status, out, _ = cli("completion", "bash")
    assert status == 0 and "_ARGCOMPLETE" in out and "jobboard" in out
    line = "jobboard arch"
    script = f"{out}\nCOMP_WORDS=(jobboard arch); COMP_CWORD=1; COMP_LINE='{line}'; COMP_POINT={len(line)}\n"
    script += 'COMP_TYPE=9; _python_argcomplete jobboard arch jobboard; echo "${COMPREPLY[@]}"'
    path = f"{JOBBOARD.parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script], env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert done.stdout.strip() == "archive", done.stderr
