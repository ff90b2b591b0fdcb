"""docs/guides/celery.md: its example runs, its options exist, its rights suffice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celery.contrib.testing.worker import start_worker
from celery.signals import setup_logging
from harness import Server
from jobboard.celery import addresses, channel

GUIDE = (Path(__file__).resolve().parents[3] / "docs/guides/celery.md").read_text()


@pytest.fixture(autouse=True)
def logging_as_it_is() -> Iterator[None]:
    """Celery leaves the log of this process alone when somebody else sees to it."""

    def see_to_it(**_: Any) -> None: ...

    setup_logging.connect(see_to_it)
    yield
    setup_logging.disconnect(see_to_it)


def application(server: Server, login: str = "") -> Any:
    [block] = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    names: dict[str, Any] = {"__name__": "shop"}
    exec(block.replace("localhost:6379", f"{login}127.0.0.1:{server.port}"), names)
    return names


def test_the_example_runs(server: Server):
    names = application(server)
    with start_worker(names["app"], perform_ping_check=False, pool="solo"):
        assert names["add"].delay(1, 2).get(timeout=120) == 3
    names["app"].close()
    assert server.client().type(addresses.BOARD) == "jobboard1"


def test_the_rights_it_names_suffice(server: Server):
    commands = re.findall(r"`([A-Z.]+)`", GUIDE.partition("## Rights")[2].partition("\n## ")[0])
    rules = [f"+{name}" for name in commands]
    client = server.client()
    results = ["~celery-task-meta-*", "+@connection", "&celery-task-meta-*", "+get", "+mget", "+setex"]
    results += ["+multi", "+exec", "+del"]
    place = ["~celery-jobs", "~celery-jobs:bindings:*", "&jobboard.celery:*"]
    client.execute_command("ACL", "SETUSER", "shop", "on", ">pw", *place, *rules, *results)
    names = application(server, "shop:pw@")
    try:
        with start_worker(names["app"], perform_ping_check=False, pool="solo"):
            assert names["add"].delay(1, 2).get(timeout=120) == 3
            names["add"].apply_async((1, 2), countdown=3600, task_id="later")
            assert names["app"].control.purge() == 1
            assert names["app"].control.ping(timeout=20, limit=1)
        names["app"].close()
        denied = client.execute_command("ACL", "LOG")
        assert [one for one in denied if one["username"] == "shop"] == []
    finally:
        client.execute_command("ACL", "LOG", "RESET")
        client.execute_command("ACL", "DELUSER", "shop")


def test_all_options_are_there():
    table = GUIDE.partition("| in `broker_transport_options`")[2].partition("\n\n")[0]
    named = {name for line in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", line.split("|")[1])}
    own = {*channel.Channel.from_transport_options} - {"body_encoding", "deadletter_queue"}
    assert named == {"board", *own, *addresses.CLIENT_OPTIONS}


def test_the_urls_of_the_guide_are_understood():
    for url in re.findall(r"`(jobboard[+:][^`…\[]+)`", GUIDE):
        assert addresses.of_url(url).board == addresses.BOARD
