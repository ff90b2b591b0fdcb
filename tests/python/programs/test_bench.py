"""`make bench-quick` and `make instructions-beside` run; the rows of a peer where it is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from harness.server import MODULE, ROOT

pytestmark = [pytest.mark.long, pytest.mark.thorough]

VENV = ROOT / "target" / "bench" / "venv" / "bin" / "python"


def quick(python: str, peer: str) -> str:
    return run(
        python,
        "quick.py",
        "--peers",
        peer,
        "--many",
        "1000",
        "--most",
        "3000",
        "--rounds",
        "1",
        "--samples",
        "3",
    )


def run(python: str, file: str, *words: str) -> str:
    command = [python, str(ROOT / "benches" / file), *words]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("peer", ["jobboard", "batches"])
def test_our_own_rows(peer: str) -> None:
    printed = quick(sys.executable, peer)
    assert len([line for line in printed.splitlines() if line.startswith("| jobboard")]) == 5, printed
    assert "1,000 wait | 3,000 wait | 1,000 claimed" in printed
    assert "Not measured" not in printed


def test_a_peer_that_is_not_installed_is_skipped_with_the_reason() -> None:
    assert "no module" not in quick(sys.executable, "rq").lower()


@pytest.mark.parametrize("peer", ["streams", "lists", "taskflow", "bullmq", "qless", "rq", "beanstalkd"])
def test_the_peers(peer: str) -> None:
    if not VENV.exists():
        pytest.skip("the peers are not installed: run `make bench-quick`")
    printed = quick(str(VENV), peer)
    if "Not measured" in printed:
        pytest.skip(printed[printed.index("Not measured") :].splitlines()[2])
    assert "µs of CPU" in printed


@pytest.mark.skipif("release" not in MODULE.parts, reason="a module with checks takes other numbers")
def test_instructions_of_a_whole_life() -> None:
    """A job takes more than three commands that do nothing, and about half as much in batches."""
    printed = run(sys.executable, "instructions_beside.py", "--peers", "jobboard,batches")
    rows = [line.strip("| ").split(" | ") for line in printed.splitlines() if line.startswith("|")]
    whole = {row[0]: float(row[4].replace(",", "")) for row in rows[2:]}
    assert whole["three PING"] < whole["three JOB.GET of an absent board"] < whole["jobboard"]
    assert 1000 < whole["jobboard, 100 a command"] < whole["jobboard"] * 0.6


CHANGED = (
    "warning: board.1a-cgu.0: function control flow change detected (hash mismatch) "
    "_ZN5board4jobs4post17h0123456789abcdefE Hash = 1 up to 2 count discarded\n"
)


@pytest.mark.parametrize("printed", ["", "    Finished `release` profile\n", CHANGED * 2])
def test_a_stale_profile_is_named(printed: str) -> None:
    script = ROOT / "scripts" / "profile-fits"
    done = subprocess.run([script], input=printed, capture_output=True, text=True, check=False)
    assert done.returncode == ("change detected" in printed)
    assert ("made: 1\n" in done.stderr and "post" in done.stderr) == ("change detected" in printed)


@pytest.mark.parametrize("server_kills", ["0", "1"])
def test_jobs_that_remember_and_wait(tmp_path: Path, server_kills: str) -> None:
    report = tmp_path / "agents.md"
    run(sys.executable, "agents.py", "--jobs", "40", "--server-kills", server_kills, "--to", str(report))
    text = report.read_text()
    assert "| jobs complete | 40 of 40 |" in text
    assert "| stored steps that ran again | 0 |" in text


@pytest.mark.parametrize("kind", ["redis70", "redis82"])
def test_the_rows_beside_streams(tmp_path: Path, kind: str) -> None:
    page = tmp_path / "streams.md"
    run(
        sys.executable,
        "against_streams.py",
        "--server",
        kind,
        "--rounds",
        "1",
        "--jobs",
        "500",
        "--to",
        str(page),
    )
    rows = [line for line in page.read_text().splitlines() if line.startswith("| ")]
    assert len(rows) == 2 + 12
    assert ("XACKDEL" in rows[4]) == (kind == "redis82")
    assert all(row.count("**") == 6 for row in rows if "POST" in row)


def test_what_one_core_and_a_cluster_hold(tmp_path: Path) -> None:
    page = tmp_path / "capacity.md"
    few = ("--rounds", "1", "--jobs", "500", "--seconds", "0.2")
    run(sys.executable, "capacity.py", *few, "--to", str(page))
    rows = [line.strip("| ").split(" | ") for line in page.read_text().splitlines() if line.startswith("| ")]
    costs, latencies = rows[2:9], rows[11:]
    assert [row[0] for row in costs[3:]] == [*(f"node {n} of 3" for n in (1, 2, 3)), "all nodes together"]
    # The last row adds up what its nodes do.
    singly = [int(row[-2].replace(",", "")) for row in costs[3:]]
    assert abs(singly[-1] - sum(singly[:-1])) <= 3
    assert len(latencies) == 9 and all(0 < float(row[3]) <= float(row[4]) for row in latencies)


def test_growth_with_features_in_use(tmp_path: Path) -> None:
    page = tmp_path / "growth.md"
    run(sys.executable, "growth.py", "--most", "5000", "--waiters", "150", "--to", str(page))
    text = page.read_text()
    assert all(
        f"| {row} |" in text for row in ("POST", "CLAIM", "HEARTBEAT", "CONSUME", "CLAIM over 100 queues")
    )
    assert "| each on all 100 queues |" in text


def test_the_flow_of_work_beside_plain_commands(tmp_path: Path) -> None:
    page = tmp_path / "flow.md"
    small = ("--jobs", "5000", "--waiters", "150", "--rounds", "1")
    run(sys.executable, "flow_of_work.py", *small, "--to", str(page))
    text = page.read_text()
    assert all(f"| {row} |" in text for row in ("a heartbeat", "a post that finds room", "waiting posts"))
    # The walk by a text has looked at every job, and has found the one.
    [row] = [line for line in text.splitlines() if line.startswith("| `WHERE CONTAINS text` |")]
    assert row.split(" | ")[2] == "1"
