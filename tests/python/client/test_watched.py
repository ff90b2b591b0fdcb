"""What README shows: jobs of a worker that is killed at work are done by another."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from harness import wait_until
from harness.server import ROOT


def jobboard(server, *words: str) -> subprocess.Popen:
    env = {**os.environ, "JOBBOARD_URL": f"redis://127.0.0.1:{server.port}"}
    command = [sys.executable, "-m", "jobboard", *words]
    return subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)


def worker(server) -> subprocess.Popen:
    return jobboard(server, "worker", "examples.watched:board", "--session")


@pytest.mark.long
def test_a_killed_workers_job_goes_to_the_next_at_once(server):
    board = server.board("watched")
    first = worker(server)
    try:
        post = jobboard(server, "post", "watched", "60", "--name", "walk", "--wait", "120s")
        wait_until(lambda: board.count(state="claimed") == 1, what="the worker has the job")
        id = board.list_all()[0]["id"]
        wait_until(lambda: float(board.get(id).get("progress", 0)) > 0, what="it tells how far it is")
        first.kill()
        first.wait()
        wait_until(lambda: board.state(id) == "ready", what="the server has taken it back")
        board.update(id, payload="2")
    finally:
        first.kill()
    second = worker(server)
    try:
        assert json.loads(post.communicate(timeout=120)[0].splitlines()[-1]) == "walked for 2 s"
        assert board.get(id)["attempt"] > 1
    finally:
        second.kill()
        second.wait()
