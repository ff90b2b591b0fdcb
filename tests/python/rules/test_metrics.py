"""JOB.METRICS: its text is OpenMetrics, its numbers are those of the board; exporter and dashboard fit it."""

from __future__ import annotations

import importlib.util
import json
import re
import threading
import urllib.error
import urllib.request

import lives
import pytest
import redis
from expect import refused_like
from harness import EPOCH
from harness.server import ROOT
from lives import LONG
from openmetrics import parse, values
from waiters import Waiter

MIDNIGHT = EPOCH // 86_400_000 * 86_400


def metrics(client, *boards):
    client.response_callbacks.clear()
    text = client.execute_command("JOB.METRICS", *boards)
    return parse(text if isinstance(text, bytes) else text.encode())


def test_without_boards_it_tells_of_the_server_alone(server):
    server.board().post()
    told = metrics(server.client())
    assert "jobboard_jobs" not in told
    assert values(told["jobboard_boards"], "jobboard_boards") == [1]
    assert values(told["jobboard_blocked_claims"], "jobboard_blocked_claims") == [0]


def test_the_used_share_of_maxmemory(fresh_server):
    server = fresh_server()
    client = server.client()
    assert "jobboard_server_memory_ratio" not in metrics(client)
    used = server.info("memory")["used_memory"]
    with server.configured(maxmemory=used * 2):
        [share] = values(metrics(client)["jobboard_server_memory_ratio"], "jobboard_server_memory_ratio")
        assert 0.3 < share < 0.7
    with server.configured(maxmemory=used // 2):
        [share] = values(metrics(client)["jobboard_server_memory_ratio"], "jobboard_server_memory_ratio")
        assert share > 1


def test_states_of_jobs_by_queue(server):
    board = server.board()
    lives.busy(board)
    told = metrics(server.client(), "board")
    for queue, row in board.queues().items():
        for state in [
            "ready",
            "claimed",
            "scheduled",
            "complete",
            "failed",
            "cancelled",
            "trashed",
            "blocked",
        ]:
            assert values(told["jobboard_jobs"], "jobboard_jobs", queue=queue, state=state) == [row[state]]
    assert values(told["jobboard_workers"], "jobboard_workers") == [len(board.workers())]
    assert values(told["jobboard_broken"], "jobboard_broken") == [0]


def test_counters_and_histograms_are_those_of_today(clocked_board, clock):
    board = clocked_board
    for id, wait, run in [("a", 0, 100), ("b", 5, 101), ("c", 6, 70_000)]:
        board.post(id=id, queue="mail")
        clock.advance(wait)
        token = board.claim_one(id=id, lease=LONG)["token"]
        clock.advance(run)
        board.consume("w1", id, token=token)
    told = metrics(board.client, "board")
    assert values(told["jobboard_events"], "jobboard_events_total", queue="mail", event="completed") == [3]
    assert set(values(told["jobboard_events"], "jobboard_events_created")) == {MIDNIGHT}
    wait, run = told["jobboard_wait_seconds"], told["jobboard_run_seconds"]
    for le, n in [("0.001", 1), ("0.005", 2), ("0.01", 3), ("+Inf", 3)]:
        assert values(wait, "jobboard_wait_seconds_bucket", le=le) == [n], le
    for le, n in [("0.05", 0), ("0.1", 1), ("0.25", 2), ("60.0", 2), ("600.0", 3)]:
        assert values(run, "jobboard_run_seconds_bucket", le=le) == [n], le
    assert values(run, "jobboard_run_seconds_sum", board="board") == [70.201]


def test_age_pause_and_limit_of_a_queue(clocked_board, clock):
    board = clocked_board
    board.post(queue="mail", priority=5)
    clock.advance(1500)
    board.post(queue="mail", priority=9)
    board.post(queue="sms")
    board.pause(queue="sms")
    board.set(queue="mail", concurrency=3)
    told = metrics(board.client, "board")
    age = told["jobboard_oldest_ready_age_seconds"]
    assert values(age, "jobboard_oldest_ready_age_seconds", queue="mail") == [1.5]
    assert values(told["jobboard_paused"], "jobboard_paused", queue="sms") == [1]
    assert values(told["jobboard_concurrency_limit"], "jobboard_concurrency_limit") == [3]


def test_names_are_escaped(server):
    names = ['quo"te', "back\\slash", "new\nline", "tab\t", "é", " "]
    for name in names:
        server.board(name).post(queue=name)
    told = metrics(server.client(), *names)
    jobs = {one.labels["board"]: one.labels["queue"] for one in told["jobboard_jobs"].samples}
    assert jobs == {name: name for name in names}
    server.board(b"\xff{}").post(queue=b"a\xfe\x00")
    told = metrics(server.client(), b"\xff{}")
    assert told["jobboard_jobs"].samples[0].labels["queue"] == "a\\xfe\x00"


def test_absent_and_repeated_boards(server):
    server.board().post()
    told = metrics(server.client(), "board", "nowhere", "board")
    assert values(told["jobboard_broken"], "jobboard_broken") == [0]


def test_another_type_and_too_many_are_refused(server):
    client = server.client()
    client.set("text", "x")
    with refused_like("WRONGTYPE .*"):
        client.execute_command("JOB.METRICS", "text")
    few = server.configured(**{"jobboard.max-batch": 2})
    with few, refused_like("ERR no more than 2 boards can be named"):
        client.execute_command("JOB.METRICS", "a", "b", "c")


def test_its_keys_are_known(server):
    client = server.client()
    client.response_callbacks.clear()
    keys = client.execute_command("COMMAND", "GETKEYS", "JOB.METRICS", "a", "b", "c")
    assert [key if isinstance(key, str) else key.decode() for key in keys] == ["a", "b", "c"]
    client.execute_command("ACL", "SETUSER", "ann", "reset", "on", ">secret", "+@all", "%R~board")
    try:
        ann = server.client(username="ann", password="secret")
        server.board().post()
        assert "jobboard_jobs" in metrics(ann, "board")
        assert "jobboard_boards" in metrics(ann)
        with pytest.raises(redis.exceptions.NoPermissionError):
            ann.execute_command("JOB.METRICS", "board", "other")
    finally:
        client.execute_command("ACL", "DELUSER", "ann")


def test_lateness_and_pick_up_are_seen(fresh_server):
    server = fresh_server()
    board = server.board()
    waiter = Waiter(server, "w1")
    board.post(id="j", delay=30)
    assert waiter.job() == "j"
    told = metrics(server.client(), "board")
    late = "jobboard_server_lateness_seconds"
    assert values(told[late], f"{late}_count", what="due") == [1]
    assert values(told["jobboard_pickup_seconds"], "jobboard_pickup_seconds_count") == [1]
    late = "jobboard_lateness_seconds"
    assert values(told[late], f"{late}_count", what="due") == [1]
    info = server.info("jobboard")
    assert info["jobboard_due_lateness_max_ms"] >= info["jobboard_due_lateness_p99_ms"] >= 0
    assert {"jobboard_pickup_p99_ms", "jobboard_lease_lateness_p99_ms"} <= set(info)


# What a board and its queues tell


def test_queues_tell_pace_age_and_lateness(clocked_board, clock):
    board = clocked_board
    clock.set(EPOCH // 60_000 * 60_000 + 60_000)
    board.post_many(120, queue="mail")
    for job in board.claim("w1", queues=["mail"], count=60, lease=1000):
        board.consume("w1", job["id"], token=job["token"])
    board.claim("w1", queues=["mail"], count=1, lease=1000)
    clock.advance(6000)
    row = board.queues()["mail"]
    assert [float(row[name]) for name in ["arrival-rate", "completion-rate"]] == [2.0, 1.0]
    assert (row["oldest"], row["drain"], row["lateness-max"]) == (6000, -1, 5000)
    clock.advance(54_000 + 30_000)
    row = board.queues()["mail"]
    assert [float(row[name]) for name in ["arrival-rate", "completion-rate"]] == [1.0, 0.5]
    info = board.info()
    assert float(info["arrival-rate"]) == 1.0
    assert (info["oldest"], info["lease-lateness-max"], info["due-lateness-max"]) == (90_000, 5000, 0)
    for job in board.claim("w1", queues=["mail"], count=40):
        board.consume("w1", job["id"], token=job["token"])
    row = board.queues()["mail"]
    # 20 are left; 40 and half of 60 a minute went, half of 120 came.
    assert row["ready"] == 20 and row["drain"] == 20 * 60_000 // 10
    clock.advance(120_000)
    assert float(board.queues()["mail"]["arrival-rate"]) == 0.0


# Exporter and dashboard


@pytest.fixture
def exporter(server):
    """Starts the exporter on these boards, and gives its address."""
    spec = importlib.util.spec_from_file_location("exporter", ROOT / "examples" / "exporter.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    running = []

    def start(*boards):
        client = redis.Redis(port=server.port)
        http = module.serve(client, boards, "127.0.0.1", 0)
        threading.Thread(target=http.serve_forever, daemon=True).start()
        running.append((http, client))
        return f"http://127.0.0.1:{http.server_address[1]}"

    yield start
    for http, client in running:
        http.shutdown()
        http.server_close()
        client.close()


def scrape(address, path="/metrics"):
    with urllib.request.urlopen(address + path, timeout=60) as reply:
        assert reply.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
        return parse(reply.read())


def boards_in(told):
    return {one.labels["board"] for one in told["jobboard_jobs"].samples}


def test_the_exporter_serves_the_boards_named_or_all(server, exporter):
    for key in ["jobs", "mails"]:
        server.board(key).post()
    server.client().set("text", "x")
    assert boards_in(scrape(exporter("jobs"))) == {"jobs"}
    address = exporter()
    assert boards_in(scrape(address)) == {"jobs", "mails"}
    with pytest.raises(urllib.error.HTTPError, match="404"):
        scrape(address, "/")
    with pytest.raises(urllib.error.HTTPError, match="503"):
        scrape(exporter("text"))


def test_the_dashboard_reads_metrics_that_exist(fresh_server):
    server = fresh_server()
    board = server.board()
    board.set(queue="many", concurrency=100)
    lives.busy(board)
    lives.complete(board, "done", queue="drained")
    told = metrics(server.client(), "board")
    samples = {one.name: set(one.labels) for family in told.values() for one in family.samples}
    dashboard = json.loads((ROOT / "examples" / "grafana-dashboard.json").read_text())
    used = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    used += [one["query"]["query"] for one in dashboard["templating"]["list"] if one["type"] == "query"]
    assert len(used) > 15
    for expression in used:
        selectors = re.findall(r"(jobboard_[a-z_]+)(?:\{([^}]*)\})?", expression)
        assert selectors, expression
        for name, labels in selectors:
            assert name in samples, f"{name} in {expression}"
            asked = set(re.findall(r"(\w+)(?:=~|=|!=)", labels)) - {"job"}
            assert asked <= samples[name], f"{asked} of {name}"
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)
