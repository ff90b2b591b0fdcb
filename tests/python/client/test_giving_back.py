"""What a worker gives back at its end goes to others, and not to a claim of its own that is about to end."""

from __future__ import annotations

import signal
import threading
import time

import pytest
from harness import wait_until
from jobboard import Board, ShardedBoard, Worker
from jobboard.worker.connection import Connection


@pytest.mark.every_server
def test_a_server_that_hears_of_everything_at_once_gives_it_to_nobody(fresh_server, monkeypatch) -> None:
    """When it wakes up it reads the claim, its end and what is given back."""
    server = fresh_server()
    board = Board("board", server.client(decode_responses=False))
    began, asleep, end, ask = threading.Event(), threading.Event(), threading.Event(), Connection.ask

    def asking(connection, commands):
        if commands[0][0] == "JOB.CLAIM" and began.is_set() and not asleep.is_set():
            server.process.send_signal(signal.SIGSTOP)
            asleep.set()
        return ask(connection, commands)

    monkeypatch.setattr(Connection, "ask", asking)

    @board.handler()
    def handler(context, payload):
        began.set()
        end.wait(60)

    worker = Worker(board, concurrency=2, block="100ms", stop_within="0s", register=False)
    thread = threading.Thread(target=worker.run, daemon=True)
    board.post(1, id="a")
    thread.start()
    assert asleep.wait(60)
    time.sleep(0.2)  # until it has sent the claim
    try:
        worker.stop()
        wait_until(lambda: worker._engine.going_home, what="it gives back")
        time.sleep(0.2)
    finally:
        server.process.send_signal(signal.SIGCONT)
    end.set()
    thread.join(60)
    assert board.get("a").reason == "the worker stops"
    assert [event["event"] for event in board.history("a")] == ["posted", "claimed", "abandoned"]


def test_a_worker_of_a_cluster_gives_back_without_trouble(cluster, work, caplog) -> None:
    board = ShardedBoard("jobs", cluster.client(decode_responses=False), shards=3)
    began, end = [], threading.Event()

    @board.handler()
    def handler(context, payload):
        began.append(payload)
        end.wait(60)

    running = work(board, concurrency=3, stop_within="0s")
    ids = [board.post(number) for number in range(3)]
    wait_until(lambda: len(began) == 3, what="all run")
    running.worker.stop()
    wait_until(lambda: board.count(state="ready") == 3, what="given back")
    end.set()
    assert running.stop() is False
    assert {board.get(id).reason for id in ids} == {"the worker stops"}
    assert not [line for line in caplog.messages if "does not answer" in line]
