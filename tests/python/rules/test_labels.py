"""Names, tags, kinds of failure and tracked jobs: given, taken, listed, counted."""

from __future__ import annotations

import lives
import pytest
from expect import check_consistent, ids, refused
from harness import Board, Clock
from harness.board import from_pairs


def listed(board: Board, **filters: object) -> list:
    """The ids that pass, which are as many as are counted."""
    found = board.list_all(justid=True, **filters)
    assert len(found) == board.count(**filters), filters
    return found


def tags_of(board: Board, id: str) -> list | None:
    return board.get(id).get("tags")


# Giving and taking


def test_a_job_keeps_the_tags_of_its_post_in_their_order(clocked_board: Board) -> None:
    clocked_board.post(id="a", tags=["z", "a", "m"])
    clocked_board.mpost("xy", ids=["b", "c"], tags=["a"])
    clocked_board.post(id="d", tags=[])
    assert [tags_of(clocked_board, id) for id in "abcd"] == [["z", "a", "m"], ["a"], ["a"], None]
    assert clocked_board.claim_one(fields=["id", "tags"]) == {"id": "a", "tags": ["z", "a", "m"]}


def test_tags_are_added_and_taken_once(clocked_board: Board) -> None:
    clocked_board.mpost("xy", ids=["a", "b"], tags=["t"])
    assert clocked_board.update("a", "b", "unknown", tag=["u", "t"]) == (2, "0", ["unknown"])
    assert tags_of(clocked_board, "a") == tags_of(clocked_board, "b") == ["t", "u"]
    assert clocked_board.update("a", untag=["t", "never"]).count == 1
    assert (tags_of(clocked_board, "a"), tags_of(clocked_board, "b")) == (["u"], ["t", "u"])
    clocked_board.update("a", tag=["v"], untag=["u"], priority=4)
    job = clocked_board.get("a")
    assert (job["tags"], job["priority"]) == (["v"], 4)
    clocked_board.update("a", untag=["v"])
    assert tags_of(clocked_board, "a") is None


def test_a_change_that_changes_nothing_leaves_no_trace(clocked_board: Board) -> None:
    clocked_board.post(id="j", tags=["t"])
    before = clocked_board.digest()
    assert clocked_board.update("j", tag=["t"], untag=["u"], untrack=True).count == 1
    assert clocked_board.digest() == before


def test_a_job_is_tracked_until_it_no_longer_is(clocked_board: Board, clock: Clock) -> None:
    clocked_board.mpost("xyz", ids=["a", "b", "c"])
    clock.advance(5)
    clocked_board.update("b", "c", track=True)
    job = clocked_board.get("b")
    assert (job["tracked"], job["modified"] - job["posted"]) == (1, 5)
    assert job["version"] > clocked_board.get("a")["version"]
    assert "tracked" not in clocked_board.get("a")
    assert listed(clocked_board, tracked=True) == ["b", "c"]
    clocked_board.update("b", untrack=True)
    assert listed(clocked_board, tracked=True) == ["c"]
    assert listed(clocked_board, not_tracked=True) == ["a", "b"]


@pytest.mark.parametrize("life", lives.ENDED)
def test_an_ended_job_takes_labels_and_nothing_else(clocked_board: Board, life: str) -> None:
    lives.LIVES[life](clocked_board)
    clocked_board.update("j", tag=["kept"], track=True)
    assert listed(clocked_board, tag="kept", tracked=True, state=life) == ["j"]
    with refused(f"ENDED {life} j", clocked_board):
        clocked_board.update("j", tag=["more"], priority=1)
    assert "updated" not in clocked_board.events("j")


def test_a_claimed_job_keeps_its_worker_when_it_is_tagged(clocked_board: Board) -> None:
    token = lives.claimed(clocked_board)
    clocked_board.update("j", tag=["t"])
    assert clocked_board.consume("w1", "j", token=token) == "complete"
    assert clocked_board.tags() == ("0", {})


