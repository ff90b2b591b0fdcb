"""The examples run, and do what they say."""

from __future__ import annotations

import re
import subprocess
import sys

from harness.server import ROOT


def run(name: str, port: int, *words: str) -> str:
    """What the example prints."""
    command = [sys.executable, str(ROOT / "examples" / f"{name}.py"), "--port", str(port), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def number(output: str, pattern: str) -> int:
    return int(re.search(pattern, output)[1])


def test_tenants(server) -> None:
    output = run("tenants", server.port)
    assert output.startswith("order: gold gold gold big small gold gold gold big gold")
    assert "small had to wait for 4 jobs" in output


def test_rate_limited_api(server) -> None:
    output = run("rate_limited_api", server.port)
    assert number(output, r"calls: (\d+)") == 31
    assert number(output, r"most in any second: (\d+)") <= 25
    assert number(output, r"silence after the 429: (\d+) ms") >= 450


def test_strict_order(server) -> None:
    output = run("strict_order", server.port)
    assert number(output, r"(\d+) tries") > 120
    assert "in order: 10 of 10" in output


def test_request_reply(server) -> None:
    output = run("request_reply", server.port)
    assert "12 squared: 144" in output
    assert "many squared: failed: invalid literal" in output
    assert "without a worker: nobody answered in time" in output


def test_flow(server) -> None:
    output = run("flow", server.port)
    assert output.splitlines() == [
        "claimed: split",
        "claimed: count count count",
        "claimed: sum",
        "words: 12",
    ]


def test_steps(server) -> None:
    assert sorted(run("steps", server.port).splitlines()) == [
        "cat.png published with 700 bytes",
        "dog.png published with 700 bytes",
        "tiger.png published with 900 bytes",
    ]


OUTBOX = """paid: True and again: False
bought: {shop}:order:1
bought: {shop}:order:2
refused: SOLDOUT nothing left
orders: 3, jobs: 3
"""


def test_outbox(server) -> None:
    assert run("outbox", server.port) == OUTBOX


def test_outbox_in_a_cluster(cluster) -> None:
    assert run("outbox", cluster.primaries[0].port, "--cluster") == OUTBOX


def test_sharded(cluster) -> None:
    output = run("sharded", cluster.primaries[0].port, "--jobs", "3000")
    assert "shards: 12 on 3 nodes" in output
    assert "the same id again: None" in output
    assert "consumed: 3000, each once: True, left: 0" in output
