"""Every version's logs and snapshots load on every server, to what they held, and go on working.

The fixtures are in tests/fixtures, and made by `make fixtures`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aof import errors, pipe
from contents import contents, missing
from expect import check_consistent, drain
from harness import wait_until
from primary import Primary, encoded, snapshot

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
VERSIONS = sorted(facts.parent.name for facts in FIXTURES.glob("*/facts"))
NO_WRITES = "min-replicas-to-write 9"
"""Nothing may write, so time does nothing with the board."""


class Fixture:
    """The files of one version."""

    def __init__(self, version: str) -> None:
        self.folder = FIXTURES / version
        self.facts = dict(line.split(" ", 1) for line in (self.folder / "facts").read_text().splitlines())
        self.effects = (self.folder / "effects.aof").read_bytes()
        self.parts = (self.folder / "snapshot.aof").read_bytes()
        self.dump = (self.folder / "board.dump").read_bytes()
        self.contents = json.loads((self.folder / "contents.json").read_text())


@pytest.fixture(params=VERSIONS)
def fixture(request):
    return Fixture(request.param)


def from_file(fresh_server, name: str, content: bytes, *config: str):
    """A server that loads this file when it starts."""
    server = fresh_server("clock", "manual")
    server.stop()
    (server.folder / name).write_bytes(content)
    server.restart(config=[NO_WRITES, *config])
    return server


def at_once(server, commands: bytes):
    """Runs the commands in one transaction, at whose end nothing may write any more."""
    still = encoded("CONFIG", "SET", *NO_WRITES.split())
    assert errors(pipe(server, encoded("MULTI") + commands + still + encoded("EXEC"))) == []
    return server


def from_dump(fresh_server, fixture):
    return at_once(fresh_server("clock", "manual"), encoded("RESTORE", "board", 0, fixture.dump))


def from_rdb(fresh_server, fixture):
    return from_file(fresh_server, "dump.rdb", snapshot({"board": fixture.dump}))


def from_log(fresh_server, fixture):
    return from_file(fresh_server, "appendonly.aof", fixture.effects, "appendonly yes")


def from_rewritten_log(fresh_server, fixture):
    return from_file(fresh_server, "appendonly.aof", fixture.parts, "appendonly yes")


def from_foreign_log(fresh_server, fixture):
    return at_once(fresh_server("clock", "manual", "foreign-effects", "yes"), fixture.effects)


def from_foreign_parts(fresh_server, fixture):
    return at_once(fresh_server("clock", "manual", "foreign-effects", "yes"), fixture.parts)


def from_primary(fresh_server, fixture, dumps=None, commands=b""):
    primary = Primary(dumps)
    server = fresh_server("clock", "manual", config=[f"replicaof 127.0.0.1 {primary.port}", NO_WRITES])
    wait_until(lambda: server.info("replication")["master_link_status"] == "up", 20, what="the link is up")
    primary.say(commands)
    primary.followed_by(server)
    server.client().execute_command("REPLICAOF", "NO", "ONE")
    primary.close()
    return server


def from_primary_by_effects(fresh_server, fixture):
    return from_primary(fresh_server, fixture, commands=fixture.effects)


def from_primary_by_snapshot(fresh_server, fixture):
    return from_primary(fresh_server, fixture, {"board": fixture.dump})


WAYS = [
    from_dump,
    from_rdb,
    from_log,
    from_rewritten_log,
    from_foreign_log,
    from_foreign_parts,
    from_primary_by_effects,
    from_primary_by_snapshot,
]


def test_there_are_fixtures():
    assert VERSIONS


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_board_of_every_version_is_what_it_was(fresh_server, fixture, way):
    server = way(fresh_server, fixture)
    board = server.board(encoding_errors="surrogateescape")
    assert board.digest() == fixture.facts["digest"]
    server.clock.set(int(fixture.facts["now"]))
    assert missing(fixture.contents, contents(board)) == []
    check_consistent(board)
    assert board.digest() == fixture.facts["digest"]
    assert server.info("jobboard")["jobboard_broken_boards"] == 0
    goes_on(server, board)


def goes_on(server, board) -> None:
    """Time takes up the board again, and workers and operators can do away with all that it holds."""
    server.client().config_set("min-replicas-to-write", 0)
    server.clock.advance(100_000)
    check_consistent(board)
    board.set(ownerless=0, concurrency=-1, rate=-1)
    board.client.execute_command("JOB.RESUME", "board")
    board.post("new", id="new", queue="of its own")
    token = board.claim_one("new", queues=["of its own"])["token"]
    assert board.consume("new", "new", token=token) == "complete"
    assert drain(board)
    before = board.digest()
    server.client().execute_command("DEBUG", "RELOAD")
    assert board.digest() == before
    found = board.list_all(justid=True)
    board.cancel(
        *[id for id in found if board.state(id) not in ("complete", "failed", "trashed")], force=True
    )
    board.delete(*board.list_all(justid=True))
    check_consistent(board)
    assert board.info()["jobs"] == 0


@pytest.mark.parametrize("way", [from_log, from_rdb], ids=lambda way: way.__name__)
def test_a_replica_gets_a_board_of_every_version(fresh_server, fixture, way):
    server = way(fresh_server, fixture)
    replica = fresh_server("clock", "manual", replicaof=server)
    replica.wait_synced(server)
    assert replica.board().digest() == fixture.facts["digest"]
    server.clock.set(int(fixture.facts["now"]))
    server.client().config_set("min-replicas-to-write", 0)
    server.clock.advance(100_000)
    drain(server.board(encoding_errors="surrogateescape"))
    replica.wait_synced(server)
    assert replica.board().digest() == server.board().digest()
    assert replica.info("jobboard")["jobboard_broken_boards"] == 0


def test_what_is_missing_is_found():
    before = {"a": [1, {"b": 2}], "c": 3}
    assert missing(before, {"a": [1, {"b": 2, "new": 0}], "c": 3, "new": 1}) == []
    assert missing(before, {"a": [1, {"b": 3}], "c": 3}) == ["/a[1]/b: 2 was expected, not 3"]
    assert len(missing(before, {"a": [1]})) == 2
