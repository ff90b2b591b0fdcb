"""The TypeScript package with Sentinels and in a cluster: its worker and its board follow a failover."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness import wait_until
from harness.cluster import Cluster
from harness.server import ROOT, WITH_ITS_PARENT
from sentinels import Watched

pytestmark = pytest.mark.long

PACKAGE = ROOT / "clients" / "typescript"
PROGRAM = PACKAGE / "build" / "test" / "place.js"


class Place:
    """test/place.ts: it answers a number with its square, which its worker has computed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def square(self, n: int) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{n}\n")
        self.process.stdin.flush()
        while not (line := self.process.stdout.readline()).startswith(f"{n} "):
            assert line, "the program has ended"  # other lines are its log
        assert line == f"{n} {n * n}\n"

    def ends(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        assert self.process.wait(60) == 0


@contextmanager
def place(where: str, folder: Path) -> Iterator[Place]:
    assert PROGRAM.exists(), f"{PROGRAM} is missing: run scripts/typescript build"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*WITH_ITS_PARENT, "node", str(PROGRAM), where],
            cwd=PACKAGE,
            env={**os.environ, "NODE_OPTIONS": "--conditions=jobboard-tests"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        yield Place(process)
    finally:
        process.kill()
        process.wait()
        print((folder / "log").read_text(errors="replace"))


@pytest.mark.parametrize("how", ["kill", "freeze"])
def test_sentinels(watched: Watched, how: str, tmp_path: Path) -> None:
    with place(watched.url, tmp_path) as program:
        program.square(2)
        watched.servers[1].wait_synced(watched.servers[0])
        watched.sentinels[0].close()  # the first that the URL names
        watched.fail_over(how)
        program.square(3)
        assert watched.servers[1].board().get("job-3")["previous"] == "w"
        program.square(4)
        program.ends()


def test_a_cluster(server_kind: str, tmp_path: Path) -> None:
    cluster = Cluster(server_kind, replicas=1)
    try:
        owner = cluster.owner("board")
        other = next(one for one in cluster.primaries if one is not owner)
        with place(f"cluster:{other.port}", tmp_path) as program:
            program.square(2)
            replica = cluster.replica_of(owner)
            wait_until(
                lambda: replica.info("replication")["master_link_status"] == "up", what="the replica follows"
            )
            cluster.failover(replica)
            program.square(3)
            replica.kill()  # the old primary takes over
            wait_until(
                lambda: owner.info("replication")["role"] == "master", 60, what="the cluster fails over"
            )
            program.square(4)
            program.ends()
    finally:
        cluster.close()


def test_a_cluster_whose_named_node_is_lost(server_kind: str, tmp_path: Path) -> None:
    """It has told of the others."""
    cluster = Cluster(server_kind, replicas=1)
    try:
        owner = cluster.owner("board")
        with place(f"cluster:{owner.port}", tmp_path) as program:
            program.square(2)
            replica = cluster.replica_of(owner)
            wait_until(
                lambda: replica.info("replication")["master_link_status"] == "up", what="the replica follows"
            )
            owner.kill()
            program.square(3)
            program.ends()
    finally:
        cluster.close()


def test_a_board_that_has_gone_before_its_slot(server_kind: str, tmp_path: Path) -> None:
    cluster = Cluster(server_kind)
    try:
        owner = cluster.owner("board")
        other = next(one for one in cluster.primaries if one is not owner)
        slot = cluster.slot("board")
        with place(f"cluster:{other.port}", tmp_path) as program:
            program.square(2)
            cluster.begin_migration(slot, owner, other)
            cluster.move("board", owner, other)
            program.square(3)
            cluster.end_migration(slot, other)
            program.square(4)
            program.ends()
    finally:
        cluster.close()


def test_a_url_of_a_cluster_says_what_to_write(server_kind: str) -> None:
    cluster = Cluster(server_kind)
    try:
        owner = cluster.owner("board")
        other = next(one for one in cluster.primaries if one is not owner)
        program = """
        import { Board, Worker } from 'jobboard';
        const board = new Board('board', process.argv[1]);
        board.handler('x', () => 1);
        const told = (error) => console.log(error.code, error.message);
        await board.count().catch(told);
        await new Worker(board, { logger: null }).run().catch(told);
        """
        done = subprocess.run(
            ["node", "--input-type=module", "-e", program, f"redis://127.0.0.1:{other.port}"],
            cwd=PACKAGE,
            env={**os.environ, "NODE_OPTIONS": "--conditions=jobboard-tests"},
            capture_output=True,
            text=True,
            timeout=60,
        )
        where = f"127.0.0.1:{other.port}"
        text = (
            f"MOVED MOVED {where} is a node of a cluster, and 127.0.0.1:{owner.port} has this board: "
            f"new Board(name, {{ rootNodes: [{{ url: 'redis://{where}' }}] }}) finds the node of a board\n"
        )
        assert (done.stdout, done.returncode) == (text * 2, 0), done.stderr
    finally:
        cluster.close()
