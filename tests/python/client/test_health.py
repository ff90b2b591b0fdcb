"""Probes of a worker, and a worker that starts again when its program changes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from jobboard import Worker


def probe(worker, path: str) -> tuple[int, dict]:
    url = f"http://127.0.0.1:{worker.health.port}{path}"
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_a_worker_is_ready_while_it_hears_from_the_server(server, jobs, work, until, tmp_path) -> None:
    @jobs.task()
    def slow(context) -> None:
        while not context.going_home:
            time.sleep(0.01)

    file = tmp_path / "ready"
    running = work(
        jobs, concurrency=2, lease="2s", block="100ms", health_port="127.0.0.1:0", health_file=file
    )
    worker = running.worker
    until(lambda: hasattr(worker, "health"))
    until(lambda: probe(worker, "/ready")[0] == 200)
    until(file.exists)
    slow.post()
    slow.post()  # each place is taken: a lease that ends brings no run more
    until(lambda: probe(worker, "/live")[1]["running"] == 2)
    status, about = probe(worker, "/live")
    numbers = {"running": 2, "stuck": 0, "done": 0}
    assert (status, about) == (200, {"well": True, "worker": worker.name, **numbers})
    assert probe(worker, "/")[0] == 404
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        until(lambda: probe(worker, "/ready")[0] == 503, what="not ready without a server")
        assert probe(worker, "/live")[0] == 200, "but alive: to start it again would not help"
        stale = file.stat().st_mtime_ns
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    until(lambda: probe(worker, "/ready")[0] == 200, what="ready again")
    until(lambda: file.stat().st_mtime_ns > stale)
    running.stop()
    assert not file.exists()
    with pytest.raises(OSError):
        probe(worker, "/live")


def test_the_end_of_a_claim_is_heard_too(jobs, work, until) -> None:
    """Without a registration there is no heartbeat while nothing runs."""
    jobs.task("nothing")(lambda: None)
    running = work(jobs, register=False, block="100ms", health_port=0)
    until(lambda: hasattr(running.worker, "health"))
    until(lambda: probe(running.worker, "/ready")[0] == 200)


def test_a_worker_that_goes_home_is_alive_and_not_ready(jobs, work, until) -> None:
    began, going = [], []

    @jobs.task()
    def slow() -> None:
        began.append(1)
        while not going:
            time.sleep(0.01)

    slow.post()
    running = work(jobs, health_port=0)
    until(lambda: began)
    running.worker.stop()
    until(lambda: probe(running.worker, "/ready")[0] == 503)
    assert probe(running.worker, "/live")[0] == 200
    going.append(1)
    running.thread.join(120)


def test_a_worker_whose_thread_has_died_is_not_alive(jobs, work, until) -> None:
    jobs.task("nothing")(lambda: None)
    running = work(jobs, health_port=0)
    until(lambda: hasattr(running.worker, "health"))
    until(lambda: probe(running.worker, "/live")[0] == 200)
    health = running.worker.health
    health.threads = [*health.threads, type("Dead", (), {"is_alive": lambda self: False})()]
    assert probe(running.worker, "/live")[0] == 503


@pytest.mark.parametrize("port", ["http", "1:2:x", ""])
def test_a_port_is_a_port(jobs, port) -> None:
    jobs.task("nothing")(lambda: None)
    with pytest.raises(ValueError, match="health_port is a port, or host:port, such as 8080"):
        Worker(jobs, health_port=port)


PROGRAM = """
import jobboard

board = jobboard.Board("board")


@board.task(retries=0)
def version() -> int:
    return {version}
"""


def test_it_starts_again_when_the_program_changes(server, jobs, tmp_path, until) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(version=1))
    command = [sys.executable, "-m", "jobboard", "worker", "program:board", "--reload", "--threads", "1"]
    environment = {**os.environ, "JOBBOARD_URL": f"redis://127.0.0.1:{server.port}"}
    with (tmp_path / "log").open("wb") as log:
        running = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=log)

    def answer() -> int:
        return jobs.result(jobs.post({}, name="version", retries=0), timeout="60s")

    try:
        assert answer() == 1
        [first] = jobs.worker_list()
        program.write_text(PROGRAM.format(version="wrong("))
        until(lambda: "SyntaxError" in (tmp_path / "log").read_text(), what="it says what is wrong")
        assert running.poll() is None
        program.write_text(PROGRAM.format(version=22))  # Python knows one as long, of the same second, as 1
        assert answer() == 22
        assert [one["worker"] for one in jobs.worker_list()] != [first["worker"]]
        running.send_signal(signal.SIGINT)
        assert running.wait(120) == 0
        assert [*jobs.worker_list()] == []
    finally:
        running.kill()
        running.wait()