def test_a_replaced_job_keeps_labels_that_are_not_named_and_is_listed_last(clocked_board: Board) -> None:
    for id in "ab":
        clocked_board.post(id=id, name="n", tags=["t", "u"])
    clocked_board.update("a", track=True)
    clocked_board.post(id="a", replace=True)
    assert listed(clocked_board, name="n") == listed(clocked_board, tag="t") == ["b", "a"]
    assert listed(clocked_board, tracked=True) == ["a"]
    clocked_board.post(id="a", xx=True, tags=["v"], name="m")
    assert listed(clocked_board, tag="t") == listed(clocked_board, name="n") == ["b"]
    assert listed(clocked_board, tag="v", name="m") == ["a"]
    clocked_board.post(id="a", replace=True, tags=[])
    assert tags_of(clocked_board, "a") is None


def test_children_of_a_schedule_have_its_tags(clocked_board: Board, clock: Clock) -> None:
    clocked_board.call("SCHEDULE SET", "s", "x", "EVERY", 10, "TAGS", 2, "b", "a")
    clock.advance(10)
    assert tags_of(clocked_board, "@s@1") == ["b", "a"]
    clocked_board.call("SCHEDULE SET", "s", "y", "TAGS", 1, "c")
    assert from_pairs(clocked_board.call("SCHEDULE GET", "s"))["tags"] == ["c"]
    clocked_board.call("SCHEDULE SET", "s", "z")
    clock.advance(10)
    assert tags_of(clocked_board, "@s@2") == ["c"]
    clocked_board.call("SCHEDULE SET", "s", "z", "TAGS", 0)
    assert "tags" not in from_pairs(clocked_board.call("SCHEDULE GET", "s"))
    clock.advance(10)
    assert listed(clocked_board, tag=["a", "c"]) == ["@s@1", "@s@2"]


MANY = [f"t{n}" for n in range(65)]


@pytest.mark.parametrize(
    ("command", "words", "error"),
    [
        ("POST", ["p", "TAGS", 2, "t", "t"], "TAGS names 't' twice"),
        ("POST", ["p", "TAGS", 1, "t" * 256], "TAGS must be 1 to 255 bytes long"),
        ("POST", ["p", "TAGS", 1, ""], "TAGS must be 1 to 255 bytes long"),
        ("POST", ["p", "TAGS", 65, *MANY], "TAGS must be an integer from 0 to 64"),
        ("POST", ["p", "TAGS", 2, "t"], "TAGS names 2 but fewer follow"),
        ("POST", ["p", "TAGS", 1, "t", "TAGS", 1, "u"], "TAGS is given twice"),
        ("MPOST", [1, "p", "TAGS", -1], "TAGS must be an integer from 0 to 64"),
        ("SCHEDULE SET", ["s", "p", "EVERY", 1, "TAGS", "x"], "TAGS must be an integer from 0 to 64"),
        ("UPDATE", [1, "j", "SET", "TAG", 0], "TAG must be an integer from 1 to 64"),
        ("UPDATE", [1, "j", "SET", "TAG", 2, "\r\n", "\r\n"], "TAG names '??' twice"),
        ("UPDATE", [1, "j", "SET", "UNTAG", 1], "UNTAG names 1 but fewer follow"),
        ("UPDATE", [1, "j", "SET", "TAG", 1, "t", "UNTAG", 1, "t"], "TAG and UNTAG both name 't'"),
        ("UPDATE", [1, "j", "SET", "TRACK", "UNTRACK"], "TRACK and UNTRACK exclude each other"),
        ("UPDATE", [1, "j", "SET", "TRACK", "TRACK"], "TRACK is given twice"),
        ("LIST", ["TAG", ""], "TAG must be 1 to 255 bytes long"),
        ("COUNT", ["KIND"], "KIND needs a value"),
        (
            "LIST",
            ["TAG", "t", "CURSOR", "2.0.0.0"],
            "CURSOR must be 0 or the cursor that the last call returned",
        ),
        ("LIST", ["CURSOR", ">3"], "CURSOR must be 0 or the cursor that the last call returned"),
        ("LIST", ["TAG", "t", "CURSOR", ">x"], "CURSOR must be 0 or the cursor that the last call returned"),
        ("TAGS", ["CURSOR", "1"], "CURSOR must be 0 or the cursor that the last call returned"),
        ("TAGS", ["CURSOR", "x.t"], "CURSOR must be 0 or the cursor that the last call returned"),
        ("TAGS", ["COUNT", 0], "COUNT must be an integer from 1 to 10000"),
        ("TAGS", ["t"], "syntax error near 't'"),
    ],
)
def test_bad_input_is_refused(clocked_board: Board, command: str, words: list, error: str) -> None:
    clocked_board.post(id="j", tags=["old"])
    with refused(f"ERR {error}", clocked_board):
        clocked_board.call(command, *words)


