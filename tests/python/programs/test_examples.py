"""The examples run, and do what they say."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import IO, Any
from urllib.parse import urlsplit

import jobboard
import pytest
from harness import Server, wait_until
from harness.server import ROOT

POEM = "Two roads diverged in a yellow wood, and sorry I could not travel both"
"""That of stream.py."""


MISTAKE = re.compile(r"\b(TypeError|AttributeError|NameError|KeyError|IndexError|ImportError)\b")
"""A mistake in a handler, which the try after it hides."""

TRIED_AGAIN = {"test_stream": 1, "test_an_application": 1}
"""How many failures an example means. In others of the package no handler fails; those in plain redis-py
count their own.
"""


def run(name: str, port: int | None, *words: str, **variables: str) -> str:
    """What the example prints."""
    at = [] if port is None else ["--port", str(port)]
    command = [sys.executable, str(ROOT / "examples" / f"{name}.py"), *at, *words]
    environment = {**os.environ, **variables}
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    check_log(done.stderr)
    return done.stdout


def check_log(log: str) -> None:
    assert not MISTAKE.search(log), log


@pytest.fixture
def server(server: Server, request: pytest.FixtureRequest) -> Iterator[Server]:
    """On which no job is tried again, and none fails, that the example does not mean."""
    yield server
    name = request.node.originalname
    if name in ("test_strict_order", "test_request_reply"):
        return
    client = server.client(decode_responses=False)
    for key in client.scan_iter(_type="jobboard1"):
        stats = jobboard.Board(key.decode(), client).stats()
        assert (stats["retried"], stats["failed"]) == (TRIED_AGAIN.get(name, 0), 0), key


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
    assert number(output, r"(\d+) used") == number(output, r"(\d+) counted") > 0


def test_strict_order(server) -> None:
    output = run("strict_order", server.port)
    assert number(output, r"(\d+) tries") > 120
    assert "in order: 10 of 10" in output


def test_request_reply(server) -> None:
    output = run("request_reply", server.port)
    assert "12 squared: 144" in output
    assert "many squared: failed: invalid literal" in output
    assert "without a worker: nobody answered in time" in output


def events_of(response: http.client.HTTPResponse) -> Iterator[tuple[str, str, Any]]:
    """Number, name and data of each event of a stream."""
    number = name = ""
    for line in response:
        word, _, rest = line.decode().rstrip("\n").partition(": ")
        if word == "id":
            number = rest
        elif word == "event":
            name = rest
        elif word == "data":
            yield number, name, json.loads(rest)


def test_stream(server) -> None:
    command = [sys.executable, str(ROOT / "examples" / "stream.py"), "--port", str(server.port), "--web", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as web:
        try:
            address = urlsplit(web.stdout.readline())

            def get(path: str, **headers: str) -> http.client.HTTPResponse:
                connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
                connection.request("GET", path, headers=headers)
                return connection.getresponse()

            assert b"EventSource" in get(f"/?{address.query}").read()
            assert get("/output?id=nobody").status == 404
            text, numbers = "", []
            for number, name, data in events_of(get(f"/output?{address.query}")):
                if name == "end":
                    assert data == "complete"
                    break
                text = data["text"] if data["anew"] else text + data["text"]
                numbers.append(int(number))
            assert text.split() == POEM.split()
            assert numbers == sorted(set(numbers))
            again = get(f"/output?{address.query}", **{"Last-Event-ID": str(numbers[-2])})
            _, _, last = next(events_of(again))
            assert last["text"].split() == POEM.split()[-len(last["text"].split()) :]
        finally:
            web.terminate()
            log = web.communicate()[1]
    assert "it broke off" in log
    check_log(log)


def test_flow(server) -> None:
    output = run("flow", server.port)
    assert output.splitlines() == [
        "claimed: split",
        "claimed: count count count",
        "claimed: sum",
        "words: 12",
    ]


def test_pipeline(server) -> None:
    assert sorted(run("pipeline", server.port).splitlines()) == [
        "cat.png published with 700 bytes",
        "dog.png published with 700 bytes",
        "tiger.png published with 900 bytes",
    ]


def test_approval(server) -> None:
    id = run("approval", server.port, "refund 20 for ann").strip()
    late = run("approval", server.port, "refund 30 for bob", "--within", "1ms").strip()
    board = jobboard.Board("approvals", server.client(decode_responses=False))
    assert run("approval", server.port, "--work").count("drafting") == 2
    wait_until(lambda: board.state(late) in ("ready", "complete"), what="the end of the wait")
    assert run("approval", server.port, "--inbox").startswith(f"{id}: Dear customer")
    assert board.signal("approved", id, value=True, sender="eve") == ["woken"]
    assert f"sending {id}" in run("approval", server.port, "--work")
    assert (board.get(id).result, board.state(late)) == (f"sent {id}", "complete")


OUTBOX = """paid: True and again: False
bought: {shop}:order:1
bought: {shop}:order:2
refused: SOLDOUT nothing left
orders: 3, jobs: 3
"""


GIVEN = ["tenants", "flow", "outbox", "pipeline", "approval"]


@pytest.mark.parametrize("name", GIVEN)
def test_the_server_is_that_of_the_environment(server, name: str) -> None:
    """With its password: `jobboard serve` makes one up."""
    client = server.client()
    client.config_set("requirepass", "secret")
    try:
        url = f"redis://default:secret@127.0.0.1:{server.port}"
        assert run(name, None, *(["a request"] if name == "approval" else []), JOBBOARD_URL=url)
        assert client.execute_command("DBSIZE") > 0
    finally:
        client.config_set("requirepass", "")


def test_outbox(server) -> None:
    assert run("outbox", server.port) == OUTBOX


def test_outbox_in_a_cluster(cluster) -> None:
    assert run("outbox", cluster.primaries[0].port, "--cluster") == OUTBOX


def test_sharded(cluster) -> None:
    output = run("sharded", cluster.primaries[0].port, "--jobs", "3000")
    assert "shards: 12 on 3 nodes" in output
    assert "the same id again: None" in output
    assert "consumed: 3000, each once: True, left: 0" in output


class Shop:
    """The application of examples/shop.py, with a worker."""

    def __init__(self, port: int, log: IO[str]) -> None:
        self.environment = {**os.environ, "JOBBOARD_URL": f"redis://127.0.0.1:{port}"}
        words = ["-m", "jobboard", "worker", "shop:board", "--threads", "4", "--log-level", "warning"]
        self.log = log
        self.worker = self.start(*words, stderr=log)

    def start(self, *words: str, **options: Any) -> subprocess.Popen:
        place = {"cwd": ROOT / "examples", "env": self.environment, "text": True}
        return subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, **place, **options)

    def say(self, *words: str) -> list[str]:
        process = self.start("shop.py", *words)
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        return output.splitlines()

    def close(self) -> None:
        self.worker.terminate()
        assert self.worker.wait(40) == 0
        self.worker.stdout.close()
        self.log.seek(0)
        check_log(self.log.read())


@pytest.fixture
def shop(server, tmp_path):
    with open(tmp_path / "log", "w+") as log:
        one = Shop(server.port, log)
        yield one
        one.close()


def test_an_application(shop, server) -> None:
    """Mail with back-off, a cron, a rate, a pipeline, progress and a cancel, in less than 120 lines."""
    assert len((ROOT / "examples/shop.py").read_text().splitlines()) < 120
    board = jobboard.Board("shop", server.client(decode_responses=False))
    shop.say("setup")
    shop.say("setup")
    [schedule] = board.schedule_list()
    assert (schedule["id"], schedule["cron"], schedule["tz"]) == ("report", "0 2 * * *", "Europe/Berlin")
    assert board.result(board.schedule_run("report"), timeout="30s").startswith("report of 20")
    assert shop.say("mail", "ann") == ["Welcome sent to ann at try 2"]
    assert shop.say("quotes", "EUR", "USD", "GBP") == ["4.5"]
    claims = sorted(job.claimed for job in board.list(state="complete", queue="quotes"))
    assert len(claims) == 3 and claims[2] - claims[0] >= 390, "five a second"
    assert shop.say("photo", "cat.png") == ["cat.png: published with 700 bytes"]
    lines = shop.say("export", "3")[1:]
    assert lines[-1] == "3 rows" and set(lines[:-1]) <= {
        "0 % row 1 of 3",
        "33 % row 2 of 3",
        "67 % row 3 of 3",
    }
    process = shop.start("shop.py", "export", "1000")
    id = process.stdout.readline().strip()
    assert re.fullmatch(r"\d+ % row \d+ of 1000", process.stdout.readline().strip())
    shop.say("cancel", id)
    output, _ = process.communicate(timeout=60)
    assert output.splitlines()[-1] == "cancelled"