def test_a_job_has_64_tags_at_most_and_a_selection_is_refused_whole(clocked_board: Board) -> None:
    clocked_board.mpost("xy", ids=["few", "many"])
    clocked_board.update("many", tag=MANY[:64])
    assert tags_of(clocked_board, "many") == MANY[:64]
    with refused("LIMIT tags many", clocked_board):
        clocked_board.update("few", "many", tag=["more"])
    clocked_board.update("many", tag=MANY[64:], untag=MANY[:1])


# Listing and counting


@pytest.fixture
def mixed(clocked_board: Board) -> Board:
    """Jobs of every state, tagged by queue, and in turns."""
    for n, life in enumerate([*lives.LIVES, *lives.LIVES]):
        queue = "ab"[n // len(lives.LIVES)]
        id = f"{life}-{queue}"
        lives.LIVES[life](clocked_board, id, queue=queue, name=f"n{n % 3}", tags=[queue, f"m{n % 2}"])
        if n % 4 == 0:
            clocked_board.update(id, track=True)
    return clocked_board


FILTERS: list[dict] = [
    {"name": "n0"},
    {"name": ["n0", "n2"]},
    {"tag": "a"},
    {"tag": ["a", "m0"]},
    {"tag": ["a", "b", "m0", "m1"], "not_tag": "m1"},
    {"kind": "boom"},
    {"kind": ["boom", "error"], "queue": "a"},
    {"tracked": True},
    {"tracked": True, "tag": "m0", "name": ["n0", "n1"]},
    {"tag": "b", "state": ["ready", "failed", "claimed"]},
    {"tag": "b", "not_state": ["ready", "failed"], "not_name": "n1"},
    {"tag": "m0", "worker": "w1"},
    {"tag": "nowhere"},
    {"name": "nobody", "tag": "a"},
]


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_filters_by_label_choose_and_keep_the_order_of_posts(mixed: Board, filters: dict) -> None:
    def passes(job: dict) -> bool:
        def holds(filter: str, value: object) -> bool:
            if filter == "tracked":
                return job.get("tracked") == 1
            if filter == "tag":
                return value in job.get("tags", [])
            return job.get(filter) == value

        for key, values in filters.items():
            values = values if isinstance(values, list) else [values]
            name = key.removeprefix("not_")
            if any(holds(name, value) for value in values) == key.startswith("not_"):
                return False
        return True

    everything = sorted(mixed.list_all(), key=lambda job: job["seq"])
    want = [job["id"] for job in everything if passes(job)]
    assert listed(mixed, **filters) == want
    assert listed(mixed, **filters, rev=None) == want
    assert mixed.list_all(justid=True, rev=True, **filters) == want[::-1]
    for page in [1, 2, 5]:
        assert mixed.list_all(justid=True, count=page, **filters) == want
        assert mixed.list_all(justid=True, count=page, rev=True, **filters) == want[::-1]
    assert ids(mixed.list_all(**filters)) == want


def test_a_label_behind_not_leaves_the_order_of_states(mixed: Board) -> None:
    states = [job["state"] for job in mixed.list_all(not_tag="a")]
    assert states == sorted(
        states, key="claimed ready scheduled complete failed cancelled trashed".split().index
    )
    assert mixed.count(not_tag="a") == len(states) == len(lives.LIVES)


def test_a_page_is_short_where_many_are_looked_at(board: Board) -> None:
    board.post_many(10_050, tags=["common"])
    board.post(id="needle", tags=["common"], queue="rare")
    cursor, found = board.list(tag="common", queue="rare", justid=True)
    assert (found, cursor[0]) == ([], ">")
    assert board.list(tag="common", queue="rare", justid=True, cursor=cursor) == ("0", ["needle"])
    assert board.count(tag="common") == 10_051


def test_a_listing_goes_on_although_the_job_at_its_cursor_is_gone(clocked_board: Board) -> None:
    clocked_board.mpost("abcd", ids=list("abcd"), tags=["t"])
    cursor, first = clocked_board.list(tag="t", justid=True, count=2)
    clocked_board.delete("c")
    clocked_board.post(id="e", tags=["t"])
    assert first == ["a", "b"]
    assert clocked_board.list(tag="t", justid=True, cursor=cursor) == ("0", ["d", "e"])


def test_a_kind_is_found_while_the_record_shows_it(clocked_board: Board, clock: Clock) -> None:
    lives.retrying(clocked_board, "a")
    lives.failed(clocked_board, "b", kind="error")
    assert listed(clocked_board, kind="error") == ["a", "b"]
    assert clocked_board.kinds() == {"error": 1}
    clocked_board.requeue("b")
    assert clocked_board.kinds() == {}
    assert listed(clocked_board, kind="error", state="ready") == ["b"]
    assert clocked_board.post("new", id="b", replace=True)
    assert listed(clocked_board, kind="error") == ["a"]
    clocked_board.set(lapses=0)
    lives.claim(clocked_board, "b", "w1", lease=5)
    clock.advance(5)
    assert listed(clocked_board, kind="lapsed") == ["b"]


def test_jobs_are_found_by_the_user_they_were_posted_for(clocked_board: Board) -> None:
    clocked_board.mpost("xyz", ids=["a", "b", "c"], user="eve")
    clocked_board.post(id="d", user="fay", priority=9)
    clocked_board.post(id="e")
    clocked_board.post(id="b", replace=True, user="fay")
    clocked_board.post(id="a", replace=True)
    assert listed(clocked_board, user="eve") == ["c", "a"]
    assert listed(clocked_board, user=["fay", "eve"], not_state="scheduled") == ["c", "d", "b", "a"]
    clocked_board.delete("c")
    assert listed(clocked_board, user="eve") == ["a"]


def test_a_selection_by_filter_takes_labels(clocked_board: Board) -> None:
    clocked_board.mpost("xyz", ids=["a", "b", "c"], name="n")
    lives.failed(clocked_board, "d", name="n")
    words = ["WHERE", "NAME", "n", "COUNT", 2]
    count, cursor, held = clocked_board.call("UPDATE", *words, "SET", "TAG", 1, "t", "TRACK")
    assert (count, held) == (2, [])
    clocked_board.call("UPDATE", *words, "CURSOR", cursor, "SET", "TAG", 1, "t", "TRACK")
    assert listed(clocked_board, tag="t", tracked=True) == ["a", "b", "c", "d"]
    clocked_board.call("UPDATE", "WHERE", "TAG", "t", "SET", "UNTAG", 1, "t", "PRIORITY", 3)
    assert listed(clocked_board, tag="t") == ["d"]
    assert clocked_board.get("a")["priority"] == 3


# Top tags


def test_the_most_used_tags_come_first(clocked_board: Board) -> None:
    for n in range(1, 13):
        clocked_board.mpost("x" * n, tags=[f"t{n:02}", "all"])
    clocked_board.post(tags=["b", "a", "t12"])
    cursor, first = clocked_board.tags(count=3)
    assert list(first.items()) == [("all", 78), ("t12", 13), ("t11", 11)]
    cursor, second = clocked_board.tags(count=9, cursor=cursor)
    assert list(second) == [f"t{n:02}" for n in range(10, 1, -1)]
    cursor, third = clocked_board.tags(cursor=cursor)
    assert (cursor, list(third.items())) == ("0", [("a", 1), ("b", 1), ("t01", 1)])
    assert clocked_board.tags(cursor="99.z")[1] == first | second | third


def test_every_way_in_which_a_job_goes_counts(clocked_board: Board, clock: Clock) -> None:
    clocked_board.set(retain_cancelled=0, retain_failed=50)
    for life in ["gone", "cancelled", "failed", "ready"]:
        getattr(lives, life)(clocked_board, life, tags=["t", life])
    assert clocked_board.tags()[1] == {"t": 2, "failed": 1, "ready": 1}
    clock.advance(50)
    assert clocked_board.tags()[1] == {"ready": 1, "t": 1}
    clocked_board.delete("ready")
    assert clocked_board.tags() == ("0", {})
    assert clocked_board.count(tag="t") == 0


def test_tags_of_an_absent_board_are_none(clocked_board: Board) -> None:
    assert clocked_board.tags() == ("0", {})
    assert clocked_board.count(tag="t") == clocked_board.count(tracked=True) == 0
    assert not clocked_board.client.exists("board")


def test_tags_may_be_any_bytes(server) -> None:
    board = Board(server.raw_client())
    tag = bytes(range(255))
    board.post(id="j", tags=[tag, b"."])
    assert board.call("LIST", "TAG", tag, "JUSTID") == [b"0", [b"j"]]
    cursor, [row] = board.call("TAGS", "COUNT", 1)
    assert list(from_pairs(row).values()) == [tag, 1]
    assert board.call("TAGS", "CURSOR", cursor)[1:] == [[]] or cursor == b"1." + tag


def test_replies_have_the_shape_of_the_protocol(server, protocol: int) -> None:
    board = server.board(protocol=protocol)
    board.post(id="j", tags=["t", "u"])
    rows = board.call("TAGS")[1]
    assert rows == [{"tag": "t", "jobs": 1}, {"tag": "u", "jobs": 1}] or protocol == 2
    assert rows == [["tag", "t", "jobs", 1], ["tag", "u", "jobs", 1]] or protocol == 3
    assert board.get("j", fields=["tags"])["tags"] == ["t", "u"]


# Copies


def filled(board: Board) -> dict:
    """Labels of every sort, and what is read of them."""
    lives.busy(board)
    board.update("ready", "failed", tag=["x", "y"], track=True)
    board.update("failed", untag=["x"])
    board.post(id="named", name="n", tags=["y", "z"])
    return read(board)


def read(board: Board) -> dict:
    filters = [
        {"tag": "y"},
        {"tag": ["x", "z"]},
        {"name": "n"},
        {"kind": ["boom", "error"]},
        {"tracked": True},
    ]
    return {str(one): listed(board, **one) for one in filters} | {"top": board.tags()}


def test_labels_come_back_from_every_kind_of_copy(fresh_server) -> None:
    server = fresh_server(appendonly=True)
    board = server.board()
    before, digest = filled(board), board.digest()
    board.client.execute_command("DEBUG", "RELOAD")
    assert (read(board), board.digest()) == (before, digest)
    assert board.client.copy("board", "copy")
    assert read(Board(board.client, "copy")) == before
    server.restart(kill=True)
    board = server.board()
    assert (read(board), board.digest()) == (before, digest)
    board.client.bgrewriteaof()
    board.update("named", tag=["more"])
    server.restart()
    assert listed(server.board(), tag="more") == ["named"]
    check_consistent(server.board())


def test_a_replica_lists_as_its_primary(fresh_server) -> None:
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    replica.wait_synced(primary)
    before = filled(primary.board())
    replica.wait_synced(primary)
    assert read(replica.board()) == before
    assert replica.board().digest() == primary.board().digest()
    replica.client().replicaof("NO", "ONE")
    replica.board().update("named", tag=["here"], untag=["z"])
    assert listed(replica.board(), tag="here") == ["named"]
    check_consistent(replica.board())
